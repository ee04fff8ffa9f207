"""CUDA-L1's tables (arXiv 2507.14111): how speed-ups are spread, a line for each method, level and configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

from cuda_l1.report.aggregates import GAIN, arithmetic_mean, floored, geometric_mean, quartiles, share_above
from cuda_l1.report.cells import Cell, Covered, Ratio, Row, Share, Table
from cuda_l1.report.entries import EAGER, HEADLINE_PROTOCOLS, Method
from cuda_l1.report.sections import Section, TaskView
from cuda_l1.report.tables.headline import known
from cuda_l1.report.versus import against, is_measured, over, standings
from cuda_l1.types import PrecisionClass

CONFIGURATIONS = {
    EAGER: "Default",
    "compile": "Torch Compile",
    "compile-reduce-overhead": "Torch Compile RO",
    "cuda-graph": "CUDA Graph",
}
"""CUDA-L1's names for what a method is compared with, by our names of the baselines."""
SPREAD = ("mean", "max", "75 %", "50 %", "25 %", "success", f"speed-up > {GAIN}x")
FAILED = (
    "As in CUDA-L1's tables a method whose candidates failed, or do not count, has 0 in mean and quartiles. One that "
    "took nothing of what it screened to a final has what the reference has."
)


ALL_THERE, IN_COMMON, BEST = "all there", "in common", "Best baseline"


COUNTED = (
    "`success`: of all sound tasks. `speed-up`: of those on which the baseline counts and was measured as the method "
    "was. `tasks`: those that mean and quartiles are over, where both have a verdict, of all sound ones."
)


def spread_cells(speedups: Sequence[float | None], success: Share, comparable: int) -> tuple[Cell, ...]:
    """The columns of SPREAD; None in `speedups`: failed. `comparable`: tasks that could have a speed-up."""
    values = [value or 0.0 for value in speedups]
    middle = quartiles(values)
    mean, highest = arithmetic_mean(values), max(values, default=None)
    figures = (mean, highest, *((middle.upper, middle.median, middle.lower) if middle else (None, None, None)))
    faster = Share(share_above(speedups, GAIN).count, comparable)
    return (*(None if figure is None else Ratio(figure) for figure in figures), success, faster)


def methods(section: Section) -> Table:
    """Method x level against eager: mean, max, quartiles, success n/N, speed-up n/N."""
    rows = []
    for level, views in section.groups().items():
        for method in (*section.baselines, *section.systems):
            cells = _versus(section, method, views, EAGER)
            if cells:
                rows.append(Row((method.name, level, *cells)))
    return Table(
        name="methods",
        title="Speed-up against eager",
        columns=("method", "level", *SPREAD, "tasks"),
        rows=tuple(rows),
        notes=(FAILED, COUNTED),
    )


def baselines(section: Section) -> Table:
    """Baseline x precision class: how fast each is against eager on the tasks where it was measured to be of it."""
    rows = []
    for method in section.baselines:
        found: dict[PrecisionClass, list[tuple[bool, float]]] = {}
        for view in section.sound:
            for entry in view.of(method):
                ratio, got = over(section, view, entry, EAGER), entry.evaluation.precision_class
                if got and ratio and entry.counts("relaxed"):
                    found.setdefault(got, []).append((entry.counts(section.precision), ratio.value))
        for got in (name for name in get_args(PrecisionClass) if name in found):
            counted = sum(counts for counts, _ in found[got])
            mean = geometric_mean([value for _, value in found[got]])
            rows.append(Row((method.name, got, mean, Share(len(found[got]), len(section.sound)), counted)))
    return Table(
        name="baselines",
        title="Baselines by precision class, against eager",
        columns=("baseline", "class", "geometric mean", "tasks", "counts on"),
        rows=tuple(rows),
        notes=(
            "Of what is right and unsuspected; in brackets 95 % over tasks. `counts on`: tasks of these on which it is "
            "as exact as asked for. On the others it is no denominator, and has 0 in CUDA-L1's tables, as what failed.",
        ),
    )


def configurations(section: Section) -> Table:
    """Configuration x level for each system: the same columns against each baseline in turn."""
    rows = []
    for method in section.systems:
        for baseline in section.denominators:
            for level, views in section.groups().items():
                cells = _versus(section, method, views, baseline)
                if cells:
                    rows.append(Row((configuration(baseline), method.name, level, *cells)))
    return Table(
        name="configurations",
        title="Speed-up against each baseline",
        columns=("configuration", "method", "level", *SPREAD, "tasks"),
        rows=tuple(rows),
        notes=(FAILED, COUNTED),
    )


def configuration(baseline: str) -> str:
    """CUDA-L1's name of a comparison, and ours."""
    name = CONFIGURATIONS.get(baseline)
    return f"{name} ({baseline})" if name else baseline


def _versus(section: Section, method: Method, views: Sequence[TaskView], baseline: str) -> tuple[Cell, ...] | None:
    """The columns of SPREAD, and the tasks that they are over; None where there is none."""
    speedups = _speedups(section, method, views, baseline)
    if not speedups:
        return None
    there = standings(section, method, views)
    success = Share(sum(one.counts for one in there), len(views))
    unknown = {one.view.task.sha for one in there} - speedups.keys()
    comparable = sum(baseline in view.baselines and view.task.sha not in unknown for view in views)
    return (*spread_cells([*speedups.values()], success, comparable), Share(len(speedups), len(views)))


def _speedups(section: Section, method: Method, views: Sequence[TaskView], baseline: str) -> dict[str, float | None]:
    """The method over the baseline by the task's hash, None where it failed; without tasks that say nothing of both.

    What the baseline was not measured against here, under this protocol, is neither a figure nor a failure.
    """
    found = {}
    for one in standings(section, method, views):
        ratio = against(section, one, baseline) if baseline in one.view.baselines else None
        if ratio or (not one.counts and is_measured(section, one.view, baseline)):
            found[one.view.task.sha] = ratio.value if ratio else None
    return found


def side_by_side(sections: Sequence[Section]) -> list[Table]:
    """Places next to each other: a table for each protocol and edition that several of them have."""
    groups: dict[tuple[int, str], list[Section]] = {}
    for section in sections:
        groups.setdefault((HEADLINE_PROTOCOLS.index(section.protocol), section.edition), []).append(section)
    return [devices(group) for _, group in sorted(groups.items()) if len(group) > 1]


def devices(sections: Sequence[Section]) -> Table:
    """Configuration x place: means, a column for each of several sections of one protocol and edition.

    A line for all tasks of each place, where these differ, and one for those that all the places have in common.
    """
    rows = []
    for method, baseline in _comparisons(sections):
        found = [_compared(section, method, baseline) for section in sections]
        there = [one.keys() for one in found if one]
        common = set[str]().union(*there).intersection(*there)
        named = configuration(baseline), method.name
        if any(shas != common for shas in there) or len(there) == 1:
            cells = [_mean(one, len(section.sound)) for one, section in zip(found, sections, strict=True)]
            rows.append(Row((*named, ALL_THERE, *cells)))
        if len(there) > 1:
            alike = [{sha: one[sha] for sha in common} if one else {} for one in found]
            cells = [_mean(one, len(section.sound)) for one, section in zip(alike, sections, strict=True)]
            rows.append(Row((*named, IN_COMMON, *cells)))
    shown = ", ".join(filter(None, (sections[0].protocol, sections[0].edition)))
    return Table(
        name="devices",
        title=f"Mean speed-up, place by place ({shown})",
        columns=("configuration", "method", "tasks", *(f"{one.label}, {one.clock} clock" for one in sections)),
        rows=tuple(rows),
        notes=(
            FAILED,
            f"`{BEST}`: as in the headline what is slower than it, or failed, counts 1.",
            f"`{ALL_THERE}`: each mean is over what its own place has, so that they are not comparable; "
            f"`{IN_COMMON}`: over those that every place with a figure has. In brackets: how many, of all sound ones "
            "there.",
        ),
    )


def _comparisons(sections: Sequence[Section]) -> list[tuple[Method, str]]:
    """Each baseline against eager, and each system against the best baseline and each of them."""
    baselines = dict.fromkeys(method for section in sections for method in section.baselines)
    systems = sorted({method for section in sections for method in section.systems})
    opponents = dict.fromkeys(name for section in sections for name in section.denominators)
    own = [(method, EAGER) for method in baselines if method.name != EAGER]
    return own + [(method, name) for method in systems for name in (BEST, *opponents)]


def _compared(section: Section, method: Method, baseline: str) -> dict[str, float | None]:
    """As `_speedups` over the section's sound tasks, against a baseline or the best one."""
    if baseline != BEST:
        return _speedups(section, method, section.sound, baseline)
    pairs = known(section, standings(section, method, section.sound))
    return {one.view.task.sha: floored(best.ratio.value if best else None) for one, best in pairs}


def _mean(speedups: Mapping[str, float | None], sound: int) -> Covered | None:
    """None where there is no task."""
    values = [value or 0.0 for value in speedups.values()]
    return Covered(arithmetic_mean(values), Share(len(values), sound)) if values else None
