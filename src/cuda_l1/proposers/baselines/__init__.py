"""Baselines: what a user gets from PyTorch itself, as ordinary candidates judged on the same path as everything else.

Each is the task's own source and a fixed suffix that defines `ModelNew` as a subclass of `Model`, so names of
parameters and keys of the state stay. A baseline that fell back to eager raises `baseline fell back: ...`
instead of being timed under a name that it has not earned.
"""

from __future__ import annotations

from collections.abc import Callable

from cuda_l1.proposers.baselines import aot, compiled, eager, graph, layout
from cuda_l1.types import Candidate, Origin, Task

Suffix = Callable[[str], str | None]
"""From the task's source to the text appended to it; None where the baseline says nothing about such a task."""

_CPU: dict[str, Suffix] = {
    "eager": eager.as_shipped,
    "compile": compiled.default,
    "channels-last": layout.channels_last,
}
_CUDA: dict[str, Suffix] = {
    "eager": eager.as_shipped,
    "eager-fp32": eager.without_tf32,
    "cuda-graph": graph.captured,
    "channels-last": layout.channels_last,
    "compile": compiled.default,
    "compile-reduce-overhead": compiled.reduce_overhead,
    "compile-max-autotune": compiled.max_autotune,
    "aot-inductor": aot.packaged,
}
"""Cheap ones first: a search with little time measures as many as it can."""


def names(device: str) -> tuple[str, ...]:
    """Every baseline of a device (`cpu`, `cuda` or `cuda:N`), eager first, whether or not a task has all of them."""
    return tuple(_table(device))


def baselines(task: Task, device: str) -> list[Candidate]:
    """The task's baselines on `device` (`cpu`, `cuda` or `cuda:N`), eager first; each is labelled by its name."""
    suffixes = {name: suffix(task.source) for name, suffix in _table(device).items()}
    return [_candidate(task, name, suffix) for name, suffix in suffixes.items() if suffix is not None]


def _table(device: str) -> dict[str, Suffix]:
    return _CUDA if device.startswith("cuda") else _CPU


def _candidate(task: Task, name: str, suffix: str) -> Candidate:
    return Candidate(
        task_sha=task.sha,
        task_id=task.id,
        source=f"{task.source.rstrip()}\n\n\n{suffix.strip()}\n",
        origins=(Origin(proposer="baselines", techniques=(name,)),),
    )
