"""Which tasks one mean may be over: no two texts of one name, and none that was scaled down beside those that were not.

A suite's names stay while its texts change: another checkout of KernelBench has other shapes under the same names,
another release other references, and `--max-gib` and `--dtype` write texts of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from cuda_l1.tasks.sizes import own_name
from cuda_l1.types import Task

NAMED_BY_HAND = ("file", "module")
"""Suites where another text under a known name is another task: people call their files as they like."""


class Edition(NamedTuple):
    """To which of a place's sections a task belongs, and what it is called there."""

    edition: str
    """Empty; `scaled tasks`; `edition 2` for the second text of a name, by when they were first judged; or both."""
    name: str
    """`kernelbench/level1/19_ReLU`, with the beginning of the text's hash where another text is called so, too."""


def editions(tasks: Iterable[Task]) -> dict[str, Edition]:
    """For each task by its hash; `tasks` in the order of their verdicts, which numbers the texts of a name."""
    found: dict[str, Task] = {}
    for task in tasks:
        found.setdefault(task.sha, task)
    names = Counter((task.suite, task.name) for task in found.values())
    texts: Counter[tuple[str, str, bool]] = Counter()
    made = {}
    for sha, task in found.items():
        own = own_name(task.name)
        is_scaled = own != task.name
        texts[task.suite, own, is_scaled] += 1
        number = 1 if task.suite in NAMED_BY_HAND else texts[task.suite, own, is_scaled]
        edition = ("scaled tasks" if is_scaled else "", f"edition {number}" if number > 1 else "")
        shown = f"{task.suite}/{task.name}"
        is_shared = names[task.suite, task.name] > 1
        made[sha] = Edition(", ".join(filter(None, edition)), f"{shown}@{sha[:7]}" if is_shared else shown)
    return made
