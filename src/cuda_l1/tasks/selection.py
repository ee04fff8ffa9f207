"""Some of a suite's tasks: what stands behind `#` in `kernelbench:PATH#level1-3` or `builtin#*_matmul,scaled_softmax`.

A selection is a list, separated by commas. Each item is a level or a range of levels (`level2`, `level1-3`), a number
or a range of numbers within a level (`level1/19`, `1/19`, `1/1-20`) or in all of them (`19`, `1-50`), or a name, with
`*` and `?` for what may vary (`train/*`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from cuda_l1.errors import TaskError
from cuda_l1.texts import many
from cuda_l1.types import Task

MOST_NAMES = 3
MOST_RANGES = 10
"""Of a level's numbers, in a message."""
_LEVELS = re.compile(r"level(\d+)(?:-(?:level)?(\d+))?", re.IGNORECASE)
_ANY_LEVEL = re.compile(r"(\d+)(?:-(\d+))?")
_NUMBERS = re.compile(r"(?:level)?(\d+)/(\d+)(?:-(\d+))?", re.IGNORECASE)


def select(tasks: Sequence[Task], selection: str, suite: str) -> list[Task]:
    """The tasks that an item of `selection` names, in the order of the suite, each once.

    Raises TaskError for an item that names none, saying what there is.
    """
    items = [item.strip() for item in selection.split(",") if item.strip()]
    if not items:
        raise TaskError(
            f"{suite}#: the selection is empty; write e.g. #level1, #level1/19 or #a_name, or leave out `#`"
        )
    chosen: set[int] = set()
    for item in items:
        wanted = _matcher(item)
        found = {index for index, task in enumerate(tasks) if wanted(task)}
        if not found:
            raise TaskError(f"{suite}#{item}: names no task; {_close(tasks, item) or f'there are {_choices(tasks)}'}")
        chosen |= found
    return [tasks[index] for index in sorted(chosen)]


def problem_number(task: Task) -> int | None:
    """The number of a KernelBench problem within its level: 19 of `level1/19_ReLU`."""
    number = re.match(r"\d+", task.name.rpartition("/")[2])
    return int(number[0]) if number else None


def _matcher(item: str) -> Callable[[Task], bool]:
    if levels := _LEVELS.fullmatch(item):
        first, last = _range(item, levels[1], levels[2])
        return lambda task: task.level is not None and first <= task.level <= last
    if numbers := _NUMBERS.fullmatch(item):
        level = int(numbers[1])
        first, last = _range(item, numbers[2], numbers[3])
        return lambda task: task.level == level and first <= (problem_number(task) or 0) <= last
    if anywhere := _ANY_LEVEL.fullmatch(item):
        first, last = _range(item, anywhere[1], anywhere[2])
        return lambda task: first <= (problem_number(task) or 0) <= last
    name = item.removesuffix(".py")
    return lambda task: fnmatchcase(task.name, name) or fnmatchcase(task.name.rpartition("/")[2], name)


def _range(item: str, first: str, last: str | None) -> tuple[int, int]:
    begin, end = int(first), int(last or first)
    if end < begin:
        raise TaskError(f"#{item}: the range ends before it begins; write it the other way round")
    return begin, end


def _close(tasks: Sequence[Task], item: str) -> str:
    """The names that hold an item, however it is spelt; empty where there are none, or it is a part of all of them."""
    part = item.lower().removesuffix(".py")
    names = [task.name for task in tasks if part in task.name.lower()] if re.search("[a-z]", part) else []
    if not names or len(names) == len(tasks):
        return ""
    more = f" or of {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"it is part of {', '.join(names[:MOST_NAMES])}{more}; `*` stands for what may vary"


def _choices(tasks: Sequence[Task]) -> str:
    """What could be chosen: the numbers of each level, or some names."""
    levels = Counter(task.level for task in tasks if task.level is not None)
    if not levels:
        return ", ".join(task.name for task in tasks[:5]) + (", ..." if len(tasks) > 5 else "")
    return "; ".join(
        f"level{level}{_numbers(tasks, level)} ({many(count, 'task')})" for level, count in sorted(levels.items())
    )


def _numbers(tasks: Sequence[Task], level: int) -> str:
    """Those that a level has, e.g. `/1-3,7`; nothing where its tasks have none."""
    numbers = sorted({n for task in tasks if task.level == level and (n := problem_number(task)) is not None})
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1] = ranges[-1][0], number
        else:
            ranges.append((number, number))
    told = [f"{first}-{last}" if last > first else f"{first}" for first, last in ranges[:MOST_RANGES]]
    told += ["..."] if len(ranges) > MOST_RANGES else []
    return f"/{','.join(told)}" if told else ""
