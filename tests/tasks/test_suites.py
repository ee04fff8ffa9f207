"""Suites by prefix and selections from them, with small files of our own."""

from __future__ import annotations

import json
import os
import socket
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from cuda_l1.errors import InfrastructureError, TaskError, UsageError
from cuda_l1.tasks import load_tasks, suite_problems

TEXT = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x + {number}


def get_inputs():
    return [torch.randn(4, 4)]


def get_init_inputs():
    return []
"""
FILES = ["level1/1_Add.py", "level1/2_Mul.py", "level1/10_Sub.py", "level2/1_Add_Mul.py", "level3/4_Net.py"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "check#out"  # a path may have what separates a selection
    for number, name in enumerate(FILES):
        path = root / "KernelBench" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TEXT.format(number=number))
    (root / "KernelBench" / "level1" / "notes.py").write_text("x = 1\n")
    return root


def names(spec: str) -> list[str]:
    return [task.name for task in load_tasks(spec)]


def test_a_checkout_its_levels_and_one_level(checkout: Path) -> None:
    everything = ["level1/1_Add", "level1/2_Mul", "level1/10_Sub", "level2/1_Add_Mul", "level3/4_Net"]
    assert names(f"kernelbench:{checkout}") == names(f"kernelbench:{checkout}/KernelBench") == everything
    assert names(f"kernelbench:{checkout}/KernelBench/level1") == everything[:3]
    (task, *_) = load_tasks(f"kernelbench:{checkout}")
    assert (task.suite, task.level, task.source) == ("kernelbench", 1, TEXT.format(number=0))
    assert load_tasks(f"kernelbench:{checkout}", dtype="bf16")[0].name == "level1/1_Add-bf16"


@pytest.mark.parametrize(
    ("selection", "chosen"),
    [
        ("level1", ["level1/1_Add", "level1/2_Mul", "level1/10_Sub"]),
        ("level1-2", ["level1/1_Add", "level1/2_Mul", "level1/10_Sub", "level2/1_Add_Mul"]),
        ("level2-level3", ["level2/1_Add_Mul", "level3/4_Net"]),
        ("level1/10", ["level1/10_Sub"]),
        ("1/10,1/1", ["level1/1_Add", "level1/10_Sub"]),
        ("1/2-10, 2/1", ["level1/2_Mul", "level1/10_Sub", "level2/1_Add_Mul"]),
        ("*Mul", ["level1/2_Mul", "level2/1_Add_Mul"]),
        ("level3/4_Net,level3", ["level3/4_Net"]),
        ("1_Add", ["level1/1_Add"]),
        ("1_Add.py", ["level1/1_Add"]),
    ],
)
def test_selections(checkout: Path, selection: str, chosen: list[str]) -> None:
    assert names(f"kernelbench:{checkout}#{selection}") == chosen


@pytest.mark.parametrize(
    ("selection", "told"),
    [
        ("level4", "there are level1/1-2,10 (3 tasks); level2/1 (1 task)"),
        ("level1,1/3", "#1/3: names no task"),
        ("level3-1", "ends before it begins"),
        (" , ", "the selection is empty"),
        ("", "the selection is empty"),
        ("Nope", "#Nope: names no task; there are level1/1-2,10"),
        ("1/", "#1/: names no task; there are level1/1-2,10"),
        ("add", "it is part of level1/1_Add, level2/1_Add_Mul; `*` stands for what may vary"),
    ],
)
def test_a_selection_that_names_nothing_says_what_there_is(checkout: Path, selection: str, told: str) -> None:
    with pytest.raises(TaskError) as error:
        load_tasks(f"kernelbench:{checkout}#{selection}")
    assert told in str(error.value)


def test_a_numbered_file_that_is_no_task_is_named(checkout: Path) -> None:
    level = checkout / "KernelBench" / "level1"
    (level / "2_Mul.py").write_text("")
    (level / "helper.py").write_text("")
    spec = f"kernelbench:{checkout}"
    assert names(f"{spec}#level1") == ["level1/1_Add", "level1/10_Sub"]
    (problem,) = suite_problems(f"{spec}#level1")
    assert problem.startswith(f"{level / '2_Mul.py'}: is passed over: it defines no `Model`")


@pytest.mark.parametrize("spec", ["kernelbench", "KernelBench:some/where", "Release:x.jsonl"])
def test_a_suite_that_is_not_named_as_it_should_be_says_how(spec: str) -> None:
    prefix, _, rest = spec.partition(":")
    with pytest.raises(TaskError, match=f"write {prefix.lower()}:{rest or 'PATH'}"):
        load_tasks(spec)


def test_selections_from_other_suites(checkout: Path) -> None:
    assert names("builtin#scaled_softmax,symmetric_*") == ["scaled_softmax", "symmetric_matmul"]
    assert names(f"{checkout}#level2") == ["level2/1_Add_Mul"]
    for spec in ("#level1", " #level1"):
        with pytest.raises(TaskError, match="nothing stands before `#`; write what to choose from"):
            load_tasks(spec)
    with pytest.raises(TaskError, match="neither"):
        load_tasks("scaled_softmax#level1")
    with pytest.raises(UsageError, match="--inputs is for one task"):
        load_tasks(f"kernelbench:{checkout}", inputs="randn(4)")


def test_what_is_no_checkout(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "empty" / "level1").mkdir(parents=True)
    file = checkout / "KernelBench" / FILES[0]
    for spec, told in [
        (f"{tmp_path}/none", "no such folder"),
        (str(file), "is a file"),
        (f"{tmp_path}", "no level is here"),
        (f"{tmp_path}/empty", "hold no file"),
        ("", "is missing"),
    ]:
        with pytest.raises(TaskError, match=told):
            load_tasks(f"kernelbench:{spec}")


def test_two_files_of_one_number_are_refused_with_both_names(checkout: Path) -> None:
    (checkout / "KernelBench" / "level1" / "2_Other.py").write_text(TEXT.format(number=9))
    with pytest.raises(TaskError, match=r"level1/2: .*2_Mul\.py and .*2_Other\.py"):
        load_tasks(f"kernelbench:{checkout}")


class _Split(list[dict[str, Any]]):
    @property
    def column_names(self) -> list[str]:
        return list(self[0])


def _dataset(monkeypatch: pytest.MonkeyPatch, splits: dict[str, _Split] | Exception) -> list[tuple[str, str | None]]:
    """A stand-in for the library; returns what it is asked for."""
    asked: list[tuple[str, str | None]] = []

    def load_dataset(path: str, revision: str | None = None) -> dict[str, _Split]:
        asked.append((path, revision))
        if isinstance(splits, Exception):
            raise splits
        return splits

    module = types.ModuleType("datasets")
    module.load_dataset = load_dataset  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", module)
    monkeypatch.setattr("socket.getaddrinfo", lambda *address: [])
    return asked


def _row(level: int, number: int, name: str) -> dict[str, Any]:
    return {"code": TEXT.format(number=number), "level": level, "name": name, "problem_id": number}


def test_a_dataset_gives_the_tasks_of_a_checkout(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    splits = {
        "level_2": _Split([_row(2, 3, "3_Net.py")]),
        "level_1": _Split([_row(1, 10, "10_Sub"), _row(1, 2, "Mul")]),
    }
    asked = _dataset(monkeypatch, splits)
    assert names("hf:owner/name@v1") == ["level1/2_Mul", "level1/10_Sub", "level2/3_Net"]
    assert names("hf:owner/name#level2") == ["level2/3_Net"]
    assert asked == [("owner/name", "v1"), ("owner/name", None)]
    path = checkout / "KernelBench" / "level1" / "2_Mul.py"
    path.write_text(TEXT.format(number=2))
    (of_file,) = load_tasks(f"kernelbench:{checkout}#1/2")
    assert load_tasks("hf:owner/name")[0].id == of_file.id


@pytest.mark.parametrize("proxy", [None, "http://localhost:1"])
def test_where_the_hub_cannot_be_looked_up_only_the_cache_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, proxy: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    def getaddrinfo(*address: Any) -> list[Any]:
        raise socket.gaierror(-2, "Name or service not known")

    (tmp_path / "datasets.py").write_text(
        "import logging, os\noffline = os.environ.get('HF_HUB_OFFLINE')\n\n\n"
        "def load_dataset(path, revision=None):\n"
        "    logging.getLogger('huggingface_hub.utils').warning('Retrying in 1s')\n"
        "    raise ConnectionError(f'offline={offline}')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "datasets", None)  # so that it is as it was afterwards
    del sys.modules["datasets"]
    for name in ("HF_HUB_OFFLINE", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("socket.getaddrinfo", getaddrinfo)
    monkeypatch.setattr("cuda_l1.tasks.dataset.getproxies", lambda: {"https": proxy} if proxy else {})
    told = (
        "ConnectionError: offline=None" if proxy else "no copy is in the cache, and there is no way to huggingface.co"
    )
    with pytest.raises(InfrastructureError, match=told) as caught:
        load_tasks("hf:owner/name")
    assert str(caught.value.__cause__) == f"offline={None if proxy else 1}" and "HF_HUB_OFFLINE" not in os.environ
    assert not caplog.records, "six attempts are no six lines"


def test_datasets_that_cannot_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(TaskError, match="pip install datasets"):
        load_tasks("hf:owner/name")
    _dataset(monkeypatch, ConnectionError("no network\n here"))
    with pytest.raises(InfrastructureError, match="cannot be loaded: ConnectionError: no network here"):
        load_tasks("hf:owner/name")
    _dataset(monkeypatch, {"train": _Split([{"level": 1, "text": ""}])})
    with pytest.raises(TaskError, match="no column problem_id, name, code"):
        load_tasks("hf:owner/name")
    _dataset(monkeypatch, {"train": _Split([_row(1, 2, "2_A"), _row(1, 2, "2_B")])})
    with pytest.raises(TaskError, match="two tasks are level1/2: row 0 of hf:owner/name and row 1"):
        load_tasks("hf:owner/name")
    _dataset(monkeypatch, {"train": _Split([{**_row(1, 2, "2_A"), "code": "def broken(:"}])})
    with pytest.raises(TaskError, match=r"hf:owner/name/level1/2_A\.py:1: syntax error"):
        load_tasks("hf:owner/name")


def test_the_references_of_a_release(tmp_path: Path) -> None:
    rows = [json.dumps({"level_id": 1, "task_id": n, "ref_code": TEXT.format(number=n)}) for n in (10, 2)]
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join([*rows, '{"level_id": 2, "task']))
    assert names(f"release:{path}") == ["level1/2", "level1/10"]
    (task,) = load_tasks(f"release:{path}#1/10")
    assert (task.suite, task.level, task.source) == ("release", 1, TEXT.format(number=10))
    assert load_tasks(f"release:{path}", dtype="bf16")[0].name == "level1/2-bf16"
    (problem,) = suite_problems(f"release:{path}#level1")
    assert problem.startswith("line 3: not JSON") and suite_problems("builtin") == ()
    with pytest.raises(TaskError, match="cannot be read"):
        load_tasks(f"release:{tmp_path}/none.jsonl")
