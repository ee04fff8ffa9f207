"""Choices that are the same for one seed under every version of Python, and that do not disturb each other."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """A stream of choices named by labels: the n-th choice of a name is always the same one.

    Made of SHA-256, because the methods of `random.Random` may change between versions of Python.
    """

    def __init__(self, *labels: str | int) -> None:
        self._name = "/".join(str(label) for label in labels)
        self._count = 0

    def fork(self, label: str | int) -> Draw:
        """A stream of its own, which no choice from this one moves."""
        return Draw(self._name, label)

    def below(self, count: int) -> int:
        """A whole number from 0 to count - 1, each as likely (up to 2**-64 of `count`)."""
        self._count += 1
        data = hashlib.sha256(f"{self._name}#{self._count}".encode()).digest()
        return int.from_bytes(data[:8], "big") * count >> 64

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.below(1 << 30) < probability * (1 << 30)

    def choice(self, items: Sequence[T]) -> T:
        """One of `items`."""
        return items[self.below(len(items))]

    def weighted(self, items: Sequence[T], weights: Sequence[int]) -> T:
        """One of `items`, as likely as its weight says."""
        left = self.below(sum(weights))
        for item, weight in zip(items, weights, strict=True):
            left -= weight
            if left < 0:
                return item
        raise AssertionError("the weights sum to more than what was drawn")
