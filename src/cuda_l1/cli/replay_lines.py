"""What `cuda-l1 replay` prints: a line, a JSON object and a row of the table for each kernel, and the summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cuda_l1.cli.boundary import NOTHING_ACCEPTED
from cuda_l1.cli.output import Output
from cuda_l1.ratios import geometric_mean
from cuda_l1.texts import many

if TYPE_CHECKING:
    from cuda_l1.report.cells import Cell, Ratio, Table
    from cuda_l1.report.reasons import Reason
    from cuda_l1.search.replay import Replayed
    from cuda_l1.tasks.release import Column, ReleaseEntry
    from cuda_l1.types import Record

_SOURCES = {"kernelbench": "checkout", "release": "release itself"}
"""What `--json` calls a reference's source, in words."""
Explained = tuple["Replayed", tuple["Reason", ...]]
NOTHING = "nothing"
"""In place of an outcome, where no kernel was published."""


class Absent(NamedTuple):
    """What was asked for and cannot be judged."""

    column: Column
    nothing: tuple[ReleaseEntry, ...]
    """Tasks for which the release has no kernel in that column."""
    unread: int
    """Rows of the release that could not be read."""


def explained(replayed: Replayed) -> Explained:
    """With why its figures differ."""
    from cuda_l1.report.reasons import Facts, reasons

    item = replayed.item
    theirs, ours = (record.evaluation if record else None for record in (replayed.theirs, replayed.ours))
    published = item.entry.task.source if item.differs else None
    return replayed, reasons(Facts(item.published, theirs, ours, item.task.source, item.candidate.source, published))


def _outcome(record: Record | None) -> str:
    return str(record.evaluation.outcome) if record else "not judged"


def _figure(record: Record | None) -> float | None:
    timing = record.evaluation.timing() if record and record.evaluation.accepted else None
    return timing.speedup if timing else None


def _published(replayed: Replayed) -> Ratio | None:
    """The published figure, marked where it is of another reference than both verdicts."""
    from cuda_l1.report.cells import Ratio

    item = replayed.item
    remark = "another reference" if item.differs else ""
    return Ratio(item.published, remark=remark) if item.published is not None else None


def line_of(replayed: Replayed, why: Sequence[Reason]) -> str:
    """One line of talk, as soon as both verdicts are there."""
    from cuda_l1.report.cells import text
    from cuda_l1.report.terminal import times

    words = [f"published {text(_published(replayed))}"]
    for name, record in (("there", replayed.theirs), ("here", replayed.ours)):
        figure = _figure(record)
        words.append(f"{name} {_outcome(record) if figure is None else times(figure)}")
    why_not = _why_not(replayed, why)
    words += [f"does not count: {why_not}"] if why_not else []
    told = "; ".join(filter(None, (replayed.fault, *(reason.why for reason in why))))
    return f"{replayed.item.entry.title}: {', '.join(words)}{f' ({told})' if told else ''}"


def record(output: Output, replayed: Replayed, why: Sequence[Reason]) -> None:
    """One JSON line; the figures of ours have the names that they have everywhere."""
    from cuda_l1.report.figures import figures

    item, ours = replayed.item, replayed.ours
    fields = {
        "task": item.entry.name,
        "task_id": item.task.id,
        "candidate": item.candidate.id,
        "column": item.column,
        "reference": item.reference,
        "reference_differs": item.differs,
        "published": item.published,
        "scores": item.entry.scores,
        "theirs": _told(replayed.theirs),
        "ours": _told(ours),
        "counts": _stands(replayed, why),
        "why_not": _why_not(replayed, why),
        "environment": _place(replayed),
        "reasons": [reason.model_dump() for reason in why],
        "fault": replayed.fault,
        **figures(ours.evaluation.timing() if ours else None, None),
    }
    output.record("replay", fields)


def record_nothing(output: Output, absent: Absent) -> None:
    """A JSON line for each task without a kernel."""
    from cuda_l1.search.replay import published

    for entry in absent.nothing:
        figure = published(entry, absent.column)
        fields = {"task": entry.name, "column": absent.column, "published": figure, "scores": entry.scores}
        output.record(NOTHING, fields)


def _place(replayed: Replayed) -> dict[str, Any] | None:
    """Where it was judged; both verdicts are of one place."""
    found = next(filter(None, (replayed.ours, replayed.theirs)), None)
    return found.evaluation.environment.model_dump() if found else None


def _told(record: Record | None) -> dict[str, Any] | None:
    if record is None:
        return None
    evaluation = record.evaluation
    return {
        "record": record.id,
        "protocol": evaluation.protocol,
        "outcome": str(evaluation.outcome),
        "detail": evaluation.detail,
        "precision_class": evaluation.precision_class,
        "speedup": _figure(record),
        "findings": [finding.model_dump() for finding in evaluation.findings],
    }


def _why_not(replayed: Replayed, why: Sequence[Reason]) -> str:
    """Why what is right by our own protocol does not count; empty where it does, or is not right."""
    from cuda_l1 import scoring

    evaluation = replayed.ours.evaluation if replayed.ours else None
    if evaluation is None or not evaluation.accepted:
        return ""
    unsound = "a degenerate task" if any(reason.why == "degenerate task" for reason in why) else ""
    return scoring.why_not(evaluation) or unsound


def _counts(replayed: Replayed, why: Sequence[Reason]) -> str | None:
    """`yes`, `no` and why, or None for what is not right."""
    if replayed.ours is None or not replayed.ours.evaluation.accepted:
        return None
    why_not = _why_not(replayed, why)
    return f"no: {why_not}" if why_not else "yes"


def side_by_side(release: str, protocol: str, done: Sequence[Explained], absent: Absent) -> Table:
    """Published figure, both verdicts and why they differ, a row for each kernel and, last, each task without one;
    below it what that rests on, counts and means."""
    from cuda_l1.report.cells import Row, Table

    columns = ("task", "published", f"as {protocol} says", "ours", "class", "counts", "why they differ")
    cells = (*(_cells(*pair) for pair in sorted(done, key=_order)), *_cells_of_nothing(absent))
    notes = (*_rests_on(done, absent), *_notes(protocol, done))
    return Table("replay", f"{release}, replayed", columns, tuple(map(Row, cells)), notes)


def _order(pair: Explained) -> tuple[bool, int, int]:
    """By level and number; kernels without a published figure, with which nothing can be compared, last."""
    item = pair[0].item
    return item.published is None, item.entry.level_id, item.entry.task_id


def _cells(replayed: Replayed, why: Sequence[Reason]) -> tuple[Cell, ...]:
    from cuda_l1.report.cells import Ratio
    from cuda_l1.report.figures import ratio_of

    figure, ours = _figure(replayed.theirs), replayed.ours
    timing = ours.evaluation.timing() if ours and ours.evaluation.accepted else None
    return (
        replayed.item.entry.title,
        _published(replayed),
        _outcome(replayed.theirs) if figure is None else Ratio(figure),
        _outcome(ours) if timing is None else ratio_of(timing),
        ours.evaluation.precision_class if ours else None,
        _counts(replayed, why),
        "; ".join(filter(None, (replayed.fault, *(f"{reason.why}: {reason.evidence}" for reason in why)))),
    )


def _cells_of_nothing(absent: Absent) -> Iterator[tuple[Cell, ...]]:
    from cuda_l1.report.cells import Ratio
    from cuda_l1.search.replay import published

    for entry in absent.nothing:
        figure = published(entry, absent.column)
        claimed = Ratio(figure) if figure is not None else None
        yield entry.title, claimed, NOTHING, NOTHING, None, None, "no kernel published"


def _rests_on(done: Sequence[Explained], absent: Absent) -> Iterator[str]:
    """Where and how it was judged, and against what."""
    ours = next((replayed.ours.evaluation for replayed, _ in done if replayed.ours), None)
    if ours is not None:
        place = ours.environment
        used = _references(done)
        told = ", ".join(f"{count} of the {_SOURCES[name]}" for name, count in used.items())
        yield f"judged on {place.device_name}, torch {place.torch}; ours: `{ours.protocol}`; references: {told}"
    if absent.nothing:
        count = many(len(absent.nothing), "task")
        yield f"not here: verdicts on {count} for which the release has no kernel in column {absent.column}"
    if absent.unread:
        yield f"not here: {many(absent.unread, 'row')} of the release that could not be read"


def _references(done: Sequence[Explained]) -> dict[str, int]:
    return dict(Counter(replayed.item.reference for replayed, _ in done))


def _notes(protocol: str, done: Sequence[Explained]) -> tuple[str, ...]:
    from cuda_l1.report.terminal import times

    told = "; ".join(f"{name} {count}" for name, count in _reasons(done).most_common())
    good = _good(done)
    published = sum(replayed.item.published is not None for replayed, _ in done)
    counted = f"{published} with a published figure, {_accepted(done)} accepted by {protocol}"
    standing = f"{len(good)} {'stands' if len(good) == 1 else 'stand'} by our own rules"
    notes = [f"{many(len(done), 'kernel')}: {counted}, {standing}. Reasons: {told or 'none'}"]
    means, over = _means(good)
    if over:
        figures = ", ".join(f"{name} {times(value)}" for name, value in means.items())
        notes.append(f"geometric means over {over} of those that stand, all with each figure, against eager: {figures}")
    return tuple(notes)


def summarise(output: Output, protocol: str, done: Sequence[Explained], absent: Absent) -> int:
    """The last JSON line; returns the exit code."""
    good = _good(done)
    means, over = _means(good)
    output.summary(
        kernels=len(done),
        nothing=len(absent.nothing),
        unread=absent.unread,
        references=_references(done),
        published=sum(replayed.item.published is not None for replayed, _ in done),
        protocol=protocol,
        accepted_theirs=_accepted(done),
        accepted=len(good),
        geometric_means=means,
        geometric_means_over=over,
        reasons=dict(_reasons(done).most_common()),
    )
    return 0 if good else NOTHING_ACCEPTED


def _reasons(done: Sequence[Explained]) -> Counter[str]:
    return Counter(reason.why for _, found in done for reason in found)


def _accepted(done: Sequence[Explained]) -> int:
    return sum(_figure(replayed.theirs) is not None for replayed, _ in done)


def _good(done: Sequence[Explained]) -> list[Replayed]:
    return [replayed for replayed, found in done if _stands(replayed, found)]


def _stands(replayed: Replayed, why: Sequence[Reason]) -> bool:
    """Right and unsuspected by our own protocol, on a task where that proves something."""
    return _counts(replayed, why) == "yes"


def _means(good: Sequence[Replayed]) -> tuple[dict[str, float | None], int]:
    """(geometric means of the figures, over how many kernels): of the same ones, those that have every figure that any
    of them has. One published against another reference has no published figure beside ours."""
    figures = [
        {
            "published": None if replayed.item.differs else replayed.item.published,
            "theirs": _figure(replayed.theirs),
            "ours": _figure(replayed.ours),
        }
        for replayed in good
    ]
    names = [name for name in ("published", "theirs", "ours") if any(found[name] for found in figures)]
    common = [found for found in figures if all(found[name] for name in names)]
    means = {name: _geometric_mean(found[name] for found in common) for name in ("published", "theirs", "ours")}
    return means, len(common)


def _geometric_mean(figures: Iterable[float | None]) -> float | None:
    found = [figure for figure in figures if figure]
    return geometric_mean(found) if found else None
