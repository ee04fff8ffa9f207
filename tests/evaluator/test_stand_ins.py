"""Numbers that stand for infinity."""

from __future__ import annotations

import pytest
import torch

from cuda_l1.evaluator.guest.stand_ins import GROWTH, BeyondAll, Bounds, grown

MASK = torch.rand(8, 8) < 0.5


@pytest.mark.parametrize("value", [-1e9, -100.0, 1e9])
def test_an_additive_mask_grows(value):
    made = grown(MASK.double() * value)
    assert torch.equal(made == 0, ~MASK) and torch.equal(made[MASK], torch.full_like(made[MASK], value * GROWTH))


@pytest.mark.parametrize(
    "tensor",
    [
        MASK.float(),
        MASK.double() * -3.0,
        torch.where(MASK, -1e9, torch.rand(8, 8)),
        torch.where(MASK, -torch.inf, 0.0),
        torch.tensor([0.0, -1e9]),
        MASK.long() * -1000,
        (MASK.float() * -100.0).to(torch.float8_e5m2),
    ],
    ids=["ones", "small", "numbers", "infinite", "few", "integers", "float8"],
)
def test_other_tensors_stay(tensor):
    assert grown(tensor) is tensor


@pytest.mark.parametrize(
    "masked",
    [
        lambda x: x.masked_fill(MASK, -1e9),
        lambda x: torch.where(MASK, -1e9, x),
        lambda x: x.clone().masked_fill_(MASK, -1e9),
        lambda x: x + (1.0 - (~MASK).double()) * -1e9,
        lambda x: x + torch.full_like(x, -1e9) * MASK,
        lambda x: x + torch.zeros_like(x).index_put_((MASK,), torch.full((), -1e9, dtype=x.dtype)),
    ],
)
def test_what_a_mask_puts_grows(masked):
    x = torch.rand(8, 8, dtype=torch.float64)
    with BeyondAll():
        made = masked(x)
    assert bool((made[MASK] <= -1e9 * GROWTH * 0.9).all()) and torch.equal(made[~MASK], x[~MASK])


@pytest.mark.parametrize(
    "computed",
    [
        lambda x: x * 1000.0,
        lambda x: x.clamp(min=-100.0),
        lambda x: (x > 0.5).long().fill_(1000),
        lambda x: x.masked_fill(MASK, -3.0),
        lambda x: torch.full((3,), 1000),
    ],
    ids=["scale", "clamp", "integers", "small", "indices"],
)
def test_other_numbers_stay(computed):
    x = torch.rand(8, 8, dtype=torch.float64)
    with BeyondAll():
        made = computed(x)
    assert torch.equal(made, computed(x)) and made.dtype is computed(x).dtype


@pytest.mark.parametrize(
    "bounded",
    [
        lambda x: torch.minimum(x, torch.full_like(x, 60.0)),
        lambda x: x.clamp(max=x.new_full((), 60.0)),
        lambda x: torch.full((1,), 60.0) * torch.tanh(x / torch.full((1,), 60.0)),
        lambda x: torch.where(x > torch.zeros_like(x).fill_(60.0), 1.0, x),
        lambda x: x.masked_fill(MASK, -1e9).clamp_min(-1e4),
    ],
    ids=["minimum", "clamp", "soft-cap", "threshold", "masked-then-bounded"],
)
def test_numbers_that_bound_others_stand_for_nothing(bounded):
    with pytest.raises(Bounds), BeyondAll():
        bounded(torch.rand(8, 8, dtype=torch.float64))


def test_whether_there_was_one_is_known():
    x = torch.rand(8, 8, dtype=torch.float64)
    with BeyondAll() as beyond:
        x.masked_fill(MASK, -3.0)
        assert not beyond.found
        x.masked_fill(MASK, -1e9)
    assert beyond.found
