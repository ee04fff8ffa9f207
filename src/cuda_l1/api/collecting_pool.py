"""A collection by several evaluators at once, each on tasks of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

from cuda_l1.api.collecting import Choice, Collection, Outcome, Source
from cuda_l1.api.collecting_writers import Writers
from cuda_l1.api.pool import EvaluatorPool, Job
from cuda_l1.api.proposers import Sources
from cuda_l1.archive import Archive, RunDirectory
from cuda_l1.config import CollectSettings
from cuda_l1.evaluator import Evaluator
from cuda_l1.proposers import NotYet, Proposer
from cuda_l1.search.collect import Writer
from cuda_l1.types import Candidate, Record, Task


class InTurn:
    """A proposer for several threads: it writes for one at a time, since proposers are made for one."""

    def __init__(self, proposer: Proposer, turn: Lock) -> None:
        self.name, self._proposer, self._turn = proposer.name, proposer, turn

    @property
    def failures(self) -> Sequence[str]:
        """The proposer's."""
        return self._proposer.failures

    def propose(self, task: Task, history: Sequence[Record], until: float) -> Candidate | NotYet | None:
        """The proposer's next candidate."""
        with self._turn:
            return self._proposer.propose(task, history, until)


class PooledCollection:
    """One run over tasks, for techniques and what data sets brought along, with all evaluators of a pool."""

    def __init__(
        self, settings: CollectSettings, *, archive: Archive, pool: EvaluatorPool, run: RunDirectory, name: str
    ) -> None:
        """`name`: the run whose replies of language models, if any, are its own."""
        self._settings, self._archive, self._pool, self._run = settings, archive, pool, run
        self._collections: dict[int, Collection] = {}
        first = self._of(pool.first)
        self._writers = Writers(settings, Sources(archive, name, pool.first.environment), first.is_done)
        self._turn = Lock()

    def chosen(self, choices: Sequence[Choice]) -> Iterator[tuple[Choice, Outcome]]:
        """What came of each task, as they finish. Raises as `Collection.over` does."""
        jobs = [Job(choice, choice.task.sha) for choice in choices]
        for job, outcome in self._pool.run(jobs, self._collected):
            yield job.work, outcome

    def _collected(self, evaluator: Evaluator, choice: Choice) -> Outcome:
        return next(self._of(evaluator).chosen([choice], self._writers_of))[1]

    def _of(self, evaluator: Evaluator) -> Collection:
        """Each evaluator is driven by one thread, and has faults of its own."""
        if id(evaluator) not in self._collections:
            made = Collection(self._settings, archive=self._archive, evaluator=evaluator, run=self._run)
            self._collections[id(evaluator)] = made
        return self._collections[id(evaluator)]

    @contextmanager
    def _writers_of(self, task: Task, source: Source) -> Iterator[list[Writer]]:
        with self._writers.of(task, source) as made:
            yield [writer._replace(proposer=InTurn(writer.proposer, self._turn)) for writer in made]
