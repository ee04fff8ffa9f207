"""`evaluate --shapes`: accepted candidates at other sizes, as tables, JSON lines and one line for each candidate."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from cuda_l1.api.batch import Answer
from cuda_l1.api.pool import EvaluatorPool
from cuda_l1.api.shapes import verify_sizes
from cuda_l1.cli.output import Output
from cuda_l1.config import Precision
from cuda_l1.report.shapes import ShapeReport, SizeResult
from cuda_l1.report.terminal import table
from cuda_l1.tasks.sizes import Size, own_sizes
from cuda_l1.types import Task


def at_other_sizes(
    task: Task,
    judged: Sequence[tuple[str, Answer]],
    sizes: Sequence[Size],
    *,
    pool: EvaluatorPool,
    precision: Precision,
) -> dict[str, ShapeReport]:
    """A report for each accepted candidate, by its name; a line on stderr for each size."""
    accepted = {name: answer for name, answer in judged if answer.judged.record.evaluation.accepted}
    names = [name for name, answer in accepted.items() if answer.same_as is None]
    candidates = [accepted[name].judged.record.candidate for name in names]
    found: dict[str, list[SizeResult]] = {name: [] for name in names}
    for place, result in verify_sizes(task, candidates, sizes, pool=pool, precision=precision):
        found[names[place]].append(result)
        why = f" ({result.reason})" if result.reason else ""
        Output.say(f"{names[place]} at {result.label}: {result.verdict}{why}")
    own = own_sizes(task)
    made = {
        name: ShapeReport(own, tuple(sorted(results, key=lambda result: sizes.index(result.size))))
        for name, results in found.items()
    }
    for name, answer in accepted.items():
        if answer.same_as is not None:
            made[name] = made[judged[answer.same_as][0]]
    return made


def show_sizes(output: Output, reports: dict[str, ShapeReport]) -> None:
    """All of it on stdout."""
    for name, report in reports.items():
        for result in report.results:
            output.record("size", result.fields(), path=name)
        output.record("shapes", {"statement": report.statement, "holds": report.holds, "own": report.own}, path=name)
        rows = [(result.label, result.verdict, result.reason, result.detail) for result in report.results]
        columns = ("size", "verdict", "why", "detail")
        output.show(Text(f"{name}: {report.statement}"), table(columns, rows))
