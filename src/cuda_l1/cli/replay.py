"""`cuda-l1 replay`: kernels that others published, by the harness that they were published with and by ours."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cuda_l1.cli import options as o
from cuda_l1.cli.boundary import command
from cuda_l1.cli.output import Output
from cuda_l1.cli.replay_lines import (
    Absent,
    Explained,
    explained,
    line_of,
    record,
    record_nothing,
    side_by_side,
    summarise,
)
from cuda_l1.cli.report import check_targets
from cuda_l1.texts import many

if TYPE_CHECKING:
    from cuda_l1.evaluator import Evaluator
    from cuda_l1.report.cells import Table
    from cuda_l1.search.replay import Item, Replayed
    from cuda_l1.tasks.release import Column, Release
    from cuda_l1.types import Task

NAMED = 5
"""References that differ, or are not in a checkout, are named up to so many, and counted beyond; `--json` has all."""


class ColumnChoice(StrEnum):
    """Which kernels of a release."""

    custom = "custom"
    cuda_graph = "cuda_graph"
    cudnn = "cudnn"


class HarnessChoice(StrEnum):
    """Which published harness judges beside ours."""

    cuda_l1 = "cuda-l1"
    kernelbench = "kernelbench"
    kernelbench_2025 = "kernelbench-2025"


class OursChoice(StrEnum):
    """Which of our protocols."""

    final = "final"
    screen = "screen"


@command(kept="the verdicts that were finished are kept in the archive; the same command goes on from there")
def replay(
    release: Annotated[
        Path, typer.Argument(metavar="FILE", help="A release: JSON lines, an array, or its nested layout.")
    ],
    kernelbench: Annotated[
        Path | None, typer.Option(metavar="PATH", help="A checkout of KernelBench to take the references from.")
    ] = None,
    column: Annotated[ColumnChoice, typer.Option(help="Which kernels of the release.")] = ColumnChoice.custom,
    select: Annotated[
        str | None, typer.Option(metavar="WHICH", help="Some of them: level1-2, 1/12, 1/1-20, separated by commas.")
    ] = None,
    protocol: Annotated[HarnessChoice, typer.Option(help="The published harness.")] = HarnessChoice.cuda_l1,
    ours: Annotated[OursChoice, typer.Option(help="How much evidence of our own.")] = OursChoice.final,
    device: o.Device = "auto",
    limits: o.LimitsOption = None,
    at_once: o.AtOnce = None,
    final_budget: o.FinalBudget = "60s",
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the table there too, as Markdown.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="DIR", help="Write it there too, as a page.")] = None,
    archive: o.ArchiveOption = None,
    json: o.Json = False,
) -> int:
    """Judge the kernels of a release twice and say why the figures differ. Exit code 1 when ours accepts none.

    Example: cuda-l1 replay h100.json --kernelbench ~/KernelBench --select level1
    """
    from cuda_l1.api.limits import parse_final_budget, parse_limits
    from cuda_l1.api.places import UNCONFINED, resolve_device
    from cuda_l1.api.pool import FAULTS, EvaluatorPool, Job
    from cuda_l1.archive import Archive
    from cuda_l1.config import EvaluatorSettings, protocol_named
    from cuda_l1.report.terminal import rendered
    from cuda_l1.scoring import is_confined
    from cuda_l1.search.replay import replay as judge

    harness, own = protocol_named(protocol.value, 0.0), protocol_named(ours.value, parse_final_budget(final_budget))
    settings = EvaluatorSettings(device=resolve_device(device), limits=parse_limits(limits))
    check_targets(out, html, pages=False, reads=[release])
    output = Output(as_json=json)
    wanted, absent = _wanted(release, kernelbench, column.value, select)
    record_nothing(output, absent)
    done: list[Explained] = []
    with Archive.open(archive) as opened, EvaluatorPool(settings, size=at_once, on_quiet=Output.say) as pool:
        if not is_confined(pool.first.environment):
            Output.say(UNCONFINED)

        def do(evaluator: Evaluator, item: Item) -> Replayed:
            return judge(item, theirs=harness, ours=own, archive=opened, evaluator=evaluator, run="replay")

        jobs = [
            Job(item, item.task.sha, item.task.name, is_slow_to_build=item.candidate.language == "cuda")
            for item in wanted
        ]
        faults = 0
        for _, replayed in pool.run(jobs, do):
            faults = faults + 1 if replayed.machine else 0
            if replayed.machine and faults == FAULTS:
                raise replayed.machine
            done.append(explained(replayed))
            Output.say(f"[{len(done)}/{len(jobs)}] {line_of(*done[-1])}")
            record(output, *done[-1])
    table = side_by_side(release.name, protocol.value, done, absent)
    output.show(*rendered(table))
    _write(table, out, html)
    return summarise(output, protocol.value, done, absent)


def _write(table: Table, out: Path | None, html: Path | None) -> None:
    from cuda_l1.export.writing import write_atomically
    from cuda_l1.report import markdown
    from cuda_l1.report.site.write import write_table

    if out is not None:
        write_atomically(out, "\n".join(markdown.rendered(table)))
        Output.say(f"written: {out}")
    if html is not None:
        Output.say(f"written: {write_table(table, html)}")


def _wanted(path: Path, kernelbench: Path | None, column: Column, select: str | None) -> tuple[list[Item], Absent]:
    """(the kernels to judge, what of that cannot be judged); says what that is and whose references are used."""
    from cuda_l1.errors import UsageError
    from cuda_l1.search.replay import items
    from cuda_l1.tasks.release import read_release

    release = read_release(path)
    for problem in release.problems:
        Output.say(f"{path}: {problem}")
    chosen = _selected(release, select)
    checkout = _checkout(kernelbench) if kernelbench else None
    entries = [entry for entry in release.entries if entry.name in chosen]
    wanted = items(entries, column, checkout)
    if not wanted:
        raise UsageError(f"{path}: no kernel of column `{column}` among the {many(len(entries), 'task')} asked for")
    _say_references(wanted, kernelbench)
    nothing = tuple(entry for entry in entries if entry.source(column) is None)
    told = f", {len(nothing)} more {'has' if len(nothing) == 1 else 'have'} none" if nothing else ""
    Output.say(f"{many(len(wanted), 'kernel')} of {path.name}, column {column}{told}")
    missing = chosen - {entry.name for entry in entries}
    return wanted, Absent(column, nothing, sum(task is None or task.name in missing for task in release.unread))


def _selected(release: Release, selection: str | None) -> set[str]:
    """Names of the tasks that are asked for, those that could not be read among them."""
    from cuda_l1.tasks.selection import select

    tasks = [*(entry.task for entry in release.entries), *filter(None, release.unread)]
    return {task.name for task in (select(tasks, selection, release.path) if selection is not None else tasks)}


def _checkout(path: Path) -> list[Task]:
    """The problems of a checkout. Raises UsageError, TaskError: it has no levels, or two problems of one number."""
    from cuda_l1.errors import UsageError
    from cuda_l1.tasks import load_tasks

    if not path.is_dir():
        raise UsageError(f"--kernelbench {path}: is not a folder; give a checkout of KernelBench")
    return load_tasks(f"kernelbench:{path}")


def _say_references(wanted: Sequence[Item], checkout: Path | None) -> None:
    if checkout is None:
        Output.say("references: the release's own (--kernelbench PATH takes them from a checkout)")
        return
    Output.say(f"references: {checkout}")
    absent = [item.entry.name for item in wanted if item.reference == "release"]
    differing = [item for item in wanted if item.differs]
    _say_some([f"{name}: is not in the checkout; the release's own reference is used" for name in absent])
    _say_some(
        [
            f"{item.entry.name}: the release's reference is another program than {item.task.name} of the checkout"
            for item in differing
        ]
    )
    if len(absent) > len(wanted) / 2:
        Output.say(f"{len(absent)} of {len(wanted)} are not in the checkout: is this a release of other tasks?")
    if len(differing) > len(wanted) / 2:
        Output.say(f"{len(differing)} of {len(wanted)} references differ: is this a release for other shapes?")


def _say_some(lines: Sequence[str]) -> None:
    for line in lines[:NAMED] if len(lines) > 2 * NAMED else lines:
        Output.say(line)
    if len(lines) > 2 * NAMED:
        Output.say(f"... and {len(lines) - NAMED} more (--json names each)")
