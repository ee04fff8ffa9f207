"""Baselines are the task's own source plus a suffix; the CPU ones compute what eager computes, or fail by name."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from graphs import FRESH_PROCESS

from cuda_l1.proposers.baselines import baselines, named, names
from cuda_l1.types import Candidate, Task

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"


def task(init: str, forward: str, inputs: str) -> Task:
    source = (
        f"{HEAD}class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        {init}\n\n"
        f"    def forward(self, *args):\n        {forward}\n\n\n"
        f"def get_inputs():\n    return [{inputs}]\n\n\ndef get_init_inputs():\n    return []\n"
    )
    return Task(suite="file", name="tiny", source=source)


CONV = task("self.conv, self.norm = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)", "return self.norm(self.conv(args[0]))",
            "torch.randn(2, 3, 8, 8)")  # fmt: skip
IN_PLACE = task("pass", "return args[0].add_(1).sum(-1), {'a': args[0] * 2}", "torch.randn(4, 4)")
BRANCHING = task("pass", "return args[0] + 1 if args[0].sum() > 0 else args[0] - 1", "torch.randn(4)")


def labelled(of: Task, device: str) -> dict[str, Candidate]:
    return {candidate.label: candidate for candidate in named(of, device, names(device))}


def execute(source: str) -> dict[str, Any]:
    scope: dict[str, Any] = {"__name__": "candidate"}
    exec(compile(source, "candidate", "exec"), scope)
    return scope


def test_eager_is_first_and_every_name_is_offered() -> None:
    assert next(iter(labelled(CONV, "cpu"))) == "eager" == names("cuda:1")[0]
    assert tuple(labelled(CONV, "cpu")) == names("cpu") == ("eager", "compile", "channels-last", "bf16")
    assert tuple(labelled(CONV, "cuda:1")) == names("cuda")
    assert names("cuda")[1] == "compile", "where there is little time, what users compare with comes first"
    assert {
        "tf32",
        "cudnn-benchmark",
        "eager-fp32",
        "compile-max-autotune",
        "compile-reduce-overhead",
        "cuda-graph",
        "aot-inductor",
    } <= set(names("cuda"))


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_sources_are_deterministic_distinct_and_keep_the_task(device: str) -> None:
    once, again = labelled(CONV, device), labelled(CONV, device)
    assert [c.id for c in once.values()] == [c.id for c in again.values()]
    assert len({c.id for c in once.values()}) == len(once)
    for candidate in once.values():
        ast.parse(candidate.source)
        assert candidate.source.startswith(CONV.source.rstrip())
        assert candidate.task_id == CONV.id and candidate.task_sha == CONV.sha


@pytest.mark.parametrize(
    ("source", "offered"),
    [
        ("from torch.nn import Conv2d as C\n", True),
        ("import torch.nn.functional as F\nf = F.conv_transpose3d\n", True),
        ("# nn.Conv2d is only talked about\nx = 'Conv2d'\n", False),
        ("import torch.nn as nn\nf = nn.Conv1d\n", False),
        ("def broken(:\n", False),
    ],
)
def test_channels_last_needs_a_convolution_in_two_or_three_dimensions(source: str, offered: bool) -> None:
    assert ("channels-last" in labelled(Task(suite="file", name="t", source=source), "cpu")) is offered


@pytest.mark.parametrize("name", ["eager", "compile", "channels-last", "bf16"])
def test_names_and_keys_of_the_state_stay(name: str) -> None:
    scope = execute(labelled(CONV, "cpu")[name].source)
    reference, new = scope["Model"](), scope["ModelNew"]()
    assert list(reference.state_dict()) == list(new.state_dict())
    assert isinstance(new, scope["Model"])


def test_channels_last_equals_eager_and_changes_the_layout() -> None:
    scope = execute(labelled(CONV, "cpu")["channels-last"].source)
    reference, new = scope["Model"](), scope["ModelNew"]()
    new.load_state_dict(reference.state_dict())
    x = torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        expected, got = reference(x), new(x)
    torch.testing.assert_close(got, expected)
    assert got.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(new.state_dict(), reference.state_dict())


@pytest.mark.parametrize(
    ("of", "precision", "lower"),
    [
        (CONV, "default", {"tf32"}),  # its class is that of cuDNN as shipped
        (IN_PLACE, "default", set()),
        (CONV, "fp32", set()),
        (IN_PLACE, "tf32", {"tf32"}),
        (IN_PLACE, "relaxed", {"tf32", "bf16"}),
    ],
)
def test_a_search_is_offered_what_may_stand(of: Task, precision: str, lower: set[str]) -> None:
    offered = {candidate.label for candidate in baselines(of, "cuda", precision)}
    assert offered & {"tf32", "bf16"} == lower and {"eager", "eager-fp32"} <= offered


def test_cudnn_benchmark_needs_a_convolution() -> None:
    assert "cudnn-benchmark" in labelled(CONV, "cuda") and "cudnn-benchmark" not in labelled(IN_PLACE, "cuda")


@pytest.mark.parametrize(("name", "flags"), [
    ("cudnn-benchmark", "cudnn.enabled cudnn.benchmark"), ("tf32", "cudnn.allow_tf32 cuda.matmul.allow_tf32"),
])  # fmt: skip
def test_switches_are_set_by_the_import(name: str, flags: str) -> None:
    """In a process of its own: they hold for all of it."""
    shown = "; print(" + ", ".join(f"torch.backends.{flag}" for flag in flags.split()) + ")"
    done = subprocess.run([sys.executable, "-c", labelled(CONV, "cuda")[name].source + "\nimport torch" + shown],
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert done.stdout.split() == ["True", "True"]


def test_bf16_rounds_weights_inputs_and_plain_tensors_and_answers_in_float32() -> None:
    of = task("self.linear = nn.Linear(4, 4); self.scale = torch.full((4,), 1 / 3)",
              "return self.linear(args[0]) * self.scale, {'kept': args[1]}",
              "torch.randn(2, 4), torch.arange(3)")  # fmt: skip
    scope = execute(labelled(of, "cpu")["bf16"].source)
    reference, new = scope["Model"](), scope["ModelNew"]()
    new.load_state_dict(reference.state_dict())
    given = scope["get_inputs"]()
    with torch.no_grad():
        (expected, _), (got, kept) = reference(*given), new(*given)
    assert new.linear.weight.dtype == new.scale.dtype == torch.bfloat16 and kept["kept"].dtype == torch.int64
    assert got.dtype == torch.float32 and torch.equal(got, got.bfloat16().float()) and not torch.equal(got, expected)
    torch.testing.assert_close(got, expected, rtol=0.1, atol=0.1)


def test_bf16_of_a_task_in_half_precision_fails_by_name() -> None:
    new = execute(labelled(IN_PLACE, "cpu")["bf16"].source)["ModelNew"]()
    with pytest.raises(RuntimeError, match="half precision already"):
        new(torch.randn(4, 4).half())


# One process for all of them: importing Inductor costs more than these tiny compilations. For the first one it is
# switched off.
_COMPILE = (
    FRESH_PROCESS
    + """
import json, sys, torch
out = []
for source in json.load(sys.stdin):
    os.environ["TORCHDYNAMO_DISABLE"] = "0" if out else "1"
    scope = {"__name__": "candidate"}
    exec(compile(source, "candidate", "exec"), scope)
    reference, new = scope["Model"](), scope["ModelNew"]()
    new.load_state_dict(reference.state_dict())
    worst = 0.0
    try:
        with torch.no_grad():
            for trial in range(3):
                given = scope["get_inputs"]()
                if trial == 1:
                    for old, changed in zip(reference.parameters(), new.parameters()):
                        old.mul_(1.5).add_(0.1)
                        changed.copy_(old)
                    given = [torch.empty(x.numel() + 1)[1:].view_as(x).copy_(x) for x in given]
                mine = [x.clone() for x in given]
                left = reference(*given), given, list(reference.buffers())
                right = new(*mine), mine, list(new.buffers())
                for a, b in zip(*map(torch.utils._pytree.tree_leaves, (left, right)), strict=True):
                    worst = max(worst, (a - b).abs().max().item())
        out.append(worst)
    except Exception as error:
        out.append(str(error))
    torch._dynamo.reset()
print(json.dumps(out))
"""
)


def in_fresh_process(sources: list[str], cache: Path) -> list[float | str]:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OWN_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", _COMPILE], input=json.dumps(sources), env=environment, capture_output=True, text=True,
        timeout=240, check=True,
    )  # fmt: skip
    answers: list[float | str] = json.loads(done.stdout)
    return answers


def test_compile_equals_eager_after_changed_weights_and_fails_where_it_is_off_or_the_graph_breaks(
    tmp_path: Path,
) -> None:
    sources = [labelled(one, "cpu")["compile"].source for one in (IN_PLACE, CONV, IN_PLACE, BRANCHING)]
    off, *errors, refusal = in_fresh_process(sources, tmp_path)
    assert off == "baseline fell back: torch.compile compiled no graph"
    assert all(isinstance(error, float) and error < 1e-4 for error in errors), errors
    assert isinstance(refusal, str) and "branching" in refusal


@pytest.mark.skipif(torch.cuda.is_available(), reason="here the capture succeeds")
def test_cuda_graph_fails_where_nothing_is_on_a_gpu() -> None:
    new = execute(labelled(IN_PLACE, "cuda")["cuda-graph"].source)["ModelNew"]()
    with pytest.raises(RuntimeError, match="not capturable as a CUDA graph"):
        new(torch.randn(4, 4))
