"""Choices made the other way round where elements are equal.

Moving inputs tells equal inputs apart, not what is made of them: of scores of 1e5 a softmax leaves zeros and a sigmoid
ones, whichever of them a choice by place takes.
"""

from __future__ import annotations

from typing import Any

import torch

from .dispatch import DispatchMode
from .tensors import leaves

OPERATIONS = {"topk", "argmax", "argmin", "sort", "max", "min", "kthvalue", "mode", "median", "nanmedian"}
"""Those of PyTorch's that tell which of several elements it is: of equal ones any."""


def chooses(func: Any, made: Any) -> bool:
    """Whether an operation that made this tells which elements it has chosen."""
    parts = made if isinstance(made, tuple) else (made,)
    return func.overloadpacket.__name__ in OPERATIONS and any(part.dtype is torch.int64 for part in parts)


PROMISED = {"argmax", "argmin", "max", "min"}
"""Those that PyTorch's documentation promises the first of equal elements of."""


class LastOfEqual(DispatchMode):
    """`with LastOfEqual(): ...`: of equal elements those that come last are chosen where else those that come first
    are, and the other way round.

    A sort that is asked to be stable stays so, and what is promised is kept where elements are equal by more than
    rounding: the first of whole numbers, or of truth values that became numbers, is the place where something is found.
    """

    def __init__(self) -> None:
        super().__init__()
        self._exact: dict[int, torch.Tensor] = {}  # by where they lie; kept, so that no other comes to lie there

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        if func._schema.is_mutable:
            for changed in leaves(list(args[:1])):
                self._exact.pop(changed.untyped_storage().data_ptr(), None)
        if name == "_to_copy" and not args[0].is_floating_point():
            made = func(*args, **kwargs)
            self._exact[made.untyped_storage().data_ptr()] = made
            return made
        if name not in OPERATIONS or kwargs.get("stable") or func._schema.is_mutable:
            return func(*args, **kwargs)
        declared = func._schema.arguments
        given = {each.name: each.default_value for each in declared}
        given |= dict(zip(given, args, strict=False)) | kwargs
        operand = given.pop("self")
        if "dim" not in given or operand.dim() == 0 or (name in PROMISED and self._is_exact(operand)):
            return func(*args, **kwargs)
        along = range(operand.dim()) if given["dim"] is None else (given["dim"],)
        made = func(operand.flip(*along), **given)
        last = (operand.numel() if given["dim"] is None else operand.shape[given["dim"]]) - 1
        return (*made[:-1], last - made[-1]) if isinstance(made, tuple) else last - made

    def _is_exact(self, operand: torch.Tensor) -> bool:
        return not operand.is_floating_point() or operand.untyped_storage().data_ptr() in self._exact
