"""A task, candidates for it, and a parent in the test's own process, where a fault can be put at any seam."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import waiting
from cuda_l1.config import EvaluatorSettings, Limits, Protocol
from cuda_l1.evaluator import eager_candidate
from cuda_l1.evaluator.parent import Parent
from cuda_l1.types import Candidate, Evaluation, Origin, Task

QUICK = Protocol(name="screen", pair_s=0.02, max_samples=12)
SHORT = Limits(first_call_s=2.0, build_s=10.0, verdict_s=60.0)
GRACE_S = 10.0
"""What a fault may take beyond its deadline."""

HEAD = "import os, time\nimport torch\nimport torch.nn as nn\n\n"
MODULE = """
class {name}(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        {before}
        return torch.relu(self.linear(x))
"""
INPUTS = """
def get_inputs():
    return [torch.randn(16, 32)]

def get_init_inputs():
    return [32]
"""


def module(name: str, before: str = "pass") -> str:
    """A linear layer and a ReLU; `before` runs first in its forward."""
    return MODULE.format(name=name, before=textwrap.indent(textwrap.dedent(before).strip(), " " * 8).strip())


def task_of(before: str = "pass", name: str = "task") -> Task:
    return Task(suite="faults", name=name, source=HEAD + module("Model", before) + INPUTS)


TASK = task_of()


def candidate(before: str = "pass", task: Task = TASK) -> Candidate:
    source = HEAD + module("ModelNew", before)
    return Candidate(task_sha=task.sha, task_id=task.id, source=source, origins=(Origin(proposer="test"),))


def settings(cache: Path, **limits: Any) -> EvaluatorSettings:
    return EvaluatorSettings(device="cpu", cache_dir=str(cache), limits=SHORT.model_copy(update=limits))


@contextmanager
def parent_of(chosen: EvaluatorSettings) -> Iterator[Parent]:
    parent = Parent(chosen)
    try:
        parent.start()
        yield parent
    finally:
        parent.close()


def judged(
    parent: Parent,
    made: Candidate | None = None,
    task: Task = TASK,
    said: Callable[[str], object] = print,
    **asked: bool,
) -> Evaluation:
    """What the parent answers to a client's request."""
    made = made or eager_candidate(task)
    request = {"task": task, "candidate": made, "protocol": QUICK}
    plain = {name: value.model_dump(mode="json", exclude={"sha", "id"}) for name, value in request.items()}
    return Evaluation.model_validate(parent.evaluate({**plain, **asked}, said))


def gone(pids: list[int]) -> bool:
    """Whether all of these processes end within `GRACE_S`."""
    return waiting.gone(pids, GRACE_S)
