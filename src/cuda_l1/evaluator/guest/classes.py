"""Precision classes: what a candidate's error may be in one trial.

fp32     at most 16 times the larger of eager-fp32's error and the unit roundoff (4 times for fp16/bf16 outputs)
tf32     at most the larger of that and 4 times the error of the reference with TF32 on everywhere
relaxed  at most the larger of 2e-2 and 4 times the error under bf16 autocast, never above 1e-1
Integer, boolean and index outputs are equal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from . import oracle
from .reference import Answer, BadTask, Reference
from .trials import Inputs, Plan

OWN = {torch.bfloat16: "bf16", torch.float16: "fp16"}
RELAXED_FLOOR, RELAXED_CEILING = 2e-2, 1e-1


def unit_roundoff(dtype: torch.dtype) -> float:
    """Half the distance from 1 to the next number: 2^-24 for float32."""
    return torch.finfo(dtype).eps / 2


def multiple(dtype: torch.dtype) -> int:
    """How many times the noise floor an answer of this dtype may err."""
    return 4 if dtype in OWN else 16


def _rounds_to_other(answer: torch.Tensor, truth: torch.Tensor) -> bool:
    """Whether an answer of integers differs from truth: what was rounded or selected lay on the edge."""
    exact = not (answer.is_floating_point() or answer.is_complex())
    return exact and not torch.equal(answer, truth.to(answer.dtype))


def own_class(tensors: list[torch.Tensor]) -> str:
    """The exactest class that answers of these dtypes can have: `fp32`, `bf16`, `fp16`, or `exact` for integers."""
    floating = [t.dtype for t in tensors if t.is_floating_point() or t.is_complex()]
    if not floating:
        return "exact"
    return OWN.get(floating[0], "fp32") if all(d in OWN for d in floating) else "fp32"


@dataclass
class Case:
    """One trial with its truth: the yardstick for any answer to it."""

    reference: Reference
    plan: Plan
    inputs: Inputs
    weights: Mapping[str, torch.Tensor]
    seed: int
    jumpy: bool
    """The task is known to jump (rounding, argmax, routing)."""
    truth: Answer = field(init=False)
    noise: Answer = field(init=False)
    jumps: list[oracle.Jumps | None] = field(init=False)
    noise_errors: list[float] = field(init=False)
    _bounds: dict[str, list[float]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.truth = self.reference.truth(self.inputs, self.weights, self.seed)
        self.noise = self.reference.call(self.inputs, self.weights, "plain", self.seed)
        pairs = list(zip(self.noise.tensors, self.truth.tensors, strict=True))
        self.jumps = [oracle.find_jumps(a, t) if self.jumpy or _rounds_to_other(a, t) else None for a, t in pairs]
        self.noise_errors = [
            oracle.max_error(a, t, j.mask if j else None) for (a, t), j in zip(pairs, self.jumps, strict=True)
        ]

    @property
    def own(self) -> str:
        return own_class(self.noise.tensors)

    @property
    def reference_error(self) -> float:
        return max(self.noise_errors, default=0.0)

    @property
    def sound(self) -> bool:
        """Whether this trial counts: truth is finite somewhere and the reference itself passes."""
        finite = all(bool(torch.isfinite(t).all()) for t in self.truth.tensors if t.is_floating_point())
        return finite and self.reference_error <= 1e-2

    def bounds(self, name: str) -> list[float]:
        """Per tensor, the largest error that class `name` allows."""
        if name not in self._bounds:
            self._bounds[name] = self._compute(name)
        return self._bounds[name]

    def _compute(self, name: str) -> list[float]:
        if name in ("tf32", "relaxed"):
            base = self.bounds(self.own)
            errors = self._errors_under("tf32" if name == "tf32" else "autocast")
            if name == "tf32":
                return [max(b, 4 * e) for b, e in zip(base, errors, strict=True)]
            return [
                max(b, min(RELAXED_CEILING, max(RELAXED_FLOOR, 4 * e if math.isfinite(e) else 0.0)))
                for b, e in zip(base, errors, strict=True)
            ]
        return [
            multiple(a.dtype) * max(e, unit_roundoff(a.dtype)) if a.is_floating_point() or a.is_complex() else 0.0
            for a, e in zip(self.noise.tensors, self.noise_errors, strict=True)
        ]

    def _errors_under(self, how: str) -> list[float]:
        """Errors of the reference under reduced precision; zeros where it does not run there at all."""
        try:
            return self.errors(self.reference.call(self.inputs, self.weights, how, self.seed))
        except BadTask:
            return [0.0] * len(self.truth.tensors)

    def errors(self, answer: Answer) -> list[float]:
        """Error per tensor; isolated jumps are left out while there are at most twice the reference's plus 3."""
        result = []
        for got, truth, jumps in zip(answer.tensors, self.truth.tensors, self.jumps, strict=True):
            mask = None
            if jumps is not None:
                own = oracle.find_jumps(got, truth)
                allowed = own.count <= 2 * jumps.count + 3
                mask = jumps.mask | own.mask if allowed else jumps.mask
            result.append(oracle.max_error(got, truth, mask))
        return result

    def passes(self, errors: list[float], name: str) -> bool:
        """Whether every tensor's error is within class `name`."""
        return all(e <= b for e, b in zip(errors, self.bounds(name), strict=True))

    def best_class(self, errors: list[float], *, relaxed: bool) -> str | None:
        """The exactest class whose bound holds; `relaxed` only where the task allows it."""
        order = [self.own]
        if self.own == "fp32":
            order.append("tf32")
        if relaxed and self.own != "exact":
            order.append("relaxed")
        return next((name for name in order if self.passes(errors, name)), None)
