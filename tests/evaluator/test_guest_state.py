"""The state of a model: found wherever it is kept, restored, and matched with a candidate's."""

from __future__ import annotations

from typing import ClassVar

import pytest
import torch
from torch import nn

from cuda_l1.evaluator.guest import state


class Everywhere(nn.Module):
    """A parameter, a buffer, a plain attribute, lists and dicts of tensors, a tied weight, and the same below."""

    def __init__(self, *, nested=True):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3))
        self.tied = self.weight
        self.register_buffer("running", torch.zeros(3))
        self.register_buffer("absent", None)
        self.hidden = torch.randn(3)
        self.pair = (torch.randn(2), torch.randn(2))
        self.history = [torch.randn(2), "no tensor"]
        self.cells = {"h": torch.randn(2), 3: torch.randn(2), "n": 1, "a.b": torch.randn(2)}
        self.label = "text"
        if nested:
            self.inner = Everywhere(nested=False)


NAMES = {"weight", "tied", "running", "hidden", "pair.0", "pair.1", "history.0", "cells.h", "cells.3"}


def test_state_is_found_wherever_it_is_kept():
    model = Everywhere()
    assert set(state.collect(model)) == NAMES | {f"inner.{name}" for name in NAMES}
    kinds = state.kinds(model)
    assert kinds["inner.weight"] == kinds["tied"] == "parameter"
    assert kinds["running"] == "buffer" and kinds["inner.hidden"] == kinds["pair.1"] == "attribute"


@pytest.mark.parametrize("wanted", [["running"], ["inner.pair.1", "cells.3"], ["inner.hidden"], ["new.0"], []])
def test_what_is_asked_for_by_name_is_found_and_nothing_else_looked_into(wanted, monkeypatch):
    model, looked, look = Everywhere(), [], state.nesting.tensors
    monkeypatch.setattr(state.nesting, "tensors", lambda value: looked.append(value) or look(value))
    everything = state.collect(model)
    del looked[:]
    found = state.collect(model, wanted)
    assert all(found[name] is everything[name] for name in wanted if name != "new.0")
    assert [id(value) for value in looked] == [
        id(value) for value in (model.cells, model.inner.pair) if {"inner.pair.1", "cells.3"} & set(wanted)
    ]
    assert set(state.attributes(model, wanted)) == {name.removesuffix(".1").removesuffix(".3") for name in wanted} - {
        "new.0"
    }


def test_what_lies_in_a_parameter_or_buffer_has_no_value_of_its_own():
    model = nn.Linear(3, 3)
    model.register_buffer("cache", torch.zeros(2, 3))
    model.transposed, model.first, model.rest = model.weight.detach().t(), model.cache[0], torch.zeros(3)
    assert set(state.collect(model)) == {"weight", "bias", "cache", "rest"}
    model.transposed = model.transposed.clone()  # a value of its own, from now on
    assert state.kinds(model)["transposed"] == "attribute"


def test_a_snapshot_is_a_copy_and_brings_everything_back():
    model = Everywhere()
    saved = state.snapshot(model)
    with torch.no_grad():
        for tensor in state.collect(model).values():
            tensor.add_(1)
    assert not torch.equal(saved["weight"], model.weight)
    state.restore(model, saved)
    assert all(state.same(t, saved[name]) for name, t in state.collect(model).items())


def test_restoring_copies_into_the_tensors_that_are_there():
    model = Everywhere()
    saved = state.snapshot(model)
    place, version = model.weight.data_ptr(), model.weight._version
    with torch.no_grad():
        model.weight.mul_(2)
    state.restore(model, saved)
    assert model.weight.data_ptr() == place and model.weight._version > version + 1
    untouched = model.weight._version
    state.restore(model, saved)
    assert model.weight._version == untouched  # equal values are not written again: caches stay valid


def test_tensors_made_in_inference_mode_are_restored_and_stay_what_they_are():
    model = Everywhere(nested=False)
    with torch.inference_mode():
        model.hidden, model.weight = torch.zeros(3), nn.Parameter(torch.zeros(3))
    saved = state.snapshot(model)
    with torch.inference_mode():
        model.hidden.add_(1)
    held = model.hidden
    state.restore(model, saved)
    state.load_reference_state(model, {"w": torch.ones(3)}, state.Partners({"w": "weight"}))
    assert model.hidden is held and not held.any() and held.is_inference() and model.weight.all()
    del model.hidden
    state.restore(model, saved)
    assert not model.hidden.is_inference()


@pytest.mark.parametrize("name", ["hidden", "history", "inner.hidden"])
def test_an_attribute_of_another_shape_is_set_anew(name):
    model = Everywhere()
    saved = state.snapshot(model)
    *path, last = name.split(".")
    owner = model.inner if path else model
    setattr(owner, last, [torch.zeros(7)] if last == "history" else torch.zeros(7))
    state.restore(model, saved)
    assert all(state.same(t, saved[n]) for n, t in state.collect(model).items())


class Steps(nn.Module):
    """Attributes that a call replaces, makes, and fills: by its input, by its output."""

    def __init__(self):
        super().__init__()
        self.last = torch.zeros(3)
        self.lazy = None
        self.pair = (torch.zeros(3), torch.zeros(3))
        self.items = [torch.zeros(3)]

    def forward(self, x):
        out = x - self.last
        self.last, self.lazy, self.pair, self.made = x, out, (x, out), x
        self.items[0] = out
        return out


def test_attributes_that_a_call_replaced_get_their_own_tensors_back():
    model, x = Steps(), torch.ones(3)
    own = model.last
    before = state.attributes(model)
    public = state.snapshot(model)
    model(x)
    after = state.collect(model)
    state.reinstate(model, before, list(after))
    assert model.last is own and model.lazy is None and not hasattr(model, "made")
    assert torch.equal(model.items[0], torch.zeros(3)) and torch.equal(model.pair[1], torch.zeros(3))
    state.restore(model, public)
    assert torch.equal(x, torch.ones(3))  # what was kept of an input was not written to


def test_only_the_names_given_are_reinstated():
    model = Steps()
    before = state.attributes(model)
    model(torch.ones(3))
    state.reinstate(model, before, ["last"])
    assert torch.equal(model.last, torch.zeros(3)) and model.lazy is not None and hasattr(model, "made")


def test_parameters_are_never_replaced():
    model = Everywhere()
    before, weight = state.attributes(model), model.weight
    state.reinstate(model, before, ["weight", "inner.weight"])
    assert model.weight is weight


def test_a_buffer_that_a_call_replaced_by_its_input_is_put_back():
    model, x = Everywhere(), torch.ones(3)
    before, public, own = state.attributes(model), state.snapshot(model), model.running
    model.running = x
    model.absent = x * 2
    state.reinstate(model, before, ["running", "absent"])
    state.restore(model, public)
    assert model.running is own and model.absent is None and torch.equal(x, torch.ones(3))


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (torch.tensor([1.0, torch.nan]), torch.tensor([1.0, torch.nan]), True),
        (torch.tensor([torch.inf]), torch.tensor([torch.finfo().max]), False),
        (torch.tensor([torch.nan]), torch.tensor([0.0]), False),
        (torch.tensor([1.0]), torch.tensor([1.0]).double(), False),
        (torch.tensor([1.0]), torch.tensor([[1.0]]), False),
        (torch.tensor([complex(1, torch.nan)]), torch.tensor([complex(1, torch.nan)]), True),
        (torch.tensor([complex(1, 2)]), torch.tensor([complex(1, 3)]), False),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), False),
        (torch.tensor([1.0]).to(torch.float8_e4m3fn), torch.tensor([2.0]).to(torch.float8_e4m3fn), False),
    ],
)
def test_same(a, b, equal):
    assert state.same(a, b) is equal


# ── partners ──────────────────────────────────────────────────────────────────────────────────────


class Reference(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(4, 6)
        self.second = nn.Linear(6, 2)
        self.norm = nn.BatchNorm1d(2)
        self.norm2 = nn.BatchNorm1d(2)


def matched(candidate: nn.Module) -> state.Partners:
    return state.match(state.snapshot(Reference()), candidate)


def test_the_same_names_are_partners():
    found = matched(Reference())
    assert not found.unmapped and all(a == b for a, b in found.partner.items())


class Renamed(nn.Module):
    """Other names, the first weight stored transposed, constants in the same order."""

    def __init__(self):
        super().__init__()
        original = Reference()
        self.w1 = nn.Parameter(original.first.weight.detach().t().contiguous())
        self.b1 = nn.Parameter(original.first.bias.detach().clone())
        self.w2 = nn.Parameter(original.second.weight.detach().clone())
        self.b2 = nn.Parameter(original.second.bias.detach().clone())
        self.a = nn.BatchNorm1d(2)
        self.b = nn.BatchNorm1d(2)


def test_renamed_and_transposed_tensors_find_each_other_by_their_values():
    found = matched(Renamed())
    assert not found.unmapped and found.transposed == {"first.weight"}
    assert found.partner["first.weight"] == "w1" and found.partner["second.bias"] == "b2"
    assert found.partner["norm.weight"] == "a.weight" and found.partner["norm2.weight"] == "b.weight"


class Convolution(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = nn.Conv2d(3, 5, 2)
        self.scale = nn.Parameter(torch.ones(5))
        self.shift = nn.Parameter(torch.zeros(5))


class AsProduct(nn.Module):
    """The weight as a matrix, columns for rows where `turned`; a bias and a constant to be broadcast."""

    def __init__(self, turned):
        super().__init__()
        kept = Convolution()
        weight = kept.conv.weight.detach().flatten(1)
        self.matrix = nn.Parameter((weight.t() if turned else weight).contiguous())
        self.added = nn.Parameter(kept.conv.bias.detach().clone().view(5, 1))
        self.scales = nn.Parameter(torch.ones(1, 5, 1, 1))
        self.scale_of_all = nn.Parameter(torch.ones(5, 1))
        self.room = torch.zeros(1, 5)


@pytest.mark.parametrize("turned", [False, True])
def test_tensors_of_other_shapes_find_each_other_and_take_values(turned):
    reference, model = state.snapshot(Convolution()), AsProduct(turned)
    found = state.match(reference, model)
    assert found.unmapped == ["shift"], "a workspace of zeros is no partner"
    assert found.partner == {"conv.weight": "matrix", "conv.bias": "added", "scale": "scale_of_all"}
    values = {name: torch.randn_like(value) for name, value in reference.items()}
    state.load_reference_state(model, values, found)
    weight = values["conv.weight"].flatten(1)
    assert torch.equal(model.matrix, weight.t() if turned else weight)
    assert torch.equal(model.scale_of_all[:, 0], values["scale"]) and not model.room.any()
    given = found.as_own("scale", model.scale_of_all)
    assert torch.equal(given, values["scale"]) and given.data_ptr() == model.scale_of_all.data_ptr()


BOTH = ["norm1.bias", "norm2.bias"]


class Norms(nn.Module):
    def __init__(self, names):
        super().__init__()
        for name in names:
            self.register_parameter(name, nn.Parameter(torch.zeros(4)))


@pytest.mark.parametrize(
    ("kept", "partners", "guessed"),
    [
        (("norm2_bias", "norm1_bias"), ["norm1_bias", "norm2_bias"], []),
        (("bias_of_last", "norm_2_bias", "b"), ["bias_of_last", "norm_2_bias"], ["norm1.bias"]),  # by order
        (("b1", "b0"), ["b1", "b0"], BOTH),  # numbers alone say nothing: some count from another one
        (("b2", "b1"), ["b2", "b1"], BOTH),
        (("second_norm_bias", "first_norm_bias"), ["second_norm_bias", "first_norm_bias"], BOTH),
    ],
)
def test_of_equal_tensors_similar_names_are_partners_and_others_by_order(kept, partners, guessed):
    reference = nn.ModuleDict({name: nn.LayerNorm(4) for name in ("norm1", "norm2")})
    biases = {name: value for name, value in state.snapshot(reference).items() if name.endswith("bias")}
    found = state.match(biases, Norms(kept))
    assert [found.partner[name] for name in biases] == partners and not found.unmapped
    assert found.guessed == guessed


def test_other_values_arrive_in_the_partners():
    model = Renamed()
    mapping = matched(model)
    values = {name: torch.randn_like(t.float()).to(t.dtype) for name, t in state.snapshot(Reference()).items()}
    version = model.w1._version
    state.load_reference_state(model, values, mapping)
    assert torch.equal(model.w1, values["first.weight"].t()) and torch.equal(model.b.bias, values["norm2.bias"])
    assert model.w1._version > version and model.w1.requires_grad


def test_what_has_the_values_already_is_not_written_to():
    model = Renamed()
    mapping, values = matched(model), state.snapshot(Reference())
    before = {name: tensor._version for name, tensor in state.collect(model).items()}
    state.load_reference_state(model, {**values, "first.bias": values["first.bias"] + 1}, mapping)
    assert {n for n, t in state.collect(model).items() if t._version != before[n]} == {"b1"}


class Packed(nn.Module):
    """One matrix of all weights: nothing to match."""

    def __init__(self):
        super().__init__()
        self.packed = nn.Parameter(torch.randn(99))


class PackedWithLoader(Packed):
    def load_reference(self, values):
        self.kept = values
        with torch.no_grad():
            self.packed[:24].copy_(values["first.weight"].flatten())


def test_what_has_no_partner_is_named():
    found = matched(Packed())
    assert set(found.unmapped) == set(state.collect(Reference())) and not found.by_method


def test_a_candidate_may_load_the_reference_by_itself():
    model = PackedWithLoader()
    mapping = matched(model)
    assert mapping.by_method
    values = state.snapshot(Reference())
    state.load_reference_state(model, values, mapping)
    assert torch.equal(model.packed[:24], values["first.weight"].flatten())
    values["first.weight"].zero_()  # the buffer is used again for the next weights
    assert model.kept["first.weight"].any()


def test_another_dtype_is_no_partner():
    assert "first.weight" in matched(Reference().half()).unmapped


def test_an_entry_of_a_dict_that_a_call_replaced_comes_back_as_it_was():
    model = Everywhere()
    saved, before, held = state.snapshot(model), state.attributes(model), model.cells["h"]
    model.cells["h"] = torch.zeros(5)
    model.inner.cells[3] = torch.zeros(2)
    state.reinstate(model, before, ["cells.h", "inner.cells.3"])
    assert model.cells["h"] is held and model.cells["n"] == 1
    model.cells["h"] = torch.zeros(5)
    state.restore(model, saved)
    assert torch.equal(model.cells["h"], saved["cells.h"]) and torch.equal(model.inner.cells[3], saved["inner.cells.3"])


def test_what_was_taken_out_of_a_list_comes_back():
    model = Everywhere(nested=False)
    model.history = [torch.randn(2) for _ in range(3)]
    before = state.snapshot(model)
    del model.history[1:]
    state.restore(model, before)
    assert [state.same(kept, before[f"history.{i}"]) for i, kept in enumerate(model.history)] == [True] * 3


STRANGE = {
    "csr": lambda: torch.eye(3).to_sparse_csr(),
    "coo": lambda: torch.eye(3).to_sparse(),
    "onednn": lambda: torch.eye(3).to_mkldnn(),
    "meta": lambda: torch.empty(3, device="meta"),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2)]),
    "jagged": lambda: torch.nested.nested_tensor([torch.ones(2)], layout=torch.jagged),
}


@pytest.mark.filterwarnings("ignore:.*(beta|prototype)")
@pytest.mark.parametrize("kind", STRANGE)
def test_tensors_that_torch_cannot_compare_or_write_are_left_alone(kind):
    model, public = Everywhere(), state.snapshot(Everywhere())
    kept = model.inner.hidden = model.made = STRANGE[kind]()
    model.cells["h"] = kept
    assert not {"inner.hidden", "made", "cells.h"} & state.snapshot(model).keys()
    assert state.match({"inner.hidden": public["inner.hidden"]}, model).unmapped
    state.restore(model, public)
    assert state.same(model.inner.hidden, public["inner.hidden"]) and model.made is kept


class Expanded(nn.Module):
    """A buffer, an attribute and an entry of a dict whose elements share memory."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.ones(1, 3).expand(2, 3))
        self.rows = torch.arange(4.0).unfold(0, 3, 1)
        self.cells = {7: torch.zeros(1).expand(2)}


def test_what_shares_memory_with_itself_gets_values_of_its_own():
    model = Expanded()
    saved = state.snapshot(model)
    own = model.mask
    state.restore(model, saved)
    assert model.mask is own  # nothing had changed
    other = {name: torch.randn_like(value) for name, value in saved.items()}
    state.load_reference_state(model, other, state.match(saved, model))
    assert all(state.same(t, other[name]) for name, t in state.collect(model).items()) and "mask" in model._buffers
    state.restore(model, saved)
    assert all(state.same(t, saved[name]) for name, t in state.collect(model).items()) and set(model.cells) == {7}


class Keeps(Reference):
    """The reference's names, a second bias under another one, and a workspace that starts as a bias does."""

    def __init__(self):
        super().__init__()
        self.norm2.beta = nn.Parameter(self.norm2.bias.detach().clone())
        del self.norm2.bias
        self.norm.register_parameter("bias", None)
        self.work = torch.zeros(2)


def overwritten(change, changed=(), model=None):
    model = model or Keeps()
    mapping, base = matched(model), state.snapshot(model)
    with torch.no_grad():
        change(model)
    return state.overwritten(model, base, mapping, changed)


def test_weights_that_a_call_has_left_with_other_values_are_named():
    assert overwritten(lambda m: m.first.weight.div_(2)) == ["first.weight"]
    assert len(overwritten(lambda m: m.norm2.beta.add_(1))) == 1
    assert overwritten(lambda m: m.norm.running_mean.add_(1), ["norm.running_mean"]) == []


SAME = {
    "nothing": lambda m: None,
    "another object": lambda m: setattr(m.first, "weight", nn.Parameter(m.first.weight.clone())),
    "another dtype": lambda m: m.first.half(),
    "another form": lambda m: setattr(m.first, "weight", nn.Parameter(m.first.weight.t().contiguous())),
    "taken out": lambda m: setattr(m.first, "weight", None),
    "a workspace": lambda m: m.work.add_(1),
}


@pytest.mark.parametrize("kind", SAME)
def test_weights_that_are_kept_otherwise_are_not_overwritten(kind):
    assert overwritten(SAME[kind]) == []


def test_what_a_method_of_its_own_loads_is_not_compared():
    model = PackedWithLoader()
    model.first = Reference().first
    assert overwritten(lambda m: m.first.weight.add_(1), model=model) == []


class Asked(nn.Module):
    """Notes whenever it is asked for what it holds, by any way that a module may define."""

    def __init__(self):
        super().__init__()
        self.asked = []
        self.inner = nn.Linear(2, 2)
        self.register_buffer("hidden", torch.zeros(2))

    def named_modules(self, *args, **others):
        self.__dict__["asked"].append("named_modules")
        return super().named_modules(*args, **others)

    def named_parameters(self, *args, **others):
        self.__dict__["asked"].append("named_parameters")
        return super().named_parameters(*args, **others)

    def named_buffers(self, *args, **others):
        self.__dict__["asked"].append("named_buffers")
        return super().named_buffers(*args, **others)

    def __setattr__(self, name, value):
        if "asked" in self.__dict__:
            self.__dict__["asked"].append("__setattr__")
        super().__setattr__(name, value)


@pytest.mark.parametrize("inside", [False, True])
def test_a_module_is_not_asked_for_its_state(inside):
    """What it did then would be timed by nobody."""
    own = Asked()
    model = nn.Sequential(own) if inside else own
    saved = state.snapshot(model)
    before = state.attributes(model)
    own.__dict__["asked"].clear()
    own._buffers["hidden"] = torch.ones(3)  # another shape is set anew
    state.restore(model, saved)
    state.reinstate(model, before, list(saved))
    assert len(saved) == 3 and own.asked == [] and torch.equal(own.hidden, torch.zeros(2))


class Called(torch.Tensor):
    """Notes which functions of torch it meets."""

    met: ClassVar[list[str]] = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.met.append(getattr(func, "__name__", str(func)))
        return super().__torch_function__(func, types, args, kwargs or {})


def test_a_tensor_of_its_own_class_is_not_asked_when_state_is_laid():
    model = nn.Module()
    model.register_buffer("hidden", torch.zeros(3).as_subclass(Called))
    values = {"hidden": torch.ones(3)}
    Called.met.clear()
    state.restore(model, values)
    assert Called.met == [] and torch.equal(model.hidden.as_subclass(torch.Tensor), torch.ones(3))
