"""An archive, a small data set on disk and a recipe over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from training_fakes import row, write_rows

from cuda_l1.archive import Archive
from cuda_l1.search import verdicts
from cuda_l1.training.recipe import Recipe, recipe_from


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "RETRY_PAUSE_S", 0.0)


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive.open(tmp_path / "archive.sqlite") as opened:
        yield opened


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = [row(n, task=f"t{n // 2}", speedup=1 + n / 4, split="validation" if n > 3 else "train") for n in range(6)]
    return write_rows(tmp_path / "rows", rows)


@pytest.fixture
def recipe(data: Path) -> Callable[..., Recipe]:
    """A recipe of a run in the folder that is given, with other values for some sections."""

    def make(folder: Path, **sections: Any) -> Recipe:
        small = {"vocabulary": 400, "hidden": 32, "intermediate": 64, "layers": 1, "heads": 2, "key_value_heads": 1}
        base: dict[str, Any] = {
            "model": {**small, "context": 1024},
            "data": {"examples": [str(data)]},
            "prompt": {"kind": "compact", "language": "pytorch"},
            "sft": {"steps": 6, "batch": 4, "max_length": 1024, "packing": False, "checkpoint_every": 3,
                    "learning_rate": 1e-2},
            "generation": {"max_new_tokens": 8},
            "run": {"device": "cpu", "samples": 1},
        }  # fmt: skip
        merged = {name: {**base.get(name, {}), **sections.get(name, {})} for name in base.keys() | sections.keys()}
        return recipe_from({"run_dir": str(folder), **merged}, "test")

    return make
