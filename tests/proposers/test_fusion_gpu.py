"""fusion on an NVIDIA GPU: the Triton kernels against float64, for every kind of operation and every kind of tile."""

from __future__ import annotations

import copy
import importlib.util
import itertools
from pathlib import Path
from types import ModuleType

import pytest
import torch
from graphs import make_task
from test_fusion import CHAINS, MOVES, ROWS, SPECIAL

from cuda_l1.proposers.techniques import build

pytestmark = pytest.mark.gpu

LARGE = [
    ("F.softmax(x, -1) * y", "torch.randn(1024, 4096), torch.randn(4096)"),
    ("F.softmax(x, -1) * y", "torch.randn(512, 40000), torch.randn(40000)"),
    ("F.softmax(x, -1) * y", "torch.randn(16, 300000), torch.randn(300000)"),
    ("F.softmax(x, 1) * y", "torch.randn(16, 512, 1024), torch.randn(1024)"),
    ("(x * y).sum(0), (x + y).amax(0)", "torch.randn(65536, 128), torch.randn(128)"),
    ("x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-6) * y", "torch.randn(8, 64, 256, 64), torch.randn(64)"),
    ("F.layer_norm(x, (64, 64, 64)) + y", "torch.randn(16, 64, 64, 64), torch.randn(64)"),
    ("F.group_norm(x, 8) * y", "torch.randn(16, 64, 64, 64), torch.randn(64)"),
    ("F.layer_norm(x + 100, (20001,)) + y", "torch.randn(512, 20001), torch.randn(20001)"),
    ("F.layer_norm(x * 9 - 100, (300001,)) + y", "torch.randn(16, 300001), torch.randn(300001)"),
    ("F.instance_norm(x * y)", "torch.randn(32, 40, 160, 160), torch.randn(160)"),
    ("x.var(-1), y + 1", "torch.randn(8, 70000, dtype=torch.float64), torch.randn(8)"),
    ("(x - x.mean(0)) * x.std(0) + y", "torch.randn(70000, 24), torch.randn(24)"),
    ("F.mse_loss(x, y)", "torch.randn(2048, 2048), torch.randn(2048, 2048)"),
    ("F.cross_entropy(x, y)", "torch.randn(256, 32000), torch.randint(0, 32000, (256,))"),
    ("F.silu(x) * y", "torch.randn(2048, 2048).bfloat16(), torch.randn(2048, 2048).bfloat16()"),
    ("torch.cumsum(x * y, -1)", "torch.randn(256, 4096), torch.randn(4096)"),
    ("torch.cumsum(x * y, -1)", "torch.randn(64, 40000), torch.randn(40000)"),
    ("F.batch_norm(x, None, None, training=True).relu() + y", "torch.randn(64, 64, 32, 32), torch.randn(32)"),
]  # fmt: skip

OVER_TIME = """
state, top, states = torch.zeros_like(x[:, 0]), x[:, 0], []
for step in range(x.shape[1]):
    state = torch.sigmoid(y) * state + x[:, step]
    top = torch.maximum(top, state)
    states.append(top - 0.5 * state)
return torch.stack(states, dim=1), state"""
RECURRENCES = [
    (OVER_TIME, "torch.randn(8, 70, 512), torch.randn(512)"),
    (OVER_TIME, "torch.randn(64, 70, 4096), torch.randn(4096)"),
    (OVER_TIME, "torch.randn(8, 70, 500).bfloat16(), torch.randn(500).bfloat16()"),
]
"""Steps that a kernel takes in a loop."""


def _module(source: str, folder: Path) -> ModuleType:
    """Triton reads the text of its kernels from a file."""
    path = folder / "generated.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("generated", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _pair(body: str, inputs: str, folder: Path) -> tuple[ModuleType, torch.nn.Module, torch.nn.Module]:
    text = body if "return" in body else f"return {body}"
    built = build(make_task(text, inputs, args="x, y"), ["fusion"], "cuda")
    assert built is not None
    module = _module(built.source, folder)
    return module, module.Model().cuda(), module.ModelNew().cuda()


def _error(value: torch.Tensor, truth: torch.Tensor) -> float:
    assert torch.equal(value.isfinite(), truth.to(value.dtype).isfinite())
    finite = truth.isfinite() & value.isfinite()
    if not finite.any():
        return 0.0
    right, found = truth.double()[finite], value.double()[finite]
    scale = (right.abs() + right.square().mean().sqrt()).clamp_min(1e-300)
    return float(((found - right).abs() / scale).max())


@pytest.mark.parametrize(("body", "inputs"), CHAINS + ROWS + MOVES + LARGE + RECURRENCES)
def test_matches_float64(body: str, inputs: str, tmp_path: Path) -> None:
    module, model, model_new = _pair(body, inputs, tmp_path)
    if body == OVER_TIME:
        assert "for turn in range(" in Path(str(module.__file__)).read_text()
    torch.manual_seed(1)
    given = [value.cuda() for value in module.get_inputs()]
    with torch.no_grad():
        expected, got = model(*given), model_new(*given)
        truth = copy.deepcopy(model).double()(*(v.double() if v.is_floating_point() else v for v in given))
    for one, two, right in itertools.zip_longest(*map(_leaves, (got, expected, truth))):
        assert (one.shape, one.dtype) == (two.shape, two.dtype)
        if not one.is_floating_point():
            assert torch.equal(one, two)
            continue
        half = one.dtype in (torch.bfloat16, torch.float16)
        allowed = (4 if half else 16) * max(_error(two, right), torch.finfo(one.dtype).eps / 2)
        assert _error(one, right) <= allowed


def _leaves(value: object) -> list[torch.Tensor]:
    return list(value) if isinstance(value, (tuple, list)) else [value]  # type: ignore[list-item]


@pytest.mark.parametrize(
    "body",
    ["F.gelu(x) + y", "F.silu(x) + y", "torch.tanh(x) * y", "F.softplus(x) + y", "F.relu(x) * y", "x.exp() * y",
     "torch.log(x) + y", "F.softmax(x, -1) * y", "x.amax(-1) * 2, y + 1", "x.mean(-1) + 1, y + 1", "x.erf() * y",
     "x.clamp(-1, 1) + y", "torch.sin(x) + y", "torch.logsumexp(x, -1), y + 1", "torch.expm1(x) * y",
     "x.round() + x.floor() - x.ceil() + y"],
)  # fmt: skip
def test_special_values(body: str, tmp_path: Path) -> None:
    _, model, model_new = _pair(body, "torch.randn(16, 16), torch.ones(16)", tmp_path)
    torch.manual_seed(0)
    x, y = torch.randn(16, 16), torch.ones(16)
    for row, value in enumerate(SPECIAL):
        x[row, row] = value
    if "ceil" in body:  # Triton's mathematical functions take a denormal for zero, as in Inductor's kernels
        x[x.abs() < torch.finfo(torch.float32).tiny] = 0.0
    with torch.no_grad():
        truth, got = model.double()(x.cuda().double(), y.cuda().double()), model_new(x.cuda(), y.cuda())
    for one, right in zip(_leaves(got), _leaves(truth), strict=True):
        torch.testing.assert_close(one, right.float(), rtol=1e-5, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("length", [40000, 300000])
@pytest.mark.parametrize("body", ["F.softmax(x, -1) * y", "F.layer_norm(x, (x.shape[-1],)) * y"])
def test_special_values_in_long_rows(body: str, length: int, tmp_path: Path) -> None:
    """Of 512 rows, one program each, and of 8 that many programs share."""
    rows = 512 if length == 40000 else 8
    _, model, model_new = _pair(body, f"torch.randn({rows}, {length}), torch.ones({length})", tmp_path)
    x, y = torch.randn(rows, length).cuda(), torch.ones(length).cuda()
    for row, value in enumerate((torch.inf, -torch.inf, torch.nan)):
        x[row, 4100], x[row + 3, 9000:] = value, value
    x[6] = -torch.inf
    with torch.no_grad():
        torch.testing.assert_close(model_new(x, y), model(x, y), rtol=1e-4, atol=1e-5, equal_nan=True)


def test_strides_and_offsets(tmp_path: Path) -> None:
    _, model, model_new = _pair("F.softmax(x * 2, -1) + y", "torch.randn(33, 40), torch.randn(40)", tmp_path)
    base, bias = torch.randn(33 * 40 + 8).cuda(), torch.randn(48).cuda()
    x, y = base[3 : 3 + 33 * 40].view(33, 40), bias[1:41]
    with torch.no_grad():
        torch.testing.assert_close(model_new(x, y), model(x, y))
        torch.testing.assert_close(model_new(x.t().contiguous().t(), y), model(x, y))
