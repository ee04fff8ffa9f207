"""The figures that a README shows, written between two markers of the file, each place by itself: what systems reached
in finals, and where none was judged the baselines."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from cuda_l1.errors import UsageError
from cuda_l1.prelude import contracted
from cuda_l1.report import markdown
from cuda_l1.report.aggregates import geometric_mean
from cuda_l1.report.build import Report
from cuda_l1.report.cells import Covered, Row, Share, Table
from cuda_l1.report.entries import EAGER, Method
from cuda_l1.report.facts import facts
from cuda_l1.report.sections import Section, TaskView
from cuda_l1.report.tables.headline import best_of, headline
from cuda_l1.report.tables.spread import side_by_side
from cuda_l1.report.versus import Best, Standing, against, against_best, standings
from cuda_l1.types import Record

BEGIN, END = "<!-- cuda-l1 report: begin -->", "<!-- cuda-l1 report: end -->"
SHOWN = 10
"""Tasks whose reference and best kernel stand side by side."""
LINES = 120
"""Of a text that is shown in full below the tables; of a longer one the first two thirds and the last."""
GUARD = "# ── The guard: "
"""How the line begins behind which a drop-in has only what every drop-in has."""
_HEADLINE = {
    "method": "method",
    "level": "level",
    "geometric mean": "vs best baseline",
    "beats it": "beats it",
    "vs eager": "vs eager",
    "tasks": "tasks",
}
"""Which columns of the headline are shown, and what they are called."""
_NOTES = (
    "Geometric means of speed-ups against the fastest baseline of the same class and against eager, floored at 1, "
    "rounded towards 1; in brackets 95 % over tasks. `beats it`: tasks on which it is faster than the best baseline by "
    "more than the task's own interval. `tasks`: those that the figures are over, of all.",
)
_BASELINES_NOTES = (
    "Geometric means against eager, rounded towards 1, over the tasks on which the baseline counts; in brackets on how "
    "many it does, of those with a verdict on it. On the others it failed, or computes less exactly than eager, for "
    "example in TF32.",
)
_KERNELS = ("task", "reference", "best kernel", "vs eager", "vs best baseline", "best baseline", "technique", "by")


def parts(text: str, name: str) -> tuple[str, str]:
    """What stands before and after the place for the figures, markers included.

    Raises UsageError where `text`, of the file called `name`, does not hold each marker once, in order.
    """
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise UsageError(
            f"--readme {name}: the place for the figures must be marked once; put the two lines {BEGIN} and {END} there"
        )
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN, END + rest.partition(END)[2]


def figures(report: Report, record_of: Callable[[str], Record | None]) -> str | None:
    """The Markdown between the markers; None where there is neither a final of any system nor a place with nothing but
    baselines.

    It depends on the records alone, so that writing it twice changes nothing.
    """
    finals = [section for section in report.sections if section.protocol == "final" and section.systems]
    searched = {section.place.key for section in report.sections if section.systems}
    measured = [(one, _baselines(one)) for one in report.sections if one.place.key not in searched]
    lines = _rendered(side_by_side(finals), level="###")
    for section in finals:
        lines += _heading(section)
        lines += _rendered([_levels(section), _kernels(section)], level="####")
        lines += _texts(section, record_of)
    for section, table in measured:
        if table.rows:
            lines += [*_heading(section), *_rendered([table], level="####")]
    return "\n".join(lines).rstrip() or None


def _heading(section: Section) -> list[str]:
    return [f"### {markdown.escaped(section.title)}", "", *markdown.listed(facts(section))]


def _rendered(tables: Sequence[Table], level: str) -> list[str]:
    lines = [line for table in tables if table.rows for line in markdown.rendered(table)]
    return [re.sub(r"^### ", f"{level} ", line) for line in lines]


def _levels(section: Section) -> Table:
    """The headline, as wide as a page."""
    whole = headline(section)
    places = [whole.columns.index(name) for name in _HEADLINE]
    rows = tuple(Row(tuple(row.cells[place] for place in places)) for row in whole.rows)
    return replace(
        whole,
        title="Speed-up by level",
        columns=tuple(_HEADLINE.values()),
        rows=rows,
        notes=(*_NOTES, best_of(section)),
    )


def _baselines(section: Section) -> Table:
    """Level x baseline: how fast each is against eager where it counts."""
    methods = [method for method in section.baselines if method.name != EAGER]
    levels = section.groups().items() if methods else ()
    rows = tuple(Row((level, *(_mean(section, one, views) for one in methods))) for level, views in levels)
    columns = ("level", *(method.name for method in methods))
    return Table("baselines", "PyTorch's own baselines against eager", columns, rows, _BASELINES_NOTES)


def _mean(section: Section, baseline: Method, views: Sequence[TaskView]) -> Covered | None:
    """None where it has no verdict."""
    found = standings(section, baseline, views)
    speedups = [ratio.value for one in found if one.counts and (ratio := against(section, one))]
    mean = geometric_mean(speedups)
    return Covered(mean.value if mean else None, Share(len(speedups), len(found))) if found else None


def _kernels(section: Section) -> Table:
    won = _winners(section)
    rows = tuple(_side_by_side(section, one, best) for one, best in won[:SHOWN])
    columns: tuple[str, ...] = _KERNELS
    if len(section.systems) == 1:  # the table above names it
        columns, rows = columns[:-1], tuple(Row(row.cells[:-1]) for row in rows)
    shown = (
        f"the first {len(rows)} of {len(won)}" if len(won) > len(rows) else f"the {len(won)} of {len(section.sound)}"
    )
    title = f"Reference beside best kernel: {shown} tasks on which it beats the best baseline"
    return Table("kernels", title, columns, rows)


def _winners(section: Section) -> list[tuple[Standing, Best]]:
    """Each sound task's best candidate that is faster than the best baseline by more than its interval, best first."""
    by_task: dict[str, tuple[Standing, Best]] = {}
    for method in section.systems:
        for one in standings(section, method, section.sound):
            best, before = against_best(section, one), by_task.get(one.view.task.sha)
            if not best or (best.ratio.low or 0.0) <= 1.0:
                continue
            if before is None or before[1].ratio.value < best.ratio.value:
                by_task[one.view.task.sha] = one, best
    return sorted(by_task.values(), key=lambda found: (-found[1].ratio.value, found[0].view.task.sha))


def _side_by_side(section: Section, one: Standing, best: Best) -> Row:
    timing = one.entry.evaluation.timing(clock=section.clock)
    took = (_time(timing.opponent_us), _time(timing.candidate_us)) if timing else (None, None)
    return Row(
        (
            one.view.name,
            *took,
            against(section, one),
            best.ratio,
            best.baseline,
            one.entry.label,
            one.method.name,
        )
    )


def _time(us: float) -> str:
    return f"{us:.4g} us" if us < 1000 else f"{us / 1000:.4g} ms"


def _texts(section: Section, record_of: Callable[[str], Record | None]) -> Iterator[str]:
    """The first of the table: its reference and its kernel, folded away."""
    for one, _ in _winners(section)[:1]:
        record = record_of(one.entry.record_id)
        if record is None:
            continue
        kernel, guard = _kernel(record.candidate.source, one.view.task.source)
        name = markdown.escaped(one.view.name)
        yield from (f"<details><summary>{name}: reference and best kernel, record {record.id[:12]}</summary>", "")
        yield from (*_fenced(one.view.task.source), "", *_fenced(kernel, guard), "", "</details>", "")


def _kernel(source: str, reference: str) -> tuple[str, int]:
    """(what computes, lines of the guard around it, which is left off), without the reference where the text holds it,
    and with a line for each prelude."""
    kernel, mark, guard = source.partition(f"\n{GUARD}")
    text, lines = (kernel, len(guard.splitlines())) if mark and kernel.strip() else (source, 0)
    own = _without(reference, text)
    return contracted(own if own.strip() else text), lines


def is_dropin(source: str) -> bool:
    """Whether a text has a drop-in's guard behind what computes."""
    return bool(source.partition(f"\n{GUARD}")[1])


def _without(reference: str, source: str) -> str:
    """`source` from behind the reference's statements on, where it begins with them, however they are spaced."""
    try:
        theirs, statements = (_statements(ast.parse(text)) for text in (reference, source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source.removeprefix(reference)
    count = len(theirs)
    if not count or [ast.dump(node) for node in statements[:count]] != [ast.dump(node) for node in theirs]:
        return source
    return "\n".join(re.split(r"\r\n|\r|\n", source)[statements[count - 1].end_lineno or 0 :])


def _statements(tree: ast.Module) -> list[ast.stmt]:
    """Without what says how Python is to be read, which stands first in whichever file."""
    return [node for node in tree.body if not (isinstance(node, ast.ImportFrom) and node.module == "__future__")]


def _fenced(source: str, guard: int = 0) -> list[str]:
    """Foreign text in a fence that it cannot close; `guard`: lines of a drop-in's guard, of which only that is said."""
    lines = ["".join(c for c in line if c.isprintable() or c == "\t") for line in source.strip().splitlines()]
    runs = [len(run) for line in lines for run in re.findall(r"`+", line)]
    fence = "`" * max(3, *(run + 1 for run in runs), 3)
    left, tail = len(lines) - LINES, LINES // 3
    shown = [*lines[: LINES - tail], f"# ... {left} more lines", *lines[-tail:]] if left > 0 else lines
    shown = [line.replace("<!--", "<! --") for line in shown]  # else it might be a marker the next time
    cut = ["", "", f"# ... the guard: {guard} lines"] if guard else []
    return [f"{fence}python", *shown, *cut, fence]
