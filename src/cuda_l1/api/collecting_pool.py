"""A collection by several evaluators at once, each on tasks of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

from cuda_l1.api.collecting import Choice, Collection, Outcome
from cuda_l1.api.collecting_writers import Writers
from cuda_l1.api.pool import EvaluatorPool, Job
from cuda_l1.api.proposers import Sources, make_proposers
from cuda_l1.api.writing_process import WritingProcess
from cuda_l1.archive import Archive, RunDirectory
from cuda_l1.config import CollectSettings, SearchSettings
from cuda_l1.evaluator import Evaluator
from cuda_l1.proposers import Proposer


class _Place(NamedTuple):
    """What belongs to one evaluator, which one thread drives."""

    collection: Collection
    """With faults of its own."""
    writers: Writers


class PooledCollection:
    """One run over tasks, for techniques and what data sets brought along, with all evaluators of a pool. Of several
    evaluators each has techniques in a process beside it, which write while it waits for them."""

    def __init__(
        self, settings: CollectSettings, *, archive: Archive, pool: EvaluatorPool, run: RunDirectory, name: str
    ) -> None:
        """`name`: the run whose replies of language models, if any, are its own."""
        self._settings, self._archive, self._pool, self._run, self._name = settings, archive, pool, run, name
        self._places: dict[int, _Place] = {}
        self._processes: list[WritingProcess] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.close()

    def chosen(self, choices: Sequence[Choice]) -> Iterator[tuple[Choice, Outcome]]:
        """What came of each task, as they finish. Raises as `Collection.over` does."""
        jobs = [Job(choice, choice.task.sha, choice.task.name) for choice in choices]
        for job, outcome in self._pool.run(jobs, self._collected):
            yield job.work, outcome

    def _collected(self, evaluator: Evaluator, choice: Choice) -> Outcome:
        place = self._places.get(id(evaluator)) or self._place_of(evaluator)
        return next(place.collection.chosen([choice], place.writers.of))[1]

    def _place_of(self, evaluator: Evaluator) -> _Place:
        def made(settings: SearchSettings, sources: Sources) -> list[Proposer]:
            if self._pool.size == 1:
                return make_proposers(settings, sources)
            self._processes.append(WritingProcess(settings, evaluator.settings.lane))
            return [self._processes[-1]]

        collection = Collection(self._settings, archive=self._archive, evaluator=evaluator, run=self._run)
        sources = Sources(self._archive, self._name, evaluator.environment)
        place = _Place(collection, Writers(self._settings, sources, collection.is_done, made))
        self._places[id(evaluator)] = place
        return place
