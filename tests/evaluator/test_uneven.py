"""Inputs that are uneven where independent draws are even, and what stays as it is."""

from __future__ import annotations

import math

import pytest
import torch

from cuda_l1.evaluator.guest.reference import Reference
from cuda_l1.evaluator.guest.uneven import FROM_ZERO, HELD_FROM, counted, held, of_one_sign, uneven


def made_of(*drawn, fixed=frozenset(), counted=frozenset(), numbers=True, places=True, shut=True):
    made, found = uneven(list(drawn), fixed, lambda: counted, numbers=numbers, places=places, shut=shut)
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


def as_truth(mask: torch.Tensor) -> torch.Tensor:
    return mask


def as_numbers(mask: torch.Tensor) -> torch.Tensor:
    return mask.float()


def as_complex(mask: torch.Tensor) -> torch.Tensor:
    return mask.to(torch.complex64)


def as_bias(mask: torch.Tensor) -> torch.Tensor:
    return torch.zeros(mask.shape).masked_fill(~mask, -math.inf)


def as_scores(mask: torch.Tensor) -> torch.Tensor:
    return (torch.randn(mask.shape) + 9).masked_fill(~mask, -math.inf)


def as_activations(mask: torch.Tensor) -> torch.Tensor:
    return torch.rand(mask.shape) * mask


WRITTEN = [as_truth, as_numbers, as_complex, as_bias, as_scores, as_activations]


@pytest.mark.parametrize("written", WRITTEN)
def test_a_mask_lets_all_or_little_of_some_rows_through_unless_every_row_has_as_many_chosen(written):
    mask = torch.rand(64, 128) < 0.3
    drawn = written(mask)
    chosen = written(torch.zeros(16, 128).scatter_(1, torch.rand(16, 128).topk(8).indices, 1.0).bool())
    made, same = made_of(drawn, chosen)
    assert same is chosen and made.dtype == drawn.dtype and made.stride() == drawn.stride()
    nothing = (drawn if drawn.dtype is torch.bool else drawn.real)[~mask].flatten()[0]
    is_open = (made if made.dtype is torch.bool else made.real) != nothing
    shares = is_open.float().mean(1)
    assert bool((shares == 1).any()) and bool(((shares > 0.8) & (shares < 1)).any()) and bool((shares < 0.15).any())
    assert bool((shares > 0).all()) and int((is_open == mask).all(1).sum()) >= 16
    (opened,) = made_of(drawn, shut=False)
    assert bool(((opened if opened.dtype is torch.bool else opened.real) != nothing)[mask].all())


def test_a_mask_of_one_row_lets_all_through_unless_it_lets_as_many_through_in_every_draw():
    for mask in (torch.rand(64) < 0.7, (torch.rand(64) < 0.7).float()):
        assert bool((made_of(mask)[0] == 1).all()) and made_of(mask, counted=frozenset({0}))[0] is mask


COUNTED = """
import torch
class Model(torch.nn.Module):
    def forward(self, *args):
        return args[0]
def get_inputs():
    table = torch.randn(256, 4)
    table[:, 1] = torch.randperm(256) < 9
    other = torch.randn(256, 4)
    other[:, 1] = torch.rand(256) < 0.1
    return [torch.randperm(64) < 7, (torch.rand(64) < 0.5).float(), table, other, torch.rand(4, 64) < 0.5]
"""


def test_which_masks_let_as_many_through_is_learnt_from_draws(tmp_path):
    (tmp_path / "task.py").write_text(COUNTED)
    assert counted(Reference(str(tmp_path / "task.py"), "cpu")) == {0, 2}


def test_a_column_of_flags_among_numbers_is_set_throughout_and_the_others_stay():
    table = torch.rand(512, 8)
    table[:, 3] = (torch.rand(512) < 0.01).float()
    (made,) = made_of(table)
    assert bool((made[:, 3] == 1).all()) and torch.equal(made[:, :3], table[:, :3])
    channels = torch.rand(8, 3, 64)
    channels[:, 2] = (torch.rand(8, 64) < 0.5).float()
    (made,) = made_of(channels)
    assert bool((made[:, 2] == 1).all()) and torch.equal(made[:, :2], channels[:, :2])


def test_levels_are_held_as_integers_are():
    levels = torch.tensor([0.0, 0.5, 1.0, 2.5])[torch.randint(0, 4, (32, 64))]
    (made,) = made_of(levels)
    held = ((made == 0) | (made == 2.5)).float().mean(1)
    assert bool((held == 1).any()) and set(made.unique().tolist()) <= {0.0, 0.5, 1.0, 2.5}


def test_complex_samples_lie_in_one_quadrant_or_are_real():
    drawn = torch.randn(8, 64, dtype=torch.complex64)
    (made,) = made_of(drawn)
    real, imaginary = made.real, made.imag
    assert bool(((real >= 0) & (imaginary >= 0)).all(1).any()) and bool(((real <= 0) & (imaginary <= 0)).all(1).any())
    assert bool((imaginary == 0).all(1).any()) and torch.equal(real.abs(), drawn.real.abs())
    ((made,), found) = held([drawn])
    assert found and int((made.real >= HELD_FROM).sum()) >= 32


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


@pytest.mark.parametrize(("count", "each"), [(2, 1), (8, 1), (16, 2)])
def test_a_few_samples_are_large_and_of_either_sign_the_same_in_all_and_strides_stay(count, each):
    for _ in range(20):
        gates, steps, wide = torch.randn(count, 64), torch.rand(count, 64), torch.randn(64, count).t()
        (made, same, turned), found = held([gates, steps, wide])
        assert found and same is steps and turned.stride() == wide.stride()
        opened, shut = (made >= HELD_FROM).sum(1), (made <= -HELD_FROM).sum(1)
        for large in (opened, shut):
            assert int((large >= 32).sum()) == each
            assert each == 1 or sorted((large[large >= 32] == 64).tolist()) == [False, True]
        assert 64 in (int(opened.max()), int(shut.max())), "one in all"
        others = (opened < 32) & (shut < 32)
        assert torch.equal(made[others], gates[others]) and torch.equal(turned[others], wide[others])


def test_samples_of_one_sign_and_expanded_ones_are_not_held_and_structures_of_zeros_stay():
    assert not held([torch.rand(8, 64), torch.randn(8, 1).expand(8, 64)])[1]
    triangle = torch.randn(64, 64).tril()
    ((made,), found) = held([triangle])
    assert found and bool((made.triu(1) == 0).all())


def test_samples_lie_beside_a_first_dimension_that_may_be_time():
    series, few, table, wide = torch.randn(64, 8, 3), torch.randn(16, 64, 3), torch.randn(64, 8), torch.randn(8, 64)
    for _ in range(8):
        (made, other, turned, same), found = held([series, few, table, wide], beside=True)
        assert found and same is wide
        for each in (made.abs().amin(2), other.abs().amin(2), turned):
            large = each.abs() >= HELD_FROM
            assert bool(large.all(0).any()) and not bool(large.all(1).any())
    assert not held([wide, torch.randn(4, 64, 3)], beside=True)[1]


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_all_numbers_are_of_one_sign_and_none_is_near_zero(sign):
    drawn, positive, kept = torch.randn(64, 64), torch.rand(64, 64), torch.arange(9)
    (made, same, other), found = of_one_sign([drawn, positive, kept], sign)
    assert found and same is positive and other is kept
    assert float((made * sign).min()) >= FROM_ZERO * float(drawn.abs().mean()) * 0.99
    (triangle,), _ = of_one_sign([drawn.tril()], sign)
    assert torch.equal(triangle == 0, drawn.tril() == 0) and not bool((triangle * sign < 0).any())
    ((both,), _) = of_one_sign([torch.randn(8, 8, dtype=torch.complex64)], sign)
    assert bool((torch.view_as_real(both) * sign > 0).all())
    assert of_one_sign([positive], sign) == ([positive], False)
