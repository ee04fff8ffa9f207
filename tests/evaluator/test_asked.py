"""What a reference asks of its inputs while it runs, whatever its text calls it."""

from __future__ import annotations

import textwrap

import pytest

from cuda_l1.evaluator.guest.asked import asked_of, clamped
from cuda_l1.evaluator.guest.reference import Reference

TASK = """
import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB = 40960
IDS = {{"pad": 40007}}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.missing = nn.Embedding(1000, 4), -9.0
        self.register_buffer("m", torch.rand(20, 3))

    def forward(self, t, x):
        {forward}


def get_inputs():
    return [torch.randint(1, 9, (64,)), torch.rand(64, 8)]


def get_init_inputs():
    return []
"""


def asked(folder, forward: str) -> dict[int, list[float]]:
    (folder / "task.py").write_text(textwrap.dedent(TASK).format(forward=forward))
    reference = Reference(str(folder / "task.py"), "cpu")
    return asked_of(reference, reference.draw())


@pytest.mark.parametrize(
    ("forward", "numbers"),
    [
        ("return x * (t != VOCAB - 3)[:, None]", [40957.0]),
        ("return x * (t.float() == IDS['pad'])[:, None]", [40007.0]),
        ("return x * (t - 77).bool()[:, None]", [77.0]),
        ("return x * (t * 2 == 8)[:, None]", []),
        ("return self.e(t.clamp(max=999))", [1000.0, 0.0, 999.0]),
        ("return x.sum(-1) / t.clamp(min=1)", [0.0]),
        ("return x.sum(-1) / (t - 1).clamp(min=1)", [1.0]),
        ("return x / torch.minimum(t, torch.tensor(50))[:, None]", [51.0]),
        ("return x * (torch.arange(8) < t[:, None])", [0.0, 7.0, -1.0, 8.0]),
        ("return x * (t > 40)[:, None]", [40.0, 39.0, 41.0]),
        ("return x * torch.bucketize(t, torch.tensor([20, 60]))[:, None]", [20.0, 60.0, 19.0, 61.0]),
        ("return x * torch.stack([t[k] == k + 70 for k in range(3)]).any()", [70.0, 71.0, 72.0]),
        ("return x * torch.cat([t, 2 * t]).eq(70).any()", []),
        ("return self.m[t - 1] + x[:, :3]", [1.0, 20.0]),
        ("return self.m.index_select(0, t) + x[:, :3]", [0.0, 19.0]),
        ("return x * t[:, None]", []),
    ],
)
def test_what_is_asked_of_integers(tmp_path, forward, numbers):
    assert asked(tmp_path, forward).get(0, []) == numbers


def test_what_floating_numbers_are_equal_to(tmp_path):
    assert asked(tmp_path, "return torch.where(x == self.missing, 0.0, x) * (x < 0.5)")[1] == [-9.0]
    assert -9.0 in asked(tmp_path, "return torch.where(torch.isclose(x, torch.tensor(self.missing)), 0.0, x)")[1]


FAR = """
import torch


class Model(torch.nn.Module):
    def forward(self, q, k, x):
        return {forward}


def get_inputs():
    q, k = torch.randint(0, 400, (16,)), torch.randint(0, 400, (24,))
    q[0], q[1], k[0], k[1] = 0, 399, 0, 399
    return [q, k, torch.randn(16, 24)]
"""


@pytest.mark.parametrize(
    ("forward", "numbers"),
    [
        ("x * ((q[:, None] - k).abs() <= 500)", {501.0, 700.0, -102.0}),
        ("x * (q[:, None] + k).clamp(max=1000)", {602.0, 1001.0}),
        ("x * (torch.arange(24) + q[:, None] < 500)", {478.0}),
        ("x * (torch.arange(24) + q[:, None]).clamp(-7, 450)", {428.0, -8.0}),
        ("x * (440 - q[:, None] + torch.arange(24)).clamp(min=0)", {441.0}),
        ("x * ((q[:, None] - k).abs() <= 200)", set()),
        ("x * (q[:, None] - k).abs().float().exp().clamp(min=-1e-6)", set()),
    ],
)
def test_what_is_computed_of_integers_reaches_beyond_what_it_is_compared_with(tmp_path, forward, numbers):
    (tmp_path / "task.py").write_text(FAR.format(forward=forward))
    reference = Reference(str(tmp_path / "task.py"), "cpu")
    assert set(asked_of(reference, reference.draw()).get(0, [])) == numbers


def test_of_large_inputs_some_elements_are_compared(tmp_path):
    large = TASK.replace("randint(1, 9, (64,))", "randint(1, 9, (64, 1000))")
    (tmp_path / "task.py").write_text(large.format(forward="return x * (t - 2 == 4000).any(-1)[:, None]"))
    reference = Reference(str(tmp_path / "task.py"), "cpu")
    assert asked_of(reference, reference.draw())[0] == [4002.0]


def test_of_a_reference_that_stands_it_until_a_point(tmp_path):
    watched = "from torch.utils._python_dispatch import _get_current_dispatch_mode as mode; assert mode() is None"
    assert asked(tmp_path, f"y = x * (t != 500)[:, None]; {watched}; return y * (t != 600)[:, None]")[0] == [500.0]


@pytest.mark.parametrize(
    ("forward", "numbers"),
    [
        ("return x @ self.e.weight.clamp(-3, 3)[:4].t().expand(8, 4)", {"e.weight": [-4.0, 4.0]}),
        ("return x @ self.e.weight[:4].t().clamp(max=0.5).expand(8, 4)", {"e.weight": [1.0]}),
        ("return x.clamp(-3, 3) * (self.e.weight.sum() * 2).clamp(min=1)", {}),
    ],
)
def test_parameters_that_are_clamped(tmp_path, forward, numbers):
    (tmp_path / "task.py").write_text(textwrap.dedent(TASK).format(forward=forward).replace("1000, 4", "1000, 1"))
    reference = Reference(str(tmp_path / "task.py"), "cpu")
    assert clamped(reference, reference.draw()) == numbers
