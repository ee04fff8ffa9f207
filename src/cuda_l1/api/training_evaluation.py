"""The one evaluation of a finished training run on its held-out tasks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cuda_l1.api.training import evaluators_of, reviewer_of, table_of
from cuda_l1.archive import Archive
from cuda_l1.errors import UsageError
from cuda_l1.proposers.policy.checkpoint import read_checkpoint
from cuda_l1.proposers.policy.policy import require_transformers
from cuda_l1.tasks import load_tasks
from cuda_l1.training.held_out import NAME, evaluate_held_out, read_result
from cuda_l1.training.judging import Judging
from cuda_l1.training.model_card import add_held_out
from cuda_l1.training.opinions import Opinions
from cuda_l1.training.run_directory import RunDirectory
from cuda_l1.training.stages import STAGES, Event
from cuda_l1.training.task_sets import load_task_sets


def evaluate_run(path: Path, *, on_event: Callable[[Event], None]) -> dict[str, Any]:
    """The figures of the last finished stage's policy on held-out tasks, which its card then has, too; see
    `training.held_out.evaluate_held_out`.

    Raises UsageError: there is no such run, another command works in it, no stage is finished or one is not, or another
    policy of the run was evaluated.
    """
    require_transformers()
    run = RunDirectory.open(path)
    policy = _last(run)
    stored = read_result(run)
    if stored is not None and stored["policy_sha"] == read_checkpoint(policy).sha:
        add_held_out(policy, stored)
        return stored
    with run.alone():
        _check_finished(run)
        found = _evaluated(run, policy, on_event)
    add_held_out(policy, found)
    return found


def _evaluated(run: RunDirectory, policy: Path, on_event: Callable[[Event], None]) -> dict[str, Any]:
    recipe = run.recipe
    with (
        Archive.open(run.archive) as archive,
        table_of(run) as table,
        evaluators_of(recipe.evaluation, threads=recipe.run.threads) as evaluators,
    ):
        judge = Judging.of(run, NAME, evaluators, archive=archive, table=table, on_event=on_event)
        device = evaluators[0].environment.device
        tasks = load_task_sets(recipe, device).held_out
        suites = {spec: load_tasks(spec, device=device) for spec in recipe.evaluation.held_out_suites}
        opinions = Opinions.of(
            recipe.evaluation, archive, reviewer_of(recipe.evaluation), lambda text: on_event(Event(NAME, text))
        )
        return evaluate_held_out(
            recipe, run, tasks, suites=suites, policy=policy, archive=archive, judge=judge, opinions=opinions,
            on_event=on_event,
        )  # fmt: skip


def _last(run: RunDirectory) -> Path:
    finished = [name for name in STAGES if run.stage(name).is_done]
    if not finished:
        raise UsageError(f"{run.path}: no stage is finished; `cuda-l1 train all RECIPE.toml --resume` goes on")
    return run.stage(finished[-1]).final


def _check_finished(run: RunDirectory) -> None:
    """A run is evaluated once, so that of a stage that is under way none is left for its policy."""
    for name in STAGES:
        if (stage := run.stage(name)).path.is_dir() and not stage.is_done:
            raise UsageError(
                f"{stage.path}: not finished, and a run is evaluated once; `cuda-l1 train {name} RECIPE.toml --resume` "
                "goes on, or move that folder away to evaluate what was there before it"
            )
