"""The overview: one row per task and method, plots, and every table of the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

from cuda_l1.report.build import Report
from cuda_l1.report.cells import Cell, Covered, Quoted, Ratio, Share, Table
from cuda_l1.report.entries import EAGER
from cuda_l1.report.sections import Section
from cuda_l1.report.site import plots
from cuda_l1.report.tables.roofline import under_the_roof
from cuda_l1.report.tables.techniques import WRITERS, tried
from cuda_l1.report.technique_effects import technique_effects
from cuda_l1.report.versus import Standing, against, against_best, outcome_of, standing, standings

COLUMNS = ("task", "protocol", "device", "method", "outcome", "class", "vs eager", "vs best baseline", "best baseline",
           "technique", "level", "flags")  # fmt: skip
"""What tells rows of one task apart stands beside its name."""
SAME = ("protocol", "device")
"""What all rows share where a report has one section, whose title says it."""


@dataclass(frozen=True)
class OverviewRow:
    """A line of the overview and the page that it leads to."""

    cells: tuple[Cell, ...]
    link: str


@dataclass(frozen=True)
class PlottedBlock:
    """Tables under a heading, with the plots of the section that they are of."""

    title: str
    facts: tuple[str, ...]
    plots: tuple[Markup, ...]
    tables: tuple[Table, ...]


def overview_rows(report: Report, links: Mapping[str, str]) -> tuple[tuple[str, ...], list[OverviewRow]]:
    """(columns, every task and method with a verdict), systems before baselines; `links` by the task's sha."""
    shown = [place for place, name in enumerate(COLUMNS) if len(report.sections) > 1 or name not in SAME]
    rows = []
    for section in report.sections:
        for view in section.views:
            for method in (*section.systems, *section.baselines):
                if one := standing(section, view, method):
                    cells = _cells(section, one)
                    rows.append(OverviewRow(tuple(cells[place] for place in shown), links[view.task.sha]))
    return tuple(COLUMNS[place] for place in shown), rows


def _cells(section: Section, one: Standing) -> tuple[Cell, ...]:
    evaluation, best, level = one.entry.evaluation, against_best(section, one), one.view.task.level
    return (
        one.view.name,
        section.protocol,
        section.label,
        one.method.name,
        outcome_of(one),
        evaluation.precision_class if one.confirmed else None,
        against(section, one),
        best.ratio if best else None,
        best.baseline if best else None,
        one.entry.label if one.confirmed and one.method.kind != "baseline" else None,
        ", ".join(filter(None, ("" if level is None else str(level), section.edition))) or None,
        ", ".join(one.view.flags) or None,
    )


def plotted_blocks(report: Report, links: Mapping[str, str]) -> list[PlottedBlock]:
    """The report's blocks without their tables of tasks, which the overview replaces; `links` by the task's sha."""
    drawn = {section.title: section_plots(section, links) for section in report.sections}
    return [
        PlottedBlock(
            block.title,
            block.facts,
            drawn.get(block.title, ()),
            tuple(table for table in block.tables if table.name != "tasks"),
        )
        for block in report.blocks
    ]


def section_plots(section: Section, links: Mapping[str, str]) -> tuple[Markup, ...]:
    """Sorted speed-ups with intervals, fast_p, spread by level and method, and how often each technique stands for a
    task."""
    made = []
    for method in section.systems:
        found = standings(section, method, section.sound)
        best = [
            plots.Named(one.view.name, b.ratio, links[one.view.task.sha])
            for one in found
            if (b := against_best(section, one))
        ]
        bounds = ", 95 % intervals" if any(one.ratio.low is not None for one in best) else ""
        made.append(plots.sorted_speedups(best, f"{method.name}: speed-up against the best baseline{bounds}"))
        made.append(plots.boxes(_by_level(section, found), f"{method.name}: speed-up against eager by level"))
        used = Counter(one.entry.label for one in found if one.counts and one.confirmed)
        made.append(plots.bars(dict(used.most_common(20)), f"{method.name}: which candidate stands for a task"))
    curves = {method.name: _speedups(section, standings(section, method, section.sound))
              for method in (*section.systems, *section.baselines) if method.name != EAGER}  # fmt: skip
    right = {name: [value for value in values if value is not None] for name, values in curves.items()}
    made.append(plots.boxes(right, "speed-up against eager by method, of what counts"))
    made.append(plots.fast_p_curves(curves, "fast_p against eager"))
    made.append(_roofline(section, links))
    for kind, writer in WRITERS.items():
        often = {effect.technique: effect.tried for effect in technique_effects(tried(section, kind))[:25]}
        made.append(plots.bars(often, f"how often each technique was tried, candidates ({writer})"))
    return tuple(plot for plot in made if plot)


def _roofline(section: Section, links: Mapping[str, str]) -> Markup:
    if section.ceilings is None:
        return plots.NOTHING
    points: dict[str, list[plots.Place]] = {}
    for one in under_the_roof(section):
        name, link = one.standing.view.name, links[one.standing.view.task.sha]
        for method, lies in ((EAGER, one.eager), (one.standing.method.name, one.ours)):
            told = f"{name}, {method}: {100 * lies.fraction:.3g} % of the roof"
            points.setdefault(method, []).append(plots.Place(told, lies.intensity, lies.flops_per_us / 1e3, link))
    roofs = {name: value / 1e3 for name, value in section.ceilings.flops_per_us.items()}
    return plots.under_roofs(points, section.ceilings.bytes_per_us / 1e3, roofs, "each task under the roofline")


def _by_level(section: Section, found: list[Standing]) -> dict[str, list[float]]:
    levels: dict[str, list[float]] = {}
    for one in found:
        if ratio := against(section, one):
            levels.setdefault(one.view.level, []).append(ratio.value)
    return dict(sorted(levels.items()))


def _speedups(section: Section, found: list[Standing]) -> list[float | None]:
    return [ratio.value if (ratio := against(section, one)) else None for one in found]


def sort_key(cell: Cell) -> str:
    """What a browser sorts a cell by; empty for a cell without a value."""
    match cell:
        case Quoted():
            return cell.printed
        case Share():
            return repr(cell.count / cell.total) if cell.total else ""
        case Ratio() | Covered():
            return "" if cell.value is None else repr(cell.value)
    return "" if cell is None else str(cell)
