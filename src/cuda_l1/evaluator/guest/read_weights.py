"""Which elements of the weights an answer is made of, where these are few: rows of a table that inputs choose."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from . import drawing, state
from .reference import Reference
from .tensors import leaves, map_leaves

LARGE = 1 << 10
"""Smaller tensors are not looked at."""
FEW = 1 / 4
"""The largest share of a tensor that is worth naming."""
LEAST_NAMED, MOST_NAMED = 4, 1 << 16
"""Places of a tensor: some of many are named, and of next to none nothing could be moved between them."""


def read_elements(
    reference: Reference, inputs: drawing.Inputs, weights: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """By name, the flat places of what is read of each large parameter of which an answer to these inputs has a
    gradient in a few elements only. Nothing where the reference has no gradient, or no room for it."""
    model = reference.model
    before = state.attributes(model)
    try:
        gradients = _gradients(reference, inputs, weights)
    except (Exception, SystemExit):  # noqa: BLE001  the task's own code, and it need not have a gradient
        return {}
    finally:
        state.reinstate(model, before, reference.changed_state)
        state.restore(model, reference.public)
    places = {name: gradient.reshape(-1).nonzero().reshape(-1) for name, gradient in gradients.items()}
    return {name: _some(at) for name, at in places.items() if LEAST_NAMED <= at.numel() <= FEW * weights[name].numel()}


def _some(places: torch.Tensor) -> torch.Tensor:
    """At most `MOST_NAMED` of them, in order."""
    if places.numel() <= MOST_NAMED:
        return places
    chosen = torch.zeros_like(places, dtype=torch.bool)
    chosen[torch.randint(places.numel(), (MOST_NAMED,), device=places.device)] = True
    return places[chosen]


def _gradients(
    reference: Reference, inputs: drawing.Inputs, weights: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    model = reference.model
    own = {name: weights[name].clone() for name, _ in model.named_parameters() if name in weights}
    asked = {n: t.requires_grad_() for n, t in own.items() if t.is_floating_point() and t.numel() >= LARGE}
    if not asked:
        return {}
    args = map_leaves(list(inputs), lambda t: t.to(reference.device, copy=True))
    with torch.enable_grad():
        answers = [t for t in leaves(torch.func.functional_call(model, own, tuple(args))) if t.requires_grad]
    sizes = [torch.rand_like(t) + 0.5 for t in answers]  # unlike each other, or sums that are constant would hide it
    found = torch.autograd.grad(answers, list(asked.values()), sizes, allow_unused=True)
    # those of `nn.Embedding(..., sparse=True)` are sparse
    return {
        name: gradient.to_dense() if gradient.is_sparse else gradient
        for name, gradient in zip(asked, found, strict=True)
        if gradient is not None
    }
