"""`tasks`, `archive` and `doctor`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_fakes import FAST, PLACE, FakeEvaluator, lines
from typer.testing import Result

from cuda_l1.cli import checkup

Run = Callable[..., Result]


def test_tasks_are_listed_and_shown(run: Run, reference: Path) -> None:
    *tasks, summary = lines(run("tasks", "list", "--json"))
    assert summary["tasks"] == len(tasks) >= 24
    assert {"name", "sha", "source"} <= tasks[0].keys()
    shown = run("tasks", "show", reference)
    assert run("tasks", "show", f"{reference}::Nothing").exit_code == 2
    assert shown.stdout.strip() == reference.read_text().strip()
    assert "diagonal_matmul" in run("tasks", "list").stdout


@pytest.mark.parametrize("words", [["show"], ["audit", "--device", "cpu"]], ids=["show", "audit"])
def test_a_class_of_any_file_is_shown_and_audited(run: Run, tmp_path: Path, words: list[str]) -> None:
    path = tmp_path / "layers.py"
    path.write_text(
        "import torch\n\n\nclass Block(torch.nn.Module):\n    def __init__(self, dim):\n"
        "        super().__init__()\n        self.linear = torch.nn.Linear(dim, dim)\n\n"
        "    def forward(self, x):\n        return self.linear(x)\n"
    )
    described = ["--inputs", "randn(3,8)", "--init", "8", "--dtype", "bf16"]
    result = run("tasks", words[0], f"{path}::Block", *words[1:], *described, "--json")
    assert result.exit_code == 0, result.stderr
    assert "Block" in (lines(result)[0].get("name") or lines(result)[0]["task_id"])
    assert run("tasks", words[0], f"{path}::Block", *words[1:]).exit_code == 2, "its inputs are not described"


def test_an_unsound_task_is_exit_code_1(run: Run, reference: Path) -> None:
    assert run("tasks", "audit", reference, "--device", "cpu").exit_code == 0
    reference.write_text(reference.read_text() + "\n# degenerate\n")
    result = run("tasks", "audit", reference, "--device", "cpu", "--json")
    assert result.exit_code == 1
    found, summary = lines(result)
    assert (found["kind"], found["sound"]) == ("audit", False)
    assert summary["unsound"] == ["ref"]


def test_a_task_that_does_not_run_does_not_end_the_audit_of_the_others(run: Run, reference: Path) -> None:
    folder = reference.parent / "tasks"
    folder.mkdir()
    for name, mark in (("a", "does not run"), ("b", "degenerate"), ("c", "sound")):
        (folder / f"{name}.py").write_text(f"{reference.read_text()}\n# {mark}\n")
    result = run("tasks", "audit", folder, "--device", "cpu", "--json")
    assert result.exit_code == 2
    *found, summary = lines(result)
    assert [audit["sound"] for audit in found] == [False, True]
    assert (summary["tasks"], summary["sound"], summary["unsound"], list(summary["failures"])) == (3, 1, ["b"], ["a"])
    assert "get_inputs() raised" in result.stderr


def test_references_of_a_release_that_are_no_python_are_listed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text(json.dumps({"level_id": 1, "task_id": 2, "ref_code": "class Model(:"}))
    result = run("tasks", "list", f"release:{tmp_path / 'r.jsonl'}")
    assert (result.exit_code, "(no Python)" in result.stdout) == (0, True)


@pytest.mark.parametrize("words", [["list"], ["audit", "--device", "cpu"]], ids=["list", "audit"])
def test_what_of_a_release_cannot_be_read_is_named(run: Run, reference: Path, words: list[str]) -> None:
    release = reference.parent / "r.jsonl"
    release.write_text(json.dumps({"level_id": 1, "task_id": 2, "ref_code": reference.read_text()}) + "\n{cut")
    result = run("tasks", words[0], f"release:{release}", *words[1:])
    assert result.exit_code == 0 and f"release:{release}: line 2: not JSON" in result.stderr


@pytest.fixture
def filled(run: Run, reference: Path, tmp_path: Path) -> Run:
    """An archive with a good and a bad record."""
    for name, head in (("good", "# speedup 2.0\n"), ("bad", "# outcome CRASHED\n")):
        (tmp_path / f"{name}.py").write_text(head + FAST)
    run("evaluate", reference, tmp_path / "good.py", tmp_path / "bad.py", "--device", "cpu")
    return run


def test_the_archive_is_listed_filtered_and_shown(filled: Run) -> None:
    *records, summary = lines(filled("archive", "list", "--json"))
    assert summary["records"] == len(records) == 2
    accepted = lines(filled("archive", "list", "--json", "--outcome", "accepted", "--task", "ref"))[:-1]
    assert [r["evaluation"]["outcome"] for r in accepted] == ["ACCEPTED"]
    assert "# speedup 2.0" in filled("archive", "show", accepted[0]["id"][:10], "--source").stdout
    assert "CRASHED" in filled("archive", "list").stdout


def test_the_best_is_exported_with_its_evidence(filled: Run) -> None:
    best = lines(filled("archive", "best", "ref", "--json"))
    assert best[0]["evaluation"]["outcome"] == "ACCEPTED"
    result = filled("archive", "export", "ref", "--out", "fast.py")
    assert result.exit_code == 0 and "written: fast.py" in result.stdout
    text = Path("fast.py").read_text()
    assert "2.00x" in text and "without a guard" in text and text.endswith(FAST)


def test_a_file_that_is_not_faster_is_exported_with_a_word(filled: Run, reference: Path, tmp_path: Path) -> None:
    assert "faster" not in filled("archive", "export", "ref", "--out", "fast.py").stderr
    (tmp_path / "slow.py").write_text("# speedup 0.5\n" + FAST)
    filled("evaluate", reference, tmp_path / "slow.py", "--device", "cpu", "--archive", tmp_path / "b.sqlite")
    slow = filled("archive", "export", "ref", "--out", "slow2.py", "--archive", tmp_path / "b.sqlite", "--json")
    assert slow.exit_code == 0 and "not faster than eager by more than its interval: 0.50x" in slow.stderr
    assert lines(slow)[-1]["speedup_eager"] == 0.5


def test_an_export_says_of_what_the_finals_are_suspected(run: Run, reference: Path, tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text("# suspect busy-machine\n" + FAST)
    run("evaluate", reference, tmp_path / "odd.py", "--device", "cpu")
    refused = run("archive", "export", "ref", "--out", "fast.py")
    assert refused.exit_code == 1 and "suspect (busy-machine)" in refused.stderr and not Path("fast.py").exists()


def test_devices_are_never_compared(
    filled: Run, reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = PLACE.model_copy(update={"device_name": "other cpu"})
    monkeypatch.setattr(FakeEvaluator, "environment", other)
    (tmp_path / "good.py").write_text("# speedup 3.0\n" + FAST)
    filled("evaluate", reference, tmp_path / "good.py", "--device", "cpu")
    *rows, summary = lines(filled("archive", "best", "--json"))
    assert [row["evaluation"]["environment"]["device_name"] for row in rows] == ["other cpu", "test cpu"]
    assert (summary["records"], summary["tasks"]) == (2, 1)
    unclear = filled("archive", "export", "ref", "--out", "fast.py")
    assert unclear.exit_code == 2 and not Path("fast.py").exists()
    assert "--device-name, one of 'other cpu', 'test cpu'" in unclear.stderr and len(unclear.stderr.splitlines()) == 1
    assert filled("archive", "export", "ref", "--out", "fast.py", "--device-name", "test cpu").exit_code == 0
    assert "2.00x" in Path("fast.py").read_text()
    wrong = filled("archive", "export", "ref", "--device-name", "tpu")
    assert wrong.exit_code == 2 and "'other cpu', 'test cpu'" in wrong.stderr


def test_archives_are_merged(filled: Run, tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    first = lines(filled("archive", "merge", tmp_path / "data" / "archive.sqlite", "--archive", other, "--json"))
    assert first[-1] == {"kind": "summary", "records": 2}
    again = lines(filled("archive", "merge", tmp_path / "data" / "archive.sqlite", "--archive", other, "--json"))
    assert again[-1]["records"] == 0


def test_what_is_no_archive_is_told_before_anything_is_merged(filled: Run, tmp_path: Path) -> None:
    held, none, new = tmp_path / "data" / "archive.sqlite", tmp_path / "notes.txt", tmp_path / "new.sqlite"
    none.write_text("not a database, but long enough to be looked at as one, if anybody did\n" * 20)
    result = filled("archive", "merge", held, none, "--archive", new)
    assert result.exit_code == 2 and "notes.txt" in result.stderr and not new.exists()


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["list", "--task", "unheard"], 2, "knows no task `unheard`; it knows ref"),
        (["list", "--outcome", "GOOD"], 2, "choose one of ACCEPTED"),
        (["show", "zzzz"], 2, "begins with `zzzz`"),
        (["show", ""], 2, "no record is named"),
        (["merge", "nowhere.sqlite"], 2, "no such archive"),
        (["export", "unheard"], 2, "knows no task"),
        (["best", "ref", "--precision", "no"], 2, "'no' is not one of 'default', 'fp32', 'tf32', 'relaxed'"),
    ],
)
def test_mistakes_with_the_archive(filled: Run, words: list[str], code: int, told: str) -> None:
    result = filled("archive", *words)
    assert result.exit_code == code and told in result.stderr


def test_an_archive_that_is_none(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to be looked at as one, if anybody did\n" * 20)
    result = run("archive", "list", "--archive", path)
    assert result.exit_code == 2 and len(result.stderr.splitlines()) == 1


def test_doctor_says_what_every_lack_costs(run: Run) -> None:
    *checks, summary = lines(run("doctor", "--json"))
    names = [check["name"] for check in checks]
    tools = ["C++ compiler", "nvcc", "Triton", "Nsight Compute"]
    assert names == ["Linux", "torch", "GPU", *tools, "sandbox", "disk", "archive"]
    for check in checks:
        assert check["present"] != bool(check["costs"] and check["remedy"])
    assert summary["ok"] is True


def test_doctor_without_a_compiler(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("CUDA_HOME", "/nowhere")
    found = {check.name: check for check in checkup.checkup()}
    assert not found["C++ compiler"].present and "apt install g++" in found["C++ compiler"].remedy
    assert not found["nvcc"].present


def test_doctor_names_a_driver_that_keeps_its_counters(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tool = tmp_path / "ncu"
    tool.write_text("#!/bin/sh\necho NVIDIA Nsight Compute Command Line Profiler\necho Version 2025.3.1.0\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(checkup, "DRIVER_SETTINGS", tmp_path / "params")
    for setting in ("RmProfilingAdminOnly: 0", "RmProfilingAdminOnly: 1"):
        (tmp_path / "params").write_text(f"ResmanDebugLevel: 4294967295\n{setting}\n")
        found = {check.name: check for check in checkup.checkup()}["Nsight Compute"]
        assert found.present == setting.endswith("0")
    assert "keeps the GPU's counters for administrators" in found.detail
    assert "NVreg_RestrictProfilingToAdminUsers=0" in found.remedy


def test_doctor_without_torch_is_exit_code_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise checkup.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(checkup.metadata, "version", missing)
    result = run("doctor", "--json")
    assert result.exit_code == 1
    assert lines(result)[-1]["missing"] == ["torch"]


def test_an_old_torch_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkup.metadata, "version", lambda name: "2.8.1")
    torch = next(check for check in checkup.checkup() if check.name == "torch")
    assert not torch.present and "older than 2.9" in torch.detail


def test_the_package_is_a_command_too(tmp_path: Path) -> None:
    asked = [sys.executable, "-m", "cuda_l1", "tasks", "show", "linear_sum"]
    done, other = (
        subprocess.run([*asked, *more], capture_output=True, text=True, cwd=tmp_path) for more in ([], ["x"])
    )
    assert done.returncode == 0 and "def get_inputs" in done.stdout and not done.stderr
    assert other.returncode == 2 and other.stderr.startswith("Usage: python -m cuda_l1 tasks show ")


def test_version_and_help_without_a_command(run: Run) -> None:
    assert run("--version").stdout.startswith("cuda-l1 ")
    assert "optimize" in run("--help").stdout
    assert run("optimise").exit_code == 2


@pytest.mark.parametrize(
    ("command", "usage"),
    [
        ("optimize", "TASK"),
        ("prompt", "TASK"),
        ("tasks audit", "TASK"),
        ("evaluate", "REF CANDIDATE..."),
        ("report", "RUN..."),
        ("archive merge", "OTHER..."),
        ("collect", "SUITE..."),
    ],
)
def test_help_names_arguments_as_its_text_does(run: Run, command: str, usage: str) -> None:
    told = run(*command.split(), "--help").stdout.splitlines()[0].partition(" [OPTIONS] ")[2]
    assert told.translate(str.maketrans("", "", "{}[]")) == usage, "typer's versions put different brackets around them"


def test_doctor_names_a_gpu_in_quarantine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from cuda_l1.evaluator import gpus
    from cuda_l1.evaluator.quarantine import Quarantine

    found = [gpus.Gpu(number, "NVIDIA H100", f"GPU-{number}", (9, 0), 80 << 30, "580.1") for number in (0, 1)]
    monkeypatch.setattr(gpus, "visible_gpus", lambda: found)
    monkeypatch.setattr(checkup, "torch_build", lambda: "CUDA 13.0")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert next(c for c in checkup.checkup() if c.name == "GPU").present
    Quarantine("GPU-1", tmp_path / "cuda-l1").impose("it does not answer")
    check = next(c for c in checkup.checkup() if c.name == "GPU")
    assert not check.present and "cuda:1 NVIDIA H100 is in quarantine since" in check.detail
    assert "does not answer" in check.detail and "cuda:0" not in check.detail
