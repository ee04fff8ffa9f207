"""What a module keeps in an attribute beside single tensors: lists, tuples, dicts, and objects of classes that the task
or the candidate defines, in each other.

Nothing that a candidate defines is called: containers are read by the methods of the built-in types, and objects by the
descriptors that Python makes for them.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from types import GetSetDescriptorType, MemberDescriptorType, SimpleNamespace
from typing import Any

import torch

_tensor, _module = torch.Tensor, torch.nn.Module
_attribute_of_class = type.__getattribute__
_MAPPINGS, _LISTS = (dict, OrderedDict, defaultdict), (list, deque)
_OWN_MODULES = ("reference_task", "candidate")
"""Names under which the files of a task and of a candidate are executed."""
_DEPTH, _ITEMS = 4, 4096
"""So deep, and among so many items of each container, tensors are looked for."""


def _is_tuple(value: Any) -> bool:
    """A tuple, also a named one, that is read as every tuple is."""
    return isinstance(value, tuple) and _attribute_of_class(type(value), "__iter__") is tuple.__iter__


def _descriptors(value: Any) -> tuple[list[Any], list[tuple[str, Any]]] | None:
    """Where an object of an own class keeps its attributes: in a dict, and in slots. None of any other value."""
    cls = type(value)
    own = cls is SimpleNamespace or _attribute_of_class(cls, "__module__") in _OWN_MODULES
    if not own or isinstance(value, _tensor | _module | type | tuple | list | dict):
        return None
    dicts, slots = [], []
    for base in _attribute_of_class(cls, "__mro__"):
        for name, member in _attribute_of_class(base, "__dict__").items():
            if name == "__dict__":
                dicts.append(member)
            elif type(member) is MemberDescriptorType:
                slots.append((name, member))
    is_plain = all(type(each) in (GetSetDescriptorType, MemberDescriptorType) for each in dicts)
    return (dicts[:1], slots) if is_plain else None


def is_record(value: Any) -> bool:
    """Whether it is an object of an own class."""
    return _descriptors(value) is not None


def _fields(value: Any) -> dict[str, Any]:
    """Attributes of an object of an own class; none of any other value."""
    if (found := _descriptors(value)) is None:
        return {}
    dicts, slots = found
    fields = dict(dicts[0].__get__(value)) if dicts else {}
    for name, member in slots:
        try:
            fields[name] = member.__get__(value)
        except AttributeError:  # it holds nothing
            continue
    return fields


def _set_fields(value: Any, fields: dict[str, Any]) -> None:
    dicts, slots = _descriptors(value) or ([], [])
    names = {name for name, _ in slots}
    if dicts:
        own = dicts[0].__get__(value)
        own.clear()
        own.update((name, item) for name, item in fields.items() if name not in names)
    for name, member in slots:
        if name in fields:
            member.__set__(value, fields[name])


def _held(value: Any) -> Collection[tuple[Any, Any]]:
    """Index, key or name, and what is there, of all that lies directly in a value."""
    if type(value) in _MAPPINGS:
        return dict.items(value)
    if type(value) in _LISTS or _is_tuple(value):
        kind = tuple if isinstance(value, tuple) else type(value)
        return list(enumerate(kind.__iter__(value)))
    return _fields(value).items()


def _rebuilt(value: Any, items: Sequence[Any]) -> Any:
    """A container like `value` with other items in the same places; an object itself, with them for attributes."""
    if type(value) in _MAPPINGS:
        made = value.copy()
        made.update(zip(dict.keys(value), items, strict=True))
        return made
    if type(value) is deque:
        return deque(items, value.maxlen)
    if isinstance(value, tuple):
        return tuple.__new__(type(value), items)
    if type(value) is list:
        return list(items)
    _set_fields(value, dict(zip(_fields(value), items, strict=True)))
    return value


def is_nest(value: Any) -> bool:
    """Whether it is a container or an object that this module looks into."""
    return type(value) in (*_MAPPINGS, *_LISTS) or _is_tuple(value) or is_record(value)


def _name(place: Any) -> str | None:
    """A part of a tensor's name; none of keys that cannot be one, or whose text their own class would give."""
    return str(place) if type(place) in (str, int) and "." not in str(place) else None


def tensors(value: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors in a container or an object by their places in it, whose parts are joined by dots."""
    return _leaves(value, lambda item: isinstance(item, _tensor))


def numbers(value: Any) -> Iterator[tuple[str, int | float]]:
    """The same of Python's numbers, truth values left out."""
    return _leaves(value, lambda item: type(item) in (int, float))


def _leaves(value: Any, is_wanted: Callable[[Any], bool], depth: int = 0) -> Iterator[tuple[str, Any]]:
    if depth == _DEPTH or isinstance(value, _tensor):
        return
    for place, item in islice(_held(value), _ITEMS):
        if (name := _name(place)) is None:
            continue
        if is_wanted(item):
            yield name, item
        else:
            yield from ((f"{name}.{inner}", leaf) for inner, leaf in _leaves(item, is_wanted, depth + 1))


def map_in_place(value: Any, function: Callable[[torch.Tensor], torch.Tensor], depth: int = 0) -> Any:
    """A value with what `function` makes of every tensor in it: containers and objects themselves, which others may
    hold, too, and tuples anew."""
    if isinstance(value, _tensor):
        return function(value)
    if depth > _DEPTH or not is_nest(value):
        return value
    return _filled(value, [map_in_place(item, function, depth + 1) for _, item in _held(value)])


def _filled(value: Any, items: Sequence[Any]) -> Any:
    """A container or object with other items in the same places; a tuple anew where one is another."""
    if type(value) in _MAPPINGS:
        value.update(zip(list(dict.keys(value)), items, strict=True))
    elif type(value) in _LISTS:
        for index, item in enumerate(items):
            value[index] = item
    elif any(a is not b for (_, a), b in zip(_held(value), items, strict=True)):
        return _rebuilt(value, items)
    return value


def with_items(value: Any, function: Callable[[Any], Any]) -> Any:
    """A value with what `function` makes of all that lies directly in it: a container anew where one of its items is
    another then, an object itself."""
    if not is_nest(value):
        return value
    items = [item for _, item in _held(value)]
    made = [function(item) for item in items]
    return value if all(a is b for a, b in zip(items, made, strict=True)) else _rebuilt(value, made)


def placed(value: Any, path: Sequence[str], new: Any) -> Any:
    """A value with another tensor or number at `path`: lists, dicts and objects themselves, tuples anew. A list or dict
    grows where it has no such place; anything else stays as it is."""
    place, *rest = path
    items = [item for _, item in _held(value)]
    index = next((n for n, (key, _) in enumerate(_held(value)) if _name(key) == place), None)
    if index is None:
        if type(value) in _LISTS and not rest:
            value.append(new)
        elif type(value) in _MAPPINGS and not rest:
            value[place] = new
        return value
    items[index] = placed(items[index], rest, new) if rest else new
    return _filled(value, items)


def shell(value: Any, depth: int = 0) -> Callable[[], Any]:
    """What gives the value back as it is now: the same containers, which others may hold, too, with the same tensors in
    them, and objects with the attributes of now."""
    if depth > _DEPTH or not is_nest(value):
        return lambda: value
    held = dict(_held(value))
    inner = {key: shell(item, depth + 1) for key, item in held.items() if is_nest(item)}

    def give() -> Any:
        now = {key: inner[key]() if key in inner else item for key, item in held.items()}
        if type(value) in _MAPPINGS:
            value.clear()
            value.update(now)
        elif type(value) in _LISTS:
            value.clear()
            value.extend(now.values())
        elif is_record(value):
            _set_fields(value, now)
        else:
            return _rebuilt(value, list(now.values()))
        return value

    return give
