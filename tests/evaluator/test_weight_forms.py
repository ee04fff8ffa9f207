"""Weights of the judge's making: what is changed, what stays, and what is told apart."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from cuda_l1.evaluator.guest import state, weight_forms


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
    other, kinds = weight_forms.other_state(model), state.kinds(model)
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
    other = weight_forms.other_state(model)["scale"]
    assert 0.05 < float(other.pow(2).mean().sqrt()) < 0.2
    if start:
        assert bool((other.sign() == model.scale.sign()).all())  # a temperature stays positive


def test_pruned_matrices_have_zeros_and_rows_of_zeros_and_tied_ones_stay_tied():
    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64), nn.LayerNorm(64))
    model[1].weight = model[0].weight
    other = weight_forms.other_state(model)
    rows, elements = (weight_forms.pruned(model, other, rows=rows) for rows in (True, False))
    for values, least in ((rows, 1), (elements, 0)):
        weight = values["0.weight"]
        assert values["1.weight"] is weight and values["2.weight"] is other["2.weight"]
        assert 0.05 < (weight == 0).double().mean() < 0.5 and int((weight == 0).all(dim=1).sum()) >= least
        assert torch.equal(weight[weight != 0], other["0.weight"][weight != 0])
    assert weight_forms.pruned(nn.LayerNorm(64), {}, rows=True) == {}


class Tables(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.tied = self.linear.weight
        self.register_buffer("edges", torch.linspace(-1, 1, 9))
        self.register_buffer("table", torch.randn(6, 6))
        self.register_buffer("packed", torch.arange(24).view(4, 6).to(torch.int8))
        self.register_buffer("order", torch.tensor([3, 0, 4, 1, 2]))
        self.register_buffer("positions", torch.arange(7))
        self.register_buffer("step", torch.tensor([0.02]))
        self.register_buffer("causal", torch.ones(40, 40).tril())
        self.register_buffer("count", torch.tensor(3))
        self.register_buffer("spectrum", torch.randn(5, dtype=torch.complex64))
        self.register_buffer("angles", torch.linspace(0, 1, 9), persistent=False)
        self.register_buffer("running_mean", None)  # as modules have that keep no statistics


def test_buffers_of_a_checkpoint_are_others_in_the_trial_of_signs():
    torch.manual_seed(0)
    model = Tables()
    other = weight_forms.other_state(model)
    data = {name for name in state.saved_buffers(model) if weight_forms.may_be_data(name, other[name])}
    assert data == {"edges", "table", "packed", "order", "step", "spectrum", "causal"}
    made = weight_forms.of_both_signs(model, other, weight_forms.CONSTANT_BUFFERS[0], data)
    assert {name for name in made if not torch.equal(made[name], other[name])} == data
    assert bool((made["edges"].diff() > 0).all()) and torch.equal(made["table"].sign(), other["table"].sign())
    ratio = made["table"] / other["table"]
    assert 1.0 <= float(ratio.min()) < float(ratio.max()) <= 1.25
    assert sorted(made["packed"].flatten().tolist()) == list(range(24))
    assert torch.equal(made["causal"].sort(dim=0).values, other["causal"].sort(dim=0).values)
    assert not weight_forms.of_both_signs(model, other, None, data)


def test_large_weights_are_many_times_as_large():
    model = Tables()
    other = weight_forms.other_state(model)
    assert not torch.equal(weight_forms.with_large_weights(model, other, 16.0, 1)["linear.bias"], other["linear.bias"])
    made = weight_forms.with_large_weights(model, other, 16.0, 2)
    assert torch.equal(made["linear.weight"], 16 * other["linear.weight"]) and made["tied"] is made["linear.weight"]
    assert all(made[name] is other[name] for name in other if name not in ("linear.weight", "tied"))
    assert not weight_forms.with_large_weights(nn.LayerNorm(4), weight_forms.other_state(nn.LayerNorm(4)), 16.0, 2)


def test_a_channel_in_many_is_large_and_the_same_in_all_matrices():
    sizes = ((32, 256), (256, 256), (256, 8), (8, 1))
    model = nn.Sequential(*(nn.Linear(*size) for size in sizes))
    other = weight_forms.other_state(model)
    large = weight_forms.with_large_channels(model, other, 64.0)
    rows = {}
    for name, value in large.items():
        is_large = (value != other[name]).reshape(len(value), -1).all(1)
        expected = value.clone()
        expected[is_large] /= 64
        torch.testing.assert_close(expected, other[name])
        rows[name] = is_large.nonzero().flatten().tolist()
    wide = rows["0.weight"]
    assert rows["1.weight"] == wide == list(range(wide[0], 256, 64)) and len(wide) == 4
    assert rows["2.weight"] == [wide[0] % 8] and not rows["3.weight"] and not rows["0.bias"]
    assert weight_forms.with_large_channels(nn.LayerNorm(64), {}, 64.0) == {}


def test_of_many_rows_some_beside_one_another_are_larger_still():
    table = nn.Embedding(2048, 4)
    other = weight_forms.other_state(table)
    ratio = weight_forms.with_large_channels(table, other, 64.0)["weight"] / other["weight"]
    rows = (ratio > 500).all(1).nonzero().flatten()
    assert rows.tolist() == list(range(int(rows[0]), int(rows[0]) + weight_forms.BESIDE))
    assert 2048 // 64 - 1 <= int(((ratio - 64).abs() < 0.1).all(1).sum()) <= 2048 // 64


def test_gates_are_held_open_and_plain_recurrences_keep_their_state():
    model = nn.ModuleDict(
        {"gru": nn.GRU(8, 32), "rnn": nn.RNN(8, 32), "norm": nn.LayerNorm(32), "head": nn.Linear(8, 8)}
    )
    other = weight_forms.other_state(model)
    other["head.bias"] = other["head.bias"] * 1e3
    made = weight_forms.with_long_memory(model, other)
    for name in ("gru.bias_ih_l0", "gru.bias_hh_l0", "rnn.bias_hh_l0", "norm.bias"):
        value = made[name]
        assert value.unique().tolist() == [-weight_forms.OPEN, 0.0, weight_forms.OPEN], name
        assert int((value == 0).sum()) - value.numel() // 3 in (0, 1)
    assert float(made["head.bias"].max()) > 10 * weight_forms.OPEN
    own = made["rnn.weight_hh_l0"] - other["rnn.weight_hh_l0"]
    assert torch.allclose(own, weight_forms.HELD * torch.eye(32), atol=1e-5)
    for name in ("gru.weight_hh_l0", "rnn.weight_ih_l0", "norm.weight", "head.weight"):
        assert made[name] is other[name], name
    assert not weight_forms.with_long_memory(nn.Conv1d(4, 4, 3, bias=False), {"weight": torch.randn(4, 4, 3)})


def test_other_weights_keep_ties_and_positive_variances():
    other = weight_forms.other_state(Tied())
    assert other["head.weight"] is other["embedding.weight"]
    assert (other["norm.running_var"] > 0).all()


def test_parameters_and_buffers_are_touched_one_after_the_other_and_statistics_together():
    model = Tied()
    model.register_buffer("order", torch.randperm(9))
    found = weight_forms.parts(model, {"hidden", "order"}, {"zeros"})
    *alone, statistics = found
    assert set(statistics) == {("norm.running_mean",), ("norm.running_var",)}
    parameters = {("embedding.weight", "head.weight"), ("ones",), ("norm.weight",), ("norm.bias",)}
    assert len(parameters) == weight_forms.ALONE and {names for (names,) in alone[:-2]} == parameters
    assert {names for (names,) in alone[-2:]} == {("hidden",), ("order",)}
    first, second, buffers, _ = weight_forms.parts(model, {"hidden"})
    assert len(first) - len(second) == 1 and {*first, *second} == {*parameters, ("zeros",)}  # one more, in two halves
    assert buffers == (("hidden",),)
    assert weight_forms.parts(nn.ReLU()) == [] and weight_forms.parts(nn.PReLU()) == [(("weight",),)]


@pytest.mark.parametrize(
    "value", [torch.randperm(64), torch.randint(-99, 99, (8, 8), dtype=torch.int8), torch.rand(64) > 0.5]
)
def test_integers_and_truth_values_that_are_touched_are_the_same_in_other_places(value):
    made = weight_forms.with_touched({"order": value}, (("order",),), any_sign=True)["order"]
    assert not torch.equal(made, value) and torch.equal(made.flatten().sort().values, value.flatten().sort().values)


@pytest.mark.parametrize("exchanged", [True, False])
@pytest.mark.parametrize("any_sign", [True, False])
def test_a_few_elements_of_weights_are_touched_and_the_rest_is_what_it_was(any_sign, exchanged):
    model = Tied()
    model.angles = nn.Parameter(torch.linspace(1, 2, 64))
    model.slope = nn.Parameter(torch.ones(1).bfloat16())
    weights = weight_forms.other_state(model)
    weights["angles"] = model.angles.detach()
    part = (("embedding.weight", "head.weight"), ("norm.running_var",), ("angles",), ("slope",))
    touched = weight_forms.with_touched(weights, part, any_sign=any_sign, exchanged=exchanged)
    assert touched["head.weight"] is touched["embedding.weight"]
    for name, value in weights.items():
        if not any(name in names for names in part):
            assert touched[name] is value, name
            continue
        assert touched[name].dtype is value.dtype and not torch.equal(touched[name], value)
        if name != "slope":
            assert 0 < int((touched[name] != value).sum()) <= (64 if name == "angles" else weight_forms.MOVED)
            assert torch.allclose(touched[name].mean(), value.mean(), atol=1e-5)
    assert bool((touched["norm.running_var"] > 0).all()) and bool((touched["angles"].diff() >= 0).all())
    assert any_sign or bool((touched["angles"] > 0).all())
    before, after = (values["head.weight"].flatten().sort().values for values in (weights, touched))
    assert torch.equal(before, after) == exchanged


@pytest.mark.parametrize("shape", [(512, 64), (7,), (2,)])
def test_no_sum_norm_or_extreme_tells_that_weights_were_touched(shape):
    value, known = torch.randn(shape), 0
    for _ in range(20):
        made = weight_forms.with_touched({"w": value}, (("w",),), any_sign=True)["w"]
        assert 0 < int((made != value).sum()) <= weight_forms.MOVED
        assert torch.equal(made.flatten().sort().values, value.flatten().sort().values)
        known += not (torch.equal(made.sum(), value.sum()) and torch.equal(made.norm(), value.norm()))
    assert known <= 10 or value.numel() < 8  # that they are rounded alike takes luck


@pytest.mark.parametrize("constants", weight_forms.CONSTANT_BUFFERS)
def test_parameters_of_one_sign_get_both(constants):
    torch.manual_seed(1)
    model = Tied()
    model.register_buffer("frozen", torch.ones(64))
    before = weight_forms.other_state(model)
    signed = weight_forms.of_both_signs(model, before, constants)
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
    signed = weight_forms.of_both_signs(model, weight_forms.other_state(model), weight_forms.CONSTANT_BUFFERS[0])
    for value in (signed["mask"], signed["state"]):
        assert bool(((value == 0) | (value == 1)).all()) and 0 < float(value.mean()) < 1


def test_a_model_without_such_a_parameter_has_no_such_trial():
    model = nn.Linear(4, 4)
    assert weight_forms.of_both_signs(model, weight_forms.other_state(model), weight_forms.CONSTANT_BUFFERS[0]) == {}


@pytest.mark.parametrize("towards", [-1.0, 1.0])
def test_lists_of_both_signs_are_moved_to_one_side_and_matrices_and_scales_stay(towards):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.PReLU())
    model.channels = nn.Parameter(30 * torch.randn(32, 1, 1))
    other = weight_forms.other_state(model)
    moved = weight_forms.with_biases_moved(model, other, towards)
    assert set(weight_forms.changed(other, moved)) == {"0.bias", "1.bias", "channels"}
    for name in ("0.bias", "1.bias", "channels"):
        assert bool((moved[name] * towards > 0).all()) and moved[name].std() > 0, name
    assert weight_forms.with_biases_moved(nn.Linear(4, 4, bias=False), {"weight": torch.randn(4, 4)}, towards) == {}


def test_other_weights_leave_the_model_untouched():
    model = Tied()
    before = state.snapshot(model)
    weight_forms.other_state(model)
    assert not weight_forms.changed(before, state.snapshot(model))


def test_half_precision_parameters_keep_their_dtype():
    other = weight_forms.other_state(nn.Linear(4, 4).bfloat16())
    assert {t.dtype for t in other.values()} == {torch.bfloat16}


def test_changes_are_named_and_so_is_what_is_new():
    before = {"a": torch.ones(2), "b": torch.tensor([torch.nan])}
    after = {"a": torch.ones(2), "b": torch.tensor([torch.nan]), "c": torch.ones(1)}
    assert weight_forms.changed(before, after) == ["c"]
    after["a"] = torch.tensor([1.0, 2.0])
    assert weight_forms.changed(before, after) == ["a", "c"]


@pytest.mark.parametrize("start", [torch.zeros(64, dtype=torch.cfloat), torch.randn(64, dtype=torch.cfloat)])
def test_complex_parameters_are_others(start):
    model = nn.Module()
    model.gain = nn.Parameter(start)
    other = weight_forms.other_state(model)["gain"]
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
    other = weight_forms.other_state(model)
    data = {name for name, value in other.items() if name != "slope" and weight_forms.may_be_data(name, value)}
    assert data == {"codes", "kept"}
    made = weight_forms.of_both_signs(model, other, weight_forms.CONSTANT_BUFFERS[0], data, single=-8.0)
    assert float(made["slope"]) == -8 * float(other["slope"])
    for name in ("codes", "kept", "pruned"):
        assert made[name].dtype is other[name].dtype and not torch.equal(made[name], other[name]), name
    assert made["kept"].sum() == other["kept"].sum() and made["started"] is other["started"]
    assert "slope" not in weight_forms.changed(other, weight_forms.of_both_signs(model, other, None) or other)


MASKS = {
    "pruned": lambda: (torch.rand(32, 32) < 0.5).float(),
    "signs": lambda: torch.randn(64).sign(),
    "codes": lambda: torch.randint(-1, 2, (32, 32)).float(),
    "scores": lambda: torch.zeros(32, 32).masked_fill(torch.rand(32, 32) < 0.5, -torch.inf),
    "truth": lambda: torch.rand(32, 32) < 0.5,
    "few": lambda: torch.tensor([0.0, 1.0, 0.0]),
    "one-row": lambda: (torch.rand(1, 1, 48) < 0.5).float(),
}


@pytest.mark.parametrize("make", MASKS.values(), ids=MASKS)
def test_masks_of_a_checkpoint_have_their_elements_elsewhere(make):
    mask = make()
    model = nn.Module()
    model.register_buffer("mask", mask)
    assert weight_forms.may_be_data("mask", mask) and weight_forms.chooses(mask)
    others = [weight_forms.of_both_signs(model, {"mask": mask}, weight_forms.CONSTANT_BUFFERS[0], {"mask"})["mask"]]
    for exchanged in (True, False):
        made = weight_forms.with_touched({"mask": mask}, (("mask",),), any_sign=True, exchanged=exchanged)
        others.append(made["mask"])
    for other in others:
        assert not torch.equal(other, mask)
        assert torch.equal(other.flatten().sort().values, mask.flatten().sort().values)


@pytest.mark.parametrize("value", [torch.ones(128), torch.zeros(128)])
def test_one_number_throughout_is_no_mask(value):
    assert not weight_forms.chooses(value)
    made = weight_forms.with_touched({"scale": value}, (("scale",),), any_sign=True)["scale"]
    assert 1 <= int((made != value).sum()) <= 8


@pytest.mark.parametrize("written", [torch.Tensor.bool, torch.Tensor.float])
def test_masks_of_two_in_four_stay_so(written):
    fours = torch.rand(32, 8, 4).argsort(-1) < 2
    mask = written(fours.flatten(1))
    for exchanged in (True, False):
        made = weight_forms.with_touched({"m": mask}, (("m",),), any_sign=True, exchanged=exchanged)["m"]
        assert not torch.equal(made, mask) and bool((made.view(32, 8, 4).sum(-1) == 2).all())
    alike = mask[:1].repeat(4, 1)
    assert torch.equal(weight_forms.with_touched({"m": alike}, (("m",),), any_sign=True)["m"], alike)


def test_numbers_beside_infinities_are_touched_and_these_stay():
    table = torch.randn(64).masked_fill(torch.rand(64) < 0.5, -torch.inf)
    made = weight_forms.with_touched({"table": table}, (("table",),), any_sign=True, exchanged=False)["table"]
    assert torch.equal(torch.isinf(made), torch.isinf(table)) and not torch.equal(made, table)
    assert not bool(made.isnan().any()) and not weight_forms.chooses(table)


def test_parameters_lie_beyond_the_ends_to_which_they_are_clamped():
    weight = torch.rand(64, 64)
    made = weight_forms.with_ends_passed({"w": weight, "tied": weight, "b": torch.rand(9)}, {"w": [-4.0, 4.0]})
    assert made["tied"] is made["w"] and all(100 < int((made["w"] == end).sum()) <= 256 for end in (-4.0, 4.0))
    assert int((made["w"] != weight).sum()) <= 512 and made["b"].max() < 1
