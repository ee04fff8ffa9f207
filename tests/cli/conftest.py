"""Commands in process, with a stand-in where the evaluator would be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cli_fakes import REFERENCE, FakeEvaluator
from typer.testing import CliRunner, Result

import cuda_l1.evaluator


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs a command line in an empty folder with an empty archive."""
    from cuda_l1.cli.app import app

    monkeypatch.setattr(cuda_l1.evaluator, "Evaluator", FakeEvaluator)
    monkeypatch.setenv("CUDA_L1_ARCHIVE", str(tmp_path / "data" / "archive.sqlite"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    """A task's file."""
    path = tmp_path / "ref.py"
    path.write_text(REFERENCE)
    return path
