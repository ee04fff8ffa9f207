"""Whole commands on a real evaluator: optimise, use the file, interrupt and go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cuda_l1.export.header import split_header

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

COMMAND = [sys.executable, "-m", "cuda_l1.cli"]
EAGER_ONLY = [sys.executable, str(Path(__file__).with_name("eager_only.py"))]
OPTIMIZE = [
    "optimize",
    "ref.py",
    "--budget",
    "2",
    "--final-budget",
    "2s",
    "--proposer",
    "techniques:diagonal_matmul",
    "--json",
]

REFERENCE = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(rows))

    def forward(self, x):
        return torch.diag(self.scale) @ x


def get_inputs():
    return [torch.randn(384, 384)]


def get_init_inputs():
    return [384]
"""

SMALL = REFERENCE.replace("384", "128")
"""For whoever asks nothing of its time."""

USE = """
import torch
from ref_optimized import Model, ModelNew, get_inputs
torch.manual_seed(0)
original = Model(384)
torch.manual_seed(0)
fast = ModelNew(384)
x, = get_inputs()
with torch.no_grad():
    torch.testing.assert_close(fast(x), original(x))
    torch.testing.assert_close(fast(x[:, :7]), original(x[:, :7]))
assert fast.report["fallbacks"] == {"shape": 1}, fast.report
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ref.py").write_text(SMALL)
    return tmp_path


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "CUDA_L1_ARCHIVE": str(folder / "a.sqlite"), "CUDA_VISIBLE_DEVICES": ""}


def cuda_l1(folder: Path, *words: str, command: list[str] = COMMAND) -> tuple[int, list[dict[str, Any]], str]:
    done = subprocess.run([*command, *words], cwd=folder, env=environment(folder), capture_output=True, text=True)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_what_lies_beside_a_file_is_there_behind_the_wall(folder: Path) -> None:
    (folder / "beside.py").write_text("import torch\n\n\ndef product(a, x):\n    return torch.diag(a) @ x\n")
    text = SMALL.replace("torch.diag(self.scale) @ x", "product(self.scale, x)")
    (folder / "ref.py").write_text("from beside import product\n" + text)
    code, told, error = cuda_l1(folder, "tasks", "audit", "ref.py", "--device", "cpu", "--json")
    assert code == 0 and told[-1]["kind"] == "summary", error


def test_what_lies_beside_a_candidate_is_part_of_it(folder: Path) -> None:
    """In the sandbox, in its identity, and in what the archive keeps and exports."""
    theirs = folder / "theirs"
    theirs.mkdir()
    (theirs / "rows.py").write_text("def scaled(a, x):\n    return a[:, None] * x\n")
    text = SMALL.partition("def get_inputs")[0].replace("class Model", "class ModelNew")
    text = "from rows import scaled\n" + text.replace("torch.diag(self.scale) @ x", "scaled(self.scale, x)")
    (theirs / "candidate.py").write_text(text)
    evaluate = ["evaluate", "ref.py", "theirs/candidate.py", "--device", "cpu", "--protocol", "screen", "--json"]
    _, told, error = cuda_l1(folder, *evaluate)
    assert told[0]["outcome"] == "ACCEPTED", error
    (folder / "alone").mkdir()
    record = cuda_l1(folder, "archive", "show", told[0]["candidate_id"], "--json")[1][0]
    (folder / "alone" / "out.py").write_text(record["candidate"]["source"])
    use = "import torch\nfrom out import ModelNew\nassert ModelNew(3)(torch.ones(3, 2)).shape == (3, 2)\n"
    assert subprocess.run([sys.executable, "-c", use], cwd=folder / "alone").returncode == 0
    (theirs / "rows.py").write_text("def scaled(a, x):\n    return a[:, None] + x\n")
    code, other, error = cuda_l1(folder, *evaluate)
    assert code == 1 and other[0]["outcome"] == "WRONG_VALUES", error
    assert other[0]["candidate_id"] != told[0]["candidate_id"]


class Interrupted:
    """One command in one folder, ended by Ctrl-C and begun again, killed and begun again, and then run to its end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "ref.py").write_text(REFERENCE)
        self.stopped, self.told = self._ended_by(signal.SIGINT, records(folder))
        self.after_ctrl_c = records(folder)
        _, self.told_killed = self._ended_by(signal.SIGKILL, self.after_ctrl_c)
        self.before = records(folder)
        self.code, self.lines, self.told_last = self._to_its_end()

    def found(self) -> list[dict[str, Any]]:
        """What a run says that found something. On a machine that others work on one measurement may be spoilt."""
        for _ in range(3):
            if self.code == 0:
                return self.lines
            self.code, self.lines, self.told_last = self._to_its_end()
        raise AssertionError(self.told_last)

    def _to_its_end(self) -> tuple[int, list[dict[str, Any]], str]:
        return cuda_l1(self.folder, *OPTIMIZE, command=EAGER_ONLY)

    def _ended_by(self, how: signal.Signals, known: set[str]) -> tuple[int, str]:
        """Exit code and stderr of the command, interrupted when it has one verdict more."""
        process = subprocess.Popen(
            [*EAGER_ONLY, *OPTIMIZE],
            cwd=self.folder,
            env=environment(self.folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        wait_for_a_verdict(self.folder, process, known)
        process.send_signal(how)
        _, told = process.communicate(timeout=60)
        return process.returncode, told


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Interrupted:
    return Interrupted(tmp_path_factory.mktemp("interrupted"))


def test_an_interrupted_command_goes_on(interrupted: Interrupted) -> None:
    assert interrupted.stopped == 130
    assert interrupted.told.splitlines()[-1].startswith("cuda-l1: interrupted;")
    assert "Traceback" not in interrupted.told + interrupted.told_killed
    assert interrupted.code in (0, 1), interrupted.told_last
    assert interrupted.after_ctrl_c < interrupted.before
    assert interrupted.before <= {line["id"] for line in interrupted.lines[:-1]}, "nothing is lost"
    ids = [line["candidate"]["id"] for line in interrupted.lines[:-1]]
    finals = [line for line in interrupted.lines[:-1] if line["evaluation"]["protocol"] == "final"]
    assert finals and len(ids) == len(set(ids)), "and nothing is paid for twice"


def test_optimize_writes_a_file_that_is_right_and_guarded(interrupted: Interrupted) -> None:
    *rows, summary = interrupted.found()
    folder = interrupted.folder
    assert summary["kind"] == "summary" and summary["technique"] == "diagonal_matmul"
    assert 1 < summary["speedup_eager_low"] <= summary["speedup_eager"] <= summary["speedup_eager_high"]
    assert summary["speedup_best_baseline"] is not None
    assert 0 < summary["guard_us"] < 100
    outcomes = {(r["evaluation"]["protocol"], r["evaluation"]["outcome"]) for r in rows}
    assert ("final", "ACCEPTED") in outcomes
    subprocess.run([sys.executable, "-c", USE], cwd=folder, check=True, env={**os.environ, "PYTHONWARNINGS": "ignore"})
    code, _, told = cuda_l1(folder, "archive", "export", "ref", "--out", "again.py", "--json")
    assert code == 0, told
    again, first = (split_header((folder / name).read_text()) for name in ("again.py", "ref_optimized.py"))
    assert again[1] == first[1] and again[0] and summary["record"] in again[0]


def wait_for_a_verdict(folder: Path, process: subprocess.Popen[str], known: set[str]) -> None:
    deadline = time.monotonic() + 240
    while records(folder) <= known:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.2)


def records(folder: Path) -> set[str]:
    from cuda_l1.archive import Archive

    if not (folder / "a.sqlite").exists():
        return set()
    with Archive.open(folder / "a.sqlite") as archive:
        return {record.id for record in archive.records()}


BAD = {
    "syntax": ("class ModelNew(", "BUILD_FAILED"),
    "no_class": ("x = 1\n", "BUILD_FAILED"),
    "constructor": (
        f"{SMALL}\nclass ModelNew(Model):\n    def __init__(self):\n        super().__init__(1)\n",
        "BUILD_FAILED",
    ),
    "wrong": (f"{SMALL}\nclass ModelNew(Model):\n    def forward(self, x):\n        return x\n", "WRONG_VALUES"),
    "raises": (
        f"{SMALL}\nclass ModelNew(Model):\n    def forward(self, x):\n        raise ValueError('no')\n",
        "CRASHED",
    ),
}


def test_each_bad_candidate_is_an_outcome_with_a_reason(folder: Path) -> None:
    for name, (text, _) in BAD.items():
        (folder / f"{name}.py").write_text(text)
    files = [f"{name}.py" for name in BAD]
    code, (*found, _), told = cuda_l1(folder, "evaluate", "ref.py", *files, "--protocol", "screen", "--json")
    assert code == 1, told
    assert [line["path"] for line in found] == files
    assert [line["outcome"] for line in found] == [outcome for _, outcome in BAD.values()]
    assert all(line["detail"] for line in found)
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (SMALL.replace("super().__init__()", "super().__init__(); raise RuntimeError('no luck')"), "no luck"),
        (SMALL.replace("return [torch.randn(128, 128)]", "raise RuntimeError('no luck')"), "no luck"),
        (SMALL.replace("torch.diag(self.scale) @ x", "x / 0 * 0"), "NaN|nan|finite"),
    ],
    ids=["constructor", "get_inputs", "nan"],
)
def test_a_task_that_does_not_work_is_one_line(folder: Path, text: str, told: str) -> None:
    import re

    (folder / "ref.py").write_text(text)
    (folder / "candidate.py").write_text(text + "\n\nclass ModelNew(Model):\n    pass\n")
    code, _, said = cuda_l1(folder, "evaluate", "ref.py", "candidate.py", "--protocol", "screen", "--json")
    assert code == 2, said
    last = said.splitlines()[-1]
    assert last.startswith("cuda-l1:") and re.search(told, last)
    assert "Traceback" not in said
