"""Stage 3: contrastive reinforcement learning on measured execution time. Imports torch and TRL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from datasets import Dataset

from cuda_l1.archive import Archive
from cuda_l1.errors import UsageError
from cuda_l1.prompts.prompting import Prompting
from cuda_l1.proposers.policy.policy import Policy
from cuda_l1.search.interfaces import SupportsReview
from cuda_l1.training.checkpoints import going_on_from, saving_faults
from cuda_l1.training.checks import check_lag
from cuda_l1.training.contrastive_log import Told
from cuda_l1.training.contrastive_trainer import ContrastiveTrainer, Validations
from cuda_l1.training.finite import Finite
from cuda_l1.training.forms import read_shown, unseen
from cuda_l1.training.grpo import arguments
from cuda_l1.training.in_parts import whole_weights
from cuda_l1.training.judging import Judge, Judging
from cuda_l1.training.loading import load_policy, save_policy
from cuda_l1.training.model_card import describe
from cuda_l1.training.opinions import Opinions
from cuda_l1.training.processes import ALONE, Processes, lost_processes
from cuda_l1.training.recipe import Recipe
from cuda_l1.training.replies import Grader
from cuda_l1.training.rounds import Rounds
from cuda_l1.training.run_directory import RunDirectory, StageDirectory, step_of
from cuda_l1.training.sampling import Sampler, prompting_of, settings_of, validated
from cuda_l1.training.server import Server
from cuda_l1.training.stages import Event, Surroundings
from cuda_l1.training.task_sets import load_task_sets
from cuda_l1.training.validation import NAME as VALIDATION
from cuda_l1.training.validation import Validation, is_over, scores_in
from cuda_l1.types import Task

NAME = "contrastive"
Say = Callable[[Event], None]


def run(recipe: Recipe, run: RunDirectory, *, start: Path, surroundings: Surroundings, on_event: Say) -> Path:
    """Trains the policy in the folder `start` on the tasks of the recipe; see `stages.RunStage`.

    Raises UsageError: too few right replies to begin with, no task that fits the policy's context, sizes that do not
    divide each other, a loss, gradients or weights that are no numbers. InfrastructureError: the machine failed for
    every candidate of a round, the disk is full.
    """
    sets = load_task_sets(recipe, recipe.evaluation.kind)

    def beside(folder: Path, figures: dict[str, float]) -> None:
        describe(folder, run, NAME, start=start, figures=figures)

    processes = surroundings.processes
    check_lag(recipe)
    with ExitStack() as stack:
        evaluators = processes.first(lambda: stack.enter_context(surroundings.evaluators()))
        archive, judge = surroundings.archive, None
        if evaluators is not None and archive is not None:
            judge = Judging.of(run, NAME, evaluators, archive=archive, table=surroundings.table, on_event=on_event)
        return train(
            run, sets.train, validation=sets.validation, start=start, archive=archive, judge=judge,
            reviewer=surroundings.reviewer, on_event=on_event, beside=beside, processes=processes,
        )  # fmt: skip


def train(
    run: RunDirectory,
    tasks: Sequence[Task],
    *,
    validation: Sequence[Task] = (),
    start: Path,
    archive: Archive | None,
    judge: Judge | None,
    reviewer: SupportsReview | None = None,
    on_event: Say,
    beside: Callable[[Path, dict[str, float]], None] = lambda folder, figures: None,
    processes: Processes = ALONE,
) -> Path:
    """The stage with archive and judge at hand; both are None in all processes but the main one. Raises as `run` does.

    `beside` is given the folder of each checkpoint and of the trained policy, and the figures so far, to write there
    what it is.
    """
    recipe, stage = run.recipe, run.stage(NAME)
    section, iterations = recipe.contrastive, recipe.contrastive.iterations
    policy = load_policy(start, recipe, longest=recipe.generation.max_new_tokens)
    context = getattr(policy.model.config, "max_position_embeddings", None)
    writer = Policy(policy.model, policy.tokenizer, settings_of(recipe), context_tokens=context)
    prompting = prompting_of(recipe, writer)
    fitting = askable(tasks, prompting, on_event)
    checkpoint = going_on_from(stage, processes)
    rounds = validating = None
    if judge is not None and archive is not None:
        if checkpoint:
            on_event(Event(NAME, f"goes on from {checkpoint.name}"))
        grade = _grader(judge, recipe, start, archive, reviewer, on_event)
        rounds = _rounds(run, fitting, prompting, archive, grade, on_event)
        rounds.resume(_round_of(checkpoint, iterations))
        stage.rewind("metrics", checkpoint)
        validating = _validation(validation, writer, recipe, run, archive, grade, on_event)
    every, before = processes.share(
        lambda: (section.validate_every if validating else 0, tuple(scores_in(list(stage.rows("metrics")))))
    )
    if checkpoint and is_over(before, section.patience):  # killed before its policy was written: no round is left
        recipe = _with_rounds(recipe, _round_of(checkpoint, iterations))
    told = Told(stage, on_event, rounds.best if rounds else {}, on_checkpoint=beside)
    trainer = ContrastiveTrainer(
        rounds=rounds,
        processes=processes,
        server=_server(recipe, processes, on_event),
        lag=section.lag,
        validations=Validations(every, section.patience, before, validating),
        at_a_time=recipe.generation.batch,
        model=policy.model,
        args=arguments(recipe, stage.path, large=policy.is_large),
        train_dataset=rows(fitting, recipe),
        processing_class=policy.tokenizer,
        peft_config=policy.adapters,
        callbacks=[told, Finite(stage)],
    )
    if every and not trainer.validates:
        text = "weights lie in parts on several processes, so the policy is not validated: final is the last checkpoint"
        on_event(Event(NAME, text, {"alarm": text}))
    with saving_faults(stage), lost_processes():
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    model = _best_model(trainer, stage, start, recipe, on_event)
    weights = whole_weights(model)
    keep = partial(save_policy, model, policy.tokenizer, stage.final, recipe=recipe, weights=weights)
    processes.first(lambda: keep(beside=lambda folder: beside(folder, told.results)))
    return stage.final


def _grader(
    judge: Judge, recipe: Recipe, start: Path, archive: Archive, reviewer: SupportsReview | None, on_event: Say
) -> Grader:
    """What says how much replies of the policy that began in `start` are worth."""
    opinions = Opinions.of(recipe.evaluation, archive, reviewer, lambda text: on_event(Event(NAME, text)))
    model = f"{start.parent.name}/{start.name}"
    return Grader(judge, recipe.evaluation, recipe.prompt.kind, model=model, opinions=opinions)


def _rounds(
    run: RunDirectory, tasks: Sequence[Task], prompting: Prompting, archive: Archive, grade: Grader, on_event: Say
) -> Rounds:
    """The stage's rounds, before any; an alarm where they show more variants than the run's stage 1 has."""

    def alarm(text: str) -> None:
        on_event(Event(NAME, text, {"alarm": text}))

    section = run.recipe.contrastive
    if text := unseen(read_shown(run.stage("sft")), section.sampler):
        alarm(text)
    return Rounds(
        tasks={task.sha: task for task in tasks},
        section=section,
        prompting=prompting,
        archive=archive,
        grade=grade,
        stage=run.stage(NAME),
        seed=run.recipe.run.seed,
        alarm=alarm,
    )


def _server(recipe: Recipe, processes: Processes, on_event: Say) -> Server | None:
    """The server that writes, once it is healthy; None where the model itself does. Raises InfrastructureError."""
    if recipe.generation.engine != "vllm-server":
        return None
    server = Server(recipe.generation.server, lambda text: on_event(Event(NAME, text)))
    processes.first(server.wait)
    return server


def _best_model(trainer: ContrastiveTrainer, stage: StageDirectory, start: Path, recipe: Recipe, on_event: Say) -> Any:
    """The trained model with the weights of the best validation, in every process; where the one before the first round
    was the best, the policy in `start`."""
    best = trainer.take_best(stage)
    if best == 0:
        text = "no validation was better than the one before the first round: final is the policy that it began with"
        on_event(Event(NAME, text, {"alarm": text, "best_step": 0}))
        return load_policy(start, recipe, longest=recipe.generation.max_new_tokens).model
    if best:
        on_event(Event(NAME, f"final is the policy of step {best}: no validation was better", {"best_step": best}))
    return trainer.accelerator.unwrap_model(trainer.model)


def rows(tasks: Sequence[Task], recipe: Recipe) -> Dataset:
    """A row for each question of the whole stage, in the order in which they are asked: all tasks in a random order,
    then all in another."""
    section, order = recipe.contrastive, Random(recipe.run.seed)
    shas: list[str] = []
    while len(shas) < section.rounds * section.prompts:
        shas += order.sample([task.sha for task in tasks], len(tasks))
    return Dataset.from_dict({"task": shas[: section.rounds * section.prompts]})


def askable(tasks: Sequence[Task], prompting: Prompting, on_event: Say) -> list[Task]:
    """The tasks whose question fits beside a reply without any exemplar; says how many do not. Raises UsageError."""
    found, reasons = [], []
    for task in tasks:
        try:
            prompting.render(task, (), ())
            found.append(task)
        except UsageError as error:
            reasons.append(f"{task.name}: {error}")
    if reasons:
        on_event(Event(NAME, f"{len(reasons)} of {len(tasks)} tasks are left out, too long to ask about; {reasons[0]}"))
    if not found:
        raise UsageError(f"no task fits the policy's context beside generation.max_new_tokens; {reasons[0]}")
    return found


def _validation(
    tasks: Sequence[Task],
    policy: Policy,
    recipe: Recipe,
    run: RunDirectory,
    archive: Archive,
    grade: Grader,
    on_event: Say,
) -> Validation | None:
    """How the policy is validated; None where it is not."""
    chosen = validated(tasks, recipe.contrastive.validation_tasks) if recipe.contrastive.validate_every else []
    if not chosen:
        return None
    folder = StageDirectory(run.stage(NAME).path / VALIDATION)
    sampler = Sampler(
        recipe, folder, archive, grade.judge.place, lambda text, **figures: on_event(Event(NAME, text, figures))
    )
    return Validation(sampler, chosen, grade, policy)


def _with_rounds(recipe: Recipe, rounds: int) -> Recipe:
    return recipe.model_copy(update={"contrastive": recipe.contrastive.model_copy(update={"rounds": rounds})})


def _round_of(checkpoint: Path | None, iterations: int) -> int:
    return step_of(checkpoint) // iterations if checkpoint else 0
