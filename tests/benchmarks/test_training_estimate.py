"""The table of what a node of eight GPUs needs: printed by the script, and in the documentation as it is printed."""

from __future__ import annotations

from pathlib import Path

import training_estimate
from cuda_l1.training.recipe import load_recipe

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "recipes" / "node8-7b.toml"


def hours(*overrides: str) -> tuple[float, float]:
    """One after the other, and with judging beside the rest."""
    values = [each.value for each in training_estimate.figures(load_recipe(RECIPE, overrides))[-2:]]
    return float(values[0].removesuffix(" h")), float(values[1].removesuffix(" h"))


def test_the_page_shows_what_the_script_prints() -> None:
    page = (ROOT / "docs" / "training.md").read_text()
    shown = page.partition("<!-- benchmarks/training_estimate.py -->\n")[2].partition("<!-- end -->")[0]
    assert shown == training_estimate.table(load_recipe(RECIPE))


def test_the_estimate_follows_the_recipe() -> None:
    plain, ahead = hours()
    assert ahead < plain
    assert hours("contrastive.rounds=100")[0] < 0.6 * plain
    assert hours("contrastive.prompts=32")[0] > 1.8 * plain
    assert hours("evaluation.device='cuda:7'")[0] > plain
