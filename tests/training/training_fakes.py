"""Rows as `collect` stores them, made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_l1.training import examples
from cuda_l1.training.examples import Row
from cuda_l1.training.recipe import Recipe

FRAME = "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return {}\n"
REFERENCE = FRAME.format("x + 1")
REFERENCES = {"train": REFERENCE, "validation": FRAME.format("x.sin() + 1"), "held-out": FRAME.format("x.tanh() + 1")}
"""By the split that their graphs are in."""


def row(number: int, *, task: str = "t", speedup: float = 1.0, device: str = "Test CPU", split: str = "train") -> Row:
    """The `number`-th variant of a task."""
    code = f"class ModelNew(Model):\n    def forward(self, x):\n        return x.add({number}).sub({number - 1})\n"
    return Row(
        split=split,
        task_id="synth/0/1@abc",
        task_sha=task,
        suite="synth",
        reference=REFERENCES[split],
        variant=f"{REFERENCES[split]}\n\n{code}",
        candidate_id=f"c{number}",
        by="techniques",
        techniques=["in_place"],
        rationale="It adds in place",
        speedup_eager=speedup,
        device_name=device,
        licence="MIT",
        overlaps=None,
    )


def write_rows(folder: Path, rows: list[Row]) -> Path:
    """A data set as `collect` writes it, in so far as training reads it."""
    pytest.importorskip("pyarrow", reason="a data set is parquet")
    examples.write_rows(folder / "data" / "train-00000-of-00001.parquet", rows)
    return folder


def made_policy(recipe: Recipe, folder: Path) -> Path:
    """A policy of random weights, of a recipe's sizes, with a tokenizer that has read next to nothing."""
    from cuda_l1.training.policy_model import make_policy, train_tokenizer

    return make_policy(recipe, train_tokenizer(["x = 1\n"], recipe.model.vocabulary, recipe.model.context), folder)
