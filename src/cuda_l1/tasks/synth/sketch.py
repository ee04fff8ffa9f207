"""A task while it is being written: its sizes, inputs, layers and the lines of its forward."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cuda_l1.tasks.synth.draw import Draw
from cuda_l1.tasks.synth.sizes import Sizes

KINDS = {
    "rows": ("rows", "columns"),
    "wide": ("rows", "width"),
    "tokens": ("batch", "time", "width"),
    "signal": ("batch", "channels", "length"),
    "image": ("images", "channels", "side", "side"),
    "heads": ("batch", "heads", "time", "tiny"),
}
"""What a tensor stands for, and the roles of its sizes. `rows` may have any width, `wide` has a multiple of 8."""

_NAMES = {
    "rows": "ROWS", "columns": "COLUMNS", "batch": "BATCH", "images": "BATCH", "time": "TIME",
    "width": "DIM", "out": "OUT", "heads": "HEADS", "channels": "CHANNELS", "side": "SIDE", "length": "LENGTH",
    "tiny": "HEAD_DIM",
}  # fmt: skip


@dataclass(frozen=True)
class Dim:
    """One size: the expression for it at module level, and its value."""

    text: str
    value: int

    def times(self, factor: int) -> Dim:
        """`factor * self`."""
        return Dim(f"{factor} * {self.text}" if " " not in self.text else f"{factor} * ({self.text})",
                   factor * self.value)  # fmt: skip

    def over(self, divisor: int) -> Dim:
        """`self // divisor`."""
        return Dim(f"{self.text} // {divisor}" if " " not in self.text else f"({self.text}) // {divisor}",
                   self.value // divisor)  # fmt: skip


class Sketch:
    """What stages write into. The tensor at hand is `x`, of a `kind` of KINDS (or `column`, `scalar`) and a shape."""

    def __init__(self, draw: Draw, sizes: Sizes) -> None:
        self.draw = draw
        self._sizes = sizes
        self.constants: dict[str, int] = {}
        self.parameters: dict[str, str] = {}
        self.init: list[str] = []
        self.forward: list[str] = []
        self.inputs: dict[str, str] = {}
        self.stages: list[str] = []
        self.kind = ""
        self.shape: tuple[Dim, ...] = ()
        self.bytes = 0
        self.flops = 0.0
        self.modular = draw.chance(0.5)
        """Whether activations are layers in the constructor or functions in forward."""
        self._taken: dict[str, int] = {}

    # ── what stages ask ───────────────────────────────────────────────────────────────────────────

    @property
    def channel(self) -> int:
        """The dimension of features."""
        return 1 if self.kind in ("signal", "image") else -1

    @property
    def width(self) -> Dim:
        """The size of that dimension."""
        return self.shape[self.channel]

    @property
    def numel(self) -> int:
        """How many elements `x` has."""
        return math.prod(dim.value for dim in self.shape)

    # ── what stages write ─────────────────────────────────────────────────────────────────────────

    def start(self, kind: str) -> None:
        """Begin with an input of this kind."""
        self.kind = kind
        self.shape = tuple(self.size(role) for role in KINDS[kind])
        self.input("x", self.shape)

    def size(self, role: str) -> Dim:
        """A new size: `DIM`, or `DIM_2` where there is one already. Both sides of an image are one size."""
        if role == "side" and "SIDE" in self.constants:
            return Dim("SIDE", self.constants["SIDE"])
        name = self.name(_NAMES[role])
        self.constants[name] = self._sizes.pick(role)
        return Dim(name, self.constants[name])

    def name(self, wanted: str) -> str:
        """A name that is not taken: `wanted`, `wanted_2`, ..."""
        self._taken[wanted] = self._taken.get(wanted, 0) + 1
        return wanted if self._taken[wanted] == 1 else f"{wanted}_{self._taken[wanted]}"

    def input(self, name: str, shape: tuple[Dim, ...], drawing: str = "torch.randn({shape})") -> str:
        """One more argument of forward; returns its name."""
        name = self.name(name)
        self.inputs[name] = drawing.format(shape=", ".join(dim.text for dim in shape))
        self.bytes += 4 * math.prod(dim.value for dim in shape)
        return name

    def layer(self, name: str, constructor: str, *dims: Dim, flops: float = 0.0) -> str:
        """An attribute made in the constructor; `{}` in it are sizes. Returns `self.name`."""
        name = self.name(name)
        self.init.append(f"self.{name} = {constructor.format(*(self.parameter(dim) for dim in dims))}")
        self.flops += flops
        return f"self.{name}"

    def parameter(self, dim: Dim) -> str:
        """A size as the constructor sees it, an argument of it."""
        text = dim.text
        for name in sorted(self.constants, key=len, reverse=True):
            if name in text.replace("(", " ").replace(")", " ").split():
                self.parameters[name] = name.lower()
                text = " ".join(name.lower() if word == name else word for word in _words(text))
        return text.replace("( ", "(").replace(" )", ")")

    def set(self, expression: str, *, cost: int = 1) -> None:
        """`x = expression`; `{x}` in it is `x` itself. `cost`: how many tensors of its size that makes."""
        self.line(f"x = {expression.replace('{x}', 'x')}")
        self.bytes += 4 * cost * self.numel

    def line(self, text: str) -> None:
        """One more line of forward."""
        self.forward.append(text)

    def become(self, kind: str, *shape: Dim) -> None:
        """`x` has another kind and shape from here on."""
        self.kind, self.shape = kind, shape
        self.bytes += 4 * self.numel

    def activate(self, function: str, layer: str) -> None:
        """An activation as this task's author writes them."""
        if self.modular:
            self.set(f"{self.layer('act', layer)}({{x}})")
        else:
            self.set(function)

    # ── the text ──────────────────────────────────────────────────────────────────────────────────

    def render(self, title: str) -> str:
        """The file, in KernelBench's format."""
        lines = [f'"""{title}"""', "", "import torch", "import torch.nn as nn"]
        lines += (
            ["import torch.nn.functional as F"] if any("F." in line for line in (*self.forward, *self.init)) else []
        )
        lines += ["", *(f"{name} = {value}" for name, value in self.constants.items()), "", ""]
        lines += ["class Model(nn.Module):", *self._constructor()]
        arguments = "".join(f", {name}: torch.Tensor" for name in self.inputs)
        lines += [f"    def forward(self{arguments}) -> torch.Tensor:"]
        lines += [f"        {line}" for line in self._returning()]
        drawn = ", ".join(self.inputs.values())
        if len(drawn) > 90:
            drawn = "\n        " + ",\n        ".join(self.inputs.values()) + ",\n    "
        lines += ["", "", "def get_inputs() -> list[torch.Tensor]:", f"    return [{drawn}]"]
        lines += ["", "", "def get_init_inputs() -> list[int]:", f"    return [{', '.join(self.parameters)}]"]
        return "\n".join(lines) + "\n"

    def _constructor(self) -> list[str]:
        if not self.init:
            return []
        arguments = "".join(f", {name}: int" for name in self.parameters.values())
        body = ["super().__init__()", *self.init]
        return [f"    def __init__(self{arguments}) -> None:", *(f"        {line}" for line in body), ""]

    def _returning(self) -> list[str]:
        """The lines of forward with the last assignment as what is returned."""
        *before, last = self.forward
        if last.startswith("x = "):
            return [*before, f"return {last[4:]}"]
        return [*self.forward, "return x"]


def _words(text: str) -> list[str]:
    return text.replace("(", "( ").replace(")", " )").split()
