"""Runs the tests that need a GPU, file by file, and notes every pass in a ledger.

    PYTHONPATH=src python benchmarks/gpu_tests.py --out build/gpu-tests

Writes gpu-tests.json (begun as a copy of docs/results/gpu-tests.json, which it may then replace), a JUnit report per
test file, and what pytest printed. A file that has passed is not run again.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from cuda_l1.errors import InfrastructureError
from cuda_l1.evaluator.gpus import visible_gpus
from gpu_ledger import LEDGER, add, gpu_tests
from provenance import ROOT, Deadline, commit, parser, run, say

EXPECTED_S = 30.0
"""A file is not begun with less time than this left."""


def main() -> int:
    options = parser(__doc__).parse_args()
    deadline = Deadline(options.deadline)
    gpus = visible_gpus()
    if not gpus:
        raise InfrastructureError("no NVIDIA GPU here; these tests need one")
    options.out.mkdir(parents=True, exist_ok=True)
    ledger = options.out / LEDGER.name
    if not ledger.exists() and LEDGER.exists():
        shutil.copy(LEDGER, ledger)
    results = {}
    for file in sorted({name.partition("::")[0] for name in gpu_tests()}):
        report = options.out / f"{re.sub(r'[^A-Za-z0-9]+', '-', file)}.xml"
        if not passed(report):
            if not deadline.allows(EXPECTED_S):
                say(f"no time left for {file}; the same command goes on from here")
                break
            run_file(file, report)
            if report.exists():
                # A tree that differs from its commit is caught by the ledger itself: it compares the test files.
                add(report, commit().partition("+")[0], gpus[0].name, ledger)
        results[file] = passed(report)
        say(f"{'passed' if results[file] else 'FAILED'}  {file}")
    return 0 if results and all(results.values()) else 1


def passed(report: Path) -> bool:
    """Whether a file's report is there, with at least one test run and none failed."""
    if not report.exists():
        return False
    suites = list(ElementTree.parse(report).getroot().iter("testsuite"))
    total = {name: sum(int(s.get(name, 0)) for s in suites) for name in ("tests", "failures", "errors", "skipped")}
    return total["failures"] + total["errors"] == 0 and total["tests"] > total["skipped"]


def run_file(file: str, report: Path) -> None:
    """pytest on one file; its last lines are shown, all of it is kept beside the report."""
    command = [sys.executable, "-m", "pytest", file, "-m", "gpu", "-o", "addopts=", "-q", "--junitxml", str(report)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    report.with_suffix(".txt").write_text(done.stdout)
    say("\n".join(done.stdout.strip().splitlines()[-5:]))


if __name__ == "__main__":
    run(main)
