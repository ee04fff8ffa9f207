"""Everything of a float32 task in bfloat16: a baseline of the class `relaxed`, for who asks for that."""

from __future__ import annotations

_SUFFIX = '''
import torch
from torch.nn.modules.batchnorm import _NormBase
from torch.utils import _pytree as pytree


_HALF = (torch.bfloat16, torch.float16)


def _bf16(value):
    if isinstance(value, torch.Tensor):
        return value.to(torch.bfloat16) if value.dtype == torch.float32 else value
    return pytree.tree_map(_bf16, value) if isinstance(value, (list, tuple, dict)) else value


def _fp32(value):
    if isinstance(value, torch.Tensor):
        return value.to(torch.float32) if value.dtype == torch.bfloat16 else value
    return pytree.tree_map(_fp32, value)


def _item(owner, part):
    if isinstance(owner, dict):
        return next(value for key, value in owner.items() if str(key) == part)
    return owner[int(part)] if isinstance(owner, (list, tuple)) else getattr(owner, part)


class ModelNew(Model):
    """Model with weights, buffers and inputs rounded to bfloat16, and its outputs as float32 again.

    What keeps running statistics stays in float32: a call changes these, and they are the task's own.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._baseline_check([*self.parameters(), *self.buffers()])
        self.to(torch.bfloat16)
        for module in self.modules():
            vars(module).update({name: _bf16(value) for name, value in vars(module).items()
                                 if isinstance(value, torch.Tensor)})
            if isinstance(module, _NormBase) and module.track_running_stats:
                module.float()

    @torch.no_grad()
    def load_reference(self, state):
        """Take over Model's tensors, by their names, rounded like the constructor's."""
        for name, value in state.items():
            own = self
            for part in name.split("."):
                own = _item(own, part)
            own.copy_(value)

    def forward(self, *args, **kwargs):
        if not vars(self).get("_baseline_called"):
            vars(self)["_baseline_called"] = True
            self._baseline_check(pytree.tree_leaves((args, kwargs)))
        outputs = super().forward(*map(_bf16, args), **{name: _bf16(value) for name, value in kwargs.items()})
        return _fp32(outputs)

    def _baseline_check(self, tensors):
        if any(isinstance(tensor, torch.Tensor) and tensor.dtype in _HALF for tensor in tensors):
            raise RuntimeError("baseline fell back: the task is in half precision already")
'''


def bf16(source: str) -> str:
    """The suffix for any task; one that is in half precision already fails by name."""
    return _SUFFIX
