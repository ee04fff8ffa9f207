"""Index spaces of a set of values, brought to one set of loops.

Every dimension of every value is a product of *atoms*, loops that cannot be split further. Element-wise operations
say that dimensions of two values are the same, reshapes that two lists of dimensions enumerate the same elements;
both unify lists of atoms, splitting an atom where a list on the other side ends inside it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

from cuda_l1.proposers.techniques.codegen.ir import LEAVES, Unsupported, Value

MOST_PARTS = 4
"""Parts of a concatenation that one loop computes and chooses from."""


_births = itertools.count()


class Atom:
    """One loop of `size` iterations; once split, the loops that stand for it, outermost first."""

    __slots__ = ("born", "parts", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.parts: list[Atom] | None = None
        self.born = next(_births)

    def __repr__(self) -> str:
        return f"<{self.size}>"


def resolve(atoms: Iterable[Atom]) -> list[Atom]:
    """The atoms that stand for `atoms` now, without those of one iteration."""
    found: list[Atom] = []
    for atom in atoms:
        if atom.parts is not None:
            found += resolve(atom.parts)
        elif atom.size != 1:
            found.append(atom)
    return found


def unify(left: Sequence[Atom], right: Sequence[Atom], split: list[Atom]) -> None:
    """Make two lists of atoms enumerate the same index in the same order; what is split for it joins `split`.

    Raises Unsupported when they cannot.
    """
    a, b = resolve(left), resolve(right)
    while a and b:
        x, y = a.pop(), b.pop()
        if x is y:
            continue
        if x.size == y.size:
            x.parts = [y]
            split.append(x)
        elif x.size % y.size == 0:
            rest = Atom(x.size // y.size)
            x.parts = [rest, y]
            split.append(x)
            a.append(rest)
        elif y.size % x.size == 0:
            rest = Atom(y.size // x.size)
            y.parts = [rest, x]
            split.append(y)
            b.append(rest)
        else:
            raise Unsupported(f"dimensions of {x.size} and {y.size} have no common loops")
        a, b = resolve(a), resolve(b)
    if a or b:
        raise Unsupported("index spaces of different sizes")


class Axes:
    """The atoms of a set of values; values outside the set are leaves with atoms of their own."""

    def __init__(self, values: Sequence[Value], members: set[Value]) -> None:
        self.dims: dict[Value, list[list[Atom]]] = {}
        self.reduced: dict[Value, list[Atom]] = {}
        self.pins: dict[Value, Atom] = {}
        """Of a `slice`: the atom that it fixes. Of a `cat`: the atom that chooses the part. Of an `at`: see `ats`."""
        self.ats: dict[Value, list[Atom]] = {}
        self._split: list[Atom] = []
        self._take_in(values, members)

    def extend(self, values: Sequence[Value], members: set[Value]) -> bool:
        """Takes in `values`, none of which is here yet or read by what is here; whether that left the loops of what was
        here as they were. After `Unsupported` all is as before."""
        before = len(self._split)
        try:
            return self._take_in(values, members)
        except Unsupported:
            self.shrink(values, before)
            raise

    @property
    def splits(self) -> int:
        """How many atoms have been split so far."""
        return len(self._split)

    def shrink(self, values: Iterable[Value], splits: int) -> None:
        """Undoes the latest `extend`, before which there were so many `splits`."""
        for atom in self._split[splits:]:
            atom.parts = None
        del self._split[splits:]
        for value in values:
            for known in (self.dims, self.reduced, self.pins, self.ats):
                known.pop(value, None)

    def _take_in(self, values: Sequence[Value], members: set[Value]) -> bool:
        before, first = len(self._split), next(_births)
        for value in values:
            self._add(value, value not in members or value.op in LEAVES)
        self._align_reductions()
        same = all(atom.born > first for atom in self._split[before:])
        for value in values if same else self.dims:
            flat = self.atoms(value)
            if len(set(flat)) < len(flat):
                raise Unsupported("a value met under two orders of its dimensions")
        return same

    def _unify(self, left: Sequence[Atom], right: Sequence[Atom]) -> None:
        unify(left, right, self._split)

    def atoms(self, value: Value) -> list[Atom]:
        """The loops of a value's whole shape, outermost first."""
        return resolve(atom for dim in self.dims[value] for atom in dim)

    def _add(self, value: Value, leaf: bool) -> None:
        self.dims[value] = [[Atom(size)] for size in value.shape]
        if leaf:
            return
        rule = getattr(self, f"_on_{value.op}", self._on_pointwise)
        rule(value)

    def _align_reductions(self) -> None:
        """Reductions of the same dimensions of equal shapes run side by side."""
        first = next(iter(self.reduced), None)
        for value in self.reduced:
            if first is not None and value is not first and _alike(first, value):
                for mine, theirs in zip(self.dims[value.args[0]], self.dims[first.args[0]], strict=True):
                    self._unify(mine, theirs)

    def _on_pointwise(self, value: Value) -> None:
        own = self.dims[value]
        for arg in value.args:
            theirs = self.dims[arg]
            for back in range(1, len(theirs) + 1):
                if arg.shape[-back] == value.shape[-back]:
                    self._unify(own[-back], theirs[-back])

    def _on_reduce(self, value: Value) -> None:
        (arg,) = value.args
        dims = value.attrs["dims"]
        self.reduced[value] = [atom for dim in dims for atom in self.dims[arg][dim]]
        self.dims[value] = [[] if dim in dims else atoms for dim, atoms in enumerate(self.dims[arg])]

    def _on_scan(self, value: Value) -> None:
        (arg,) = value.args
        self.dims[value] = self.dims[arg]
        self.reduced[value] = [atom for dim in value.attrs["dims"] for atom in self.dims[arg][dim]]

    def _on_reshape(self, value: Value) -> None:
        (arg,) = value.args
        self._unify([a for dim in self.dims[value] for a in dim], [a for dim in self.dims[arg] for a in dim])

    def _on_permute(self, value: Value) -> None:
        (arg,) = value.args
        self.dims[value] = [self.dims[arg][dim] for dim in value.attrs["order"]]

    def _on_slice(self, value: Value) -> None:
        (arg,) = value.args
        dim, start = value.attrs["dim"], value.attrs["start"]
        whole, part = arg.shape[dim], value.shape[dim]
        if part == 0 or whole % part or start % part:
            raise Unsupported("a slice that is not one of equal parts")
        self.pins[value] = Atom(whole // part)
        for index, (own, theirs) in enumerate(zip(self.dims[value], self.dims[arg], strict=True)):
            self._unify([self.pins[value], *own] if index == dim else own, theirs)

    def _on_cat(self, value: Value) -> None:
        dim = value.attrs["dim"]
        if len({arg.shape for arg in value.args}) > 1 or len(value.args) > MOST_PARTS:
            raise Unsupported("a concatenation of different or many parts that is read again")
        self.pins[value] = Atom(len(value.args))
        own = [list(atoms) for atoms in self.dims[value]]
        inner = [Atom(value.args[0].shape[dim])]
        self._unify(own[dim], [self.pins[value], *inner])
        own[dim] = inner
        for arg in value.args:
            for mine, theirs in zip(own, self.dims[arg], strict=True):
                self._unify(mine, theirs)

    def _on_flip(self, value: Value) -> None:
        raise Unsupported("a reversal that is read again")

    def _on_at(self, value: Value) -> None:
        source, index = value.args
        dim = value.attrs["dim"]
        self.ats[value] = self.dims[source][dim]
        for position, own in enumerate(self.dims[value]):
            if position != dim:
                self._unify(own, self.dims[source][position])
            self._unify(own, self.dims[index][position])

    def reduction_atoms(self) -> list[Atom]:
        """The loops that every reduction of the set runs over. Raises Unsupported when they differ."""
        found: list[Atom] = []
        for atoms in self.reduced.values():
            resolved = resolve(atoms)
            if found and set(found) != set(resolved):
                raise Unsupported("reductions over different loops")
            found = resolved
        return found

    def coordinate(self, value: Value, dim: int) -> list[Atom]:
        """The loops that make up the index of one dimension."""
        return resolve(self.dims[value][dim])


def _alike(left: Value, right: Value) -> bool:
    return left.args[0].shape == right.args[0].shape and left.attrs["dims"] == right.attrs["dims"]


def count(atoms: Iterable[Atom]) -> int:
    """Iterations of a nest of loops."""
    return math.prod(atom.size for atom in atoms)
