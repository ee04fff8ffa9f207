"""What a drop-in may be asked: the task's inputs and mode, read off the task on fake tensors, which take no memory."""

from __future__ import annotations

import inspect
import linecache
import math
import re
from typing import TYPE_CHECKING, Any, Literal

from cuda_l1.errors import TaskError
from cuda_l1.export.guard import Guard, MappingSpec, SequenceSpec, Spec, TensorSpec, ValueSpec
from cuda_l1.tasks.namespace import instantiated
from cuda_l1.types import Environment, Task

if TYPE_CHECKING:
    import torch

_NOT_OWN = ("torch", "builtins", "typing", "abc")
"""Packages whose classes are known to look at no mode, or are asked about one by one."""


def guard_for(
    task: Task, environment: Environment, mode: Literal["train", "eval"] | None = None, *, clone: bool = False
) -> Guard:
    """The guard of a task's drop-in, for figures measured in `environment`.

    `mode` is the one that the task was judged in (`TaskAudit.mode`); None: as constructed. `clone`: see `Guard`.
    Executes the task's text in this process, as the techniques do. Raises TaskError when that fails or an input is
    nothing that can be checked.
    """
    with instantiated(task.source, most_bytes=math.inf) as (model, inputs):  # it was run at this size to be judged
        forced = mode if mode is not None and model.training is not (mode == "train") else None
        if forced:
            model.train(forced == "train")
        return Guard(
            inputs=tuple(_spec(value) for value in inputs),
            modes=modes_of(model),
            forced=forced,
            clone=clone,
            device=environment.device,
            device_name=environment.device_name,
            torch=environment.torch.split("+")[0],
        )


def _spec(value: Any) -> Spec:
    import torch

    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided:
            raise TaskError(f"an input of layout {value.layout} cannot be guarded; only dense tensors can")
        dtype = str(value.dtype).removeprefix("torch.")
        return TensorSpec(shape=tuple(value.shape), stride=tuple(value.stride()), dtype=dtype)
    if value is None or type(value) in (bool, int, float, str):
        return ValueSpec(value=value)
    if type(value) in (list, tuple):
        kind: Literal["list", "tuple"] = "list" if type(value) is list else "tuple"
        return SequenceSpec(kind=kind, items=tuple(_spec(item) for item in value))
    if type(value) is dict and all(type(key) is str for key in value):
        return MappingSpec(items={key: _spec(item) for key, item in value.items()})
    raise TaskError(f"an input of type {type(value).__name__} cannot be guarded")


def modes_of(model: torch.nn.Module) -> dict[str, bool]:
    """`training` of each module of the tree whose forward looks at it; the others may be in either mode."""
    return {path: module.training for path, module in model.named_modules() if _looks_at_mode(module)}


def _looks_at_mode(module: torch.nn.Module) -> bool:
    own = (kind for kind in type(module).__mro__ if kind.__module__.partition(".")[0] not in _NOT_OWN)
    return any(map(_text_looks_at_mode, own)) or _looks_at_mode_in_torch(module)


def _looks_at_mode_in_torch(module: torch.nn.Module) -> bool:
    """Whether what the module has of PyTorch's own classes, hooks and parametrizations looks at its mode."""
    import torch
    from torch.nn.utils.parametrizations import _SpectralNorm
    from torch.nn.utils.spectral_norm import SpectralNorm

    if any(isinstance(hook, SpectralNorm) for hook in module._forward_pre_hooks.values()):
        return True
    if isinstance(module, torch.nn.modules.batchnorm._NormBase):
        return bool(module.track_running_stats)
    if isinstance(module, torch.nn.modules.dropout._DropoutNd):
        return module.p > 0
    if isinstance(module, torch.nn.RNNBase | torch.nn.MultiheadAttention):
        return module.dropout > 0
    return isinstance(module, torch.nn.RReLU | _SpectralNorm) or type(module).__module__.startswith("torch.ao")


def _text_looks_at_mode(kind: type) -> bool:
    """Whether the class's file says `training` or `dropout`: a helper beside the class may be what looks."""
    source = "".join(linecache.getlines(f"<{kind.__module__}>"))
    if not source:
        try:
            source = inspect.getsource(inspect.getmodule(kind) or kind)
        except (OSError, TypeError):
            return True
    source = re.sub(r"\btraining\s*=\s*False", "", source)
    return "training" in source or "dropout" in source
