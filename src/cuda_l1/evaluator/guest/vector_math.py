"""MKL's vector functions, each called once before two threads can make its first call at the same time.

A function chooses its code in its first call. Where two threads make that together one of them can get code of lower
accuracy: on 64 x 128 numbers by two threads `exp` erred by 1e-4 in 3 of 3,000 new processes and `tanh` by 3e-5 in one,
after a call by one thread in none. An honest candidate was taken for one in lower precision.
"""

from __future__ import annotations

import torch

FUNCTIONS = (
    "acos",
    "asin",
    "atan",
    "cos",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "expm1",
    "log",
    "log10",
    "log1p",
    "log2",
    "rsqrt",
    "sin",
    "sqrt",
    "tan",
    "tanh",
)
FEW = 4
"""Elements: too few for a second thread."""


def call_once() -> None:
    """Call each of them by one thread."""
    for dtype in (torch.float32, torch.float64):
        values = torch.full((FEW,), 0.5, dtype=dtype)
        for name in FUNCTIONS:
            getattr(torch, name)(values)
