"""A task at smaller sizes, where its own ask for more memory than there is; and the libraries that it needs."""

from __future__ import annotations

import ast
import importlib.util
import math
from collections.abc import Callable
from typing import NamedTuple

from cuda_l1.tasks.sizes import Axis, axes, resized
from cuda_l1.types import Task

Measure = Callable[[Task], int | None]
"""Bytes that a call of a task's reference holds at most; None where that cannot be told, or where it does not run."""


LEAST = 16
"""No size but the batch is made smaller than this: what is left would be another kind of work."""
_FETCH = "from_pretrained"


class Scaled(NamedTuple):
    """A task at smaller sizes."""

    task: Task
    change: str
    """`batch_size=16 instead of 128`."""
    peak_bytes: int


def scaled_to(task: Task, most_bytes: int, peak_bytes: int, measure: Measure) -> Scaled | None:
    """The task with sizes divided by powers of two, as little as makes a call take at most `most_bytes`, or None.

    `peak_bytes` is what it takes at its own sizes. The batch goes first, then whichever size is the largest, down to
    16. Sizes of one value belong together: they are halved together, or one of them where only that runs. What the rest
    of the task does not follow is left alone, as `measure` then says None.
    """
    known = axes(task)
    sizes: dict[str, int] = {}
    for axis in known:
        if axis.is_drawn and _is_batch(axis):
            peak_bytes = _shrink_batch(task, axis, sizes, most_bytes, peak_bytes, measure)
    # A batch that another size must equal runs no smaller by itself, and goes with that one.
    values = {
        axis.name: axis.value for axis in known if axis.name not in sizes and (axis.is_drawn or not _is_batch(axis))
    }
    constructor = False
    while peak_bytes > most_bytes:
        name = max(values, key=values.__getitem__, default=None)  # of equal ones what inputs are drawn by comes first
        if name is None or values[name] // 2 < LEAST:
            return None
        half = values[name] // 2
        alike = [other for other in values if values[other] == values[name]]
        for names, also in ((alike, True), ([name], constructor)):
            smaller = sizes | dict.fromkeys(names, half)
            found = measure(resized(task, smaller, constructor=also))
            if found is not None and found < peak_bytes:
                sizes, constructor, peak_bytes = smaller, also, found
                values |= dict.fromkeys(names, half)
                break
        else:
            del values[name]
    own = {axis.name: axis.value for axis in known}
    change = ", ".join(f"{name}={value} instead of {own[name]}" for name, value in sizes.items())
    return Scaled(resized(task, sizes, constructor=constructor), change, peak_bytes)


def _shrink_batch(
    task: Task, axis: Axis, sizes: dict[str, int], most_bytes: int, peak_bytes: int, measure: Measure
) -> int:
    """Writes a smaller batch into `sizes` where that helps; returns what a call takes then."""
    value = axis.value
    halvings = math.ceil(math.log2(peak_bytes / most_bytes))  # a call takes about as many times less
    while peak_bytes > most_bytes and value > 1 and halvings:
        smaller = max(value >> halvings, 1)
        found = measure(resized(task, {**sizes, axis.name: smaller}))
        if found is None or found >= peak_bytes:
            halvings //= 2  # a batch of 1 may not run where one of 2 does
            continue
        value = sizes[axis.name] = smaller
        peak_bytes = found
    return peak_bytes


def _is_batch(axis: Axis) -> bool:
    return "batch" in axis.name.lower()


def missing_modules(task: Task) -> list[str]:
    """Libraries that the task imports at module level and that are not installed here.

    Empty for a text that looks for modules in places of its own, or is no Python.
    """
    if "sys.path" in task.source or "sys.meta_path" in task.source:
        return []
    tree = _parsed(task)
    names = [alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in tree.body if isinstance(node, ast.ImportFrom) and node.module and not node.level]
    roots = dict.fromkeys(name.partition(".")[0] for name in names)
    return [root for root in roots if not _is_here(root)]


def fetches_a_model(task: Task) -> bool:
    """Whether the task calls `from_pretrained`: level 4 of KernelBench does, when it is imported.

    A function of that name which the text defines may be there for others, and what it calls is not looked at.
    """
    waiting: list[ast.AST] = [_parsed(task)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == _FETCH:
            return True
        if not (isinstance(node, ast.FunctionDef) and node.name == _FETCH):
            waiting += ast.iter_child_nodes(node)
    return False


def _is_here(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:  # `__main__`
        return True


def _parsed(task: Task) -> ast.Module:
    """Empty for what is no Python, or is nested too deep."""
    try:
        return ast.parse(task.source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module(body=[], type_ignores=[])
