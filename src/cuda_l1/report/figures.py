"""The figures that scripts rely on, under their names, from timings."""

from __future__ import annotations

from cuda_l1.ratios import within_floats
from cuda_l1.report.cells import Ratio
from cuda_l1.types import Timing


def figures(eager: Timing | None, best_baseline: Timing | None) -> dict[str, float | None]:
    """`speedup_eager` and `speedup_best_baseline`, each with `_low` and `_high`: null at `screen` or unmeasured."""
    return {
        **ratio_fields("speedup_eager", ratio_of(eager) if eager else None),
        **ratio_fields("speedup_best_baseline", ratio_of(best_baseline) if best_baseline else None),
    }


def ratio_of(timing: Timing) -> Ratio:
    """A timing's figure."""
    low, high = (None if bound is None else within_floats(bound) for bound in (timing.speedup_low, timing.speedup_high))
    return Ratio(within_floats(timing.speedup), low, high)


def ratio_fields(name: str, ratio: Ratio | None) -> dict[str, float | None]:
    """A figure as `NAME`, `NAME_low` and `NAME_high`."""
    return {
        name: ratio.value if ratio else None,
        f"{name}_low": ratio.low if ratio else None,
        f"{name}_high": ratio.high if ratio else None,
    }
