"""Precision classes: what a candidate's error may be in one trial.

The largest error of an element:

fp32     at most 16 times the larger of eager-fp32's error and the unit roundoff (4 times for fp16/bf16 outputs, and
         for what is computed in these and then cast)
tf32     at most the larger of that and 4 times the error of the reference with TF32 on everywhere, by the library or by
         rounding operands, whichever errs more
relaxed  at most the larger of 2e-2 and 4 times the error under bf16 autocast, never above 1e-1
Integer, boolean and index outputs are equal, and so is what the reference computes without any error (copies, ReLU).

One noisy or one large element must not excuse the others. Save for `relaxed`, the error that nine of ten elements stay
below is held against the reference's in the same way, and no slice along a dimension may be lost beside larger ones:
wrong by a tenth of its own largest value where the reference in the same arithmetic errs by less than 1e-3 of it, or by
2e-3 where that errs by less than 2e-6; `LOST_IN` for half precision. Elements beyond an edge do not count where the
reference lies there, too, when its inputs and weights are moved.

In trials that may make the answers small one may also err by `ROUNDING` float32 roundoffs of an ordinary answer:
exp(x) - 1 for ELU and 2 sigmoid(2 x) - 1 for tanh lose that much by cancellation, and no caller sees it.

The reference's own error is one draw of what rounding does, and where a task magnifies rounding (a softmax of large
scores) it may be a lucky one. An answer that misses its class by little is therefore held against more draws: what the
reference errs when its inputs are a roundoff off (one of bfloat16 for `relaxed`) or images lie channels-last, or its
operands are rounded otherwise (docs/adr/0045).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

LOST = ((0.1, 1e-3), (2e-3, 2e-6))
"""An error of a slice, and that of the reference below which it is one."""
LOST_IN = {torch.bfloat16: ((0.3, 0.03),), torch.float16: ((0.1, 5e-3),)}
"""The same for answers that are rounded to these: rounding alone errs by up to 4e-3 and 5e-4."""
OWN = {torch.bfloat16: "bf16", torch.float16: "fp16"}
RELAXED_FLOOR, RELAXED_CEILING = 2e-2, 1e-1
"""The bound of `relaxed` is never below the first and never above the second, whatever the reference errs."""
ROUNDING = 8
"""float32 roundoffs of an ordinary answer by which a small one may err, see above."""

_ORDER = ("exact", "fp32", "bf16", "fp16", "tf32", "relaxed")


def least_exact(names: Sequence[str | None]) -> str | None:
    """The class of a candidate from those of its trials; None where it failed one, or had none."""
    passed = [name for name in names if name is not None]
    return max(passed, key=_ORDER.index) if passed and len(passed) == len(names) else None


def unit_roundoff(dtype: torch.dtype) -> float:
    """Half the distance from 1 to the next number: 2^-24 for float32."""
    return torch.finfo(dtype).eps / 2


def multiple(dtype: torch.dtype) -> int:
    """How many times the noise floor an answer of this dtype may err, and how many times as often as the reference's it
    may lie on the other side of an edge: the more it errs before it rounds, the more of its elements do."""
    return 4 if dtype in OWN else 16


def own_class(dtypes: Sequence[torch.dtype]) -> str:
    """The exactest class that answers of these dtypes can have: `fp32`, `bf16`, `fp16`, or `exact` for integers."""
    floating = [dtype for dtype in dtypes if dtype.is_floating_point or dtype.is_complex]
    if not floating:
        return "exact"
    return OWN.get(floating[0], "fp32") if all(d in OWN for d in floating) else "fp32"


@dataclass(frozen=True)
class Halved:
    """What is known of a tensor of an answer that is computed in half precision and has a wider dtype."""

    dtype: torch.dtype
    """That in which it is computed."""
    worst: float
    bulk: float
    """The largest errors of the reference in some draws: of a loss, a single number, one draw may show next to none. No
    less than its unit roundoff where the answer is a cast alone."""


@dataclass(frozen=True)
class Errors:
    """How far an answer lies from truth, tensor by tensor."""

    worst: list[float]
    """The largest error of an element."""
    bulk: list[float]
    """The error that nine of ten elements stay below."""
    slices: list[torch.Tensor]
    """The errors of slices against their own size, see `oracle.slice_errors`."""

    def lost_slices(self, own: Errors, dtypes: Sequence[torch.dtype]) -> int:
        """How many slices are lost where those of `own`, errors of the reference, are not, in answers of `dtypes`."""
        trios = zip(self.slices, own.slices, dtypes, strict=True)
        return sum(
            int(((mine > lost) & (theirs < kept)).sum())
            for mine, theirs, dtype in trios
            for lost, kept in LOST_IN.get(dtype, LOST)
        )

    def or_larger(self, other: Errors) -> Errors:
        """Of each figure the larger one of both."""
        worst = [max(pair) for pair in zip(self.worst, other.worst, strict=True)]
        bulk = [max(pair) for pair in zip(self.bulk, other.bulk, strict=True)]
        slices = [torch.maximum(mine, theirs) for mine, theirs in zip(self.slices, other.slices, strict=True)]
        return Errors(worst, bulk, slices)
