"""fusion on a CPU: nan, infinities and signed zeros come out of every operation as they do of PyTorch's own."""

from __future__ import annotations

import pytest
import torch
from graphs import Twins, candidate, check, make_task

SPECIAL = [float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 0.5, -0.5, 1.5, -1.5, 2.5, -3.0, 7.0, 30.0]

OPERATIONS = [
    *(f"x.{name}()" for name in (
        "abs", "neg", "exp", "exp2", "expm1", "log", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh", "erf",
        "erfc", "atan", "asin", "acos", "sinh", "cosh", "floor", "ceil", "trunc", "round", "sign", "sigmoid",
        "reciprocal", "relu", "square", "log2", "log10", "isnan", "isinf",
    )),
    *(f"F.{name}(x)" for name in (
        "relu6", "hardtanh", "leaky_relu", "elu", "celu", "selu", "softplus", "mish", "logsigmoid", "hardswish",
        "hardsigmoid", "softshrink", "hardshrink", "silu", "gelu",
    )),
    "F.gelu(x, approximate='tanh')", "F.threshold(x, 0.5, -2.0)", "F.threshold(x, -0.5, 0.0)", "F.elu(x, 0.5)",
    "F.softplus(x, 2.0, 1.0)", "F.hardtanh(x, -0.5, 0.5)", "F.leaky_relu(x, -0.5)", "x.clamp(-1, 1)", "x.clamp(1, -1)",
    "x.clamp(min=0)", "x.clamp(max=0)", "x.clamp(min=y)", "x.clamp(max=y)", "torch.maximum(x, y)",
    "torch.minimum(x, y)", "x + y", "x - y", "1 - x", "x * y", "x / y", "x.div(y, rounding_mode='trunc')",
    "torch.lerp(x, y, 0.3)", "torch.lerp(x, y, 0.7)", "x ** 2", "x ** 3", "x ** 4", "x ** 0.5", "x ** -0.5", "x ** -1",
    "x ** 1.7", "x ** y", "2 ** x", "x == y", "x != y", "x < y", "x <= y", "x > y", "x >= y", "x > 0", "x != 0",
    "torch.where(x > y, x, y)", "torch.where(x <= y, y, x)", "x.masked_fill(y > 0, -1)", "(x > y) & (y == y)",
    "(x > y).logical_not()", "x.to(torch.float16)", "x.to(torch.bfloat16)", "x.to(torch.float64)",
]  # fmt: skip


ANOTHER_WAY_IN_HALF = ("x ** 0.5", "x ** -0.5")
"""Square roots in every type and on a GPU, but in float16 on a CPU PyTorch calls `pow`, for which -inf is no error."""


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_special_values_as_in_pytorch(dtype: torch.dtype) -> None:
    """Each operation on each pair of special values, where PyTorch's own loops agree on nan and the sign of zero."""
    operations = [text for text in OPERATIONS if dtype != torch.float16 or text not in ANOTHER_WAY_IN_HALF]
    count = len(SPECIAL)
    made = f"torch.randn({count}, {count}).to({dtype})"
    task = make_task(f"x = -x\nreturn {', '.join(operations)}", f"{made}, {made}", args="x, y")
    twins = Twins(task, candidate(task, "fusion").source)
    values = torch.tensor(SPECIAL, dtype=dtype)
    x, y = (part.contiguous() for part in torch.broadcast_tensors(-values[:, None], values))
    with torch.no_grad():
        got, vectors = twins.model_new(x, y), twins.model(x, y)
        single = [twins.model(*pair) for pair in zip(x.reshape(-1, 1, 1), y.reshape(-1, 1, 1), strict=True)]
    scalars = [torch.cat(parts).view(count, count) for parts in zip(*single, strict=True)]
    assert not [text for text, *results in zip(operations, got, vectors, scalars, strict=True) if not _alike(*results)]


def _alike(got: torch.Tensor, vectors: torch.Tensor, scalars: torch.Tensor) -> bool:
    """Whether a result is of the kind of PyTorch's, which it computes in vectors and, in short tensors, in scalars."""
    assert got.dtype == vectors.dtype
    if not got.is_floating_point():
        return torch.equal(got, vectors)
    settled = vectors.isnan() == scalars.isnan()
    close = torch.isclose(got.double(), vectors.double(), rtol=5e-2, atol=5e-2, equal_nan=True)
    zeros = (vectors == 0) & (scalars == 0) & (vectors.signbit() == scalars.signbit())
    return bool(close[settled].all()) and torch.equal(got.signbit()[zeros], vectors.signbit()[zeros])


@pytest.mark.parametrize("dim", [0, 1])
def test_no_product_exceeds_its_maximum(dim: int) -> None:
    """As it would unrounded: by hundreds where it is large, of which exp() is infinite."""
    large = "torch.randn(24, 72) + 1e5, torch.randn(24, 1) + 1e5"
    check(make_task(f"return F.softmax(x * y, {dim}), torch.logsumexp(-x * y, {dim})", large, args="x, y"), "fusion")
