"""kept_weights and kept_constants: values are kept while their sources stand still, and only values that may be."""

from __future__ import annotations

import copy
import pickle
import sys
import types

import pytest
import torch
from graphs import Twins, applies, candidate, check, make_task

INIT = """self.w = nn.Parameter(torch.randn(6, 6))
self.g = nn.Parameter(torch.rand(6, 1) + 0.5)
self.register_buffer('m', torch.rand(6, 6) > 0.5)
self.n = nn.BatchNorm1d(6)"""
WEIGHTS = [
    "x @ torch.tril(self.w)",
    "F.linear(x, self.w * self.m)",
    "F.linear(x, self.g * self.w / self.w.norm(dim=1, keepdim=True))",
    "x @ torch.softmax(self.w, -1)",
    "x @ (self.w + self.w.t())",
    "x * self.w.sum(0)",
    "F.linear(x, torch.where(self.m, self.w, 0.0))",
    "x @ self.w.masked_fill(self.m, 0.0)",
    "x @ torch.cat([self.w[:3], self.w[3:] * 2])",
    "F.linear(x, self.w.round() / 7, self.g.squeeze(1).exp())",
    "x @ self.w.t().contiguous()",
    "torch.sigmoid(self.g.t()) * x",
    "x + self.w.mean()",
    "x / (self.w.var(0) + 1)",
    "x @ torch.matrix_exp(self.w * 0.1)",
    "(x @ (self.w @ self.w)).relu()",
    "x @ self.w.view(36).flip(0).view(6, 6).abs()",
    "x * F.softplus(self.g.view(-1)) + torch.tanh(self.w[0])",
    "x @ self.w.clamp(-1, 1).pow(2)",
    "torch.stack([self.w, self.w * 2]).sum(0) @ x.t()",
]


@pytest.mark.parametrize("text", WEIGHTS)
def test_weights(text: str) -> None:
    built = check(make_task(f"return {text}", "torch.randn(4, 6)", INIT), "kept_weights")
    assert "DerivedTensors(derive_0)" in built.source


LOOSE = [
    "return x @ self.w",
    "return x @ self.w.t()",
    "return x @ self.w.view(6, 6).t()",
    "return self.w.exp(), x + 1",
    "return (self.w * 2).view(36), x * 2",
    "return x @ (self.w * x.sum())",
    "return F.linear(x, F.dropout(self.w, 0.5, True))",
    "return x + torch.rand_like(self.w[:4])",
    "return self.n(x)",
    "self.w.mul_(1.0)\nreturn x @ self.w.exp()",
    "v = self.w.view(-1)\nv.add_(0.0)\nreturn x @ self.w.exp()",
    "y = self.w.exp()\ny[0] = x[0]\nreturn x @ y",
    "y = self.w * 2\ny[0].copy_(x[0])\nreturn x @ y",
    "self.n(x)\nreturn x * self.n.running_mean.exp()",
    "return x * self.n.num_batches_tracked",
    "return x @ self.w[:, :3]",
    "return x * self.g.squeeze(1)",
    "return x.exp() @ self.w.detach()",
    "return torch.addmm(self.w[0], x, self.w)",
    "return F.layer_norm(x, (6,), self.w[0], self.w[1])",
    "return x @ torch.ones(6, 6).exp()",
    "return x + torch.arange(6)",
]


@pytest.mark.parametrize("forward", LOOSE)
def test_what_is_not_kept_as_weights(forward: str) -> None:
    assert not applies("kept_weights", make_task(forward, "torch.randn(4, 6)", INIT))


CONSTANTS = [
    "x + torch.arange(6, device=x.device)",
    "x.masked_fill(torch.triu(torch.ones(4, 6, device=x.device), 1) == 1, 0.0)",
    "x * torch.linspace(0, 1, 6)",
    "x @ torch.eye(6, dtype=x.dtype)",
    "x + torch.zeros(6)",
    "x * torch.full((6,), 0.5).cumsum(0)",
    "x * torch.sin(torch.arange(6) / 10000 ** (torch.arange(6) / 6))",
    "x + torch.tensor([1.0, 2, 3, 4, 5, 6]).flip(0)",
    "torch.where(torch.arange(6) > 2, x, 0.0)",
    "x[:, torch.arange(5, -1, -1)]",
    "torch.stack([x, x * torch.ones(6)]).sum(0)",
    "x * torch.hann_window(6)",
    "F.embedding(torch.arange(3), x)",
    "x.scatter(1, torch.zeros(4, 2, dtype=torch.int64), 1.0)",
    "x + torch.outer(torch.arange(4), torch.arange(6))",
    "x.index_select(1, torch.tensor([2, 0]) + 1)",
    "x * torch.tril(torch.ones(6, 6))[3]",
    "torch.cat([x, torch.zeros(1, 6)]) * 2",
    "x + torch.meshgrid(torch.arange(4), torch.arange(6), indexing='ij')[0]",
    "x * (torch.arange(6) % 2 == 0)",
]


@pytest.mark.parametrize("text", CONSTANTS)
def test_constants(text: str) -> None:
    built = check(make_task(f"return {text}", "torch.randn(4, 6)", INIT), "kept_constants")
    assert "def derive_0(like" in built.source


VARIABLE = [
    "return x + 1",
    "return x @ self.w.tril()",
    "return torch.arange(6), x",
    "return torch.zeros(3), x.exp()",
    "return x + torch.rand(6)",
    "return x * torch.rand(6).round() + torch.randn(6)",
    "h = torch.zeros(4, 6)\nh[1:] += x[1:]\nreturn h * 2",
    "h = torch.ones(4, 6)\nh[0] = x[0]\nreturn h @ self.w",
    "h = torch.zeros(4, 6)\nh.t().copy_(x.t())\nreturn h.exp()",
    "h = torch.zeros(4, 6)\nh[:, 1] = x[:, 1]\nreturn h.sum(0)",
    "h = torch.ones(4, 6).view(-1)\nh[1:3] = 0 * x[0, :2]\nreturn h.exp()",
    "return x.sum() * self.g",
    "return torch.randperm(6) * x",
    "return x.cumsum(0)",
    "return x[:, 1:3]",
    "return F.dropout(x, 0.5, True)",
    "return x.view(-1)",
    "return self.n(x)",
    "return torch.full_like(x, 2.0).mul_(x) + x",
    "return torch.where(x > 0, x, 0.0)",
]


@pytest.mark.parametrize("forward", VARIABLE)
def test_what_is_not_kept_as_constants(forward: str) -> None:
    task = make_task(forward, "torch.randn(4, 6)", INIT)
    assert not applies("kept_constants", task)


@pytest.fixture
def twins() -> Twins:
    """x @ tril(w) with the triangle kept, in a module that can be imported (for pickle)."""
    task = make_task("return x @ torch.tril(self.w)", "torch.randn(4, 6)", INIT)
    source = candidate(task, "kept_weights").source
    module = types.ModuleType("kept_candidate")
    sys.modules["kept_candidate"] = module
    exec(source, module.__dict__)
    made = Twins(task, source)
    made.model_new = module.ModelNew()
    made.model_new.load_state_dict(made.model.state_dict())
    return made


def both(twins: Twins) -> None:
    """One call on both sides must agree."""
    weight = twins.model_new.w
    x = torch.randn(4, 6, dtype=weight.dtype)
    with torch.no_grad():
        torch.testing.assert_close(twins.model_new(x), x @ torch.tril(weight))


def test_every_way_in_which_weights_change(twins: Twins) -> None:
    model = twins.model_new
    both(twins)
    with torch.no_grad():
        model.w.mul_(2)
        both(twins)
        model.w[0, 0] = 9
        both(twins)
        model.w.copy_(torch.randn(6, 6))
        both(twins)
    model.load_state_dict({k: v + 1 if v.is_floating_point() else v for k, v in model.state_dict().items()})
    both(twins)
    model.w = torch.nn.Parameter(torch.randn(6, 6))
    both(twins)
    model.double()
    both(twins)
    model.half().float()
    both(twins)
    torch.nn.init.normal_(model.w)
    both(twins)
    optimizer = torch.optim.SGD([model.w], lr=0.5)
    model.w.grad = torch.randn(6, 6)
    optimizer.step()
    both(twins)
    model.load_state_dict({k: v.clone() for k, v in model.state_dict().items()}, assign=True)
    both(twins)


@pytest.mark.parametrize("fused", [False, True])
def test_what_an_optimiser_writes_is_seen(twins: Twins, fused: bool) -> None:
    both(twins)
    for module in (twins.model, twins.model_new):
        optimizer = torch.optim.AdamW(module.parameters(), lr=0.1, fused=fused)
        for parameter in module.parameters():
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()
    both(twins)


def test_a_kept_value_is_computed_once(twins: Twins) -> None:
    calls = []
    kept = twins.model_new.derived_0
    inner = kept.compute
    kept.compute = lambda *args: calls.append(1) or inner(*args)
    for _ in range(3):
        both(twins)
    assert len(calls) == 1


def test_copies_keep_nothing_of_the_original(twins: Twins) -> None:
    both(twins)
    twin = copy.deepcopy(twins.model_new)
    with torch.no_grad():
        twin.w.zero_()
        assert not twin(torch.randn(4, 6)).any()
    both(twins)
    again = pickle.loads(pickle.dumps(twins.model_new))
    x = torch.randn(4, 6)
    with torch.no_grad():
        torch.testing.assert_close(again(x), twins.model_new(x))


def test_inference_mode(twins: Twins) -> None:
    x = torch.randn(4, 6)
    with torch.inference_mode():
        torch.testing.assert_close(twins.model_new(x), x @ torch.tril(twins.model_new.w))
    both(twins)
    with torch.inference_mode():
        twins.model_new.w = torch.nn.Parameter(torch.randn(6, 6), requires_grad=False)
        torch.testing.assert_close(twins.model_new(x), x @ torch.tril(twins.model_new.w))
        twins.model_new.w.add_(1)
        torch.testing.assert_close(twins.model_new(x), x @ torch.tril(twins.model_new.w))


def test_state_dict_and_parameters_are_the_originals(twins: Twins) -> None:
    both(twins)
    assert list(twins.model_new.state_dict()) == list(twins.model.state_dict())
    assert [name for name, _ in twins.model_new.named_buffers()] == [name for name, _ in twins.model.named_buffers()]
