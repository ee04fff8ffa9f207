"""What one call of a reference asks of a device: bytes that must move and operations, counted operation by operation.

The figures are the reference's: algebra may need fewer operations, and a kernel that is told nothing less must move as
many bytes. They describe a task, and decide no verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils.flop_counter import flop_registry

from . import state
from .audit import Facts
from .dispatch import DispatchMode
from .reference import Reference
from .tensors import leaves, map_leaves

aten = torch.ops.aten
_TABLES = frozenset({"embedding", "_embedding_bag", "_embedding_bag_forward_only"})
"""They read the rows of their first tensor that the second names."""
_GATHERS = frozenset({"index_select", "index", "gather", "take"})
"""They read of their first tensor as much as they give."""


def work_of(reference: Reference, facts: Facts) -> dict[str, int] | None:
    """`moved_bytes`: what is read of inputs and state, each byte once, and the outputs. `flops`: those of matrix
    products, convolutions, attention, recurrent layers and distances by torch's formulas or the like, else one for each
    element.

    None where the call does not work under torch's dispatch modes.
    """
    model, args = reference.model, map_leaves(list(reference.draw()), torch.clone)
    before = state.attributes(model)
    counted = _Counted([*leaves(args), *state.collect(model).values()])
    try:
        with torch.no_grad(), counted:
            model(*args)
    except (Exception, SystemExit):  # noqa: BLE001  the task's own code, and it need not stand being watched
        return None
    finally:
        state.reinstate(model, before, reference.changed_state)
        state.restore(model, reference.public)
        if reference.device != "cpu":
            torch.cuda.empty_cache()  # what a call took is better left to the runners
    return {
        "moved_bytes": counted.read_bytes + facts.output_bytes,
        "flops": counted.flops,
    }


class _Counted(DispatchMode):
    """Adds up what is read of tensors that were there before the call, and operations."""

    def __init__(self, given: Sequence[torch.Tensor]) -> None:
        super().__init__()
        self.flops = 0
        self._sizes = {_storage(tensor): tensor.untyped_storage().nbytes() for tensor in given}
        self._read: dict[int, int] = {}

    @property
    def read_bytes(self) -> int:
        """No byte counts twice."""
        return sum(min(read, self._sizes[key]) for key, read in self._read.items())

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        taken = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
        given = [t for t in pytree.tree_leaves(made) if isinstance(t, torch.Tensor)]
        if func._schema.is_mutable or not _is_view(taken, given):
            elements = self._elements(func, taken, given)
            formula = _FORMULAS.get(func._overloadpacket)
            self.flops += int(formula(*args, **(kwargs or {}), out_val=made)) if formula else elements
        return made

    def _elements(self, func: Any, taken: Sequence[torch.Tensor], given: Sequence[torch.Tensor]) -> int:
        """Of the largest floating tensor that takes part; notes what is read."""
        packet, sizes = func._overloadpacket, [tensor.numel() for tensor in taken]
        if taken and (asked := _gathered(packet.__name__, taken, given)) is not None:
            sizes[0] = min(asked, sizes[0])
        for tensor, size in zip(taken, sizes, strict=True):
            if (key := _storage(tensor)) in self._sizes:
                self._read[key] = self._read.get(key, 0) + size * tensor.element_size()
        pairs = [*zip(taken, sizes, strict=True), *((tensor, tensor.numel()) for tensor in given if taken)]
        return max((size for tensor, size in pairs if tensor.is_floating_point()), default=0)


def _gathered(name: str, taken: Sequence[torch.Tensor], given: Sequence[torch.Tensor]) -> int | None:
    """Elements that an operation reads of its first tensor; None for all of them."""
    if name in _TABLES and len(taken) > 1:
        return taken[1].numel() * taken[0].shape[-1]
    return given[0].numel() if name in _GATHERS and given else None


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _is_view(taken: Sequence[torch.Tensor], given: Sequence[torch.Tensor]) -> bool:
    held = {_storage(tensor) for tensor in taken}
    return bool(given) and all(_storage(tensor) in held for tensor in given)


# ── formulas that torch's table lacks: arguments in, multiplications and additions out ────────────


def _attention_flops(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: Any, **__: Any) -> int:
    """Both products of (batch, heads, length, width) operands, masked or not, as torch counts those of a GPU."""
    return 2 * query.shape[:-1].numel() * key.shape[-2] * (query.shape[-1] + value.shape[-1])


def _cudnn_flops(inputs: torch.Tensor, weights: Sequence[torch.Tensor], *_: Any, **__: Any) -> int:
    """Each matrix of the weights once for each step of each sequence."""
    return 2 * inputs.shape[:-1].numel() * sum(weight.numel() for weight in weights if weight.dim() == 2)


def _mkldnn_flops(inputs: torch.Tensor, own: torch.Tensor, hidden: torch.Tensor, *_: Any, **__: Any) -> int:
    """The same of one layer."""
    return _cudnn_flops(inputs, [own, hidden])


def _distance_flops(one: torch.Tensor, other: torch.Tensor, *_: Any, **__: Any) -> int:
    """A difference and a product added up, for each coordinate of each pair."""
    return 3 * one.numel() * other.shape[-2]


_FORMULAS: dict[Any, Callable[..., int]] = {
    **flop_registry,
    aten._scaled_dot_product_flash_attention_for_cpu: _attention_flops,
    aten._cdist_forward: _distance_flops,
    aten._cudnn_rnn: _cudnn_flops,
    aten.mkldnn_rnn_layer: _mkldnn_flops,
}
