"""The data of a training run: which tasks may be trained on, and the variants that are collected for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from cuda_l1 import evaluator as evaluators
from cuda_l1 import scoring
from cuda_l1.api.collecting import Choice, Collection, Outcome, choose, examples_of, read_source
from cuda_l1.api.collecting_writers import Writers, search_settings
from cuda_l1.api.places import UNCONFINED
from cuda_l1.api.proposers import Sources, check_proposers
from cuda_l1.archive import Archive
from cuda_l1.archive import RunDirectory as Log
from cuda_l1.config import CollectSettings, EvaluatorSettings
from cuda_l1.errors import InfrastructureError, UsageError
from cuda_l1.export.dataset import CardFacts, write_dataset
from cuda_l1.export.dataset import Example as StoredRow
from cuda_l1.tasks.contamination import EvaluationTasks
from cuda_l1.tasks.evaluation_suites import evaluation_tasks
from cuda_l1.training.data import DataFacts, read_facts, write_facts
from cuda_l1.training.examples import read_rows
from cuda_l1.training.recipe import Recipe
from cuda_l1.training.run_directory import RunDirectory
from cuda_l1.training.stages import Event
from cuda_l1.types import digest

NAME = "data"


def prepare(run: RunDirectory, archive: Archive, on_event: Callable[[Event], None]) -> None:
    """Collects right variants of the recipe's tasks into the archive and `RUN/data`; `RUN/data.json` says of what.

    What was collected before an interruption is not paid for again. Raises UsageError: nothing is named, or it overlaps
    an evaluation suite; InfrastructureError, ArchiveError.
    """
    recipe = run.recipe
    if not recipe.data.tasks and not recipe.data.examples:
        raise UsageError('the recipe names no data; give [data] tasks = ["synth:0:200"], or examples = ["FOLDER"]')
    known, compared = evaluation_tasks(recipe.data.against, recipe.evaluation.kind)
    overlapping = _overlapping_rows(recipe, known)
    sources = [read_source(spec, device=recipe.evaluation.kind) for spec in recipe.data.tasks]
    chosen, excluded = choose(sources, known, allow_overlap=recipe.data.allow_overlap)
    if sources and not chosen:
        raise UsageError(
            f"every task of {', '.join(recipe.data.tasks)} is left out, since others evaluate on it; name other tasks, "
            f"or set data.allow_overlap = true"
        )
    overlapping += [
        f"{choice.task.suite}/{choice.task.name}: {choice.overlaps}" for choice in chosen if choice.overlaps
    ]
    if chosen and read_facts(run) is None:
        _collect(run, chosen, archive, on_event)
    write_facts(
        run,
        DataFacts(
            sources=(*(source.name for source in sources), *(Path(folder).name for folder in recipe.data.examples)),
            tasks=len(chosen),
            left_out=len(excluded),
            compared=tuple(compared),
            overlapping=tuple(overlapping),
        ),
    )


def _overlapping_rows(recipe: Recipe, known: EvaluationTasks) -> list[str]:
    """References of the recipe's data sets that others evaluate on. Raises UsageError where that is not allowed."""
    found: dict[str, str] = {}
    for folder in recipe.data.examples:
        for sha, row in {row.task_sha: row for row in read_rows(Path(folder))}.items():
            if (words := known.found(row.task)) is not None:
                found[sha] = f"{row.task_id}: {words}"
    if found and not recipe.data.allow_overlap:
        first = next(iter(found.values()))
        raise UsageError(
            f"the data holds {len(found)} tasks that others evaluate on ({first}); take them out, or set "
            f"data.allow_overlap = true, which every model card will say"
        )
    return list(found.values())


def _collect(run: RunDirectory, chosen: Sequence[Choice], archive: Archive, on_event: Callable[[Event], None]) -> None:
    """Right variants of the tasks, from the techniques, into the archive and `RUN/data`."""
    recipe = run.recipe
    settings = _settings(recipe, chosen)
    check_proposers(search_settings(settings))
    rows: list[StoredRow] = []
    skipped: list[str] = []
    with evaluators.Evaluator(EvaluatorSettings(device=settings.device, limits=settings.limits)) as evaluator:
        if not scoring.is_confined(evaluator.environment):
            raise InfrastructureError(UNCONFINED)
        log = Log.create(run.path, settings, name=f"collected-{recipe.digest[:8]}")  # records carry this name
        collection = Collection(settings, archive=archive, evaluator=evaluator, run=log)
        writers = Writers(settings, Sources(archive, run.name, evaluator.environment), collection.is_done)
        for number, (choice, outcome) in enumerate(collection.chosen(chosen, writers.of), start=1):
            rows += examples_of(choice, outcome)
            if outcome.skipped:
                skipped.append(f"{choice.task.suite}/{choice.task.name}: {outcome.skipped}")
            on_event(_told(number, len(chosen), outcome))
    if not rows:
        raise UsageError(f"the techniques found no right variant of {len(chosen)} tasks; name other tasks, or examples")
    facts = CardFacts(
        name=run.name, sources=list(recipe.data.tasks), attempts=settings.attempts, keep=settings.keep,
        tasks=len(chosen), excluded=[], skipped=skipped, unread=0, compared=[],
    )  # fmt: skip
    write_dataset(run.data, rows, facts)


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
