"""What PyTorch's kernels take for granted on a GPU, asked before they run.

On a CPU an operation raises where an index lies out of range, or a probability beyond one, and the judge puts other
inputs. On a GPU its kernel ends in a device-side assertion, after which nothing runs in the process any more. Here it
raises there, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._mode_utils import no_dispatch

from .dispatch import DispatchMode
from .traits import is_integer


class DeviceAsserts(DispatchMode):
    """`with DeviceAsserts() as asked: ...`; operations in it raise ValueError, and do not run, where their kernel on a
    GPU would end in an assertion. `asked.any` says whether any was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.any = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if types:  # tensors of a class that says itself what is done with them, or that only stand for others
            return func(*args, **(kwargs or {}))
        if torch.is_inference_mode_enabled():  # there operations arrive that are made of others
            with self:
                made = func.decompose(*args, **(kwargs or {}))
            if made is not NotImplemented:
                return made
        refused = _REFUSED.get(func.overloadpacket.__name__.strip("_")) if func.namespace == "aten" else None
        if refused is not None and not _is_captured():
            known = func._schema.arguments
            given = {argument.name: argument.default_value for argument in known if argument.has_default_value()}
            given |= {**dict(zip((argument.name for argument in known), args, strict=False)), **(kwargs or {})}
            with no_dispatch():  # who watches what the reference asks has no part in this
                for wrong, what in refused(given):
                    self.any = True
                    if not wrong.is_meta and bool(wrong):
                        raise ValueError(f"{func.overloadpacket}: {what}")
        return func(*args, **(kwargs or {}))


def _is_captured() -> bool:
    """Whether what runs becomes part of a CUDA graph: nothing can be read meanwhile."""
    return torch.version.cuda is not None and torch.cuda.is_current_stream_capturing()


Given = dict[str, Any]
"""The arguments of an operation, by name."""
Refused = Iterator[tuple[torch.Tensor, str]]
"""What must not be true of them, and what it says."""


def _beyond(index: torch.Tensor, size: int, least: int = 0) -> Refused:
    if index.numel() and is_integer(index):
        low, high = index.aminmax()
        yield (low < least) | (high >= size), f"an index is not among {least} to {size - 1}"


def _size(tensor: torch.Tensor, dim: int) -> int:
    return tensor.shape[dim] if tensor.dim() else 1


def _along(given: Given) -> Refused:
    yield from _beyond(given["index"], _size(given["self"], given["dim"]))


def _along_from_either_end(given: Given) -> Refused:
    size = _size(given["self"], given["dim"])
    yield from _beyond(given["index"], size, -size)


def _in_all(given: Given) -> Refused:
    size = given["self"].numel()
    yield from _beyond(given["index"], size, -size)


def _indices(given: Given) -> Refused:
    dim = 0
    for index in given["indices"]:
        if index is None or index.dtype in (torch.bool, torch.uint8):  # masks
            dim += index.dim() if index is not None else 1
            continue
        size = given["self"].shape[dim]
        yield from _beyond(index, size, -size)
        dim += 1


def _rows(given: Given) -> Refused:
    yield from _beyond(given["indices"], given["weight"].shape[0])


def _renormed(given: Given) -> Refused:
    yield from _beyond(given["indices"], given["self"].shape[0])


def _bags(given: Given) -> Refused:
    yield from _rows(given)
    ends = given["offsets"][1 : -1 if given["include_last_offset"] else None]  # the first is taken for 0, the last left
    yield from _beyond(ends, given["indices"].numel() + 1)
    yield (ends.diff() < 0).any(), "a bag ends before it begins"


def _groups(given: Given) -> Refused:
    if (ends := given["offs"]) is not None:
        yield (ends.diff(prepend=ends.new_zeros(1)) < 0).any(), "a group ends before it begins"


def _masked(given: Given) -> Refused:
    mask, there = given["mask"], given["source"].numel()
    everywhere = mask & mask.new_ones(()).expand(given["self"].shape)  # either may be the larger one
    yield everywhere.sum() > there, f"more than the {there} elements that are there are asked for"


def _unpooled(given: Given) -> Refused:
    size = 1
    for length in given["output_size"]:
        size *= length
    yield from _beyond(given["indices"], size)


def _targets(given: Given) -> Refused:
    scores, target = given["self"], given["target"]
    classes = scores.shape[1] if scores.dim() > 1 else scores.shape[0]
    counts = target != given["ignore_index"]
    yield (((target < 0) | (target >= classes)) & counts).any(), f"a target is not among 0 to {classes - 1}"


def _margin_targets(given: Given) -> Refused:
    yield from _beyond(given["target"], _size(given["self"], -1))


def _margin_lists(given: Given) -> Refused:
    target, classes = given["target"], _size(given["self"], -1)
    listed = (target < 0).cumsum(-1) == 0  # the first that is negative ends a list
    yield ((target >= classes) & listed).any(), f"a target is not among 0 to {classes - 1}"


def _between_zero_and_one(given: Given) -> Refused:
    for shares in (given.get("p", given["self"]), given.get("target")):
        if isinstance(shares, torch.Tensor) and shares.numel():
            low, high = shares.aminmax()  # which makes no tensors as large
            yield ~((low >= 0) & (high <= 1)), "a number is not between zero and one"


def _rates(given: Given) -> Refused:
    yield ~(given["self"] >= 0).all(), "a rate is below zero"


def _weights(given: Given) -> Refused:
    weights = given["self"]
    yield ~((weights >= 0) & weights.isfinite()).all(), "a weight is below zero or not finite"
    yield (weights.sum(-1) <= 0).any(), "no weight of a row is above zero"


def _repeats(given: Given) -> Refused:
    repeats, size = given["repeats"], given["output_size"]
    yield (repeats < 0).any(), "a count is below zero"
    if size is not None:
        yield repeats.sum() != size, f"counts are not {size} in all"


def _truths(given: Given) -> Refused:
    yield ~given["self"].bool().all(), str(given.get("assert_msg", "an assertion failed"))


_REFUSED: dict[str, Callable[[Given], Refused]] = {
    **dict.fromkeys(("gather", "index_add", "index_copy", "index_reduce", "index_select"), _along),
    **dict.fromkeys(("scatter", "scatter_add", "scatter_reduce"), _along),
    **dict.fromkeys(("index", "index_put", "index_put_impl", "unsafe_index", "unsafe_index_put"), _indices),
    **dict.fromkeys(("put", "take"), _in_all),
    **dict.fromkeys(("max_unpool2d", "max_unpool3d"), _unpooled),
    **dict.fromkeys(("nll_loss_forward", "nll_loss2d_forward"), _targets),
    **dict.fromkeys(("bernoulli", "binary_cross_entropy"), _between_zero_and_one),
    **dict.fromkeys(("embedding_bag", "embedding_bag_forward_only"), _bags),
    **dict.fromkeys(("grouped_mm", "scaled_grouped_mm"), _groups),
    **dict.fromkeys(("assert_async", "functional_assert_async"), _truths),
    "embedding": _rows,
    "embedding_renorm": _renormed,
    "index_fill": _along_from_either_end,
    "masked_scatter": _masked,
    "multi_margin_loss": _margin_targets,
    "multilabel_margin_loss_forward": _margin_lists,
    "multinomial": _weights,
    "poisson": _rates,
    "repeat_interleave": _repeats,
}
"""By the name of an operation without its underscores."""
