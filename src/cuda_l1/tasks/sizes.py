"""The sizes that a task's text names, and the same task at other sizes. Reads the text, never executes it.

A size is an integer at module level (`batch_size = 16`, `dim = 64 * 8`, `shape = (32, 1024)`), where `height = width =
128` is one of the first name, or a literal among the sizes of a tensor that `get_inputs` draws (`torch.randn(8, 128)`),
where all literals of one value are one size.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cuda_l1.errors import UsageError
from cuda_l1.types import Task

Size = dict[str, int]
"""Name of a size -> its value; the others have the task's own."""

_DRAWINGS = {"rand", "randn", "zeros", "ones", "empty", "full", "randint", "randperm", "arange", "normal"}
_VIEWS = {"expand", "view", "reshape", "repeat", "unflatten"}
_AUTO = "auto"
_LARGEST = 1 << 31
_SIZE = r"[^][=,]{1,80}(\[\d+\])?=\d+"
_SIZES = re.compile(rf"\[{_SIZE}(,{_SIZE})*\]$")


@dataclass(frozen=True)
class _Place:
    """A piece of the text: line and columns in bytes, as `ast` counts them."""

    line: int
    begin: int
    end: int


@dataclass(frozen=True)
class Axis:
    """One size of a task."""

    name: str
    """`batch_size`, `shape[0]`, or the number itself for a literal."""
    value: int
    places: tuple[_Place, ...]
    is_drawn: bool = True
    """`get_inputs` reads it, so that other values give inputs of other sizes."""
    in_constructor: tuple[_Place, ...] = ()
    """For a literal: the same number among the constructor's arguments. It may be another quantity."""


def axes(task: Task) -> list[Axis]:
    """Every size of the task, those that `get_inputs` reads first."""
    tree = ast.parse(task.source)
    drawing = _reached(tree, "get_inputs")
    read = {node.id for root in drawing for node in ast.walk(root) if isinstance(node, ast.Name)}
    named = [axis for node in tree.body for axis in _constants(node, read)]
    known = {axis.name: axis for axis in named}  # of two assignments the later one counts
    found = [*known.values(), *_literals(drawing, _reached(tree, "get_init_inputs"))]
    return sorted(found, key=lambda axis: not axis.is_drawn)


def resized(task: Task, size: Mapping[str, int], *, constructor: bool = False) -> Task:
    """The task with other values for some of its sizes; with `constructor` literals change among its arguments, too.

    Raises UsageError for a name that the task does not have.
    """
    by_name = {axis.name: axis for axis in axes(task)}
    edits: dict[_Place, int] = {}
    for name, value in size.items():
        axis = by_name.get(name)
        if axis is None:
            raise UsageError(f"--shapes: {_unknown(name, list(by_name.values()))}")
        places = axis.places + (axis.in_constructor if constructor else ())
        edits |= dict.fromkeys(places, value)
    lines = [line.encode() for line in task.source.split("\n")]
    for place in sorted(edits, key=lambda place: (place.line, place.begin), reverse=True):
        line = lines[place.line - 1]
        lines[place.line - 1] = line[: place.begin] + str(edits[place]).encode() + line[place.end :]
    label = ",".join(f"{name}={value}" for name, value in size.items())
    source = "\n".join(line.decode() for line in lines)
    return task.model_copy(update={"source": source, "name": f"{task.name}[{label}]"})


def other_sizes(task: Task) -> str | None:
    """`batch_size=16` of a task that `resized` made, by its name; None of any other."""
    found = _SIZES.search(task.name)
    return found[0][1:-1] if found else None


def own_name(name: str) -> str:
    """The name of a task as it was before `resized` wrote sizes into it; any other name as it is."""
    return _SIZES.sub("", name)


def variants(task: Task, size: Size) -> list[Task]:
    """The ways in which a task can be had at a size: a literal may be one of the constructor's arguments, or not."""
    by_name = {axis.name: axis for axis in axes(task)}
    plain = resized(task, size)
    twofold = any(by_name[name].in_constructor for name in size)
    return [plain, resized(task, size, constructor=True)] if twofold else [plain]


def parse_shapes(text: str, task: Task) -> list[Size]:
    """What `--shapes` asks for: `auto`, or `batch_size=1,7,64 dim=512`; `batch_size=1+dim=64` changes both at once.

    Raises UsageError, which names the task's sizes.
    """
    if not text.strip():
        raise UsageError("--shapes: is empty; give auto, or NAME=NUMBER,NUMBER,... with whole numbers from 1")
    known = axes(task)
    sizes: list[Size] = []
    for item in re.split(r"[\s;]+", text.strip()):
        if item == _AUTO:
            sizes += automatic(task)
            continue
        pairs = [pair.partition("=") for pair in item.split("+")]
        values = [[_value(item, word) for word in words.split(",")] for _, _, words in pairs]
        for name, _, _ in pairs:
            if name not in {axis.name for axis in known}:
                raise UsageError(f"--shapes {item}: {_unknown(name, known)}")
        if len(pairs) > 1 and any(len(one) > 1 for one in values):
            raise UsageError(f"--shapes {item}: give one value for each of the sizes that change together")
        names = [name for name, _, _ in pairs]
        sizes += [dict(zip(names, together, strict=True)) for together in zip(*values, strict=True)]
    return list({tuple(size.items()): size for size in sizes}.values())


def automatic(task: Task) -> list[Size]:
    """For every size that `get_inputs` reads, one at a time: 1, 7, half, the next odd one, 8 more, twice.

    Raises UsageError for a task whose text names no size.
    """
    known = axes(task)
    drawn = [axis for axis in known if axis.is_drawn]
    if not drawn:
        raise UsageError(f"--shapes auto: {_unknown('', known)}")
    return [{axis.name: value} for axis in drawn for value in _around(axis.value)]


def own_sizes(task: Task) -> Size:
    """The task's own values."""
    return {axis.name: axis.value for axis in axes(task)}


def _around(value: int) -> list[int]:
    tried = {1, 7, value // 2, value + 1 + value % 2, value + 8, 2 * value}
    return sorted(v for v in tried if v >= 1 and v != value)


def _value(item: str, word: str) -> int:
    if not re.fullmatch(r"\d{1,10}", word) or not 1 <= int(word) < _LARGEST:
        raise UsageError(
            f"--shapes {item}: give auto, or NAME=NUMBER,NUMBER,... with whole numbers from 1 to {_LARGEST - 1}"
        )
    return int(word)


def _unknown(name: str, known: list[Axis]) -> str:
    wrong = f"the task has no size `{name}`" if name else "no size of the task's inputs can be varied by itself"
    if not known:
        return f"{wrong}; give the sizes of its inputs names at module level, such as `batch_size = 16`"
    return f"{wrong}; it has {', '.join(f'{axis.name}={axis.value}' for axis in known)}"


# ── reading the text ──────────────────────────────────────────────────────────────────────────────


def _constants(node: ast.stmt, read: set[str]) -> Iterator[Axis]:
    """The integers that a statement at module level gives names to."""
    if isinstance(node, ast.Assign):
        (target, *others), value = node.targets, node.value
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        target, others, value = node.target, [], node.value
    else:
        return
    if others and not all(isinstance(one, ast.Name) for one in (target, *others)):
        return
    also = {one.id for one in others if isinstance(one, ast.Name)}
    elements = value.elts if isinstance(value, (ast.Tuple, ast.List)) else None
    if isinstance(target, ast.Tuple) and elements is not None and len(target.elts) == len(elements):
        pairs = [(ast.unparse(name), name, one) for name, one in zip(target.elts, elements, strict=True)]
    elif isinstance(target, ast.Name) and elements is not None:
        pairs = [(f"{target.id}[{index}]", target, one) for index, one in enumerate(elements)]
    elif isinstance(target, ast.Name):
        pairs = [(target.id, target, value)]
    else:
        return
    for name, owner, one in pairs:
        number = _number(one)
        if isinstance(owner, ast.Name) and number is not None and number >= 1:
            yield Axis(name, number, (_place(one),), is_drawn=bool({owner.id, *also} & read))


def _number(node: ast.expr) -> int | None:
    """The value of an expression of whole numbers and + - * // **, or None."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if not isinstance(node, ast.BinOp) or node.lineno != node.end_lineno:
        return None
    left, right = _number(node.left), _number(node.right)
    if left is None or right is None:
        return None
    match node.op:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.FloorDiv() if right:
            return left // right
        case ast.Pow() if 0 <= right <= 31 and abs(left) <= 64:
            return int(left**right)
        case ast.LShift() if 0 <= right <= 31:
            return left << right
    return None


def _place(node: ast.expr) -> _Place:
    assert node.end_col_offset is not None
    return _Place(node.lineno, node.col_offset, node.end_col_offset)


def _reached(tree: ast.Module, function: str) -> list[ast.AST]:
    """The last definition of a function, with all statements at module level that its names lead to."""
    found: list[ast.AST] = []
    waiting = [(function, len(tree.body))]
    while waiting:
        name, before = waiting.pop()
        index = next((i for i in reversed(range(before)) if name in _bound(tree.body[i])), None)
        if index is None or tree.body[index] in found:
            continue
        node = tree.body[index]
        found.append(node)
        # A function sees what is bound last, an assignment what was bound before it.
        reach = len(tree.body) if isinstance(node, ast.FunctionDef) else index
        names = {child.id for child in ast.walk(node) if isinstance(child, ast.Name)} - {name}
        waiting += [(other, reach) for other in names]
    return found


def _bound(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {child.id for target in targets for child in ast.walk(target) if isinstance(child, ast.Name)}


def _literals(drawing: list[ast.AST], constructing: list[ast.AST]) -> list[Axis]:
    """Numbers above 1 among the sizes of drawn tensors, equal ones together."""
    places: dict[int, list[_Place]] = {}
    for root in drawing:
        for node in ast.walk(root):
            for argument in _sizes_of(node) if isinstance(node, ast.Call) else ():
                if isinstance(argument, ast.Constant) and type(argument.value) is int and argument.value > 1:
                    places.setdefault(argument.value, []).append(_place(argument))
    arguments = [
        child
        for root in constructing
        if isinstance(root, ast.FunctionDef)
        for child in ast.walk(root)
        if isinstance(child, ast.Constant) and type(child.value) is int
    ]
    return [
        Axis(
            str(value),
            value,
            tuple(dict.fromkeys(found)),
            in_constructor=tuple(_place(node) for node in arguments if node.value == value),
        )
        for value, found in sorted(places.items())
    ]


def _sizes_of(call: ast.Call) -> Iterator[ast.expr]:
    """The arguments of a call that are sizes of a tensor."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    args: list[ast.expr] = list(call.args)
    if name == "full":
        args = args[:1]
    elif name in ("randint", "normal"):
        args = [arg for arg in args if isinstance(arg, (ast.Tuple, ast.List))]
    elif name in ("arange", "randperm"):
        args = args[:1] if len(args) == 1 else []
    elif name not in _DRAWINGS | _VIEWS:
        return
    args += [keyword.value for keyword in call.keywords if keyword.arg == "size"]
    for arg in args:
        yield from arg.elts if isinstance(arg, (ast.Tuple, ast.List)) else [arg]
