"""Tensors inside containers and objects: found by name, put back, and put into places, without asking their classes."""

from __future__ import annotations

from collections import OrderedDict, deque, namedtuple
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch

from cuda_l1.evaluator.guest import nesting

Pair = namedtuple("Pair", "keys values")


def own(cls):
    """Of a class that a candidate's file defines."""
    cls.__module__ = "candidate"
    return cls


@own
@dataclass
class Record:
    low: torch.Tensor
    note: str = "kept"


@own
class Slotted:
    __slots__ = ("high", "never")

    def __init__(self, high):
        self.high = high


@own
class Talking:
    """Would tell what it likes."""

    def __init__(self):
        self.secret = torch.ones(1)

    @property
    def __dict__(self):
        raise AssertionError("asked")


def one(value: float) -> torch.Tensor:
    return torch.full((2,), value)


NESTS = {
    "list of tuples": lambda t: [(t, 3), "text"],
    "dict of lists": lambda t: {"layer": [None, t]},
    "named tuple": lambda t: Pair(t, 1),
    "ordered": lambda t: OrderedDict(first=t),
    "deque": lambda t: deque([0, t], maxlen=2),
    "record": lambda t: Record(t),
    "slots": lambda t: [Slotted(t)],
    "namespace": lambda t: SimpleNamespace(inner=SimpleNamespace(x=t)),
}


@pytest.mark.parametrize("kind", NESTS)
def test_a_tensor_is_found_replaced_and_given_back(kind):
    held = one(1.0)
    value = NESTS[kind](held)
    ((name, found),) = nesting.tensors(value)
    assert found is held
    give = nesting.shell(value)
    other = one(2.0)
    changed = nesting.placed(value, name.split("."), other)
    assert [t for _, t in nesting.tensors(changed)] == [other] and type(changed) is type(value)
    back = give()
    assert [(n, t is held) for n, t in nesting.tensors(back)] == [(name, True)] and type(back) is type(value)
    wide = nesting.map_in_place(back, torch.Tensor.double)
    assert next(t for _, t in nesting.tensors(wide)).dtype is torch.float64 and type(wide) is type(value)


def test_what_was_added_and_taken_out_since_is_undone():
    window, record = [(one(1), one(2))], Record(one(3))
    gives = nesting.shell(window), nesting.shell(record)
    window.append((one(4), one(5)))
    record.low, record.more = one(6), one(7)
    before, same = (give() for give in gives)
    assert [n for n, _ in nesting.tensors(before)] == ["0.0", "0.1"]
    assert same is record and not hasattr(record, "more") and record.low[0] == 3 and record.note == "kept"


def test_a_list_or_a_dict_grows_where_a_place_is_missing():
    assert len(nesting.placed([one(1)], ["4"], one(2))) == 2
    assert set(nesting.placed({}, ["key"], one(1))) == {"key"}
    assert nesting.placed(("text",), ["7"], one(1)) == ("text",)


def test_nothing_of_the_objects_own_is_called():
    class Lying(list):
        def __iter__(self):
            raise AssertionError("asked")

    class Key:
        def __str__(self):
            raise AssertionError("asked")

    assert not list(nesting.tensors([Talking(), Lying([one(1)]), {Key(): one(1)}]))
    assert not nesting.is_nest(Talking()) and not nesting.is_nest(Lying())
    assert not nesting.is_nest(torch.nn.Linear(1, 1)) and not nesting.is_nest(one(1)) and not nesting.is_nest(Record)


def test_what_holds_itself_comes_to_an_end():
    loop = [one(1)]
    loop.append(loop)
    assert 0 < len(list(nesting.tensors(loop))) < 10
    nesting.shell(loop)()
