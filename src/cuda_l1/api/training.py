"""`train`: from a recipe to checkpoints. Data, evaluators and archive are put together here."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from cuda_l1 import evaluator as evaluators
from cuda_l1.api.lanes import Lane, kept_off, lanes_for, on_lane
from cuda_l1.api.places import check_clock, resolve_device
from cuda_l1.api.pool import default_size, devices_like
from cuda_l1.api.reviewing import parse_reviewer
from cuda_l1.api.training_data import plan, prepare
from cuda_l1.archive import Archive
from cuda_l1.archive.faults import file_faults
from cuda_l1.config import EvaluatorSettings
from cuda_l1.errors import UsageError
from cuda_l1.evaluator import Evaluator
from cuda_l1.evaluator.environment import usable_cores
from cuda_l1.reviewer import Reviewer
from cuda_l1.texts import many
from cuda_l1.training.data import rows_of, unjudged_of
from cuda_l1.training.examples import examples_by
from cuda_l1.training.processes import joined
from cuda_l1.training.recipe import Recipe
from cuda_l1.training.run_directory import RunDirectory, partial_of
from cuda_l1.training.sections import EvaluationSection
from cuda_l1.training.stages import STAGES, Event, Surroundings
from cuda_l1.training.table import Table

MOST_ROWS = 4000
"""That a tokenizer is trained on: more of the same kind change nothing, and take minutes."""


def train(names: Sequence[str], recipe: Recipe, *, resume: bool, on_event: Callable[[Event], None]) -> Path:
    """Runs these stages of `STAGES` in their order and returns the last one's final checkpoint.

    A stage begins from the latest finished one before it in the run, else from the recipe's model. Stages that are
    done are passed over. Started by `torchrun`, all processes call it; the main one alone prepares, judges and tells.
    Raises UsageError, InfrastructureError, ArchiveError.
    """
    recipe = resolved(recipe)
    stages = {name: STAGES[name].run() for name in names}
    reviewer_of(recipe.evaluation)
    with joined(on_gpu=recipe.run.on_gpu) as processes, ExitStack() as stack:
        say = on_event if processes.is_main else _silent
        archive, table = processes.first(lambda: _prepared(recipe, names, resume, say, stack)) or (None, None)
        run = RunDirectory(Path(recipe.run_dir), recipe)
        evaluators = partial(evaluators_of, recipe.evaluation, threads=recipe.run.threads)
        surroundings = Surroundings(archive, evaluators, reviewer_of(recipe.evaluation), processes, table)
        final = run.path
        for name, stage in stages.items():
            start = processes.share(partial(_beginning, name, run))
            if start is None:
                say(Event(name, "is done"))
                final = run.stage(name).final
            else:
                say(Event(name, _told(name, start, run)))
                final = stage(recipe, run, start=start, surroundings=surroundings, on_event=say)
    return final


def prepare_data(recipe: Recipe, *, resume: bool, on_event: Callable[[Event], None]) -> Path:
    """Collects and writes what stage 1 of a recipe learns from and trains nothing, so that no GPU is needed for it; the
    run's folder, in which `train` goes on, here or where it was copied to. Lanes are all cores but one.

    Raises UsageError, InfrastructureError, ArchiveError.
    """
    recipe = _with_places(recipe)
    RunDirectory.check(recipe, resume=resume)
    planned = plan(recipe)
    run = RunDirectory.create(recipe, resume=resume)
    with run.alone(), Archive.open(run.archive) as archive:
        prepare(run, planned, archive, on_event, threads=min(1, len(usable_cores()) - 1))
        _keep_lessons(run, on_event)
    return run.path


def _keep_lessons(run: RunDirectory, on_event: Callable[[Event], None]) -> None:
    """Makes what stage 1 reads, unless the policy that it begins from is not here."""
    from cuda_l1.training.kept_lessons import lessons_for

    policy = Path(run.recipe.model.path) if run.recipe.model.path else _own_tokenizer(run)
    if not policy.is_dir():
        on_event(Event("data", f"no policy at {policy} here: examples become tokens where stage 1 begins"))
        return
    made = lessons_for(run.recipe, run, policy)
    on_event(Event("data", f"{many(made.train.tokens.count, 'example')} to learn from, as tokens"))


def _prepared(
    recipe: Recipe, names: Sequence[str], resume: bool, on_event: Callable[[Event], None], stack: ExitStack
) -> tuple[Archive, Table | None]:
    """The run's folder, which nobody else trains in, and its data; archive and table, which `stack` closes."""
    from cuda_l1.training.checks import check

    RunDirectory.check(recipe, resume=resume, stages=names)
    check(names, recipe)  # before anything is paid for
    planned = plan(recipe)
    run = RunDirectory.create(recipe, resume=resume, stages=names)
    stack.enter_context(run.alone())
    archive = stack.enter_context(Archive.open(run.archive))
    table = stack.enter_context(table_of(run))
    prepare(run, planned, archive, on_event)
    return archive, table


def _silent(event: Event) -> None:
    """The main process tells."""


def resolved(recipe: Recipe) -> Recipe:
    """The recipe with the devices of this machine in place of `auto`.

    Raises InfrastructureError: no such device; UsageError: what is named is none, or it has no such clock, or suites to
    evaluate with may be trained on.
    """
    device = resolve_device(recipe.run.device, name="run.device").partition(":")[0]
    recipe = _with_places(recipe)
    lanes_for(recipe.evaluation, recipe.run.threads)
    return recipe.model_copy(update={"run": recipe.run.model_copy(update={"device": device})})


def _with_places(recipe: Recipe) -> Recipe:
    """The recipe with the devices that rewards are measured on. Raises as `resolved` does."""
    places = [resolve_device(each, name="evaluation.device") for each in recipe.evaluation.places]
    if len(places) > 1 and not all(each.startswith("cuda:") for each in places):
        raise UsageError(f"evaluation.device {recipe.evaluation.device}: several are named as cuda:6,cuda:7")
    if recipe.evaluation.cores is not None and places[0] != "cpu":
        raise UsageError(f"evaluation.cores {recipe.evaluation.cores}: {places[0]} has no lanes of cores; leave it out")
    if recipe.evaluation.held_out_suites and recipe.data.allow_overlap:
        raise UsageError(
            "evaluation.held_out_suites: data.allow_overlap = true could train on them; leave one of them out"
        )
    check_clock(recipe.evaluation.clock, places[0], name="evaluation.clock")
    evaluation = recipe.evaluation.model_copy(update={"device": ",".join(places)})
    return recipe.model_copy(update={"evaluation": evaluation})


def _beginning(name: str, run: RunDirectory) -> Path | None:
    """Where a stage begins that is not done."""
    return None if run.stage(name).is_done else _start(name, run)


def _start(name: str, run: RunDirectory) -> Path:
    """Where a stage begins."""
    earlier = list(STAGES)[: list(STAGES).index(name)]
    for stage in reversed(earlier):
        if run.stage(stage).is_done:
            return run.stage(stage).final
    if run.recipe.model.path:
        return Path(run.recipe.model.path)
    return run.start if run.start.is_dir() else _from_nothing(run)


def _told(name: str, start: Path, run: RunDirectory) -> str:
    """Where a stage begins, for people: a stage before it that nobody finished is not what they expect it to follow."""
    before = list(STAGES)[: list(STAGES).index(name)]
    unfinished = [each for each in before if (stage := run.stage(each)).path.is_dir() and not stage.is_done]
    where = start.relative_to(run.path) if start.is_relative_to(run.path) else start
    left = f", and not from {' and '.join(unfinished)}, begun there and not finished" if unfinished else ""
    return f"begins from {where}{left}"


def _from_nothing(run: RunDirectory) -> Path:
    from cuda_l1.training.lessons import tokenizer_in
    from cuda_l1.training.loading import quiet
    from cuda_l1.training.policy_model import make_policy

    quiet()
    return make_policy(run.recipe, tokenizer_in(_own_tokenizer(run)), run.start)


def _own_tokenizer(run: RunDirectory) -> Path:
    """Of a policy from nothing, trained on some of what stage 1 reads; before there are weights, which bind a run to
    where they are trained."""
    from cuda_l1.training.policy_model import train_tokenizer

    if run.tokenizer.is_dir():
        return run.tokenizer
    recipe = run.recipe
    rows = [*rows_of(recipe, run), *unjudged_of(run)]
    texts = (
        text
        for example in examples_by(recipe, rows[:: math.ceil(len(rows) / MOST_ROWS)])
        for text in (example.prompt.system, example.prompt.user, example.completion)
    )
    made = train_tokenizer(texts, recipe.model.vocabulary, recipe.model.context)
    with file_faults(run.tokenizer):
        made.save_pretrained(partial_of(run.tokenizer))
        partial_of(run.tokenizer).replace(run.tokenizer)
    return run.tokenizer


@contextmanager
def table_of(run: RunDirectory) -> Iterator[Table | None]:
    """The table that a run shares with others; None where it has none. Raises UsageError, ArchiveError."""
    path = run.recipe.evaluation.table
    if path is None:
        yield None
        return
    if Path(path).absolute() == Path(run.archive).absolute():
        raise UsageError(f"evaluation.table {path}: that is the run's own archive; name another file")
    with Table.open(path) as table:
        yield table


def reviewer_of(section: EvaluationSection) -> Reviewer | None:
    """Who is asked about jumps. Raises UsageError for what is no address."""
    settings = parse_reviewer(
        section.reviewer, section.reviewer_model, section.reviewer_key_file, name="evaluation.reviewer"
    )
    return Reviewer(settings) if settings else None


@contextmanager
def evaluators_of(section: EvaluationSection, *, threads: int = 0) -> Iterator[list[Evaluator]]:
    """As many as the recipe says, or as cores and memory allow, on the GPUs that are named; `cuda` names every one like
    the first. With `[evaluation] cores` each has a lane of a CPU, and this process keeps off them: the usable cores but
    for the first `threads`, which a policy has that computes here.

    Raises UsageError where they are not of one kind, since their figures cannot be compared, or have no lane.
    """
    lanes = lanes_for(section, threads)
    settings = _on_lanes(section, lanes) if lanes else _on_devices(section)
    with ExitStack() as stack:
        stack.enter_context(kept_off(lanes))
        with ThreadPoolExecutor(len(settings)) as starting:  # each imports torch
            opened = list(starting.map(lambda each: stack.enter_context(evaluators.Evaluator(each)), settings))
        if len({each.environment.key for each in opened}) > 1:
            names = ", ".join(sorted({each.environment.device_name for each in opened}))
            raise UsageError(f"evaluation.device {section.device}: these differ ({names}); name some of one kind")
        yield opened


def _on_lanes(section: EvaluationSection, lanes: Sequence[Lane]) -> list[EvaluatorSettings]:
    settings = EvaluatorSettings(device=section.device, limits=section.limits)
    return [on_lane(settings, lane) for lane in lanes]


def _on_devices(section: EvaluationSection) -> list[EvaluatorSettings]:
    places = list(section.places) if len(section.places) > 1 else devices_like(section.device)
    count = section.at_once or default_size(len(places), on_gpu=section.kind == "cuda")
    return [EvaluatorSettings(device=places[index % len(places)], limits=section.limits) for index in range(count)]
