"""What a finished run is worth on tasks that decided nothing in it: asked once, kept, and shown again."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from cuda_l1.archive import Archive
from cuda_l1.archive.faults import file_faults
from cuda_l1.errors import UsageError
from cuda_l1.proposers.policy.checkpoint import read_checkpoint
from cuda_l1.proposers.policy.policy import Policy
from cuda_l1.training.judging import Judge
from cuda_l1.training.opinions import Opinions
from cuda_l1.training.recipe import Recipe
from cuda_l1.training.replies import Grader, Scored, Written, check_machine, figures, pass_rate
from cuda_l1.training.run_directory import RunDirectory, StageDirectory
from cuda_l1.training.sampling import Sampler, policy_of
from cuda_l1.training.sections import EvaluationSection
from cuda_l1.training.stages import Event
from cuda_l1.types import Task

NAME = "held-out"
RESULT = "result.json"
SAMPLES = "samples"


def evaluate_held_out(
    recipe: Recipe,
    run: RunDirectory,
    tasks: Sequence[Task],
    *,
    policy: Path,
    archive: Archive,
    judge: Judge,
    opinions: Opinions | None = None,
    on_event: Callable[[Event], None],
) -> dict[str, Any]:
    """The figures of the policy in a folder on the tasks of the split `held-out`, stored in `RUN/held-out/result.json`.

    A run is evaluated once: stored figures are returned as they are. Goes on where it was interrupted. Raises
    UsageError: no such task, or another policy was evaluated; InfrastructureError: the machine failed for all.
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
    chosen = sorted(tasks, key=lambda task: task.sha)[: recipe.evaluation.held_out_tasks]
    if not chosen:
        raise UsageError("none of the recipe's tasks is held out; give it more tasks")
    writer: Callable[[], Policy] = cache(lambda: policy_of(policy, recipe))
    sampler = Sampler(
        recipe, folder, archive, judge.place, lambda text, **figures: on_event(Event(NAME, text, figures))
    )
    grade = Grader(judge, recipe.evaluation, recipe.prompt.kind, policy.name, opinions)
    replies: list[Written] = []
    scored: list[Scored] = []
    for name, first, samples in parts(recipe.evaluation):
        questions = sampler.questions(name, chosen, samples, writer, first=first)
        asked = sampler.replies(name, questions, writer)
        replies, scored = replies + asked, scored + grade(asked)
    check_machine(scored, "the held-out tasks")
    _log(folder, replies, scored)
    result = {
        "policy": str(policy.relative_to(run.path)),
        "policy_sha": sha,
        "denominator": recipe.evaluation.denominator,
        **summarised(replies, scored),
    }
    _write(folder.path / RESULT, result)
    return result


def parts(evaluation: EvaluationSection) -> list[tuple[str, int, int]]:
    """(name, number of the first reply to each task, replies to each) of the parts that are asked for one after the
    other. Raises UsageError where there are more parts than replies."""
    samples, rounds = evaluation.held_out_samples, evaluation.held_out_rounds
    if rounds > samples:
        raise UsageError(
            f"evaluation.held_out_rounds = {rounds} parts of evaluation.held_out_samples = {samples} replies: some "
            "would be empty; ask for more replies, or in fewer parts"
        )
    if rounds == 1:
        return [(NAME, 0, samples)]
    ends = [samples * number // rounds for number in range(rounds + 1)]
    return [(f"{NAME} {number}", ends[number], ends[number + 1] - ends[number]) for number in range(rounds)]


def _log(folder: StageDirectory, replies: Sequence[Written], scored: Sequence[Scored]) -> None:
    """What came of each reply, in `samples.jsonl`, anew where an interruption came between it and the result."""
    path = folder.path / f"{SAMPLES}.jsonl"
    with file_faults(path):
        path.unlink(missing_ok=True)
    for reply, one in zip(replies, scored, strict=True):
        asked = {"task": reply.task.sha, "shown": len(reply.prompt.exemplars), "reply": reply.text}
        came = {"outcome": one.outcome, "candidate": one.candidate_id, "right": one.is_right, "reward": one.reward}
        folder.append(SAMPLES, {**asked, **came})


def summarised(replies: Sequence[Written], scored: Sequence[Scored]) -> dict[str, Any]:
    """Shares over all replies, also by how many variants their question showed, and over the best reply to each task.

    `speedup_best_of_task` is the geometric mean over all tasks; one without a right reply counts 1.0, the denominator.
    """
    by_shown: dict[int, list[Scored]] = defaultdict(list)
    best: dict[str, float] = {}
    for reply, one in zip(replies, scored, strict=True):
        by_shown[len(reply.prompt.exemplars)].append(one)
        figure = one.reward if one.is_right and one.reward else 0.0
        best[reply.task.sha] = max(best.get(reply.task.sha, 0.0), figure)
    floored = [max(1.0, value) for value in best.values()]
    return {
        "tasks": len(best),
        "replies": len(replies),
        **figures(replies, scored),
        **{f"pass_rate_shown_{count}": pass_rate(found) for count, found in sorted(by_shown.items())},
        "tasks_solved": sum(value > 0 for value in best.values()) / len(best),
        "tasks_faster": sum(value > 1.01 for value in best.values()) / len(best),
        "speedup_best_of_task": math.exp(math.fsum(map(math.log, floored)) / len(floored)),
    }


def read_result(run: RunDirectory) -> dict[str, Any] | None:
    """The stored figures; None where the run was not evaluated."""
    path = run.path / NAME / RESULT
    if not path.is_file():
        return None
    with file_faults(path):
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
        return found


def _write(path: Path, result: dict[str, Any]) -> None:
    with file_faults(path):
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(result, indent=2) + "\n", "utf-8")
        partial.replace(path)
