"""A live `nn.Module` as a task: its exported program printed as a `Model`, its state beside it as safetensors."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuda_l1.errors import TaskError
from cuda_l1.tasks.graph_capture import OtherReturn
from cuda_l1.tasks.live_check import ChangesItself, call_error, check_printed, check_runs, kept_attributes
from cuda_l1.tasks.live_file import class_source
from cuda_l1.tasks.live_source import render_module
from cuda_l1.tasks.weight_files import save_weights
from cuda_l1.types import Task

if TYPE_CHECKING:
    import torch


def task_from_module(
    module: torch.nn.Module, example_inputs: Any, *, name: str | None = None, work_dir: str | Path
) -> Task:
    """A task that computes what `module` computes for inputs like `example_inputs`, in its train/eval mode.

    `example_inputs`: the arguments of `forward` as a tuple or list, a dict of keyword arguments, or a single tensor.
    The module crosses as source and safetensors, never as a pickle: its exported program is printed as a `Model` with
    the module's own names, so that the keys of both state_dicts are equal; where it cannot be traced, the file of its
    class is taken if the constructor's arguments can be read off the module. Either text is run once on the examples
    and must give what the module gives. Inputs are drawn like the examples (see `cuda_l1.tasks.examples`). The state is
    written to `work_dir/<sha256>.safetensors`.
    The module is as it was afterwards, also where this fails.
    Raises TaskError, one line, where neither way works, and InfrastructureError where `work_dir` cannot be written.
    """
    import torch

    if not isinstance(module, torch.nn.Module):
        raise TaskError(f"a {type(module).__name__} is not a torch.nn.Module; pass the module itself")
    args, kwargs = bound_arguments(module, example_inputs)
    state = dict(_checked_state(module))
    try:
        with kept_attributes(module):
            source = _printed(module, args, kwargs)
    except TaskError:
        raise
    except Exception as error:  # the module's own code and torch's tracing run in there and may raise anything
        raise TaskError(f"{type(module).__name__}: cannot be printed: {call_error(error)}") from error
    return Task(
        suite="module",
        name=name or type(module).__name__,
        source=source,
        weights=save_weights(state, Path(work_dir)) if state else None,
    )


def bound_arguments(module: torch.nn.Module, example_inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """(positional, by keyword) arguments in the order of `forward`; by keyword only what cannot be passed otherwise.

    Raises TaskError where the examples do not fit the signature.
    """
    args, kwargs = _split(example_inputs)
    try:
        bound = inspect.signature(module.forward).bind(*args, **kwargs)
    except TypeError as error:
        raise TaskError(f"{type(module).__name__}: the example inputs do not fit its forward: {error}") from None
    return bound.args, bound.kwargs


def _split(example_inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """(positional, by keyword) arguments from a tuple, list, dict or single tensor."""
    if isinstance(example_inputs, Mapping):
        return (), dict(example_inputs)
    if isinstance(example_inputs, Sequence) and not isinstance(example_inputs, str):
        return tuple(example_inputs), {}
    return (example_inputs,), {}


def _printed(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The checked source, by the first way that works; the first way's error where none does."""
    try:
        source = render_module(module, args, kwargs)
        check_printed(source, module, args, kwargs)
        return source
    except ChangesItself:
        raise
    except TaskError as traced:
        try:
            source = class_source(module, args, kwargs)
            check_printed(source, module, args, kwargs, same_class=True)
            return source
        except ChangesItself:
            raise
        except TaskError as filed:
            check_runs(module, args, kwargs)  # what the module itself does not stand is told first
            if isinstance(traced, OtherReturn):  # nor does its file help: what it returns stays what it is
                raise traced from None
            raise TaskError(f"{traced}; nor can its file be used: {filed}") from None


def _checked_state(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """The state_dict's tensors; TaskError for what a safetensors file cannot hold."""
    import torch

    for name, value in module.state_dict().items():
        if torch.nn.parameter.is_lazy(value):
            raise TaskError(f"{type(module).__name__}: `{name}` has no values yet; call the module once first")
        if not isinstance(value, torch.Tensor):
            raise TaskError(
                f"{type(module).__name__}: the state `{name}` is not a tensor and cannot be written to a file"
            )
        if value.is_meta or value.layout is not torch.strided or value.is_quantized:
            raise TaskError(
                f"{type(module).__name__}: `{name}` is not a plain tensor with values; load or convert it first"
            )
        yield name, value
