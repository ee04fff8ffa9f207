"""What a finished run is worth on tasks that decided nothing in it: asked once, kept, and shown again."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from cuda_l1.archive import Archive
from cuda_l1.archive.faults import file_faults
from cuda_l1.errors import UsageError
from cuda_l1.proposers.policy.checkpoint import read_checkpoint
from cuda_l1.proposers.policy.policy import Policy
from cuda_l1.ratios import geometric_mean
from cuda_l1.tasks.synth import has_unseen_pair
from cuda_l1.training.judging import Judge
from cuda_l1.training.opinions import Opinions
from cuda_l1.training.recipe import Recipe
from cuda_l1.training.replies import Grader, Scored, Written, check_machine, figures, pass_rate
from cuda_l1.training.run_directory import RunDirectory, StageDirectory, write_whole
from cuda_l1.training.sampling import Sampler, policy_of
from cuda_l1.training.sections import EvaluationSection
from cuda_l1.training.stages import Event
from cuda_l1.types import Task

NAME = "held-out"
RESULT = "result.json"
SAMPLES, SUITE_SAMPLES = "samples", "suite_samples"
"""The logs of what came of each reply, to held-out tasks and to those of further suites."""
_OF_A_KIND = (
    "tasks", "replies", "unjudged_tasks", "unjudged_replies", "pass_rate", "tasks_solved", "tasks_faster",
    "speedup_best_of_task",
)  # fmt: skip
"""What is said of a kind of held-out tasks, the latter where one of them could be judged."""


def evaluate_held_out(
    recipe: Recipe,
    run: RunDirectory,
    tasks: Sequence[Task],
    *,
    suites: Mapping[str, Sequence[Task]] | None = None,
    policy: Path,
    archive: Archive,
    judge: Judge,
    opinions: Opinions | None = None,
    on_event: Callable[[Event], None],
) -> dict[str, Any]:
    """The figures of the policy in a folder on the tasks of the split `held-out`, stored in `RUN/held-out/result.json`,
    and apart from them those on `suites`, by what they are called in the recipe.

    A run is evaluated once: stored figures are returned as they are. Goes on where it was interrupted. Raises
    UsageError: no such task, none whose question fits into the policy's context, or another policy was evaluated;
    InfrastructureError: the machine failed for all.
    """
    folder = StageDirectory(run.path / NAME)
    sha = read_checkpoint(policy).sha
    if (stored := read_result(run)) is not None:
        if stored["policy_sha"] != sha:
            raise UsageError(
                f"{folder.path / RESULT}: this run was evaluated with another policy ({stored['policy']}); held-out "
                "tasks that are asked again and again decide something in the end"
            )
        return stored
    if not tasks:
        raise UsageError("none of the recipe's tasks is held out; begin another run with more of them in [data] tasks")
    writer: Callable[[], Policy] = cache(lambda: policy_of(policy, recipe))
    sampler = Sampler(
        recipe, folder, archive, judge.place, lambda text, **figures: on_event(Event(NAME, text, figures))
    )
    grade = Grader(judge, recipe.evaluation, recipe.prompt.kind, policy.name, opinions)

    def asked(name: str, tasks: Sequence[Task]) -> Answered:
        chosen = sorted({task.sha: task for task in tasks}.values(), key=lambda task: task.sha)
        chosen = chosen[: recipe.evaluation.held_out_tasks]
        replies: list[Written] = []
        scored: list[Scored] = []
        for part, first, samples in parts(recipe.evaluation, name):
            questions = sampler.questions(part, chosen, samples, writer, first=first)
            found = sampler.replies(part, questions, writer)
            replies, scored = replies + found, scored + grade(found)
        check_machine(scored, f"{name} tasks")
        return Answered(len(chosen), replies, scored)

    held_out = asked(NAME, tasks)
    if not held_out.replies:
        raise UsageError("no question about a held-out task fits into the policy's context")
    others = {suite: asked(f"{NAME} {suite}", found) for suite, found in (suites or {}).items()}
    _log(folder, SAMPLES, {"": held_out})
    _log(folder, SUITE_SAMPLES, others)
    result = {
        "policy": str(policy.relative_to(run.path)),
        "policy_sha": sha,
        "denominator": recipe.evaluation.denominator,
        **held_out.summary,
        **by_kind(held_out.replies, held_out.scored),
        **({"suites": {suite: found.summary for suite, found in others.items()}} if others else {}),
    }
    write_whole(folder.path / RESULT, json.dumps(result, indent=2) + "\n")
    return result


class Answered(NamedTuple):
    """What came of the questions about some tasks."""

    wanted: int
    """How many tasks."""
    replies: list[Written]
    scored: list[Scored]

    @property
    def summary(self) -> dict[str, Any]:
        """As `summarised`; `left_out` are tasks whose question did not fit into the policy's context."""
        asked = len({reply.task.sha for reply in self.replies})
        return {**summarised(self.replies, self.scored), "left_out": self.wanted - asked}


def parts(evaluation: EvaluationSection, name: str = NAME) -> list[tuple[str, int, int]]:
    """(name, number of the first reply to each task, replies to each) of the parts that are asked for one after the
    other. Raises UsageError where there are more parts than replies."""
    samples, rounds = evaluation.held_out_samples, evaluation.held_out_rounds
    if rounds > samples:
        raise UsageError(
            f"evaluation.held_out_rounds = {rounds} parts of evaluation.held_out_samples = {samples} replies: some "
            "would be empty; ask for more replies, or in fewer parts"
        )
    if rounds == 1:
        return [(name, 0, samples)]
    ends = [samples * number // rounds for number in range(rounds + 1)]
    return [(f"{name} {number}", ends[number], ends[number + 1] - ends[number]) for number in range(rounds)]


def _log(folder: StageDirectory, name: str, answered: Mapping[str, Answered]) -> None:
    """What came of each reply, by suite, anew where an interruption came between it and the result."""
    path = folder.path / f"{name}.jsonl"
    with file_faults(path):
        path.unlink(missing_ok=True)
    for suite, found in answered.items():
        of = {"suite": suite} if suite else {}
        for reply, one in zip(found.replies, found.scored, strict=True):
            asked = {"task": reply.task.sha, "shown": len(reply.prompt.exemplars), "reply": reply.text}
            folder.append(name, {**of, **asked, **one.logged})


def summarised(replies: Sequence[Written], scored: Sequence[Scored]) -> dict[str, Any]:
    """Shares of right ones over the replies that could be judged, also by how many variants their question showed, and
    of the tasks that these are about by the best reply: `replies` and `tasks` are how many. A reply without a reward
    (the machine failed, or others disturbed it) is in `unjudged_replies`, and a task without another in
    `unjudged_tasks`, alone.

    `speedup_best_of_task` is the geometric mean over these tasks; one without a right reply counts 1.0, the
    denominator. Without a task there is no share.
    """
    by_shown: dict[int, list[Scored]] = defaultdict(list)
    best: dict[str, float] = {}
    for reply, one in zip(replies, scored, strict=True):
        if one.reward is None:
            continue
        by_shown[len(reply.prompt.exemplars)].append(one)
        best[reply.task.sha] = max(best.get(reply.task.sha, 0.0), one.reward if one.is_right else 0.0)
    judged = sum(map(len, by_shown.values()))
    counts = {
        "tasks": len(best),
        "replies": judged,
        "unjudged_tasks": len({reply.task.sha for reply in replies} - best.keys()),
        "unjudged_replies": len(replies) - judged,
    }
    if not best:
        return counts
    floored = [max(1.0, value) for value in best.values()]
    return {
        **counts,
        **figures(replies, scored),
        **{f"pass_rate_shown_{count}": pass_rate(found) for count, found in sorted(by_shown.items())},
        "tasks_solved": sum(value > 0 for value in best.values()) / len(best),
        "tasks_faster": sum(value > 1.01 for value in best.values()) / len(best),
        "speedup_best_of_task": geometric_mean(floored),
    }


def by_kind(replies: Sequence[Written], scored: Sequence[Scored]) -> dict[str, dict[str, Any]]:
    """Figures of synthetic tasks alone: `unseen_pairs` of those with a pair of operators that training never shows
    together, `unseen_graphs` of the others. A kind without a task is not in it."""
    tasks = {reply.task.sha: reply.task for reply in replies if reply.task.suite == "synth"}
    kinds = {sha: "unseen_pairs" if has_unseen_pair(task) else "unseen_graphs" for sha, task in tasks.items()}
    found: dict[str, dict[str, Any]] = {}
    for kind in sorted(set(kinds.values())):
        pairs = [pair for pair in zip(replies, scored, strict=True) if kinds.get(pair[0].task.sha) == kind]
        summary = summarised([reply for reply, _ in pairs], [one for _, one in pairs])
        found[kind] = {name: summary[name] for name in _OF_A_KIND if name in summary}
    return found


def read_result(run: RunDirectory) -> dict[str, Any] | None:
    """The stored figures; None where the run was not evaluated."""
    path = run.path / NAME / RESULT
    if not path.is_file():
        return None
    with file_faults(path):
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
        return found
