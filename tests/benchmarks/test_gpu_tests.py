"""Reports of GPU tests: what counts as passed, and what goes into the ledger."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import gpu_tests
from cuda_l1.errors import InfrastructureError
from cuda_l1.evaluator.gpus import Gpu

SUITE = '<testsuites><testsuite tests="{}" failures="{}" errors="0" skipped="{}">{}</testsuite></testsuites>'
CASE = '<testcase classname="tests.test_layers" name="test_a"/>'


@pytest.mark.parametrize(
    ("tests", "failures", "skipped", "is_passed"), [(2, 0, 1, True), (2, 1, 0, False), (2, 0, 2, False)]
)
def test_a_report_of_skipped_tests_is_no_pass(
    tmp_path: Path, tests: int, failures: int, skipped: int, is_passed: bool
) -> None:
    report = tmp_path / "r.xml"
    assert not gpu_tests.passed(report)
    report.write_text(SUITE.format(tests, failures, skipped, ""))
    assert gpu_tests.passed(report) is is_passed


def test_each_file_runs_until_it_has_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing, ran = {"tests/b.py"}, []

    def run_file(file: str, report: Path) -> None:
        ran.append(file)
        report.write_text(SUITE.format(1, int(file in failing), 0, "" if file in failing else CASE))

    gpu = Gpu(0, "Test GPU", "uuid", (9, 0), 1 << 30, "580")
    monkeypatch.setattr(gpu_tests, "visible_gpus", lambda: [gpu])
    monkeypatch.setattr(gpu_tests, "gpu_tests", lambda: ["tests/a.py::x", "tests/b.py::y", "tests/a.py::z"])
    monkeypatch.setattr(gpu_tests, "run_file", run_file)
    monkeypatch.setenv("CUDA_L1_COMMIT", "c0ffee")
    monkeypatch.setattr(sys, "argv", ["gpu_tests.py", "--out", str(tmp_path)])
    assert gpu_tests.main() == 1
    failing.clear()
    assert gpu_tests.main() == 0
    assert ran == ["tests/a.py", "tests/b.py", "tests/b.py"]
    noted = json.loads((tmp_path / "gpu-tests.json").read_text())["tests/test_layers.py::test_a"]
    assert (noted["commit"], noted["gpu"]) == ("c0ffee", "Test GPU")


def test_without_a_gpu_it_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_tests, "visible_gpus", list)
    monkeypatch.setattr(sys, "argv", ["gpu_tests.py", "--out", str(tmp_path)])
    with pytest.raises(InfrastructureError, match="no NVIDIA GPU"):
        gpu_tests.main()
