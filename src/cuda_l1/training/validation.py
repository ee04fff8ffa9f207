"""What the policy of stage 3 is worth while it learns, on tasks that nothing is learned from.

RUN/contrastive/validation/   what was asked, what came back and what it was worth, as in stage 2

The main process alone asks. Every reply has random numbers of its own, so those of the training stay as they are.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any

from cuda_l1.proposers.policy.policy import Policy
from cuda_l1.training.replies import Grader, Scored, Written, check_machine, figures, pass_rate
from cuda_l1.training.sampling import Sampler, settings_of
from cuda_l1.types import Task

NAME = "validation"
"""Of its folder, and of its set of questions."""
SCORE = "score"
"""The figure that decides."""
SAMPLES = "samples"


class Validation:
    """Asks one set of questions again and again, written when the stage begins: nothing that the policy writes in it is
    a hint."""

    def __init__(self, sampler: Sampler, tasks: Sequence[Task], grade: Grader, policy: Policy) -> None:
        """`policy` counts the tokens of questions; tasks whose question does not fit are left out, and said."""
        self._sampler, self._grade = sampler, grade
        section = sampler.recipe.contrastive
        self._by = section.validate_by
        self._questions = sampler.questions(NAME, tasks, section.validation_samples, lambda: policy)

    def __bool__(self) -> bool:
        """Whether there is anything to ask."""
        return bool(self._questions)

    def __call__(self, step: int, model: Any, tokenizer: Any) -> dict[str, float]:
        """The figures of a model after so many steps, `score` among them. What was written or judged before an
        interruption is not paid for again. Raises InfrastructureError where there is no verdict at all."""
        began = time.monotonic()
        policy = Policy(model, tokenizer, settings_of(self._sampler.recipe), context_tokens=None)
        replies = self._sampler.replies(f"{step} {NAME}", self._questions, lambda: policy)
        scored = self._grade(replies)
        check_machine(scored, f"the validation after step {step}")
        self._log(step, replies, scored)
        rewards = [each.reward for each in scored if each.reward is not None]
        own = {SCORE: score(replies, scored, self._by), "reward": statistics.fmean(rewards)}
        return {**own, **figures(replies, scored), "seconds": time.monotonic() - began}

    def _log(self, step: int, replies: Sequence[Written], scored: Sequence[Scored]) -> None:
        stage = self._sampler.stage
        stage.keep(SAMPLES, step - 1)  # of a validation that was killed here
        for reply, one in zip(replies, scored, strict=True):
            stage.append(SAMPLES, {"step": step, "task": reply.task.id, "reply": reply.text, **one.logged})


def score(replies: Sequence[Written], scored: Sequence[Scored], by: str) -> float:
    """The mean over tasks of the share of right replies (`pass_rate`), of the mean `reward`, or of the mean of
    log(1 + reward) (`log_reward`); without replies that the machine failed for."""
    tasks: dict[str, list[Scored]] = {}
    for reply, one in zip(replies, scored, strict=True):
        if one.reward is not None:
            tasks.setdefault(reply.task.sha, []).append(one)

    def mean(found: Sequence[Scored]) -> float:
        if by == "pass_rate":
            return pass_rate(found)
        rewards = [each.reward or 0.0 for each in found]
        return statistics.fmean(map(math.log1p, rewards) if by == "log_reward" else rewards)

    return statistics.fmean(mean(found) for found in tasks.values())


def is_over(scores: Sequence[float], patience: int) -> bool:
    """Whether the last `patience` of all validations have not been better than one before them; never with 0."""
    return 0 < patience < len(scores) and max(scores[-patience:]) <= max(scores[:-patience])


def scores_in(rows: Sequence[Mapping[str, Any]]) -> list[float]:
    """The scores in lines of the stage's `metrics.jsonl`."""
    return [row[f"{NAME}_{SCORE}"] for row in rows if f"{NAME}_{SCORE}" in row]
