"""Functions and layers of torch and other libraries, as nodes of the graph."""

from __future__ import annotations

import math
from typing import Any

from cuda_l1.tasks.dataflow import spelling
from cuda_l1.tasks.dataflow.graph import SIZE, Node
from cuda_l1.tasks.dataflow.values import Chain, Dotted, Layer, Unreadable

_MATHEMATICS = frozenset({"sqrt", "log", "log2", "log10", "exp", "ceil", "floor", "pow", "sin", "cos", "tanh", "gcd"})


def library(path: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """What calling a function or class of a library gives, by its full name. Raises Unreadable."""
    module, _, name = path.rpartition(".")
    if module in ("torch.nn", "torch.nn.modules") and name[:1].isupper():
        return _layer(name, args, keywords)
    if module.endswith("nn.init") or path in ("torch.manual_seed", "torch.no_grad", "torch.device"):
        return args[0] if args else None
    if module == "math":
        return _mathematics(name, args)
    if path in ("collections.OrderedDict", "typing.cast", "copy.deepcopy"):
        return args[-1] if args else {}
    if path == "functools.partial":
        raise Unreadable("functools.partial")
    if module == "torch" and name in spelling.DRAWN:
        return _drawn(name, args, keywords)
    if module.split(".")[0] in ("torch", "F"):
        return operator(name, args, keywords)
    return Node(f"library.{path}", tuple(args), tuple(sorted(keywords.items())))


def _layer(name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    if name in ("Sequential", "ModuleList"):
        items = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple, dict)) else args
        items = [pair[1] if isinstance(pair, tuple) else pair for pair in listed(items)]
        return Chain(items) if name == "Sequential" else items
    if name in ("ModuleDict", "ParameterDict", "ParameterList"):
        return args[0] if args else {}
    if name in ("Parameter", "Buffer"):
        return Node("weight", ("parameter",))
    op = spelling.operator_name(name)
    options = spelling.layer_options(op, args, keywords)
    return Layer(op, options, (Node("weight", (op,)),) if op in spelling.WEIGHTED else ())


def _mathematics(name: str, args: list[Any]) -> Any:
    if any(isinstance(arg, Node) for arg in args) or (name in ("sqrt", "log", "log2") and type(args[0]) is int):
        return SIZE  # 1 / sqrt(width of a head): a number that follows from a size
    if name not in _MATHEMATICS:
        raise Unreadable(f"math.{name}")
    return getattr(math, name)(*args)


def operator(name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """Tensors first, then settings; tensors given by keyword are operands like the others."""
    keywords = {"input": keywords["input"], **keywords} if "input" in keywords else keywords
    operands = [keywords.pop("input")] if "input" in keywords else []
    settings: list[Any] = []
    for arg in args:
        first = not operands or (isinstance(arg, Node) and not settings and arg is not SIZE)
        (operands if first else settings).append(arg)
    if name in ("add", "sub", "mul", "div", "pow", "maximum", "minimum", "where", "true_divide") and settings:
        operands, settings = [*operands, *settings], []
    if isinstance(operands[0] if operands else None, (list, tuple)):
        operands[0] = tuple(operands[0])
    operands += [keywords.pop(key) for key in ("other", "target", "mat2") if key in keywords]
    if not operands:
        return Node(name, (), tuple(sorted(keywords.items())))
    return spelling.call(name, operands, settings, dict(keywords))


def _drawn(name: str, args: list[Any], keywords: dict[str, Any]) -> Node:
    """A tensor made of nothing: only how many sizes it has, and what it is filled with."""
    rest = tuple(sorted((k, v) for k, v in keywords.items() if k not in ("device", "dtype", "size", "requires_grad")))
    values = args[1:] if name == "full" else []
    return Node(name, tuple(values), rest)


def converted(tensor: Node, args: list[Any]) -> Node:
    kinds = [arg.path for arg in args if isinstance(arg, Dotted) and arg.path.startswith("torch.")]
    kinds = [kind.removeprefix("torch.") for kind in kinds if kind not in ("torch.device", "torch.dtype")]
    return Node("to", (tensor,), (("0", Node("dtype", (kinds[0],))),)) if kinds else tensor


def listed(value: Any) -> list[Any]:
    """The elements of what is gone through. Raises Unreadable."""
    if isinstance(value, Chain):
        return list(value.layers)
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, (list, tuple, range, str)):
        return list(value)
    if isinstance(value, Node):
        return [Node("item", (value,))]
    raise Unreadable("goes through something that is not known")
