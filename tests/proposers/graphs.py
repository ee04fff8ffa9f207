"""Tiny tasks for tests of techniques: build, run in process, compare with the float64 truth of the reference."""

from __future__ import annotations

import copy
import sys
import types
from typing import Any

import torch
from torch.utils import _pytree as pytree

from cuda_l1.proposers.techniques import build, load, usable
from cuda_l1.proposers.techniques.draft import open_draft
from cuda_l1.types import Candidate, Task

HEADER = "import math\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"

# What compiles in a process with an Inductor cache of its own first asks the usual one which vector instructions there
# are: to find it out anew takes longer than these tests.
FRESH_PROCESS = """
import os
os.environ.pop("TORCHINDUCTOR_CACHE_DIR", None)
from torch._inductor.cpu_vec_isa import valid_vec_isa_list
valid_vec_isa_list()
os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.environ.pop("OWN_CACHE_DIR")
"""


def make_task(forward: str, inputs: str, init: str = "pass", *, args: str = "x", mode: str = "") -> Task:
    """A task from the body of forward, a list of input expressions and constructor statements."""

    def block(text: str) -> str:
        return "\n".join("        " + line for line in text.strip().splitlines())

    source = (
        f"{HEADER}class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n{block(init)}\n"
        f"{block(mode) if mode else ''}\n\n    def forward(self, {args}):\n{block(forward)}\n\n\n"
        f"def get_inputs():\n    return [{inputs}]\n\n\ndef get_init_inputs():\n    return []\n"
    )
    return Task(suite="file", name="generated", source=source)


def namespace(source: str) -> dict[str, Any]:
    """Execute a file of our own making."""
    module = types.ModuleType("generated")
    sys.modules["generated"] = module  # dataclasses look their module up
    exec(compile(source, "generated", "exec"), module.__dict__)
    return module.__dict__


def applies(name: str, task: Task, device: str = "cpu") -> bool:
    """Whether the technique finds something to do in this task."""
    draft = open_draft(task, device)
    assert draft.graph_module is not None, draft.failure
    return usable(load(name), draft)


def candidate(task: Task, *names: str) -> Candidate:
    """The candidate with these techniques; fails when one of them does not apply."""
    built = build(task, names, "cpu")
    assert built is not None, f"{names} do not apply"
    return built


class Twins:
    """Reference and candidate with equal weights, in process."""

    def __init__(self, task: Task, source: str) -> None:
        reference, other = namespace(task.source), namespace(source)
        self.make_inputs = reference["get_inputs"]
        torch.manual_seed(0)
        self.model = reference["Model"](*reference["get_init_inputs"]())
        torch.manual_seed(0)
        self.model_new = other["ModelNew"](*reference["get_init_inputs"]())
        assert list(self.model.state_dict()) == list(self.model_new.state_dict())

    def rewrite_weights(self, seed: int) -> None:
        """Other weights in both, written in place as `load_state_dict` does."""
        torch.manual_seed(seed)
        state = {}
        for key, value in self.model.state_dict().items():
            noise = torch.rand_like(value) if value.dtype.is_floating_point else 0
            state[key] = value * (0.5 + noise) + 0.1 * noise if value.dtype.is_floating_point else value
        self.model.load_state_dict(state)
        self.model_new.load_state_dict(state)

    def by_threads(self) -> list[Any]:
        """What the candidate answers with one thread and with two, on the same inputs."""
        inputs, before = self.make_inputs(), torch.get_num_threads()
        try:
            answers = []
            for threads in (1, 2):
                torch.set_num_threads(threads)
                answers.append(self.model_new(*inputs))
        finally:
            torch.set_num_threads(before)
        return answers

    def check(self, seed: int, tolerance: float = 16.0) -> None:
        """One call of both on fresh signed inputs; the candidate errs at most `tolerance` times as the reference."""
        torch.manual_seed(seed)
        inputs = self.make_inputs()
        with torch.no_grad():
            truth_inputs, copies = (pytree.tree_map(_copy, inputs) for _ in range(2))
            truth = _double(self.model)(*pytree.tree_map(_to_double, truth_inputs))
            expected = self.model(*inputs)
            got = self.model_new(*copies)
        assert pytree.tree_structure(expected) == pytree.tree_structure(got)
        leaves = zip(*(pytree.tree_leaves(value) for value in (got, expected, truth)), strict=True)
        for one, two, right in leaves:
            _compare(one, two, right, tolerance)
        mine = dict(self.model_new.named_buffers())
        for name, theirs in self.model.named_buffers():
            torch.testing.assert_close(mine[name], theirs)


def check(task: Task, *names: str, tolerance: float = 16.0) -> Candidate:
    """Apply the techniques and hold the candidate to the reference: three calls, weights changed in between."""
    built = candidate(task, *names)
    twins = Twins(task, built.source)
    twins.check(1, tolerance)
    twins.rewrite_weights(2)
    twins.check(3, tolerance)
    twins.rewrite_weights(4)
    twins.check(5, tolerance)
    return built


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


def _to_double(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _double(model: torch.nn.Module) -> torch.nn.Module:
    return copy.deepcopy(model).double()


def _compare(got: Any, expected: Any, truth: Any, tolerance: float) -> None:
    if not isinstance(expected, torch.Tensor):
        assert got == expected
        return
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    if not expected.is_floating_point():
        assert torch.equal(got, expected)
        return
    assert torch.equal(got.isfinite(), expected.isfinite())
    allowed = tolerance * max(_error(expected, truth), torch.finfo(expected.dtype).eps / 2)
    assert _error(got, truth) <= allowed, (_error(got, truth), allowed)


def _error(value: torch.Tensor, truth: torch.Tensor) -> float:
    """The evaluator's measure: largest |x - truth| / (|truth| + rms(truth)) over finite elements."""
    finite = truth.isfinite() & value.isfinite()
    if not finite.any():
        return 0.0
    right, found = truth.double()[finite], value.double()[finite]
    scale = right.abs() + right.square().mean().sqrt()
    return float(((found - right).abs() / scale.clamp_min(1e-300)).max())
