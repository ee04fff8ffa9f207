"""What the search needs of the evaluator and of a reviewer, by shape: anything with these methods will do."""

from __future__ import annotations

import typing
from collections.abc import Sequence

from cuda_l1.config import AnyProtocol
from cuda_l1.types import Candidate, Environment, Evaluation, Finding, HackCase, Task


class SupportsEvaluate(typing.Protocol):
    """Gives verdicts in one place; `cuda_l1.evaluator.Evaluator` is one."""

    @property
    def environment(self) -> Environment:
        """Where its evaluations run."""
        ...

    def evaluate(
        self,
        task: Task,
        candidate: Candidate,
        *,
        protocol: AnyProtocol,
        baselines: Sequence[Candidate] = (),
        best_of: Sequence[str] = (),
        best_so_far: float | None = None,
        within_s: float | None = None,
    ) -> Evaluation:
        """Judges a candidate, timed against eager and each of `baselines`.

        `best_of` names the baselines that the given one was best of; `best_so_far` is the task's best speed-up against
        eager, above which a screen is measured twice; after `within_s` seconds building and checking are given up.
        Raises OutOfTimeError when they were, InfrastructureError when the machine is at fault.
        """
        ...


class SupportsReview(typing.Protocol):
    """Gives a second opinion; `cuda_l1.reviewer.Reviewer` is one."""

    def review(
        self,
        task: Task,
        candidate: Candidate,
        evaluation: Evaluation,
        *,
        jump: str,
        cases: Sequence[HackCase],
        within_s: float | None = None,
    ) -> Finding:
        """A finding `review` (suspect, or a note), or the note `no-opinion`; never raises for want of an answer.

        `jump` says why it is asked, `cases` are known attacks like the candidate, `within_s` bounds the time it takes.
        """
        ...
