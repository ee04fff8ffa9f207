"""Inputs that are uneven where independent draws are even, and what stays as it is."""

from __future__ import annotations

import torch

from cuda_l1.evaluator.guest.uneven import uneven


def made_of(*drawn: torch.Tensor, fixed: frozenset[int] = frozenset(), numbers: bool = True, places: bool = True):
    made, found = uneven(list(drawn), fixed, numbers=numbers, places=places)
    assert found == any(now is not was for now, was in zip(made, drawn, strict=True))
    return made


def test_one_choice_holds_nearly_all_of_a_row_and_no_place_leaves_its_range():
    tokens, pairs = torch.randint(0, 16, (8, 1024)), torch.stack([torch.randint(0, n, (512,)) for n in (3, 9)], 1)
    made, of_pairs = made_of(tokens, pairs)
    share = max(float((row == row.mode().values).float().mean()) for row in made)
    assert share > 0.85 and made.dtype == tokens.dtype
    assert bool(((made >= tokens.amin(1, keepdim=True)) & (made <= tokens.amax(1, keepdim=True))).all())
    assert not torch.equal(of_pairs, pairs) and bool((of_pairs.amax(0) <= pairs.amax(0)).all())


def test_integers_that_mean_more_than_a_choice_stay():
    kept = [
        torch.randperm(64),
        torch.stack([torch.randperm(64)[:8] for _ in range(32)]),
        torch.randint(0, 16, (64,)).sort().values,
        torch.tensor([3, 5, 3, 5, 4, 4, 4, 4]),  # lengths of parts of the 32 rows above
        torch.randint(0, 16, (3, 2)),
    ]
    assert all(now is was for now, was in zip(made_of(*kept), kept, strict=True))


def test_a_mask_lets_all_of_some_rows_through_unless_every_row_has_as_many_chosen():
    mask = torch.rand(16, 128) < 0.3
    chosen = torch.zeros(16, 128).scatter_(1, torch.rand(16, 128).topk(8).indices, 1.0).bool()
    made, same = made_of(mask, chosen)
    opened = made.all(1)
    assert bool(opened.any()) and same is chosen
    assert torch.equal(made[~opened], mask[~opened])


def test_samples_have_one_sign_and_the_sizes_that_they_had():
    drawn, positive = torch.randn(8, 4, 16), torch.rand(8, 16)
    made, same = made_of(drawn, positive)
    assert torch.equal(made.abs(), drawn.abs()) and same is positive
    assert any(bool((each >= 0).all()) for each in made) and any(bool((each <= 0).all()) for each in made)


def test_what_is_the_same_in_every_draw_stays_and_each_part_can_be_left_out():
    mask, numbers = torch.rand(16, 128) < 0.3, torch.randn(8, 16)
    assert made_of(mask, numbers, fixed=frozenset({0}))[0] is mask
    assert made_of(mask, numbers, places=False)[0] is mask
    assert made_of(mask, numbers, numbers=False)[1] is numbers
