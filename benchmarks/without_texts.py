"""An archive's verdicts without the texts that they are about, and the archive again from those and the tasks.

    PYTHONPATH=src python benchmarks/without_texts.py pack archive.sqlite records.jsonl.xz
    PYTHONPATH=src python benchmarks/without_texts.py unpack records.jsonl.xz archive.sqlite kernelbench:KernelBench
    PYTHONPATH=src python benchmarks/without_texts.py unpack records.jsonl.xz figures.sqlite

For results on a suite that is not ours to hand out: the hash of each text stays, so what `unpack` writes back is the
very text that was judged, or nothing. It knows the baselines of the suite's tasks; what other texts a record is about
is said, and left out. With the archive, `bench` under the same rules on the same GPU model, with the same driver,
torch, CUDA and Python, pays for nothing twice, and `report --html` makes the pages of the run.

Without a suite every text is one line that says which one is not there. Such an archive is for the figures of `report`
alone: its tasks and candidates have hashes of their own, so nothing takes them for what was judged.

`pack` keeps the texts of built-in tasks and of candidates for them, which are ours; `unpack` takes them from the file.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
from pathlib import Path
from typing import Any

from cuda_l1.archive import Archive
from cuda_l1.errors import UsageError
from cuda_l1.proposers.baselines import named, names
from cuda_l1.tasks import load_tasks
from cuda_l1.types import Candidate, Record, Task
from provenance import run, say

OURS = "builtin"
"""The suite whose texts may go along."""


def main() -> int:
    """Reads its arguments from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack")
    packing.add_argument("archive")
    packing.add_argument("records", type=Path)
    unpacking = commands.add_parser("unpack")
    unpacking.add_argument("records", type=Path)
    unpacking.add_argument("archive")
    unpacking.add_argument("suite", nargs="*", help="as `cuda-l1 bench` takes it; none: figures alone")
    given = parser.parse_args()
    if given.command == "pack":
        say(f"{given.records}: {pack(given.archive, given.records)} records")
        return 0
    written, lost = unpack(given.records, given.archive, given.suite)
    say(
        f"{given.archive}: {written} records"
        + (f", {lost} are about texts that these tasks do not have" if lost else "")
    )
    return 0 if written else 1


def pack(archive: str, records: Path) -> int:
    """Writes each record of an archive as a line of JSON, with the texts where the task is built in and else without;
    returns how many there are."""
    count = 0
    with Archive.open(archive, create=False) as opened, lzma.open(records, "wt", encoding="utf-8", preset=9) as out:
        tasks = {task.sha: task for task in opened.tasks()}
        for record in opened.records():
            plain = record.model_dump(mode="json")
            task = tasks[record.candidate.task_sha]
            if task.suite == OURS:
                plain["task"] = task.model_dump(mode="json")
            else:
                del plain["candidate"]["source"]
            print(json.dumps(plain, separators=(",", ":")), file=out)
            count += 1
    return count


def unpack(records: Path, archive: str, suites: list[str]) -> tuple[int, int]:
    """Adds the records to an archive, with the texts of the file and of the suites, or of no suite with stand-ins for
    those that are not there; (how many, how many have no text).

    Raises UsageError for a file that `pack` has not written, and what loading a suite raises.
    """
    tasks = {task.sha: task for suite in suites for task in load_tasks(suite, device="cuda")}
    texts: dict[str, dict[str, Candidate]] = {}
    written = lost = 0
    with Archive.open(archive) as opened:
        for number, plain in _lines(records):
            try:
                found = _whole(plain) or (_with_text(plain, tasks, texts) if suites else _without_text(plain))
            except (KeyError, TypeError, ValueError) as error:
                raise UsageError(f"{records}, line {number}: is no record that `pack` has written: {error}") from error
            if found is None:
                lost += 1
                continue
            opened.append(*found)
            written += 1
    return written, lost


def _whole(plain: dict[str, Any]) -> tuple[Record, Task] | None:
    """Of a line that has the texts."""
    if "task" not in plain:
        return None
    task = Task.model_validate(plain["task"])
    return Record.model_validate({name: value for name, value in plain.items() if name != "task"}), task


def _with_text(
    plain: dict[str, Any], tasks: dict[str, Task], texts: dict[str, dict[str, Candidate]]
) -> tuple[Record, Task] | None:
    """`texts`: the baselines of the tasks that were looked at so far."""
    sha, identity = plain["candidate"]["task_sha"], plain["candidate"]["id"]
    if sha in tasks and sha not in texts:
        texts[sha] = _baselines(tasks[sha])
    known = texts.get(sha, {}).get(identity)
    if known is None:
        return None
    return Record.model_validate({**plain, "candidate": {**plain["candidate"], "source": known.source}}), tasks[sha]


def _without_text(plain: dict[str, Any]) -> tuple[Record, Task]:
    """About stand-ins: texts that say which ones they stand for."""
    given = plain["candidate"]
    suite, _, name = given["task_id"].partition("@")[0].partition("/")
    level = re.match(r"level(\d+)/", name)
    task = Task(
        suite=suite,
        name=name,
        source=f"# {given['task_id']}: the text with the hash {given['task_sha']} is not here\n",
        level=int(level[1]) if level else None,
    )
    candidate = Candidate.model_validate(
        {**given, "task_sha": task.sha, "task_id": task.id, "source": f"# the text of {given['id']} is not here\n"}
    )
    evaluation = {**plain["evaluation"], "candidate_id": candidate.id}
    return Record.model_validate({**plain, "candidate": candidate, "evaluation": evaluation}), task


def _lines(records: Path) -> list[tuple[int, dict[str, Any]]]:
    try:
        with lzma.open(records, "rt", encoding="utf-8") as lines:
            return [(number, json.loads(line)) for number, line in enumerate(lines, 1)]
    except (OSError, EOFError, ValueError, lzma.LZMAError) as error:
        raise UsageError(f"{records}: cannot be read as what `pack` writes: {error}") from error


def _baselines(task: Task) -> dict[str, Candidate]:
    return {each.id: each for device in ("cuda", "cpu") for each in named(task, device, names(device))}


if __name__ == "__main__":
    run(main)
