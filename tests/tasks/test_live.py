"""A live module becomes source plus safetensors that compute the same, with equal state_dict keys."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import math
import subprocess
import sys
from typing import NamedTuple

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.utils._pytree as pytree
from module_zoo import ZOO
from safetensors.torch import load_file

from cuda_l1.errors import TaskError
from cuda_l1.tasks import task_from_module
from cuda_l1.tasks.live_check import check_printed
from cuda_l1.types import Task


def built(task: Task) -> tuple[nn.Module, dict]:
    namespace = {}
    exec(task.source, namespace)
    model = namespace["Model"](*namespace["get_init_inputs"]())
    if task.weights:
        model.load_state_dict(load_file(task.weights.path))
    return model, namespace


def outputs(module, arguments):
    torch.manual_seed(0)
    with torch.no_grad():
        return pytree.tree_leaves(module(*pytree.tree_map_only(torch.Tensor, torch.clone, arguments)))


@pytest.mark.parametrize("name", ZOO)
def test_task_of_a_live_module(name, tmp_path):
    make, example = ZOO[name]
    torch.manual_seed(1)
    module, arguments = make(), example()
    before = copy.deepcopy(module)
    task = task_from_module(module, arguments, work_dir=tmp_path)
    model, namespace = built(task)

    torch.testing.assert_close(module.state_dict(), before.state_dict(), rtol=0, atol=0)
    assert list(model.state_dict()) == list(module.state_dict())
    assert [type(p) for p in model.parameters()] == [type(p) for p in module.parameters()]
    for want, have in zip(outputs(module, arguments), outputs(model, arguments), strict=True):
        if isinstance(want, torch.Tensor):
            torch.testing.assert_close(have, want, equal_nan=True)
        else:
            assert have == want

    torch.manual_seed(2)
    drawn = namespace["get_inputs"]()
    assert "cpu" not in task.source and "cuda:" not in task.source
    for want, have in zip(pytree.tree_leaves(list(arguments)), pytree.tree_leaves(drawn), strict=True):
        if isinstance(want, torch.Tensor):
            assert (have.shape, have.dtype, have.stride()) == (want.shape, want.dtype, want.stride())
        else:
            assert have == want
    outputs(built(task)[0], drawn)


def test_tied_tensors_stay_tied(tmp_path):
    for name in ("tied", "shared_child"):
        make, example = ZOO[name]
        model, _ = built(task_from_module(make(), example(), work_dir=tmp_path))
        assert len(list(model.parameters())) == len(list(make().parameters())) < len(model.state_dict())


def test_constants_are_part_of_the_source_and_weights_of_the_identity(tmp_path):
    make, example = ZOO["buffers"]
    torch.manual_seed(0)
    first, second = (make() for _ in range(2))
    tasks = [task_from_module(module, example(), work_dir=tmp_path) for module in (first, second)]
    assert tasks[0].sha != tasks[1].sha
    torch.testing.assert_close(built(tasks[0])[0].hidden_table, first.hidden_table, rtol=0, atol=0)


def test_examples_as_dict_single_tensor_or_list(tmp_path):
    make, _ = ZOO["defaults"]
    arguments = torch.randn(3, 8), torch.randn(8)
    task = task_from_module(make(), {"bias": arguments[1], "x": arguments[0]}, name="mine", work_dir=tmp_path)
    assert (task.name, task.suite) == ("mine", "module")
    model, namespace = built(task)
    torch.testing.assert_close(model(*arguments), make()(arguments[0], bias=arguments[1]))
    assert len(namespace["get_inputs"]()) == 2
    for single in (torch.randn(2, 8), [torch.randn(2, 8)]):
        assert task_from_module(nn.Linear(8, 1), single, work_dir=tmp_path).weights is not None


def test_inputs_are_drawn_like_the_examples(tmp_path):
    class Takes(nn.Module):
        def forward(self, *given):
            return given[0] + 1

    class Named(nn.Module):
        def forward(self, a, b, c, d, e, f, g):
            return a + 1, b, c, d, e, f, g

    examples = (
        torch.randn(64, 64) * 3 + 5,
        torch.rand(100) * 2 + 1,
        torch.randint(3, 9, (50,)),
        torch.randn(4, 6).T,
        torch.full((4, 4), -math.inf).triu(1),
        torch.randn(4, 1).expand(4, 5),
        torch.rand(4000) < 0.25,
    )
    _, namespace = built(task_from_module(Named(), examples, work_dir=tmp_path))
    a, b, c, d, e, f, g = namespace["get_inputs"]()
    assert abs(a.mean() - 5) < 0.5 and abs(a.std() - 3) < 0.3 and not torch.equal(a, examples[0])
    assert b.min() >= 1 and b.max() <= 3
    assert c.min() >= 3 and c.max() <= 8
    assert d.stride() == (1, 6)
    assert torch.equal(e, examples[4])
    assert f.stride() == (1, 0) and f.shape == (4, 5)
    assert 0.15 < g.float().mean() < 0.35
    assert task_from_module(Takes(), (torch.randn(3), torch.randn(2)), work_dir=tmp_path)


class Branchy(nn.Module):
    """Cannot be traced; its constructor's arguments can be read off it."""

    def __init__(self, dim, slope=0.1):
        super().__init__()
        self.dim = dim
        self.slope = slope
        self.linear = nn.Linear(dim, dim)

    def forward(self, x):
        y = self.linear(x)
        return y if y.sum() > 0 else F.leaky_relu(y, self.slope)


def test_second_way_takes_the_file_of_the_class(tmp_path):
    module = Branchy(4, slope=0.3).eval()
    task = task_from_module(module, (torch.randn(3, 4),), work_dir=tmp_path)
    assert "[4, 0.3]" in task.source and "class Branchy" in task.source
    model, _ = built(task)
    assert not model.training and list(model.state_dict()) == list(module.state_dict())
    for _ in range(4):
        x = torch.randn(3, 4)
        torch.testing.assert_close(model(x), module(x))


def test_the_second_way_takes_along_what_lies_beside_that_file(tmp_path, monkeypatch):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "beside_live.py").write_text("SLOPE = 0.25\n")
    text = "import torch\nfrom beside_live import SLOPE\n\nclass Branches(torch.nn.Module):\n"
    text += "    def forward(self, x):\n        return x if x.sum() > 0 else x * SLOPE\n"
    (folder / "live_with_neighbour.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    module = importlib.import_module("live_with_neighbour").Branches()
    theirs, finders = sys.modules["beside_live"], set(sys.meta_path)
    task = task_from_module(module, torch.randn(3, 4), work_dir=tmp_path)
    assert "SLOPE = 0.25" in task.source and str(folder) not in task.source
    assert sys.modules["beside_live"] is theirs and finders >= set(sys.meta_path)
    script = tmp_path / "run.py"
    script.write_text(task.source + "\nprint(Model()(-torch.ones(2)))\n")
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert run.stdout == "tensor([-0.2500, -0.2500])\n"


class Forgetful(nn.Module):
    """Its constructor's argument is not kept under its name."""

    def __init__(self, dim):
        super().__init__()
        self.linear = nn.Linear(dim, dim)

    def forward(self, x):
        return x if x.sum() > 0 else self.linear(x)


class Drifts(nn.Module):
    """Its trace holds a number that changes from call to call."""

    def __init__(self):
        super().__init__()
        self.step = 0

    def forward(self, x):
        self.step += 1
        return x * self.step if self.step % 2 else x - self.step


class Point(NamedTuple):
    x: torch.Tensor


@dataclasses.dataclass
class Box:
    x: torch.Tensor


class Returns(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def forward(self, x):
        return self.kind(x)


def test_without_a_way_there_is_one_clear_line(tmp_path):
    namespace = {"nn": nn}
    exec("class Unseen(nn.Module):\n    def forward(self, x):\n        return x if x.sum() > 0 else -x", namespace)
    cases = [
        (Forgetful(4), torch.randn(2, 4), "`dim` cannot be read off the module"),
        (namespace["Unseen"](), torch.randn(2, 4), "not in a file"),
        (nn.Linear(4, 4), torch.randn(2, 5), "its own forward raises on the example inputs: RuntimeError"),
        (nn.Linear(4, 4), torch.randn(2, 4).numpy(), "its own forward raises on the example inputs: TypeError"),
        (nn.Linear(4, 4), torch.randn(2, 4).to_sparse(), "plain strided tensor"),
        (nn.LazyLinear(4), torch.randn(2, 4), "`weight` has no values yet; call the module once"),
        (Returns(Point), torch.randn(2), "forward returns a Point; wrap the module"),
        (Returns(Box), torch.randn(2), "forward returns a Box; wrap the module"),
        (nn.Linear(4, 4), (torch.randn(4), 1, 2), "do not fit its forward"),
        (nn.Linear(4, 4, device="meta"), torch.randn(2, 4), "not a plain tensor with values"),
        (nn.Identity(), torch.zeros(3, 4, device="meta"), "input 0 is on the meta device and has no values"),
        (nn.Identity(), torch.arange(4).to(torch.uint16), "input 0: inputs like it cannot be drawn in torch.uint16"),
        ("module", torch.randn(2), "not a torch.nn.Module"),
    ]
    for module, example, says in cases:
        with pytest.raises(TaskError) as caught:
            task_from_module(module, example, work_dir=tmp_path)
        assert says in str(caught.value) and "\n" not in str(caught.value)
        assert "wrap the module" not in says or "nor can" not in str(caught.value)


def test_python_state_is_noticed(tmp_path):
    module = Drifts()
    module.step = 2
    with pytest.raises(TaskError, match="forward changes `step` from call to call"):
        task_from_module(module, torch.randn(4), work_dir=tmp_path)
    assert module.step == 2


class Remembers(nn.Module):
    """Calls `change` on itself and adds what comes of it."""

    def __init__(self, change, **attributes):
        super().__init__()
        self.change = change
        self.child = nn.Linear(4, 4)
        for name, value in attributes.items():
            setattr(self.child, name, value)

    def forward(self, x):
        self.change(self.child)
        return self.child(x)


def counts(child):
    child.step += 1


def appends(child):
    child.history["calls"].append(0.5)


def creates(child):
    setattr(child, f"call_{len(vars(child))}", None)


def counts_up_to_one(child):
    child.step = min(child.step + 1, 1)


def keeps_the_last(child):
    child.history["calls"] = ["linear", 4]


def returns_to_what_it_was(child):
    child.step += 1
    child.step -= 1


def test_python_values_that_change_from_call_to_call_are_refused(tmp_path):
    for change, attributes, named in [
        (counts, {"step": 0}, "`child.step`"),
        (appends, {"history": {"calls": []}}, "`child.history`"),
        (creates, {}, "`child.call_"),
    ]:
        module = Remembers(change, **attributes)
        before = copy.deepcopy(vars(module.child))
        with pytest.raises(TaskError, match=named) as caught:
            task_from_module(module, torch.randn(2, 4), work_dir=tmp_path)
        assert "from call to call" in str(caught.value) and "\n" not in str(caught.value)
        assert vars(module.child).keys() == before.keys()
        assert all(getattr(module.child, name) == before[name] for name in attributes)


def test_python_values_that_settle_are_taken(tmp_path):
    for change, attributes in [
        (counts_up_to_one, {"step": 0}),
        (keeps_the_last, {"history": {}}),
        (returns_to_what_it_was, {"step": 0}),
    ]:
        module = Remembers(change, **copy.deepcopy(attributes))
        assert task_from_module(module, torch.randn(2, 4), work_dir=tmp_path)
        assert all(getattr(module.child, name) == value for name, value in attributes.items())


class FillsAtFirstCall(nn.Module):
    """A buffer, an attribute and a list that are filled at the first call."""

    def __init__(self, persistent):
        super().__init__()
        self.register_buffer("table", None, persistent=persistent)
        self.seen = None
        self.kept = []
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        if self.table is None or self.table.shape[0] < x.shape[0]:
            self.table = torch.arange(x.shape[0]).float()[:, None].sin()
            self.seen = torch.ones(8)
            self.kept.append(x)
        return self.linear(x) + self.table[: x.shape[0]] * self.seen


class FillsABuffer(nn.Module):
    def __init__(self, persistent):
        super().__init__()
        self.register_buffer("table", None, persistent=persistent)
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        if self.table is None or self.table.shape[0] < x.shape[0]:
            self.table = torch.arange(x.shape[0]).float()[:, None].sin()
        return self.linear(x) + self.table[: x.shape[0]]


@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize("kind", [FillsABuffer, FillsAtFirstCall])
def test_what_is_filled_at_the_first_call_is_as_it_was_afterwards(kind, persistent, tmp_path):
    module = kind(persistent)
    before = dict(vars(module)), list(module.state_dict())
    with pytest.raises(TaskError) as caught:
        task_from_module(module, torch.randn(4, 8), work_dir=tmp_path)
    assert "\n" not in str(caught.value)
    assert module.table is None and (dict(vars(module)), list(module.state_dict())) == before
    assert getattr(module, "kept", []) == []
    if kind is FillsABuffer:
        assert "forward fills the buffer `table`" in str(caught.value)
    assert type(module(torch.randn(4, 8))) is torch.Tensor


def test_what_raises_outside_of_the_trace_is_one_line(tmp_path, monkeypatch):
    class Odd(nn.Module):
        def forward(self, x):
            return x + 1

    def raises(*_):
        raise RuntimeError("first line\nsecond line")

    monkeypatch.setattr("cuda_l1.tasks.live.render_module", raises)
    with pytest.raises(TaskError, match=r"^Odd: cannot be printed: RuntimeError: first line$"):
        task_from_module(Odd(), torch.randn(2), work_dir=tmp_path)


@pytest.mark.parametrize("persistent", [True, False])
def test_expanded_buffers_are_refused_in_one_line(persistent, tmp_path):
    module = nn.Linear(8, 8)
    module.register_buffer("mask", torch.rand(1, 8).expand(4, 8), persistent=persistent)
    module.forward = lambda x: x * module.mask
    with pytest.raises(
        TaskError, match=r"^`mask` is expanded, its elements share memory; keep `mask.contiguous"
    ) as caught:
        task_from_module(module, torch.randn(4, 8), work_dir=tmp_path)
    assert "\n" not in str(caught.value) and module.mask.stride() == (0, 1)
    module.mask = module.mask.contiguous()
    assert task_from_module(module, torch.randn(4, 8), work_dir=tmp_path)


def test_state_keeps_its_layout(tmp_path):
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).to(memory_format=torch.channels_last).eval()
    module.register_buffer("turned", torch.rand(5, 3).T)
    module.register_buffer("part", torch.rand(5, 3)[:, :2])
    model, _ = built(task_from_module(module, torch.randn(1, 3, 8, 8), work_dir=tmp_path))
    own = model.state_dict()
    strides = {name: tensor.stride() for name, tensor in module.state_dict().items()}
    assert {name: tensor.stride() for name, tensor in own.items()} == strides | {"part": (2, 1)}
    torch.testing.assert_close(own, dict(module.state_dict()), rtol=0, atol=0, check_stride=False)


class CountsThroughAView(nn.Module):
    """Cannot be traced; a call changes an expanded buffer through a view of its memory."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(1).expand(4), persistent=False)

    def forward(self, x):
        self.calls[:1].add_(1)
        return x * self.calls if x.sum() > 0 else x - self.calls


def test_what_is_written_into_an_expanded_buffer_is_put_back(tmp_path):
    module = CountsThroughAView()
    assert "Model = CountsThroughAView" in task_from_module(module, torch.ones(4), work_dir=tmp_path).source
    assert module.calls.tolist() == [0.0] * 4 and module.calls.stride() == (0,)


class SwapsABuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, x):
        self.seen = self.seen + x
        return x + 1


def test_what_a_call_leaves_in_buffers_and_arguments_is_compared(tmp_path):
    module, x = SwapsABuffer(), torch.randn(4)
    model, _ = built(task_from_module(module, x, work_dir=tmp_path))
    model(x)
    torch.testing.assert_close(model.seen, x)
    assert module.seen.tolist() == [0.0] * 4
    writes = "import torch\n\n\nclass Model(torch.nn.ReLU):\n    def forward(self, x):\n        "
    writes += "y = x.relu()\n        x.copy_(y)\n        return y\n\n\ndef get_init_inputs():\n    return []\n"
    with pytest.raises(TaskError, match="changes an argument otherwise"):
        check_printed(writes, nn.ReLU(), (x,), {})
    check_printed(writes, nn.ReLU(), (x.abs(),), {})


def test_large_constant_is_refused_with_advice(tmp_path):
    class Big(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", torch.randn(3000, 1000), persistent=False)

        def forward(self, x):
            return x @ self.table

    with pytest.raises(TaskError, match="persistent buffer"):
        task_from_module(Big(), torch.randn(2, 3000), work_dir=tmp_path)
