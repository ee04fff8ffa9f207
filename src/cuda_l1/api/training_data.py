"""The data of a training run: which tasks may be trained on, and the variants that are collected for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from cuda_l1 import scoring
from cuda_l1.api.collecting import Choice, Outcome, Source, choose, examples_of, read_source
from cuda_l1.api.collecting_pool import PooledCollection
from cuda_l1.api.collecting_writers import search_settings
from cuda_l1.api.lanes import kept_off, lanes_for, on_lane
from cuda_l1.api.places import UNCONFINED
from cuda_l1.api.pool import EvaluatorPool
from cuda_l1.api.proposers import check_proposers
from cuda_l1.api.unjudged import write_unjudged
from cuda_l1.archive import Archive
from cuda_l1.archive import RunDirectory as Log
from cuda_l1.config import CollectSettings, EvaluatorSettings
from cuda_l1.errors import InfrastructureError, UsageError
from cuda_l1.export.dataset import CardFacts, write_dataset
from cuda_l1.tasks.contamination import EvaluationTasks
from cuda_l1.tasks.evaluation_suites import evaluation_tasks, short_name
from cuda_l1.texts import many
from cuda_l1.training.data import DataFacts, read_facts, unjudged_of, write_facts
from cuda_l1.training.examples import Row, read_rows
from cuda_l1.training.recipe import Recipe
from cuda_l1.training.run_directory import RunDirectory
from cuda_l1.training.stages import Event
from cuda_l1.training.task_sets import splits_of
from cuda_l1.types import digest

NAME = "data"


class Plan(NamedTuple):
    """What a recipe's data comes from, before anything is collected of it."""

    sources: list[Source]
    chosen: list[Choice]
    """The tasks that are collected from."""
    shown: frozenset[str]
    """The sha of tasks of `[data] examples` that are not held out."""
    held_out: int
    """How many of those tasks are."""
    left_out: int
    """How many of `[data] tasks` and of these are not learned from."""
    compared: list[str]
    """The suites that tasks were compared with."""
    overlapping: list[str]
    """References that others evaluate on, a line each."""


def plan(recipe: Recipe) -> Plan:
    """What the recipe names, read; nothing is written.

    Raises UsageError, TaskError: nothing is named or none is there, or all of it overlaps an evaluation suite or is
    held out.
    """
    if recipe.data.tasks:
        check_proposers(search_settings(_settings(recipe, [])))
    if not recipe.data.tasks and not recipe.data.examples:
        raise UsageError('the recipe names no data; give [data] tasks = ["synth:0:200"], or examples = ["FOLDER"]')
    known, compared = evaluation_tasks(recipe.against, recipe.evaluation.kind)
    examples = {row.task_sha: row for folder in recipe.data.examples for row in read_rows(Path(folder))}
    overlapping = _overlapping_rows(recipe, examples, known)
    split_of = splits_of(recipe)
    shown = {sha for sha, row in examples.items() if split_of(row.task) != "held-out"}
    held_out = len(examples) - len(shown)
    sources = [read_source(spec, device=recipe.evaluation.kind) for spec in recipe.data.tasks]
    chosen, left_out = choose(sources, known, allow_overlap=recipe.data.allow_overlap, to_train=True)
    if sources and not chosen:
        advice = ", or set data.allow_overlap = true" if left_out.overlapping else ""
        raise UsageError(
            f"no task of {', '.join(recipe.data.tasks)} is left: {left_out.reason}; name other tasks{advice}"
        )
    overlapping += [
        f"{choice.task.suite}/{choice.task.name}: {choice.overlaps}" for choice in chosen if choice.overlaps
    ]
    return Plan(
        sources, chosen, frozenset(shown), held_out, len(left_out.lines) + held_out, list(compared), overlapping
    )


def prepare(
    run: RunDirectory, planned: Plan, archive: Archive, on_event: Callable[[Event], None], *, threads: int | None = None
) -> None:
    """Collects right variants of the planned tasks into the archive and `RUN/data`; `RUN/data.json` says of what.

    Nothing is collected of what the run holds out. What was collected before an interruption is not paid for again. The
    first `threads` cores are in no lane of `[evaluation] cores`; None: those of the policy, `[run] threads`.
    Raises UsageError: no variant is right, or `[data] unjudged` names nothing; InfrastructureError, ArchiveError.
    """
    recipe = run.recipe
    if planned.held_out:
        count = planned.held_out + len(planned.shown)
        on_event(Event(NAME, f"{planned.held_out} of {count} tasks of the data sets are left out: they are held out"))
    write_unjudged(run, on_event)  # first: what it cannot read costs nothing yet
    if planned.chosen and read_facts(run) is None:
        _collect(run, planned.chosen, archive, on_event, recipe.run.threads if threads is None else threads)
    unjudged = unjudged_of(run)
    told = {row.task_sha: f"{row.task_id}: {row.overlaps}" for row in unjudged if row.overlaps}
    write_facts(
        run,
        DataFacts(
            sources=(
                *(source.name for source in planned.sources),
                *(Path(folder).name for folder in recipe.data.examples),
            ),
            tasks=len(planned.shown | {choice.task.sha for choice in planned.chosen}),
            left_out=planned.left_out,
            unjudged=len(unjudged),
            unjudged_tasks=len({row.task_sha for row in unjudged}),
            unjudged_sources=tuple(map(short_name, recipe.data.unjudged)),
            compared=tuple(planned.compared),
            overlapping=(*planned.overlapping, *told.values()),
        ),
    )


def _overlapping_rows(recipe: Recipe, examples: Mapping[str, Row], known: EvaluationTasks) -> list[str]:
    """References of the recipe's data sets that others evaluate on. Raises UsageError where that is not allowed."""
    found = [f"{row.task_id}: {words}" for row in examples.values() if (words := known.found(row.task)) is not None]
    if found and not recipe.data.allow_overlap:
        raise UsageError(
            f"the data holds {many(len(found), 'task')} that others evaluate on ({found[0]}); take them out, or set "
            f"data.allow_overlap = true, which every model card will say"
        )
    return found


def _collect(
    run: RunDirectory,
    chosen: Sequence[Choice],
    archive: Archive,
    on_event: Callable[[Event], None],
    threads: int,
) -> None:
    """Right variants of the tasks, from the techniques, into the archive and `RUN/data`."""
    recipe = run.recipe
    settings = _settings(recipe, chosen)
    outcomes: dict[str, Outcome] = {}
    for choice, outcome in _outcomes(run, settings, chosen, archive, threads):
        outcomes[choice.task.sha] = outcome
        on_event(_told(len(outcomes), len(chosen), outcome))
    rows = [row for choice in chosen for row in examples_of(choice, outcomes[choice.task.sha])]
    skipped = [
        f"{outcome.task.suite}/{outcome.task.name}: {outcome.skipped}"
        for outcome in (outcomes[choice.task.sha] for choice in chosen)
        if outcome.skipped
    ]
    if not rows:
        raise UsageError(
            f"the techniques found no right variant of {many(len(chosen), 'task')}; name other tasks, or examples"
        )
    facts = CardFacts(
        name=run.name, sources=list(recipe.data.tasks), attempts=settings.attempts, keep=settings.keep,
        tasks=len(chosen), excluded=[], skipped=skipped, unread=0, compared=[],
    )  # fmt: skip
    write_dataset(run.data, rows, facts)


def _outcomes(
    run: RunDirectory, settings: CollectSettings, chosen: Sequence[Choice], archive: Archive, threads: int
) -> Iterator[tuple[Choice, Outcome]]:
    """What came of each task, as they finish: by one evaluator, or by one on each lane of `[evaluation] cores`."""
    recipe = run.recipe
    lanes = lanes_for(recipe.evaluation, threads)
    one = EvaluatorSettings(device=settings.device, limits=settings.limits)
    places = [on_lane(one, lane) for lane in lanes] or [one]
    with kept_off(lanes), EvaluatorPool(one, size=len(places), places=places) as pool:
        if not scoring.is_confined(pool.first.environment):
            raise InfrastructureError(UNCONFINED)
        log = Log.create(run.path, settings, name=f"collected-{recipe.digest[:8]}")  # records carry this name
        with PooledCollection(settings, archive=archive, pool=pool, run=log, name=run.name) as collection:
            yield from collection.chosen(chosen)


def _settings(recipe: Recipe, chosen: Sequence[Choice]) -> CollectSettings:
    names = recipe.data.techniques
    return CollectSettings(
        tasks=digest(*(choice.task.sha for choice in chosen)),
        device=recipe.evaluation.places[0],
        proposers=(f"techniques:{'+'.join(names)}" if names else "techniques",),
        attempts=recipe.data.attempts,
        keep=recipe.data.keep,
        precision=recipe.evaluation.precision,
        limits=recipe.evaluation.limits,
    )


def _told(number: int, count: int, outcome: Outcome) -> Event:
    kept = sum(len(one.kept) for one in outcome.attempts)
    said = f"skipped: {outcome.skipped}" if outcome.skipped else f"{kept} right variants"
    return Event(NAME, f"task {number}/{count}, {outcome.task.name}: {said}", {"task": outcome.task.id, "kept": kept})
