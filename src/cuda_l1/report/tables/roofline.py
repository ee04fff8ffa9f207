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
    methods = section.systems or section.baselines
    found = (lies(section, one) for method in methods for one in standings(section, method, section.sound))
    return [one for one in found if one]


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
    caches = "A CPU's caches may hold inputs and weights: then eager reaches more than memory gives, and so may others."
    return (where, counted, caches) if section.place.device == "cpu" else (where, counted)


def roofline_fields(section: Section, one: Standing) -> dict[str, Any]:
    """For programs: bytes, operations, microseconds and fractions; nothing where there is none."""
    found, work = lies(section, one), one.view.work
    if found is None or work is None:
        return dict.fromkeys(FIELDS)
    ours = found.ours
    values = (work.moved_bytes, work.flops, ours.least_us, ours.bound, ours.fraction, found.eager.fraction)
    return dict(zip(FIELDS, values, strict=True))
