"""Public training sets that a person has on disk: their references as tasks, and their variants as candidates.

    kernelbook:PATH        GPUMODE/KernelBook: modules from GitHub, and what torch.compile made of them (Triton)
    cuda-agent-ops:PATH    BytedTsinghua-SIA/CUDA-Agent-Ops-6K: references only
    drkernel:PATH          hkust-nlp/drkernel-coldstart-8k: conversations of five turns, each with a Triton variant

Reading executes nothing. What a set says of its variants (right, faster) is not believed: each is judged here.
The columns are those of the sets' own cards and generators; docs/collect.md says where each was read.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from cuda_l1.errors import TaskError
from cuda_l1.prompts.reply import parse_reply
from cuda_l1.tasks.file_task import source_task
from cuda_l1.tasks.kernelbook import reference_text, variant_text
from cuda_l1.tasks.source_file import SourceFile
from cuda_l1.tasks.table_rows import rows, stated_licence
from cuda_l1.types import Candidate, Origin, Task

IMPORT = "import"
"""Proposer of what a set brought along."""


class Imported(NamedTuple):
    """One row of a set."""

    task: Task
    variant: Candidate | None
    provenance: str
    """File, row, and the repository and its licences where they are named."""


class ImportedSet(NamedTuple):
    """What a set holds, and what of it could not be read."""

    found: list[Imported]
    problems: list[str]
    """One line each, with the row: it is no task, or its variant is none."""
    licence: str


class _Text(NamedTuple):
    name: str
    reference: str
    variant: str | None
    repository: str = ""
    problem: str = ""
    """Why there is no variant although the row should have one."""


class _Format(NamedTuple):
    columns: tuple[str, ...]
    texts: Callable[[int, dict[str, Any]], _Text]
    licence: str
    """Where no card lies beside the data."""


def _kernelbook(number: int, row: dict[str, Any]) -> _Text:
    entry = str(row["entry_point"])
    reference = reference_text(str(row["python_code"]), entry)
    licences = ", ".join(map(str, row["licenses"])) if isinstance(row.get("licenses"), list) else ""
    repository = str(row.get("repo_name") or "") + (f" ({licences})" if licences else "")
    named = _Text(f"{number:05d}_{_plain(entry)}", reference, None, repository)
    try:
        return named._replace(variant=variant_text(str(row["triton_code"]), entry)) if row["triton_code"] else named
    except TaskError as error:
        return named._replace(problem=str(error))


def _cuda_agent(number: int, row: dict[str, Any]) -> _Text:
    given = row["ops"]
    if isinstance(given, str) and given.startswith("["):  # a list in a column of texts
        given = json.loads(given)
    operators = given if isinstance(given, list) else [given]
    name = "_".join(str(operator).rpartition(".")[2] for operator in operators)
    return _Text(f"{number:05d}_{_plain(name)}", str(row["code"]), None, str(row.get("data_source") or ""))


def _drkernel(number: int, row: dict[str, Any]) -> _Text:
    turns = [str(message["content"]) for message in row["messages"] if message["role"] == "assistant"]
    best = int(row["best_round"])
    named = _Text(f"{number:05d}", str(row["original_python_code"]), None)
    if not 0 < best <= len(turns):
        return named._replace(problem=f"best_round is {best}, of {len(turns)} turns")
    parsed = parse_reply(turns[best - 1], kind="one-shot")
    return named._replace(variant=parsed.source, problem=f"{parsed.problem or ''} {parsed.detail}".strip())


_UNREADABLE = (
    TaskError, TypeError, LookupError, ValueError, ArithmeticError, AttributeError, SyntaxError, RecursionError,
    MemoryError,
)  # fmt: skip
"""What a row of another form, or a text that is nested too deep, ends in."""
UNSTATED = "not stated beside the data; read the set's own card before you publish anything made from it"
PUBLIC_SETS: dict[str, _Format] = {
    "kernelbook": _Format(("entry_point", "python_code", "triton_code"), _kernelbook, UNSTATED),
    "cuda-agent-ops": _Format(("ops", "code"), _cuda_agent, f"{UNSTATED} (cc-by-4.0 by the set's card)"),
    "drkernel": _Format(("original_python_code", "messages", "best_round"), _drkernel, f"{UNSTATED} (mit by its card)"),
}


def read_public_set(kind: str, path: Path) -> ImportedSet:
    """Every row of the set at `path` (a file, or a folder of them) that is a task.

    Raises TaskError: nothing there, other columns, no `pyarrow`; where no row at all is a task.
    """
    form = PUBLIC_SETS[kind]
    found: list[Imported] = []
    problems: list[str] = []
    for number, (place, row) in enumerate(rows(path, form.columns)):
        try:
            text = form.texts(number, row)
            found.append(_imported(kind, place, text))
            if text.variant is None and text.problem:
                problems.append(f"{place}: its variant: {text.problem}")
        except _UNREADABLE as error:
            problems.append(f"{place}: {str(error).removeprefix(f'{kind} {place}: ')}")
    if not found:
        raise TaskError(f"{kind}:{path}: no row of it is a task; {next(iter(problems), 'it is empty')}")
    return ImportedSet(found, problems, stated_licence(path) or form.licence)


def public_tasks(kind: str, path: Path, dtype: str | None) -> list[Task]:
    """The tasks of the set, one for each reference. Raises TaskError, also for a dtype: variants are of one."""
    if dtype is not None:
        raise TaskError(f"--dtype: the tasks of {kind} come in their own")
    return list({imported.task.sha: imported.task for imported in read_public_set(kind, path).found}.values())


def _imported(kind: str, place: str, text: _Text) -> Imported:
    task = source_task(SourceFile(Path(f"{kind} {place}"), text.reference), kind, text.name, None)
    provenance = f"{place}, {text.repository}" if text.repository else place
    origin = Origin(proposer=IMPORT, techniques=(kind,))
    variant = None if text.variant is None else Candidate.of(task, text.variant, origin)
    return Imported(task, variant, provenance)


def _plain(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in name)[:80]
