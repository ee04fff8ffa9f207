"""Verdicts on many replies of a policy at once, through the one verdict function, on every evaluator that there is.

A fault of the machine is no verdict on a reply: such a reply comes back without a record, and so does one whose verdict
takes too long. What others on the machine disturbed is measured once more. Nothing else is paid for twice: what the
archive knows is looked up, then what a table knows that runs share, and the same text is judged once.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, Self, TypeVar

from cuda_l1.archive import Archive
from cuda_l1.config import SCREEN, SamplerSettings
from cuda_l1.config import Protocol as MeasuringProtocol
from cuda_l1.errors import InfrastructureError, TaskError
from cuda_l1.search.disturbed import is_disturbed, undisturbed
from cuda_l1.search.interfaces import SupportsEvaluate
from cuda_l1.search.verdicts import known
from cuda_l1.training.run_directory import RunDirectory
from cuda_l1.training.stages import Event
from cuda_l1.training.table import Table
from cuda_l1.types import Candidate, Record, Task

_TOP = SamplerSettings(kind="top", count=1)


class Asked(NamedTuple):
    """A candidate that a verdict is wanted on."""

    task: Task
    candidate: Candidate


class Judgement(NamedTuple):
    """What came of it: a record, or the fault of the machine (or of the task) that there is none for."""

    record: Record | None
    is_known: bool = False
    """It was in the run's own archive, or the same text stands earlier among those that were asked about."""
    fault: str = ""
    is_tabulated: bool = False
    """It is new to the run, and the table had it."""
    is_task_fault: bool = False
    """The fault is the task's: it cannot be judged by any machine."""

    @property
    def lacking(self) -> str | None:
        """Why there is no verdict to learn from; None where there is one."""
        if self.record is None:
            return self.fault
        if is_disturbed(self.record.evaluation):
            return f"others use the machine: {self.record.evaluation.suspects()[0].evidence}"
        return None


Finished = queue.SimpleQueue[tuple[str, Judgement | BaseException]]
Item = TypeVar("Item")


class Waiting:
    """What waits for evaluators, by task: each keeps the judge of its last task, which another would have to start."""

    def __init__(self, asked: Sequence[Asked]) -> None:
        self._lock = threading.Lock()
        self._by_task: dict[str, list[Asked]] = {}
        self._begun: set[str] = set()
        for each in asked:
            self._by_task.setdefault(each.task.sha, []).append(each)

    def take(self, last: str | None) -> Asked | None:
        """One of the task `last`, else of a task that nobody has begun, else of the one of which most is left; None
        where nothing is."""
        with self._lock:
            new = (sha for sha in self._by_task if sha not in self._begun)
            sha = last if last in self._by_task else next(new, None)
            if sha is None and self._by_task:
                sha = max(self._by_task, key=lambda each: len(self._by_task[each]))
            if sha is None:
                return None
            self._begun.add(sha)
            taken = self._by_task[sha].pop(0)
            if not self._by_task[sha]:
                del self._by_task[sha]
            return taken


class Judge(Protocol):
    """Gives verdicts in one place; `Judging` is one."""

    @property
    def place(self) -> str:
        """The key of the place that its verdicts are from."""
        ...

    def __call__(self, asked: Sequence[Asked]) -> list[Judgement]:
        """One for each, in order. A fault of the machine is an answer, too. Raises ArchiveError."""
        ...


class Judging:
    """A judge over evaluators of one place, each driven by one thread at a time."""

    def __init__(
        self,
        evaluators: Sequence[SupportsEvaluate],
        *,
        archive: Archive,
        run: str,
        within_s: float,
        protocol: MeasuringProtocol = SCREEN,
        table: Table | None = None,
        on_judgement: Callable[[int, int], None] = lambda done, wanted: None,
    ) -> None:
        """`run` is what records carry. `within_s` is for all that are asked about together: what is not judged by then
        is the machine's fault. What is under way ends by the evaluator's own limits, and its verdict is in the archive
        for the next time. `table` is where verdicts of `screen` that are new to the run are looked up and left.
        `on_judgement` hears how many of those that must be paid for are done."""
        self._evaluators, self._archive, self._run, self._table = evaluators, archive, run, table
        self._within_s, self._protocol, self._on_judgement = within_s, protocol, on_judgement
        self._free: queue.SimpleQueue[SupportsEvaluate] = queue.SimpleQueue()
        self._last: dict[int, str] = {}
        """The task that each evaluator had last, by its id."""
        for evaluator in evaluators:
            self._free.put(evaluator)

    @classmethod
    def of(
        cls,
        run: RunDirectory,
        stage: str,
        evaluators: Sequence[SupportsEvaluate],
        *,
        archive: Archive,
        table: Table | None,
        on_event: Callable[[Event], None],
    ) -> Self:
        """As a run's recipe says; `on_event` hears of each verdict as one of `stage`."""

        def tell(done: int, wanted: int) -> None:
            on_event(Event(stage, f"verdict {done} of {wanted}", {"verdict": done, "verdicts": wanted}))

        within_s = run.recipe.evaluation.within_s
        return cls(evaluators, archive=archive, run=run.name, within_s=within_s, table=table, on_judgement=tell)

    @property
    def place(self) -> str:
        """The key of the place that verdicts are from."""
        return self._evaluators[0].environment.key

    def __call__(self, asked: Sequence[Asked]) -> list[Judgement]:
        """One for each, in order. Raises ArchiveError."""
        unique = {each.candidate.id: each for each in asked}
        found = {identity: self._known(each) for identity, each in unique.items()}
        new = [each for identity, each in unique.items() if found[identity] is None]
        judged = {identity: one for identity, one in found.items() if one} | self._judged(new)
        first: set[str] = set()
        answers = []
        for each in asked:
            answer = judged[each.candidate.id]
            is_copy = each.candidate.id in first and answer.record is not None
            answers.append(answer._replace(is_known=True, is_tabulated=False) if is_copy else answer)
            first.add(each.candidate.id)
        return answers

    def _known(self, asked: Asked) -> Judgement | None:
        evaluator = self._evaluators[0]
        own = known(asked.candidate, self._protocol, self._archive, evaluator)
        if own is not None and not is_disturbed(own.evaluation):
            return Judgement(own, is_known=True)
        if self._table is None:
            return None
        found = self._table.look_up(*asked, evaluator=evaluator, archive=self._archive, run=self._run)
        return None if found is None else Judgement(found, is_tabulated=True)

    def _judged(self, asked: Sequence[Asked]) -> dict[str, Judgement]:
        """By candidate id: verdicts that must be paid for."""
        late = Judgement(None, fault=f"no verdict within {self._within_s:.0f} s; the device is busy, or it hangs")
        found = {each.candidate.id: late for each in asked}
        waiting = Waiting(asked)
        finished: Finished = queue.SimpleQueue()
        over = threading.Event()
        for _ in self._evaluators[: len(asked)]:
            threading.Thread(target=self._serve, args=(waiting, finished, over), daemon=True).start()
        until = time.monotonic() + self._within_s
        try:
            for done in range(1, len(asked) + 1):
                identity, answer = finished.get(timeout=max(0.0, until - time.monotonic()))
                if isinstance(answer, BaseException):
                    raise answer
                found[identity] = answer
                self._on_judgement(done, len(asked))
        except queue.Empty:
            pass
        finally:
            over.set()
        return found

    def _serve(self, waiting: Waiting, finished: Finished, over: threading.Event) -> None:
        """One thread: takes an evaluator that is free, and gives it back when nothing waits any more."""
        while (evaluator := _taken(self._free, 0.1)) is None:  # a verdict that came too late may still hold it
            if over.is_set():
                return
        try:
            while not over.is_set() and (each := waiting.take(self._last.get(id(evaluator)))) is not None:
                self._last[id(evaluator)] = each.task.sha
                finished.put((each.candidate.id, self._one(evaluator, each)))
        except BaseException as error:  # noqa: BLE001  it is raised again in the caller's thread
            finished.put(("", error))
        finally:
            self._free.put(evaluator)

    def _one(self, evaluator: SupportsEvaluate, asked: Asked) -> Judgement:
        task, candidate = asked
        best, archive, run = best_speedup(self._archive, task.sha, self.place), self._archive, self._run
        try:
            if self._table is not None:
                found = self._table.verdict(
                    task, candidate, evaluator=evaluator, archive=archive, run=run, best_so_far=best
                )
                return Judgement(found.record, is_tabulated=found.is_hit)
            record = undisturbed(
                task,
                candidate,
                protocol=self._protocol,
                archive=archive,
                evaluator=evaluator,
                run=run,
                best_so_far=best,
            )
        except TaskError as error:
            return Judgement(None, fault=str(error), is_task_fault=True)
        except InfrastructureError as error:
            return Judgement(None, fault=str(error))
        return Judgement(record)


def best_speedup(archive: Archive, task_sha: str, place: str) -> float | None:
    """Of the fastest variant that counts of those that the archive has from a place; None where it has none."""
    best = archive.exemplars.draw(task_sha, _TOP, seed=0, environment_key=place)
    return best[0].score if best else None


def _taken(from_queue: queue.SimpleQueue[Item], within_s: float) -> Item | None:
    try:
        return from_queue.get(timeout=within_s) if within_s else from_queue.get_nowait()
    except queue.Empty:
        return None
