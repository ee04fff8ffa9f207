"""The evidence above a drop-in: what was measured, where and how, as comments that leave the body untouched."""

from __future__ import annotations

import hashlib

from cuda_l1 import __version__
from cuda_l1.export.compose import require_utf8
from cuda_l1.ratios import towards_one
from cuda_l1.texts import many
from cuda_l1.types import Record, Task, Timing, proves_little

_FIRST = "# Written by cuda-l1 "
_LAST = "# ── measured text ──"

_GUARDED = (
    "# ModelNew is a drop-in for Model, forward only: calls unlike the measured ones run the original's forward",
    "# and are counted in module.report['fallbacks'].",
)
_BARE = ("# The candidate as it was judged, without a guard: right for inputs like the measured ones, forward only.",)


def add_header(body: str, record: Record, task: Task, *, guard_us: float | None = None) -> str:
    """`body` with a comment block before it; `record` is the `final` of exactly this text.

    `guard_us` is the cost of the guard in microseconds, where it was measured. Raises ValueError when the record is
    of another text, CandidateError when its first lines say that it is not written in UTF-8: below a header they would
    say nothing.
    """
    require_utf8(body)
    if record.candidate.source != body:
        raise ValueError("a header states what was measured of this text, and the record is of another one")
    lines = [f"{_FIRST}{__version__}. Evidence for the text below the line `{_LAST[2:]}`:", "#"]
    lines += [f"#   {name:<16} {_one_line(text)}" for name, text in _facts(body, record, task, guard_us)]
    lines += ["#", *(_GUARDED if is_dropin(body) else _BARE), _LAST]
    return "\n".join(lines) + "\n" + body


def _one_line(text: str) -> str:
    """Names of tasks, devices and techniques come from files and other people's records: none ends its comment."""
    return "".join(character if character.isprintable() else "?" for character in text)


def is_dropin(body: str) -> bool:
    """Whether the text carries the guard of `render_dropin`."""
    return "\nclass _Dropin:\n" in body


def split_header(text: str) -> tuple[str, str]:
    """(header or "", measured body) of a drop-in's text."""
    head, mark, body = text.partition(f"\n{_LAST}\n")
    if not mark or not text.startswith(_FIRST):
        return "", text
    return f"{head}{mark}", body


def _facts(body: str, record: Record, task: Task, guard_us: float | None) -> list[tuple[str, str]]:
    evaluation, place = record.evaluation, record.evaluation.environment
    sha256 = hashlib.sha256(body.encode()).hexdigest()
    cuda = f", CUDA {place.cuda}, driver {place.driver}" if place.cuda else ""
    correctness = evaluation.correctness
    trials = f" in {many(len(correctness.trials), 'trial')}" if correctness else ""
    facts = [
        ("task", task.id),
        ("technique", record.candidate.label),
        ("outcome", f"{evaluation.outcome}, precision class {evaluation.precision_class}{trials}"),
        ("device", f"{place.device_name} ({place.device}, lane {place.lane})"),
        ("software", f"torch {place.torch}{cuda}, Python {place.python}"),
        ("protocol", f"{evaluation.protocol}, sandbox {place.rung}"),
    ]
    facts += [(f"{t.clock} time", describe(t)) for t in evaluation.timings]
    if little := proves_little(evaluation.task_flags):
        facts.append(("no headline", little))
    if guard_us is not None:
        facts.append(("guard", f"{guard_us:.1f} us a call, contained in the figures above"))
    if task.weights:
        facts.append(("weights", f"sha256 {task.weights.sha256}, not contained: load_state_dict() them"))
    return [*facts, ("record", record.id), ("date", f"{record.time:%Y-%m-%d}"), ("sha256 of text", sha256)]


def describe(timing: Timing) -> str:
    """`1.52x (1.49 to 1.55) against eager: 12.1 us instead of 18.4 us`, rounded towards 1."""
    interval = ""
    if timing.speedup_low is not None and timing.speedup_high is not None:
        interval = f" ({towards_one(timing.speedup_low):.2f} to {towards_one(timing.speedup_high):.2f})"
    among = f", the best of {many(len(timing.best_of), 'baseline')}" if timing.best_of else ""
    return (
        f"{towards_one(timing.speedup):.2f}x{interval} against {timing.opponent}{among}: "
        f"{timing.candidate_us:.1f} us instead of {timing.opponent_us:.1f} us"
    )
