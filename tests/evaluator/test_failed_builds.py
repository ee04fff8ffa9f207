"""A library that could not be built is not built again, and is missed all the same."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import ModuleType

import pytest
from evaluator_support import LINEAR, QUICK, candidate_of, task_of

from cuda_l1.config import EvaluatorSettings
from cuda_l1.evaluator import Evaluator
from cuda_l1.evaluator.guest import failed_builds
from cuda_l1.evaluator.guest.failed_builds import NOTE, remember

NINJA = "rule compile\n  command = c++ $in\nbuild k.o: compile {}\nbuild k.so: link k.o\n"
FALLS_BACK = """
import os
from torch.utils.cpp_extension import load

with open("k.cpp", "w") as file:
    file.write("#error no such kernel\\n")
try:
    kernel = load("k", ["k.cpp"], verbose=True)
except RuntimeError as error:
    print(error)
    kernel = None

class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return torch.relu_(self.linear(x)) if kernel is None else kernel.run(x)
"""


class Builds:
    """Stands where PyTorch runs ninja, and fails."""

    def __init__(self, said: str = "Error building extension 'k': k.cu: error: no") -> None:
        self.said, self.count = said, 0

    def __call__(self, folder: str, verbose: bool, prefix: str) -> None:
        self.count += 1
        raise RuntimeError(self.said)


@pytest.fixture
def torchs(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    from torch.utils import cpp_extension

    monkeypatch.setattr(cpp_extension, "_run_ninja_build", cpp_extension._run_ninja_build)  # put back in the end
    return cpp_extension


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What PyTorch writes before it runs ninja."""
    (tmp_path / "k.cu").write_text("first")
    (tmp_path / "build.ninja").write_text(NINJA.format(tmp_path / "k.cu"))
    (tmp_path / "candidate.py").write_text("from torch.utils.cpp_extension import load_inline")
    return tmp_path


def fails(torchs: ModuleType, folder: Path) -> str:
    with pytest.raises(RuntimeError) as caught:
        torchs._run_ninja_build(str(folder), False, "Error building extension 'k'")
    return str(caught.value)


def test_a_failure_is_repeated_without_a_build_until_something_differs(torchs: ModuleType, folder: Path) -> None:
    for number, change in enumerate((None, "k.cu", "build.ninja")):
        if change:
            (folder / change).write_text((folder / change).read_text() + "\n# another")
        torchs._run_ninja_build = builds = Builds(f"error {number}")
        remember(str(folder / "candidate.py"))
        assert fails(torchs, folder) == f"error {number}" == fails(torchs, folder) and builds.count == 1


@pytest.mark.parametrize(
    "said",
    ["nvcc error: 'cicc' died due to signal 9 (Kill signal)", "c++: fatal error: Killed", "No space left on device"],
)
def test_what_might_have_been_built_another_time_is_tried_again(torchs: ModuleType, folder: Path, said: str) -> None:
    torchs._run_ninja_build = builds = Builds(said)
    remember(str(folder / "candidate.py"))
    assert [fails(torchs, folder) for _ in range(2)] == [said] * 2 and builds.count == 2


@pytest.mark.parametrize(
    "note", ["", "{", "[]", json.dumps({"asked": "", "said": "no"}), json.dumps({"asked": "0" * 64})]
)
def test_a_note_that_says_nothing_is_none(torchs: ModuleType, folder: Path, note: str) -> None:
    (folder / NOTE).write_text(note)
    torchs._run_ninja_build = builds = Builds()
    remember(str(folder / "candidate.py"))
    assert fails(torchs, folder) == builds.said and builds.count == 1


def test_what_is_built_is_built_and_who_builds_nothing_is_left_alone(torchs: ModuleType, folder: Path) -> None:
    built: list[str] = []
    torchs._run_ninja_build = build = lambda where, verbose, prefix: built.append(where)
    (folder / "candidate.py").write_text("import torch")
    remember(str(folder / "candidate.py"))
    assert torchs._run_ninja_build is build
    (folder / "candidate.py").write_text("import torch.utils.cpp_extension")
    remember(str(folder / "candidate.py"))
    for _ in range(2):
        torchs._run_ninja_build(str(folder), True, "")
    assert built == [str(folder)] * 2 and not (folder / NOTE).exists()


@pytest.mark.e2e
@pytest.mark.skipif(not shutil.which("g++") or not shutil.which("ninja"), reason="needs g++ and ninja: apt install")
def test_runners_know_what_the_build_step_could_not_build(tmp_path: Path) -> None:
    settings = EvaluatorSettings(device="cpu", cache_dir=str(tmp_path / "cache"))
    task = task_of(LINEAR)
    candidate = candidate_of(task, FALLS_BACK)
    with Evaluator(settings) as evaluator:
        first = evaluator.evaluate(task, candidate, protocol=QUICK)
        (note,) = (tmp_path / "cache").rglob(NOTE)
        kept = json.loads(note.read_text())
        note.write_text(json.dumps({**kept, "said": "as the note has it"}))
        second = evaluator.evaluate(task, candidate, protocol=QUICK)
    assert "no such kernel" in kept["said"]
    for found in (first, second):
        assert found.accepted, (found.detail, found.log)
        missed = [each.evidence for each in found.suspects() if each.check == "silent-fallback" and not each.static]
        assert missed and missed[0].startswith("running `ninja"), found.findings
    assert "as the note has it" in second.log, second.log


def test_the_hook_that_it_takes_is_there() -> None:
    from torch.utils import cpp_extension

    assert callable(cpp_extension._run_ninja_build), "PyTorch has another name for it: failed_builds does nothing then"
    assert failed_builds._SOURCE.findall("build cuda.cuda.o: cuda_compile /w/cuda.cu \n") == ["/w/cuda.cu"]
