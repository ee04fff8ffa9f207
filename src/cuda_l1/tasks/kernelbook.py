"""KernelBook's texts under the names of KernelBench's format.

There the reference's class has a name of its own, the variant's is that name and `New`, and `get_init_inputs` returns
positional and named arguments: `[[], {"dim": 4}]`. KernelBench knows `Model`, `ModelNew` and positional ones.
"""

from __future__ import annotations

import ast

from cuda_l1.errors import TaskError


def reference_text(text: str, entry_point: str) -> str:
    """The reference with its class called `Model` and positional arguments. Raises TaskError where it cannot be."""
    tree = _renamed(_parsed(text), entry_point, "Model")
    model = _class(tree, "Model")
    given = next((n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "get_init_inputs"), None)
    if given is None or not isinstance(given.body[-1], ast.Return):
        raise TaskError("get_init_inputs is not there, or does not end with a return")
    returned = given.body[-1]
    match returned.value:
        case ast.List(elts=[ast.List(elts=positional), ast.Dict(keys=keys, values=values)]):
            named = {ast.literal_eval(key or ""): value for key, value in zip(keys, values, strict=True)}
            returned.value = ast.List(_positional(model, positional, named), ast.Load())
        case _:
            raise TaskError("get_init_inputs does not return [[...], {...}]")
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def variant_text(text: str, entry_point: str) -> str:
    """The variant with its class called `ModelNew`. Raises TaskError where there is no such class."""
    tree = _renamed(_parsed(text), f"{entry_point}New", "ModelNew")
    _class(tree, "ModelNew")
    return ast.unparse(tree) + "\n"


def _parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise TaskError(f"is not Python: {error}") from error


def _class(tree: ast.Module, name: str) -> ast.ClassDef:
    found = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    if len(found) != 1:
        raise TaskError(f"{len(found)} classes would be called {name}")
    return found[0]


def _renamed(tree: ast.Module, old: str, new: str) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == old:
            node.id = new
        elif isinstance(node, ast.ClassDef) and node.name == old:
            node.name = new
    return tree


def _positional(model: ast.ClassDef, positional: list[ast.expr], named: dict[str, ast.expr]) -> list[ast.expr]:
    """All arguments by position, defaults written out up to the last one that is named."""
    given, rest = list(positional), dict(named)
    if not rest:
        return given
    arguments = _constructor(model)
    names = [argument.arg for argument in arguments.args[1:]]
    defaults = dict(zip(reversed(names), reversed(arguments.defaults), strict=False))
    for name in names[len(given) :]:
        if not rest:
            break
        value = rest.pop(name, defaults.get(name))
        if value is None:
            raise TaskError(f"the argument {name} of {model.name} is not given")
        given.append(value)
    if rest:
        raise TaskError(f"the arguments {', '.join(rest)} of {model.name} go by name only")
    return given


def _constructor(model: ast.ClassDef) -> ast.arguments:
    own = (node for node in model.body if isinstance(node, ast.FunctionDef) and node.name == "__init__")
    found = next(own, None)
    if found is None:
        raise TaskError(f"{model.name} has no constructor of its own")
    return found.args
