"""Seeds: the same state of every generator, whatever a candidate has put in the place of the functions that set it."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from cuda_l1.evaluator.guest.load import Seeds, seed_everything


def drawn() -> tuple[float, float, float, float]:
    return float(torch.rand(())), random.random(), random.gauss(), float(np.random.rand())


@pytest.mark.parametrize("seed", [0, 7, 2**31 - 1, 2**62 + 1])
def test_the_same_numbers_as_by_the_functions_that_users_call(seed, monkeypatch):
    seeds = Seeds()
    seed_everything(seed)
    expected = drawn()
    random.gauss()  # an odd number of them: Python keeps every second one
    for owner in (torch, random, np.random):
        monkeypatch.setattr(owner, "manual_seed" if owner is torch else "seed", lambda *_: pytest.fail("it is called"))
    seeds.set(seed)
    assert drawn() == expected
