"""Reductions about the result of another one, that need no pass of their own behind it.

    Spread:        sum((x - mean)^2),  mean = sum(x) / n
    Exponentials:  sum(exp(x - peak)), peak = max(x)

Both are carried on about a centre of what was seen so far, and joined about the final one: Welford's method with the
formula of Chan, Golub and LeVeque (1979), and the softmax of Milakov and Gimelshein (2018). No digits are lost where
the centre is large, and nothing overflows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from cuda_l1.proposers.techniques.codegen.ir import Value


@dataclass(frozen=True)
class Companion:
    """What such a reduction is made of."""

    operand: Value
    beside: Value
    """The reduction of the same operand in whose pass it is carried out."""
    centre: Value
    """What follows from that one."""


class Spread(Companion):
    """The sum of squared deviations from the mean."""


class Exponentials(Companion):
    """The sum of exponentials of what is below the maximum."""


def companions_of(reduces: Iterable[Value]) -> dict[Value, Companion]:
    """Those of some reductions that go beside another one of them."""
    among = list(reduces)
    found = ((value, _spread(value) or _exponentials(value)) for value in among)
    return {value: companion for value, companion in found if companion is not None and companion.beside in among}


def _spread(value: Value) -> Spread | None:
    square = value.args[0]
    if value.attrs["kind"] != "sum" or square.op != "mul" or square.args[0] is not square.args[1]:
        return None
    centred = square.args[0]
    if centred.op != "sub" or centred.args[1].op != "mul":
        return None
    operand, mean = centred.args
    total, share = mean.args
    if not _reduces(total, "sum", operand, value) or share.op != "const":
        return None
    count = math.prod(operand.shape[dim] for dim in value.attrs["dims"])
    return Spread(operand, total, mean) if share.attrs["value"] == 1.0 / count else None


def _exponentials(value: Value) -> Exponentials | None:
    power = value.args[0]
    if value.attrs["kind"] != "sum" or power.op != "exp" or power.args[0].op != "sub":
        return None
    operand, peak = power.args[0].args
    return Exponentials(operand, peak, peak) if _reduces(peak, "max", operand, value) else None


def _reduces(value: Value, kind: str, operand: Value, like: Value) -> bool:
    """Whether a value is the reduction of `operand` over the same dimensions as another one."""
    is_one = value.op == "reduce" and value.attrs["kind"] == kind
    return is_one and value.args[0] is operand and value.attrs["dims"] == like.attrs["dims"]
