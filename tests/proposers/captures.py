"""A stand-in for CUDA graphs on a CPU, and candidates on a GPU held to their reference."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from graphs import namespace
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode


class RecordedGraph:
    """Like a CUDA graph: fixed operations on fixed memory. Capturing computes nothing, replaying rewrites results."""

    captures = 0
    """How many graphs were captured since `stand_in_for_cuda`."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, Any, Any, Any]] = []
        type(self).captures += 1

    def replay(self) -> None:
        for operator, args, kwargs, results in self.calls:
            again = operator(*args, **kwargs)
            for memory, value in zip(pytree.tree_leaves(results), pytree.tree_leaves(again), strict=True):
                if isinstance(memory, torch.Tensor) and memory.data_ptr() != value.data_ptr():
                    memory.copy_(value)


class _Recorder(TorchDispatchMode):
    def __init__(self, graph: RecordedGraph) -> None:
        super().__init__()
        self.graph = graph

    def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        written = [
            (argument, argument.clone())
            for parameter, argument in zip(operator._schema.arguments, args, strict=False)
            if parameter.alias_info is not None and parameter.alias_info.is_write
        ]
        results = operator(*args, **(kwargs or {}))
        self.graph.calls.append((operator, args, kwargs or {}, results))
        for argument, before in written:
            argument.copy_(before)
        for result in pytree.tree_leaves(results):
            if all(result is not argument for argument, _ in written) and not _is_view(operator):
                result.zero_()  # a capture leaves results unwritten
        return results


def _is_view(operator: Any) -> bool:
    return any(value.alias_info is not None for value in operator._schema.returns)


@contextlib.contextmanager
def _recording(graph: RecordedGraph, **_: Any) -> Iterator[None]:
    with _Recorder(graph):
        yield


def stand_in_for_cuda(monkeypatch: pytest.MonkeyPatch, captured_forward: Any) -> None:
    """Let `CapturedForward` capture on the CPU."""
    stream = SimpleNamespace(wait_stream=lambda other: None)
    RecordedGraph.captures = 0
    monkeypatch.setattr(captured_forward, "_device", lambda self: "cpu")
    monkeypatch.setattr(torch.cuda, "device", lambda place: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "stream", lambda one: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "Stream", lambda: stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: stream)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", RecordedGraph)
    monkeypatch.setattr(torch.cuda, "graph", _recording)


def hold_to_reference(source: str, tolerance: float = 1e-4, offset: int = 1) -> None:
    """Four calls on the GPU against eager: other values, other weights, a storage offset; state compared too."""
    scope = namespace(source)
    reference = scope["Model"](*scope["get_init_inputs"]()).cuda()
    new = scope["ModelNew"](*scope["get_init_inputs"]()).cuda()
    new.load_state_dict(reference.state_dict())
    kept: list[tuple[Any, Any]] = []
    with torch.no_grad():
        for trial in range(4):
            given = [value.cuda() for value in scope["get_inputs"]()]
            if trial == 2:
                for old, changed in zip(reference.parameters(), new.parameters(), strict=True):
                    old.mul_(1.5).add_(0.1)
                    changed.copy_(old)
                given = [_offset(value, offset) for value in given]
            mine = [_offset(value, offset) if trial == 2 else value.clone() for value in given]
            expected = reference(*given)
            kept.append((new(*mine), copy.deepcopy(expected)))
            _close(mine, given, tolerance)
            _close(dict(new.named_buffers()), dict(reference.named_buffers()), tolerance)
    for got, expected in kept:  # after all calls: an output must not change under its owner
        _close(got, expected, tolerance)


def _offset(value: torch.Tensor, elements: int) -> torch.Tensor:
    memory = torch.empty(value.numel() + elements, dtype=value.dtype, device=value.device)
    return memory[elements:].view_as(value).copy_(value)


def _close(got: Any, expected: Any, tolerance: float) -> None:
    if isinstance(expected, dict):
        got = {name: got[name] for name in expected}
    for left, right in zip(pytree.tree_leaves(got), pytree.tree_leaves(expected), strict=True):
        if isinstance(right, torch.Tensor):
            loose = 2e-2 if right.dtype == torch.bfloat16 else tolerance
            torch.testing.assert_close(left, right, rtol=loose, atol=loose)
