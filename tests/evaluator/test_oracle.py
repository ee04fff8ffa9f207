"""How far an answer lies from truth, jumps, and arithmetic at other precisions."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from cuda_l1.evaluator.guest import oracle

INF, NAN = math.inf, math.nan


def error(answer: object, truth: object, left_out: torch.Tensor | None = None) -> float:
    got, due = torch.as_tensor(answer), torch.as_tensor(truth)
    due = due if due.is_complex() else due.double()
    found = oracle.max_error(got, due, left_out)
    known, _ = oracle.KnownTruth.of_each([due], [oracle.lattice(due.shape)])
    ((worst, bulk, slices),) = oracle.errors_of(known, [got], [left_out])
    assert worst == pytest.approx(found) and bulk >= 0.0 and bool((slices >= 0.0).all())
    return found


def test_the_error_is_relative_to_the_element_and_to_the_whole():
    truth = [3.0, -4.0]  # rms = 5 / sqrt(2)
    assert error([3.1, -4.0], truth) == pytest.approx(0.1 / (3 + 5 / math.sqrt(2)), rel=1e-6)
    assert error(truth, truth) == 0.0


@pytest.mark.parametrize(
    ("answer", "truth"),
    [([INF, 1], [INF, 1]), ([-INF, 1], [-INF, 1]), ([NAN, 1], [NAN, 1]), ([NAN, INF], [NAN, INF]), ([0, 0], [0, 0])],
)
def test_the_same_kind_of_infinity_is_right(answer, truth):
    assert error(answer, truth) == 0.0


@pytest.mark.parametrize(
    ("answer", "truth"),
    [
        ([INF, 1], [-INF, 1]),
        ([INF, 1], [5, 1]),
        ([NAN, 1], [5, 1]),
        ([5, 1], [NAN, 1]),
        ([5, 1], [INF, 1]),
        ([NAN, 1], [INF, 1]),
        ([INF, 1], [NAN, 1]),
        ([1e-30, 0], [0, 0]),
        ([3e38, 1], [INF, 1]),
    ],
)
def test_another_kind_is_infinitely_wrong(answer, truth):
    assert error(answer, truth) == INF


def test_infinite_elements_do_not_hide_errors_of_finite_ones():
    assert error([INF, 1.5], [INF, 1.0]) == pytest.approx(0.5 / 2)


def test_empty_tensors_are_right():
    assert error(torch.empty(0, 3), torch.empty(0, 3)) == 0.0


def test_integers_and_booleans_are_equal_or_wrong():
    assert oracle.max_error(torch.tensor([1, 2]), torch.tensor([1, 2])) == 0.0
    assert oracle.max_error(torch.tensor([1, 2]), torch.tensor([1, 3])) == INF
    assert oracle.max_error(torch.tensor([True]), torch.tensor([False])) == INF


def test_complex_elements_jump_as_a_whole():
    truth = torch.randn(64, 32, dtype=torch.complex128)
    answer = truth.clone()
    answer[3, 5] += 2j
    jumps = oracle.find_jumps(answer, truth)
    assert jumps.count == 1 and jumps.mask.shape == truth.shape and bool(jumps.mask[3, 5])
    assert error(answer, truth, jumps.mask) == 0.0 < error(answer, truth)


def test_complex_numbers_err_in_either_part():
    truth = torch.tensor([3 + 4j, 1 - 1j], dtype=torch.complex128)
    wrong = truth.clone()
    wrong[0] = 3 + 4.5j
    assert oracle.max_error(truth.to(torch.complex64), truth) < 1e-6
    assert oracle.max_error(wrong, truth) > 0.05


@pytest.mark.parametrize("shape", [(7, 5), (1, 40), (40,), (3, 2, 5), (2, 2, 2, 2, 2), (), (0, 3)])
def test_slices_give_what_the_whole_gives(shape, monkeypatch):
    truth = torch.randn(shape, dtype=torch.float64)
    answer = (truth * (1 + 1e-5 * torch.randn_like(truth))).float()
    left_out = torch.rand(shape) < 0.3
    whole = oracle.max_error(answer, truth), oracle.max_error(answer, truth, left_out), float(oracle.rms_of(truth))
    monkeypatch.setattr(oracle, "WHOLE", 8)
    found = oracle.max_error(answer, truth), oracle.max_error(answer, truth, left_out), float(oracle.rms_of(truth))
    assert found == pytest.approx(whole)
    pieces = list(oracle.parts(truth, answer))
    assert sum(piece.numel() for piece, _ in pieces) == truth.numel()
    assert all(a.shape == b.shape and a.numel() <= 2 * 8 for a, b in pieces)


def test_slices_see_what_the_whole_sees(monkeypatch):
    monkeypatch.setattr(oracle, "WHOLE", 4)
    values = torch.arange(12.0).reshape(1, 12)
    assert oracle.all_finite(values)
    values[0, 11] = math.nan
    assert not oracle.all_finite(values)
    assert float(oracle.rms_of(values)) == pytest.approx(math.sqrt(sum(i * i for i in range(11)) / 11))
    assert oracle.max_error(values.float(), values.double()) == 0.0
    assert oracle.max_error(values.nan_to_num(7.0), values.double()) == math.inf


def test_elements_left_out_do_not_count():
    truth = torch.ones(4, dtype=torch.float64)
    answer = torch.tensor([1.0, NAN, 1.0, 9.0])
    assert error(answer, truth, torch.tensor([False, True, False, True])) == 0.0


def test_a_lattice_spans_whole_rows_and_columns():
    places = oracle.lattice(torch.Size([3, 1000, 500]), limit=6000)
    assert len(places[0]) == 3 and 1500 < len(places[0]) * len(places[1]) * len(places[2]) <= 6000
    tensor = torch.arange(24.0).view(2, 3, 4)
    assert torch.equal(oracle.thinned(tensor, oracle.lattice(tensor.shape)), tensor)

    at = [torch.tensor([1]), torch.tensor([0, 2]), torch.arange(4)]
    assert torch.equal(oracle.thinned(tensor, at), tensor[1:, [0, 2]])


def test_a_lattice_of_a_long_row_is_drawn_without_shuffling_it():
    (places,) = oracle.lattice(torch.Size([1 << 24]))
    assert 0.99 * oracle.LATTICE < len(places) <= oracle.LATTICE and bool((places[1:] > places[:-1]).all())
    assert int(places[0]) < 1 << 12 and (1 << 24) - (1 << 12) < int(places[-1]) < 1 << 24
    (others,) = oracle.lattice(torch.Size([1 << 24]))
    assert not torch.equal(places, others)


# ── jumps ─────────────────────────────────────────────────────────────────────────────────────────


def test_isolated_jumps_are_found_and_noise_is_not():
    truth = torch.randn(10_000, dtype=torch.float64)
    noisy = truth * (1 + 1e-7 * torch.randn_like(truth))
    assert oracle.find_jumps(noisy, truth).count == 0
    noisy[[5, 77]] += 0.1
    found = oracle.find_jumps(noisy, truth)
    assert found.count == 2 and found.mask[[5, 77]].all()


def test_many_differences_are_no_jumps():
    truth = torch.randn(1000, dtype=torch.float64)
    answer = truth.clone()
    answer[:100] += 1.0
    assert oracle.find_jumps(answer, truth).count == 0


@pytest.mark.parametrize("whole", [1 << 25, 500])
def test_what_is_dealt_alike_holds_the_same_in_any_order(whole, monkeypatch):
    """By a sample, too, where a tensor is too large to be sorted."""
    monkeypatch.setattr(oracle, "WHOLE", whole)
    truth = torch.randn(40, 50, dtype=torch.float64).relu()
    order = torch.randperm(truth.numel())
    other = truth.flatten()[order].view(50, 40).t()  # neither contiguous nor in that order
    assert oracle.are_dealt_alike(other.float(), truth, 1e-6)
    assert oracle.are_dealt_alike(other + 0.01, truth, 0.02) and not oracle.are_dealt_alike(other + 0.03, truth, 0.02)
    assert oracle.are_dealt_alike(other - 0.01, truth, 0.02) and not oracle.are_dealt_alike(other - 0.03, truth, 0.02)
    for place, value in ((int(truth.argmax()), 9.0), (int(truth.argmax()), INF), (0, NAN), (0, -9.0)):
        wrong = truth.clone()
        wrong.view(-1)[place] = value
        assert not oracle.are_dealt_alike(wrong, truth, 0.02) and not oracle.are_dealt_alike(truth, wrong, 0.02)
    fewer = truth.where(truth > 0, truth.max() * (torch.rand_like(truth) < 0.05))
    assert not oracle.are_dealt_alike(fewer, truth, 0.02)
    assert not oracle.are_dealt_alike(truth, truth.t(), 0.02) and not oracle.are_dealt_alike(truth + 0j, truth, 0.02)


def test_large_tensors_are_never_sorted_as_a_whole(monkeypatch):
    monkeypatch.setattr(oracle, "WHOLE", 1 << 12)
    monkeypatch.setattr(oracle, "LATTICE", 1 << 8)

    class Largest(TorchDispatchMode):
        elements = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            made = func(*args, **(kwargs or {}))
            each = [t for t in (made if isinstance(made, tuple) else (made,)) if isinstance(t, torch.Tensor)]
            self.elements = max([self.elements, *(t.numel() for t in each if t.itemsize == 8)])
            return made

    truth = torch.randn(64, 512)
    with Largest() as seen:
        assert oracle.are_dealt_alike(truth.flip(0), truth, 1e-6)
    assert seen.elements <= oracle.WHOLE, "float64 copies and places are of parts"


def test_integers_jump_where_they_differ():
    truth = torch.arange(1000)
    answer = truth.clone()
    answer[3] = 0
    assert oracle.find_jumps(answer, truth).count == 1


# ── other precisions ──────────────────────────────────────────────────────────────────────────────


def test_tf32_keeps_ten_bits_and_rounds_to_nearest():
    ulp = 2.0**-10
    x = torch.tensor([1.0, 1 + 0.4 * ulp, 1 + 0.6 * ulp, -(1 + 0.6 * ulp), 3.0e38, 0.0, 1e-30])
    rounded = oracle.round_to_tf32(x)
    assert rounded[:4].tolist() == [1.0, 1.0, 1 + ulp, -(1 + ulp)]
    assert ((rounded - x).abs() <= 2.0**-11 * x.abs()).all()
    assert torch.equal(oracle.round_to_tf32(rounded), rounded)


def test_tf32_leaves_other_dtypes_and_infinities_alone():
    for x in (torch.randn(4).double(), torch.randn(4).half(), torch.arange(4)):
        assert oracle.round_to_tf32(x) is x
    special = oracle.round_to_tf32(torch.tensor([INF, -INF, NAN]))
    assert special[0] == INF and special[1] == -INF and special[2].isnan()


def test_emulated_tf32_errs_like_tf32():
    model = torch.nn.Linear(256, 256)
    x = torch.randn(64, 256)
    truth = oracle.run_float64(oracle.cast_model(model, torch.float64), [x.double()])
    fp32 = oracle.max_error(oracle.run_plain(model, [x]), truth)
    tf32 = oracle.max_error(oracle.run_tf32(model, [x], "cpu"), truth)
    bf16 = oracle.max_error(oracle.run_autocast(model, [x], "cpu").float(), truth)
    assert fp32 < 3e-6 < 1e-4 < tf32 < 1e-2 and tf32 < bf16 < 1e-1


class Widths(torch.nn.Module):
    """Spells out casts, makes tensors of its own, and holds all kinds of state."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4))
        self.register_buffer("table", torch.arange(4))
        self.phase = torch.nn.Parameter(torch.randn(4, dtype=torch.complex64))
        self.hidden = torch.randn(4)
        self.pair = (torch.randn(4), torch.randn(4))
        self.cells = {"h": torch.randn(4)}

    def forward(self, x):
        y = x.float() * self.weight.to(torch.float32) + self.hidden + self.pair[0]
        y = y + torch.zeros(4) + torch.ones(4, dtype=torch.float32) + self.phase.abs()
        return y.type(torch.float32) + self.table


def test_truth_is_float64_throughout():
    twin = oracle.cast_model(Widths(), torch.float64)
    assert {p.dtype for p in twin.parameters()} == {torch.float64, torch.complex128}
    assert (
        twin.hidden.dtype is twin.pair[1].dtype is twin.cells["h"].dtype is torch.float64
        and twin.table.dtype is torch.int64
    )
    out = oracle.run_float64(twin, [torch.randn(4, dtype=torch.float64)])
    assert out.dtype is torch.float64
    assert (out - out.float().double()).abs().max() > 0  # bits beyond float32: nothing was rounded on the way
    assert torch.get_default_dtype() is torch.float32


class Quantising(torch.nn.Module):
    """Operators that refuse float64, between others."""

    def forward(self, x):
        scales, zeros = torch.full((4,), 0.1), torch.zeros(4, dtype=torch.int32)
        return torch.fake_quantize_per_channel_affine(x / 3, scales, zeros, 1, -128, 127) * 3 + x / 3


def test_what_refuses_float64_is_computed_in_float32_and_nothing_else_is():
    x = torch.randn(8, 4)
    out = oracle.run_float64(Quantising(), [x.double()])
    assert out.dtype is torch.float64 and (out - out.float().double()).abs().max() > 0
    assert oracle.max_error(Quantising()(x), out) < 1e-6
    with pytest.raises(RuntimeError, match="same dtype"):
        oracle.run_float64(lambda x: torch.mm(x, torch.ones(4, 4, dtype=torch.int32).view(torch.float32)), [x.double()])


class Seeded(torch.nn.Module):
    """The same random features in every call."""

    def __init__(self, dtype):
        super().__init__()
        self.dtype = dtype

    def forward(self, x):
        g = torch.Generator().manual_seed(7)
        noise = torch.randn(4, 16, generator=g, **self.dtype).to(x.dtype)
        torch.manual_seed(7)
        return torch.cos(x @ noise) + torch.rand(16, generator=g) + torch.randn_like(noise[0], **self.dtype)


@pytest.mark.parametrize("dtype", [{}, {"dtype": None}, {"dtype": torch.float32}, {"dtype": torch.float64}])
def test_random_numbers_of_a_fixed_seed_are_the_same_in_truth(dtype):
    x = torch.randn(8, 4)
    out = oracle.run_float64(Seeded(dtype), [x.double()])
    assert out.dtype is torch.float64 and oracle.max_error(Seeded(dtype)(x), out) < 1e-6


class Closures(torch.nn.Module):
    """Reaches its parts by what `copy.deepcopy` takes for constants."""

    def __init__(self):
        super().__init__()
        self.linear, self.unlisted = torch.nn.Linear(4, 4), [torch.nn.Linear(4, 4)]
        self.register_buffer("table", torch.randn(4))
        linear, table, unlisted, free, calls = self.linear, self.table, self.unlisted, torch.nn.Linear(4, 4), [0]

        def several(x, n=3, *, scale=self.linear.bias):
            calls[0] += 1
            return several(linear(x) + table, n - 1) if n else free(x) * scale

        self.several, self.steps = several, [lambda x: self.several(x), lambda x: unlisted[0](x)]

    def forward(self, x):
        for step in self.steps:
            x = step(x)
        return x


def test_truth_follows_the_functions_that_a_model_holds():
    model, x = Closures(), torch.randn(2, 4)
    before = model(x).detach()
    twin = oracle.cast_model(model, torch.float64)
    assert oracle.max_error(before, oracle.run_float64(twin, [x.double()])) < 1e-5
    assert torch.equal(model(x), before) and model.linear.weight.dtype is torch.float32
    with torch.no_grad():
        for tensor in (*twin.linear.parameters(), twin.table):
            tensor.zero_()
    due = twin.unlisted[0](torch.zeros(2, 4, dtype=torch.float64))
    assert torch.equal(oracle.run_float64(twin, [x.double()]), due), "other weights do not reach it"


def test_casting_copies_and_keeps_the_nesting():
    value = {"a": (torch.ones(2), torch.arange(2)), "b": [torch.ones(1, dtype=torch.complex64), 3]}
    wide = oracle.cast(value, torch.float64)
    assert wide["a"][0].dtype is torch.float64 and wide["a"][1].dtype is torch.int64
    assert wide["b"][0].dtype is torch.complex128 and wide["b"][1] == 3
    assert wide["a"][1].data_ptr() != value["a"][1].data_ptr()


def test_backend_flags_come_back_even_after_an_error():
    flags = torch.backends.cuda.matmul
    before = flags.allow_tf32
    with pytest.raises(RuntimeError, match="inside"), oracle.backend_precision(tf32=not before):
        assert flags.allow_tf32 is not before
        raise RuntimeError("inside")
    assert flags.allow_tf32 is before


@pytest.mark.parametrize(
    "lower",
    [
        lambda x: torch.ops.aten.to.dtype(x, torch.float32),
        lambda x: torch.ops.aten._to_copy.default(x, dtype=torch.bfloat16).to(torch.float32),
        lambda x: torch.ops.aten.softmax.int(x, -1, torch.float32),
        lambda x: torch.softmax(x, -1, torch.float32),
        lambda x: x.sum(-1, dtype=torch.float32),
        lambda x: x.type(torch.float16),
    ],
    ids=["to", "to-copy", "softmax", "torch-softmax", "sum", "type"],
)
def test_casts_of_printed_graphs_are_lifted_too(lower):
    class Casting(torch.nn.Module):
        def forward(self, x):
            return lower(x)

    x = torch.randn(4, 5, dtype=torch.float64)
    assert oracle.run_float64(Casting(), [x]).dtype is torch.float64


@pytest.mark.parametrize("view", [torch.Tensor.view, torch.ops.aten.view.dtype])
def test_bits_are_read_as_what_they_are(view):
    class Bits(torch.nn.Module):
        def forward(self, x):
            return view(x.to(torch.int32), torch.float32)

    assert oracle.run_float64(Bits(), [torch.ones(4, dtype=torch.float64)]).dtype is torch.float32


class Multiplied(TorchDispatchMode):
    """Notes the dtypes of what is multiplied."""

    def __init__(self):
        super().__init__()
        self.dtypes = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.overloadpacket in oracle._MULTIPLY:
            self.dtypes |= {each.dtype for each in args if isinstance(each, torch.Tensor)}
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (nn.Linear(64, 32), (8, 64)),
        (nn.Conv2d(3, 8, 3), (2, 3, 9, 9)),
        (nn.MultiheadAttention(16, 2, batch_first=True), (2, 5, 16)),
    ],
)
def test_autocast_on_a_cpu_computes_as_units_for_bfloat16_and_never_by_its_own_slow_products(model, shape):
    args = [torch.randn(shape)] * (3 if isinstance(model, nn.MultiheadAttention) else 1)
    with Multiplied() as seen:
        made = oracle.run_autocast(model, args, "cpu")
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        native = model(*args)
    made, native = (each[0] if isinstance(each, tuple) else each for each in (made, native))
    assert seen.dtypes == {torch.float32} and made.dtype is native.dtype is torch.bfloat16
    assert (made.float() - native.float()).abs().max() <= 2**-6 * native.float().abs().max()


def test_parameters_in_a_private_list_stay_those_of_the_copy():
    model = torch.nn.RNN(3, 4)
    model._ranges = {"last": (torch.zeros(4), 1)}
    twin = oracle.cast_model(model, torch.float64)
    assert all(any(w is p for p in twin.parameters()) for w in twin._flat_weights)
    assert twin._ranges["last"][0].dtype is torch.float64 and model._ranges["last"][0].dtype is torch.float32
