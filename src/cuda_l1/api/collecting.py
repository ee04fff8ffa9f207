"""`collect`: from a suite to a data set, with the archive and the run's log as the only memory of what was paid."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from cuda_l1 import scoring
from cuda_l1.api.pool import FAULTS
from cuda_l1.archive import Archive, RunDirectory
from cuda_l1.config import SCREEN, CollectSettings
from cuda_l1.errors import InfrastructureError, TaskError
from cuda_l1.export.dataset import Example, Split
from cuda_l1.report.ledger import ModelUse, uses_in
from cuda_l1.search.collect import Attempts, Writer, collect
from cuda_l1.search.interfaces import SupportsEvaluate
from cuda_l1.tasks import load_tasks
from cuda_l1.tasks.contamination import EvaluationTasks
from cuda_l1.tasks.evaluation_suites import short_name
from cuda_l1.tasks.graph_hash import graph_hash
from cuda_l1.tasks.load import at_home
from cuda_l1.tasks.public_sets import PUBLIC_SETS, read_public_set
from cuda_l1.tasks.synth import split_of_task
from cuda_l1.types import Candidate, Origin, Record, Task, default_clock

LICENCES = {"builtin": "MIT", "kernelbench": "MIT", "synth": "MIT"}
OWN = "that of your own files"


class Source(NamedTuple):
    """Where tasks come from: what a person typed."""

    spec: str
    name: str
    """The same without the folders of this machine, for what is published."""
    tasks: list[Task]
    given: dict[str, list[Candidate]]
    """Variants that a public set brought along, by the sha of their task."""
    provenance: dict[str, str]
    licence: str
    problems: list[str]


class Choice(NamedTuple):
    """A task that is collected from."""

    source: Source
    task: Task
    overlaps: str | None
    """The evaluation task that it is, or that the generator holds it out, where that was allowed."""


class Outcome(NamedTuple):
    """What came of one task."""

    task: Task
    attempts: list[Attempts]
    skipped: str | None = None
    """Why there is no verdict on it."""
    unfinished: str | None = None
    """Why a model could not be asked to the end."""
    is_known: bool = False
    """All of it was done before an interruption."""


def read_source(spec: str, *, device: str) -> Source:
    """The tasks of a suite, file or public set, and what it says of itself. Raises TaskError."""
    kind, separator, rest = at_home(spec).partition(":")
    if not separator or kind not in PUBLIC_SETS:
        tasks = load_tasks(spec, device=device)
        licence = LICENCES.get(tasks[0].suite, OWN) if tasks else OWN
        return Source(spec, short_name(spec), tasks, {}, {}, licence, [])
    place, _, selection = rest.partition("#")
    read = read_public_set(kind, Path(place))
    wanted = load_tasks(spec, device=device) if selection else [imported.task for imported in read.found]
    given: dict[str, list[Candidate]] = {}
    for imported in read.found:
        if imported.variant is not None:
            given.setdefault(imported.task.sha, []).append(imported.variant)
    provenance = {imported.task.sha: imported.provenance for imported in read.found}
    unique = list({task.sha: task for task in wanted}.values())
    return Source(spec, short_name(spec), unique, given, provenance, read.licence, read.problems)


class LeftOut(NamedTuple):
    """Tasks that are not collected from, a line each."""

    overlapping: list[str]
    """Others evaluate on them."""
    held_out: list[str]
    """They are there to evaluate with."""

    @property
    def lines(self) -> list[str]:
        """Of all of them."""
        return [*self.overlapping, *self.held_out]

    @property
    def reason(self) -> str:
        """How many there are of each kind, in words."""
        return f"{len(self.overlapping)} belong to evaluation suites, {len(self.held_out)} are held out"


def choose(
    sources: list[Source], known: EvaluationTasks, *, allow_overlap: bool, to_train: bool = False
) -> tuple[list[Choice], LeftOut]:
    """(each task once, those left out).

    Synthetic tasks are held out by the generator, unless `allow_overlap` says that what others evaluate on may be had.
    A run that is to train holds out tasks of every suite, and no setting lets it have one: it is evaluated on them.
    """
    chosen: dict[str, Choice] = {}
    overlapping: dict[str, str] = {}
    held_out: dict[str, str] = {}
    for source in sources:
        for task in source.tasks:
            overlap = known.found(task)
            is_held_out = overlap is None and (to_train or task.suite == "synth") and split_of_task(task) == "held-out"
            found = "held out by the generator" if is_held_out else overlap
            if is_held_out and (to_train or not allow_overlap):
                held_out.setdefault(task.sha, f"{task.suite}/{task.name} is {found}")
            elif overlap and not allow_overlap:
                overlapping.setdefault(task.sha, f"{task.suite}/{task.name} is {found}")
            else:
                chosen.setdefault(task.sha, Choice(source, task, found))
    return list(chosen.values()), LeftOut(list(overlapping.values()), list(held_out.values()))


class Collection:
    """One run over tasks that may be trained on."""

    def __init__(
        self, settings: CollectSettings, *, archive: Archive, evaluator: SupportsEvaluate, run: RunDirectory
    ) -> None:
        self._settings, self._archive, self._evaluator, self._run = settings, archive, evaluator, run
        self._place = evaluator.environment.key
        self._faults = 0
        """Of the machine, in a row."""
        self._done = {
            event["task"]: event
            for event in run.events()
            if event["event"] == "collected" and event.get("place") == self._place and "found" in event
        }

    def over(
        self,
        tasks: Sequence[Task],
        writers: Callable[[Task], AbstractContextManager[Sequence[Writer]]],
        on_record: Callable[[Record, bool], None] = lambda record, is_known: None,
    ) -> Iterator[Outcome]:
        """What came of each task, in order; all of it is stored by then. `writers` makes those of a task.

        A task on which a model could not be asked to the end is not done: the next run asks on. Raises
        InfrastructureError after three faults of the machine in a row, ArchiveError.
        """
        for task in tasks:
            if (said := self._done.get(task.sha)) is not None:
                yield self._remembered(task, said)
                continue
            try:
                found, unfinished = self._collected(task, writers, on_record)
            except TaskError as error:
                self._remember(task, [], skipped=str(error))
                yield Outcome(task, [], skipped=str(error))
            except InfrastructureError as error:
                self._faults += 1
                if self._faults >= FAULTS:
                    raise
                yield Outcome(task, [], skipped=str(error))
            else:
                self._faults = 0
                if unfinished is None:
                    self._remember(task, found, skipped=None)
                yield Outcome(task, found, unfinished=unfinished)

    def chosen(
        self,
        choices: Sequence[Choice],
        writers: Callable[[Task, Source], AbstractContextManager[Sequence[Writer]]],
        on_record: Callable[[Record, bool], None] = lambda record, is_known: None,
    ) -> Iterator[tuple[Choice, Outcome]]:
        """As `over`, for tasks with their sources."""
        by_task = {choice.task.sha: choice for choice in choices}
        tasks = [choice.task for choice in choices]
        for outcome in self.over(tasks, lambda task: writers(task, by_task[task.sha].source), on_record):
            yield by_task[outcome.task.sha], outcome

    def model_uses(self) -> list[ModelUse]:
        """What each model at each endpoint was paid in this run and place, and what came of it. Raises ArchiveError."""
        return uses_in(self._archive, self._run.name, self._place, default_clock(self._settings.device))

    def is_done(self, task_sha: str) -> bool:
        """Whether nothing of the task is asked for again."""
        return task_sha in self._done

    def _collected(
        self,
        task: Task,
        writers: Callable[[Task], AbstractContextManager[Sequence[Writer]]],
        on_record: Callable[[Record, bool], None],
    ) -> tuple[list[Attempts], str | None]:
        with writers(task) as made:
            found = collect(
                task,
                made,
                settings=self._settings,
                archive=self._archive,
                evaluator=self._evaluator,
                run=self._run.name,
                on_record=on_record,
            )
            said = (getattr(writer.proposer, "unfinished", None) for writer in made)
            return found, next(filter(None, said), None)

    def _remember(self, task: Task, found: list[Attempts], *, skipped: str | None) -> None:
        said = [{"by": a.by, "tried": a.tried, "kept": [_proposed(r.candidate) for r in a.kept]} for a in found]
        self._run.log("collected", task=task.sha, place=self._place, found=said, skipped=skipped)

    def _remembered(self, task: Task, said: dict[str, Any]) -> Outcome:
        """What the log says, with the records as the archive has them now: a later suspicion takes one away."""
        attempts = []
        for one in said["found"]:
            found = map(self._recalled, one["kept"])
            kept = tuple(r for r in found if r is not None and scoring.counts(r.evaluation, self._settings.precision))
            attempts.append(Attempts(one["by"], one["tried"], kept))
        return Outcome(task, attempts, skipped=said["skipped"], is_known=True)

    def _recalled(self, proposed: dict[str, Any]) -> Record | None:
        record = self._archive.find(proposed["id"], self._place, SCREEN.name)
        if record is None:
            return None
        origins = tuple(map(Origin.model_validate, proposed["origins"]))
        candidate = record.candidate.model_copy(update={"origins": origins, "rationale": proposed["rationale"]})
        return record.model_copy(update={"candidate": candidate})


def _proposed(candidate: Candidate) -> dict[str, Any]:
    """What the log says of a candidate: who wrote it here. Its text is in the archive."""
    origins = [origin.model_dump(mode="json") for origin in candidate.origins]
    return {"id": candidate.id, "origins": origins, "rationale": candidate.rationale}


def training_split(task: Task) -> Split:
    """The split of a task's computation, the generator's for all suites: what it holds out is never trained on."""
    return "train" if split_of_task(task) == "train" else "validation"


def examples_of(choice: Choice, outcome: Outcome) -> list[Example]:
    """The rows of all variants that were kept."""
    return [
        example_of(choice.task, record, attempts.by, choice.source, choice.overlaps)
        for attempts in outcome.attempts
        for record in attempts.kept
    ]


def example_of(task: Task, record: Record, by: str, source: Source, overlaps: str | None) -> Example:
    """The row of a variant that was kept."""
    candidate, evaluation = record.candidate, record.evaluation
    origin, correctness, timing = candidate.origins[0], evaluation.correctness, evaluation.timing("eager")
    assert correctness is not None and correctness.precision_class is not None and timing is not None
    return Example(
        split=training_split(task),
        task_id=task.id,
        task_sha=task.sha,
        suite=task.suite,
        level=task.level,
        graph_hash=graph_hash(task),
        reference=task.source,
        variant=candidate.source,
        candidate_id=candidate.id,
        language=candidate.language,
        by=by,
        proposer=origin.proposer,
        techniques=list(origin.techniques),
        prompt_sha=origin.prompt_sha,
        template=origin.template,
        rationale=candidate.rationale,
        tokens_in=origin.cost.tokens_in,
        tokens_out=origin.cost.tokens_out,
        usd=origin.cost.usd,
        protocol=evaluation.protocol,
        precision_class=correctness.precision_class,
        task_class=correctness.task_class,
        clock=timing.clock,
        speedup_eager=timing.speedup,
        device_name=evaluation.environment.device_name,
        torch=evaluation.environment.torch,
        record=record.id,
        run=record.run,
        licence=source.licence,
        provenance=source.provenance.get(task.sha, source.name),
        overlaps=overlaps,
    )
