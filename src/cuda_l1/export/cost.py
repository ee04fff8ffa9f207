"""What a guard costs: the same empty forward called with and without it, in turns, on the host clock."""

from __future__ import annotations

import statistics
import time
from types import ModuleType
from typing import TYPE_CHECKING, Any

from cuda_l1.export.dropin import render_dropin
from cuda_l1.export.guard import Guard, MappingSpec, SequenceSpec, Spec, TensorSpec
from cuda_l1.types import Candidate, Task

if TYPE_CHECKING:
    import torch

_EMPTY = """
import torch


class Model(torch.nn.Module):
    def forward(self, *inputs):
        return inputs


def get_inputs():
    return []


def get_init_inputs():
    return []


class ModelNew(Model):
    pass
"""


def guard_cost_us(guard: Guard, *, blocks: int = 200, calls: int = 50) -> float:
    """Microseconds that the guard adds to one verified call, measured here, on CPU tensors of the guard's shapes.

    The median over `blocks` of the difference of two times of `calls` calls. Takes about 50 ms.
    """
    import torch

    here = guard.model_copy(update={"device": "cpu", "modes": {}, "forced": None})
    module = _guarded(here)
    guarded, plain = module.ModelNew(), module._Optimized()
    inputs = [_example(spec) for spec in guard.inputs]
    with torch.no_grad():
        guarded(*inputs)
        plain(*inputs)
        differences = [_time(guarded, inputs, calls) - _time(plain, inputs, calls) for _ in range(blocks)]
    return statistics.median(differences) / calls * 1e6


def _guarded(guard: Guard) -> ModuleType:
    task = Task(suite="file", name="empty", source=_EMPTY)
    candidate = Candidate(task_sha=task.sha, task_id=task.id, source=_EMPTY)
    module = ModuleType("cuda_l1_guard_cost")
    exec(compile(render_dropin(task, candidate, guard), "<guard cost>", "exec"), module.__dict__)
    module.__dict__["_dropin_warned"].append(True)
    return module


def _example(spec: Spec) -> Any:
    import torch

    match spec:
        case TensorSpec():
            return torch.empty_strided(spec.shape, spec.stride, dtype=getattr(torch, spec.dtype))
        case SequenceSpec():
            return (list if spec.kind == "list" else tuple)(_example(item) for item in spec.items)
        case MappingSpec():
            return {key: _example(item) for key, item in spec.items.items()}
        case _:
            return spec.value


def _time(module: torch.nn.Module, inputs: list[Any], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        module(*inputs)
    return time.perf_counter() - start
