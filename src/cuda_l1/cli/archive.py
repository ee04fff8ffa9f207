"""`cuda-l1 archive`: what is remembered."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cuda_l1.cli import options as o
from cuda_l1.cli.boundary import NOTHING_ACCEPTED, command
from cuda_l1.cli.hacks import hacks_app
from cuda_l1.cli.output import Output
from cuda_l1.errors import UsageError
from cuda_l1.texts import many

if TYPE_CHECKING:
    from cuda_l1.archive import Archive
    from cuda_l1.types import Clock, Record, Task

archive_app = typer.Typer(
    help="List, show, rank, merge and export records; keep confirmed attacks.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
archive_app.add_typer(hacks_app, name="hacks")
NOTHING = "the archive is as it was"


@archive_app.command("list")
@command(kept=NOTHING)
def list_records(
    task: Annotated[str | None, typer.Option(help="Only this task: name, id or sha.")] = None,
    outcome: Annotated[str | None, typer.Option(help="Only this outcome, e.g. ACCEPTED.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1 << 40, help="At most this many, the latest.", metavar="N")] = 50,
    archive: o.ArchiveOption = None,
    json: o.Json = False,
) -> None:
    """Records, oldest first.

    Example: cuda-l1 archive list --task diagonal_matmul --outcome ACCEPTED
    """
    output = Output(as_json=json)
    with _existing(archive) as opened:
        sha = _task(opened, task).sha if task else None
        records = list(opened.records(task_sha=sha, outcome=_outcome(outcome), limit=limit))
    for record in records:
        output.record("record", record, id=record.id)
    _show(output, records)
    output.summary(records=len(records))


@archive_app.command()
@command(kept=NOTHING)
def show(
    record: Annotated[str, typer.Argument(metavar="ID", help="The beginning of a record's or candidate's id.")],
    source: Annotated[bool, typer.Option("--source", help="The candidate's text instead.")] = False,
    archive: o.ArchiveOption = None,
    json: o.Json = False,
) -> None:
    """One record in full.

    Example: cuda-l1 archive show 3f2a91 --source
    """
    output = Output(as_json=json)
    if not record:
        raise UsageError("no record is named; `cuda-l1 archive list` prints their ids")
    with _existing(archive) as opened:
        found = opened.matching(record)
    if not found:
        raise UsageError(f"no record or candidate in the archive begins with `{record}`; see `cuda-l1 archive list`")
    latest = found[-1]
    output.record("record", latest, id=latest.id)
    output.summary(record=latest.id, matching=len(found))
    if not json:
        text = (
            latest.candidate.source if source else latest.model_dump_json(indent=2, exclude={"candidate": {"source"}})
        )
        output.text(f"{text.rstrip()}\n")


@archive_app.command()
@command(kept=NOTHING)
def best(
    task: Annotated[str | None, typer.Argument(metavar="TASK", help="Default: every task.")] = None,
    precision: o.PrecisionOption = o.PrecisionChoice.default,
    clock: Annotated[o.ClockChoice | None, typer.Option(help="By which clock.")] = None,
    archive: o.ArchiveOption = None,
    json: o.Json = False,
) -> int:
    """The best verified record of a task, or of every task, on each device. Exit code 1 when there is none.

    Example: cuda-l1 archive best diagonal_matmul
    """
    output = Output(as_json=json)
    with _existing(archive) as opened:
        wanted = [_task(opened, task)] if task else list(opened.tasks())
        found = [record for t in wanted for record in _winners(opened, t, precision, clock).values()]
        why = _why_none(opened, wanted[0]) if task else "run `cuda-l1 optimize` first"
    for record in found:
        output.record("record", record, id=record.id)
    if found:
        _show(output, found)
    else:
        Output.error(f"the archive holds no verified final{f' of {wanted[0].id}' if task else ''}; {why}")
    _say_by_earlier_rules(found)
    output.summary(records=len(found), tasks=len(wanted))
    return 0 if found else NOTHING_ACCEPTED


@archive_app.command()
@command(kept="what was added stays; the same command adds the rest")
def merge(
    others: Annotated[list[str], typer.Argument(metavar="OTHER", help="Archives to take records from.")],
    archive: o.ArchiveOption = None,
    json: o.Json = False,
) -> None:
    """Add the records of OTHER archives to this one; records that are there already are left alone.

    Example: cuda-l1 archive merge /mnt/node2/archive.sqlite
    """
    from cuda_l1.archive import Archive

    output = Output(as_json=json)
    total = 0
    with ExitStack() as every:
        given = [(where, every.enter_context(Archive.open(where, create=False))) for where in others]
        opened = every.enter_context(Archive.open(archive))  # after the others: one that is none leaves no new archive
        for where, other in given:
            added = opened.merge(other)
            total += added
            output.record("merged", {"archive": where, "records": added})
            output.show(f"{where}: {many(added, 'new record')}")
    output.summary(records=total)


@archive_app.command()
@command(kept=NOTHING)
def export(
    task: Annotated[
        str | None, typer.Argument(metavar="TASK", help="As `archive list` prints it; with --release default: all.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Default: ./TASK_optimized.py.", metavar="FILE")] = None,
    precision: o.PrecisionOption = o.PrecisionChoice.default,
    clock: Annotated[o.ClockChoice | None, typer.Option(help="By which clock.")] = None,
    device_name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which device's best, where there are several.")
    ] = None,
    release: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Instead: the best of every task, in CUDA-L1's format with the evidence."),
    ] = None,
    archive: o.ArchiveOption = None,
    json: o.Json = False,
) -> int:
    """Write the best verified file of a task with its evidence. Exit code 1 when there is none.

    Example: cuda-l1 archive export diagonal_matmul --out fast.py

    Example: cuda-l1 archive export --release ours.jsonl
    """
    from cuda_l1.cli.optimize import check_target, default_target
    from cuda_l1.cli.release import export_release
    from cuda_l1.export.header import add_header
    from cuda_l1.export.writing import write_atomically
    from cuda_l1.report.figures import figures
    from cuda_l1.report.terminal import with_interval
    from cuda_l1.search.result import is_faster

    output = Output(as_json=json)
    objective: Clock | None = clock.value if clock else None
    with _existing(archive) as opened:
        if release is not None:
            if out is not None:
                raise UsageError(f"--out {out}: a release goes where --release says; leave one of them out")
            wanted = [_task(opened, task)] if task else list(opened.tasks())
            best_of_each = [(one, _winners(opened, one, precision, clock)) for one in wanted]
            _say_by_earlier_rules([record for _, winners in best_of_each for record in winners.values()])
            return export_release(best_of_each, release, device_name=device_name, clock=objective, output=output)
        if task is None:
            raise UsageError("name a task, as `cuda-l1 archive list` prints it, or give --release FILE for all of them")
        found = _task(opened, task)
        winners = _winners(opened, found, precision, clock)
        why = None if winners else _why_none(opened, found)
    if why:
        Output.error(f"the archive holds no verified final of {found.id}; {why}")
        return NOTHING_ACCEPTED
    record = _chosen(winners, found, device_name)
    target = out or default_target(found)
    check_target(target)
    write_atomically(target, add_header(record.candidate.source, record, found))
    eager, best = record.evaluation.timing("eager", objective), record.evaluation.best_baseline_timing(objective)
    output.show(f"written: {target}")
    _say_by_earlier_rules([record])
    if not is_faster(eager):
        Output.say(f"it is not faster than eager by more than its interval: {with_interval(eager)}")
    output.summary(path=str(target), record=record.id, task_id=found.id, **figures(eager, best))
    return 0


def _existing(where: str | None) -> Archive:
    from cuda_l1.archive import Archive

    return Archive.open(where, create=False)


def _task(archive: Archive, wanted: str) -> Task:
    """The task of that name, id or sha. Raises UsageError that names the choices."""
    if not wanted:
        raise UsageError("no task is named; `cuda-l1 archive list` prints their names")
    tasks = list(archive.tasks())
    found = [t for t in tasks if wanted in (t.name, t.id, f"{t.suite}/{t.name}") or t.sha.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"`{wanted}` is several tasks; give one of {', '.join(t.id for t in found)}")
    known = ", ".join(sorted({t.name for t in tasks})[:10]) or "none"
    raise UsageError(f"the archive knows no task `{wanted}`; it knows {known}")


def _winners(
    archive: Archive, task: Task, precision: o.PrecisionChoice, clock: o.ClockChoice | None
) -> dict[str, Record]:
    """The best record by device name: figures of different devices are never compared."""
    best = {
        name: archive.best(task.sha, precision=precision.value, clock=clock.value if clock else None, device_name=name)
        for name in archive.device_names(task.sha)
    }
    return {name: record for name, record in best.items() if record is not None}


def _chosen(winners: dict[str, Record], task: Task, device_name: str | None) -> Record:
    """The winner on that device, or the only one. Raises UsageError that names the devices."""
    names = ", ".join(f"'{name}'" for name in winners)
    if device_name is None and len(winners) > 1:
        raise UsageError(f"the archive has winners of {task.id} on several devices; give --device-name, one of {names}")
    if device_name is not None and device_name not in winners:
        raise UsageError(f"--device-name {device_name}: the archive has winners of {task.id} on {names}")
    return winners[device_name] if device_name is not None else next(iter(winners.values()))


def _say_by_earlier_rules(records: list[Record]) -> None:
    from cuda_l1.api.places import by_earlier_rules

    if line := by_earlier_rules(records):
        Output.say(line)


def _why_none(archive: Archive, task: Task) -> str:
    from cuda_l1 import scoring
    from cuda_l1.api.places import UNCONFINED
    from cuda_l1.types import Outcome

    accepted = list(archive.records(task_sha=task.sha, outcome=Outcome.ACCEPTED, protocol="final"))
    if accepted and not any(scoring.is_confined(record.evaluation.environment) for record in accepted):
        return UNCONFINED
    suspects = {finding.check for record in accepted for finding in record.evaluation.suspects()}
    if suspects:
        return (
            f"those that it holds are suspect ({', '.join(sorted(suspects))}): look at them with `cuda-l1 archive list`"
        )
    return "run `cuda-l1 optimize` first"


def _outcome(text: str | None) -> str | None:
    from cuda_l1.types import Outcome

    if text is None or text.upper() in Outcome.__members__:
        return text.upper() if text else None
    raise UsageError(f"--outcome {text}: choose one of {', '.join(Outcome)}")


def _told(record: Record) -> str:
    from cuda_l1 import scoring

    counts = scoring.counts(record.evaluation, is_eager=record.candidate.label == "eager")
    return record.evaluation.told(counts=counts)


def _show(output: Output, records: list[Record]) -> None:
    from cuda_l1.report.terminal import table, with_interval

    rows = [
        (
            record.id[:12],
            f"{record.time:%Y-%m-%d %H:%M}",
            record.candidate.task_id.partition("@")[0],
            record.candidate.label,
            record.evaluation.protocol,
            _told(record),
            with_interval(record.evaluation.timing()),
            with_interval(record.evaluation.best_baseline_timing()),
            record.evaluation.environment.device_name,
        )
        for record in records
    ]
    columns = ("record", "time", "task", "technique", "protocol", "outcome", "vs eager", "vs best baseline", "device")
    output.show(table(columns, rows))
