"""What the task itself draws, under seeds that nobody can foresee.

Secret seeds come from `entropy`: two forked siblings draw the same `torch.rand`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .entropy import ENTROPY
from .load import made_on, seed_everything
from .tensors import map_leaves

Inputs = list[Any]


def secret_seed() -> int:
    """63 bits that nobody can foresee."""
    return ENTROPY.getrandbits(63)


def draw_inputs(get_inputs: Callable[[], Any], device: str, seed: int | None = None) -> Inputs:
    """The task's own inputs under `seed` (secret by default), made on `device` where its text allows that, detached.

    What is no list or tuple is the only argument. Raises TypeError for None and a dict, which leave the order open.
    """
    own = secret_seed() if seed is None else seed

    def make() -> Any:
        seed_everything(own)
        return get_inputs()

    with torch.no_grad():
        drawn = made_on(device, make)
        if drawn is None or isinstance(drawn, dict):
            raise TypeError(f"a {type(drawn).__name__} is no list of arguments, in the order of `forward`")
        inputs = list(drawn) if isinstance(drawn, list | tuple) else [drawn]
        return [map_leaves(item, lambda t: t.detach().to(device)) for item in inputs]
