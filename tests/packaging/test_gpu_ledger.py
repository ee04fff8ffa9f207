"""The ledger of GPU tests: passes are noted by test id, and a changed file makes them stale."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]

REPORT = """<testsuites><testsuite>
<testcase classname="tests.test_layers" name="test_a[x.y]"/>
<testcase classname="tests.test_layers.TestGroup" name="test_b"/>
<testcase classname="tests.test_layers" name="test_skipped"><skipped message="no GPU"/></testcase>
<testcase classname="tests.test_layers" name="test_failed"><failure/></testcase>
</testsuite></testsuites>"""


@pytest.fixture
def ledger() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gpu_ledger", ROOT / "benchmarks" / "gpu_ledger.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_only_passes_are_noted(ledger: ModuleType, tmp_path: Path) -> None:
    report, path = tmp_path / "gpu.xml", tmp_path / "ledger.json"
    report.write_text(REPORT)
    path.write_text(json.dumps({"tests/other.py::test_old": {"commit": "a", "date": "2026-01-01", "gpu": "H100"}}))
    assert ledger.add(report, "c0ffee", "H200", path) == 2
    noted = ledger.read_ledger(path)
    assert set(noted) == {
        "tests/other.py::test_old",
        "tests/test_layers.py::test_a[x.y]",
        "tests/test_layers.py::TestGroup::test_b",
    }
    assert noted["tests/test_layers.py::test_a[x.y]"]["gpu"] == "H200"


def test_a_pass_is_stale_when_its_file_has_changed(
    ledger: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def git(*words: str) -> str:
        identity = ["-c", "user.name=t", "-c", "user.email=t@t"]
        return subprocess.run(
            ["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout

    monkeypatch.setattr(ledger, "ROOT", tmp_path)
    git("init", "-q")
    for name in ("same.py", "changed.py"):
        (tmp_path / name).write_text("1\n")
    git("add", ".")
    git("commit", "-qm", "x")
    commit = git("rev-parse", "HEAD").strip()
    (tmp_path / "changed.py").write_text("2\n")
    entry = {"commit": commit, "date": "2026-01-01", "gpu": "H100"}
    noted = {"same.py::test": entry, "changed.py::test": entry, "same.py::lost": {**entry, "commit": "0" * 40}}
    reasons = ledger.stale(noted, ["same.py::test", "changed.py::test", "same.py::lost", "same.py::new"])
    assert set(reasons) == {"changed.py::test", "same.py::lost", "same.py::new"}
    assert "never passed" in reasons["same.py::new"]


def test_the_tests_marked_gpu_are_found(ledger: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "tests" / "sub"
    folder.mkdir(parents=True)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = gpu\n")
    marked = "import pytest\n@pytest.mark.gpu\n@pytest.mark.parametrize('n', [1, 2])\ndef test_a(n): pass\n"
    (folder / "test_gpu.py").write_text(marked + "def test_b(): pass\n")
    (folder / "test_other.py").write_text("raise AssertionError('it has no such mark and is not imported')\n")
    monkeypatch.setattr(ledger, "ROOT", tmp_path)
    assert ledger.gpu_tests() == ["tests/sub/test_gpu.py::test_a[1]", "tests/sub/test_gpu.py::test_a[2]"]


@pytest.mark.parametrize("name", ["test_gpu.py", "conftest.py"])
def test_tests_that_cannot_be_collected_are_an_error(
    ledger: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = gpu\n")
    (tmp_path / "tests" / "test_gpu.py").write_text("# gpu\n")
    (tmp_path / "tests" / name).write_text("import no_such_module  # gpu\n")
    monkeypatch.setattr(ledger, "ROOT", tmp_path)
    monkeypatch.setattr("sys.argv", ["gpu_ledger.py", "show"])
    with pytest.raises(
        SystemExit, match=r"^pytest cannot collect the tests: .*ModuleNotFoundError: No module named .no_such_module"
    ):
        ledger.main()
