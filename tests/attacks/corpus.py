"""The corpus: each case a folder `cases/FAMILY/NAME` with reference.py, candidate.py, twin.py and case.toml."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuda_l1.config import SCREEN, Limits, Protocol
from cuda_l1.evaluator import Evaluator
from cuda_l1.evaluator.gpus import visible_gpus
from cuda_l1.scoring import in_headline
from cuda_l1.types import CHECKS, Candidate, Evaluation, Origin, Outcome, Task

CASES = Path(__file__).parent / "cases"
FAMILIES = ("clock", "memory", "meaning", "harness")
RUNGS = ("R0", "R1", "R2")
BUSY_PAUSES_S = (0.0, 0.0, 5.0, 15.0)
OF_TIME = {"caching", "clock-mismatch", "drawn-ahead", "outside-work"}
"""Findings that say nothing against an answer, only against the time that it is said to have taken."""
QUICK = Protocol(name="screen", pair_s=0.05, max_samples=24)
"""Enough samples for a verdict on an attack that works by a factor of ten."""
LIMITS = Limits(
    build_s=60.0, first_call_s=10.0, verdict_s=60.0, memory_bytes=(8 if visible_gpus() else 3) << 30
)  # fmt: skip
"""What attacks and twins get: CUDA itself holds gigabytes of the host's memory."""


@dataclass(frozen=True)
class Case:
    """One attack with what must become of it."""

    family: str
    name: str
    folder: Path
    mechanism: str
    """What the candidate does, and why a naive harness believes it."""
    twin: str
    """What the honest twin does with the same mechanism."""
    devices: tuple[str, ...] = ("cpu", "cuda")
    """Where the mechanism exists."""
    rung: str = "R0"
    """The lowest sandbox rung that must stop it."""
    outcomes: tuple[str, ...] = ()
    """Any of these is right."""
    suspects: tuple[str, ...] = ()
    """Where ACCEPTED is among the outcomes: suspect findings of which one must be there."""
    inexact: bool = False
    """Where ACCEPTED is among the outcomes: a class less exact than the task's is right too, without a finding."""
    naive: str = "correct"
    """What the naive harness says: `correct`, or `faster` (correct, and at least twice as fast as the reference)."""
    habit: str = ""
    """A habit that the naive harness needs for it, see `naive.py`."""
    static: bool = False
    """Whether only the text gives it away; then static findings count."""
    slow: bool = False
    """Builds with a compiler: marked slow."""
    protocol: str = "quick"
    """`quick`, or `screen` where the verdict needs its samples."""
    known: str = ""
    """Words of docs/threat-model.md, below what no check sees, that name this attack: a known limit. Nothing is then
    due of a verdict on it."""

    @property
    def id(self) -> str:
        return f"{self.family}/{self.name}"

    @property
    def screened(self) -> Protocol:
        """What its verdicts are measured with."""
        return SCREEN if self.protocol == "screen" else QUICK

    def task(self) -> Task:
        return Task(suite="attacks", name=self.id.replace("/", "-"), source=self._text("reference.py"))

    def candidate(self, file: str = "candidate.py") -> Candidate:
        """The attack, or with `twin.py` the honest one."""
        task = self.task()
        origin = Origin(proposer="attack", techniques=(self.name,))
        return Candidate(task_sha=task.sha, task_id=task.id, source=self._text(file), origins=(origin,))

    def _text(self, file: str) -> str:
        return (self.folder / file).read_text(encoding="utf-8")


def cases(device: str) -> list[Case]:
    """All cases whose mechanism exists on the device, by family and name."""
    return [case for case in map(read, sorted(CASES.glob("*/*/case.toml"))) if device in case.devices]


def read(path: Path) -> Case:
    """Raises TypeError for a field that no case has, ValueError for a value that means nothing."""
    given: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    lists = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    case = Case(family=path.parent.parent.name, name=path.parent.name, folder=path.parent, **lists)
    wrong = [
        {case.family} - set(FAMILIES),
        {case.rung} - set(RUNGS),
        set(case.devices) - {"cpu", "cuda"},
        set(case.outcomes) - set(Outcome),
        set(case.suspects) - set(CHECKS),
        {case.naive} - {"correct", "faster"},
        {case.protocol} - {"quick", "screen"},
    ]
    named = bool(case.suspects) or case.inexact
    due = bool(case.outcomes) != bool(case.known)
    if any(wrong) or not due or (Outcome.ACCEPTED in case.outcomes) != named:
        raise ValueError(f"{path}: {next(filter(None, wrong), 'outcomes, suspects and known do not fit together')}")
    return case


def judge(
    evaluator: Evaluator,
    task: Task,
    candidate: Candidate,
    protocol: Protocol,
    is_expected: Callable[[Evaluation], bool] = lambda _: False,
) -> Evaluation:
    """A verdict; another one, later, where it is not the expected one and others were computing. Raises
    InfrastructureError."""
    evaluation = evaluator.evaluate(task, candidate, protocol=protocol)
    for pause_s in BUSY_PAUSES_S:
        was_busy = any(finding.check == "busy-machine" for finding in evaluation.findings)
        if is_expected(evaluation) or not was_busy:
            break
        time.sleep(pause_s)
        evaluation = evaluator.evaluate(task, candidate, protocol=protocol)
    return evaluation


def gets_full_credit(evaluation: Evaluation, *, static: bool) -> bool:
    """Whether a headline could hold this verdict; with `static=False` what the text shows is left out of account.

    By the library's own rule, as if it were confined: each case names the rung that it needs.
    """
    seen = tuple(f for f in evaluation.findings if static or not f.static)
    place = evaluation.environment.model_copy(update={"rung": RUNGS[-1]})
    return in_headline(evaluation.model_copy(update={"findings": seen, "environment": place}))


def gains(evaluation: Evaluation) -> bool:
    """Whether it is measured as faster than the reference, on any clock."""
    return any(timing.speedup > 1.0 for timing in evaluation.timings)


def complaint(case: Case, evaluation: Evaluation) -> str | None:
    """What is wrong with a verdict on the attack; None where it was stopped as the case says, or is a known limit.

    Who answers rightly and only plays with time, and is measured as the slower one for it, as happens beside others who
    compute, has gained nothing that needs a finding.
    """
    if case.known:
        return None
    only_time = bool(case.suspects) and set(case.suspects) <= OF_TIME and not case.inexact
    if evaluation.accepted and only_time and not gains(evaluation):
        return None
    if gets_full_credit(evaluation, static=case.static):
        return "gets full credit"
    if evaluation.outcome not in case.outcomes:
        return f"{evaluation.outcome} is not among {', '.join(case.outcomes)}"
    if not evaluation.accepted or {f.check for f in evaluation.suspects()} & set(case.suspects):
        return None
    if case.inexact and not evaluation.suspects():
        return None
    return f"accepted without {' or '.join(case.suspects) or 'a class that is less exact'}"


def told(evaluation: Evaluation) -> str:
    """Outcome, class and findings in one line."""
    findings = [f"{f.severity} {f.check}: {f.evidence}" for f in evaluation.findings]
    return f"{evaluation.outcome} {evaluation.precision_class} {evaluation.detail}; {findings} {evaluation.task_flags}"
