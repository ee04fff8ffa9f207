"""The corpus: each case a folder `cases/FAMILY/NAME` with reference.py, candidate.py, twin.py and case.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuda_l1.types import Candidate, Evaluation, Origin, Outcome, Task

CASES = Path(__file__).parent / "cases"
FAMILIES = ("clock", "memory", "meaning", "harness")
RUNGS = ("R0", "R1", "R2")
FIELDS = {"mechanism", "twin", "devices", "rung", "outcomes", "suspects", "naive", "static", "slow", "protocol"}


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
    naive: str = "correct"
    """What the naive harness says: `correct`, or `faster` (correct, and at least twice as fast as the reference)."""
    static: bool = False
    """Whether only the text gives it away; then static findings count."""
    slow: bool = False
    """Builds with a compiler: marked slow."""
    protocol: str = "quick"
    """`quick`, or `screen` where the verdict needs its samples."""

    @property
    def id(self) -> str:
        return f"{self.family}/{self.name}"

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
    """Raises ValueError for a field that no case has, or a value that means nothing."""
    fields: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    lists = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
    case = Case(family=path.parent.parent.name, name=path.parent.name, folder=path.parent, **lists)
    wrong = [
        fields.keys() - FIELDS,
        {case.family} - set(FAMILIES),
        {case.rung} - set(RUNGS),
        set(case.devices) - {"cpu", "cuda"},
        set(case.outcomes) - set(Outcome),
        {case.naive} - {"correct", "faster"},
        {case.protocol} - {"quick", "screen"},
    ]
    if any(wrong) or not case.outcomes or (Outcome.ACCEPTED in case.outcomes) != bool(case.suspects):
        raise ValueError(f"{path}: {next(filter(None, wrong), 'outcomes and suspects do not fit together')}")
    return case


def gets_full_credit(evaluation: Evaluation, *, static: bool) -> bool:
    """Whether a verdict would count in a headline; with `static=False` what the text shows is left out of account."""
    suspects = [f for f in evaluation.findings if f.severity == "suspect" and (static or not f.static)]
    return evaluation.accepted and not suspects
