"""A stand-in for the evaluator, and what its commands print."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any, Self

from typer.testing import Result

from cuda_l1.config import EvaluatorSettings, Protocol
from cuda_l1.errors import InfrastructureError, TaskError
from cuda_l1.types import (
    Candidate,
    Correctness,
    Environment,
    Evaluation,
    Finding,
    Outcome,
    Pair,
    Task,
    TaskAudit,
    Timing,
    Trial,
    Verification,
)

PLACE = Environment(device="cpu", device_name="test cpu", lane="0", rung="R1", torch="2.13.0+cpu", python="3.11")

FAST = "class ModelNew(Model):\n    pass\n"
REFERENCE = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(4, 4)]


def get_init_inputs():
    return []
"""


class FakeEvaluator:
    """Says what a candidate's text says of itself: `# speedup 2.0`, `# outcome CRASHED`, and so on."""

    environment = PLACE
    settings = EvaluatorSettings()

    def __init__(self, settings: EvaluatorSettings | None = None) -> None:
        FakeEvaluator.settings = settings or EvaluatorSettings()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def verify(self, task: Task, candidate: Candidate) -> Verification:
        """Wrong where the text says `# wrong NAME=VALUE` of the size; refused where the task says `# refuses` it."""
        size = task.name.partition("[")[2].rstrip("]")
        if f"# refuses {size}\n" in task.source:
            raise TaskError(f"{task.id}: no such size")
        is_wrong = f"# wrong {size}\n" in candidate.source
        trial = Trial(kind="base", error=1e-7, reference_error=1e-7, bound=1e-6, passed_class="fp32")
        return Verification(
            candidate_id=candidate.id,
            task_sha=task.sha,
            outcome=Outcome.WRONG_VALUES if is_wrong else Outcome.ACCEPTED,
            correctness=None if is_wrong else Correctness(trials=(trial,), precision_class="fp32", task_class="fp32"),
            environment=self.environment,
            task_flags=("degenerate",) if f"# degenerate {size}\n" in task.source else (),
        )

    def interrupt(self) -> None:
        pass

    def close(self) -> None:
        pass

    def audit(self, task: Task, progress: Callable[[str], None] | None = None) -> TaskAudit:
        if "# does not run" in task.source:
            raise TaskError(f"{task.id}: get_inputs() raised")
        flags = ("degenerate",) if "# degenerate" in task.source else ()
        return TaskAudit(task_id=task.id, task_class="fp32", mode="train", flags=flags, reference_us=10.0)

    def evaluate(
        self,
        task: Task,
        candidate: Candidate,
        *,
        protocol: Protocol,
        baselines: Sequence[Candidate] = (),
        best_of: Sequence[str] = (),
        best_so_far: float | None = None,
        within_s: float | None = None,
        beside_others: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> Evaluation:
        if progress:
            progress("timing")
        if "# raise KeyboardInterrupt" in candidate.source:
            raise KeyboardInterrupt
        if "# machine fails" in candidate.source:
            raise InfrastructureError("the device is gone")
        outcome = Outcome(said(candidate.source, "outcome", "ACCEPTED"))
        common: dict[str, Any] = {
            "candidate_id": candidate.id,
            "environment": self.environment,
            "protocol": protocol.name,
            "findings": findings(candidate.source),
            "task_flags": ("random",) if "# random" in task.source else (),
        }
        if outcome is not Outcome.ACCEPTED:
            return Evaluation(outcome=outcome, detail="it says so", **common)
        trial = Trial(kind="base", error=1e-7, reference_error=1e-7, bound=1e-6, passed_class="fp32")
        precision_class: Any = said(candidate.source, "class", "fp32")
        correctness = Correctness(trials=(trial,), precision_class=precision_class, task_class="fp32")
        speedup = float(said(candidate.source, "speedup", "1.0"))
        eager = timing(speedup, protocol, "eager")
        others = [timing(speedup / 1.25, protocol, b.label, b.id, tuple(best_of)) for b in baselines]
        return Evaluation(outcome=outcome, correctness=correctness, timings=(eager, *others), **common)


def said(source: str, name: str, default: str) -> str:
    """The word after the last `# name` in the text."""
    words = [line.split()[2] for line in source.splitlines() if line.startswith(f"# {name} ")]
    return words[-1] if words else default


def findings(source: str) -> tuple[Finding, ...]:
    name = said(source, "suspect", "")
    return (Finding(check=name, severity="suspect", evidence="it says so"),) if name else ()


def timing(speedup: float, protocol: Protocol, opponent: str, opponent_id: str = "e", best_of: Any = ()) -> Timing:
    pair = Pair(
        candidate_us=(10.0,),
        opponent_us=(10.0 * speedup,),
        candidate_pid=1,
        opponent_pid=2,
        log_ratio=math.log(speedup),
    )
    final = protocol.name == "final"
    return Timing(
        clock="call",
        opponent=opponent,
        opponent_id=opponent_id,
        pairs=(pair,),
        speedup=speedup,
        speedup_low=speedup * 0.98 if final else None,
        speedup_high=speedup * 1.02 if final else None,
        candidate_us=10.0,
        opponent_us=10.0 * speedup,
        best_of=best_of,
    )


def lines(result: Result) -> list[dict[str, Any]]:
    """The objects of a `--json` run; every line of stdout must be one."""
    return [json.loads(line) for line in result.stdout.splitlines()]
