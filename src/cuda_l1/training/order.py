"""The order in which examples are learned from: those of a batch are of about one length, so that little is padded."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

MOST_BATCHES = 50
"""Batches whose examples are sorted together, at most."""
LEAST_WINDOWS = 4
"""So often is a small data set parted before it is sorted: a batch must not be the same in every epoch."""


def by_length(lengths: Sequence[int], *, batch: int, batches: int, seed: int) -> list[int]:
    """The numbers of the examples of `batches` batches, one batch after the other.

    Every example comes once before any comes again. The random order of an epoch is cut into windows; the examples of a
    window are sorted by length, and its batches come in a random order. The same arguments give the same order, so a
    resumed training goes on in it.
    """
    rng, wanted = Random(seed), batch * batches
    shuffled: list[int] = []
    while len(shuffled) < wanted:
        shuffled += rng.sample(range(len(lengths)), len(lengths))
    window = batch * max(1, min(MOST_BATCHES, len(lengths) // (LEAST_WINDOWS * batch)))
    order: list[int] = []
    for start in range(0, wanted, window):
        near = sorted(shuffled[start : min(start + window, wanted)], key=lengths.__getitem__)
        found = [near[at : at + batch] for at in range(0, len(near), batch)]
        rng.shuffle(found)
        order += [index for each in found for index in each]
    return order
