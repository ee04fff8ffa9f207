"""Which precision class may stand for which, and what is said of one that may not."""

from __future__ import annotations

from cuda_l1.config import Precision
from cuda_l1.types import Correctness, PrecisionClass

# A result counts for a task when its class is at least as exact; own dtype stands first for half-precision tasks.
_EXACTNESS: dict[PrecisionClass, int] = {"exact": 0, "fp32": 1, "bf16": 1, "fp16": 1, "tf32": 2, "relaxed": 3}


def at_least_as_exact(got: PrecisionClass, wanted: PrecisionClass) -> bool:
    """Whether class `got` may stand where `wanted` is asked for; fp32 and tf32 mean own dtype on half tasks."""
    return wanted != "exact" if got in ("bf16", "fp16") else _EXACTNESS[got] <= _EXACTNESS[wanted]


def least_exact(precision: Precision, task_class: PrecisionClass) -> PrecisionClass:
    """`--precision` to a class: `default` is the task's own; on half tasks fp32 and tf32 mean own dtype."""
    if precision == "default" or (task_class in ("bf16", "fp16", "exact") and precision in ("fp32", "tf32")):
        return task_class
    return precision


def less_exact(found: Correctness) -> str:
    """That a class is less exact than asked for, and the first trial that gave it. Not every one is for the largest
    error: most elements, or small parts, may err by too much."""
    said = f"class {found.precision_class} is less exact than asked for"
    trial = next((one for one in found.trials if one.passed_class == found.precision_class), None)
    if trial is None or trial.error is None or trial.reference_error is None:
        return said if trial is None else f"{said} (trial `{trial.kind}`)"
    most = "" if trial.error > trial.bound else ", most elements or small parts by too much"
    return (
        f"{said} (trial `{trial.kind}`: errs by {trial.error:.1e}{most}; the reference by {trial.reference_error:.1e})"
    )
