"""What a reference asks of its inputs while it runs, whatever its text calls it."""

from __future__ import annotations

import textwrap

import pytest

from cuda_l1.evaluator.guest.asked import asked_of
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
        ("return x * (torch.arange(8) < t[:, None])", [0.0, 7.0]),
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


def test_of_large_inputs_some_elements_are_compared(tmp_path):
    large = TASK.replace("randint(1, 9, (64,))", "randint(1, 9, (64, 1000))")
    (tmp_path / "task.py").write_text(large.format(forward="return x * (t - 2 == 4000).any(-1)[:, None]"))
    reference = Reference(str(tmp_path / "task.py"), "cpu")
    assert asked_of(reference, reference.draw())[0] == [4002.0]


def test_of_a_reference_that_stands_it_until_a_point(tmp_path):
    watched = "from torch.utils._python_dispatch import _get_current_dispatch_mode as mode; assert mode() is None"
    assert asked(tmp_path, f"y = x * (t != 500)[:, None]; {watched}; return y * (t != 600)[:, None]")[0] == [500.0]
