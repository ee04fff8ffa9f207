"""Run directories: the same settings take up the same run, others are named."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
from pydantic import BaseModel

from cuda_l1.archive import RunDirectory
from cuda_l1.config import EvaluatorSettings, Limits, SearchSettings
from cuda_l1.errors import InfrastructureError, UsageError

SETTINGS = SearchSettings(task_sha="0" * 64)


def test_the_same_settings_take_up_the_same_run(tmp_path: Path) -> None:
    first = RunDirectory.create(tmp_path / "runs", SETTINGS)
    first.log("started", budget_s=60.0)
    again = RunDirectory.create(tmp_path / "runs", SearchSettings(task_sha="0" * 64))
    again.log("stopped", reason="no-gain")
    assert (first.path, first.name, first.digest) == (again.path, again.name, again.digest)
    assert [event["event"] for event in again.events()] == ["started", "stopped"]
    stored = json.loads((first.path / "config.json").read_text())
    assert stored == {"digest": first.digest, "settings": SETTINGS.model_dump(mode="json")}
    assert SearchSettings.model_validate(again.settings) == SETTINGS


def test_other_settings_make_another_run(tmp_path: Path) -> None:
    assert (
        RunDirectory.create(tmp_path, SETTINGS).path
        != RunDirectory.create(tmp_path, SETTINGS.model_copy(update={"patience": 1})).path
    )


def test_a_named_run_names_the_settings_that_differ(tmp_path: Path) -> None:
    RunDirectory.create(tmp_path, SETTINGS, name="mine")
    other = SETTINGS.model_copy(update={"patience": 1, "proposers": ("llm",)})
    for attempt in (lambda: RunDirectory.create(tmp_path, other, name="mine"),
                    lambda: RunDirectory.open(tmp_path / "mine", other)):  # fmt: skip
        with pytest.raises(
            UsageError, match=r"other settings \(patience .*, now 1; proposers \[.*\], now \[\"llm\"\]\); give the same"
        ):
            attempt()


def test_nested_and_new_settings_are_named_by_their_path(tmp_path: Path) -> None:
    class More(EvaluatorSettings):
        extra: int | None = None

    RunDirectory.create(tmp_path, EvaluatorSettings(), name="mine")
    with pytest.raises(UsageError, match=r"\(extra \(not there\), now null; limits\.build_s 180\.0, now 1\.0\)"):
        RunDirectory.open(tmp_path / "mine", More(limits=Limits(build_s=1.0)))


def test_a_torn_last_line_is_left_out_and_does_not_spoil_the_next(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, SETTINGS)
    run.log("one")
    with (run.path / "events.jsonl").open("a") as file:
        file.write('{"time": "2025", "eve')
    assert [event["event"] for event in run.events()] == ["one"]
    run.log("two")
    assert [event["event"] for event in run.events()] == ["one", "two"]


def test_lines_that_are_no_events_are_left_out(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, SETTINGS)
    (run.path / "events.jsonl").write_text('1\n[1]\nnull\n{"a": 1}\n{"event": 3}\n' + "[" * 5000 + "\n")
    run.log("one")
    assert [event["event"] for event in run.events()] == ["one"]


def test_no_events_yet(tmp_path: Path) -> None:
    assert list(RunDirectory.create(tmp_path, SETTINGS).events()) == []


def test_a_folder_left_by_a_kill_before_its_configuration_is_taken_up(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    assert RunDirectory.create(tmp_path, SETTINGS, name="mine").settings == SETTINGS.model_dump(mode="json")


@pytest.mark.parametrize(
    ("text", "says"),
    [("{", "damaged"), ("\udcff", "damaged"), ("[]", "damaged"), ('{"digest": "0", "settings": {}}', "edited since")],
)
def test_a_configuration_that_is_not_what_was_written(tmp_path: Path, text: str, says: str) -> None:
    run = RunDirectory.create(tmp_path, SETTINGS, name="mine")
    (run.path / "config.json").write_bytes(os.fsencode(text))
    with pytest.raises(UsageError, match=says):
        RunDirectory.create(tmp_path, SETTINGS, name="mine")


def test_a_run_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run there"):
        RunDirectory.open(tmp_path / "missing")


@pytest.mark.parametrize("name", ["a/b", "..", "../x"])
def test_a_name_must_stay_in_its_root(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="plain folder name"):
        RunDirectory.create(tmp_path, SETTINGS, name=name)


def test_a_configuration_that_finds_no_room_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InfrastructureError, match="free some space and run the same command again"):
        RunDirectory.create(tmp_path, SearchSettings(task_sha="0" * 64))
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_the_order_of_keys_does_not_matter(tmp_path: Path) -> None:
    class Ab(BaseModel):
        a: int = 1
        b: int = 2

    class Ba(BaseModel):
        b: int = 2
        a: int = 1

    RunDirectory.create(tmp_path, Ab(), name="mine")
    assert RunDirectory.open(tmp_path / "mine", Ba()).name == "mine"
