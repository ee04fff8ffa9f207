"""Several processes that train one policy, as `torchrun` starts them: who does what, and how all end for one reason.

The main process alone opens evaluators, archive and logs. What it finds it shares, and what it fails with is raised in
all. Python values travel over gloo, in groups of their own: waiting for verdicts is no collective of the training, and
occupies no GPU. Importable without torch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from cuda_l1.errors import CudaL1Error, InfrastructureError

T = TypeVar("T")

COLLECTIVE_S = 1800.0
"""How long processes wait for each other while they do the same; torch's own figure."""
PATIENCE_S = 7 * 86400.0
"""How long they wait for what the main process does alone: variants are collected for hours, and verdicts have their
own limit. A process that ends is noticed at once."""
_LOST = ("onnection closed by peer", "onnection reset by peer", "imed out", "roken pipe", "gloo", "NCCL")
"""How gloo and NCCL say that a process is gone: as texts of a RuntimeError."""


def count() -> int:
    """How many train together, by the launcher."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def rank() -> int:
    """The number of this one, from 0."""
    return int(os.environ.get("RANK", "0")) if count() > 1 else 0


def is_main() -> bool:
    """Whether this one writes what all share."""
    return rank() == 0


@dataclass(frozen=True)
class Processes:
    """All processes of a training, seen from this one."""

    rank: int = 0
    """From 0, the main process."""
    count: int = 1
    near: Any = None
    """A group in which all soon do the same."""
    patient: Any = None
    """A group in which all wait for the main process."""

    @property
    def is_main(self) -> bool:
        """Whether this is the main process."""
        return self.rank == 0

    def first(self, work: Callable[[], T]) -> T | None:
        """What `work` returns in the main process, which does it while the others wait; None in those.

        What it raises is raised in all of them. Raises InfrastructureError where a process is gone.
        """
        found: T | None = self._first(work, is_shared=False)
        return found

    def share(self, work: Callable[[], T]) -> T:
        """What `work`, done by the main process alone, returns, in all of them. Raises as `first` does."""
        found: T = self._first(work, is_shared=True)
        return found

    def gather(self, values: Sequence[T]) -> list[T]:
        """The values of all processes, in their order. Raises InfrastructureError where one is gone."""
        if self.count == 1:
            return list(values)
        import torch.distributed as dist

        found: list[Any] = [None] * self.count
        with lost_processes():
            dist.all_gather_object(found, list(values), group=self.near)
        return [value for each in found for value in each]

    def own(self, everywhere: Sequence[T]) -> list[T]:
        """This process's part of what all have, in equal parts and in the order of the processes."""
        size = len(everywhere) // self.count
        return list(everywhere[self.rank * size : (self.rank + 1) * size])

    def _first(self, work: Callable[[], T], *, is_shared: bool) -> Any:
        if self.count == 1:
            return work()
        found, failure = self._tried(work) if self.is_main else (None, None)
        there, failed = self._broadcast((found if is_shared else None, _portable(failure)))
        if (cause := failure or failed) is not None:
            raise cause
        return there if is_shared else found

    def _tried(self, work: Callable[[], T]) -> tuple[T | None, Exception | None]:
        try:
            return work(), None
        except Exception as error:  # noqa: BLE001  raised again when the others know of it
            return None, error

    def _broadcast(self, value: tuple[Any, Exception | None]) -> tuple[Any, Exception | None]:
        import torch.distributed as dist

        box = [value]
        with lost_processes():
            dist.broadcast_object_list(box, src=0, group=self.patient)
        return box[0]


ALONE = Processes()


@contextmanager
def joined(*, on_gpu: bool, collective_s: float = COLLECTIVE_S, patience_s: float = PATIENCE_S) -> Iterator[Processes]:
    """The processes that the launcher started, this one among them. TRL and accelerate use what is opened here.

    Raises InfrastructureError where they do not find each other.
    """
    if count() == 1:
        yield ALONE
        return
    import torch
    import torch.distributed as dist

    if on_gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    with lost_processes():
        dist.init_process_group("cpu:gloo,cuda:nccl" if on_gpu else "gloo", timeout=timedelta(seconds=collective_s))
        near = dist.new_group(backend="gloo", timeout=timedelta(seconds=collective_s))
        patient = dist.new_group(backend="gloo", timeout=timedelta(seconds=patience_s))
    yield Processes(dist.get_rank(), dist.get_world_size(), near, patient)
    dist.destroy_process_group()  # after an error, which the others may not know of, it would wait for them


@contextmanager
def lost_processes() -> Iterator[None]:
    """Raises InfrastructureError where a process of the training is gone or does not answer; other errors stay."""
    try:
        yield
    except RuntimeError as error:
        if not any(word in str(error) for word in _LOST):
            raise
        first = str(error).strip().splitlines()[0]
        raise InfrastructureError(
            "another process of this training is gone or does not answer (its last line says why; here: "
            f"{first:.200}); go on with --resume"
        ) from error


def _portable(error: Exception | None) -> Exception | None:
    """What the others raise: our own errors as they are, of any other its text."""
    if error is None or isinstance(error, CudaL1Error):
        return error
    return InfrastructureError(f"the main process failed: {type(error).__name__}: {error}")
