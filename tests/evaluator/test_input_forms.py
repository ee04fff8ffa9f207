"""Inputs of the judge's making: what is changed, what stays, and what is told apart."""

from __future__ import annotations

import functools
import math
import subprocess
import sys

import pytest
import torch

from cuda_l1.evaluator.guest import input_forms, traits, uneven
from cuda_l1.evaluator.guest.agreed import filling_gaps
from cuda_l1.evaluator.guest.tensors import extent, layout, nbytes_needed

PLAIN = {
    "normal": lambda: torch.randn(4, 5),
    "uniform": lambda: torch.rand(4, 5),
    "half": lambda: torch.randn(4, 5).half(),
    "triangle": lambda: torch.randn(40, 40).tril(),
    "behind-a-relu": lambda: torch.randn(400).relu(),
    "channels": lambda: torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last),
    "complex": lambda: torch.randn(40, 10, dtype=torch.complex64),
}


LEFT_ALONE = {
    "integers": lambda: torch.randint(0, 9, (40,)),
    "booleans": lambda: torch.rand(40) > 0.5,
    "mask-0-1": lambda: (torch.rand(40) > 0.1).float(),
    "mask-minus-inf": lambda: torch.full((4, 4), -torch.inf).triu(1),
    "mask-minus-1e9": lambda: torch.full((4, 4), -1e9).triu(1),
    "grades": lambda: torch.randint(0, 9, (400,)).float().clamp_min(2).sub(2),
    "one-hot": lambda: torch.eye(7),
    "probabilities": lambda: torch.randn(4, 9).softmax(-1),
    "one-element": lambda: torch.randn(1),
    "scalar": lambda: torch.tensor(0.5),
    "one-complex-number": lambda: torch.randn(1, dtype=torch.complex64),
    "complex-ones": lambda: torch.ones(4, dtype=torch.complex64),
    "float8": lambda: torch.randn(40).to(torch.float8_e4m3fn),
}


def boxes(count: int = 40) -> torch.Tensor:
    corner = torch.randn(count, 2)
    return torch.cat([corner, corner + torch.rand(count, 2)], -1)


def spans_around() -> torch.Tensor:
    """Middles with what lies around them in order, from column to column and beside one another."""
    middle = torch.randn(6, 8, 1)
    return torch.cat([middle, middle - torch.rand(6, 8, 1), middle + torch.rand(6, 8, 2)], -1)


@pytest.mark.parametrize(
    "make",
    [
        functools.partial(input_forms.stress, factor=-8.0),
        lambda x: input_forms.touched(x, [torch.randn_like(t) for t in x]),
        lambda x: input_forms.with_outliers(x, [torch.randn_like(t) for t in x], 64.0),
        functools.partial(input_forms.mixed, factors=(-1.0, 0.0)),
        functools.partial(input_forms.isolated, factors=(-1e3, 1e3)),
        functools.partial(input_forms.related, apart=0.5),
        functools.partial(input_forms.emptied, numbers=True, masks=True, all_ways=True),
        input_forms.near_one,
        input_forms.ordered,
    ],
)
def test_columns_that_are_in_order_stay_so(make):
    (made, other), found = make([boxes(), spans_around()])
    assert found and bool((made[:, :2] <= made[:, 2:]).all()) and made.shape == (40, 4)
    lower, upper = other[..., 1], other[..., 2:].amin(-1)
    assert bool((lower <= other[..., 0]).all() and (other[..., 0] <= upper).all())


@pytest.mark.parametrize(
    "make",
    [
        functools.partial(input_forms.stress, factor=-8.0),
        lambda x: input_forms.with_outliers(x, [torch.randn_like(t) for t in x], 64.0),
        functools.partial(input_forms.isolated, factors=(-1e3, 1e3)),
        functools.partial(input_forms.emptied, numbers=True, masks=True, all_ways=True),
        functools.partial(input_forms.vacated, numbers=True, masks=True, second=False),
        functools.partial(uneven.uneven, fixed=(), numbers=True, places=True, shut=True),
        input_forms.near_one,
    ],
)
def test_tensors_that_are_in_order_stay_so(make):
    low = torch.randn(6, 3, 20).transpose(0, 1)
    drawn = [torch.randn_like(low), low + torch.rand_like(low), low]
    (_, high, low), found = make(drawn)
    assert found and bool((low <= high).all()) and low.stride() == drawn[0].stride()
    assert traits.tensors_in_order(drawn) == ((2, 1),) and not torch.equal(low, drawn[2])


def test_columns_are_in_order_where_chance_does_not_leave_them_so():
    assert set(traits.columns_in_order(boxes())) == {(0, 2), (1, 3)}
    assert set(traits.columns_in_order(spans_around())) == {(0, 2), (0, 3), (1, 0), (1, 2), (1, 3)}
    others = [boxes(6), torch.randn(400, 4), torch.zeros(40, 4), torch.randn(40, 9).sort().values, torch.randn(4)]
    assert all(traits.columns_in_order(other) == () for other in others)


@pytest.mark.parametrize("factor", [-1.0, 8.0, 1e5])
@pytest.mark.parametrize("make", PLAIN.values(), ids=PLAIN)
def test_plain_inputs_are_multiplied(make, factor):
    value = make()
    (stressed,), touched = input_forms.stress([value], factor)
    assert touched and torch.equal(stressed, value * factor) and stressed.stride() == value.stride()


@pytest.mark.parametrize("make", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_masks_integers_and_structured_inputs_are_left_alone(make):
    value = make()
    (stressed,), touched = input_forms.stress([value], -1.0)
    assert not touched and stressed is value


@pytest.mark.parametrize("make", [lambda: torch.randn(1, 6).expand(50, 6), lambda: torch.randn(9, 8)[:, ::2]])
def test_stressed_inputs_take_no_more_room(make):
    value = make()
    (stressed,), _ = input_forms.stress([value], 2.0)
    assert torch.equal(stressed, 2 * value) and stressed.stride() == value.stride()
    assert extent(stressed) == extent(value) and nbytes_needed([stressed]) == nbytes_needed([value])


def test_outliers_are_few_and_far_out():
    inputs, other = [torch.full((100,), 2.0), torch.arange(9)], [torch.full((100,), 0.5), torch.arange(9)]
    (values, integers), found = input_forms.with_outliers(inputs, other, 64.0)
    assert found and torch.equal(integers, inputs[1])
    assert 1 <= int((values == 32.0).sum()) <= input_forms.TOUCHED and int((values == 2.0).sum()) >= 97


MASKS = {
    "booleans": lambda: torch.rand(4) > 0.5,
    "triangle": lambda: torch.ones(9, 9, dtype=torch.bool).tril(),
    "0-1": lambda: (torch.rand(200) > 0.5).float(),
    "minus-inf": lambda: torch.full((9, 9), -torch.inf).triu(1),
    "expanded": lambda: torch.full((9, 9), -1e9).triu(1).expand(3, 9, 9),
}


@pytest.mark.parametrize("make", MASKS.values(), ids=MASKS)
def test_elements_of_masks_change_places(make):
    torch.manual_seed(1)
    value = make()
    (swapped,), found = input_forms.with_outliers([value], [make()], 64.0)
    assert found and not torch.equal(swapped, value)
    assert torch.equal(swapped.flatten().sort().values, value.flatten().sort().values)


@pytest.mark.parametrize("make", PLAIN.values(), ids=PLAIN)
def test_some_inputs_get_the_other_sign_and_some_are_zero(make):
    torch.manual_seed(1)
    value = make()
    (blended,), found = input_forms.mixed([value], (-1.0, 0.0))
    other = -1j * value if value.is_complex() else -value
    kept, negated, zero = blended == value, blended == other, blended == 0
    parted = (blended == value.real) | (blended == 1j * value.imag) if value.is_complex() else zero
    assert found and bool((kept | negated | zero | parted).all()) and blended.stride() == value.stride()
    assert not value.is_complex() or bool((blended.real == 0).any() & (blended.imag == 0).any())
    assert 0.05 < float((negated & ~zero).float().mean()) < 0.4 and bool((zero & (value != 0)).any())
    assert value.is_complex() or not bool(torch.signbit(blended[zero & (value != 0)]).any())


@pytest.mark.parametrize("make", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_no_sign_is_given_to_what_is_left_alone(make):
    value = make()
    (blended,), found = input_forms.mixed([value], (-1.0,))
    assert not found and blended is value


CONSTANTS = {
    "mask-of-ones": lambda: torch.ones(4, 50, dtype=torch.bool),
    "no-mask": lambda: torch.zeros(4, 50, dtype=torch.bool),
    "integers-of-one": lambda: torch.ones(4, 50, dtype=torch.int64),
    "weights-of-one": lambda: torch.ones(4, 50),
    "first-state": lambda: torch.zeros(4, 50),
    "expanded": lambda: torch.ones(50).expand(4, 50),
}


@pytest.mark.parametrize("make", CONSTANTS.values(), ids=CONSTANTS)
def test_a_few_elements_of_a_constant_are_others(make):
    value = make()
    (other,), found = input_forms.with_other_constants([value], 3, 0.5)
    assert found and other.dtype == value.dtype and other.stride() == value.stride()
    assert 1 <= int(torch.unique((other != value).nonzero()[:, 1]).numel()) <= 3
    assert set(other.flatten().tolist()) == {0, 1}


@pytest.mark.parametrize(("value", "other"), [(1.0, -0.5), (0.0, -0.5), (-4.0, 2.0)])
def test_a_single_number_is_another_one_and_has_the_other_sign_first(value, other):
    made = [input_forms.with_other_constants([torch.tensor(value)], *others)[0][0] for others in input_forms.OTHERS[:2]]
    assert [float(found) for found in made] == [other, -other]


@pytest.mark.parametrize("value", [torch.tensor([False]), torch.tensor(True)])
def test_a_single_truth_value_is_the_other_one(value):
    for others in input_forms.OTHERS:
        (other,), found = input_forms.with_other_constants([value], *others)
        assert found and other.dtype is torch.bool and other.shape == value.shape and bool(other) != bool(value)


def test_long_products_of_what_is_near_one_stay():
    drawn = torch.randn(8, 2000)
    drawn[0, 0] = 0.0
    kept = torch.arange(6).view(2, 3)
    (near, other), found = input_forms.near_one([drawn, kept])
    assert found and other is kept
    assert float(near[1:].prod(-1).abs().log().abs().max()) < 4 and not torch.equal(near.abs(), torch.ones_like(near))
    assert input_forms.near_one([kept]) == ([kept], False)


def test_every_other_tensor_is_vacant():
    numbers, tokens, context, mask = torch.randn(8, 8), torch.arange(9), torch.randn(4), torch.rand(8, 8) < 0.5
    drawn = [numbers, tokens, {"context": context}, mask]
    for second, empty in ((False, (True, False, True)), (True, (False, True, False))):
        made, found = input_forms.vacated(drawn, True, True, second=second)
        shown = (made[0], made[2]["context"], made[3])
        assert found and made[1] is tokens and tuple(not bool(tensor.any()) for tensor in shown) == empty


@pytest.mark.parametrize(("drawn", "level"), [(100 * torch.rand(8, 8), 0.5), (-torch.rand(8, 8) / 9, -0.0625)])
def test_a_single_tensor_of_numbers_is_one_number_throughout(drawn, level):
    tokens = torch.arange(9)
    ((made, kept), found) = input_forms.vacated([drawn, tokens], True, True, second=False)
    assert found and kept is tokens and bool((made == level).all()) and made.shape == drawn.shape
    for numbers, second in ((True, True), (False, False)):
        assert input_forms.vacated([drawn, tokens], numbers, False, second=second) == ([drawn, tokens], False)


def test_rows_in_order_are_emptied_as_a_whole_alone():
    drawn = torch.rand(32, 16).sort(-1).values
    ((made,), found) = input_forms.emptied([drawn], True, True, all_ways=True)
    assert found and bool((made.diff(dim=-1) >= 0).all())
    assert 1 <= int((made == 0).all(-1).sum()) < 32 and bool(
        ((made == drawn) | (made == 0).all(-1, keepdim=True)).all()
    )


def test_one_line_of_each_dimension_is_of_one_sign_near_one():
    drawn = torch.randn(20, 30, 40)
    drawn[0, 0, 0] = 0.0
    ((near,), _) = input_forms.near_one([drawn])
    signs, others = near.sign(), near.sign() != drawn.sign()
    for dim in range(3):
        sides = signs.movedim(dim, 0).flatten(1)
        assert [
            bool(sides.min(-1).values[i] >= 0) or bool(sides.max(-1).values[i] <= 0) for i in range(len(sides))
        ].count(True) == 1
    assert 0.02 < float(others.float().mean()) < 0.1
    positive = torch.rand(20, 30)
    assert bool((input_forms.near_one([positive])[0][0] > 0).all()), "where there is one sign it stays"


@pytest.mark.parametrize("value", [torch.zeros(9, dtype=torch.int64), torch.full((9,), 2.0), torch.eye(3)])
def test_what_may_be_places_or_is_no_constant_stays(value):
    (same,), found = input_forms.with_other_constants([value], 3, 0.5)
    assert not found and same is value


@pytest.mark.parametrize("dtype", [torch.bool, torch.float32])
def test_one_hot_rows_stand_for_integers_and_stay(dtype):
    rows = torch.nn.functional.one_hot(torch.randint(10, (32,)), 10).to(dtype)
    assert input_forms.with_outliers([rows], [rows], 64.0)[1] is False


@pytest.mark.parametrize(("factor", "is_scaled"), [(0.25, True), (4.0, False), (-1.0, False), (1e-6, False)])
def test_shares_of_one_are_made_smaller_and_nothing_else(factor, is_scaled):
    shares = torch.softmax(torch.randn(32, 64), dim=-1)
    (stressed,), found = input_forms.stress([shares], factor)
    assert found is is_scaled and torch.equal(stressed, shares * factor if is_scaled else shares)


def test_nested_inputs_and_other_values_stay_in_place():
    inputs, touched = input_forms.stress([{"x": torch.ones(3) * 2, "n": 4}, (torch.arange(3),)], 0.5)
    assert touched and inputs[0]["x"].tolist() == [1, 1, 1] and inputs[0]["n"] == 4


def test_rows_are_emptied_where_they_are_numbers_or_masks():
    torch.manual_seed(0)
    numbers, mask, added = torch.randn(64, 8), torch.rand(64, 8) < 0.7, torch.full((64, 8), -torch.inf).triu(1)
    inputs = [numbers, mask, added, torch.randint(0, 9, (64, 8)), torch.randn(5)]
    made, found = input_forms.emptied(inputs, numbers=True, masks=True)
    for before, after, nothing in ((numbers, made[0], 0.0), (mask, made[1], False), (added, made[2], -torch.inf)):
        emptied = (after == nothing).all(-1)
        assert 0 < int(emptied.sum()) < 32 and torch.equal(after[~emptied], before[~emptied])
    assert found and all(now is was for now, was in zip(made[3:], inputs[3:], strict=True))
    only, _ = input_forms.emptied(inputs, numbers=True, masks=False)
    assert only[1] is mask and not torch.equal(only[0], numbers)
    assert not input_forms.emptied([torch.randn(1, 6).expand(9, 6), torch.randn(7)], numbers=True, masks=True)[1]


def test_rows_of_one_length_are_of_the_same_few_families():
    drawn = [torch.randn(4, 50, 16), torch.randn(16, 90).t(), torch.eye(16), torch.randn(3, 16), torch.randn(99)]
    made, found = input_forms.related(drawn, 1 / 16)
    assert found and all(after is before for after, before in zip(made[2:], drawn[2:], strict=True))
    heads = torch.cat([(m - d / 16).reshape(-1, 16) for m, d in zip(made[:2], drawn[:2], strict=True)])
    _, sizes = torch.unique(heads.mul(1e3).round(), dim=0, return_counts=True)
    assert len(sizes) == input_forms.FAMILIES and int(sizes.max()) > len(heads) / 2
    assert made[1].stride() == drawn[1].stride()
    assert not input_forms.related([torch.randn(9, 1).expand(9, 6), torch.ones(9, 6)], 1 / 16)[1]
    (upper,), _ = input_forms.related([torch.randn(9, 9).triu()], 1 / 16)
    assert torch.equal(upper, upper.triu())


def test_ordered_samples_hold_their_own_numbers_in_order():
    channels_last = torch.randn(24, 3, 8, 8).to(memory_format=torch.channels_last)
    inputs = [torch.randn(24, 40), channels_last, torch.randn(7), torch.ones(24, 4), torch.arange(24)]
    (rows, images, single, ones, places), found = input_forms.ordered(inputs)
    assert found and single is inputs[2] and ones is inputs[3] and places is inputs[4]
    assert images.stride() == channels_last.stride()
    changed = (rows != inputs[0]).any(1)
    assert 1 <= int(changed.sum()) <= 3 and torch.equal(changed, (images != channels_last).flatten(1).any(1))
    for before, after in ((inputs[0], rows), (channels_last, images)):
        assert torch.equal(before[~changed], after[~changed])
        numbers = [each[changed].flatten(1).sort(1).values for each in (before, after)]
        assert torch.equal(*numbers)
        for sample in after[changed]:
            steps = [sample.diff(dim=dim) for dim in range(sample.dim())]
            assert all(bool((step >= 0).all()) for step in steps) or all(bool((step <= 0).all()) for step in steps)
    assert not input_forms.ordered([torch.randn(5), torch.randn(4, 1).expand(4, 6), torch.ones(3, 3)])[1]
    assert not input_forms.ordered([torch.randn(9, 9).tril()])[1]
    series = torch.randn(4096)
    ((made,), found) = input_forms.ordered([series])
    steps = made.diff()
    assert found and (bool((steps >= 0).all()) or bool((steps <= 0).all()))
    assert torch.equal(made.sort().values, series.sort().values)


def test_large_elements_of_a_row_lie_near_one_another():
    both, positive, narrow = torch.randn(60, 256), torch.rand(60, 3, 64).transpose(0, 1), torch.randn(9, 63)
    left = [torch.randint(0, 9, (9, 128)), torch.rand(1, 99).expand(9, 99)]
    made, found = input_forms.clustered([both, positive, narrow, *left], 8.0)
    assert found and all(after is before for after, before in zip(made[2:], [narrow, *left], strict=True))
    for before, after in ((both, made[0]), (positive, made[1])):
        larger = after != before
        count, after_larger = larger.sum(-1), (after * larger).flatten(0, -2)
        assert int(count.max()) == input_forms.CLUSTER and int(count.min()) >= 4 and after.stride() == before.stride()
        assert bool((after_larger.sign().sum(-1).abs() == count.flatten()).all())  # of one sign
        assert float(after.abs().max()) <= 8 * float(before.abs().max())
        beside = (larger & larger.roll(1, -1)).sum(-1) == input_forms.CLUSTER - 1
        assert 0.25 < float(beside.double().mean()) < 0.85
    assert bool((made[0] > 9).any()) and bool((made[0] < -9).any()) and bool((made[1] >= 0).all())
    assert not input_forms.clustered([narrow, *left], 8.0)[1]


def test_large_rows_lie_near_one_another():
    keys = torch.randn(40, 128, 16)
    (made,), _ = input_forms.clustered([keys], 8.0)
    larger = (made != keys).all(-1)
    assert torch.equal(made, torch.where(larger[..., None], keys * 8, keys))
    assert bool((larger.sum(-1) <= 2 * input_forms.CLUSTER).all())
    beside = larger.unfold(-1, input_forms.CLUSTER, 1).all(-1).any(-1)
    assert float(beside.double().mean()) > 0.8 and int(larger.sum(-1).max()) > input_forms.CLUSTER


@pytest.mark.parametrize("dtype", [torch.float32, torch.half])
def test_a_few_elements_hold_nearly_all_of_a_large_tensor(dtype):
    drawn = [torch.rand(64, 128).to(dtype).t(), torch.rand(63, 64), torch.randint(0, 9, (99, 99))]
    made, found = input_forms.concentrated(drawn, 1.0)
    assert found and all(after is before for after, before in zip(made[1:], drawn[1:], strict=True))
    sizes = made[0].double().flatten().sort(descending=True).values
    assert float(sizes[: input_forms.HOLDERS].sum()) > 50 * float(sizes[input_forms.HOLDERS :].sum())
    assert 0.1 < float(sizes.sum()) / float(drawn[0].double().sum()) < 8  # about as much as before
    assert made[0].stride() == drawn[0].stride() and not input_forms.concentrated(drawn[1:], 1.0)[1]


def test_an_isolated_element_or_two_are_out_of_range():
    drawn = [torch.rand(64, 128).t(), torch.randint(0, 9, (99, 99))]
    (made, integers), found = input_forms.isolated(drawn, (-1e3, 1e3))
    assert found and integers is drawn[1] and made.stride() == drawn[0].stride()
    assert int((made > 1).sum()) == 1 and int((made < 0).sum()) <= 1 and int((made != drawn[0]).sum()) <= 2
    assert float(made.max()) > 200  # a large element's magnitude, whichever place it is in


@pytest.mark.parametrize(
    "draw",
    [
        lambda: torch.rand(64, 64).tril(),
        lambda: torch.randn(500, 100) * (torch.rand(500, 100).argsort(1) < 10),
        lambda: torch.randn(64, 128)[:, :40],
        lambda: torch.randn(64, 1).expand(64, 30),
    ],
    ids=["triangle", "sparse", "gaps", "expanded"],
)
def test_zeros_stay_and_something_is_isolated_all_the_same(draw):
    drawn = draw()
    for _ in range(20):
        ((made,), _) = input_forms.isolated([drawn], (-1e3, 1e3))
        assert bool((made[drawn == 0] == 0).all()) and float(made.max()) > 100
    ((made,), found) = input_forms.clustered([drawn], 8.0)
    assert not found or bool((made[drawn == 0] == 0).all())


def test_emptied_rows_keep_their_layout():
    value = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    (made,), _ = input_forms.emptied([value], numbers=True, masks=True)
    assert made.stride() == value.stride()


@pytest.mark.parametrize(
    ("draw", "holds"),
    [
        (lambda: torch.rand(40).sort().values, lambda t: bool((t.diff() >= 0).all())),
        (lambda: torch.rand(40, 6).sort(0).values.t(), lambda t: bool((t.diff() >= 0).all())),
        (lambda: (a := torch.randn(3, 12, 12)) + a.mT, lambda t: torch.equal(t, t.mT)),
    ],
    ids=["boundaries", "strided", "symmetric"],
)
def test_what_is_in_order_or_symmetric_stays_so(draw, holds):
    drawn = [draw()]
    for (made,), found in (
        *(input_forms.stress(drawn, factor) for factor in (-1.0, 8.0)),
        input_forms.touched(drawn, [draw()]),
        input_forms.with_outliers(drawn, [draw()], 64.0),
        input_forms.mixed(drawn, (-1.0, 0.0)),
        *([input_forms.emptied(drawn, True, True)] if drawn[0].dim() > 1 else []),
    ):
        assert found and holds(made) and made.stride() == drawn[0].stride() and not torch.equal(made, drawn[0])


def gram(*shape, dtype=torch.float32):
    features = torch.randn(*shape, 2 * shape[-1])
    return (features @ features.mT / features.shape[-1] + 0.1 * torch.eye(shape[-1])).to(dtype)


@pytest.mark.parametrize("draw", [lambda: gram(12), lambda: gram(3, 20), lambda: gram(2, 5, 8, dtype=torch.bfloat16)])
def test_what_is_positive_definite_stays_so(draw):
    drawn = [draw()]
    for (made,), found in (
        *(input_forms.stress(drawn, factor) for factor in (-1.0, 8.0, 1e5)),
        input_forms.touched(drawn, [draw()]),
        input_forms.with_outliers(drawn, [draw()], 64.0),
        input_forms.mixed(drawn, (-1.0, 0.0)),
        input_forms.isolated(drawn, (-1e3, 1e3)),
    ):
        assert found and not torch.equal(made, drawn[0])
        assert bool((torch.linalg.cholesky_ex(made.double()).info == 0).all())
    assert not input_forms.emptied(drawn, True, True)[1]


@pytest.mark.parametrize(
    "draw",
    [
        lambda: torch.diag(torch.rand(64) + 0.5),
        lambda: (100 * torch.eye(20) + gram(20)).bfloat16(),
        lambda: gram(3, 20).half(),
    ],
    ids=["diagonal", "heavy-diagonal", "half"],
)
def test_what_changes_stays_near_what_is_changed(draw):
    for _ in range(5):
        drawn = draw()
        ((made,), _) = input_forms.stress([drawn], -1.0)
        assert traits.is_positive_definite(made)
        ((made,), _) = input_forms.isolated([drawn], (-8.0, 8.0))
        assert traits.is_positive_definite(made) and int((made != drawn).sum()) <= 2 * (2 + 2)


def test_what_is_rounded_here_so_and_there_so_is_symmetric_all_the_same():
    drawn = gram(30)
    drawn[3, 4] = torch.nextafter(drawn[4, 3], torch.tensor(9.0))
    assert not traits.is_symmetric(drawn) and traits.is_positive_definite(drawn)
    ((made,), _) = input_forms.with_outliers([drawn], [gram(30)], 64.0)
    assert traits.is_symmetric(made) and traits.is_positive_definite(made)


@pytest.mark.parametrize(
    "matrix",
    [
        torch.rand(64, 64) @ torch.rand(64, 64),
        (both := torch.randn(64, 64)) + both.T,
        torch.ones(8, 8),
        -gram(8),
        gram(8)[:2],
        torch.eye(8, dtype=torch.long),
    ],
    ids=["product", "symmetric", "singular", "negative", "not-square", "integers"],
)
def test_what_is_not_positive_definite_is_not_taken_for_it(matrix):
    assert not traits.is_positive_definite(matrix)


MAKING = """
import sys, torch
from cuda_l1.evaluator.guest import input_forms
drawn, other = [torch.randn(40, 6)], [torch.randn(40, 6)]
known = set(sys.modules)
input_forms.stress(drawn, 8.0), input_forms.touched(drawn, other), input_forms.with_outliers(drawn, other, 8.0)
input_forms.mixed(drawn, (8.0,)), input_forms.isolated(drawn, (-8.0, 8.0)), input_forms.related(drawn, 0.1)
input_forms.clustered(drawn, 8.0), input_forms.concentrated(drawn, 2.0), input_forms.emptied(drawn, True, True)
input_forms.with_other_constants(drawn, 2, 8.0), input_forms.ordered(drawn)
print(*sorted(set(sys.modules) - known))
"""


def test_what_makes_inputs_imports_nothing() -> None:
    """Each judge would do so anew: parts of torch import SymPy when they are first called."""
    done = subprocess.run([sys.executable, "-c", MAKING], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_lines_along_every_dimension_and_whole_samples_are_emptied():
    drawn = torch.randn(16, 6, 5, 7)
    (made,), found = input_forms.emptied([drawn], numbers=True, masks=True, all_ways=True)
    assert found and all(bool((made == 0).all(dim).any()) for dim in range(4))
    assert bool((made == 0).flatten(1).all(1).any()) and float((made == 0).float().mean()) < 0.3
    mask = (torch.rand(32, 64, 1) < 0.7).float()
    (shut,), _ = input_forms.emptied([mask], numbers=True, masks=True, all_ways=True)
    assert bool((shut == 0).all(1).any())


BESIDE = {
    "negated": functools.partial(input_forms.stress, factor=-2.0),
    "mixed": functools.partial(input_forms.mixed, factors=(-1.0, 0.0)),
    "isolated": functools.partial(input_forms.isolated, factors=(-1e3, 1e3)),
    "related": functools.partial(input_forms.related, apart=0.1),
    "clustered": functools.partial(input_forms.clustered, factor=8.0),
    "concentrated": functools.partial(input_forms.concentrated, power=1.0),
    "ordered": input_forms.ordered,
    "near-one": input_forms.near_one,
    "outliers": lambda inputs: input_forms.with_outliers(inputs, [torch.randn(96, 64)], 64.0),
}


@pytest.mark.parametrize("make", BESIDE.values(), ids=BESIDE)
@pytest.mark.parametrize("infinity", [math.inf, -math.inf])
def test_numbers_beside_infinities_are_made_as_others_and_these_stay(make, infinity):
    scores = torch.randn(64, 96).t().masked_fill(torch.rand(96, 64) < 0.3, infinity)
    ((made,), found) = make([scores])
    infinite = torch.isinf(scores)
    assert found and torch.equal(made[infinite], scores[infinite]) and bool(torch.isfinite(made[~infinite]).all())
    assert not torch.equal(made, scores) and made.stride() == scores.stride()


@pytest.mark.parametrize("make", BESIDE.values(), ids=BESIDE)
@pytest.mark.parametrize("far_out", [-1e9, -9999.0, 512.0])
def test_what_stands_for_nothing_stays_as_infinities_do(make, far_out):
    numbers = torch.randn(64, 96).t().masked_fill(torch.rand(96, 64) < 0.3, far_out)
    ((made,), found) = make([numbers])
    missing = numbers == far_out
    assert found and torch.equal(made[missing], numbers[missing]) and not torch.equal(made, numbers)
    (emptied,), found = input_forms.emptied([numbers], numbers=False, masks=True)
    assert found and 1 <= int((emptied == far_out).all(1).sum()) < 96


def test_large_numbers_that_come_once_or_are_near_others_stand_for_something():
    for numbers in (torch.randn(4096), torch.randn(4096).clamp(-2, 2), torch.randn(4096).relu(), torch.randn(0)):
        assert not traits.outside(numbers)
    once, grades = torch.randn(4096), torch.randint(1, 5, (4096,)).float()
    once[7], grades[::3] = -1e9, -999.0
    assert not traits.outside(once) and not traits.outside(grades)


GAPS = {
    "emptied": functools.partial(input_forms.emptied, numbers=True, masks=True),
    "related": functools.partial(input_forms.related, apart=0.1),
    "clustered": functools.partial(input_forms.clustered, factor=8.0),
    "ordered": input_forms.ordered,
    "of-one-sign": functools.partial(uneven.of_one_sign, sign=-1.0),
}


@pytest.mark.parametrize("make", GAPS.values(), ids=GAPS)
def test_slices_of_larger_tensors_are_made_as_dense_ones_and_laid_as_they_were(make):
    whole, dense, expanded = torch.randn(64, 3 * 96), torch.randn(64, 96), torch.randn(64, 1).expand(64, 96)
    drawn = [*whole.split(96, 1), dense, expanded]
    before = [tensor.clone() for tensor in drawn]
    assert not any(now is not was for now, was in zip(make(drawn)[0][:3], drawn[:3], strict=True))
    made, found = filling_gaps(make)(drawn)
    assert found and layout(made) == layout(drawn) and made[4] is expanded
    for now, was in zip(made[:4], drawn[:4], strict=True):
        assert not torch.equal(now, was)
    assert all(map(torch.equal, drawn, before)), "what was drawn is as it was"


def test_edges_stay_in_order_beside_infinities():
    edges = torch.cat([torch.tensor([-math.inf]), torch.randn(30).sort().values, torch.tensor([math.inf])])
    ((made,), found) = input_forms.stress([edges], -3.0)
    assert found and bool((made[1:] >= made[:-1]).all()) and bool(torch.isinf(made[[0, -1]]).all())


def test_rows_of_numbers_beside_infinities_are_shut_as_those_of_masks_are():
    for infinity in (math.inf, -math.inf):
        scores = torch.randn(64, 32).masked_fill(torch.rand(64, 32) < 0.3, infinity)
        ((made,), found) = input_forms.emptied([scores], numbers=False, masks=True)
        shut = (made == infinity).all(1)
        assert found and 1 <= int(shut.sum()) < 32 and torch.equal(made[~shut], scores[~shut])
        assert not input_forms.emptied([scores], numbers=True, masks=False)[1]


def test_a_mask_of_one_row_is_shut_as_a_whole():
    for mask in ((torch.rand(24) < 0.8).float(), torch.rand(24) < 0.8, torch.rand(24).round() * -math.inf):
        mask = mask.nan_to_num(nan=0.0, neginf=-math.inf) if mask.is_floating_point() else mask
        mask[:2] = torch.tensor([float(mask.max()), float(mask.min())])
        ((made,), found) = input_forms.emptied([mask], numbers=True, masks=True)
        assert found and bool((made == mask.min()).all())
    assert not input_forms.emptied([torch.randn(24)], numbers=True, masks=True)[1]


def test_blank_inputs_hold_nothing_and_places_stay():
    numbers, places = torch.randn(4, 8), torch.randint(1, 9, (4,))
    truths, added = torch.rand(4, 8) < 0.5, torch.where(torch.rand(4, 8) < 0.5, 0.0, -torch.inf)
    table, single = (torch.rand(9, 9) < 0.5).float(), torch.tensor(3.0)
    inputs = [numbers, places, truths, added, table, single, 7]
    made, found = input_forms.blanked(inputs, numbers=True, masks=True)
    assert found and not made[0].any() and not made[2].any() and bool((made[3] == -torch.inf).all())
    assert not made[4].any() and made[1] is places and made[5] is single and made[6] == 7
    made, found = input_forms.blanked(inputs, numbers=False, masks=True)
    assert found and made[0] is numbers and not made[2].any()
    made, found = input_forms.blanked(inputs, numbers=True, masks=False)
    assert found and made[2] is truths and not made[0].any()
    assert input_forms.blanked([places, single, 7], numbers=True, masks=True) == ([places, single, 7], False)


def test_blank_inputs_lie_as_they_did_and_definite_matrices_stay():
    root = torch.randn(6, 6)
    inputs = [
        torch.randn(4, 8).t(),
        torch.randn(1, 8).expand(4, 8),
        torch.randn(64)[::4],
        root @ root.mT + torch.eye(6),
    ]
    made, found = input_forms.blanked(inputs, numbers=True, masks=True)
    assert found and layout(made) == layout(inputs) and made[3] is inputs[3]
    assert not any(bool(tensor.any()) for tensor in made[:3]) and extent(made[1]) == 8


def test_flags_that_no_draw_raises_or_lowers_are_exchanged_and_a_structure_of_zeros_stays():
    table = torch.randn(512, 6)
    for value in (0.0, 1.0):
        table[:, 4] = value
        ((made,), found) = input_forms.with_other_constants([table], 8, 0.5)
        changed = made != table
        assert found and 1 <= int(changed.sum()) <= 8 and bool((made[changed] == 1 - value).all())
        assert bool(changed[:, 4].any()) and not bool(changed[:, :4].any())
    for kept in (torch.randn(32, 32).tril(-1), torch.cat([torch.randn(64, 5), torch.zeros(64, 3)], 1)):
        assert input_forms.with_other_constants([kept], 8, 0.5)[0][0] is kept


def test_what_a_rectification_leaves_is_put_in_order_and_structures_are_not():
    sparse, triangles = torch.relu(torch.randn(16, 128)), torch.randn(16, 32, 32).tril()
    ((made, same), found) = input_forms.ordered([sparse, triangles])
    assert found and same is triangles and bool(((made.diff() >= 0).all(1) | (made.diff() <= 0).all(1)).any())
    related, _ = input_forms.related([sparse, triangles[0]], 0.01)
    assert bool((related[0][sparse == 0] != 0).any()) and bool((related[1][triangles[0] == 0] == 0).all())


def test_complex_numbers_are_large_in_clusters_near_one_in_order_and_far_out_in_any_direction():
    drawn = torch.randn(16, 256, dtype=torch.complex64)
    ((made,), _) = input_forms.clustered([drawn], 8.0)
    assert float(made.abs().max()) > 2 * float(drawn.abs().max())
    ((made,), _) = input_forms.near_one([drawn])
    assert float((made.abs() - 1).abs().max()) < 0.1 and float((made.angle() - drawn.angle()).abs().max()) < 1e-4
    ((made,), _) = input_forms.ordered([drawn])
    assert any(bool((part.diff() >= 0).all() or (part.diff() <= 0).all()) for part in made.real)
    far = [input_forms.isolated([drawn], (1e3,))[0][0] for _ in range(8)]
    assert all(float(each.abs().max()) > 1e3 for each in far) and any(
        float(each.imag.abs().max()) > 500 for each in far
    )


def test_few_samples_and_few_numbers_stand_for_all():
    x, y, n = torch.randn(40, 6, 8), torch.randint(0, 9, (40, 3)), torch.randperm(30)
    (rows, chosen, order), found = input_forms.repeated([x, y, n], (), values=False)
    assert found and len(rows.unique(dim=0)) == input_forms.SAMPLES and order is n
    assert torch.equal(torch.cat([rows.flatten(1), chosen], dim=1).unique(dim=0)[:, :-3], rows.flatten(1).unique(dim=0))
    assert all(any(torch.equal(row, own) for own in x) for row in rows)
    (rows, chosen), _ = input_forms.repeated([x, y], (), values=True)
    assert len(rows.unique()) <= input_forms.VALUES and len(rows.unique(dim=0)) <= input_forms.SAMPLES
    assert torch.isin(rows, x).all() and torch.isin(chosen, y).all()


def test_what_has_no_samples_is_not_repeated():
    symmetric = torch.randn(9, 9)
    values = [torch.randn(3), torch.randperm(9), symmetric + symmetric.mT, torch.tensor(2.0)]
    made, found = input_forms.repeated(values, (), values=True)
    assert not found and all(one is other for one, other in zip(made, values, strict=True))
    assert input_forms.repeated([torch.randn(9, 9)], (0,), values=True)[1] is False


def test_repeated_samples_are_laid_out_as_they_were_and_stay_in_order():
    x, ends = torch.randn(6, 4, 5, 5).to(memory_format=torch.channels_last), torch.rand(12, 10).sort().values
    (made, sorted_), _ = input_forms.repeated([x, ends], (), values=True)
    assert made.stride() == x.stride() and torch.equal(sorted_, sorted_.sort().values)
