"""Which GPU tests last passed where: docs/results/gpu-tests.json, {test id: {commit, date, gpu}}.

python -m pytest tests -m gpu --junitxml gpu.xml         on a machine with a GPU
python benchmarks/gpu_ledger.py add gpu.xml --gpu "NVIDIA H100 80GB HBM3" --commit $(git rev-parse HEAD)
python benchmarks/gpu_ledger.py show                     the tests whose last pass is older than their file
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
LEDGER = ROOT / "docs" / "results" / "gpu-tests.json"
Ledger = dict[str, dict[str, str]]


def read_ledger(path: Path = LEDGER) -> Ledger:
    """The ledger; empty where there is none yet."""
    ledger: Ledger = json.loads(path.read_text()) if path.exists() else {}
    return ledger


def passed(report: Path) -> list[str]:
    """The ids of the tests that passed, from a JUnit file that pytest wrote, also of a run that was interrupted."""
    cases = [case for case in ElementTree.parse(report).getroot().iter("testcase") if "classname" in case.attrib]
    bad = {"failure", "error", "skipped"}
    return [test_id(case) for case in cases if not bad & {child.tag for child in case}]


def test_id(case: ElementTree.Element) -> str:
    """`tests/evaluator/test_gate.py::test_name[case]`, from the dotted class name of a JUnit test case."""
    parts = case.attrib["classname"].split(".")
    files = {cut: Path(*parts[:cut]).with_suffix(".py") for cut in range(len(parts), 0, -1)}
    cut, file = next(
        ((cut, file) for cut, file in files.items() if (ROOT / file).exists()), (len(parts), files[len(parts)])
    )
    return "::".join([file.as_posix(), *parts[cut:], case.attrib["name"]])


def add(report: Path, commit: str, gpu: str, path: Path = LEDGER) -> int:
    """Notes every pass of a report; returns how many."""
    ledger = read_ledger(path)
    date = datetime.now(UTC).date().isoformat()
    found = passed(report)
    ledger |= {name: {"commit": commit, "date": date, "gpu": gpu} for name in found}
    path.write_text(json.dumps(dict(sorted(ledger.items())), indent=2) + "\n")
    return len(found)


def gpu_tests() -> list[str]:
    """The ids of all tests marked `gpu`. Importing every test takes half a minute: only files with that word are.

    Ends the program with pytest's line where it cannot collect them.
    """
    files = sorted(str(path) for path in (ROOT / "tests").rglob("test_*.py") if "gpu" in path.read_text("utf-8"))
    command = [sys.executable, "-m", "pytest", *files, "-m", "gpu", "--collect-only", "-q", "-o", "addopts="]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode not in (0, 5):  # 5: there are none
        said = [*listed.stdout.splitlines(), *listed.stderr.splitlines()]
        wrong = [line.removeprefix("E ") for line in said if line.startswith(("E  ", "ERROR "))]
        sys.exit(f"pytest cannot collect the tests: {'; '.join(' '.join(line.split()) for line in wrong or said[-1:])}")
    return [line for line in listed.stdout.splitlines() if "::" in line]


def stale(ledger: Ledger, tests: list[str]) -> dict[str, str]:
    """Test id -> why its last pass says nothing about the file as it is now."""
    changed: dict[tuple[str, str], bool] = {}
    reasons = {}
    for name in tests:
        if name not in ledger:
            reasons[name] = "has never passed on a GPU"
            continue
        key = ledger[name]["commit"], name.partition("::")[0]
        if key not in changed:
            changed[key] = is_changed(*key)
        if changed[key]:
            reasons[name] = f"passed at {key[0][:10]} on {ledger[name]['date']}, before its file changed"
    return reasons


def is_changed(commit: str, file: str) -> bool:
    """Whether a file differs from what it was at a commit; a commit that is not there counts as different."""
    done = subprocess.run(["git", "diff", "--quiet", commit, "--", file], cwd=ROOT, capture_output=True)
    return done.returncode != 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("show")
    adding = commands.add_parser("add")
    adding.add_argument("report", type=Path)
    adding.add_argument("--commit", required=True)
    adding.add_argument("--gpu", required=True)
    chosen = parser.parse_args()
    if chosen.command == "add":
        sys.stdout.write(f"{add(chosen.report, chosen.commit, chosen.gpu)} passes noted\n")
        return
    tests = gpu_tests()
    reasons = stale(read_ledger(), tests)
    sys.stdout.write(f"GPU tests: {len(tests)}, of which {len(reasons)} must be run again on a GPU\n")
    for name, reason in reasons.items():
        sys.stdout.write(f"  {name}: {reason}\n")


if __name__ == "__main__":
    main()
