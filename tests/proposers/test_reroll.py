"""Unrolled recurrences become loops: the kernels as Triton would run them, on arrays, against PyTorch."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from graphs import make_task

from cuda_l1.proposers.techniques import build
from cuda_l1.proposers.techniques.codegen.reroll import rerolled

FILTER = """
    state = torch.zeros_like(x[:, 0])
    states = []
    for step in range(x.shape[1]):
        state = {body}
        states.append(state)
    return torch.stack(states, dim=1)"""

RECURRENCES = {
    "a decaying sum": ("torch.sigmoid(y) * state + x[:, step]", "torch.randn(3, 64, 40), torch.randn(40)"),
    "gates": ("torch.tanh(state * y + x[:, step]) * x[:, step]", "torch.randn(2, 50, 24), torch.randn(24)"),
    "an input before": ("state * 0.5 + x[:, step] - x[:, max(step - 1, 0)]", "torch.randn(2, 64, 24), torch.randn(24)"),
    "from the end": ("state * y + x[:, x.shape[1] - 1 - step]", "torch.randn(2, 40, 24), torch.randn(24)"),
}

OTHERS = {
    "two steps back": (
        """
    before, state, states = torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0]), []
    for step in range(x.shape[1]):
        before, state = state, x[:, step] + y * state - 0.3 * before
        states.append(state)
    return torch.stack(states, dim=1)""",
        "torch.randn(3, 64, 40), torch.randn(40)",
    ),
    "the last state alone, and once more": (
        """
    state = torch.zeros_like(x[:, 0])
    for step in range(x.shape[1]):
        state = state * y + x[:, step]
    return state * 2 + x[:, 0]""",
        "torch.randn(3, 100, 40), torch.randn(40)",
    ),
    "two results, one after the other": (
        """
    state, top, states = torch.zeros_like(x[:, 0]), x[:, 0], []
    for step in range(x.shape[1]):
        state = torch.sigmoid(y) * state + x[:, step]
        top = torch.maximum(top, state)
        states.append(top - 0.5 * state)
    return torch.stack(states, dim=1), state""",
        "torch.randn(3, 70, 40), torch.randn(40)",
    ),
    "a state and its running maximum": (
        """
    state, top, states = x[:, 0], x[:, 0], []
    for step in range(1, x.shape[1]):
        state = state * y + x[:, step]
        top = torch.maximum(top, state)
        states.append(top - state)
    return torch.stack(states, dim=1)""",
        "torch.randn(3, 64, 40), torch.randn(40)",
    ),
}


class Pointer:
    """Where a tile's elements lie."""

    def __init__(self, memory: np.ndarray, places: Any = 0) -> None:
        self.memory, self.places = memory, places

    def __add__(self, places: Any) -> Pointer:
        return Pointer(self.memory, self.places + places)


class Kernel:
    """A function of tiles, run for one program after the other."""

    def __init__(self, function: Callable[..., Any], language: SimpleNamespace) -> None:
        self.function, self.language = function, language

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        def launch(*tensors: torch.Tensor, num_warps: int, **constants: int) -> None:
            for program in range(grid[0]):
                self.language.program_id = lambda axis, program=program: np.int64(program if axis == 0 else 0)
                self.function(*(Pointer(tensor.view(-1).numpy()) for tensor in tensors), **constants)

        return launch


def _load(pointer: Pointer, mask: Any = True) -> Any:
    places, mask = np.broadcast_arrays(pointer.places, mask)
    return np.where(mask, pointer.memory[np.where(mask, places, 0)], np.float32(0))


def _store(pointer: Pointer, value: Any, mask: Any = True) -> None:
    places, value, mask = np.broadcast_arrays(pointer.places, value, mask)
    pointer.memory[places[mask]] = value[mask]


def _broadcast_to(value: Any, shape: list[int]) -> Any:
    if isinstance(value, Pointer):
        return Pointer(value.memory, np.broadcast_to(value.places, shape))
    return np.broadcast_to(value, shape)


def _triton() -> dict[str, ModuleType]:
    """Triton's functions that the generated kernels use, on arrays."""
    language = SimpleNamespace(
        arange=np.arange, load=_load, store=_store, broadcast_to=_broadcast_to, where=np.where, constexpr=int,
        float32=np.float32, int32=np.int32, full=np.full,
    )  # fmt: skip
    library = SimpleNamespace(exp=np.exp, tanh=np.tanh)
    found = {}
    for name, content in {
        "triton": {"jit": lambda function: Kernel(function, language), "language": language},
        "triton.language": vars(language),
        "triton.language.extra": {"libdevice": library},
    }.items():
        found[name] = ModuleType(name)
        vars(found[name]).update(content)
    return found


def _built(body: str, inputs: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The module that fusion writes for a GPU, loaded here."""
    candidate = build(make_task(textwrap.dedent(body), inputs, args="x, y"), ["fusion"], "cuda")
    assert candidate is not None
    loaded: dict[str, Any] = {"__name__": "generated", "source": candidate.source}
    for name, module in _triton().items():
        monkeypatch.setitem(sys.modules, name, module)
    exec(compile(candidate.source, "generated.py", "exec"), loaded)
    return loaded


@pytest.mark.parametrize(
    ("body", "inputs"),
    [*((FILTER.format(body=body), inputs) for body, inputs in RECURRENCES.values()), *OTHERS.values()],
    ids=[*RECURRENCES, *OTHERS],
)
def test_a_recurrence_is_a_loop_with_the_same_values(monkeypatch: pytest.MonkeyPatch, body: str, inputs: str) -> None:
    torch.manual_seed(0)
    loaded = _built(body, inputs, monkeypatch)
    assert "for turn in range(0, " in loaded["source"]
    arguments = loaded["get_inputs"]()
    expected, got = loaded["Model"]()(*arguments), loaded["ModelNew"]()(*arguments)
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)


def _lines(steps: int, place: Callable[[int], int], last: str = "v{}") -> list[str]:
    lines = ["v0 = tl.load(in0 + x0)"]
    for step in range(steps):
        lines += [f"v{2 * step + 1} = tl.load(in1 + {place(step)} + x0)",
                  f"v{2 * step + 2} = v{2 * step} * v{2 * step + 1}"]  # fmt: skip
    return [*lines, f"tl.store(out0 + x0, {last.format(2 * steps)})"]


def test_what_does_not_repeat_evenly_stays_as_it_is() -> None:
    assert "for turn in range(0, 7):" in rerolled(_lines(64, lambda step: 8 * step))
    for lines in (
        _lines(8, lambda step: 8 * step),  # too few
        _lines(64, lambda step: step * step),  # uneven
        _lines(64, lambda step: 8 * step, last="v{} + v6"),  # a step in the middle is read behind the loop
        [*_lines(64, lambda step: 8 * step), "for r in range(8):"],  # not a statement
    ):
        assert rerolled(lines) == lines


def test_a_long_run_with_a_break_is_a_loop_up_to_it() -> None:
    lines = rerolled(_lines(100, lambda step: 8 * step if step < 60 else 8 * step + 3))
    assert sum(line.startswith("for turn") for line in lines) == 1
    assert len(lines) < 200 - 2 * 40
