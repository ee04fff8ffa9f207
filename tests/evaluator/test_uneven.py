"""Inputs that are uneven where independent draws are even, and what stays as it is."""

from __future__ import annotations

import torch

from cuda_l1.evaluator.guest.uneven import HELD_FROM, held, uneven


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


def test_what_is_looked_for_comes_late_in_some_rows_and_early_for_the_last_time_in_others():
    strings = torch.randint(0, 4, (256, 1024))
    (made,) = made_of(strings)
    first = (made == 1).int().argmax(1)[(made == 1).any(1)]
    last = 1023 - (made == 1).flip(1).int().argmax(1)[(made == 1).any(1)]
    assert int(first.max()) > 500 and int(last.min()) < 523
    assert int((strings == 1).int().argmax(1).max()) < 100


def test_two_samples_are_large_and_of_either_sign_the_same_in_all_and_strides_stay():
    whole = []
    for _ in range(40):
        gates, steps, wide = torch.randn(8, 64), torch.rand(8, 64), torch.randn(64, 8).t()
        (made, same, turned), found = held([gates, steps, wide])
        assert found and same is steps and turned.stride() == wide.stride()
        opened, shut = (made >= HELD_FROM).sum(1), (made <= -HELD_FROM).sum(1)
        assert int((opened >= 32).sum()) == int((shut >= 32).sum()) == 1
        others = (opened < 32) & (shut < 32)
        assert torch.equal(made[others], gates[others]) and torch.equal(turned[others], wide[others])
        whole.append(int(opened.max()) == 64)
    assert any(whole) and not all(whole)
    assert not held([steps, torch.randn(8, 1).expand(8, 64)])[1]
