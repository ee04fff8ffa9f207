"""identities: calls that change nothing go, calls that change a little stay."""

from __future__ import annotations

import pytest
import torch
from graphs import Twins, applies, candidate, check, make_task

IDLE = [
    "x * 1",
    "1 * x",
    "x / 1",
    "x + 0",
    "x - 0",
    "x ** 1",
    "x.view(4, 6)",
    "x.reshape(-1, 6)",
    "x.flatten(1)",
    "x.expand(4, 6)",
    "x.transpose(0, 0)",
    "x.permute(0, 1)",
    "x.t().t()",
    "x.transpose(0, 1).mT",
    "x.float()",
    "x.to(torch.float32)",
    "x.type_as(x)",
    "x.clone()",
    "F.dropout(x, 0.5, False)",
    "F.dropout(x, 0.0, True)",
    "-(-x)",
    "x[:, :6]",
    "x.repeat(1, 1)",
    "x.detach()",
    "x[:, None].permute(2, 0, 1).permute(1, 2, 0)[:, 0]",
    "x.unsqueeze(1).mean(1)",
    "x.unsqueeze(1).sum(1, keepdim=True)[:, 0]",
    "x.unsqueeze(-1).amax(-1)",
    "torch.logsumexp(x.unsqueeze(2), 2)",
    "F.pad(x, (0, 0))",
]


@pytest.mark.parametrize("text", IDLE)
def test_idle(text: str) -> None:
    check(make_task(f"return torch.tanh({text}) * 3", "torch.randn(4, 6)"), "identities")


NEAR = [
    "x * 2",
    "x / 2",
    "x + 1",
    "1 - x",
    "0 - x",
    "x ** 2",
    "x.view(6, 4)",
    "x.reshape(-1)",
    "x.transpose(0, 1)",
    "x.t()",
    "x[:, None].permute(2, 0, 1).permute(2, 0, 1)",
    "x.double()",
    "x.half()",
    "F.dropout(x, 0.5, True)",
    "-x",
    "x[:, :5]",
    "x[:, ::2]",
    "x.repeat(1, 2)",
    "x.t().contiguous()",
    "x.unsqueeze(1).sum(0)",
    "x.mean(1)",
    "x.amax(0, keepdim=True)",
    "torch.logsumexp(x, 1)",
    "F.pad(x, (0, 1))",
    "F.pad(x, (-1, 1))",
    "F.pad(x, (0, 0, 2, -2))",
    "x.add(x, alpha=0)",
    "x.expand(2, 4, 6)",
    "x.view(torch.int32).float()",
    "x * torch.ones(6)",
    "x.unsqueeze(1).std(1, correction=0)",
]


@pytest.mark.parametrize("text", NEAR)
def test_near_misses(text: str) -> None:
    assert not applies("identities", make_task(f"return torch.tanh({text}) * 3", "torch.randn(4, 6)"))


@pytest.mark.parametrize(
    "text", ["x.clone()", "x * 1", "x + 0", "x.unsqueeze(1).mean(1)", "self.w.clone()", "F.dropout(x, 0.5, False) + 0"]
)
def test_a_returned_copy_stays_a_copy(text: str) -> None:
    task = make_task(f"return {text}", "torch.randn(4, 6)", "self.w = nn.Parameter(torch.randn(3))")
    if not applies("identities", task):
        return
    twins = Twins(task, candidate(task, "identities").source)
    x = torch.randn(4, 6)
    with torch.no_grad():
        assert twins.model_new(x).data_ptr() not in (x.data_ptr(), twins.model_new.w.data_ptr())


def test_two_results_do_not_become_one_tensor() -> None:
    assert not applies("identities", make_task("y = x.exp()\nreturn y, y * 1", "torch.randn(4)"))


def test_a_copy_that_is_written_stays() -> None:
    assert not applies("identities", make_task("y = x.clone()\ny[0] = 1\nreturn y + x", "torch.randn(4, 6)"))
