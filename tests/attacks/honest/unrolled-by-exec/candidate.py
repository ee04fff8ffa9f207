"""Horner's scheme, unrolled: the text of a function for this degree is made by the constructor and executed in a
namespace of its own. `linecache` gets the text, so that a traceback shows the line."""

import linecache
from collections.abc import Callable

import torch
import torch.nn as nn

Function = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def unrolled(degree: int) -> Function:
    """`f(x, coefficients)` without a loop."""
    lines = ["def horner(x, coefficients):"]
    lines.append(f"    {', '.join(f'c{power}' for power in range(degree + 1))}, = coefficients.unbind()")
    lines.append(f"    y = x.mul(c{degree}).add_(c{degree - 1})")
    lines += [f"    y.mul_(x).add_(c{power})" for power in range(degree - 2, -1, -1)]
    lines.append("    return y")
    text, name = "\n".join(lines) + "\n", f"<horner of degree {degree}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space: dict[str, Function] = {}
    exec(compile(text, name, "exec"), {}, space)
    return space["horner"]


class ModelNew(nn.Module):
    def __init__(self, degree: int) -> None:
        super().__init__()
        self.coefficients = nn.Parameter(torch.randn(degree + 1) / 4)
        self.horner = unrolled(degree)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.horner(torch.tanh(x), self.coefficients)
