"""A library that could not be built is not built again, and is missed all the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from evaluator_support import LINEAR, QUICK, candidate_of, task_of
from torch.utils import cpp_extension

from building import needs_ninja
from cuda_l1.config import EvaluatorSettings
from cuda_l1.evaluator import Evaluator
from cuda_l1.evaluator.guest import failed_builds

NOTES = "not-built-*.json"
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
    """Stands where PyTorch runs ninja; fails where it is told what to say."""

    def __init__(self, said: str | None = "Error building extension 'k': k.cu: error: no", printed: str = "") -> None:
        self.said, self.printed, self.count = said, printed, 0

    def __call__(self, folder: str, verbose: bool, prefix: str) -> None:
        self.count += 1
        if verbose:
            os.write(1, self.printed.encode())
        if self.said is not None:
            raise RuntimeError(self.said)


Watched = Callable[[Builds], Callable[..., None]]


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Watched:
    """Put in PyTorch's place and watched; asked to build in a folder as PyTorch leaves it."""
    (tmp_path / "k.cu").write_text("first")
    (tmp_path / "build.ninja").write_text(NINJA.format(tmp_path / "k.cu"))

    def watch(builds: Builds) -> Callable[..., None]:
        monkeypatch.setattr(cpp_extension, "_run_ninja_build", builds)
        failed_builds.remember()
        return lambda *, verbose=False: cpp_extension._run_ninja_build(str(tmp_path), verbose, "Error building 'k'")

    return watch


def said(build: Callable[..., None], **how: bool) -> str:
    with pytest.raises(RuntimeError) as caught:
        build(**how)
    return str(caught.value)


def test_a_failure_is_repeated_without_a_build_until_something_differs(watched: Watched, tmp_path: Path) -> None:
    first = Builds("error 0")
    assert said(watched(first)) == "error 0"
    for number, changed in enumerate(("k.cu", "build.ninja"), start=1):
        before = (tmp_path / changed).read_text()
        (tmp_path / changed).write_text(before + "\n# another")
        builds = Builds(f"error {number}")
        build = watched(builds)
        assert said(build) == f"error {number}" == said(build) and builds.count == 1
        (tmp_path / changed).write_text(before)
        assert said(build) == "error 0" and builds.count == 1, "one attempt's note is not the other's"
    assert first.count == 1


@pytest.mark.parametrize(
    "short",
    [
        "nvcc error: 'cicc' died due to signal 9 (Kill signal)",
        "c++: fatal error: Killed",
        "error: No space left on device",
        "ninja: fatal: posix_spawn: Resource temporarily unavailable",
        "k.cu:1:10: fatal error: cutlass/cutlass.h: No such file or directory",
    ],
)
def test_what_might_be_built_another_time_is_tried_again(watched: Watched, short: str) -> None:
    for builds, verbose in ((Builds(short), False), (Builds("Error building 'k'", short), True)):
        build = watched(builds)
        assert said(build, verbose=verbose) == builds.said == said(build, verbose=verbose) and builds.count == 2


def test_what_asks_for_the_device_is_tried_where_there_is_one(watched: Watched, tmp_path: Path) -> None:
    (tmp_path / "build.ninja").write_text(NINJA.format(tmp_path / "k.cu").replace("c++", "nvcc -arch=native"))
    builds = Builds()
    build = watched(builds)
    assert said(build) == said(build) and builds.count == 2


@pytest.mark.parametrize("text", ["", "{", "[]", '{"time": 1, "said": "no", "printed": ""}', '{"time": "now"}'])
def test_a_note_that_is_old_or_says_nothing_is_none(watched: Watched, tmp_path: Path, text: str) -> None:
    builds = Builds()
    build = watched(builds)
    said(build)
    (note,) = tmp_path.glob(NOTES)
    note.write_text(text)
    assert said(build) == builds.said and builds.count == 2


def test_a_note_that_cannot_be_written_changes_nothing(watched: Watched, tmp_path: Path) -> None:
    build = watched(Builds())
    said(build)
    (note,) = tmp_path.glob(NOTES)
    note.unlink()
    note.mkdir()
    assert said(build) == Builds().said


@pytest.mark.parametrize("fails", [True, False])
def test_what_is_printed_is_printed_each_time(watched: Watched, capfd: pytest.CaptureFixture[str], fails: bool) -> None:
    builds = Builds("Error building 'k'" if fails else None, "ptxas info: Used 32 registers\n")
    build = watched(builds)
    for _ in range(2):
        if fails:
            said(build, verbose=True)
        else:
            build(verbose=True)
        assert capfd.readouterr().out == builds.printed
    assert builds.count == (1 if fails else 2)


def test_the_module_is_imported_by_the_candidate_and_not_before() -> None:
    lines = (
        "import sys",
        "from cuda_l1.evaluator.guest import failed_builds",
        "failed_builds.remember()",
        f"assert '{failed_builds.MODULE}' not in sys.modules",
        "from torch.utils import cpp_extension",
        "print(cpp_extension._run_ninja_build.__module__)",
        "assert not any(isinstance(each, failed_builds._WhenImported) for each in sys.meta_path)",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True)
    assert done.stdout.strip() == failed_builds.__name__, done.stderr


@pytest.mark.e2e
@needs_ninja
def test_runners_know_what_the_build_step_could_not_build(tmp_path: Path) -> None:
    settings = EvaluatorSettings(device="cpu", cache_dir=str(tmp_path / "cache"))
    task = task_of(LINEAR)
    candidate = candidate_of(task, FALLS_BACK)
    with Evaluator(settings) as evaluator:
        first = evaluator.evaluate(task, candidate, protocol=QUICK)
        (note,) = (tmp_path / "cache").rglob(NOTES)
        kept = json.loads(note.read_text())
        note.write_text(json.dumps({**kept, "said": "as the note has it"}))
        second = evaluator.evaluate(task, candidate, protocol=QUICK)
    assert "no such kernel" in kept["printed"], "it builds with verbose=True"
    for found in (first, second):
        assert found.accepted, (found.detail, found.log)
        missed = [each.evidence for each in found.suspects() if each.check == "silent-fallback" and not each.static]
        assert missed and missed[0].startswith("running `ninja"), found.findings
    assert "as the note has it" in second.log, second.log


def test_what_it_takes_of_pytorch_is_there() -> None:
    assert callable(cpp_extension._run_ninja_build), "PyTorch has another name for it: nothing is remembered then"
    assert failed_builds._SOURCE.findall("build cuda.cuda.o: cuda_compile /w/cuda.cu \n") == ["/w/cuda.cu"]
