"""The figures that scripts rely on, under their names, from timings."""

from __future__ import annotations

from cuda_l1.types import Timing


def figures(eager: Timing | None, best_baseline: Timing | None) -> dict[str, float | None]:
    """`speedup_eager` and `speedup_best_baseline`, each with `_low` and `_high`: null at `screen` or unmeasured."""
    return {**_triple("speedup_eager", eager), **_triple("speedup_best_baseline", best_baseline)}


def _triple(name: str, timing: Timing | None) -> dict[str, float | None]:
    return {
        name: timing.speedup if timing else None,
        f"{name}_low": timing.speedup_low if timing else None,
        f"{name}_high": timing.speedup_high if timing else None,
    }
