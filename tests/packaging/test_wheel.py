"""A wheel built from this repository installs and works, away from the repository."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the tracked files without anything that lies about."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    wanted = ["pyproject.toml", "README.md", "LICENSE", "src"]
    tracked = subprocess.run(["git", "ls-files", "-z", *wanted], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, tracked.stdout.split("\0")):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes((ROOT / name).read_bytes())
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(out), str(source)]
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = out.glob("cuda_l1-*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of an environment with the wheel; what it depends on is this environment's."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=False, symlinks=True)
    scheme = {"base": str(folder), "platbase": str(folder)}
    site = Path(sysconfig.get_path("purelib", "venv", vars=scheme))
    dependencies = {Path(p) for p in sys.path if Path(p, "torch").is_dir() or Path(p, "typer").is_dir()}
    (site / "dependencies.pth").write_text("".join(f"{path}\n" for path in sorted(dependencies)))
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--no-deps"]
    done = subprocess.run([*pip, "--no-index", "--force-reinstall", str(wheel)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "bin"


def run(installed: Path, folder: Path, *words: str) -> list[dict[str, object]]:
    done = subprocess.run([str(installed / "cuda-l1"), *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_it_holds_all_that_is_no_python(wheel: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "src"
    kinds = (".j2", ".css", ".js", ".cu", ".ptx", ".typed")
    data = {p for p in (source / "cuda_l1").rglob("*") if p.is_file() and p.suffix in kinds}
    assert {path.relative_to(source).as_posix() for path in data} <= inside
    assert "cuda_l1/export/dropin.py.j2" in inside
    assert not [name for name in inside if name.startswith("tests")]


def test_it_comes_from_the_wheel_and_works_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    where = "import cuda_l1, pathlib; print(pathlib.Path(cuda_l1.__file__).parent)"
    python = [str(installed / "python"), "-c", where]
    told = subprocess.run(python, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert str(installed.parent) in told
    *checks, summary = run(installed, tmp_path, "doctor", "--json", "--archive", str(tmp_path / "a.sqlite"))
    assert summary["ok"] is True
    torch = next(check for check in checks if check["name"] == "torch")
    assert importlib.metadata.version("torch") in str(torch["detail"])
    *tasks, summary = run(installed, tmp_path, "tasks", "list", "--json")
    assert summary["tasks"] == len(tasks) >= 24
    assert not list(tmp_path.glob("*.py"))


def test_it_gives_a_verdict(installed: Path, tmp_path: Path) -> None:
    candidate = tmp_path / "candidate.py"
    candidate.write_text(
        "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def __init__(self, wide, out):\n"
        "        super().__init__()\n        self.project = torch.nn.Linear(wide, out)\n\n"
        "    def forward(self, tokens):\n        return self.project(tokens.mean(dim=1))\n"
    )
    words = ["evaluate", "linear_mean_tokens", str(candidate), "--protocol", "screen", "--device", "cpu", "--json"]
    *_, summary = run(installed, tmp_path, *words, "--archive", str(tmp_path / "a.sqlite"))
    assert summary["outcome"] == "ACCEPTED"
