"""How near each task's best candidate, and eager, are to what the device allows for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from cuda_l1.report.cells import Row, Table
from cuda_l1.report.roofline import MEMORY, Roofline, roofline
from cuda_l1.report.sections import Section
from cuda_l1.report.versus import Standing, standings

FIELDS = ("work_bytes", "work_flops", "roofline_us", "roofline_bound", "roofline_fraction", "roofline_fraction_eager")


class Lies(NamedTuple):
    """Where a candidate and eager, from one verdict, lie under the roof."""

    standing: Standing
    ours: Roofline
    eager: Roofline
    took_us: float


def under_the_roof(section: Section) -> list[Lies]:
    """Every task and system whose bytes and operations were counted; where there is no system, every baseline."""
    return [found for one in _standings(section) if (found := lies(section, one))]


def _standings(section: Section) -> Iterator[Standing]:
    for method in section.systems or section.baselines:
        yield from standings(section, method, section.sound)


def lies(section: Section, one: Standing) -> Lies | None:
    """None where nothing counts, or nothing was counted or measured."""
    evaluation, work, ceilings = one.entry.evaluation, one.view.work, section.ceilings
    timing = evaluation.timing(clock=section.clock)
    if not (one.counts and one.confirmed and work and ceilings and timing and evaluation.correctness):
        return None
    ours = roofline(work, ceilings, timing.candidate_us, evaluation.precision_class)
    eager = roofline(work, ceilings, timing.opponent_us, evaluation.correctness.task_class)
    return Lies(one, ours, eager, timing.candidate_us) if ours and eager else None


def rooflines(section: Section) -> Table:
    """Task and system: what it asks of the device, the least time for that, and how near candidate and eager are."""
    return Table(
        name="roofline",
        title="Under the roofline",
        columns=("task", "method", "MB", "Mflop", "flop/byte", "bound by", "least us", "us", "fraction", "eager's"),
        rows=tuple(_rows(section)),
        notes=_notes(section),
    )


def _rows(section: Section) -> Iterator[Row]:
    for one in under_the_roof(section):
        work, ours = one.standing.view.work, one.ours
        assert work is not None
        yield Row(
            (
                one.standing.view.name,
                one.standing.method.name,
                *(work.moved_bytes / 1e6, work.flops / 1e6, ours.intensity, ours.bound, ours.least_us, one.took_us),
                *(ours.fraction, one.eager.fraction),
            )
        )


def _notes(section: Section) -> tuple[str, ...]:
    if section.ceilings is None:
        return ()
    ceilings = section.ceilings
    named = {MEMORY: f"memory {ceilings.bytes_per_us / 1e3:.3g} GB/s"}
    named |= {name: f"{name} {value / 1e6:.3g} Tflop/s" for name, value in ceilings.flops_per_us.items()}
    told = ", ".join(f"{text} (by eager)" if name in ceilings.by_eager else text for name, text in named.items())
    where = (
        f"Ceilings, the most in any of these records: {told}. A copy and products measure them; `by eager`: these "
        "showed less than eager reached on one of the tasks, as on a machine with other work."
    )
    counted = (
        "Bytes of inputs, weights and outputs, each once, and operations of the reference, counted as it runs. "
        "`fraction`: the least time for these over the time taken; a candidate is above 1 where algebra needs fewer "
        "operations, eager never is."
    )
    notes = [where, counted]
    if section.place.device == "cpu":
        notes.append(
            "A CPU's caches may hold inputs and weights: then eager reaches more than memory gives, and so may others."
        )
    if beyond := sum(_is_beyond(section, one) for one in _standings(section)):
        notes.append(f"Left out: {beyond} whose bytes, operations or times are too large or too small to be divided.")
    return tuple(notes)


def _is_beyond(section: Section, one: Standing) -> bool:
    """Whether all is known of it, and no roofline follows from that."""
    timing, work = one.entry.evaluation.timing(clock=section.clock), one.view.work
    known = one.counts and one.confirmed and timing is not None and work is not None and work.moved_bytes > 0
    return known and lies(section, one) is None


def roofline_fields(section: Section, one: Standing) -> dict[str, Any]:
    """For programs: bytes, operations, microseconds and fractions; nothing where there is none."""
    found, work = lies(section, one), one.view.work
    if found is None or work is None:
        return dict.fromkeys(FIELDS)
    ours = found.ours
    values = (work.moved_bytes, work.flops, ours.least_us, ours.bound, ours.fraction, found.eager.fraction)
    return dict(zip(FIELDS, values, strict=True))
