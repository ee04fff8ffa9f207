"""Other arithmetics compute the same function, and the table says which of them are recognised."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import precision_classes
from arithmetics import Reordered, Rounded, ThreeProducts, backwards, compensated, in_lanes, kahan, truncated_to_tf32
from cuda_l1.errors import UsageError
from cuda_l1.evaluator.guest.arithmetic import round_to_tf32
from precision_classes import KIND, KINDS, is_right, judged, report, sources

X = torch.randn(8, 300, generator=torch.Generator().manual_seed(3))
W = torch.randn(40, 300, generator=torch.Generator().manual_seed(4))
IMAGE = torch.randn(2, 12, 9, 9, generator=torch.Generator().manual_seed(5))
KERNEL = torch.randn(12, 12, 3, 3, generator=torch.Generator().manual_seed(6))
FUNCTIONS = {
    "linear": lambda x: F.linear(x, W.to(x.dtype), torch.ones(40, dtype=x.dtype)),
    "matmul": lambda x: x @ W.t().to(x.dtype),
    "sum": lambda x: x.sum(-1, keepdim=True),
    "mean-of-all": lambda x: x.mean(),
    "softmax": lambda x: torch.softmax(x, 0),
    "layer-norm": lambda x: F.layer_norm(x, (300,), torch.full((300,), 2.0, dtype=x.dtype)),
    "conv": lambda x: F.conv2d(IMAGE.to(x.dtype), KERNEL.to(x.dtype), x[0, :12], padding=1),
    "conv-transpose": lambda x: F.conv_transpose2d(IMAGE.to(x.dtype), KERNEL.to(x.dtype), stride=2),
    "conv-groups": lambda x: F.conv2d(IMAGE.to(x.dtype), KERNEL[:, :1].to(x.dtype), groups=12),
}
MODES = {
    "reordered": lambda: Reordered(backwards, in_lanes),
    "kahan": lambda: Reordered(compensated, kahan),
    "3xTF32": ThreeProducts,
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_other_orders_compute_the_same(function, mode):
    call = FUNCTIONS[function]
    with MODES[mode]():
        made = call(X)
    truth = call(X.double())
    assert made.shape == truth.shape and made.dtype is torch.float32
    assert float((made - truth).abs().max()) < 3e-6 * float(truth.abs().max())


def test_compensated_sums_err_less():
    x = torch.rand(3, 20_000) + 1
    truth, one_lane = x.double().sum(-1), functools.reduce(torch.add, x.unbind(-1))
    assert float(((kahan(x) - truth) / truth).abs().max()) < 2.0**-23
    assert float(((one_lane - truth) / truth).abs().max()) > float(((kahan(x) - truth) / truth).abs().max())


def test_rounded_operands_err_as_their_mantissa_does():
    truth, errors = X.double() @ W.double().t(), []
    for cast in (round_to_tf32, truncated_to_tf32, torch.Tensor.bfloat16):
        with Rounded(cast):
            errors.append(float((X @ W.t() - truth).abs().max()))
    assert 1e-4 < errors[0] < errors[1] < errors[2] and errors[2] > 4 * errors[0]


def test_what_is_due_depends_on_the_task():
    assert is_right("fp32", "fp32", "fp32") and not is_right("fp32", "tf32", "fp32")
    assert is_right("own", "bf16", "bf16") and is_right("tf32", None, "exact")
    assert is_right("relaxed or refused", None, "fp32") and not is_right("relaxed or refused", "tf32", "fp32")


def test_a_task_is_judged_in_all_its_versions_and_reported(monkeypatch):
    monkeypatch.setattr(precision_classes, "KINDS", {"relu": KINDS["relu"]})
    rows = judged(KIND.format("return x @ self.w"), "cpu")
    found = {row["version"]: row["found"] for row in rows}
    assert found["3xTF32 products"] == "fp32" and found["TF32 rounded"] == "tf32"
    assert found["fp16 products"] in ("relaxed", "refused") and "one number off" not in found
    exact = {row["version"]: row for row in judged(KIND.format(KINDS["relu"]), "cpu")}
    assert "TF32 rounded" not in exact and exact["one number off"]["found"] == "relaxed"
    base = {"suite": "kinds", "task": "relu", **dict.fromkeys(precision_classes.PROVENANCE, "x")}
    text = report([{**base, **{k: "yes" if v is True else str(v) for k, v in row.items()}} for row in exact.values()])
    assert "| exact | one number off | 1 of 1 (100%) |" in text and "| relu | fp32 |" in text


def test_a_checkout_that_lacks_a_task_is_one_line(tmp_path: Path):
    assert len({name for _, name, _ in sources(None)}) == len(sources(None))
    with pytest.raises(UsageError, match="give the root of a checkout"):
        sources(tmp_path)
