"""What a reward of 1 is as fast as: a task's reference, or the fastest of its baselines, judged as candidates are."""

from __future__ import annotations

from collections.abc import Sequence

from cuda_l1.proposers.baselines import baselines
from cuda_l1.search.bench import row_of
from cuda_l1.training.judging import Asked, Judgement
from cuda_l1.training.sections import EvaluationSection
from cuda_l1.types import Candidate, Task

EAGER = "eager"
"""The label of the baseline that all are timed against: what disturbs it leaves it at 1."""


class Denominators:
    """The denominators of some tasks, as `evaluation.denominator` says.

    With `best-baseline` that is the fastest baseline of a class that counts, by the verdict at `screen` that the judge
    has on it: as a search and a benchmark choose theirs.
    """

    def __init__(self, evaluation: EvaluationSection, tasks: Sequence[Task]) -> None:
        self._evaluation = evaluation
        self._tasks = list({task.sha: task for task in tasks}.values()) if self._are_baselines else []
        self._best: dict[str, float | None] = {}
        self._faults: dict[str, Judgement] = {}
        self.asked = [Asked(task, each) for task in self._tasks for each in self._baselines(task)]
        """The baselines that a verdict is wanted on, each time: the judge looks up what it knows."""

    @property
    def _are_baselines(self) -> bool:
        return self._evaluation.denominator == "best-baseline"

    def learn(self, judged: Sequence[Judgement]) -> None:
        """Takes the verdicts on `asked`, in its order."""
        records = {asked.candidate.id: one.record for asked, one in zip(self.asked, judged, strict=True)}
        for asked, one in zip(self.asked, judged, strict=True):
            if (fault := one.lacking) is not None and not (one.record is not None and asked.candidate.label == EAGER):
                about = f"no verdict on the baseline {asked.candidate.label} of {asked.task.name}: {fault}"
                self._faults.setdefault(asked.task.sha, one._replace(record=None, fault=about))
        for task in self._tasks:
            found = [(each, records[each.id]) for each in self._baselines(task)]
            row = row_of(task, found, precision=self._evaluation.precision, clock=self._evaluation.clock)
            self._best[task.sha] = (row.best_speedup or 1.0) if task.sha not in self._faults else None

    def of(self, task: Task) -> float | None:
        """How fast it is, as a speed-up against the reference; None where the machine failed at one of the baselines:
        the best of the others could be slower."""
        return self._best[task.sha] if self._are_baselines else 1.0

    def fault(self, task: Task) -> Judgement | None:
        """The fault for which there is none; None where there is one."""
        return self._faults.get(task.sha)

    def at_least(self, best: float | None, task: Task) -> float | None:
        """The faster of `best` and the best baseline, where each is known: what a jump begins at."""
        return max((each for each in (best, self._best.get(task.sha)) if each is not None), default=None)

    def _baselines(self, task: Task) -> list[Candidate]:
        return baselines(task, self._evaluation.device, self._evaluation.precision)
