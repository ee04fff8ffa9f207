"""Sums of exponentials about a maximum, sum(exp(x - max(x))), which need no pass of their own behind it.

Such a sum is carried on about the maximum of what was seen so far, and rescaled where that grows; sums of several
groups of elements are joined about the largest one (Milakov and Gimelshein, "Online normalizer calculation for
softmax", 2018).
"""

from __future__ import annotations

from collections.abc import Iterable

from cuda_l1.proposers.techniques.codegen.ir import Value


def peaks_of(reduces: Iterable[Value]) -> dict[Value, Value]:
    """Of some reductions those that are such sums, and the maximum of each, which is one of them, too."""
    among = list(reduces)
    found = {value: peak for value in among if (peak := _peak(value)) is not None}
    return {value: peak for value, peak in found.items() if peak in among}


def _peak(value: Value) -> Value | None:
    power = value.args[0]
    if value.attrs["kind"] != "sum" or power.op != "exp" or power.args[0].op != "sub":
        return None
    operand, peak = power.args[0].args
    is_maximum = peak.op == "reduce" and peak.attrs["kind"] == "max" and peak.args[0] is operand
    return peak if is_maximum and peak.attrs["dims"] == value.attrs["dims"] else None
