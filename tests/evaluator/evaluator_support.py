"""Tasks as text, and references, candidates and models made from it."""

from __future__ import annotations

import textwrap
from pathlib import Path

from cuda_l1.config import Protocol
from cuda_l1.evaluator.guest.reference import Reference
from cuda_l1.types import Candidate, Evaluation, Origin, Task

QUICK = Protocol(name="screen", pair_s=0.02, max_samples=12)
"""Enough samples for a verdict, too few for a figure."""

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n"


def text(body: str) -> str:
    """A task's or a candidate's file: the usual imports before `body`."""
    return HEAD + textwrap.dedent(body).strip() + "\n"


def task_of(body: str, name: str = "task") -> Task:
    return Task(suite="test", name=name, source=text(body))


def candidate_of(task: Task, body: str, proposer: str = "test") -> Candidate:
    origin = Origin(proposer=proposer, techniques=("written by a test",))
    return Candidate(task_sha=task.sha, task_id=task.id, source=text(body), origins=(origin,))


def reference_of(folder: Path, body: str, device: str = "cpu") -> Reference:
    """The reference as the judge holds it, in this process."""
    path = folder / "reference_task.py"
    path.write_text(text(body))
    return Reference(str(path), device)


def checks(evaluation: Evaluation, severity: str | None = None) -> set[str]:
    """Names of the findings, of one severity when given. Without `busy-machine`, which is about the machine: tests run
    beside one another."""
    return {f.check for f in evaluation.findings if severity in (None, f.severity)} - {"busy-machine"}


LINEAR = """
    class Model(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.linear = nn.Linear(width, width)

        def forward(self, x):
            return torch.relu(self.linear(x))

    def get_inputs():
        return [torch.randn(16, 32)]

    def get_init_inputs():
        return [32]
"""
"""relu(x W^T + b) of (16, 32) inputs."""
