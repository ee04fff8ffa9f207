"""A stage: one operator, or a few that belong together, and where it may stand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cuda_l1.tasks.synth.sketch import Sketch

ANY = frozenset({"rows", "wide", "tokens", "signal", "image", "heads", "column"})
DENSE = ANY - {"column"}
FLAT = frozenset({"rows", "wide", "tokens"})
EVEN = frozenset({"wide", "tokens", "signal", "image"})
"""Kinds whose features are a multiple of 8."""


@dataclass(frozen=True)
class Stage:
    """Something that turns the tensor at hand into another."""

    name: str
    group: str
    """`pointwise`, `binary`, `norm`, `reduce`, `matmul`, `conv`, `pool`, `attention`, `layout`, `chain`, `loss`, ..."""
    kinds: frozenset[str]
    """What it may be applied to."""
    write: Callable[[Sketch], None]
    weight: int = 4
    points: int = 1
    """How much it adds to the difficulty of a task."""
