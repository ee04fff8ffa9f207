"""docs/record-format.md says what is: its example is a record, its snippets run, its tables exist."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cuda_l1.archive import Archive, migrations
from cuda_l1.archive.tables import metadata
from cuda_l1.types import Candidate, Environment, Evaluation, Record, Task, Timing

PAGE = (Path(__file__).parents[2] / "docs" / "record-format.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_example_is_a_whole_record() -> None:
    (example,) = blocks("json")
    record = Record.model_validate_json(example)
    for model, part in [
        (Record, record),
        (Candidate, record.candidate),
        (Evaluation, record.evaluation),
        (Environment, record.evaluation.environment),
        (Timing, record.evaluation.timings[0]),
    ]:
        assert part.model_fields_set == set(model.model_fields), f"{model.__name__}: every field is shown"


@pytest.mark.parametrize("number", [0, 1])
def test_the_snippets_run(tmp_path: Path, make_record: Callable[..., Record], task: Task, number: int) -> None:
    path = tmp_path / "archive.sqlite"
    with Archive.open(path) as archive:
        archive.append(make_record(protocol="final", speedup=2.0), task)
    snippet = subprocess.run(
        [sys.executable, "-c", blocks("python")[number]],
        env={**os.environ, "CUDA_L1_ARCHIVE": str(path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert task.id in snippet.stdout
    assert "1.96" in snippet.stdout and "2.04" in snippet.stdout
    assert len([line for line in blocks("python")[number].splitlines() if line.strip()]) <= 10


def test_the_tables_are_those_of_the_page() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (`.*`) \|$", PAGE, re.MULTILINE))
    for table in metadata.sorted_tables:
        assert re.findall(r"`(\w+)`", rows[table.name]) == [column.name for column in table.columns]
    assert f"Schema version {migrations.SCHEMA_VERSION}." in PAGE
    for number, migration in enumerate(migrations.MIGRATIONS, start=1):
        assert f"| {number} | `{migration.__name__}` |" in PAGE


def test_ids_are_computed_as_the_page_says(make_record: Callable[..., Record], task: Task) -> None:
    def digest(*parts: str) -> str:
        data = b"".join(len(part.encode()).to_bytes(8, "little") + part.encode() for part in parts)
        return hashlib.sha256(data).hexdigest()

    record = make_record()
    place = record.evaluation.environment
    assert task.sha == digest(task.source, "")
    assert record.candidate.id == digest(task.sha, "pytorch", record.candidate.source)
    parts = (place.device, place.device_name, place.lane, place.rung, place.torch, "", "")
    assert place.key == digest(*parts)
    assert place.model_copy(update={"rules": 3}).key == digest(*parts, "rules 3")
    assert record.id == digest(
        record.run,
        str(record.sequence),
        record.time.isoformat(),
        record.candidate.id,
        record.evaluation.model_dump_json(exclude_defaults=True),
    )
