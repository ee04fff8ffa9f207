"""The state of a model: parameters, buffers and plain tensor attributes of every submodule, by name.

Ten KernelBench tasks keep hidden states as plain attributes, which `.double()`, `.to()` and `state_dict()` do not see.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from . import nesting
from .reading import AT_ONCE
from .tensors import extent, overlaps

_copy = torch.Tensor.copy_
_equal = torch.equal
_eq, _ne, _either, _both, _all, _stack = torch.eq, torch.ne, torch.logical_or, torch.logical_and, torch.all, torch.stack
_no_grad = torch.no_grad
_inference_mode = torch.inference_mode
_no_dispatch = torch.Tensor.__torch_dispatch__
_no_functions = torch._C.DisableTorchFunctionSubclass
_scripted = torch.jit.ScriptModule
_named_modules = torch.nn.Module.named_modules
_OWN = frozenset(vars(torch.nn.Module())) - {"training"}
"""Attributes in which every module keeps its parameters, buffers, children and hooks."""
_PARTS = re.compile(r"[a-z]+|\d+")
State = dict[str, torch.Tensor]


def _is_written(tensor: torch.Tensor) -> bool:
    """Whether torch compares and writes it: sparse, oneDNN, nested and meta tensors, and those of classes that answer
    for themselves, are no state but something that a module keeps, as an object of its own would be."""
    plain = tensor.layout is torch.strided and not tensor.is_meta and not tensor.is_nested
    return plain and type(tensor).__torch_dispatch__ is _no_dispatch


def modules(model: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Module]]:
    """Every module in it by each of its names, itself under the empty one. Asks none of them: what they define would be
    called where nobody times it. Those of TorchScript keep their own."""
    if isinstance(model, _scripted):
        yield from _named_modules(model, remove_duplicate=False)
        return
    yield "", model
    for name, child in dict.items(vars(model)["_modules"]):
        if child is not None:
            yield from ((f"{name}.{inner}" if inner else name, module) for inner, module in modules(child))


def _once(model: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Module]]:
    """The same, each module by its first name."""
    seen = set[int]()
    for name, module in modules(model):
        if id(module) not in seen:
            seen.add(id(module))
            yield name, module


def _members(model: torch.nn.Module, where: str) -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters or buffers, by each of their names."""
    for prefix, module in modules(model):
        kept = getattr(module, where) if isinstance(module, _scripted) else vars(module)[where]
        for key, value in kept.items():
            if value is not None:
                yield f"{prefix}.{key}" if prefix else key, value


def _plain_attributes(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    for prefix, module in _once(model):
        for key, value in vars(module).items():
            if isinstance(value, torch.Tensor):
                yield _joined(prefix, key), value


def _joined(prefix: str, key: str) -> str:
    return f"{prefix}.{key}" if prefix else key


def _beginnings(names: Iterable[str]) -> set[str]:
    """All names of which one of these is a part, themselves included: of `a.b.c` also `a.b` and `a`."""
    return {name[:end] for name in names for end in (*(m.start() for m in re.finditer(r"\.", name)), len(name))}


def kept(module: torch.nn.Module) -> dict[str, Any]:
    """A module's attributes without those that every module has: what its author keeps there."""
    return {key: value for key, value in vars(module).items() if key not in _OWN}


def _nested_attributes(
    model: torch.nn.Module, parameters: Collection[int], within: Collection[str] | None
) -> Iterator[tuple[str, torch.Tensor]]:
    """Without those whose `id` is among `parameters`: these are state under names of their own. `within`: names of the
    attributes that are looked into; None: all."""
    for prefix, module in _once(model):
        for key, value in kept(module).items():
            whole = _joined(prefix, key)
            if within is not None and whole not in within:
                continue
            for inner, item in nesting.tensors(value):
                if id(item) not in parameters:
                    yield f"{whole}.{inner}", item


def collect(model: torch.nn.Module, wanted: Collection[str] | None = None) -> State:
    """Live tensors by name: parameters, buffers, tensor attributes, and tensors inside of what other attributes hold
    (`nesting`); those that torch can compare and write, and that have a value of their own: an attribute in the memory
    of a parameter or buffer follows that. `wanted`: names that it is about, so that objects without any of these are
    not looked into, which a candidate may have large ones of; None: all."""
    state: State = dict(_members(model, "_parameters"))
    parameters = {id(tensor) for tensor in state.values()}
    state.update(_members(model, "_buffers"))
    owned = [_stretch(tensor) for tensor in state.values() if _is_written(tensor)]
    attributes = dict(_plain_attributes(model))
    within = None if wanted is None else _beginnings(n for n in wanted if n not in state and n not in attributes)
    attributes.update(_nested_attributes(model, parameters, within))
    written = {name: tensor for name, tensor in (state | attributes).items() if _is_written(tensor)}
    return {n: t for n, t in written.items() if n in state or not _lies_in(_stretch(t), owned)}


def _stretch(tensor: torch.Tensor) -> tuple[int, int]:
    """From where to where it lies in memory, in bytes."""
    begin = tensor.data_ptr()
    return begin, begin + extent(tensor) * tensor.element_size()


def _lies_in(stretch: tuple[int, int], others: list[tuple[int, int]]) -> bool:
    begin, end = stretch
    return begin < end and any(first <= begin and end <= last for first, last in others)


def kinds(model: torch.nn.Module) -> dict[str, str]:
    """`parameter`, `buffer` or `attribute` for each name of `collect`."""
    named = dict.fromkeys(collect(model), "attribute")
    named.update(dict.fromkeys((name for name, _ in _members(model, "_buffers")), "buffer"))
    named.update(dict.fromkeys((name for name, _ in _members(model, "_parameters")), "parameter"))
    return named


_READ = 1 << 20
"""Elements of a parameter up to which reading them all costs nothing."""


def marks(model: torch.nn.Module) -> dict[str, Any]:
    """What tells, without reading large parameters, that a call has written to a tensor: equal before and after where
    it has not. None where only its values tell."""
    known = kinds(model)
    return {
        name: None
        if known[name] != "parameter" or tensor.numel() <= _READ or tensor.is_inference()
        else (id(tensor), tensor._version)
        for name, tensor in collect(model).items()
    }


def saved_buffers(model: torch.nn.Module) -> set[str]:
    """Names of the buffers that a checkpoint holds."""
    return {
        f"{prefix}.{key}" if prefix else key
        for prefix, module in modules(model)
        for key, value in module._buffers.items()
        if value is not None and key not in module._non_persistent_buffers_set
    }


def snapshot(model: torch.nn.Module) -> State:
    """A copy of the state."""
    return {name: tensor.detach().clone() for name, tensor in collect(model).items()}


def restore(model: torch.nn.Module, saved: Mapping[str, torch.Tensor]) -> None:
    """Bring the state back. Values are copied into the tensors that are there, so that version counters move; an
    attribute that was replaced by another shape, dtype or device, or whose elements share memory, is set anew. What has
    its values already is not written to: its version counter stays."""
    _put(model, saved)


def _put(model: torch.nn.Module, values: Mapping[str, torch.Tensor]) -> None:
    """Values for the tensors that the model keeps under these names, or for others in their places."""
    with _no_functions(), _no_grad():  # a tensor's class may define what is called, too
        _lay(model, values)


def _lay(model: torch.nn.Module, values: Mapping[str, torch.Tensor]) -> None:
    live = collect(model, values.keys())
    kept = [name for name, value in values.items() if name in live and _same_kind(live[name], value)]
    alike = same_each([(live[name], values[name]) for name in kept])
    there = {name for name, is_alike in zip(kept, alike, strict=True) if is_alike}
    written = {name for name in kept if name not in there and not overlaps(live[name])}
    for name, value in values.items():
        if name in written:
            write(live[name], value)
        elif name not in there:
            _assign(model, name, value.clone())


def write(tensor: torch.Tensor, value: torch.Tensor) -> None:
    """Copy values into a tensor, which may have been made in inference mode: only there it can be written. The version
    counters of others move there too."""
    with _inference_mode():
        _copy(tensor, value)


def _same_kind(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.device == b.device


def _assign(model: torch.nn.Module, name: str, value: torch.Tensor) -> None:
    owner, key, path = _owner(dict(modules(model)), name)
    if key in owner._parameters:
        owner._parameters[key] = torch.nn.Parameter(value, requires_grad=False)
    elif key in owner._buffers:
        owner._buffers[key] = value
    else:
        vars(owner)[key] = nesting.placed(vars(owner).get(key), path, value) if path else value


def _owner(known: Mapping[str, torch.nn.Module], name: str) -> tuple[torch.nn.Module, str, list[str]]:
    """The module that keeps what `name` says, its attribute, and the path inside that."""
    parts = name.split(".")
    depth = next(n for n in range(len(parts) - 1, -1, -1) if ".".join(parts[:n]) in known)
    return known[".".join(parts[:depth])], parts[depth], parts[depth + 1 :]


def attribute_of(model: torch.nn.Module, name: str) -> str:
    """The name of the attribute in which what `collect` names so lies; empty where it is the attribute itself."""
    _, _, path = _owner(dict(modules(model)), name)
    return name.removesuffix("".join(f".{part}" for part in path)) if path else ""


def attributes(model: torch.nn.Module, wanted: Collection[str] | None = None) -> dict[str, Callable[[], Any]]:
    """What gives buffers and plain attributes that hold tensors, or could (None, containers, objects), back as they
    are now, by name: those that hold one of the tensors `wanted`, or all."""
    found, within = {}, None if wanted is None else _beginnings(wanted)
    for prefix, module in _once(model):
        for key, value in {**kept(module), **module._buffers}.items():
            whole = _joined(prefix, key)
            is_asked = within is None or whole in within
            if is_asked and (value is None or isinstance(value, torch.Tensor) or nesting.is_nest(value)):
                found[whole] = nesting.shell(value)
    return found


def reinstate(model: torch.nn.Module, before: Mapping[str, Callable[[], Any]], changed: Iterable[str]) -> None:
    """Buffers and attributes among `changed` (names of `collect`) get back what they held `before`; new ones vanish.

    After a call one of them may be a view of an input or of an output: `restore` must not write into that.
    """
    known = dict(modules(model))
    wholes = {}
    for name in changed:
        owner, key, path = _owner(known, name)
        wholes[name.removesuffix("".join(f".{part}" for part in path))] = owner, key
    for whole, (owner, key) in wholes.items():
        if key in owner._parameters:
            continue
        if whole in before:
            store = owner._buffers if key in owner._buffers else owner.__dict__
            store[key] = before[whole]()
        else:
            owner.__dict__.pop(key, None)


def numbers(model: torch.nn.Module) -> dict[tuple[torch.nn.Module, str], int | float]:
    """Plain attributes that are Python numbers, truth values left out, and those in what others hold, by module and
    name."""
    found: dict[tuple[torch.nn.Module, str], int | float] = {}
    for _, module in _once(model):
        for key, value in kept(module).items():
            inside = [("", value)] if type(value) in (int, float) else nesting.numbers(value)
            found.update(((module, f"{key}.{path}" if path else key), number) for path, number in inside)
    return found


def put_numbers(values: Mapping[tuple[torch.nn.Module, str], int | float]) -> None:
    """Bring such numbers back, those that changed."""
    for (module, name), value in values.items():
        key, *path = name.split(".")
        own = vars(module)
        own[key] = nesting.placed(own.get(key), path, value) if path else value


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal in shape, dtype and values (NaN equals itself, infinities only themselves)."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if _equal(a, b):
        return True
    if a.is_complex():
        return same(torch.view_as_real(a), torch.view_as_real(b))
    if not a.is_floating_point() or a.dtype.itemsize < 2:
        return False
    nans = a.isnan()
    return _equal(nans, b.isnan()) and _equal(a.masked_fill(nans, 0), b.masked_fill(nans, 0))


def same_each(pairs: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> list[bool]:
    """`same` for each pair, with one wait for a GPU in all where that waits for each."""
    quick = [pair for pair in pairs if _is_quick(*pair)]
    flags = iter(_stack([_is_same(*pair) for pair in quick]).tolist() if quick else ())
    return [bool(next(flags)) if _is_quick(*pair) else same(*pair) for pair in pairs]


def _is_quick(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether a GPU can say of both that they are `same` without anybody waiting for it."""
    if not (a.is_cuda and _same_kind(a, b) and 0 < a.numel() <= AT_ONCE):
        return False
    return not a.is_complex() and (a.dtype.itemsize > 1 or not a.is_floating_point())


def _is_same(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    equal = _eq(a, b)
    if a.is_floating_point():
        equal = _either(equal, _both(_ne(a, a), _ne(b, b)))
    return _all(equal)


@dataclass
class Partners:
    """Which tensor of the candidate holds which tensor of the reference."""

    partner: dict[str, str] = field(default_factory=dict)
    """Reference name -> candidate name."""
    transposed: set[str] = field(default_factory=set)
    """Of the reference's, those that their partner holds as a matrix of columns for rows, see `as_held`."""
    reshaped: dict[str, tuple[torch.Size, torch.Size]] = field(default_factory=dict)
    """Of the reference's, those that have another shape in their partner: that shape, and their own."""
    unmapped: list[str] = field(default_factory=list)
    guessed: list[str] = field(default_factory=list)
    """Of the reference's, those that were given one of several equal tensors whose names say nothing."""
    unlike: list[str] = field(default_factory=list)
    """Of the reference's, those whose partner has their name and other values, as constructed."""
    by_method: bool = False
    """The candidate has `load_reference(state_dict)`."""

    def as_held(self, name: str, value: torch.Tensor) -> torch.Tensor:
        """A value of the reference's as its partner holds it."""
        laid = value.flatten(1).t() if name in self.transposed else value
        return laid.reshape(self.reshaped[name][0]) if name in self.reshaped else laid

    def as_own(self, name: str, held: torch.Tensor | None) -> torch.Tensor | None:
        """What a partner holds in the shape of the reference's, where that is a view of it; else as it is."""
        if held is None or name in self.transposed or name not in self.reshaped or not held.is_contiguous():
            return held
        shape, own = self.reshaped[name]
        return held.view(own) if held.shape == shape else held


def match(reference: Mapping[str, torch.Tensor], model: torch.nn.Module) -> Partners:
    """Find each reference tensor's partner: (1) name and shape, (2) equal bytes under the public seed, also transposed
    or in another shape, of several, as constants have them, by similar names, else by order, (3) the candidate's own
    `load_reference`, also in place of a pair by order."""
    result = Partners(by_method=callable(getattr(model, "load_reference", None)))
    live = collect(model)
    free = dict(live)
    for name, value in reference.items():
        if name in free and free[name].shape == value.shape and free[name].dtype == value.dtype:
            result.partner[name] = name
            del free[name]
    result.unlike = [name for name in result.partner if not same(live[name], reference[name])]
    missing = {n: value for n, value in reference.items() if n not in result.partner and value.numel()}
    result.partner.update(_paired(missing, free))
    result.guessed = [name for name in missing if _is_guessed(name, result.partner.get(name), missing, free)]
    turned = {n: value.t() for n, value in missing.items() if n not in result.partner and value.dim() == 2}
    found = _paired(turned, {n: tensor for n, tensor in free.items() if n not in result.partner.values()})
    result.partner.update(found)
    result.transposed.update(found)
    if result.by_method:  # it knows better
        result.partner = {name: other for name, other in result.partner.items() if name not in result.guessed}
        result.guessed = []
    else:
        _pair_in_other_shapes(result, missing, free)
    result.unmapped = [name for name in missing if name not in result.partner]
    return result


def _paired(wanted: Mapping[str, torch.Tensor], free: Mapping[str, torch.Tensor]) -> dict[str, str]:
    """Names of `wanted` with those of equal tensors in `free`, each of which is taken once: the most similar names
    first, others in order."""
    pairs = [(one, other) for one, value in wanted.items() for other in _equals(value, free)]
    found: dict[str, str] = {}
    for one, other in sorted(pairs, key=lambda pair: -_likeness(*pair)):
        if one not in found and other not in found.values():
            found[one] = other
    return found


def _pair_in_other_shapes(
    result: Partners, missing: Mapping[str, torch.Tensor], free: Mapping[str, torch.Tensor]
) -> None:
    """Add pairs of tensors that hold the same elements in another shape, as a convolution's weight does in a product:
    in their order, or as a matrix of what each output reads, transposed. Constants by similar names alone: a workspace
    may be of zeros, too."""
    for turned in (False, True):
        left = {n: t for n, t in missing.items() if n not in result.partner and (t.dim() > 2 or not turned)}
        sizes = {value.numel() for value in left.values()}
        taken = set(result.partner.values())
        others = {n: t.flatten() for n, t in free.items() if n not in taken and t.numel() in sizes}
        wanted = {n: (t.flatten(1).t() if turned else t).flatten() for n, t in left.items()} if others else {}
        for name, other in _paired(wanted, others).items():
            if _is_constant(wanted[name]) and not _likeness(name, other):
                continue
            result.partner[name] = other
            result.reshaped[name] = free[other].shape, missing[name].shape
            result.transposed.update({name} if turned else ())
            result.guessed += [name] if _is_guessed(name, other, wanted, others) else []


def _is_constant(flat: torch.Tensor) -> bool:
    return same(flat, flat[:1].expand_as(flat))


def _is_guessed(
    name: str, partner: str | None, wanted: Mapping[str, torch.Tensor], free: Mapping[str, torch.Tensor]
) -> bool:
    """Whether a pair of `_paired` is one of several that were as good."""
    if partner is None or _likeness(name, partner):
        return False
    return all(len(_equals(wanted[name], tensors)) > 1 for tensors in (wanted, free))


def _equals(value: torch.Tensor, tensors: Mapping[str, torch.Tensor]) -> list[str]:
    """Names of those that are equal to `value`."""
    return [name for name, tensor in tensors.items() if _may_be(tensor, value) and same(tensor, value)]


def _may_be(a: torch.Tensor, b: torch.Tensor) -> bool:
    """A first look, at one row: few tensors of one shape are equal, and many may have it."""
    return a.shape == b.shape and same(a[:1].flatten()[:64], b[:1].flatten()[:64]) if a.dim() else same(a, b)


def _likeness(a: str, b: str) -> int:
    """How many parts of a name (words, numbers) are in the other one in the same order, where all of one of them are;
    else nothing: numbers alone say little, since some count from one."""
    short, long = sorted((_PARTS.findall(a.lower()), _PARTS.findall(b.lower())), key=len)
    rest = iter(long)
    return len(short) if all(part in rest for part in short) else 0


def load_reference_state(model: torch.nn.Module, values: Mapping[str, torch.Tensor], mapping: Partners) -> None:
    """Write reference values into the candidate where they are others, under no_grad by `copy_`: honest packers watch
    version counters, each of all that it packs."""
    with _no_grad():
        if mapping.unmapped and mapping.by_method:
            copies = {name: value.clone() for name, value in values.items()}  # it may keep what it is given
            model.load_reference(copies)  # type: ignore[operator]
            return
        partners = [(name, mapping.partner[name]) for name in values if name in mapping.partner]
        _put(model, {other: mapping.as_held(n, values[n]) for n, other in partners})


def overwritten(
    model: torch.nn.Module, base: Mapping[str, torch.Tensor], mapping: Partners, changed: Collection[str]
) -> list[str]:
    """Names of the reference's state whose partners hold other values than `base`, save what the reference itself
    changes. What a candidate took out, keeps in another form or loads by a method of its own is its own matter, and so
    is a plain attribute of another name: a workspace may have been all zeros, too."""
    if mapping.unmapped and mapping.by_method:
        return []
    live, kept = collect(model), kinds(model)
    found = []
    for name, partner in mapping.partner.items():
        now, before = live.get(partner), base.get(partner)
        if name in changed or now is None or before is None or (name != partner and kept[partner] == "attribute"):
            continue
        if _same_kind(now, before) and not same(now, before):
            found.append(name)
    return found
