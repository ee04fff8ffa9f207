"""Processes beside this one for work that takes a core minutes: they end with it, and at once where one fails."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from threading import Thread

from cuda_l1.errors import InfrastructureError


@contextmanager
def side_processes(most: int) -> Iterator[ProcessPoolExecutor]:
    """At most so many, one for each usable core, of one thread each. Raises InfrastructureError where one dies."""
    size = min(most, len(os.sched_getaffinity(0)))
    with ProcessPoolExecutor(size, mp_context=get_context("spawn"), initializer=_begin) as pool:
        try:
            yield pool
        except BrokenProcessPool:
            raise InfrastructureError(
                "a process that prepares data died, perhaps of too little memory; go on with --resume"
            ) from None
        except BaseException:  # the others would work on for minutes
            for child in active_children():
                child.kill()
            raise


def _begin() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"  # torch is not imported yet
    os.environ["RAYON_NUM_THREADS"] = "1"  # of tokenizers
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
