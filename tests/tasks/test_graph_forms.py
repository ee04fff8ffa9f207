"""Random small computations in many forms: operands swapped, names and order changed, other constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_l1.tasks.dataflow import canonical, read_graph
from cuda_l1.tasks.graph_hash import graph_hash
from cuda_l1.tasks.synth.splits import split_of

FRAME = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.l0 = nn.Linear(8, 8)
        self.l1 = nn.Linear(8, 8)

    def forward(self, x, y):
        {body}


def get_inputs():
    return [torch.randn(4, 8), torch.randn(4, 8)]
"""
ONE = ("torch.tanh({a})", "torch.relu({a})", "self.l0({a})", "self.l1({a})", "{a} * {c}", "{c} + {a}", "{a} - {c}")
ONE += ("F.leaky_relu({a}, {c})", "F.elu({a}, alpha={c})", "F.softplus({a}, beta={c})", "torch.clamp({a}, max={c})")
TWO = ("{a} - {b}", "torch.cat([{a}, {b}])", "torch.where({a} > {c}, {a}, {b})")
COMMUTING = ("{a} + {b}", "{a} * {b}", "torch.maximum({a}, {b})")
NUMBERS = ("0.01", "0.25", "1", "1.0", "2", "3", "7.5", "20", "-4", "1e-05", "1e+20", "float('inf')")
"""With defaults of the settings above, which stand in no graph."""


class Step(NamedTuple):
    """One statement: how it is written, what it reads (0 and 1: the inputs, then earlier steps), its constant."""

    text: str
    reads: tuple[int, int]
    number: str


@st.composite
def programs(draw: st.DrawFn) -> list[Step]:
    count = draw(st.integers(2, 9))
    return [
        Step(
            draw(st.sampled_from((*ONE, *TWO, *COMMUTING, *COMMUTING))),
            (draw(st.integers(0, index + 1)), draw(st.integers(0, index + 1))),
            draw(st.sampled_from(NUMBERS)),
        )
        for index in range(count)
    ]


def written(steps: Sequence[Step], names: Sequence[str], order: Sequence[int]) -> str:
    """A task's text: `names` of the steps' values, and in what order they are written; the last two are returned."""
    values = ["x", "y", *names]
    lines = []
    for index in order:
        text, (a, b), number = steps[index]
        lines.append(f"{names[index]} = {text.format(a=values[a], b=values[b], c=number)}")
    lines.append(f"return {values[-2]}, {values[-1]}")
    return FRAME.format(body="\n        ".join(lines))


def plain(steps: Sequence[Step]) -> str:
    return written(steps, [f"v{index}" for index in range(len(steps))], range(len(steps)))


@given(programs(), st.data())
@settings(max_examples=100)
def test_operands_names_and_the_order_of_statements_do_not_count(steps: list[Step], data: st.DataObject) -> None:
    swapped = [
        step._replace(reads=step.reads[::-1]) if step.text in COMMUTING and data.draw(st.booleans()) else step
        for step in steps
    ]
    names = data.draw(st.permutations([f"n{index}" for index in range(len(steps))]))
    left, order = set(range(len(steps))), []
    while left:
        ready = [index for index in sorted(left) if not any(read - 2 in left for read in read_by(steps[index]))]
        order.append(data.draw(st.sampled_from(ready)))
        left.remove(order[-1])
    found = graph_hash(plain(steps))
    assert not found.startswith("syntax-")
    assert graph_hash(written(swapped, names, order)) == found


def read_by(step: Step) -> tuple[int, ...]:
    """What a step's text reads of what it is given."""
    return tuple(number for number, name in zip(step.reads, "ab", strict=True) if f"{{{name}}}" in step.text)


@given(programs(), st.data())
@settings(max_examples=100)
def test_constants_do_not_move_a_graph_to_another_split(steps: list[Step], data: st.DataObject) -> None:
    others = [step._replace(number=data.draw(st.sampled_from(NUMBERS))) for step in steps]
    one, other = (read_graph(plain(each)) for each in (steps, others))
    assert canonical(one, with_numbers=False) == canonical(other, with_numbers=False)
    assert split_of(one) == split_of(other)


@given(programs(), st.integers(0, 8))
@settings(max_examples=50)
def test_another_operator_is_another_computation(steps: list[Step], which: int) -> None:
    changed = list(steps)
    changed[-1 - which % 2] = changed[-1 - which % 2]._replace(text="torch.erf({a})")  # of those that are returned
    assert graph_hash(plain(changed)) != graph_hash(plain(steps))


PAIR = "a = torch.relu(self.l0(x)); b = torch.relu(self.l1(x)); "


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (PAIR + "return torch.cat([a, a + b])", PAIR + "return torch.cat([a, b + a])"),
        (PAIR + "return torch.cat([a, a + b])", PAIR + "return torch.cat([b, a + b])"),
        (PAIR + "return a * b + a, a", PAIR + "return b + b * a, b"),
    ],
)
def test_commuted_operands_of_one_kind_do_not_count(one: str, other: str) -> None:
    assert graph_hash(FRAME.format(body=one)) == graph_hash(FRAME.format(body=other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("return torch.cat([a, a + b])", "return torch.cat([a, b + b])"),
        ("return torch.cat([a, a + b]), a", "return torch.cat([a, a + b]), b"),
        ("return (a + b) * (a - b)", "return (a + b) * (a - a)"),
        ("return self.l0(a) + self.l1(b)", "return self.l0(b) + self.l1(a)"),  # each colour has two of these
    ],
)
def test_which_of_two_alike_is_read_counts(one: str, other: str) -> None:
    assert graph_hash(FRAME.format(body=PAIR + one)) != graph_hash(FRAME.format(body=PAIR + other))


def test_what_a_loop_carries_may_have_any_name() -> None:
    def loop(h: str, c: str, last: str) -> str:
        body = (
            f"{h} = y; {c} = y.exp()\n        for t in range(x.size(1)):\n            {h} = torch.tanh(x[:, t] + {h})"
        )
        return FRAME.format(body=f"{body}\n            {c} = {c} * {h}\n        return {last}")

    assert graph_hash(loop("h", "c", "c")) == graph_hash(loop("c", "h", "h"))
    assert graph_hash(loop("h", "c", "c")) != graph_hash(loop("h", "c", "h"))


@pytest.mark.parametrize("more", ["y", "z"])
def test_a_list_that_grows_later_is_read_as_it_was(more: str) -> None:
    read = "import einops; values = [x]; z = einops.pack(values); "
    found = graph_hash(FRAME.format(body=read + "return z"))
    assert graph_hash(FRAME.format(body=f"{read}values.append({more}); return z")) == found


@pytest.mark.parametrize("depth", [50, 120, 900])
def test_a_deep_value_has_a_hash(depth: int) -> None:
    nested = f"for _ in range({depth}):\n            y = (y,)\n        return y"
    assert len(graph_hash(FRAME.format(body=nested)).removeprefix("syntax-")) == 64
