"""Constructor arguments: those of `--init`, written as Python literals, and a file's own that are `[args, kwargs]`."""

from __future__ import annotations

import ast
import copy

from cuda_l1.errors import TaskError

_LISTS = (ast.List, ast.Tuple)
_USAGE = "write a list such as '[512, 8]', or 'dim=512, heads=8'"


def parse_init(text: str) -> tuple[list[str], dict[str, str]]:
    """(positional, by keyword) argument expressions of `[512, 8]`, `512, 8`, `dim=512, heads=8` or a mixture.

    A lone list or tuple is the list of arguments; `[[1, 2]]` passes one list. Values are Python literals or
    attributes of torch (`torch.bfloat16`). Raises TaskError.
    """
    try:
        call = ast.parse(f"f({text})", mode="eval").body
    except (SyntaxError, ValueError):
        raise TaskError(f"--init `{text}` is not Python; {_USAGE}") from None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise TaskError(f"--init `{text}` is not a list of arguments; {_USAGE}")
    args = call.args
    if len(args) == 1 and not call.keywords and isinstance(args[0], (ast.List, ast.Tuple)):
        args = args[0].elts
    named = {keyword.arg or "**": _literal(keyword.value, text) for keyword in call.keywords}
    if "**" in named:
        raise TaskError(f"--init `{text}`: `**` is not understood; {_USAGE}")
    return [_literal(arg, text) for arg in args], named


def _literal(node: ast.expr, text: str) -> str:
    is_torch = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch"
    if not is_torch:
        try:
            ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError):
            raise TaskError(f"--init `{text}`: `{ast.unparse(node)}` is not a literal; {_USAGE}") from None
    return ast.unparse(node)


def required(constructor: ast.arguments | None) -> list[str]:
    """The names of the arguments that a constructor cannot do without."""
    if constructor is None:
        return []
    positional = [*constructor.posonlyargs, *constructor.args]
    without = positional[1 : len(positional) - len(constructor.defaults)]
    named = zip(constructor.kwonlyargs, constructor.kw_defaults, strict=True)
    return [argument.arg for argument in (*without, *(one for one, default in named if default is None))]


def render_init(args: list[str], named: dict[str, str], constructor: ast.arguments | None) -> str:
    """Text that defines `get_init_inputs`, whose results are passed by position.

    Keyword arguments become positional ones where the constructor's signature allows it, else they are bound to
    `Model.__init__`.
    """
    positional = _by_position(args, named, constructor)
    if positional is None:
        bound = ", ".join(f"{name}={value}" for name, value in named.items())
        head = f"import functools\n\nModel.__init__ = functools.partialmethod(Model.__init__, {bound})\n\n\n"
        return head + _get_init_inputs(args)
    return _get_init_inputs(positional)


def _get_init_inputs(args: list[str]) -> str:
    return f"def get_init_inputs():\n    return [{', '.join(args)}]\n"


def _by_position(args: list[str], named: dict[str, str], constructor: ast.arguments | None) -> list[str] | None:
    """All arguments in the order of the signature, defaults filled in; None where that cannot be."""
    if not named:
        return args
    if constructor is None:
        return None
    names = [arg.arg for arg in (*constructor.posonlyargs, *constructor.args)][1:]
    values = dict(zip(names, args, strict=False))
    values_by_default = dict(zip(reversed(names), reversed([*map(ast.unparse, constructor.defaults)]), strict=False))
    if len(args) > len(names) or not set(named) <= set(names) - set(values):
        return None
    values |= named
    last = max(names.index(name) for name in values)
    wanted = [values.get(name, values_by_default.get(name)) for name in names[: last + 1]]
    return None if None in wanted else [value for value in wanted if value is not None]


def by_keyword_too(tree: ast.Module, constructor: ast.arguments | None) -> str | None:
    """Text of the module's `get_init_inputs` where that returns `[args, kwargs]`, as KernelBook has it: the arguments
    by position, or as a dict where one goes by name only.

    None where it returns anything else. A list and a dict are two arguments by position unless the names in the dict
    are parameters of the constructor, or both are empty.
    """
    given = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "get_init_inputs"]
    returned = [node for function in given for node in ast.walk(function) if isinstance(node, ast.Return)]
    if len(given) != 1 or returned != given[0].body[-1:]:
        return None
    value = returned[0].value
    if not isinstance(value, _LISTS) or len(value.elts) != 2:
        return None
    args, held = value.elts
    if not isinstance(args, _LISTS) or not isinstance(held, ast.Dict) or (args.elts and not held.keys):
        return None
    keys = [key.value if isinstance(key, ast.Constant) else None for key in held.keys]
    named = {str(key): ast.unparse(value) for key, value in zip(keys, held.values, strict=True)}
    passed = _passed([*map(ast.unparse, args.elts)], named, constructor)
    if passed is None:
        return None
    function = copy.deepcopy(given[0])
    function.body[-1] = ast.parse(f"return {passed}").body[0]
    return ast.unparse(function) + "\n"


def _passed(args: list[str], named: dict[str, str], constructor: ast.arguments | None) -> str | None:
    """The expression of all arguments, a list or a dict; None where the constructor does not take them."""
    if constructor is None or not (args or named):
        return None if args or named else "[]"
    names = [arg.arg for arg in (*constructor.posonlyargs, *constructor.args)][1:]
    free = {*names[len(args) :], *(arg.arg for arg in constructor.kwonlyargs)}
    if len(args) > len(names) or not free >= set(named):
        return None
    positional = _by_position(args, named, constructor)
    if positional is not None:
        return f"[{', '.join(positional)}]"
    return (
        "{" + ", ".join(f"{name!r}: {value}" for name, value in [*zip(names, args, strict=False), *named.items()]) + "}"
    )
