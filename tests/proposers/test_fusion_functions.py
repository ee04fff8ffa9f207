"""Elementary functions and conversions of the generated C++, against double precision."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from cuda_l1.prelude.cpp_loader import LOADER
from cuda_l1.prelude.cpp_vectors import header

FUNCTIONS = {
    "exp": torch.exp, "exp2": torch.exp2, "expm1": torch.expm1, "log": torch.log, "log1p": torch.log1p,
    "tanh": torch.tanh, "sigmoid": torch.sigmoid, "erf": torch.erf, "sin": torch.sin, "cos": torch.cos,
    "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "round": torch.round, "floor": torch.floor, "ceil": torch.ceil,
    "trunc": torch.trunc, "reciprocal": torch.reciprocal,
}  # fmt: skip
MOST_ULPS = 3.0
COUNT = 1 << 14

_EACH = """
extern "C" void run_{0}(const f32* x, f32* y) {{
  for (i64 i = 0; i < 16384; i += W) store<W>(y + i, v{0}(load<W>(x + i)));
}}
"""
_CONVERT = """
extern "C" void to_{0}(const f32* x, {0}* y) {{
  for (i64 i = 0; i < 16384; i += W) store<W>(y + i, load<W>(x + i));
}}
extern "C" void from_{0}(const {0}* x, f32* y) {{
  for (i64 i = 0; i < 65536; i += W) store<W>(y + i, load<W>(x + i));
}}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    text = header(4) + "".join(_EACH.format(name) for name in FUNCTIONS)
    text += "".join(_CONVERT.format(kind) for kind in ("bf16", "f16"))
    scope: dict[str, Any] = {"torch": torch}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path_factory.mktemp("cpp")))
        exec(LOADER, scope)
        yield scope["compile_cpp"](text)


def _inputs() -> torch.Tensor:
    """Ordinary, large, tiny and special values of both signs."""
    torch.manual_seed(0)
    size = COUNT // 4
    spread = torch.exp(8 * torch.randn(size))
    x = torch.cat([torch.randn(size), 30 * torch.randn(size), spread, -torch.exp(8 * torch.randn(size))])
    special = [0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1e-40, 3e38, -3e38, 88.7, 88.8, -103.0, -104.5]
    x[: len(special)] = torch.tensor(special)
    return x


def _call(function: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    function(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()))
    return y


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_within_a_few_units_in_the_last_place(library: Any, name: str) -> None:
    x = _inputs()
    got = _call(getattr(library, f"run_{name}"), x, torch.empty_like(x))
    truth = FUNCTIONS[name](x.double())
    nearest = truth.float()
    assert torch.equal(got.isnan(), nearest.isnan())
    infinite = nearest.isinf() | got.isinf()
    assert torch.equal(got[infinite & ~got.isnan()], nearest[infinite & ~nearest.isnan()])
    normal = nearest.isfinite() & (nearest.abs() > 1e-37)
    unit = torch.exp2(torch.floor(torch.log2(nearest[normal].double().abs())) - 23)
    assert ((got[normal].double() - truth[normal]).abs() / unit).max() <= MOST_ULPS
    assert got[nearest.isfinite() & ~normal].abs().max() <= 2e-37 if (nearest.isfinite() & ~normal).any() else True


@pytest.mark.parametrize(("kind", "dtype"), [("bf16", torch.bfloat16), ("f16", torch.float16)])
def test_half_precision_is_stored_and_loaded_as_pytorch_does(library: Any, kind: str, dtype: torch.dtype) -> None:
    x = _inputs()
    got = _call(getattr(library, f"to_{kind}"), x, torch.empty(COUNT, dtype=dtype))
    torch.testing.assert_close(got, x.to(dtype), rtol=0, atol=0, equal_nan=True)
    every = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(dtype)
    back = _call(getattr(library, f"from_{kind}"), every, torch.empty(65536))
    torch.testing.assert_close(back, every.float(), rtol=0, atol=0, equal_nan=True)
