"""What a name in a task's text may stand for while the text is read: everything that is no tensor and no constant."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cuda_l1.tasks.dataflow.graph import Node

Names = dict[str, Any]


@dataclass(eq=False)
class Dotted:
    """Something from a library, by its full name: `torch.nn.functional.relu`."""

    path: str


@dataclass(eq=False)
class Method:
    """A method of a tensor, a list or a string, before it is called."""

    owner: Any
    name: str


@dataclass(eq=False)
class Builtin:
    """A function of Python that is computed on constants and lists."""

    call: Callable[..., Any]


@dataclass(eq=False)
class Class:
    """A class of the file."""

    node: ast.ClassDef


@dataclass(eq=False)
class Function:
    """A function, method or lambda of the file; `names` are those of the function around it."""

    node: ast.FunctionDef | ast.Lambda
    names: Names = field(default_factory=dict)
    owner: Any = None


@dataclass(eq=False)
class Own:
    """An instance of a class of the file."""

    cls: Class
    attributes: Names = field(default_factory=dict)


@dataclass(eq=False)
class Parent:
    """`super()` within a method."""

    own: Own


@dataclass(eq=False)
class Layer:
    """A layer of torch.nn, called as a function of tensors."""

    op: str
    options: dict[Any, Any]
    weights: tuple[Node, ...] = ()


@dataclass(eq=False)
class Chain:
    """`nn.Sequential`: its layers one after the other."""

    layers: list[Any]


class Unreadable(Exception):
    """The text holds something whose meaning is not known without executing it; the message says what."""


class Returned(Exception):
    """A `return` was reached."""

    def __init__(self, value: Any) -> None:
        self.value = value
