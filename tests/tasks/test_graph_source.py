"""Capture and printing: the printed lines compute what the module computes, under the module's own names."""

from __future__ import annotations

import copy
import math
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch.nn as nn
import torch.utils._pytree as pytree
from module_zoo import ZOO

from cuda_l1.errors import TaskError
from cuda_l1.tasks.graph_source import attribute, capture, literal, print_forward, signature


def run(function, arguments):
    torch.manual_seed(0)
    with torch.no_grad():
        return function(*pytree.tree_map_only(torch.Tensor, torch.clone, arguments))


def compiled(lines: list[str], arguments: list[str]):
    """The printed lines as a function of `self` and the arguments."""
    text = f"def forward({', '.join(['self', *arguments])}):\n" + "".join(f"    {line}\n" for line in lines)
    namespace = {}
    exec("import torch, operator, math\n" + text, namespace)
    return namespace["forward"]


def assert_same(want, have):
    assert pytree.tree_structure(want) == pytree.tree_structure(have)
    for a, b in zip(pytree.tree_leaves(want), pytree.tree_leaves(have), strict=True):
        if isinstance(a, torch.Tensor):
            torch.testing.assert_close(b, a, equal_nan=True)
        else:
            assert a == b


@pytest.mark.parametrize("name", ZOO)
def test_printed_forward_computes_the_same(name):
    make, example = ZOO[name]
    torch.manual_seed(1)
    module, arguments = make(), example()
    before = copy.deepcopy(module)
    graph_module = capture(module, arguments)
    forward = compiled(print_forward(graph_module, free=True), signature(graph_module))
    holder = copy.deepcopy(graph_module)  # it has the module's tensors under the module's names
    assert_same(run(before, arguments), run(lambda *a: forward(holder, *a), arguments))
    assert_same(run(copy.deepcopy(module), arguments), run(graph_module, arguments))


def test_capture_leaves_the_module_alone():
    make, example = ZOO["counts_calls"]
    module = make()
    state = copy.deepcopy(module.state_dict())
    capture(module, example())
    torch.testing.assert_close(module.state_dict(), state)
    assert module.training


def test_operators_stay_at_the_level_of_the_module():
    make, example = ZOO["conv_norm_train"]
    text = "\n".join(print_forward(capture(make(), example())))
    for operator in ("aten.conv2d", "aten.batch_norm", "aten.relu", "aten.max_pool2d"):
        assert operator in text
    assert "self.norm.running_mean, self.norm.running_var, True" in text


def test_factories_follow_the_device_of_the_inputs():
    make, example = ZOO["factories"]
    graph_module = capture(make(), example())
    text = "\n".join(print_forward(graph_module))
    assert "device=x.device" in text and "'cpu'" not in text and '"cpu"' not in text
    forward = compiled(print_forward(graph_module), signature(graph_module))
    assert forward(graph_module.to("meta"), *(value.to("meta") for value in example()))[0].device.type == "meta"


def test_in_place_results_are_read_from_the_changed_tensor():
    lines = print_forward(capture(*_of("in_place")))
    assert any("add_.Tensor" in line for line in lines) and any("mul_" in line for line in lines)


def test_arguments_keep_their_names_and_structure():
    assert signature(capture(*_of("nested_arguments"))) == ["x", "states", "options"]
    module, arguments = _of("defaults")
    assert signature(capture(module, arguments[:1], {"flip": True})) == ["x", "flip"]
    assert signature(capture(_Starred(), (torch.ones(2), torch.ones(2)))) == ["xs_0", "xs_1"]


class _Starred(nn.Module):
    def forward(self, *xs):
        return sum(xs)


class _Branch(nn.Module):
    def forward(self, x):
        return x * 2 if x.sum() > 0 else x


class _Remembers(nn.Module):
    def forward(self, x):
        self.last = x * 2
        return self.last


class _Raises(nn.Module):
    def forward(self, x):
        raise ValueError("three\nlines\nlong")


class _NamedTuple(nn.Module):
    def forward(self, x):
        return torch.max(x, dim=0)


@pytest.mark.parametrize(
    ("module", "says"),
    [
        (_Branch(), "control flow depends on data"),
        (_Remembers(), "assigns the tensor self.last"),
        (_Raises(), "ValueError: three"),
        (_NamedTuple(), "wrap the module"),
    ],
)
def test_what_cannot_be_captured_is_one_clear_line(module, says, capfd):
    with pytest.raises(TaskError) as caught:
        capture(module, (torch.ones(2, 2),))
    assert says in str(caught.value) and "\n" not in str(caught.value)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "value",
    [0, -1.5, True, None, "a'b", math.inf, -math.inf, 1e-45, [1, (2,)], (), {"a": [1]}, slice(1, None, 2), ...,
     torch.float32, torch.bool, torch.strided, torch.channels_last, complex(1, math.inf)],
)  # fmt: skip
def test_literals_round_trip(value):
    assert eval(literal(value), {"torch": torch}) == value


def test_nan_and_devices_as_literals():
    assert math.isnan(eval(literal(math.nan)))
    assert eval(literal(torch.device("cuda:1")), {"torch": torch}) == torch.device("cuda:1")
    assert literal(torch.device("cpu"), device="x.device") == "x.device"
    with pytest.raises(TaskError, match="no literal for a object"):
        literal(object())


def test_attributes_that_are_not_identifiers():
    assert attribute("fc.weight") == "self.fc.weight"
    assert attribute("layers.0.class") == 'getattr(getattr(self.layers, "0"), "class")'


def _of(name):
    make, example = ZOO[name]
    return make(), example()


def test_several_threads_capture_and_nothing_that_others_say_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    saying = threading.Event()

    class Slow(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            sys.stdout.write("what a forward says is for nobody")
            saying.set()
            time.sleep(0.05)
            return torch.relu(x) + 1

    with ThreadPoolExecutor(3) as pool:
        under_way = [pool.submit(capture, Slow(), (torch.randn(4),)) for _ in range(3)]
        assert saying.wait(30.0)
        sys.stderr.write("a line of progress\n")
        texts = {tuple(print_forward(each.result())) for each in under_way}
    assert len(texts) == 1
    said = capsys.readouterr()
    assert said.err == "a line of progress\n" and said.out == ""
