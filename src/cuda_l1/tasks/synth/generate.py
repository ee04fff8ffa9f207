"""The stream of synthetic tasks of a seed: number 1, 2, 3, ...; no two of one graph, none of an evaluation task's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from cuda_l1.tasks.dataflow import read_graph
from cuda_l1.tasks.graph_hash import graph_hash
from cuda_l1.tasks.suite import builtin_suite
from cuda_l1.tasks.synth.compose import compose
from cuda_l1.tasks.synth.draw import Draw
from cuda_l1.tasks.synth.sizes import SMALL, Scale
from cuda_l1.tasks.synth.splits import Split, split_of
from cuda_l1.types import Task

VERSION = 2
"""Raised whenever a seed gives other tasks than before, or puts them into other splits."""
_TEXTS = 1
"""The version that the texts are of: verdicts on them stay those of the same tasks."""


@dataclass(frozen=True)
class SyntheticTask:
    """One task of the stream, and what is known of it before anything judged it."""

    number: int
    task: Task
    split: Split
    level: int
    graph: str
    """Its graph hash."""
    stages: tuple[str, ...]


def synthetic_tasks(seed: int, scale: Scale = SMALL) -> Iterator[SyntheticTask]:
    """All tasks of a seed, without an end. A number names one graph at every scale; only sizes differ."""
    seen = set(known_graphs())
    number = attempt = 0
    while True:
        attempt += 1
        draw = Draw("cuda-l1 synth", _TEXTS, seed, attempt)
        small, level = compose(draw, SMALL)
        title = _title(small.stages)
        source = small.render(title)
        graph = graph_hash(source)
        if graph in seen:
            continue
        seen.add(graph)
        number += 1
        split = split_of(read_graph(source))
        if scale is not SMALL:
            source = compose(draw, scale)[0].render(title)
        name = f"{split}/{number:04d}_{'_'.join(small.stages[:4]).replace('-', '_')}"
        task = Task(suite="synth", name=name, source=source, level=level)
        yield SyntheticTask(number, task, split, level, graph, tuple(small.stages))


@cache
def known_graphs() -> frozenset[str]:
    """Graph hashes of what is for evaluation: KernelBench's tasks and the built-in ones."""
    listed = (files("cuda_l1.tasks.synth") / "kernelbench_graphs.txt").read_text().splitlines()
    return frozenset(line for line in listed if line and not line.startswith("#")) | {
        graph_hash(task) for device in ("cpu", "cuda") for task in builtin_suite(device=device)
    }


def _title(stages: list[str]) -> str:
    text = ", ".join(name.replace("-", " ") for name in stages)
    return f"{text[:1].upper()}{text[1:]}."
