"""Several evaluators at once: what is not timed runs side by side, on every core and every GPU of the kind.

Each evaluator is a parent process of its own, driven by one thread. They meet at the lease of the device: checks share
it, whoever times has it alone.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar

from cuda_l1 import evaluator as evaluators
from cuda_l1.config import EvaluatorSettings
from cuda_l1.evaluator import Evaluator
from cuda_l1.evaluator.gpus import visible_gpus

Work = TypeVar("Work")
Result = TypeVar("Result")
Finished = TypeVar("Finished")

HOST_BYTES = 3 << 30
"""Host memory that an evaluator with its processes takes, generously, where the candidate itself takes little."""
GPU_BYTES = 10 << 30
"""GPU memory for the contexts of an evaluator's processes and the tensors of a task, generously."""
_JOIN_S = 15.0
FAULTS = 3
"""So many faults of the machine in a row end what goes through many tasks: on a broken device the rest would fail as
well."""
QUIET_S = 60.0
"""Without a result for so long, whoever waits is told what is under way."""
_NAMED = 4
"""Jobs that are named then."""


@dataclass(frozen=True)
class Job(Generic[Work]):
    """One thing to do with an evaluator."""

    work: Work
    task_sha: str
    """An evaluator that has this task open already does it sooner."""
    name: str
    """What it is called while it takes long."""
    is_slow_to_build: bool = False
    """Begun first, so that nobody waits for its compiler in the end."""
    needs_room: bool = False
    """Begun last, by the first evaluator, once all others are closed: it found no room on the device beside them."""


@dataclass
class _Todo(Generic[Work]):
    """The jobs of one run."""

    waiting: list[Job[Work]]
    begun: int
    """How many there are by now, those that are done and those that wait among them."""
    under_way: list[Job[Work]] = field(default_factory=list)

    @property
    def ordinary(self) -> list[Job[Work]]:
        """Those that wait and can be done beside others."""
        return [job for job in self.waiting if not job.needs_room]

    def begin(self, job: Job[Work]) -> None:
        """Somebody is at it now."""
        self.waiting.remove(job)
        self.under_way.append(job)

    def add(self, done: Job[Work], following: Sequence[Job[Work]]) -> None:
        """One that was under way is done, and these follow from it."""
        self.waiting = [*following, *self.waiting]
        self.begun += len(following)
        self.under_way.remove(done)


class EvaluatorPool:
    """Evaluators for one device, or for all GPUs like it; the first is started at once, others when there is work.

    with EvaluatorPool(EvaluatorSettings(device="cuda")) as pool:
        for job, result in pool.run(jobs, lambda evaluator, work: ...):
    """

    def __init__(
        self,
        settings: EvaluatorSettings,
        *,
        size: int | None = None,
        places: Sequence[EvaluatorSettings] = (),
        on_quiet: Callable[[str], None] = lambda line: None,
    ) -> None:
        """`size`: how many at most; default: as many as cores and memory allow. `places`: what they are opened with in
        turn, in place of `settings` on its device and those like it. `on_quiet` gets a line on what is under way for
        each minute in which nothing is done. Raises InfrastructureError."""
        self._on_quiet = on_quiet
        self._places = list(places) or [
            settings.model_copy(update={"device": device}) for device in devices_like(settings.device)
        ]
        self.size = size or default_size(len(self._places), on_gpu=settings.device.startswith("cuda"))
        """How many evaluators there are at most."""
        self._changed = threading.Condition()
        self._is_over = False
        self._open: dict[int, str] = {}
        """The task that each evaluator had last: its judge is still there."""
        self.first = evaluators.Evaluator(places[0] if places else settings)
        self._evaluators: list[Evaluator | None] = [self.first]

    def run(
        self,
        jobs: Sequence[Job[Work]],
        do: Callable[[Evaluator, Work], Result],
        then: Callable[[Work, Result], Sequence[Job[Work]]] = lambda work, result: (),
    ) -> Iterator[tuple[Job[Work], Result]]:
        """(job, what `do` made of it), in the order in which they finish; `then` says which jobs follow from that, and
        is called in the thread that did it.

        The first exception is raised here; what is under way then is interrupted, as it is when the caller leaves.
        """
        todo = _Todo(sorted(jobs, key=lambda job: not job.is_slow_to_build), begun=len(jobs))
        finished: queue.SimpleQueue[tuple[Job[Work], Result] | BaseException] = queue.SimpleQueue()
        count = self.size if jobs else 0
        self._evaluators += [None] * (count - len(self._evaluators))
        threads = [
            threading.Thread(target=self._serve, args=(index, todo, do, then, finished), daemon=True)
            for index in range(count)
        ]
        for thread in threads:
            thread.start()
        try:
            taken = 0
            while taken < todo.begun:
                outcome = self._next_of(finished, todo)
                if isinstance(outcome, BaseException):
                    raise outcome
                taken += 1
                yield outcome
        except BaseException:
            self._interrupt()
            raise
        finally:
            for thread in threads:
                thread.join(_JOIN_S)

    def _next_of(self, finished: queue.SimpleQueue[Finished], todo: _Todo[Work]) -> Finished:
        begin = time.monotonic()
        while True:
            try:
                return finished.get(timeout=QUIET_S)
            except queue.Empty:
                with self._changed:
                    names = list(dict.fromkeys(job.name for job in todo.under_way))
                more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
                took = time.monotonic() - begin
                self._on_quiet(f"still at work, {took:.0f} s without a result: {', '.join(names[:_NAMED])}{more}")

    def _serve(
        self,
        index: int,
        todo: _Todo[Work],
        do: Callable[[Evaluator, Work], Result],
        then: Callable[[Work, Result], Sequence[Job[Work]]],
        finished: queue.SimpleQueue[tuple[Job[Work], Result] | BaseException],
    ) -> None:
        try:
            while (job := self._next(todo, index)) is not None:
                if job.needs_room:
                    self._close_others()
                result = do(self._evaluator(index), job.work)
                following = then(job.work, result)
                with self._changed:
                    todo.add(job, following)
                    self._changed.notify_all()
                finished.put((job, result))
        except BaseException as error:  # noqa: BLE001  it is raised again in the caller's thread
            finished.put(error)

    def _next(self, todo: _Todo[Work], index: int) -> Job[Work] | None:
        """The next job, once there is one: of the task that this evaluator has open, else of one that no other has, in
        both cases those first that are slow to build, else any; what needs room in the end. None when all are done."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_over or todo.ordinary or not todo.under_way)
            waiting = todo.ordinary or (todo.waiting if index == 0 else [])
            if self._is_over or not waiting:
                return None
            others = {sha for other, sha in self._open.items() if other != index}
            slow = [job for job in waiting if job.is_slow_to_build]
            same = (job for job in (*slow, *waiting) if job.task_sha == self._open.get(index))
            free = (job for job in (*slow, *waiting) if job.task_sha not in others)
            job = next(same, None) or next(free, None) or (slow or waiting)[0]
            self._open[index] = job.task_sha
            todo.begin(job)
            return job

    def _evaluator(self, index: int) -> Evaluator:
        known = self._evaluators[index]
        if known is not None:
            return known
        opened = evaluators.Evaluator(self._places[index % len(self._places)])
        with self._changed:
            self._evaluators[index] = opened
            if self._is_over:
                opened.interrupt()
        return opened

    def _close_others(self) -> None:
        """End all but the first, which then has the device to itself; they are opened again when they are needed."""
        with self._changed:
            others = [evaluator for evaluator in self._evaluators[1:] if evaluator is not None]
            self._evaluators[1:] = [None] * len(self._evaluators[1:])
            self._open = {0: self._open[0]} if 0 in self._open else {}
        for evaluator in others:
            evaluator.close()

    def _interrupt(self) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
            for evaluator in filter(None, self._evaluators):
                evaluator.interrupt()

    def close(self) -> None:
        """End all of them."""
        for evaluator in filter(None, self._evaluators):
            evaluator.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is not None:
            self._interrupt()
        self.close()


def default_size(devices: int, *, on_gpu: bool) -> int:
    """As many evaluators as there are cores, fewer where memory is short; one for each GPU at least."""
    count = min(len(os.sched_getaffinity(0)), max(1, available_bytes() // HOST_BYTES))
    if on_gpu:
        room = min((gpu.memory_bytes for gpu in visible_gpus()), default=0) // GPU_BYTES
        count = min(count, devices * max(1, room))
    return max(count, devices)


def available_bytes() -> int:
    """Host memory that could be had now."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def devices_like(device: str) -> list[str]:
    """For `cuda` every visible GPU of the model of the first; another device is alone."""
    if device != "cuda":
        return [device]
    gpus = visible_gpus()
    return [f"cuda:{gpu.index}" for gpu in gpus if gpu.name == gpus[0].name] or [device]
