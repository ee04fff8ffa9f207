"""The layers of a decoder, compiled for the steps of a training."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from peft import PeftModel


@contextmanager
def compiled_layers(model: Any, *, backend: str | Callable[..., Any] = "inductor") -> Iterator[None]:
    """`with compiled_layers(model): ...`: the layers that a decoder repeats compute by `torch.compile` while it is in
    training mode, so that norms, rotations and activations, most of a small model's step, are a few kernels.

    They are compiled one by one: all are the same graph then, which is compiled once for a first length of rows and
    once for any, not once a model. Out of training mode, where replies are written token by token, they are as they
    were. Weights and their names stay as they are.
    """
    inner: Any = model.get_base_model() if isinstance(model, PeftModel) else model
    repeated = set(inner._no_split_modules or ())
    layers = [each for each in inner.modules() if type(each).__name__ in repeated]
    for layer in layers:
        layer.forward = _in_training(layer, torch.compile(layer.forward, backend=backend))
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


def _in_training(layer: Any, compiled: Callable[..., Any]) -> Callable[..., Any]:
    plain = layer.forward

    def forward(*given: Any, **named: Any) -> Any:
        return (compiled if layer.training else plain)(*given, **named)

    return forward
