"""`OptimizedModule` around a live module: the same tensors, the same function, and what a module is put through."""

from __future__ import annotations

import copy
import importlib
import io
import pickle
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from cuda_l1.export.dropin import render_dropin
from cuda_l1.export.optimized import OptimizedModule
from cuda_l1.export.probe import guard_for, modes_of
from cuda_l1.tasks.live_source import render_module
from cuda_l1.types import Candidate, Environment, Task

PLACE = Environment(device="cpu", device_name="test", lane="0", rung="R0", torch=torch.__version__)

TASK = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 6)
        self.scale = nn.Parameter(torch.ones(6))
        self.register_buffer("shift", torch.zeros(6))

    def forward(self, x):
        return self.inner(x) * self.scale + self.shift


def get_inputs():
    return [torch.randn(3, 6)]


def get_init_inputs():
    return []
"""

FASTER = (
    TASK
    + """

CALLS = []


class ModelNew(Model):
    def forward(self, x):
        CALLS.append(1)
        return torch.addcmul(self.shift, self.inner(x), self.scale)
"""
)


class Live(nn.Module):
    """The user's own module: other constructor, same state."""

    def __init__(self, width: int, note: str = "mine") -> None:
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.randn(width))
        self.register_buffer("shift", torch.randn(width))
        self.note = note

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) * self.scale + self.shift


BARE = (
    FASTER.replace("torch.addcmul(self.shift, self.inner(x), self.scale)", "self.kernel(x)")
    + """
    def kernel(self, x):
        return self.inner(x) * six_floats(self.scale) + six_floats(self.shift)


def six_floats(tensor):
    found = numpy.ctypeslib.as_array((ctypes.c_float * 6).from_address(tensor.data_ptr()))
    return torch.from_numpy(found.copy())
"""
)
BARE = BARE.replace("import torch\n", "import ctypes\n\nimport numpy.ctypeslib\nimport torch\n", 1)
"""It reads six floats wherever its weights lie, as compiled kernels do."""


def source(text: str = FASTER) -> str:
    task = Task(suite="module", name="Live", source=TASK)
    candidate = Candidate(task_sha=task.sha, task_id=task.id, source=text)
    return render_dropin(task, candidate, guard_for(task, PLACE))


@pytest.fixture
def live() -> Live:
    torch.manual_seed(3)
    return Live(6)


@pytest.fixture
def fast(live: Live) -> Iterator[OptimizedModule]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield OptimizedModule(live, source(), {"speedup_eager": 1.5})


def ran_fast(module: OptimizedModule, x: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether the optimised forward answered; the answer must be right either way."""
    before = sum(module.report["fallbacks"].values())
    with torch.no_grad():
        torch.testing.assert_close(module(x), expected)
    return sum(module.report["fallbacks"].values()) == before


X = torch.linspace(-1, 1, 18).reshape(3, 6)


def test_it_shares_the_very_parameters_and_keys(live: Live, fast: OptimizedModule) -> None:
    assert isinstance(fast, OptimizedModule) and isinstance(fast, nn.Module)
    assert list(fast.state_dict()) == list(live.state_dict())
    assert all(a is b for a, b in zip(fast.parameters(), live.parameters(), strict=True))
    assert fast.note == "mine"
    assert fast.report["speedup_eager"] == 1.5
    with torch.no_grad():
        expected = live(X)
    assert ran_fast(fast, X, expected)
    assert not ran_fast(fast, X[:2], expected[:2])
    assert fast.report["fallbacks"] == {"shape": 1}


@pytest.mark.parametrize("change", ["cast", "cast-a-part", "other-dtype", "other-shape"])
def test_a_kernel_is_given_no_address_of_another_kind_of_tensor(live: Live, change: str) -> None:
    fast = OptimizedModule(live, source(BARE), {})
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert ran_fast(fast, X, live(X))
        if change == "cast":
            live.double()
        elif change == "cast-a-part":
            live.shift = live.shift.half()
        elif change == "other-dtype":
            live.scale = nn.Parameter(torch.ones(6, dtype=torch.double))
        else:
            fast.scale = nn.Parameter(torch.ones(1))
        x = X.double() if change == "cast" else X
        torch.testing.assert_close(fast(x), live(x))
        assert fast.report["fallbacks"] == {"dtype" if change == "cast" else "parameters": 1}


def test_another_structure_runs_the_original(live: Live, fast: OptimizedModule) -> None:
    with torch.no_grad():
        assert ran_fast(fast, X, live(X))
        fast.inner = nn.Sequential(live.inner, nn.Tanh())
        assert not ran_fast(fast, X, live(X))
        assert fast.report["fallbacks"] == {"modules": 1}
        fast.inner = nn.Linear(6, 6)
        assert ran_fast(fast, X, live(X)), "other weights, the same structure"


def test_a_buffer_that_nothing_reads_is_no_hindrance(fast: OptimizedModule, live: Live) -> None:
    live.register_buffer("unread", torch.ones(3), persistent=False)
    with torch.no_grad():
        assert ran_fast(fast, X, live(X))


def test_forward_mode_gradients_run_the_original(live: Live, fast: OptimizedModule) -> None:
    with torch.no_grad(), torch.autograd.forward_ad.dual_level():
        fast(X)
        dual = torch.autograd.forward_ad.make_dual(X, torch.ones_like(X))
        assert torch.autograd.forward_ad.unpack_dual(fast(dual)).tangent is not None
    with torch.no_grad():
        assert ran_fast(fast, X, live(X))


STATISTICS = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(6)

    def forward(self, x):
        return self.bn(x)


def get_inputs():
    return [torch.randn(3, 6)]


def get_init_inputs():
    return []
"""
REMEMBERED = (
    STATISTICS
    + """

class ModelNew(Model):
    def forward(self, x):
        if not hasattr(self, "scale"):
            self.scale = torch.rsqrt(self.bn.running_var + self.bn.eps)
        return torch.nn.functional.batch_norm((x - self.bn.running_mean) * self.scale, torch.zeros(6), torch.ones(6))
"""
)


@pytest.mark.parametrize("trains", ["original", "optimised"])
def test_statistics_that_a_train_mode_changed_are_seen(trains: str) -> None:
    task = Task(suite="module", name="Statistics", source=STATISTICS)
    candidate = Candidate(task_sha=task.sha, task_id=task.id, source=REMEMBERED)
    guard = guard_for(task, PLACE)
    guard = guard.model_copy(update={"forced": "eval", "modes": dict.fromkeys(guard.modes, False)})
    original = nn.Module.eval(type("Own", (nn.Module,), {"forward": lambda self, x: self.bn(x)})())
    original.bn = nn.BatchNorm1d(6).eval()
    fast = OptimizedModule(original, render_dropin(task, candidate, guard), {}, {"": False, "bn": False})
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert ran_fast(fast, X, original(X))
        chosen = original if trains == "original" else fast
        chosen.train()
        for _ in range(3):
            chosen(X * 9 + 5)
        chosen.eval()
        assert ran_fast(fast, X, original(X))


def test_new_weights_from_either_side_are_used(live: Live, fast: OptimizedModule) -> None:
    other = Live(6)
    with torch.no_grad():
        expected = other(X)
        assert ran_fast(fast, X, live(X))
        fast.load_state_dict(other.state_dict())
        assert ran_fast(fast, X, expected)
        live.scale.zero_()
        assert ran_fast(fast, X, live.shift.expand(3, 6))
        live.scale = nn.Parameter(torch.ones(6))
        assert fast.scale is live.scale
        assert ran_fast(fast, X, live(X))
        fast.load_state_dict(Live(6).state_dict(), assign=True)
        assert ran_fast(fast, X, live(X))


def test_training_through_it_trains_the_original(live: Live, fast: OptimizedModule) -> None:
    optimizer = torch.optim.SGD(fast.parameters(), lr=0.1)
    before = live.scale.detach().clone()
    fast(X).square().sum().backward()
    optimizer.step()
    assert not torch.equal(before, live.scale)
    with torch.no_grad():
        assert ran_fast(fast, X, live(X))


def test_casting_moves_the_original_and_back(live: Live, fast: OptimizedModule) -> None:
    with torch.no_grad():
        assert ran_fast(fast, X, live(X))
        assert fast.double() is fast
        assert live.scale.dtype is torch.float64
        assert not ran_fast(fast, X.double(), live(X.double()))
        fast.float()
        assert ran_fast(fast, X, live(X))


@pytest.mark.parametrize("how", ["deepcopy", "pickle", "torch.save"])
def test_copies_share_nothing(live: Live, fast: OptimizedModule, how: str) -> None:
    with torch.no_grad():
        expected = live(X)
    assert ran_fast(fast, X, expected)
    copied = duplicate(fast, how)
    assert isinstance(copied, OptimizedModule)
    assert copied.report["speedup_eager"] == 1.5
    with torch.no_grad():
        live.scale.zero_()
    assert ran_fast(copied, X, expected)


class Tied(nn.Module):
    """Two names for one weight, of which the optimised forward reads one."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(6, 6, bias=False), nn.Linear(6, 6, bias=False)
        self.outer.weight = self.inner.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.outer(self.inner(x))


def test_weights_that_are_tied_no_longer_run_the_original_in_copies_too() -> None:
    live = Tied()
    text = render_module(live, [X], {})
    product = "x @ (self.inner.weight.t() @ self.inner.weight.t())"
    faster = f"{text}\n\nclass ModelNew(Model):\n    def forward(self, x):\n        return {product}\n"
    task = Task(suite="module", name="Tied", source=text)
    candidate = Candidate(task_sha=task.sha, task_id=task.id, source=faster)
    fast = OptimizedModule(live, render_dropin(task, candidate, guard_for(task, PLACE)), {})
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert ran_fast(fast, X, live(X))
        weight, live.outer.weight = live.outer.weight, nn.Parameter(torch.ones(6, 6))
        for how in ("deepcopy", "pickle", "torch.save"):
            assert not ran_fast(duplicate(fast, how), X, live(X))
        assert not ran_fast(fast, X, live(X))
        live.outer.weight = weight
        assert ran_fast(fast, X, live(X))
        assert fast.report["fallbacks"] == {"tied": 1}


def duplicate(module: OptimizedModule, how: str) -> OptimizedModule:
    if how == "deepcopy":
        return copy.deepcopy(module)
    if how == "pickle":
        return pickle.loads(pickle.dumps(module))
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def test_inference_mode_autocast_and_an_outer_compile(live: Live, fast: OptimizedModule) -> None:
    with torch.inference_mode():
        assert ran_fast(fast, X, live(X))
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        assert not ran_fast(fast, X, live(X))
    compiled = torch.compile(fast, backend="eager", fullgraph=True)
    with torch.no_grad():
        torch.testing.assert_close(compiled(X), live(X))


def test_a_mode_that_matters_to_the_live_module_is_guarded(fast: OptimizedModule) -> None:
    with_dropout = nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.5)).eval()
    text = TASK.replace("self.inner = nn.Linear(6, 6)", 'self.add_module("0", nn.Linear(6, 6))')
    text = text.replace("        self.scale = nn.Parameter(torch.ones(6))\n", "")
    text = text.replace('        self.register_buffer("shift", torch.zeros(6))\n', "")
    text = text.replace("self.inner(x) * self.scale + self.shift", 'self.get_submodule("0")(x)')
    task = Task(suite="module", name="Sequential", source=text)
    candidate = Candidate(task_sha=task.sha, task_id=task.id, source=text + "\n\nclass ModelNew(Model):\n    pass\n")
    module = OptimizedModule(with_dropout, render_dropin(task, candidate, guard_for(task, PLACE)), {})
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert ran_fast(module, X, with_dropout(X))
        module.train()
        assert with_dropout.training and with_dropout[1].training
        with pytest.warns(UserWarning, match="; `training` of Dropout was False; counted in"):
            module(X)
        assert module.report["fallbacks"] == {"mode": 1}
        copied = copy.deepcopy(module)
        copied.eval()
        assert ran_fast(copied, X, with_dropout.eval()(X))


BASES = """
import torch.nn as nn


class Base(nn.Module):
    def forward(self, x):
        return x + 1 if self.training else x
"""
DERIVED = """
import torch.nn as nn
from some_bases import Base


class Drop(nn.Dropout):
    pass


class Norm(nn.BatchNorm1d):
    pass


class Derived(Base):
    pass


class Still(nn.Linear):
    pass
"""


def test_modules_whose_mode_matters_are_known_wherever_they_look_at_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for name, text in (("some_bases", BASES), ("some_modules", DERIVED)):
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    mine = importlib.import_module("some_modules")
    base = mine.Base()
    base.register_parameter("weight", nn.Parameter(torch.ones(3, 3)))
    for module in (
        mine.Drop(),
        mine.Norm(3),
        mine.Derived(),
        nn.utils.parametrizations.orthogonal(base),
        nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3)),
        nn.utils.spectral_norm(nn.Linear(3, 3)),
    ):
        assert modes_of(nn.Sequential(module)), module
    for module in (mine.Still(3, 3), nn.utils.parametrizations.weight_norm(nn.Linear(3, 3)), nn.Dropout(0.0)):
        assert not modes_of(nn.Sequential(module)), module


def test_inside_another_module(live: Live, fast: OptimizedModule) -> None:
    outer = nn.Sequential(fast, nn.ReLU())
    plain = nn.Sequential(live, nn.ReLU())
    assert list(outer.state_dict()) == list(plain.state_dict())
    other = nn.Sequential(Live(6), nn.ReLU())
    outer.load_state_dict(other.state_dict(), assign=True)
    with torch.no_grad():
        torch.testing.assert_close(outer(X), other(X))
    assert not sum(fast.report["fallbacks"].values())


def test_without_a_faster_forward_the_original_runs(live: Live) -> None:
    module = OptimizedModule(live, None, {"outcome": "no-improvement"})
    torch.testing.assert_close(module(X), live(X))
    assert module.report == {"outcome": "no-improvement", "fallbacks": {}}
    assert list(copy.deepcopy(module).state_dict()) == list(live.state_dict())
