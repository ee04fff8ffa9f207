"""A model in other arithmetics."""

from __future__ import annotations

import math
import threading

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from cuda_l1.evaluator.guest import arithmetic, oracle

INF, NAN = math.inf, math.nan


def test_tf32_keeps_ten_bits_and_rounds_to_nearest():
    ulp = 2.0**-10
    x = torch.tensor([1.0, 1 + 0.4 * ulp, 1 + 0.6 * ulp, -(1 + 0.6 * ulp), 3.0e38, 0.0, 1e-30])
    rounded = arithmetic.round_to_tf32(x)
    assert rounded[:4].tolist() == [1.0, 1.0, 1 + ulp, -(1 + ulp)]
    assert ((rounded - x).abs() <= 2.0**-11 * x.abs()).all()
    assert torch.equal(arithmetic.round_to_tf32(rounded), rounded)


def test_tf32_leaves_other_dtypes_and_infinities_alone():
    for x in (torch.randn(4).double(), torch.randn(4).half(), torch.arange(4)):
        assert arithmetic.round_to_tf32(x) is x
    special = arithmetic.round_to_tf32(torch.tensor([INF, -INF, NAN]))
    assert special[0] == INF and special[1] == -INF and special[2].isnan()


def test_emulated_tf32_errs_like_tf32():
    model = torch.nn.Linear(256, 256)
    x = torch.randn(64, 256)
    truth = arithmetic.run_float64(arithmetic.cast_model(model, torch.float64), [x.double()])
    fp32 = oracle.max_error(arithmetic.run_plain(model, [x]), truth)
    tf32 = oracle.max_error(arithmetic.run_tf32(model, [x], "cpu"), truth)
    bf16 = oracle.max_error(arithmetic.run_autocast(model, [x], "cpu").float(), truth)
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
    twin = arithmetic.cast_model(Widths(), torch.float64)
    assert {p.dtype for p in twin.parameters()} == {torch.float64, torch.complex128}
    assert (
        twin.hidden.dtype is twin.pair[1].dtype is twin.cells["h"].dtype is torch.float64
        and twin.table.dtype is torch.int64
    )
    out = arithmetic.run_float64(twin, [torch.randn(4, dtype=torch.float64)])
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
    out = arithmetic.run_float64(Quantising(), [x.double()])
    assert out.dtype is torch.float64 and (out - out.float().double()).abs().max() > 0
    assert oracle.max_error(Quantising()(x), out) < 1e-6
    with pytest.raises(RuntimeError, match="same dtype"):
        arithmetic.run_float64(
            lambda x: torch.mm(x, torch.ones(4, 4, dtype=torch.int32).view(torch.float32)), [x.double()]
        )


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
    out = arithmetic.run_float64(Seeded(dtype), [x.double()])
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
    twin = arithmetic.cast_model(model, torch.float64)
    assert oracle.max_error(before, arithmetic.run_float64(twin, [x.double()])) < 1e-5
    assert torch.equal(model(x), before) and model.linear.weight.dtype is torch.float32
    with torch.no_grad():
        for tensor in (*twin.linear.parameters(), twin.table):
            tensor.zero_()
    due = twin.unlisted[0](torch.zeros(2, 4, dtype=torch.float64))
    assert torch.equal(arithmetic.run_float64(twin, [x.double()]), due), "other weights do not reach it"


class Holding(torch.nn.Module):
    """Holds what cannot be copied."""

    def __init__(self):
        super().__init__()
        self.linear, self.library, self.lock = torch.nn.Linear(4, 4), math, threading.Lock()
        self.scripted = torch.jit.CompilationUnit("def double(x):\n    return 2 * x\n").double

    def forward(self, x):
        with self.lock:
            return self.scripted(self.linear(x)) * self.library.pi


def test_what_cannot_be_copied_is_shared_with_the_copy():
    twin = arithmetic.cast_model(Holding(), torch.float64)
    assert arithmetic.run_float64(twin, [torch.randn(2, 4).double()]).dtype is torch.float64


class Hooked(torch.nn.Module):
    """Answers with what hooks have caught."""

    def __init__(self):
        super().__init__()
        self.linear, self.before, self.after = torch.nn.Linear(4, 4), [], []
        self.linear.register_forward_pre_hook(lambda module, args: self.before.append(args[0]))
        self.linear.register_forward_hook(lambda module, args, out: self.after.append(out))

    def forward(self, x):
        self.linear(x)
        return self.before.pop() + self.after.pop()


def test_truth_has_what_hooks_catch():
    model, x = Hooked(), torch.randn(2, 4)
    wide = arithmetic.run_float64(arithmetic.cast_model(model, torch.float64), [x.double()])
    assert wide.dtype is torch.float64 and oracle.max_error(model(x).detach(), wide) < 1e-5
    assert not model.before and not model.after


class Autocast(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.cast = torch.nn.Linear(64, 64), torch.autocast("cpu", dtype=torch.bfloat16)

    def forward(self, x):
        with self.cast:
            return self.linear(x)


def test_what_is_lifted_knows_no_autocast():
    model, x = Autocast(), torch.randn(8, 64)
    truth = arithmetic.run_float64(arithmetic.cast_model(model, torch.float64), [x.double()])
    lifted = arithmetic.run_lifted(model, [x], torch.float32)
    assert lifted.dtype is torch.float32 and oracle.max_error(lifted, truth) < 1e-5
    assert arithmetic.run_plain(model, [x]).dtype is torch.bfloat16


def test_casting_copies_and_keeps_the_nesting():
    value = {"a": (torch.ones(2), torch.arange(2)), "b": [torch.ones(1, dtype=torch.complex64), 3]}
    wide = arithmetic.cast(value, torch.float64)
    assert wide["a"][0].dtype is torch.float64 and wide["a"][1].dtype is torch.int64
    assert wide["b"][0].dtype is torch.complex128 and wide["b"][1] == 3
    assert wide["a"][1].data_ptr() != value["a"][1].data_ptr()


def test_backend_flags_come_back_even_after_an_error():
    flags = torch.backends.cuda.matmul
    before = flags.allow_tf32
    with pytest.raises(RuntimeError, match="inside"), arithmetic.backend_precision(tf32=not before):
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
    assert arithmetic.run_float64(Casting(), [x]).dtype is torch.float64


@pytest.mark.parametrize("view", [torch.Tensor.view, torch.ops.aten.view.dtype])
def test_bits_are_read_as_what_they_are(view):
    class Bits(torch.nn.Module):
        def forward(self, x):
            return view(x.to(torch.int32), torch.float32)

    assert arithmetic.run_float64(Bits(), [torch.ones(4, dtype=torch.float64)]).dtype is torch.float32


class Multiplied(TorchDispatchMode):
    """Notes the dtypes of what is multiplied."""

    def __init__(self):
        super().__init__()
        self.dtypes = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.overloadpacket in arithmetic._MULTIPLY:
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
        made = arithmetic.run_autocast(model, args, "cpu")
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        native = model(*args)
    made, native = (each[0] if isinstance(each, tuple) else each for each in (made, native))
    assert seen.dtypes == {torch.float32} and made.dtype is native.dtype is torch.bfloat16
    assert (made.float() - native.float()).abs().max() <= 2**-6 * native.float().abs().max()


def test_parameters_in_a_private_list_stay_those_of_the_copy():
    model = torch.nn.RNN(3, 4)
    model._ranges = {"last": (torch.zeros(4), 1)}
    twin = arithmetic.cast_model(model, torch.float64)
    assert all(any(w is p for p in twin.parameters()) for w in twin._flat_weights)
    assert twin._ranges["last"][0].dtype is torch.float64 and model._ranges["last"][0].dtype is torch.float32
