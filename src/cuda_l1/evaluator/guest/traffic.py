"""How many bytes any right candidate must move: its outputs, and those elements of the inputs that the answer needs.

What an answer needs is asked of the reference's gradient: where it is not zero, another value of the element gives
another answer, so it must have been read. That never counts too much: integers, elements behind a ReLU's edge, all but
the largest of a window and references without a gradient count nothing, and neither do weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from . import state
from .audit import Facts
from .drawing import Inputs
from .reference import Reference
from .tensors import leaves, map_leaves

FASTER_THAN_COPY = 1.25
"""No traffic is faster than a large copy by more than this; reading alone is faster by a tenth."""
MATTERS = 1e-6
"""Of the largest gradient: below it a kernel may leave an element out and still be right."""


def traffic_of(facts: Facts, driver: Any | None, bandwidth: Callable[[], float]) -> dict[str, float | None]:
    """The `bandwidth` of a GPU's memory, bytes in a microsecond, and what it means for a call of this task; nothing on
    a CPU, whose caches hold the inputs. `whole_us`: for all that comes in and goes out; None where that fits into the
    cache, and for random tasks."""
    if driver is None:
        return {}
    cache, measured = driver.attributes.l2_bytes, bandwidth()
    moved = facts.input_bytes + facts.output_bytes
    is_bound = not facts.random and moved > cache
    return {"copy_bytes_per_us": measured, "whole_us": least_us(moved, cache, measured) if is_bound else None}


def needed_us(reference: Reference, facts: Facts, driver: Any, bandwidth: float) -> float:
    """Microseconds for what any right candidate must move: at most `whole_us`. The first gradient of a process takes
    seconds on a GPU, so that this is for candidates that are faster than moving everything."""
    needed = needed_bytes(reference, reference.draw(), facts.output_bytes)
    torch.cuda.empty_cache()  # what a gradient took is better left to the runners
    return least_us(needed, driver.attributes.l2_bytes, bandwidth)


def least_us(needed: int, cache_bytes: int, bytes_per_us: float) -> float:
    """Microseconds that a call takes at the least. What the last-level cache holds is left out: outputs may stay there,
    and a flush may have left some of the inputs."""
    return max(0, needed - cache_bytes) / (FASTER_THAN_COPY * bytes_per_us)


def needed_bytes(reference: Reference, inputs: Inputs, output_bytes: int) -> int:
    """Bytes of the outputs and of the inputs' elements that one answer depends on."""
    written = 0 if reference.aliases or reference.exposes or reference.overlaps else output_bytes
    return written + read_bytes(reference, inputs)


def read_bytes(reference: Reference, inputs: Inputs) -> int:
    """Bytes of the inputs' floating elements that the answer depends on; 0 where the reference has no gradient."""
    model = reference.model
    before = state.attributes(model)
    own = [t for t in leaves(list(inputs)) if t.is_floating_point()]
    try:
        gradients = _gradients(model, inputs, own)
    except (Exception, SystemExit):  # noqa: BLE001  the task's own code, and it need not have a gradient
        return 0
    finally:
        state.reinstate(model, before, reference.changed_state)
        state.restore(model, reference.public)
    held: dict[int, int] = {}
    for tensor, gradient in zip(own, gradients, strict=True):
        if gradient is not None:
            storage = tensor.untyped_storage()
            counted = min(_nonzero(gradient) * tensor.element_size(), storage.nbytes())
            held[storage.data_ptr()] = max(held.get(storage.data_ptr(), 0), counted)
    return sum(held.values())


def _gradients(model: torch.nn.Module, inputs: Inputs, own: Sequence[torch.Tensor]) -> Sequence[torch.Tensor | None]:
    """Of randomly weighted outputs, for each tensor of `own`, leaves of `inputs`; None where it plays no part."""
    asked = {id(t): t.detach().clone().requires_grad_() for t in own}
    with torch.enable_grad():
        # A copy of what is asked about: a reference may change its arguments in place.
        result = model(*map_leaves(list(inputs), lambda t: asked[id(t)].clone() if id(t) in asked else t.clone()))
    answers = [t for t in leaves(result) if t.requires_grad]
    weights = [torch.rand_like(t) + 0.5 for t in answers]  # unlike each other, or sums that are constant would hide it
    return torch.autograd.grad(answers, [asked[id(t)] for t in own], weights, allow_unused=True)


def _nonzero(gradient: torch.Tensor) -> int:
    size = gradient.abs()
    return int((size > MATTERS * size.amax()).sum()) if size.numel() else 0
