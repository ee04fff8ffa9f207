"""The tasks of a recipe in three splits by their graphs: to learn from, to choose with, and to evaluate with once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from cuda_l1.errors import UsageError
from cuda_l1.tasks import load_tasks
from cuda_l1.tasks.evaluation_suites import evaluation_tasks
from cuda_l1.tasks.synth import Split, split_of_task
from cuda_l1.training.recipe import Recipe
from cuda_l1.types import Task


class TaskSets(NamedTuple):
    """Which tasks are for what; none is in two of them."""

    train: tuple[Task, ...]
    validation: tuple[Task, ...]
    """For the choice of a checkpoint and for when to stop."""
    held_out: tuple[Task, ...]
    """For the evaluation of a finished run."""
    overlapping: tuple[str, ...]
    """`task: why` of tasks of evaluation suites, which are left out unless the recipe allows them."""


def load_task_sets(recipe: Recipe, device: str) -> TaskSets:
    """The recipe's tasks, each once; `device` (`cpu`, `cuda`) decides the sizes of synthetic ones.

    A task of an evaluation suite is in no split, or with `allow_overlap` in `train`. Raises TaskError, and UsageError
    where nothing is left to train on.
    """
    data = recipe.data
    tasks = list({task.sha: task for spec in data.tasks for task in load_tasks(spec, device=device)}.values())
    known, _ = evaluation_tasks(recipe.against, device)
    overlaps = {task.sha: found for task in tasks if (found := known.found(task)) is not None}
    mine = [task for task in tasks if task.sha not in overlaps]
    overlapping = [task for task in tasks if task.sha in overlaps]
    train = [*_of("train", mine), *(overlapping if data.allow_overlap else [])]
    if not train:
        raise UsageError(_nothing(len(tasks), len(overlapping)))
    return TaskSets(
        tuple(train),
        tuple(_of("validation", mine)),
        tuple(_of("held-out", mine)),
        tuple(f"{task.id}: {overlaps[task.sha]}" for task in overlapping),
    )


def splits_of(recipe: Recipe) -> Callable[[Task], Split]:
    """The split of a task in the recipe's run, also of one that it does not name. Raises TaskError."""
    if not recipe.data.allow_overlap:
        return split_of_task
    known, _ = evaluation_tasks(recipe.against, recipe.evaluation.kind)
    return lambda task: "train" if known.found(task) else split_of_task(task)


def _of(split: Split, tasks: Sequence[Task]) -> list[Task]:
    return [task for task in tasks if split_of_task(task) == split]


def _nothing(tasks: int, overlapping: int) -> str:
    if not tasks:
        return '[data] names no tasks to sample and reward; give e.g. tasks = ["synth:0"]'
    suites = f"{overlapping} belong to evaluation suites (data.allow_overlap = true trains on them)"
    others = f"{tasks - overlapping} are held out or for validation by their graphs"
    why = ", ".join([suites] * bool(overlapping) + [others] * (tasks > overlapping))
    return f"[data] leaves no task to train on: of {tasks}, {why}; name more tasks"
