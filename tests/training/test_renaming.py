"""Tasks and variants under other names compute what they computed, and no name is changed that something else knows."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

from cuda_l1.proposers.techniques import compose
from cuda_l1.tasks import load_tasks
from cuda_l1.training.renaming import renamed

REFERENCE = '''"""Tafelwerk."""

import torch
from torch import nn


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.fold = nn.Linear(4, 4)
        self.once = nn.Parameter(torch.rand(4))

    def forward(self, x):
        return self.fold(x) * self.once


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.größe = width
        self.inner, self.weight = Inner(), nn.Parameter(torch.rand(4))
        self.register_buffer("mask", torch.ones(4))
        self.norm = nn.LayerNorm(width)

    def forward(self, x, residual, *, scale=2.0):
        """Adds `residual` to x."""
        f = lambda y: y.norm() + x.sum()
        return self.norm(self.inner(x)) * self.weight * self.mask + residual * scale * self.größe + f(x)


def get_inputs():
    return [torch.randn(2, 4), torch.randn(2, 4)]


def get_init_inputs():
    return [4]
'''
VARIANT = (
    REFERENCE
    + """

class Packed:
    def __init__(self, module):
        self.weight = module.inner.once


class ModelNew(Model):
    def forward(self, x, residual, *, scale=2.0):
        kept = Packed(self).weight
        folded = torch.nn.functional.linear(x, self.inner.fold.weight, self.inner.fold.bias) * kept
        f = lambda y: y.norm() + x.sum()
        normed = self.norm(folded)
        return normed * self.weight * self.mask + residual * scale * self.größe + f(x)
"""
)


def outputs(text: str, name: str) -> list[Any]:
    scope: dict[str, Any] = {}
    exec(compile(text, "renamed", "exec"), scope)
    torch.manual_seed(0)
    module = scope[name](*scope["get_init_inputs"]())
    torch.manual_seed(1)
    inputs = scope["get_inputs"]()
    found = module(**inputs) if isinstance(inputs, dict) else module(*inputs)
    return [value for value in pytree.tree_leaves(found) if isinstance(value, torch.Tensor)]


def test_only_names_that_nothing_else_knows_are_changed() -> None:
    reference, (variant,) = renamed(REFERENCE, [VARIANT], Random(0))
    assert variant.startswith(reference) and reference != REFERENCE
    gone = {word for word in re.findall(r"\w+", VARIANT) if not re.search(rf"\b{word}\b", variant)}
    assert gone == {"größe", "scale"} and variant.count("residual") == 1  # in a docstring
    for text, name in ((reference, "Model"), (variant, "ModelNew")):
        for mine, theirs in zip(outputs(text, name), outputs(VARIANT, name), strict=True):
            assert torch.equal(mine, theirs)
    assert renamed(REFERENCE, [VARIANT], Random(0))[1] == [variant] != renamed(REFERENCE, [VARIANT], Random(1))[1]


@pytest.mark.parametrize(
    "forward",
    [
        "def forward(self, x):\n        return [x for x in (x, x)][0] + self.a",
        "def forward(self, x):\n        def f(x):\n            return x\n        return f(x=x) + getattr(self, 'a')",
        "def forward(self, x):\n        def f():\n            nonlocal x\n            x *= 2\n        f()\n        "
        "return x",
        "def forward(self, x):\n        try:\n            1 / 0\n        except ZeroDivisionError as x:\n            "
        "return torch.ones(2) * len(x.args)",
        "def forward(self, x):\n        import math as x\n        return torch.ones(2) * x.pi",
        "def forward(self, x):\n        match [2, 3]:\n            case [*x]:\n                return torch.tensor(x)",
        "def forward(self, x, *more, **others):\n        return x * self.a",
    ],
)
def test_scopes_strings_and_keywords(forward: str) -> None:
    head = "import torch\nclass Model(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    tail = "\ndef get_inputs():\n    return [torch.ones(3)]\ndef get_init_inputs():\n    return []\n"
    text = f"{head}        self.a = 3\n    {forward}\n{tail}"
    (found,) = outputs(renamed(text, [], Random(0))[0], "Model")
    assert torch.equal(found, outputs(text, "Model")[0])


@pytest.mark.parametrize(
    "text", ["class Model(", "class Model:\n    def forward(self, ﬁrst):\n        return ﬁrst + 1\n"]
)
def test_what_is_no_python_or_spelt_in_other_characters_keeps_its_names(text: str) -> None:
    assert renamed(text, ["x = 1"], Random(0)) == (text, ["x = 1"])


def test_what_techniques_write_computes_the_same_under_other_names() -> None:
    changed = 0
    for number, task in enumerate(load_tasks("synth:0:12", device="cpu")):
        built = compose(task, ["in_place", "straight_line", "kept_weights"], "cpu")
        if built is None:
            continue
        reference, (variant,) = renamed(task.source, [built.source], Random(number))
        changed += reference != task.source
        for text, name in ((reference, "Model"), (variant, "ModelNew")):
            for mine, theirs in zip(outputs(text, name), outputs(built.source, name), strict=True):
                torch.testing.assert_close(mine, theirs, rtol=0, atol=0, equal_nan=True)
    assert changed > 8
