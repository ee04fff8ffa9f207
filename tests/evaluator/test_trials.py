"""What is put to a candidate: stressed inputs, other weights, secret seeds."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from cuda_l1.evaluator.guest import state, trials
from cuda_l1.evaluator.guest.tensors import extent, nbytes_needed

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


@pytest.mark.parametrize("factor", [-1.0, 8.0, 1e5])
@pytest.mark.parametrize("make", PLAIN.values(), ids=PLAIN)
def test_plain_inputs_are_multiplied(make, factor):
    value = make()
    (stressed,), touched = trials.stress([value], factor)
    assert touched and torch.equal(stressed, value * factor) and stressed.stride() == value.stride()


@pytest.mark.parametrize("make", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_masks_integers_and_structured_inputs_are_left_alone(make):
    value = make()
    (stressed,), touched = trials.stress([value], -1.0)
    assert not touched and stressed is value


@pytest.mark.parametrize("make", [lambda: torch.randn(1, 6).expand(50, 6), lambda: torch.randn(9, 8)[:, ::2]])
def test_stressed_inputs_take_no_more_room(make):
    value = make()
    (stressed,), _ = trials.stress([value], 2.0)
    assert torch.equal(stressed, 2 * value) and stressed.stride() == value.stride()
    assert extent(stressed) == extent(value) and nbytes_needed([stressed]) == nbytes_needed([value])


def test_outliers_are_few_and_far_out():
    inputs, other = [torch.full((100,), 2.0), torch.arange(9)], [torch.full((100,), 0.5), torch.arange(9)]
    (values, integers), found = trials.with_outliers(inputs, other, 64.0)
    assert found and torch.equal(integers, inputs[1])
    assert 1 <= int((values == 32.0).sum()) <= trials.TOUCHED and int((values == 2.0).sum()) >= 97


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
    (swapped,), found = trials.with_outliers([value], [make()], 64.0)
    assert found and not torch.equal(swapped, value)
    assert torch.equal(swapped.flatten().sort().values, value.flatten().sort().values)


@pytest.mark.parametrize("make", PLAIN.values(), ids=PLAIN)
def test_some_inputs_get_the_other_sign_and_some_are_zero(make):
    torch.manual_seed(1)
    value = make()
    (blended,), found = trials.mixed([value], (-1.0, 0.0))
    other = -1j * value if value.is_complex() else -value
    kept, negated, zero = blended == value, blended == other, blended == 0
    assert found and bool((kept | negated | zero).all()) and blended.stride() == value.stride()
    assert 0.05 < float((negated & ~zero).float().mean()) < 0.4 and bool((zero & (value != 0)).any())
    assert value.is_complex() or not bool(torch.signbit(blended[zero & (value != 0)]).any())


@pytest.mark.parametrize("make", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_no_sign_is_given_to_what_is_left_alone(make):
    value = make()
    (blended,), found = trials.mixed([value], (-1.0,))
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
    (other,), found = trials.with_other_constants([value], 3, 0.5)
    assert found and other.dtype == value.dtype and other.stride() == value.stride()
    assert 1 <= int(torch.unique((other != value).nonzero()[:, 1]).numel()) <= 3
    assert set(other.flatten().tolist()) == {0, 1}


@pytest.mark.parametrize(("value", "other"), [(1.0, -0.5), (0.0, -0.5), (-4.0, 2.0)])
def test_a_single_number_is_another_one_and_has_the_other_sign_first(value, other):
    made = [trials.with_other_constants([torch.tensor(value)], *others)[0][0] for others in trials.OTHERS[:2]]
    assert [float(found) for found in made] == [other, -other]


@pytest.mark.parametrize("value", [torch.zeros(9, dtype=torch.int64), torch.full((9,), 2.0), torch.eye(3)])
def test_what_may_be_places_or_is_no_constant_stays(value):
    (same,), found = trials.with_other_constants([value], 3, 0.5)
    assert not found and same is value


@pytest.mark.parametrize("dtype", [torch.bool, torch.float32])
def test_one_hot_rows_stand_for_integers_and_stay(dtype):
    rows = torch.nn.functional.one_hot(torch.randint(10, (32,)), 10).to(dtype)
    assert trials.with_outliers([rows], [rows], 64.0)[1] is False


@pytest.mark.parametrize(("factor", "is_scaled"), [(0.25, True), (4.0, False), (-1.0, False), (1e-6, False)])
def test_shares_of_one_are_made_smaller_and_nothing_else(factor, is_scaled):
    shares = torch.softmax(torch.randn(32, 64), dim=-1)
    (stressed,), found = trials.stress([shares], factor)
    assert found is is_scaled and torch.equal(stressed, shares * factor if is_scaled else shares)


def test_nested_inputs_and_other_values_stay_in_place():
    inputs, touched = trials.stress([{"x": torch.ones(3) * 2, "n": 4}, (torch.arange(3),)], 0.5)
    assert touched and inputs[0]["x"].tolist() == [1, 1, 1] and inputs[0]["n"] == 4


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5, 4)
        self.head = nn.Linear(4, 5, bias=False)
        self.head.weight = self.embedding.weight
        self.zeros = nn.Parameter(torch.zeros(3))
        self.ones = nn.Parameter(torch.ones(3))
        self.empty = nn.Parameter(torch.empty(0))
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("mask", torch.ones(4, 4).tril())
        self.hidden = torch.randn(4)


def test_other_weights_change_every_parameter_and_nothing_else():
    model = Tied()
    other, kinds = trials.other_state(model), state.kinds(model)
    for name, value in state.collect(model).items():
        if name == "empty":
            continue
        running = name.endswith(("running_mean", "running_var"))
        if kinds[name] == "parameter" or running:
            changed = (other[name] != value).double().mean()
            assert changed > 0.9, name
        else:
            assert torch.equal(other[name], value), name


@pytest.mark.parametrize("start", [0.0, 1e-6, -1e-6])
def test_parameters_that_start_as_nothing_are_brought_to_a_visible_size(start):
    model = nn.Module()
    model.scale = nn.Parameter(torch.full((64,), start))
    other = trials.other_state(model)["scale"]
    assert 0.05 < float(other.pow(2).mean().sqrt()) < 0.2
    if start:
        assert bool((other.sign() == model.scale.sign()).all())  # a temperature stays positive


def test_rows_are_emptied_where_they_are_numbers_or_masks():
    torch.manual_seed(0)
    numbers, mask, added = torch.randn(64, 8), torch.rand(64, 8) < 0.7, torch.full((64, 8), -torch.inf).triu(1)
    inputs = [numbers, mask, added, torch.randint(0, 9, (64, 8)), torch.randn(5)]
    made, found = trials.emptied(inputs, numbers=True, masks=True)
    for before, after, nothing in ((numbers, made[0], 0.0), (mask, made[1], False), (added, made[2], -torch.inf)):
        emptied = (after == nothing).all(-1)
        assert 0 < int(emptied.sum()) < 32 and torch.equal(after[~emptied], before[~emptied])
    assert found and all(now is was for now, was in zip(made[3:], inputs[3:], strict=True))
    only, _ = trials.emptied(inputs, numbers=True, masks=False)
    assert only[1] is mask and not torch.equal(only[0], numbers)
    assert not trials.emptied([torch.randn(1, 6).expand(9, 6), torch.randn(7)], numbers=True, masks=True)[1]


def test_rows_of_one_length_are_of_the_same_few_families():
    drawn = [torch.randn(4, 50, 16), torch.randn(16, 90).t(), torch.eye(16), torch.randn(3, 16), torch.randn(99)]
    made, found = trials.related(drawn, 1 / 16)
    assert found and all(after is before for after, before in zip(made[2:], drawn[2:], strict=True))
    heads = torch.cat([(m - d / 16).reshape(-1, 16) for m, d in zip(made[:2], drawn[:2], strict=True)])
    assert len(torch.unique(heads.mul(1e3).round(), dim=0)) == trials.FAMILIES
    assert made[1].stride() == drawn[1].stride()
    assert not trials.related([torch.randn(9, 1).expand(9, 6), torch.ones(9, 6)], 1 / 16)[1]
    (upper,), _ = trials.related([torch.randn(9, 9).triu()], 1 / 16)
    assert torch.equal(upper, upper.triu())


def test_large_elements_of_a_row_lie_near_one_another():
    both, positive, narrow = torch.randn(60, 256), torch.rand(60, 3, 64).transpose(0, 1), torch.randn(9, 63)
    left = [torch.randn(5, 128, dtype=torch.complex64), torch.randint(0, 9, (9, 128)), torch.rand(1, 99).expand(9, 99)]
    made, found = trials.clustered([both, positive, narrow, *left], 8.0)
    assert found and all(after is before for after, before in zip(made[2:], [narrow, *left], strict=True))
    for before, after in ((both, made[0]), (positive, made[1])):
        larger = after != before
        count, after_larger = larger.sum(-1), (after * larger).flatten(0, -2)
        assert int(count.max()) == trials.CLUSTER and int(count.min()) >= 4 and after.stride() == before.stride()
        assert bool((after_larger.sign().sum(-1).abs() == count.flatten()).all())  # of one sign
        assert float(after.abs().max()) <= 8 * float(before.abs().max())
        beside = (larger & larger.roll(1, -1)).sum(-1) == trials.CLUSTER - 1
        assert 0.25 < float(beside.double().mean()) < 0.85
    assert bool((made[0] > 9).any()) and bool((made[0] < -9).any()) and bool((made[1] >= 0).all())
    assert not trials.clustered([narrow, *left], 8.0)[1]


def test_large_rows_lie_near_one_another():
    keys = torch.randn(40, 128, 16)
    (made,), _ = trials.clustered([keys], 8.0)
    larger = (made != keys).all(-1)
    assert torch.equal(made, torch.where(larger[..., None], keys * 8, keys))
    assert bool((larger.sum(-1) <= 2 * trials.CLUSTER).all())
    beside = larger.unfold(-1, trials.CLUSTER, 1).all(-1).any(-1)
    assert float(beside.double().mean()) > 0.8 and int(larger.sum(-1).max()) > trials.CLUSTER


@pytest.mark.parametrize("dtype", [torch.float32, torch.half])
def test_a_few_elements_hold_nearly_all_of_a_large_tensor(dtype):
    drawn = [torch.rand(64, 128).to(dtype).t(), torch.rand(63, 64), torch.randint(0, 9, (99, 99))]
    made, found = trials.concentrated(drawn, 1.0)
    assert found and all(after is before for after, before in zip(made[1:], drawn[1:], strict=True))
    sizes = made[0].double().flatten().sort(descending=True).values
    assert float(sizes[: trials.HOLDERS].sum()) > 50 * float(sizes[trials.HOLDERS :].sum())
    assert 0.1 < float(sizes.sum()) / float(drawn[0].double().sum()) < 8  # about as much as before
    assert made[0].stride() == drawn[0].stride() and not trials.concentrated(drawn[1:], 1.0)[1]


def test_an_isolated_element_or_two_are_out_of_range():
    drawn = [torch.rand(64, 128).t(), torch.randint(0, 9, (99, 99))]
    (made, integers), found = trials.isolated(drawn, (-1e3, 1e3))
    assert found and integers is drawn[1] and made.stride() == drawn[0].stride()
    assert int((made > 1).sum()) == 1 and int((made < 0).sum()) <= 1 and int((made != drawn[0]).sum()) <= 2
    assert float(made.max()) > 200  # a large element's magnitude, whichever place it is in


def test_pruned_matrices_have_zeros_and_rows_of_zeros_and_tied_ones_stay_tied():
    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64), nn.LayerNorm(64))
    model[1].weight = model[0].weight
    other = trials.other_state(model)
    rows, elements = (trials.pruned(model, other, rows=rows) for rows in (True, False))
    for values, least in ((rows, 1), (elements, 0)):
        weight = values["0.weight"]
        assert values["1.weight"] is weight and values["2.weight"] is other["2.weight"]
        assert 0.05 < (weight == 0).double().mean() < 0.5 and int((weight == 0).all(dim=1).sum()) >= least
        assert torch.equal(weight[weight != 0], other["0.weight"][weight != 0])
    assert trials.pruned(nn.LayerNorm(64), {}, rows=True) == {}


def test_emptied_rows_keep_their_layout():
    value = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    (made,), _ = trials.emptied([value], numbers=True, masks=True)
    assert made.stride() == value.stride()


class Tables(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.tied = self.linear.weight
        self.register_buffer("edges", torch.linspace(-1, 1, 9))
        self.register_buffer("table", torch.randn(6, 6))
        self.register_buffer("packed", torch.arange(24).view(4, 6).to(torch.int8))
        self.register_buffer("causal", torch.ones(40, 40).tril())
        self.register_buffer("count", torch.tensor(3))
        self.register_buffer("spectrum", torch.randn(5, dtype=torch.complex64))
        self.register_buffer("angles", torch.linspace(0, 1, 9), persistent=False)
        self.register_buffer("running_mean", None)  # as modules have that keep no statistics


def test_buffers_of_a_checkpoint_are_others_in_the_trial_of_signs():
    torch.manual_seed(0)
    model = Tables()
    other = trials.other_state(model)
    data = {name for name in state.saved_buffers(model) if trials.may_be_data(name, other[name])}
    assert data == {"edges", "table", "packed", "spectrum"}
    made = trials.of_both_signs(model, other, trials.CONSTANT_BUFFERS[0], data)
    assert {name for name in made if not torch.equal(made[name], other[name])} == data
    assert bool((made["edges"].diff() > 0).all()) and torch.equal(made["table"].sign(), other["table"].sign())
    ratio = made["table"] / other["table"]
    assert 1.0 <= float(ratio.min()) < float(ratio.max()) <= 1.25
    assert sorted(made["packed"].flatten().tolist()) == list(range(24))
    assert not trials.of_both_signs(model, other, None, data)


def test_large_weights_are_many_times_as_large():
    model = Tables()
    other = trials.other_state(model)
    assert not torch.equal(trials.with_large_weights(model, other, 16.0, 1)["linear.bias"], other["linear.bias"])
    made = trials.with_large_weights(model, other, 16.0, 2)
    assert torch.equal(made["linear.weight"], 16 * other["linear.weight"]) and made["tied"] is made["linear.weight"]
    assert all(made[name] is other[name] for name in other if name not in ("linear.weight", "tied"))
    assert not trials.with_large_weights(nn.LayerNorm(4), trials.other_state(nn.LayerNorm(4)), 16.0, 2)


def test_gates_are_held_open_and_plain_recurrences_keep_their_state():
    model = nn.ModuleDict({"gru": nn.GRU(8, 12), "rnn": nn.RNN(8, 8), "norm": nn.LayerNorm(8), "head": nn.Linear(8, 8)})
    other = trials.other_state(model)
    other["head.bias"] = other["head.bias"] * 1e3
    made = trials.with_long_memory(model, other)
    for name in ("gru.bias_ih_l0", "gru.bias_hh_l0", "rnn.bias_hh_l0", "norm.bias"):
        value = made[name]
        assert value.unique().tolist() == [-trials.OPEN, 0.0, trials.OPEN], name
        assert int((value == 0).sum()) - value.numel() // 3 in (0, 1)
    assert float(made["head.bias"].max()) > 10 * trials.OPEN
    own = made["rnn.weight_hh_l0"] - other["rnn.weight_hh_l0"]
    assert torch.allclose(own, trials.HELD * torch.eye(8), atol=1e-5)
    for name in ("gru.weight_hh_l0", "rnn.weight_ih_l0", "norm.weight", "head.weight"):
        assert made[name] is other[name], name
    assert not trials.with_long_memory(nn.Conv1d(4, 4, 3, bias=False), {"weight": torch.randn(4, 4, 3)})


def test_other_weights_keep_ties_and_positive_variances():
    other = trials.other_state(Tied())
    assert other["head.weight"] is other["embedding.weight"]
    assert (other["norm.running_var"] > 0).all()


def test_parameters_are_touched_one_after_the_other_and_buffers_together():
    model = Tied()
    found = trials.parts(model, {"hidden"}, {"zeros"})
    *parameters, buffers = found
    assert set(buffers) == {("norm.running_mean",), ("norm.running_var",), ("hidden",)}
    alone = {("embedding.weight", "head.weight"), ("ones",), ("norm.weight",), ("norm.bias",)}
    assert len(parameters) == trials.ALONE and {names for (names,) in parameters} == alone
    first, second, buffers = trials.parts(model, {"hidden"})
    assert len(first) - len(second) == 1 and {*first, *second} == {*alone, ("zeros",)}  # one more, in two halves
    assert trials.parts(nn.ReLU()) == [] and trials.parts(nn.PReLU()) == [(("weight",),)]


@pytest.mark.parametrize("exchanged", [True, False])
@pytest.mark.parametrize("any_sign", [True, False])
def test_a_few_elements_of_weights_are_touched_and_the_rest_is_what_it_was(any_sign, exchanged):
    model = Tied()
    model.angles = nn.Parameter(torch.linspace(1, 2, 64))
    model.slope = nn.Parameter(torch.ones(1).bfloat16())
    weights = trials.other_state(model)
    weights["angles"] = model.angles.detach()
    part = (("embedding.weight", "head.weight"), ("norm.running_var",), ("angles",), ("slope",))
    touched = trials.with_touched(weights, part, any_sign=any_sign, exchanged=exchanged)
    assert touched["head.weight"] is touched["embedding.weight"]
    for name, value in weights.items():
        if not any(name in names for names in part):
            assert touched[name] is value, name
            continue
        assert touched[name].dtype is value.dtype and not torch.equal(touched[name], value)
        if name != "slope":
            assert 0 < int((touched[name] != value).sum()) <= (64 if name == "angles" else trials.MOVED)
            assert torch.allclose(touched[name].mean(), value.mean(), atol=1e-5)
    assert bool((touched["norm.running_var"] > 0).all()) and bool((touched["angles"].diff() >= 0).all())
    assert any_sign or bool((touched["angles"] > 0).all())
    before, after = (values["head.weight"].flatten().sort().values for values in (weights, touched))
    assert torch.equal(before, after) == exchanged


@pytest.mark.parametrize("shape", [(512, 64), (7,), (2,)])
def test_no_sum_norm_or_extreme_tells_that_weights_were_touched(shape):
    value, known = torch.randn(shape), 0
    for _ in range(20):
        made = trials.with_touched({"w": value}, (("w",),), any_sign=True)["w"]
        assert 0 < int((made != value).sum()) <= trials.MOVED
        assert torch.equal(made.flatten().sort().values, value.flatten().sort().values)
        known += not (torch.equal(made.sum(), value.sum()) and torch.equal(made.norm(), value.norm()))
    assert known <= 10 or value.numel() < 8  # that they are rounded alike takes luck


@pytest.mark.parametrize("constants", trials.CONSTANT_BUFFERS)
def test_parameters_of_one_sign_get_both(constants):
    torch.manual_seed(1)
    model = Tied()
    model.register_buffer("frozen", torch.ones(64))
    before = trials.other_state(model)
    signed = trials.of_both_signs(model, before, constants)
    assert bool((signed["norm.weight"].abs() == before["norm.weight"]).all()) and bool(
        (signed["norm.weight"] < 0).any()
    )
    assert signed["head.weight"] is signed["embedding.weight"] is before["head.weight"]
    for name in ("mask", "hidden", "norm.running_var"):
        assert signed[name] is before[name], name
    assert torch.equal(signed["frozen"], before["frozen"]) is (constants is None)


def test_a_buffer_that_may_be_a_mask_is_one_still_in_the_first_form():
    model = nn.Linear(4, 4)
    model.register_buffer("mask", torch.ones(8, 8))
    model.register_buffer("state", torch.zeros(8))
    signed = trials.of_both_signs(model, trials.other_state(model), trials.CONSTANT_BUFFERS[0])
    for value in (signed["mask"], signed["state"]):
        assert bool(((value == 0) | (value == 1)).all()) and 0 < float(value.mean()) < 1


def test_a_model_without_such_a_parameter_has_no_such_trial():
    model = nn.Linear(4, 4)
    assert trials.of_both_signs(model, trials.other_state(model), trials.CONSTANT_BUFFERS[0]) == {}


def test_other_weights_leave_the_model_untouched():
    model = Tied()
    before = state.snapshot(model)
    trials.other_state(model)
    assert not trials.changed(before, state.snapshot(model))


def test_half_precision_parameters_keep_their_dtype():
    other = trials.other_state(nn.Linear(4, 4).bfloat16())
    assert {t.dtype for t in other.values()} == {torch.bfloat16}


def test_changes_are_named_and_so_is_what_is_new():
    before = {"a": torch.ones(2), "b": torch.tensor([torch.nan])}
    after = {"a": torch.ones(2), "b": torch.tensor([torch.nan]), "c": torch.ones(1)}
    assert trials.changed(before, after) == ["c"]
    after["a"] = torch.tensor([1.0, 2.0])
    assert trials.changed(before, after) == ["a", "c"]


def test_inputs_follow_the_seed_and_are_secret_without_one():
    def get_inputs():
        return [torch.randn(8, requires_grad=True)]

    first, again = (trials.draw_inputs(get_inputs, "cpu", 7)[0] for _ in range(2))
    secret, other = (trials.draw_inputs(get_inputs, "cpu")[0] for _ in range(2))
    assert torch.equal(first, again) and not torch.equal(secret, other) and not first.requires_grad


def test_seeds_come_from_the_operating_system():
    torch.manual_seed(0)
    first = trials.secret_seed()
    torch.manual_seed(0)
    assert trials.secret_seed() != first and 0 <= first < 2**63


def test_plans_vary_everything_that_a_candidate_could_have_kept():
    plans = trials.standard_plans()
    assert plans[0].kind == "base" and plans[1].same_inputs
    assert (
        any(p.other_weights for p in plans)
        and [p.offset for p in plans if p.offset] == [1]
        and any(p.in_place for p in plans)
    )
    assert {p.factor < 0 for p in plans} == {True, False} and any(0 < p.factor < 1 for p in plans)
    assert [p.offset for p in trials.standard_plans(aligned=True) if p.offset] == [16]
    touching = [p for p in trials.standard_plans([(("a", "b"),), (("c",), ("d",))]) if p.touches]
    assert [(p.touches, p.exchanged) for p in touching] == [
        ((("a", "b"),), True),
        ((("c",), ("d",)), True),
        ((("a", "b"), ("c",), ("d",)), False),
    ]
    exponents = {p.factor for _ in range(60) for p in trials.standard_plans() if p.kind == "scaled"}
    assert len(exponents) > 2  # not known in advance


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
        *(trials.stress(drawn, factor) for factor in (-1.0, 8.0)),
        trials.touched(drawn, [draw()]),
        trials.with_outliers(drawn, [draw()], 64.0),
        trials.mixed(drawn, (-1.0, 0.0)),
        *([trials.emptied(drawn, True, True)] if drawn[0].dim() > 1 else []),
    ):
        assert found and holds(made) and made.stride() == drawn[0].stride() and not torch.equal(made, drawn[0])


def gram(*shape, dtype=torch.float32):
    features = torch.randn(*shape, 2 * shape[-1])
    return (features @ features.mT / features.shape[-1] + 0.1 * torch.eye(shape[-1])).to(dtype)


@pytest.mark.parametrize("draw", [lambda: gram(12), lambda: gram(3, 20), lambda: gram(2, 5, 8, dtype=torch.bfloat16)])
def test_what_is_positive_definite_stays_so(draw):
    drawn = [draw()]
    for (made,), found in (
        *(trials.stress(drawn, factor) for factor in (-1.0, 8.0, 1e5)),
        trials.touched(drawn, [draw()]),
        trials.with_outliers(drawn, [draw()], 64.0),
        trials.mixed(drawn, (-1.0, 0.0)),
        trials.isolated(drawn, (-1e3, 1e3)),
    ):
        assert found and not torch.equal(made, drawn[0])
        assert bool((torch.linalg.cholesky_ex(made.double()).info == 0).all())
    assert not trials.emptied(drawn, True, True)[1]


def test_what_is_rounded_here_so_and_there_so_is_symmetric_all_the_same():
    drawn = gram(30)
    drawn[3, 4] = torch.nextafter(drawn[4, 3], torch.tensor(9.0))
    assert not trials.is_symmetric(drawn) and trials.is_positive_definite(drawn)
    ((made,), _) = trials.with_outliers([drawn], [gram(30)], 64.0)
    assert trials.is_symmetric(made) and trials.is_positive_definite(made)


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
    assert not trials.is_positive_definite(matrix)


@pytest.mark.parametrize("start", [torch.zeros(64, dtype=torch.cfloat), torch.randn(64, dtype=torch.cfloat)])
def test_complex_parameters_are_others(start):
    model = nn.Module()
    model.gain = nn.Parameter(start)
    other = trials.other_state(model)["gain"]
    assert other.dtype is torch.cfloat and bool((other != start).all()) and bool((other.imag != 0).all())


class Checkpoint(nn.Module):
    def __init__(self):
        super().__init__()
        self.slope = nn.Parameter(torch.full((1,), 0.25))
        self.codes = nn.Parameter(torch.arange(24).view(4, 6).to(torch.int8), requires_grad=False)
        self.register_buffer("pruned", torch.ones(8, 8, dtype=torch.bool))
        self.register_buffer("kept", torch.arange(64).view(8, 8) % 9 == 0)
        self.register_buffer("started", torch.tensor(False))


def test_single_parameters_integers_and_truth_values_of_a_checkpoint_are_others():
    torch.manual_seed(0)
    model = Checkpoint()
    other = trials.other_state(model)
    data = {name for name, value in other.items() if name != "slope" and trials.may_be_data(name, value)}
    assert data == {"codes", "kept"}
    made = trials.of_both_signs(model, other, trials.CONSTANT_BUFFERS[0], data, single=-8.0)
    assert float(made["slope"]) == -8 * float(other["slope"])
    for name in ("codes", "kept", "pruned"):
        assert made[name].dtype is other[name].dtype and not torch.equal(made[name], other[name]), name
    assert made["kept"].sum() == other["kept"].sum() and made["started"] is other["started"]
    assert "slope" not in trials.changed(other, trials.of_both_signs(model, other, None) or other)
