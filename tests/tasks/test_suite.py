"""Every built-in task: finite, sensitive, signed, not degenerate, and of a reasonable size on both devices."""

from __future__ import annotations

import ast
import copy

import pytest
import torch

from cuda_l1.errors import TaskError
from cuda_l1.tasks import builtin_dtypes, builtin_names, load_task, load_tasks
from cuda_l1.tasks.suite import render

FP32 = load_tasks("builtin")
BF16 = load_tasks("builtin", dtype="bf16")
ALL = FP32 + BF16
by_name = pytest.mark.parametrize("task", ALL, ids=lambda task: task.name)

# Rounding and routing jump where fp32 and fp64 fall on two sides of an edge.
JUMPS = {"quantize_dequantize", "moe_routing", "mixture_of_experts"}


def namespace_of(task):
    namespace = {}
    exec(task.source, namespace)
    return namespace


def tensors(output):
    return [output] if isinstance(output, torch.Tensor) else [t for item in output for t in tensors(item)]


def as_double(values):
    return [value.double() if value.is_floating_point() else value for value in values]


def error(answer, truth):
    """The largest element error of the protocol: |x - truth| / (|truth| + rms(truth))."""
    errors = []
    for x, t in zip(answer, truth, strict=True):
        x, t = x.double(), t.double()
        errors.append(((x - t).abs() / (t.abs() + t.pow(2).mean().sqrt())).flatten())
    return torch.cat(errors)


class Case:
    """One task with its inputs, another set of inputs, and the answers in float64."""

    def __init__(self, task):
        namespace = namespace_of(task)
        torch.manual_seed(0)
        self.model = namespace["Model"](*namespace["get_init_inputs"]())
        torch.manual_seed(1)
        self.inputs = namespace["get_inputs"]()
        torch.manual_seed(2)
        self.other_inputs = namespace["get_inputs"]()
        self.truth = self.run(as_double(self.inputs), double=True)

    def run(self, inputs, double=False, change=None):
        model = copy.deepcopy(self.model)
        model = model.double() if double else model
        with torch.no_grad():
            for parameter in model.parameters() if change else ():
                change(parameter)
            return tensors(model(*[value.clone() for value in inputs]))


def varied(parameter):
    scale = parameter.pow(2).mean().sqrt()
    parameter.mul_(torch.rand_like(parameter) + 0.5).add_(0.1 * scale * torch.randn_like(parameter))


@by_name
def test_sound(task):
    case = Case(task)
    answer = case.run(case.inputs)
    half = any(tensor.dtype != torch.float32 for tensor in answer)
    floor = error(answer, case.truth)
    if task.name in JUMPS:
        floor = floor[floor < 1e-3]
        assert floor.numel() >= len(error(answer, case.truth)) - 8
    bound = 4 * max(floor.max().item(), 2**-8) if half else 16 * max(floor.max().item(), 2**-24)
    assert bound < (0.1 if half else 1e-3), "ill-conditioned"

    forgeries = {
        "zeros": [torch.zeros_like(t) for t in case.truth],
        "other inputs": case.run(as_double(case.other_inputs), double=True),
    }
    if list(case.model.parameters()):
        forgeries["other weights"] = case.run(as_double(case.inputs), double=True, change=varied)
    if not half:
        forgeries["rounded to fp16"] = [t.half() for t in case.truth]
        forgeries["rounded to bf16"] = [t.bfloat16() for t in case.truth]
    for i, given in enumerate(case.inputs):
        if given.is_floating_point() and all(given.shape == t.shape for t in case.truth):
            forgeries[f"copy of input {i}"] = [given for _ in case.truth]
    for name, forged in forgeries.items():
        assert error(forged, case.truth).max() > bound, f"{name} would pass"

    for change in (-1.0, 16.0, 2.0**-6):
        stressed = [value * change if value.is_floating_point() else value for value in case.inputs]
        assert all(torch.isfinite(t).all() for t in case.run(stressed))


@by_name
def test_inputs_are_signed(task):
    floats = [value for value in namespace_of(task)["get_inputs"]() if value.is_floating_point()]
    assert floats and all((value < 0).any() and (value > 0).any() for value in floats)


@by_name
def test_dtype_is_that_of_the_name(task):
    namespace = namespace_of(task)
    model = namespace["Model"](*namespace["get_init_inputs"]())
    wanted = torch.bfloat16 if task.name.endswith("-bf16") else torch.float32
    held = [*model.parameters(), *model.buffers(), *namespace["get_inputs"]()]
    assert {tensor.dtype for tensor in held if tensor.is_floating_point()} == {wanted}


@pytest.mark.parametrize("name", builtin_names())
def test_gpu_sizes_run_and_fit(name):
    """On meta tensors: the shapes fit together, and a call holds at most about 2 GiB."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Largest(TorchDispatchMode):
        bytes = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            for tensor in [result] if isinstance(result, torch.Tensor) else []:
                self.bytes = max(self.bytes, tensor.numel() * tensor.element_size())
            return result

    task = load_task(name, device="cuda")
    namespace = namespace_of(task)
    with torch.device("meta"), torch.no_grad(), Largest() as largest:
        model = namespace["Model"](*namespace["get_init_inputs"]())
        inputs = namespace["get_inputs"]()
        model(*inputs)
    held = sum(t.numel() * t.element_size() for t in [*model.parameters(), *model.buffers(), *inputs])
    assert held < 2 << 30 and largest.bytes < 2 << 30


def test_suite_is_wide_enough():
    assert len(FP32) >= 28 and len(BF16) >= 12
    assert len({task.name for task in ALL}) == len({task.sha for task in ALL}) == len(ALL)
    assert [task.name for task in FP32] == builtin_names()
    assert all("bf16" in builtin_dtypes(task.name.removesuffix("-bf16")) for task in BF16)


def test_sources_are_plain_kernelbench_files():
    for device in ("cpu", "cuda:1"):
        for task in load_tasks("builtin", device=device) + load_tasks("builtin", device=device, dtype="bf16"):
            names = {node.name for node in ast.parse(task.source).body if hasattr(node, "name")}
            assert {"Model", "get_inputs", "get_init_inputs"} <= names
            for word in ("GPU", "DTYPES", ".cuda", "'cpu'", '"cpu"', "\0"):
                assert word not in task.source


def test_sizes_and_dtype_are_rendered_into_the_source():
    small, large = load_task("diagonal_matmul"), load_task("diagonal_matmul", device="cuda")
    half = load_task("diagonal_matmul", dtype="bfloat16")
    assert "N = 1536\n" in small.source and "N = 4096\n" in large.source
    assert "DTYPE = torch.bfloat16\n" in half.source and half.name == "diagonal_matmul-bf16"
    assert half == load_task("diagonal_matmul-bf16") == load_task("builtin/diagonal_matmul-bf16")
    assert len({small.sha, large.sha, half.sha}) == 3


def test_rendering_needs_no_fixed_layout():
    text = 'N = 1\nGPU = {\n    "N": 7,\n}\nDTYPES = ("fp32",)\n\n\ndef f():\n    return N\n'
    assert render(text, device="cuda", dtype="fp32") == "N = 7\n\n\ndef f():\n    return N\n"


@pytest.mark.parametrize(
    ("spec", "options", "says"),
    [
        ("diagonal_matmull", {}, "did you mean diagonal_matmul"),
        ("qqqq", {}, "tasks list"),
        ("cumulative_sum", {"dtype": "bf16"}, "comes in fp32, not in bf16"),
        ("cumulative_sum-bf16", {}, "comes in fp32, not in bf16"),
        ("diagonal_matmul-bf16", {"dtype": "fp32"}, "is a bf16 task"),
        ("diagonal_matmul", {"dtype": "bf17"}, "unknown dtype `bf17`"),
        ("builtin", {"dtype": "fp64"}, "no built-in task comes in fp64"),
        ("diagonal_matmul", {"inputs": "randn(3)"}, "has its own"),
        ("builtin", {"init": "[3]"}, "--init is for one task"),
    ],
)
def test_wrong_names_and_dtypes_are_one_clear_line(spec, options, says):
    with pytest.raises(TaskError) as caught:
        load_tasks(spec, **options)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_one_task_is_wanted():
    for spec in ("builtin", "builtin#*_matmul"):
        with pytest.raises(TaskError, match=r"names \d+ tasks, one is wanted; choose one, e.g. '(.*)'") as refused:
            load_task(spec)
        assert load_task(str(refused.value).split("'")[-2]).suite == "builtin"
