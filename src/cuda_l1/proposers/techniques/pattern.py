"""Patterns of calls: describe an expression once, find it however its commutative parts were written.

X = Bind("x")
SILU = either_order("mul.Tensor", X, call("sigmoid.default", X))
for found in matches(node, SILU):
    found["x"]          # the node bound to X; equal binds must be equal nodes
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from cuda_l1.proposers.techniques.matching import is_op, operands

Found = dict[str, Any]


@dataclass(frozen=True)
class Bind:
    """Anything that passes `test`, remembered under `name`."""

    name: str
    test: Callable[[Any], bool] = lambda value: True


@dataclass(frozen=True)
class Call:
    """A call of one of `names` whose leading arguments match `args`; the rest are free."""

    names: tuple[str, ...]
    args: tuple[Any, ...]
    either_order: bool = False
    bind: str | None = None
    """Remember the call itself under this name."""


@dataclass(frozen=True)
class Product:
    """A product of `factors`, in any order and association, with the numbers in it multiplying to `coefficient`."""

    coefficient: float
    factors: tuple[Any, ...]


def product(coefficient: float, *factors: Any) -> Product:
    """A product pattern; quotients by numbers, squares and small powers count as products."""
    return Product(coefficient, factors)


def call(names: str, *args: Any, bind: str | None = None) -> Call:
    """A call pattern; `names` is one ATen name or several separated by spaces, without the `aten.`."""
    return Call(tuple(f"aten.{name}" for name in names.split()), args, bind=bind)


def either_order(names: str, left: Any, right: Any, bind: str | None = None) -> Call:
    """A call pattern of two arguments in either order."""
    return Call(tuple(f"aten.{name}" for name in names.split()), (left, right), True, bind)


def is_number(value: Any) -> bool:
    """Whether an argument is a Python number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def number(name: str) -> Bind:
    """Any Python number."""
    return Bind(name, is_number)


def matches(value: Any, pattern: Any, found: Found | None = None) -> Iterator[Found]:
    """Every way in which `value` matches `pattern`, as name -> value.

    A plain number in a pattern matches numbers equal to seven digits; a tuple holds alternatives.
    """
    known = found or {}
    if isinstance(pattern, tuple):
        for alternative in pattern:
            yield from matches(value, alternative, known)
    elif isinstance(pattern, Bind):
        if pattern.name in known:
            if known[pattern.name] is value or known[pattern.name] == value:
                yield known
        elif pattern.test(value):
            yield {**known, pattern.name: value}
    elif isinstance(pattern, Product):
        yield from _matches_product(value, pattern, known)
    elif isinstance(pattern, Call):
        yield from _matches_call(value, pattern, known)
    elif is_number(pattern):
        if is_number(value) and math.isclose(value, pattern, rel_tol=1e-7):
            yield known
    elif value == pattern:
        yield known


def _matches_call(value: Any, pattern: Call, known: Found) -> Iterator[Found]:
    if not is_op(value, *pattern.names) or len(operands(value)) < len(pattern.args):
        return
    given = operands(value)[: len(pattern.args)]
    if pattern.bind is not None:
        known = {**known, pattern.bind: value}
    for order in itertools.permutations(given) if pattern.either_order else [given]:
        yield from _matches_all(order, pattern.args, known)


def _matches_all(values: tuple[Any, ...], patterns: tuple[Any, ...], known: Found) -> Iterator[Found]:
    if not patterns:
        yield known
        return
    for found in matches(values[0], patterns[0], known):
        yield from _matches_all(values[1:], patterns[1:], found)


def _matches_product(value: Any, pattern: Product, known: Found) -> Iterator[Found]:
    count = len(pattern.factors)
    for coefficient, factors in factorings(value, count):
        if len(factors) == count and math.isclose(coefficient, pattern.coefficient, rel_tol=1e-7):
            for order in itertools.permutations(factors):
                yield from _matches_all(order, pattern.factors, known)


def factorings(value: Any, most: int) -> Iterator[tuple[float, tuple[Any, ...]]]:
    """Ways to write `value` as a number times at most `most` nodes, from not taken apart to fully."""
    if is_number(value):
        yield float(value), ()
        return
    if most > 0:
        yield 1.0, (value,)
    if is_op(value, "aten.mul.Tensor"):
        left, right = operands(value)[:2]
        for one, factors in factorings(left, most):
            for two, others in factorings(right, most - len(factors)):
                yield one * two, factors + others
    elif is_op(value, "aten.div.Tensor") and is_number(operands(value)[1]) and operands(value)[1] != 0:
        for one, factors in factorings(operands(value)[0], most):
            yield one / operands(value)[1], factors
    elif is_op(value, "aten.pow.Tensor_Scalar", "aten.square.default"):
        power = operands(value)[1] if len(operands(value)) > 1 else 2
        if power in (2, 3, 4) and power <= most:
            yield 1.0, (operands(value)[0],) * int(power)


def first(value: Any, pattern: Any) -> Found | None:
    """The first match, or None."""
    return next(matches(value, pattern), None)
