"""Which tasks a model may be trained on: decided by a task's graph, once, the same for every seed.

- `held-out`: graphs with a pair of neighbouring operators that no other split has, and a share of all other graphs.
- `validation` and `train`: by the graph without its numbers, so that two tasks that differ in a constant share a split.

A task whose graph cannot be read is in `validation` or `train` by its text.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

from cuda_l1.tasks.dataflow import Node, Unreadable, canonical, read_graph
from cuda_l1.tasks.dataflow.graph import in_order, nodes_of
from cuda_l1.tasks.graph_hash import graph_hash
from cuda_l1.types import Task, digest

Split = Literal["train", "validation", "held-out"]
SPLITS: tuple[Split, ...] = ("train", "validation", "held-out")

_HELD_OUT_PAIRS = 0.035
_HELD_OUT = 0.05
_VALIDATION = 0.1
_PLUMBING = frozenset(
    {"reshape", "transpose", "getitem", "unflatten", "flatten", "permute", "unsqueeze", "squeeze", "chunk", "slice"}
    | {"to", "size", "shape", "item", "unbind", "collected", "loop", "carried", "stack", "roll", "add", "sub", "mul"}
    | {"div", "input", "weight", "dtype", "max", "arange", "ones", "zeroslike", "neg"}
)
"""Operators that only connect others: what stands before and behind them counts as neighbours."""


def split_of(outputs: Any) -> Split:
    """The split of a graph, as `dataflow.read_graph` returns it."""
    if _shows_held_out_pair(outputs):
        return "held-out"
    place = _fraction("split", canonical(outputs, with_numbers=False))
    if place < _HELD_OUT:
        return "held-out"
    return "validation" if place < _HELD_OUT + _VALIDATION else "train"


def split_of_task(task: Task) -> Split:
    """The split of a task of any suite."""
    return _split_of_text(task.source)


@lru_cache(maxsize=4096)
def _split_of_text(source: str) -> Split:
    try:
        return split_of(read_graph(source))
    except Unreadable:
        return "validation" if int(graph_hash(source)[-8:], 16) / 2**32 < _VALIDATION else "train"


def has_unseen_pair(task: Task) -> bool:
    """Whether a task shows two operators together that no training or validation task does; False for one whose graph
    cannot be read."""
    try:
        return _shows_held_out_pair(read_graph(task.source))
    except Unreadable:
        return False


def _shows_held_out_pair(outputs: Any) -> bool:
    return any(is_held_out(pair) for pair in operator_pairs(outputs))


def is_held_out(pair: tuple[str, str]) -> bool:
    """Whether these neighbours are kept from training and validation, at every seed."""
    return _fraction("pair", *pair) < _HELD_OUT_PAIRS


def operator_pairs(outputs: Any) -> set[tuple[str, str]]:
    """(what computes a value, what reads it), for all operators but those that only connect others."""
    sources: dict[int, frozenset[str]] = {}
    pairs: set[tuple[str, str]] = set()
    for node in in_order(outputs):
        before = frozenset[str]().union(*(sources[id(child)] for child in _read(node)))
        if node.op in _PLUMBING:
            sources[id(node)] = before
        else:
            sources[id(node)] = frozenset({node.op})
            pairs |= {(source, node.op) for source in before}
    return pairs


def _read(node: Node) -> list[Node]:
    return [child for value in (*node.args, *(value for _, value in node.options)) for child in nodes_of(value)]


def _fraction(*words: str) -> float:
    """A number from 0 to 1 that depends on nothing but the words."""
    return int(digest("cuda-l1 splits 1", *words)[:13], 16) / 16**13
