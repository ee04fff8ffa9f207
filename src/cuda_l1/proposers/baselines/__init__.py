"""Baselines: what a user gets from PyTorch itself, as ordinary candidates judged on the same path as everything else.

Each is the task's own source and a fixed suffix that defines `ModelNew` as a subclass of `Model`, so names of
parameters and keys of the state stay. A baseline that fell back to eager raises `baseline fell back: ...`
instead of being timed under a name that it has not earned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cuda_l1.proposers.baselines import aot, compiled, eager, flags, graph, half, layout
from cuda_l1.types import Candidate, Origin, Task

Suffix = Callable[[str], str | None]
"""From the task's source to the text appended to it; None where the baseline says nothing about such a task."""

_CPU: dict[str, Suffix] = {
    "eager": eager.as_shipped,
    "compile": compiled.default,
    "channels-last": layout.channels_last,
    "bf16": half.bf16,
}
_CUDA: dict[str, Suffix] = {
    "eager": eager.as_shipped,
    "compile": compiled.default,
    "cuda-graph": graph.captured,
    "tf32": flags.tf32,
    "cudnn-benchmark": flags.cudnn_benchmark,
    "bf16": half.bf16,
    "channels-last": layout.channels_last,
    "eager-fp32": eager.without_tf32,
    "compile-reduce-overhead": compiled.reduce_overhead,
    "compile-max-autotune": compiled.max_autotune,
    "aot-inductor": aot.packaged,
}
"""A search with little time measures the first of them: what most users have tried, then what compiles nothing."""
COMPILING = frozenset({"compile", "compile-reduce-overhead", "compile-max-autotune", "aot-inductor"})
"""Those that take about as long as one another, and far longer than the others."""


def names(device: str) -> tuple[str, ...]:
    """Every baseline of a device (`cpu`, `cuda` or `cuda:N`), eager first, whether or not a task has all of them."""
    return tuple(_table(device))


def baselines(task: Task, device: str, precision: str = "default") -> list[Candidate]:
    """The task's baselines that may stand under `precision`, eager first; each is labelled by its name.

    `device`: `cpu`, `cuda` or `cuda:N`; `precision`: what `--precision` takes. TF32 everywhere is left out where its
    class is less exact than asked for, bf16 unless that is `relaxed`: judging them would be for nothing.
    """
    return named(task, device, [name for name in names(device) if _may_stand(name, precision, task.source)])


def named(task: Task, device: str, wanted: Sequence[str]) -> list[Candidate]:
    """The baselines of these names, in their own order, without those that say nothing about such a task."""
    suffixes = {name: suffix(task.source) for name, suffix in _table(device).items() if name in wanted}
    return [_candidate(task, name, suffix) for name, suffix in suffixes.items() if suffix is not None]


def _may_stand(name: str, precision: str, source: str) -> bool:
    if name == "bf16":
        return precision == "relaxed"
    if name == "tf32":
        return precision in ("tf32", "relaxed") or (precision == "default" and flags.is_tf32_as_shipped(source))
    return True


def _table(device: str) -> dict[str, Suffix]:
    return _CUDA if device.startswith("cuda") else _CPU


def _candidate(task: Task, name: str, suffix: str) -> Candidate:
    return Candidate(
        task_sha=task.sha,
        task_id=task.id,
        source=f"{task.source.rstrip()}\n\n\n{suffix.strip()}\n",
        origins=(Origin(proposer="baselines", techniques=(name,)),),
    )
