"""Unrolled recurrences become loops: the kernels as Triton would run them, on arrays, against PyTorch."""

from __future__ import annotations

import functools
import random
import re
import sys
import textwrap
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from graphs import make_task

from cuda_l1.proposers.techniques import build
from cuda_l1.proposers.techniques.codegen.reroll import TURN, rerolled
from shares import in_turn, slow_unless_due

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
    "a step that is read later from the middle on": (
        """
    states = [x[:, 0], x[:, 1]]
    for step in range(2, x.shape[1]):
        states.append(x[:, step] + 0.5 * states[step - 1 if step < x.shape[1] // 2 else step - 2])
    return torch.stack(states, dim=1)""",
        "torch.randn(3, 64, 40), torch.randn(40)",
    ),
    "a chain of states, each a step behind": (
        """
    a = b = c = d = torch.zeros_like(y)
    ends = []
    for step in range(x.shape[1]):
        d = 0.5 * d + c
        c = 0.5 * c + b
        b = 0.5 * b + a
        a = 0.5 * a + x[:, step]
        ends.append(d)
    return ends[-6] + ends[-1]""",
        "torch.randn(3, 64, 40), torch.randn(3, 40)",
    ),
    "counts": (
        """
    state, states = torch.zeros_like(y), []
    for step in range(x.shape[1]):
        state = torch.where(x[:, step] > 4, state + x[:, step], state - 1)
        states.append(state)
    return torch.stack(states, dim=1)""",
        "torch.randint(0, 9, (3, 64, 40)), torch.randint(0, 9, (3, 40))",
    ),
    "whether it ever was": (
        """
    state, states = y > 3, []
    for step in range(x.shape[1]):
        state = (state | (x[:, step] > 2)) & (x[:, step] > -2)
        states.append(torch.where(state, x[:, step], y))
    return torch.stack(states, dim=1)""",
        "torch.randn(3, 64, 40), torch.randn(3, 40)",
    ),
    "half precision": (
        """
    state, states = torch.zeros_like(y), []
    for step in range(x.shape[1]):
        state = 0.5 * state + x[:, step]
        states.append(state)
    return torch.stack(states, dim=1)""",
        "torch.randn(3, 64, 40).half(), torch.randn(3, 40).half()",
    ),
    "half precision, summed in single": (
        """
    state, states = torch.zeros_like(y).float(), []
    for step in range(x.shape[1]):
        state = 0.5 * state + x[:, step].float()
        states.append(state.to(x.dtype))
    return torch.stack(states, dim=1)""",
        "torch.randn(3, 64, 40).bfloat16(), torch.randn(3, 40).bfloat16()",
    ),
    "a state for each row": (
        """
    state = y
    for step in range(x.shape[1]):
        state = 0.5 * state + torch.tanh(x[:, step] - state)
    return state - state.mean(-1, keepdim=True)""",
        "torch.randn(3, 64, 40), torch.randn(3, 40)",
    ),
    "a row that is normalised at each step": (
        """
    state = y
    for step in range(x.shape[1]):
        state = torch.softmax(state + x[:, step], -1)
    return state * 3""",
        "torch.randn(3, 40, 24), torch.randn(3, 24)",
    ),
    "inputs that lie the other way": (
        """
    state, states = torch.zeros_like(y), []
    for step in range(x.shape[1]):
        state = 0.5 * state + x[:, step]
        states.append(state)
    return torch.stack(states, dim=1)""",
        "torch.randn(3, 40, 64).transpose(1, 2), torch.randn(40, 3).t()",
    ),
    "no state at all": (
        """
    return torch.stack([torch.tanh(x[:, step]) * y for step in range(x.shape[1])], dim=1)""",
        "torch.randn(3, 64, 40), torch.randn(3, 40)",
    ),
}


class Pointer:
    """Where a tile's elements lie."""

    def __init__(self, memory: torch.Tensor, places: Any = 0) -> None:
        self.memory, self.places = memory, torch.as_tensor(places)

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
                self.language.program_id = lambda axis, program=program: program if axis == 0 else 0
                self.function(*(Pointer(_memory(tensor)) for tensor in tensors), **constants)

        return launch


def _memory(tensor: torch.Tensor) -> torch.Tensor:
    """All that lies behind a tensor's first element."""
    return tensor.as_strided((tensor.untyped_storage().nbytes() // tensor.itemsize - tensor.storage_offset(),), (1,))


def _load(pointer: Pointer, mask: Any = True) -> torch.Tensor:
    places, mask = torch.broadcast_tensors(pointer.places, torch.as_tensor(mask))
    found = pointer.memory[torch.where(mask, places, 0)]
    return torch.where(mask, found, torch.zeros((), dtype=found.dtype))


def _store(pointer: Pointer, value: torch.Tensor, mask: Any = True) -> None:
    places, value, mask = torch.broadcast_tensors(pointer.places, value, torch.as_tensor(mask))
    pointer.memory[places[mask]] = value[mask].to(pointer.memory.dtype)


def _broadcast_to(value: Any, shape: list[int]) -> Any:
    if isinstance(value, Pointer):
        return Pointer(value.memory, value.places.broadcast_to(shape))
    return value.broadcast_to(shape)


def _reduce(tile: torch.Tensor, axis: int, join: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> torch.Tensor:
    return functools.reduce(join, tile.unbind(axis))


def _triton() -> dict[str, ModuleType]:
    """Triton's functions that the generated kernels use, on arrays."""
    language = SimpleNamespace(
        arange=torch.arange, load=_load, store=_store, broadcast_to=_broadcast_to, where=torch.where, constexpr=int,
        full=lambda shape, value, dtype: torch.full(shape, value, dtype=dtype), abs=torch.abs, cumsum=torch.cumsum,
        sum=torch.sum, reduce=_reduce, div_rn=torch.div, sqrt_rn=torch.sqrt, float32=torch.float32,
        bfloat16=torch.bfloat16, float16=torch.float16, int32=torch.int32, int64=torch.int64, int1=torch.bool,
    )  # fmt: skip
    library = SimpleNamespace(exp=torch.exp, tanh=torch.tanh)
    found = {}
    for name, content in {
        "triton": {"jit": lambda function: Kernel(function, language), "language": language},
        "triton.language": vars(language),
        "triton.language.extra": {"libdevice": library},
    }.items():
        found[name] = ModuleType(name)
        vars(found[name]).update(content)
    return found


def _carried(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """What a loop hands to its next turn, of which Triton demands one type."""
    assert (after.shape, after.dtype) == (before.shape, before.dtype)
    return after


def _built(body: str, inputs: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The module that fusion writes for a GPU, loaded here."""
    candidate = build(make_task(textwrap.dedent(body), inputs, args="x, y"), ["fusion"], "cuda")
    assert candidate is not None
    loaded: dict[str, Any] = {"__name__": "generated", "source": candidate.source, "carried": _carried}
    for name, module in _triton().items():
        monkeypatch.setitem(sys.modules, name, module)
    checked = re.sub(r"(?m)^( {8}(k\w+) = )(s\w+)$", r"\1carried(\2, \3)", candidate.source)
    exec(compile(checked, "generated.py", "exec"), loaded)
    return loaded


CASES = {name: (FILTER.format(body=body), inputs) for name, (body, inputs) in RECURRENCES.items()} | OTHERS


@pytest.mark.parametrize(
    ("body", "inputs"),
    [
        pytest.param(*case, id=name, marks=slow_unless_due(n, 2, in_turn(2)))
        for n, (name, case) in enumerate(CASES.items())
    ],
)
def test_a_recurrence_is_a_loop_with_the_same_values(monkeypatch: pytest.MonkeyPatch, body: str, inputs: str) -> None:
    torch.manual_seed(0)
    loaded = _built(body, inputs, monkeypatch)
    assert "for turn in range(0, " in loaded["source"]
    arguments = loaded["get_inputs"]()
    expected, got = loaded["Model"]()(*arguments), loaded["ModelNew"]()(*arguments)
    within = 0.03 if "half()" in inputs or "bfloat16()" in inputs else 1e-5
    torch.testing.assert_close(got, expected, rtol=within, atol=within)


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


def _random_program(draw: random.Random) -> list[str]:
    """Steps of equal lines which read each other, some of them otherwise from some step on."""
    steps, first = draw.randint(26, 60), draw.randint(4, 12)
    kinds = ["compute", *draw.choices(["load", "compute", "store"], k=draw.randint(0, 5))]
    defining = [position for position, kind in enumerate(kinds) if kind != "store"]

    def name(position: int, step: int) -> str:
        number = first + step * len(kinds) + position
        return f"v{number}" if step >= 0 or 0 <= number < first else "v0"

    def operand(position: int) -> Callable[[int], str]:
        read, change = draw.choice(defining), draw.randint(0, steps)
        ago = draw.randint(0 if read < position else 1, 3)
        later = draw.choice((0, 0, 0, 0, 1))
        if draw.random() < 0.1:
            return lambda step: f"v{change % first}"
        if draw.random() < 0.1:
            return lambda step: name(read, min(step - ago, change))
        return lambda step: name(read, step - ago - later * (step >= change))

    def place() -> Callable[[int], int]:
        change, stride = draw.randint(0, steps), draw.choice((-7, -1, 1, 2, 64))
        turn = draw.choice((0, 0, 0, 1))
        return lambda step: 9000 + stride * step + turn * max(step - change, 0) * stride

    def statement(position: int) -> Callable[[int], str]:
        kind, one, other, at = kinds[position], operand(position), operand(position), place()
        if kind == "load":
            return lambda step: f"tl.load(in1 + {at(step)} + x0)"
        if kind == "store":
            return lambda step: f"tl.store(out{position} + {at(step)}, {one(step)})"
        return lambda step: f"({one(step)} * 3 + {other(step)} + 1) % 10007"

    lines = [f"v{number} = tl.load(in0 + {number} + x0)" for number in range(first)]
    texts = [statement(position) for position in range(len(kinds))]
    for step in range(steps):
        for position, kind in enumerate(kinds):
            defined = "" if kind == "store" else f"{name(position, step)} = "
            lines.append(defined + texts[position](step))
    ends = [name(draw.choice(defining), steps - 1 - draw.choice((0, 0, 1, 7))) for _ in range(draw.randint(1, 3))]
    return [*lines, *(f"tl.store(out99 + {number}, {end})" for number, end in enumerate(ends))]


def _stored(lines: list[str]) -> dict[int, int]:
    """What a program of one element leaves in memory."""
    memory: dict[int, int] = {}
    language = SimpleNamespace(load=lambda place: place * 7919 % 10007, store=memory.__setitem__)
    outputs = {f"out{number}": number * 10**6 for number in range(100)}
    exec("\n".join(lines), {"tl": language, "in0": 0, "in1": 10**9, "x0": 3, **outputs})
    return memory


def test_random_programs_leave_the_same_in_memory() -> None:
    draw, looped = random.Random(0), 0
    for _ in range(200):
        lines = _random_program(draw)
        found = rerolled(lines)
        looped += any(line.startswith(TURN) for line in found)
        assert _stored(found) == _stored(lines), "\n".join(lines)
    assert looped > 40


def test_states_alone_ask_for_many_small_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for no step before it keeps the tile of other nests."""
    for name, block in (("a decaying sum", 32), ("no state at all", 128)):
        body, inputs = (
            OTHERS[name] if name in OTHERS else (FILTER.format(body=RECURRENCES[name][0]), RECURRENCES[name][1])
        )
        assert f"XBLOCK={block}" in _built(body, inputs, monkeypatch)["source"]
