"""From a nest to loops: which run in parallel, which reduce, which one is the vector, what each pass does."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cuda_l1.proposers.techniques.codegen.axes import Atom, Axes, count, resolve
from cuda_l1.proposers.techniques.codegen.ir import COSTS, ITEMSIZE, Unsupported, Value
from cuda_l1.proposers.techniques.codegen.lowering import Program, contiguous
from cuda_l1.proposers.techniques.codegen.peaks import peaks_of
from cuda_l1.proposers.techniques.codegen.schedule import Nest, loops

Strides = dict[Atom, int]
Pins = Mapping[Atom, str]
"""Loops whose index is fixed to an expression while a value is computed."""


@dataclass(frozen=True, eq=False)
class Buffer:
    """Memory that kernels read or write: an argument of the generated function, a result, or a workspace."""

    name: str
    dtype: str
    strides: tuple[int, ...]
    offset: int = 0
    streamed: bool = False
    """Written past the caches: large, and read by nobody but the caller."""


@dataclass(frozen=True)
class Access:
    """How a value lies in memory: element = offset + sum of loop index times stride."""

    buffer: Buffer
    offset: int
    strides: Strides


@dataclass
class Plan:
    """A nest ready to be printed. Loops are atoms, merged where every access allows it."""

    values: list[Value]
    outer: list[Atom]
    """Kept loops, outermost first; the vector loop is not among them."""
    inner: list[Atom]
    """Reduced loops, outermost first; the vector loop last when it is one of them."""
    vector: Atom
    loads: dict[Value, Access]
    stores: list[tuple[Value, Access]]
    depends: dict[Value, frozenset[Atom]]
    levels: dict[Value, int]
    """How many reductions, one after the other, must be complete before the value can be computed."""
    axes: Axes
    merged: dict[Atom, list[Atom]] = field(default_factory=dict)
    """Loop to the atoms that it stands for, outermost first."""
    peaks: Mapping[Value, Value] = field(default_factory=dict)
    """Sums of exponentials that are carried out in the pass of their maximum, and that."""

    @property
    def accesses(self) -> list[Access]:
        """Reads of memory, then writes."""
        return [*self.loads.values(), *(access for _, access in self.stores)]

    @property
    def memory(self) -> list[str]:
        """Names of the memory that it touches, each once, in order."""
        return list(dict.fromkeys(access.buffer.name for access in self.accesses))

    @property
    def row(self) -> bool:
        """Whether the vector loop is a reduced one (a row in memory); else it is one of the kept ones."""
        return self.vector in self.inner

    @property
    def rows(self) -> int:
        """Iterations of the kept loops outside the vector."""
        return count(self.outer)

    @property
    def reduces(self) -> list[Value]:
        """Reductions that the nest itself carries out."""
        return [value for value in self.values if value.op == "reduce" and value not in self.loads]

    @property
    def scans(self) -> list[Value]:
        """Running totals that the nest itself computes."""
        return [value for value in self.values if value.op == "scan" and value not in self.loads]

    @property
    def depth(self) -> int:
        """Number of passes."""
        stored = [self.levels[value] + 1 for value, access in self.stores if set(access.strides) & set(self.inner)]
        return max([self.levels[value] for value in self.reduces] + stored, default=0)

    def reductions(self, level: int) -> list[Value]:
        """Reductions whose operands are ready in pass `level`."""
        return [value for value in self.reduces if self.levels[value] == level + 1]

    def full_stores(self, level: int) -> list[tuple[Value, Access]]:
        """Values with a reduced loop that can be stored in pass `level`."""
        inner = set(self.inner)
        return [(v, a) for v, a in self.stores if self.levels[v] == level and set(a.strides) & inner]

    def kept_stores(self) -> list[tuple[Value, Access]]:
        """Values without a reduced loop, one per kept index."""
        inner = set(self.inner)
        return [(v, a) for v, a in self.stores if not set(a.strides) & inner]

    def in_fewer_passes(self) -> Plan:
        """The same nest with `peaks`."""
        peaks = peaks_of(self.reduces)
        return replace(self, peaks=peaks, levels=_levels(self.values, self.loads, peaks))

    def work(self) -> int:
        """Elements times cost, in additions."""
        cost = sum(COSTS.get(value.op, 1) for value in self.values)
        return count([*self.outer, *self.inner, *([] if self.row else [self.vector])]) * max(1, cost // 4)


def plan_nest(nest: Nest, buffers: Mapping[Any, Buffer], shortest: int = 1) -> Plan:
    """The loops of a nest. `buffers` maps graph nodes and stored values to memory.

    A reduced vector loop of fewer than `shortest` iterations is exchanged for a longer kept one, even if that one
    strides through memory. Raises Unsupported.
    """
    axes = nest.axes()
    values = nest.with_leaves()
    members = set(nest.values)
    loads = {v: _leaf_access(axes, v, buffers) for v in values if v.op == "load" or (v not in members and _memory(v))}
    stores = [(v, _access(axes, v, buffers[v], buffers[v].strides, buffers[v].offset)) for v in nest.stored]
    reduced = axes.reduction_atoms()
    depends = _dependences(axes, values, {value: frozenset(loads[value].strides) for value in loads}, reduced)
    special = _special(axes, values)
    kept = _kept(nest, axes, set(reduced))
    accesses = [*loads.values(), *(access for _, access in stores)]
    merged: dict[Atom, list[Atom]] = {atom: [atom] for atom in [*kept, *reduced]}
    outer = _coalesce(kept, accesses, special, merged)
    inner = _coalesce(reduced, accesses, special, merged)
    vector = _vector([*outer, *inner], accesses)
    longest = max(outer, key=lambda loop: loop.size, default=vector)
    if reduced and vector.size < shortest <= longest.size and not any(v.op == "scan" for v in nest.values):
        vector = longest
    outer = _ordered([atom for atom in outer if atom is not vector], accesses)
    inner = _ordered([atom for atom in inner if atom is not vector], accesses) + [a for a in inner if a is vector]
    if any(value.op == "scan" for value in nest.values) and len(inner) != 1:
        raise Unsupported("a scan over several loops")
    if vector not in inner and vector in merged:  # one reduction per lane of the vector
        own = frozenset(merged[vector])
        depends = _dependences(axes, values, {v: depends[v] for v in loads}, reduced, own)
    levels = _levels(values, loads, {})
    return Plan(values, outer, inner, vector, loads, stores, depends, levels, axes, merged)


def _memory(value: Value) -> bool:
    return value.op not in ("const", "iota")


def _leaf_access(axes: Axes, value: Value, buffers: Mapping[Any, Buffer]) -> Access:
    if value.op == "load":
        strides, offset = value.attrs["strides"], value.attrs["offset"]
        return _access(axes, value, buffers[value.attrs["source"]], strides, offset)
    return _access(axes, value, buffers[value], buffers[value].strides, buffers[value].offset)


def _access(axes: Axes, value: Value, buffer: Buffer, strides: Sequence[int], offset: int) -> Access:
    found: Strides = {}
    for dim, stride in enumerate(strides):
        for atom in reversed(axes.coordinate(value, dim)):
            if stride:
                found[atom] = found.get(atom, 0) + stride
            stride *= atom.size
    return Access(buffer, offset, found)


def _dependences(
    axes: Axes,
    values: Sequence[Value],
    loads: Mapping[Value, frozenset[Atom]],
    reduced: Sequence[Atom],
    lanes: frozenset[Atom] = frozenset(),
) -> dict[Value, frozenset[Atom]]:
    """The loops whose index each value changes with; `lanes`: those that every reduction is made to follow."""
    found: dict[Value, frozenset[Atom]] = {}
    for value in values:
        if value in loads:
            found[value] = loads[value]
        elif value.op == "iota":
            found[value] = frozenset(axes.atoms(value))
        else:
            atoms = frozenset().union(*(found.get(arg, frozenset()) for arg in value.args))
            pin = frozenset(resolve([axes.pins[value]])) if value in axes.pins else frozenset()
            if value.op == "reduce":
                atoms = (atoms - frozenset(reduced)) | lanes
            elif value.op == "scan":
                atoms |= frozenset(reduced)
            elif value.op == "slice":
                atoms -= pin
            elif value.op == "cat":
                atoms |= pin
            elif value.op == "at":
                atoms = (found[value.args[0]] - frozenset(resolve(axes.ats[value]))) | found[value.args[1]]
            found[value] = atoms
    return found


def _special(axes: Axes, values: Sequence[Value]) -> set[Atom]:
    """Loops whose index is used as a number, or fixed: never merged with others."""
    atoms = [atom for value in values if value.op == "iota" for atom in axes.atoms(value)]
    atoms += resolve(axes.pins.values())
    return {*atoms, *(atom for chosen in axes.ats.values() for atom in resolve(chosen))}


def _kept(nest: Nest, axes: Axes, reduced: set[Atom]) -> list[Atom]:
    """Loops that are not reduced, in the order of the largest value."""
    domain, _ = loops(nest, axes)
    found: dict[Atom, None] = {}
    for value in sorted(nest.values, key=lambda v: -math.prod(v.shape)):
        found.update((atom, None) for atom in axes.atoms(value) if atom in domain)
    return [atom for atom in found if atom not in reduced]


def _coalesce(
    atoms: Sequence[Atom], accesses: Sequence[Access], special: set[Atom], merged: dict[Atom, list[Atom]]
) -> list[Atom]:
    """Merge loops that every access walks as one; updates the accesses' strides."""
    left = list(atoms)
    while pair := _mergeable(left, accesses, special):
        outer, inner = pair
        loop = Atom(outer.size * inner.size)
        merged[loop] = merged.pop(outer) + merged.pop(inner)
        left[left.index(inner)] = loop
        left.remove(outer)
        for access in accesses:
            stride = access.strides.pop(inner, 0)
            access.strides.pop(outer, None)
            if stride:
                access.strides[loop] = stride
    return left


def _mergeable(loops: list[Atom], accesses: Sequence[Access], special: set[Atom]) -> tuple[Atom, Atom] | None:
    plain = [loop for loop in loops if loop not in special]
    for outer in plain:
        for inner in plain:
            if outer is not inner and all(
                access.strides.get(outer, 0) == access.strides.get(inner, 0) * inner.size for access in accesses
            ):
                return outer, inner
    return None


def _vector(loops: Sequence[Atom], accesses: Sequence[Access]) -> Atom:
    """The loop along which most of the memory is contiguous; a loop of one iteration for a single element."""
    if not loops:
        return Atom(1)

    def contiguous_bytes(loop: Atom) -> tuple[int, int]:
        along = [access for access in accesses if access.strides.get(loop) == 1]
        return sum(count(access.strides) * ITEMSIZE[access.buffer.dtype] for access in along), loop.size

    return max(loops, key=contiguous_bytes)


def _ordered(loops: Sequence[Atom], accesses: Sequence[Access]) -> list[Atom]:
    """Loops by the stride of the largest access, largest stride first."""
    weights = sorted(accesses, key=lambda access: -count(access.strides))

    def key(loop: Atom) -> tuple[int, ...]:
        return tuple(-access.strides.get(loop, 0) for access in weights)

    return sorted(loops, key=key)


def _levels(values: Iterable[Value], loads: Mapping[Value, Access], peaks: Mapping[Value, Value]) -> dict[Value, int]:
    levels: dict[Value, int] = dict.fromkeys(loads, 0)
    for value in values:
        if value in loads:
            continue
        needed = peaks[value].args if value in peaks else value.args
        below = max((levels.get(arg, 0) for arg in needed), default=0)
        levels[value] = below + 1 if value.op == "reduce" else below
    return levels


def make_buffers(
    nests: Sequence[Nest], program: Program, inputs: Mapping[Any, str], streamed: set[Any]
) -> dict[Any, Buffer]:
    """Memory of each input node (`in0...`), piece of an output (`out0...`) and value that nests exchange (`tmp...`).

    `inputs` gives the dtype of each input node; `streamed` are output nodes to be written past the caches.
    """
    buffers: dict[Any, Buffer] = {node: Buffer(f"in{i}", dtype, ()) for i, (node, dtype) in enumerate(inputs.items())}
    read = {value for nest in nests for value in nest.with_leaves() if value not in nest.values}
    for index, (node, pieces) in enumerate(program.outputs.items()):
        past = node in streamed and not any(piece.value in read for piece in pieces)
        for piece in pieces:
            name, dtype = f"out{index}", piece.value.dtype
            buffers[piece.value] = Buffer(name, dtype, piece.strides, piece.offset, past)
    for nest in nests:
        for value in nest.stored:
            if value not in buffers:
                buffers[value] = Buffer(f"tmp{len(buffers)}", value.dtype, contiguous(value.shape))
    return buffers


def fixed_index(pin: Atom, index: int, suffix: str = "") -> dict[Atom, str]:
    """The loops of a slice, fixed to the number of the part."""
    fixed: dict[Atom, str] = {}
    for atom in reversed(resolve([pin])):
        fixed[atom] = f"{index % atom.size}{suffix}"
        index //= atom.size
    return fixed


def chosen_index(atoms: Sequence[Atom], index: str, division: str) -> dict[Atom, str]:
    """The loops of one dimension, fixed to a computed index."""
    found: dict[Atom, str] = {}
    radix = 1
    for atom in reversed(atoms):
        found[atom] = f"({index}) {division} {radix} % {atom.size}" if len(atoms) > 1 else index
        radix *= atom.size
    return found
