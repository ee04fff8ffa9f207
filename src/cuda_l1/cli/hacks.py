"""`cuda-l1 archive hacks`: confirmed attacks, from which a reviewer is shown those like the candidate in question."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cuda_l1.cli import options as o
from cuda_l1.cli.boundary import command
from cuda_l1.cli.output import Output
from cuda_l1.errors import UsageError

if TYPE_CHECKING:
    from cuda_l1.archive import Archive
    from cuda_l1.types import HackCase

hacks_app = typer.Typer(
    help="List, show, add, import and remove confirmed attacks, which a reviewer is shown.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
NOTHING = "the archive is as it was"
CaseId = Annotated[str, typer.Argument(metavar="ID", help="The beginning of a case's id, or its name.")]


@hacks_app.command("list")
@command(kept=NOTHING)
def list_cases(archive: o.ArchiveOption = None, json: o.Json = False) -> None:
    """Every case, by name.

    Example: cuda-l1 archive hacks list
    """
    from cuda_l1.report.terminal import table

    output = Output(as_json=json)
    with _opened(archive) as opened:
        cases = opened.hacks.all()
    for case in cases:
        output.record("hack-case", case)
    output.show(table(("case", "name", "why it is an attack"), [(c.id[:12], c.name, c.why) for c in cases]))
    output.summary(cases=len(cases))


@hacks_app.command()
@command(kept=NOTHING)
def show(
    case: CaseId,
    source: Annotated[bool, typer.Option("--source", help="The attack's text alone.")] = False,
    archive: o.ArchiveOption = None,
    json: o.Json = False,
) -> None:
    """One case in full.

    Example: cuda-l1 archive hacks show clock/lazy-tuple
    """
    output = Output(as_json=json)
    with _opened(archive) as opened:
        found = _case(opened, case)
    output.record("hack-case", found)
    output.summary(case=found.id)
    if not json:
        text = found.source if source else f"{found.id}\n{found.name}: {found.why}\n\n{found.source}"
        output.text(f"{text.rstrip()}\n")


@hacks_app.command()
@command(kept=NOTHING)
def add(
    what: Annotated[str, typer.Argument(metavar="WHAT", help="A file, or the beginning of a record's id.")],
    why: Annotated[str, typer.Option(help="What the attack does and what that gains it, in a sentence or two.")],
    name: Annotated[str | None, typer.Option(help="Default: the file's name, or the task's.")] = None,
    reference: Annotated[Path | None, typer.Option(metavar="FILE", help="The task's file, where it is known.")] = None,
    archive: o.ArchiveOption = None,
    json: o.Json = False,
) -> None:
    """Store an attack that somebody has confirmed, with the reason why it is one.

    Example: cuda-l1 archive hacks add candidate.py --why "returns the answer of the previous call"
    """
    from cuda_l1.api.hack_files import named_case
    from cuda_l1.archive import Archive

    with Archive.look(archive) as opened:
        case = named_case(what, why, name=name, reference=reference, archive=opened)
    with Archive.open(archive) as opened:
        _store(opened, [case], Output(as_json=json))


@hacks_app.command("import")
@command(kept=NOTHING)
def import_cases(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Holds folders with candidate.py and case.toml.")],
    archive: o.ArchiveOption = None,
    json: o.Json = False,
) -> None:
    """Store every case below FOLDER, laid out as in this project's tests/attacks/cases.

    Example: cuda-l1 archive hacks import tests/attacks/cases
    """
    from cuda_l1.api.hack_files import read_cases
    from cuda_l1.archive import Archive

    cases = read_cases(folder)
    with Archive.open(archive) as opened:
        _store(opened, cases, Output(as_json=json))


@hacks_app.command()
@command(kept=NOTHING)
def remove(case: CaseId, archive: o.ArchiveOption = None, json: o.Json = False) -> None:
    """Forget a case that was a mistake.

    Example: cuda-l1 archive hacks remove 3f2a91
    """
    output = Output(as_json=json)
    with _opened(archive) as opened:
        found = _case(opened, case)
        opened.hacks.remove(found.id)
    output.show(f"removed: {found.id[:12]} {found.name}")
    output.summary(case=found.id)


def _opened(where: str | None) -> Archive:
    from cuda_l1.archive import Archive

    return Archive.open(where, create=False)


def _store(archive: Archive, cases: list[HackCase], output: Output) -> None:
    added = archive.hacks.add(cases)
    for case in cases:
        output.record("hack-case", case)
    known = len(cases) - added
    output.show(f"{added} stored" + (f", {known} known already and left as they were" if known else ""))
    output.summary(stored=added, known=known)


def _case(archive: Archive, wanted: str) -> HackCase:
    """The case of that id or name. Raises UsageError for none, and for several."""
    cases = archive.hacks.all()
    found = [case for case in cases if case.name == wanted] or [case for case in cases if case.id.startswith(wanted)]
    if len(found) != 1:
        many = f"{len(found)} cases are called so" if found else "no such case"
        raise UsageError(f"{wanted}: {many}; `cuda-l1 archive hacks list` prints the ids")
    return found[0]
