"""An archive's verdicts without the texts that they are about, and the archive again from those and the tasks.

    PYTHONPATH=src python benchmarks/without_texts.py pack archive.sqlite records.jsonl.xz
    PYTHONPATH=src python benchmarks/without_texts.py unpack records.jsonl.xz archive.sqlite kernelbench:KernelBench

For results on a suite that is not ours to hand out: the hash of each text stays, so what `unpack` writes back is the
very text that was judged, or nothing. It knows the baselines of the suite's tasks; what other texts a record is about
is said, and left out. With the archive, `bench` under the same rules on the same GPU model, with the same driver,
torch, CUDA and Python, pays for nothing twice, and `report --html` makes the pages of the run.
"""

from __future__ import annotations

import argparse
import json
import lzma
from pathlib import Path
from typing import Any

from cuda_l1.archive import Archive
from cuda_l1.errors import UsageError
from cuda_l1.proposers.baselines import named, names
from cuda_l1.tasks import load_tasks
from cuda_l1.types import Candidate, Record, Task
from provenance import run, say


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
    unpacking.add_argument("suite", nargs="+", help="as `cuda-l1 bench` takes it")
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
    """Writes each record of an archive as a line of JSON without its candidate's text; returns how many there are."""
    count = 0
    with Archive.open(archive, create=False) as opened, lzma.open(records, "wt", encoding="utf-8", preset=9) as out:
        for record in opened.records():
            plain = record.model_dump(mode="json")
            del plain["candidate"]["source"]
            print(json.dumps(plain, separators=(",", ":")), file=out)
            count += 1
    return count


def unpack(records: Path, archive: str, suites: list[str]) -> tuple[int, int]:
    """Adds the records to an archive, with their texts from the suites; (how many, how many have no text there).

    Raises UsageError for a file that `pack` has not written, and what loading a suite raises.
    """
    tasks = {task.sha: task for suite in suites for task in load_tasks(suite, device="cuda")}
    texts: dict[str, dict[str, Candidate]] = {}
    written = lost = 0
    with Archive.open(archive) as opened:
        for number, plain in _lines(records):
            try:
                sha, identity = plain["candidate"]["task_sha"], plain["candidate"]["id"]
                if sha in tasks and sha not in texts:
                    texts[sha] = _baselines(tasks[sha])
                known = texts.get(sha, {}).get(identity)
                if known is None:
                    lost += 1
                    continue
                record = Record.model_validate({**plain, "candidate": {**plain["candidate"], "source": known.source}})
            except (KeyError, TypeError, ValueError) as error:
                raise UsageError(f"{records}, line {number}: is no record that `pack` has written: {error}") from error
            opened.append(record, tasks[sha])
            written += 1
    return written, lost


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
