"""`cuda-l1 report`: what the records show together."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cuda_l1.cli import options as o
from cuda_l1.cli.boundary import NOTHING_ACCEPTED, command
from cuda_l1.cli.output import PIPED_COLUMNS, Output, Screen, to_json
from cuda_l1.cli.targets import check_file, check_replaced_folder
from cuda_l1.errors import UsageError
from cuda_l1.texts import many

if TYPE_CHECKING:
    from cuda_l1.archive import Archive
    from cuda_l1.report.build import Report
    from cuda_l1.report.entries import Skipped
    from cuda_l1.report.sections import Question
    from cuda_l1.report.selection import RunParts, Selection
    from cuda_l1.types import Record


class FormatChoice(StrEnum):
    """How a report is written."""

    terminal = "terminal"
    markdown = "markdown"
    csv = "csv"
    json = "json"


@command(kept="nothing was written")
def report(
    runs: Annotated[
        list[str] | None, typer.Argument(metavar="RUN", help="Only what these runs recorded; default: everything.")
    ] = None,
    archive: Annotated[
        list[str] | None,
        typer.Option(
            "--archive",
            metavar="WHERE",
            help="A path or a database URL; several times for several, e.g. one a GPU; default $CUDA_L1_ARCHIVE.",
        ),
    ] = None,
    format: Annotated[FormatChoice, typer.Option("--format", help="csv: one row per task and method.")] = (
        FormatChoice.terminal
    ),
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write it there instead of to stdout.")] = None,
    literature: Annotated[
        bool, typer.Option("--literature", help="Add CUDA-L1's published tables, marked as not measured by us.")
    ] = False,
    clock: Annotated[
        o.ClockChoice | None, typer.Option(help="By which clock; default: the device's objective.")
    ] = None,
    precision: o.PrecisionOption = o.PrecisionChoice.default,
    protocol: Annotated[o.OwnProtocolChoice | None, typer.Option(help="Only verdicts of this protocol.")] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="DIR", help="Write pages there that open from disk, one a task.")
    ] = None,
    readme: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the figures of finals and baselines into this file, between two markers."
        ),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only the tables of this name, e.g. techniques; csv has its rows."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> int:
    """Statistics and tables over records. Exit code 1 where there are none, also where tasks were skipped.

    Example: cuda-l1 report --format markdown --out report.md
    """
    from cuda_l1.report.build import build
    from cuda_l1.report.entries import HEADLINE_PROTOCOLS
    from cuda_l1.report.sections import Question

    check_targets(out, html)
    around = _around(readme) if readme is not None else None
    if readme is not None:
        check_file("--readme", readme)
    asked = _parts(archive, runs or [])
    _check_runs(archive, runs or [])
    selection = _select(archive, asked if runs else [])
    judged = {entry.task.sha for entry in selection.entries}
    # Several archives may lie beside one folder of runs: one that judged other tasks alone is none of this archive's.
    mine = [run for run in asked if runs or not run.tasks or run.tasks & judged]
    skipped = [one for run in mine for one in run.skipped if one.task_sha not in judged]
    protocols = (protocol.value,) if protocol else HEADLINE_PROTOCOLS
    question = Question(clock=clock.value if clock else None, precision=precision.value)
    made = build(
        selection.entries,
        question,
        protocols=protocols,
        literature=literature,
        sampled=[*selection.replies.values()],
        skipped=skipped,
    )
    if why := _why_nothing(selection, runs or [], skipped) or _why_no_figure(selection, made, question):
        Output.error(why)
        return NOTHING_ACCEPTED
    if not made.sections:
        Output.error(f"no task has a verdict: {_how_many(skipped)}")
    if selection.left_out:
        Output.say(f"left out: {_left_out(selection)}; they imitate other protocols and mean something else")
    if html is not None:
        _write_pages(made, archive, html)
    if readme is not None and around is not None and not _write_readme(made, archive, readme, around):
        return NOTHING_ACCEPTED
    elsewhere = html is not None or readme is not None
    if not elsewhere or json or format is not FormatChoice.terminal or (out, table) != (None, None):
        _write(made, skipped, FormatChoice.json if json else format, out, table)
    return 0 if made.sections else NOTHING_ACCEPTED


def check_targets(out: Path | None, html: Path | None, *, pages: bool = True, reads: Sequence[Path] = ()) -> None:
    """Before anything is read; without `pages` a table alone is to be written. What the command `reads` is no place
    for it. Raises UsageError, InfrastructureError for a full disk."""
    if html is not None:
        from cuda_l1.report.site.write import check_folder

        check_folder(html, pages=pages)
        check_replaced_folder("--html", html)
    if out is not None:
        check_file("--out", out, reads=reads)


def _around(readme: Path) -> tuple[str, str]:
    """What stands around the figures. Raises UsageError for a file without a place for them."""
    from cuda_l1.report.readme import parts

    try:
        with readme.open(encoding="utf-8", newline="") as file:
            return parts(file.read(), str(readme))
    except OSError as error:
        raise UsageError(f"--readme {readme}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"--readme {readme}: is no UTF-8 text") from error


def _write_readme(made: Report, archives: list[str] | None, readme: Path, around: tuple[str, str]) -> bool:
    from cuda_l1.report.readme import figures

    with _opened(archives) as opened:
        text = figures(made, lambda wanted: _record(opened, wanted))
    if text is None:
        Output.error(
            "--readme shows finals, or baselines where nothing else was judged; here candidates were screened alone, "
            "`cuda-l1 evaluate` makes a final"
            if any(section.systems for section in made.sections)
            else "--readme shows finals and baselines, and there is neither; `cuda-l1 evaluate` makes a final"
        )
        return False
    before, after = around
    line_end = "\r\n" if "\r\n" in before + after else "\n"
    shown = text.replace("\n", line_end)
    _save(readme, f"{before}{line_end}{line_end}{shown}{line_end}{line_end}{after}")
    return True


def _parts(archives: list[str] | None, runs: list[str]) -> list[RunParts]:
    """What these runs consist of; without any, every run of `bench`."""
    from cuda_l1.api.bench_run import bench_runs, parts_of
    from cuda_l1.api.places import data_folder
    from cuda_l1.archive.database import file_name

    folders = [data_folder(where) / "runs" for where in _places(archives)]
    files = [name for where in _places(archives) if (name := file_name(where))]
    if runs:
        return [parts_of(folders, name, files) for name in runs]
    found = []
    for name in sorted({name for folder in folders for name in bench_runs(folder)}):
        try:
            found.append(parts_of(folders, name, files, is_asked_for=False))
        except UsageError as error:  # of a report on everything a damaged folder is the smallest part
            Output.say(str(error))
    return found


def _check_runs(archives: list[str] | None, runs: list[str]) -> None:
    """Raises UsageError for a run of which there is neither a folder nor a record."""
    from cuda_l1.api.places import data_folder

    folders = [data_folder(where) / "runs" for where in _places(archives)]
    known = {path.parent.name for folder in folders for path in folder.glob("*/config.json")}
    with _opened(archives) as opened:
        for name in runs:
            if name not in known and not any(any(archive.records(run=name, limit=1)) for archive in opened):
                there = ", ".join(sorted(known)[:5]) or "none"
                more = f" and {len(known) - 5} more" if len(known) > 5 else ""
                raise UsageError(f"run {name}: no such run; there are {there}{more}; without a name all are reported")


def _select(archives: list[str] | None, runs: list[RunParts]) -> Selection:
    from cuda_l1.cli.reading import Reading
    from cuda_l1.report.selection import select

    with _opened(archives) as opened, Reading("records read") as reading:
        return select(opened, runs, reading.one_more)


def _places(archives: list[str] | None) -> list[str | None]:
    """Each of `--archive`; None is the default one."""
    return [*archives] if archives else [None]


@contextmanager
def _opened(archives: list[str] | None) -> Iterator[list[Archive]]:
    from cuda_l1.archive import Archive

    with ExitStack() as stack:
        yield [stack.enter_context(Archive.open(where, create=False)) for where in _places(archives)]


def _write_pages(made: Report, archives: list[str] | None, html: Path) -> None:
    from cuda_l1.cli.reading import Reading
    from cuda_l1.report.analyses import analysis_of
    from cuda_l1.report.site.write import write_site

    with _opened(archives) as opened, Reading("pages written") as reading:
        written = write_site(
            made,
            lambda wanted: _record(opened, wanted),
            html,
            reading.one_more,
            lambda record: analysis_of(record, opened),
        )
    Output.say(f"written: {written}")


def _record(opened: list[Archive], wanted: str) -> Record | None:
    return next((record for archive in opened for record in archive.matching(wanted, limit=1)), None)


def _why_nothing(selection: Selection, runs: list[str], skipped: list[Skipped]) -> str | None:
    """Why there is nothing to report on, or None."""
    other = f"only {_left_out(selection)}" if selection.left_out else ""
    if missing := [run for run in runs if run not in selection.runs | {one.run for one in skipped}]:
        return f"run {', '.join(missing)}: {other or 'no records'}; `cuda-l1 archive list` shows what the archive holds"
    if not selection.entries and not skipped:
        return f"the archive holds {other or 'no records'}; `cuda-l1 optimize` or `cuda-l1 evaluate` adds some"
    return None


def _why_no_figure(selection: Selection, made: Report, question: Question) -> str | None:
    """Why none of the records is under the protocol, or on the clock, that was asked for, or None."""
    if not made.sections and selection.entries:
        return "no record is under the protocol of --protocol; leave it away for what there is"
    clock = question.clock
    if clock and made.sections and not any(entry.evaluation.timing(clock=clock) for entry in selection.entries):
        return f"nothing was measured on the clock of --clock {clock}; leave it away for each device's own"
    return None


def _how_many(skipped: list[Skipped]) -> str:
    from cuda_l1.report.entries import NOT_REACHED

    missing = sum(one.why == NOT_REACHED for one in skipped)
    told = (f"{many(len(skipped) - missing, 'task')} skipped", f"{many(missing, 'task')} not reached")
    return ", ".join(text for text, count in zip(told, (len(skipped) - missing, missing), strict=True) if count)


def _left_out(selection: Selection) -> str:
    return ", ".join(f"{count} under `{protocol}`" for protocol, count in sorted(selection.left_out.items()))


def _write(made: Report, skipped: list[Skipped], format: FormatChoice, out: Path | None, table: str | None) -> None:
    from cuda_l1.report import formats
    from cuda_l1.report.build import only

    summary = _summary(made, skipped)
    made = made if table is None else only(made, table)
    if format is FormatChoice.terminal:
        _show(made, out)
        return
    if format is FormatChoice.json:
        text = "".join(f"{to_json(fields)}\n" for fields in [*formats.as_objects(made), summary])
    else:
        rows = formats.as_csv(made) if table is None else formats.table_as_csv(made, table)
        text = formats.as_markdown(made) if format is FormatChoice.markdown else rows
    if out is None:
        Output.text(text)
    else:
        _save(out, text)


def _summary(made: Report, skipped: list[Skipped]) -> dict[str, object]:
    tasks = {view.task.sha for section in made.sections for view in section.views}
    return {
        "kind": "summary",
        "sections": [section.title for section in made.sections],
        "tasks": len(tasks),
        "skipped": {one.name: one.why for one in skipped},
    }


def _show(made: Report, out: Path | None) -> None:
    from rich.text import Text

    from cuda_l1.report.terminal import rendered

    parts = [
        part
        for block in made.blocks
        for part in (
            Text(f"── {block.title}", style="bold"),
            *(Text(f"  {fact}", style="bright_black") for fact in block.facts),
            *(p for t in block.tables for p in rendered(t)),
            Text(),
        )
    ]
    if out is None:
        Output(as_json=False).show(*parts)
        return
    console = Screen(io.StringIO(), PIPED_COLUMNS)
    with console.capture() as captured:
        for part in parts:
            console.print(part, soft_wrap=isinstance(part, Text))
    _save(out, "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def _save(out: Path, text: str) -> None:
    from cuda_l1.export.writing import write_atomically

    write_atomically(out, text)
    Output.say(f"written: {out}")
