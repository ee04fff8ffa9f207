"""What a reader must know of a section before its figures: what was measured how, on what, when and with what."""

from __future__ import annotations

from collections import Counter

from cuda_l1.report.sections import Section
from cuda_l1.types import Environment

_PROTOCOLS = {
    "final": "several fresh pairs of processes a verdict, whose figure has an interval",
    "screen": "as a rule one pair of processes a verdict, whose figure has no interval",
}
_CLOCKS = {"device": "time on the GPU", "call": "what a caller waits for"}


def facts(section: Section) -> tuple[str, ...]:
    """Lines for people; they follow from the records alone."""
    suites = Counter(view.task.suite for view in section.views)
    named = ", ".join(f"{count} of `{suite}`" for suite, count in sorted(suites.items()))
    unsound = len(section.views) - len(section.sound)
    without = f"; on {unsound} being right proves nothing, and no figure is over them" if unsound else ""
    days = sorted({entry.time.date().isoformat() for view in section.views for entry in view.entries})
    return (
        f"{section.protocol}: {_PROTOCOLS[section.protocol]}; {section.clock} clock: {_CLOCKS[section.clock]}",
        f"tasks: {named}{without}",
        f"measured {' to '.join(dict.fromkeys((days[0], days[-1])))}",
        _versions(section.place),
    )


def _versions(place: Environment) -> str:
    driver = f", driver {place.driver}" if place.driver else ""
    lane = f", cores {place.lane}" if place.device == "cpu" else ""
    return f"torch {place.torch}{driver}{lane}; sandbox rung {place.rung}, the evaluator's rules {place.rules}"
