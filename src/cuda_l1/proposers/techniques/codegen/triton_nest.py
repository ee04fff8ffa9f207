"""A planned nest as Triton kernels over tiles of [kept, reduced] elements.

Short rows stay in registers from the first load to the last store (`whole`); long ones are walked in blocks once per
pass (`blocks`); where too few tiles would leave the GPU idle, every pass is a kernel whose programs share the rows and
exchange partial results through memory (`split`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cuda_l1.proposers.techniques.codegen.axes import Atom, count, resolve
from cuda_l1.proposers.techniques.codegen.ir import Unsupported, Value
from cuda_l1.proposers.techniques.codegen.plan import Access, Pins, Plan, chosen_index, fixed_index
from cuda_l1.proposers.techniques.codegen.triton_expr import TYPES, literal, pointwise


@dataclass
class Tile:
    """The shape of the work of one program."""

    x: int
    """Kept elements."""
    r: int
    """Reduced elements in a block."""
    warps: int
    mode: str
    """`whole`, `blocks` or `split`."""
    splits: int = 1
    """Programs that share a row."""


@dataclass
class Scope:
    """Lines of one nesting level and the values they define."""

    lines: list[str] = field(default_factory=list)
    names: dict[object, str] = field(default_factory=dict)


class TilePrinter:
    """Expressions, loads and stores of one plan on tiles of [XBLOCK, RBLOCK]."""

    def __init__(self, plan: Plan, tile: Tile) -> None:
        self.plan, self.tile = plan, tile
        self.kept = [*plan.outer, *([] if plan.row else [plan.vector])]
        self.names = {loop: f"x{i}" for i, loop in enumerate(self.kept)}
        self.names |= {loop: f"r{i}" for i, loop in enumerate(plan.inner)}
        self.kept_atoms = {a for loop in self.kept for a in plan.merged.get(loop, [loop])}
        self.inner_atoms = {a for loop in plan.inner for a in plan.merged[loop]}
        self.elements, self.length = count(self.kept), count(plan.inner)
        self.row, self.lane = Scope(), Scope()
        self.fresh = 0

    # ── values ────────────────────────────────────────────────────────────────────────────────────

    def ref(self, value: Value, pins: Pins | None = None) -> str:
        """The tile that holds `value`, defined on first use, outside the loop over blocks where it may stand there."""
        atoms = self.plan.depends[value]
        pins = {atom: text for atom, text in (pins or {}).items() if atom in atoms}
        inside = bool((atoms - set(pins)) & self.inner_atoms)
        scope = self.lane if inside else self.row
        key = (value, tuple(sorted((id(atom), text) for atom, text in pins.items())))
        if key not in scope.names:
            text = self._expression(value, pins)
            self.fresh += 1
            scope.names[key] = f"v{self.fresh}"
            scope.lines.append(f"v{self.fresh} = {text}")
        return scope.names[key]

    def _expression(self, value: Value, pins: Pins) -> str:
        if value in self.plan.loads:
            return self._load(value, self.plan.loads[value], pins)
        special = getattr(self, f"_on_{value.op}", None)
        if special is not None:
            return str(special(value, pins))
        return pointwise(value, [self.ref(arg, pins) for arg in value.args])

    def _on_const(self, value: Value, pins: Pins) -> str:
        return literal(value.attrs["value"], value.compute)

    def _on_same(self, value: Value, pins: Pins) -> str:
        return self.ref(value.args[0], pins)

    _on_reshape = _on_permute = _on_expand = _on_same

    def _on_slice(self, value: Value, pins: Pins) -> str:
        start = value.attrs["start"] // value.shape[value.attrs["dim"]]
        return self.ref(value.args[0], {**pins, **fixed_index(self.plan.axes.pins[value], start)})

    def _on_cat(self, value: Value, pins: Pins) -> str:
        atoms = resolve([self.plan.axes.pins[value]])
        if len(atoms) != 1:
            raise Unsupported("parts spread over several loops")
        *others, text = [self.ref(arg, pins) for arg in value.args]
        for index, other in reversed(list(enumerate(others))):
            text = f"tl.where({self._coordinate(atoms[0], pins)} == {index}, {other}, {text})"
        return text

    def _on_at(self, value: Value, pins: Pins) -> str:
        """Out-of-range indices read the nearest element."""
        source, index = value.args
        last = source.shape[value.attrs["dim"]] - 1
        bounded = f"tl.minimum(tl.maximum({self.ref(index, pins)}, 0), {last})"
        atoms = resolve(self.plan.axes.ats[value])
        return self.ref(source, {**pins, **chosen_index(atoms, bounded, "//")})

    def _on_iota(self, value: Value, pins: Pins) -> str:
        terms, radix = ["tl.full([1, 1], 0, tl.int32)"], 1
        for atom in reversed(self.plan.axes.atoms(value)):
            terms.append(f"({self._coordinate(atom, pins)}) * {radix}")
            radix *= atom.size
        return f"({' + '.join(terms)}).to(tl.int32)"

    def _on_reduce(self, value: Value, pins: Pins) -> str:
        raise Unsupported("a reduction read before it is complete")

    def _on_scan(self, value: Value, pins: Pins) -> str:
        if pins or self.tile.mode == "split":
            raise Unsupported("a scan that does not run along its loop")
        self.fresh += 1
        part, total = f"p{self.fresh}", f"carry{self.plan.values.index(value)}"
        arg = self.masked(self.ref(value.args[0]), value.args[0], "0.0")
        self.lane.lines.append(f"{part} = tl.broadcast_to({arg}, [XBLOCK, RBLOCK])")
        if self.tile.mode == "whole":
            return f"tl.cumsum({part}, 1)"
        self.lane.lines += [
            f"q{self.fresh} = tl.cumsum({part}, 1) + {total}",
            f"{total} = {total} + tl.sum({part}, 1)[:, None]",
        ]
        return f"q{self.fresh}"

    def _coordinate(self, atom: Atom, pins: Pins) -> str:
        return pins.get(atom) or self.names[atom]

    # ── memory ────────────────────────────────────────────────────────────────────────────────────

    def mask(self, kept: bool, inner: bool) -> str:
        """The condition under which an element of a tile exists; empty when it always does."""
        parts = ["xmask"] if kept and self.elements % self.tile.x else []
        return " & ".join([*parts, *(["rmask"] if inner and self.partial() else [])])

    def partial(self) -> bool:
        return self.length % self.tile.r != 0

    def masked(self, text: str, value: Value, other: str) -> str:
        """A tile with `other` where no element is."""
        condition = self.mask(True, True)
        return f"tl.where({condition}, {text}, {other})" if condition else text

    def _load(self, value: Value, access: Access, pins: Pins) -> str:
        place, condition = self._place(access, pins)
        text = f"tl.load({place}, {condition})" if condition else f"tl.load({place})"
        if value.dtype == "b8":
            return f"({text} != 0)"
        return text if value.dtype == value.compute else f"{text}.to({TYPES[value.compute]})"

    def _place(self, access: Access, pins: Pins) -> tuple[str, str]:
        """Pointer tile and mask of an access; indices that are values are bounded and need no mask."""
        free = [loop for loop in access.strides if loop not in pins]
        kept = any(loop in self.kept for loop in free)
        inner = any(loop in self.plan.inner for loop in free)
        terms = [str(access.offset)] if access.offset else []
        for loop, stride in access.strides.items():
            index = self._coordinate(loop, pins)
            terms.append(index if stride == 1 else f"({index}) * {stride}")
        if not kept and not inner:
            terms.append("tl.full([1, 1], 0, tl.int32)")
        return f"{access.buffer.name} + {' + '.join(terms)}", self.mask(kept, inner)

    def store(self, value: Value, access: Access) -> str:
        """The statement that writes a value; the pointer's type rounds."""
        inner = value.args[0] if value.op == "cast" and value.args[0].compute == value.compute else value
        narrow_integer = value.op == "cast" and value.compute == "i32"
        text = self.ref(value if narrow_integer else inner)
        place, condition = self._place(access, {})
        full = any(loop in self.plan.inner for loop in access.strides)
        shape = "[XBLOCK, RBLOCK]" if full else "[XBLOCK, 1]"
        end = f", {condition})" if condition else ")"
        place = f"tl.broadcast_to({place}, {shape})"
        return f"tl.store({place}, tl.broadcast_to({text}, {shape}){end}"

    # ── loops ─────────────────────────────────────────────────────────────────────────────────────

    def coordinates(self, loops: Sequence[Atom], index: str) -> list[str]:
        """Loop indices from a linear index, the last loop fastest."""
        lines, radix = [], 1
        total = count(loops)
        for loop in reversed(loops):
            text = index if radix == 1 else f"{index} // {radix}"
            if radix * loop.size < total:
                text = f"({text}) % {loop.size}"
            lines.append(f"{self.names[loop]} = {text}")
            radix *= loop.size
        return lines
