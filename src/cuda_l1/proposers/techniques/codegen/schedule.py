"""Which values are computed together: the expressions of a region, cut into loop nests."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass, field

from cuda_l1.proposers.techniques.codegen.axes import Atom, Axes, count, resolve
from cuda_l1.proposers.techniques.codegen.ir import COSTS, LEAVES, VIEWS, Unsupported, Value, is_pointwise, topological

CHEAP = 4
"""Additions that are computed again rather than stored for a second nest."""


@dataclass
class Nest:
    """Values computed in one set of loops; what it reads from outside are loads or stored values of earlier nests."""

    values: list[Value] = field(default_factory=list)
    """Computed values in order, leaves not among them."""
    stored: list[Value] = field(default_factory=list)
    """Those that leave the nest through memory."""
    grown: Axes | None = None
    """While nests are made: the loops of `values`, to be extended."""
    is_whole: bool = False
    """Whether it was found to fit."""

    def with_leaves(self) -> list[Value]:
        """Every value the nest touches, arguments first."""
        members = set(self.values)
        order: dict[Value, None] = {}
        for value in self.values:
            for arg in value.args:
                if arg not in members:
                    order.setdefault(arg)
            order.setdefault(value)
        return list(order)

    def axes(self) -> Axes:
        """The loops of the nest. Raises Unsupported when there is no common set."""
        return Axes(self.with_leaves(), set(self.values))


def schedule(outputs: Sequence[Value]) -> list[Nest]:
    """Nests in the order in which they run. Raises Unsupported when a value fits no nest, not even one of its own."""
    nests: list[Nest] = []
    wanted = set(outputs)
    for value in topological(outputs):
        if value in wanted or (value.op not in LEAVES and value.op not in VIEWS):
            _place(value, nests, wanted)
    nests = _inline_cheap(nests, wanted)
    _mark_stored(nests, wanted)
    nests = [nest for nest in nests if nest.stored]
    for nest in nests:
        check(nest)
    return nests


def _place(value: Value, nests: list[Nest], wanted: set[Value]) -> None:
    """Put a value, with the views it looks through, into the last nests that compute or read what it needs.

    Nests are merged where one set of loops computes them all; a view belongs to every nest that looks through it.
    """
    added = _with_views(value, wanted)
    needed = {arg for step in added for arg in step.args}
    makers = [nest for nest in nests if needed & set(nest.values)]
    readers = [nest for nest in nests if nest not in makers and _shares_memory(nest, needed)]
    for homes in ([*makers, *readers], makers, readers) if makers else (readers,):
        homes = [nest for nest in nests if nest in homes]
        for start in range(len(homes)):
            if _merge(homes[start:], added, nests, wanted):
                return
    nests.append(Nest(added))


def _with_views(value: Value, wanted: set[Value]) -> list[Value]:
    """The value behind the views that lead to it, arguments first."""
    views = [arg for arg in value.args if arg.op in VIEWS and arg not in wanted]
    return [*dict.fromkeys(step for view in views for step in _with_views(view, wanted)), value]


def _shares_memory(nest: Nest, needed: set[Value]) -> bool:
    """Whether a nest reads some array that is needed too; small ones are no reason to run together."""
    return any(arg in needed for arg in _outside(nest) if arg.op == "load" and count_of(arg.shape) >= 64)


def count_of(shape: Sequence[int]) -> int:
    """Elements of a shape."""
    return math.prod(shape)


def _merge(group: Sequence[Nest], added: Sequence[Value], nests: list[Nest], wanted: set[Value]) -> bool:
    """Replace `group` by one nest that also computes `added`, if that is one set of loops."""
    if not _may_merge(group, added, nests):
        return False
    merged = _grown(group[0], added, wanted) if len(group) == 1 else _joined(group, added, wanted)
    if merged is None:
        return False
    nests[nests.index(group[-1])] = merged
    for nest in group[:-1]:
        nests.remove(nest)
    return True


def _joined(group: Sequence[Nest], added: Sequence[Value], wanted: set[Value]) -> Nest | None:
    """All of `group` and `added` in one set of loops."""
    merged = Nest(list(dict.fromkeys([*(value for nest in group for value in nest.values), *added])))
    merged.is_whole = fits(merged, wanted)
    return merged if merged.is_whole else None


def _grown(nest: Nest, added: Sequence[Value], wanted: set[Value]) -> Nest | None:
    """As `_joined`, but only what `added` changes is looked at: an unrolled recurrence makes nests of thousands."""
    members = set(nest.values)
    fresh = [value for value in added if value not in members]
    try:
        axes = nest.grown = nest.grown or nest.axes()
        if any(value in axes.dims for value in fresh):  # a leaf becomes a member
            return _joined([nest], added, wanted)
        before, splits = loops(nest, axes), axes.splits
        new = [value for value in Nest(fresh).with_leaves() if value not in axes.dims]
        same = axes.extend(new, set(fresh))
    except Unsupported:
        return None
    merged = Nest([*nest.values, *fresh], grown=axes, is_whole=True)
    chosen = any(value in axes.pins or value in axes.ats for value in fresh)
    unchanged = members if nest.is_whole and same and not chosen else set()
    if _computes(merged, axes, wanted, unchanged, before):
        return merged
    axes.shrink(new, splits)
    return None


def _may_merge(group: Sequence[Nest], added: Sequence[Value], nests: Sequence[Nest]) -> bool:
    """Whether all of `group`, and `added`, may run where its last nest runs.

    Nothing in between reads what they compute, and what is added needs nothing that is made later.
    """
    late = {value for nest in nests[nests.index(group[-1]) + 1 :] for value in nest.values}
    if any(arg in late for step in added for arg in step.args):
        return False
    first, last = nests.index(group[0]), nests.index(group[-1])
    made = {value for nest in group[:-1] for value in nest.values}
    between = [nest for nest in nests[first : last + 1] if nest not in group]
    return not any(arg in made for nest in between for value in nest.values for arg in value.args)


def fits(nest: Nest, wanted: set[Value]) -> bool:
    """Whether one set of loops computes the nest without computing anything expensive more often than needed."""
    try:
        axes = nest.axes()
    except Unsupported:
        return False
    return _computes(nest, axes, wanted)


def _computes(
    nest: Nest,
    axes: Axes,
    wanted: set[Value],
    unchanged: Container[Value] = (),
    before: tuple[set[Atom], set[Atom]] | None = None,
) -> bool:
    """As `fits`; where the loops are still those `before`, the `unchanged` values fit as they did."""
    try:
        domain, reduced = loops(nest, axes)
    except Unsupported:
        return False
    if len(reduced) > 1 and any(value.op == "scan" for value in nest.values):
        return False
    values = [value for value in nest.values if value not in unchanged] if before == (domain, reduced) else nest.values
    return all(_fits_domain(axes, value, domain, reduced, value in wanted) for value in values)


def loops(nest: Nest, axes: Axes) -> tuple[set[Atom], set[Atom]]:
    """All loops of a nest and, of these, the reduced ones. A loop that only slices and lookups fix is none."""
    reduced = set(axes.reduction_atoms())
    used = {arg for value in nest.values for arg in value.args}
    ends = [value for value in nest.values if value not in used or value in nest.stored or value.op == "scan"]
    ends += [arg for value in nest.values if value.op == "reduce" for arg in value.args]
    return {atom for value in ends for atom in axes.atoms(value)} | reduced, reduced


def fixed(axes: Axes) -> set[Atom]:
    """Loops that a slice fixes or a lookup chooses: values behind them are computed for that index only."""
    pins = [pin for value, pin in axes.pins.items() if value.op == "slice"]
    return set(resolve([*pins, *(atom for atoms in axes.ats.values() for atom in atoms)]))


def _fits_domain(axes: Axes, value: Value, domain: set[Atom], reduced: set[Atom], kept: bool) -> bool:
    """Full values, one value per kept index, or something small and cheap that may be computed in every iteration."""
    atoms = set(axes.atoms(value))
    if atoms in (domain, domain - reduced):
        return True
    if kept or value.op in ("reduce", "scan"):
        return False
    free = atoms - (fixed(axes) - domain)
    if not free <= domain:
        return False
    small = count(free) * 64 <= count(domain)
    return value.op in VIEWS or free in (domain, domain - reduced) or COSTS.get(value.op, 1) <= CHEAP or small


def _inline_cheap(nests: list[Nest], wanted: set[Value]) -> list[Nest]:
    """Compute a cheap value again in a nest that would otherwise read it back from memory."""
    for nest in nests:
        for value in topological(nest.values):
            _pull(value, nest, nests, wanted)
    return nests


def _pull(value: Value, nest: Nest, nests: list[Nest], wanted: set[Value]) -> None:
    if value in nest.values or value in wanted or not any(value in other.values for other in nests):
        return
    chain = topological([value])
    loads = [leaf for leaf in chain if leaf.op == "load" and len(leaf.shape) and leaf.shape != (1,)]
    work = [step for step in chain if step.op not in LEAVES]
    cost = sum(COSTS.get(step.op, 1) for step in work if step.op not in VIEWS)
    if len(loads) > 1 or cost > CHEAP or not all(is_pointwise(step) or step.op in VIEWS for step in work):
        return
    members = set(nest.values) | set(work)
    trial = Nest([step for step in topological(nest.values) if step in members])
    if fits(trial, wanted):
        nest.values = trial.values


def _mark_stored(nests: Sequence[Nest], wanted: set[Value]) -> None:
    """What is wanted or read by a later nest is stored once, by the first nest that computes it."""
    read: set[Value] = set()
    for nest in reversed(nests):
        nest.stored = [value for value in nest.values if value in wanted or value in read]
        read |= _outside(nest)
    done: set[Value] = set()
    for nest in nests:
        nest.stored = [value for value in nest.stored if value not in done]
        done |= set(nest.stored)


def _outside(nest: Nest) -> set[Value]:
    """What a nest reads that it does not compute itself."""
    members = set(nest.values)
    return {arg for value in nest.values for arg in value.args if arg not in members}


def check(nest: Nest) -> None:
    """Raise Unsupported unless every stored value covers the nest's loops or exactly the kept ones."""
    axes = nest.axes()
    domain, reduced = loops(nest, axes)
    for value in nest.stored:
        atoms = set(axes.atoms(value))
        if atoms not in (domain, domain - reduced):
            raise Unsupported(f"{value} covers only a part of its loops")
