"""The rows of the policy ablation without learning: techniques alone, on the tasks that policies are asked about."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import NamedTuple

from cuda_l1 import scoring
from cuda_l1.api.training import evaluators_of, table_of
from cuda_l1.archive import Archive
from cuda_l1.proposers.techniques.proposer import TechniqueProposer
from cuda_l1.training.denominators import Denominators
from cuda_l1.training.judging import Asked, Judgement, Judging
from cuda_l1.training.recipe import Recipe
from cuda_l1.training.run_directory import RunDirectory
from cuda_l1.training.sections import EvaluationSection
from cuda_l1.types import Candidate, Record, Task

LONG_S = 1e6
"""For all verdicts that are asked for together: hundreds."""
Say = Callable[[str], None]
Written = tuple[str, Candidate | None]
"""Name of the techniques, and what they make of a task; None: nothing."""


class Judged(NamedTuple):
    """What came of one reply."""

    task: str
    name: str
    outcome: str
    right: bool
    reward: float | None
    candidate: str | None = None
    """Its id; None where there was nothing to judge."""


@contextmanager
def judging(run: RunDirectory, say: Say) -> Iterator[Judging]:
    """A judge with the run's archive and the table of all runs."""
    recipe = run.recipe
    with (
        Archive.open(run.archive) as archive,
        table_of(run) as table,
        evaluators_of(recipe.evaluation, threads=recipe.run.threads) as evaluators,
    ):
        yield Judging(
            evaluators,
            archive=archive,
            run=run.name,
            within_s=LONG_S,
            table=table,
            on_judgement=lambda done, wanted: say(f"verdict {done} of {wanted}"),
        )


class Techniques:
    """What the techniques of a recipe make of tasks, each alone, and all rewrites together."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._known: dict[str, list[Candidate]] = {}

    def of(self, task: Task) -> list[Candidate]:
        """In their order."""
        if task.sha not in self._known:
            section = self._recipe.evaluation
            proposer = TechniqueProposer(section.kind, section.precision, self._recipe.data.techniques or None)
            self._known[task.sha] = list(iter(lambda: proposer.propose(task, []), None))
        return self._known[task.sha]

    def called(self, name: str, task: Task) -> Candidate | None:
        """What those of this name make of it; None where they find nothing to do."""
        return next((each for each in self.of(task) if name_of(each) == name), None)


def name_of(candidate: Candidate) -> str:
    """Of its techniques."""
    return "+".join(candidate.origins[0].techniques)


def answered(how: str, recipe: Recipe, training: Sequence[Task], asked: Sequence[Task], judge: Judging) -> list[Judged]:
    """The best `constant` technique on the tasks that are asked about, or of as many as a policy has replies: `random`
    ones, or those of a `search`."""
    techniques, evaluation = Techniques(recipe), recipe.evaluation
    if how == "search":
        return searched(recipe, asked, evaluation.held_out_samples, judge)
    if how == "constant":
        replies = always(constant(techniques, judge, training, evaluation), techniques, asked)
    else:
        replies = at_random(techniques, asked, evaluation.held_out_samples, recipe.run.seed)
    return verdicts(replies, judge, evaluation)


def constant(techniques: Techniques, judge: Judging, training: Sequence[Task], evaluation: EvaluationSection) -> str:
    """The technique with the highest geometric speed-up on training tasks, 1.0 where it does nothing or fails."""
    asked = [Asked(task, each) for task in training for each in techniques.of(task)]
    gains: dict[str, float] = defaultdict(float)
    for each, one in zip(asked, judge(asked), strict=True):
        if len(each.candidate.origins[0].techniques) == 1:
            found = judged(each.task, name_of(each.candidate), one, evaluation)
            gains[name_of(each.candidate)] += math.log(max(1.0, found.reward or 0.0)) if found.right else 0.0
    return max(gains, key=lambda name: (gains[name], name), default="")


def always(name: str, techniques: Techniques, tasks: Sequence[Task]) -> list[tuple[Task, Written]]:
    """One reply to each task: that technique."""
    return [(task, (name, techniques.called(name, task))) for task in tasks]


def at_random(techniques: Techniques, tasks: Sequence[Task], count: int, seed: int) -> list[tuple[Task, Written]]:
    """`count` replies to each task, drawn with repetition from the techniques that find something to do there."""
    replies: list[tuple[Task, Written]] = []
    for task in tasks:
        drawn = Random(f"{seed} {task.sha}").choices(techniques.of(task) or [None], k=count)
        replies += [(task, (name_of(each) if each else "", each)) for each in drawn]
    return replies


def searched(recipe: Recipe, tasks: Sequence[Task], count: int, judge: Judging) -> list[Judged]:
    """What the techniques' own search makes of each task in `count` candidates, fewer where it has no more: all tasks
    are asked for their next candidate, told what came of it, and asked again."""
    section = recipe.evaluation
    proposer = TechniqueProposer(section.kind, section.precision, recipe.data.techniques or None, section.clock)
    history: dict[str, list[Record]] = {task.sha: [] for task in tasks}
    replies: list[Judged] = []
    for _ in range(count):
        offered = [(task, proposer.propose(task, history[task.sha])) for task in tasks]
        wanted = [Asked(task, candidate) for task, candidate in offered if candidate is not None]
        for each, one in zip(wanted, judge(wanted), strict=True):
            replies.append(judged(each.task, name_of(each.candidate), one, section))
            if one.record is not None:
                history[each.task.sha].append(one.record)
    return replies


def verdicts(replies: Sequence[tuple[Task, Written]], judge: Judging, evaluation: EvaluationSection) -> list[Judged]:
    """One for each, in order; a technique that finds nothing to do has given no reply."""
    wanted = [Asked(task, candidate) for task, (_, candidate) in replies if candidate is not None]
    found = iter(judge(wanted))
    return [
        Judged(task.sha, name, "nothing-to-do", right=False, reward=0.0)
        if candidate is None
        else judged(task, name, next(found), evaluation)
        for task, (name, candidate) in replies
    ]


def judged(task: Task, name: str, one: Judgement, section: EvaluationSection) -> Judged:
    """What a verdict is worth, as a policy's reply is."""
    if one.record is None:
        return Judged(task.sha, name, "fault", right=False, reward=None)
    found = one.record.evaluation
    reward = scoring.reward(found, section.clock, section.precision)
    is_right = scoring.counts(found, section.precision)
    return Judged(task.sha, name, str(found.outcome), is_right, reward, one.record.candidate.id)


def best_baselines(tasks: Sequence[Task], judge: Judging, evaluation: EvaluationSection) -> dict[str, float]:
    """How fast each task's best baseline is, as a speed-up over the reference; without those the machine failed at."""
    section = evaluation.model_copy(update={"denominator": "best-baseline"})
    denominators = Denominators(section, tasks)
    denominators.learn(judge(denominators.asked))
    return {task.sha: found for task in tasks if (found := denominators.of(task)) is not None}
