"""`--inputs`: a small language for the tensors that a module is called with.

randn(8, 128, 4096):bf16                    one tensor; the suffix is its dtype
randn(8, 128) randint(0, 1000, 8, 128):i64  several, separated by blanks, commas or semicolons
randn(4, 8); 0.5; True; none                numbers, booleans, strings and None as Python writes them
[randn(2, 8), randn(2, 8)]                  a list or tuple of tensors as one argument
{'x': randn(2, 8), 'scale': 0.5}            a dict as one argument
randn(8, 128, 64).transpose(1, 2)           other strides: transpose, permute, t, expand
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass

from cuda_l1.errors import TaskError
from cuda_l1.tasks.dtypes import FLOATS, TORCH_DTYPES, short_dtype
from cuda_l1.texts import many

_VIEWS = ("transpose", "permute", "t", "expand")
_WORDS = {"none": "None", "true": "True", "false": "False", "inf": 'float("inf")', "nan": 'float("nan")'}


@dataclass(frozen=True)
class _Drawing:
    """A way to make a tensor."""

    text: Callable[[list[str], str], str]
    """(arguments, `, dtype=...` or nothing) -> expression."""
    dtypes: tuple[str, ...]
    least: int = 0
    """Arguments that come before the sizes."""
    own_dtype: str | None = None
    """The dtype where none is named; None: that of the call."""


def _simple(template: str) -> Callable[[list[str], str], str]:
    return lambda args, dtype: template.format(args=", ".join(args) or "()", dtype=dtype)


def _shaped(function: str) -> Callable[[list[str], str], str]:
    """A function of torch that takes its last arguments as one tuple: randint(low, high, size), full(size, value)."""

    def text(args: list[str], dtype: str) -> str:
        least = _DRAWINGS[function].least
        size = f"({', '.join(args[least:])}{',' * (len(args) == least + 1)})"
        values = ", ".join(args[:least])
        return (
            f"torch.full({size}, {values}{dtype})" if function == "full" else f"torch.randint({values}, {size}{dtype})"
        )

    return text


_INTEGERS = tuple(short for short in TORCH_DTYPES if short not in FLOATS and short != "bool")
_ALL = tuple(TORCH_DTYPES)

_DRAWINGS = {
    "randn": _Drawing(_simple("torch.randn({args}{dtype})"), FLOATS),
    "rand": _Drawing(_simple("torch.rand({args}{dtype})"), FLOATS),
    "positive": _Drawing(_simple("(torch.randn({args}{dtype}).abs() + 0.01)"), FLOATS),
    "zeros": _Drawing(_simple("torch.zeros({args}{dtype})"), _ALL),
    "ones": _Drawing(_simple("torch.ones({args}{dtype})"), _ALL),
    "full": _Drawing(_shaped("full"), _ALL, least=1),
    "randint": _Drawing(_shaped("randint"), _INTEGERS, least=2, own_dtype="i64"),
    "arange": _Drawing(_simple("torch.arange({args}{dtype})"), FLOATS + _INTEGERS, least=1, own_dtype="i64"),
    "randperm": _Drawing(_simple("torch.randperm({args}{dtype})"), _INTEGERS, least=1, own_dtype="i64"),
    "mask": _Drawing(_simple("(torch.rand({args}) < 0.5)"), ("bool",), own_dtype="bool"),
}


def render_inputs(text: str, *, dtype: str | None = None) -> str:
    """Text that defines `get_inputs()` for a description in the language above.

    `dtype` is that of floating tensors without a suffix (default fp32). Raises TaskError, one line, naming the item.
    """
    body = "".join(f"        {item.render()},\n" for item in _items(text, dtype or "fp32"))
    return f"def get_inputs():\n    return [\n{body}    ]\n"


def described_floats(text: str) -> set[str]:
    """The dtypes of the floating tensors of a description, e.g. {"fp32", "bf16"}. Raises TaskError."""
    floats: set[str] = set()
    for item in _items(text, "fp32"):
        item.render()
        floats |= item.floats
    return floats


def _items(text: str, default: str) -> list[_Item]:
    items = [_Item(part, default) for part in _split(text)]
    if not items:
        raise TaskError("--inputs is empty; write for example 'randn(8, 128)'")
    return items


def _split(text: str) -> list[str]:
    """Items at the top level: separated by blanks, commas and semicolons outside brackets and quotes."""
    items, current, depth, quote = [], "", 0, ""
    for character in text + " ":
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif depth == 0 and (character in ",;" or character.isspace()):
            items += [current] if current else []
            current = ""
            continue
        current += character
    if current.strip():
        raise TaskError(f"--inputs `{current.strip()}`: a bracket or a quote is not closed")
    return items


class _Item:
    """One argument of `forward`, described by an expression and perhaps a dtype behind a colon."""

    def __init__(self, text: str, default: str) -> None:
        suffix = re.search(r"(?<=[)\]}\w]):([\w.]+)$", text)
        self.text = text
        self.body = text[: suffix.start()] if suffix else text
        self.suffix = suffix[1] if suffix else None
        self.default = default
        self.floats: set[str] = set()

    def render(self) -> str:
        """The expression that draws it."""
        try:
            node = ast.parse(self.body, mode="eval").body
        except (SyntaxError, ValueError):
            raise self._wrong("is not understood; write for example 'randn(8, 128):bf16'") from None
        return self._expression(node)

    def _wrong(self, what: str) -> TaskError:
        return TaskError(f"--inputs `{self.text}`: {what}")

    def _expression(self, node: ast.expr) -> str:
        if isinstance(node, ast.List):
            return f"[{', '.join(map(self._expression, node.elts))}]"
        if isinstance(node, ast.Tuple):
            return f"({', '.join(map(self._expression, node.elts))},)"
        if isinstance(node, ast.Dict) and None not in node.keys:
            pairs = zip(map(self._literal, filter(None, node.keys)), map(self._expression, node.values), strict=True)
            return f"{{{', '.join(f'{key}: {value}' for key, value in pairs)}}}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return self._view(node, node.func)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self._drawing(node, node.func.id)
        if self.suffix is not None:
            raise self._wrong(f"only tensors have a dtype; full({ast.unparse(node)}):{self.suffix} is one")
        if isinstance(node, ast.Name) and node.id.lower() in _WORDS:
            return _WORDS[node.id.lower()]
        return self._literal(node)

    def _view(self, node: ast.Call, method: ast.Attribute) -> str:
        if isinstance(method.value, ast.Name) and method.value.id == "torch":
            return self._drawing(node, method.attr)
        if method.attr not in _VIEWS or node.keywords:
            raise self._wrong(f"`.{method.attr}` is not understood; there is {', '.join(_VIEWS)}")
        return f"{self._expression(method.value)}.{method.attr}({', '.join(map(self._literal, node.args))})"

    def _drawing(self, node: ast.Call, name: str) -> str:
        if name not in _DRAWINGS:
            raise self._wrong(f"`{name}` is unknown; choose one of {', '.join(_DRAWINGS)}")
        drawing = _DRAWINGS[name]
        named = self.suffix
        for keyword in node.keywords:
            if keyword.arg != "dtype":
                raise self._wrong(f"`{keyword.arg}` is not understood; only dtype is")
            named = ast.unparse(keyword.value).strip("'\"")
        args = self._sizes(node, name, drawing.least)
        short = short_dtype(named) if named else (drawing.own_dtype or self.default)
        if short not in drawing.dtypes:
            raise self._wrong(f"{name} cannot be {short}")
        if short in FLOATS:
            self.floats.add(short)
        plain = short == (drawing.own_dtype or "fp32")
        return drawing.text(args, "" if plain else f", dtype=torch.{TORCH_DTYPES[short]}")

    def _sizes(self, node: ast.Call, name: str, least: int) -> list[str]:
        """The arguments of a drawing; its sizes may come as one tuple."""
        args = list(node.args)
        if len(args) == least + 1 and isinstance(args[least], (ast.Tuple, ast.List)):
            args = args[:least] + args[least].elts  # type: ignore[attr-defined]
        values = [self._literal(arg) for arg in args]
        if len(values) < least:
            raise self._wrong(f"{name} needs at least {many(least, 'argument')}")
        for value in values[least:]:
            if not value.isdigit() and name != "arange":
                raise self._wrong(f"`{value}` is not a size")
        bounds = [int(value) for value in values[:2] if re.fullmatch(r"-?\d+", value)]
        if name == "randint" and (len(bounds) < 2 or bounds[0] >= bounds[1]):
            raise self._wrong("randint(low, high, sizes...) needs whole numbers low < high")
        return values

    def _literal(self, node: ast.expr) -> str:
        try:
            return repr(ast.literal_eval(node))
        except (ValueError, TypeError, SyntaxError):
            raise self._wrong(f"`{ast.unparse(node)}` is neither a literal nor a tensor") from None
