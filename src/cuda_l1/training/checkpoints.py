"""What can go wrong with a checkpoint, in one line each."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cuda_l1.archive.faults import disk_is_full, one_line
from cuda_l1.errors import CudaL1Error, InfrastructureError, UsageError
from cuda_l1.training.processes import Processes
from cuda_l1.training.run_directory import StageDirectory

_WRITERS = ("No space left", "File too large", "Disk quota exceeded", "failed writing file", "unexpected pos")
"""How safetensors, tokenizers and torch say that a disk is full: as texts of errors of their own."""

_PARTS = ("optimizer", "scheduler", "rng_state")
"""How files and folders begin without which a trainer would go on to other weights."""


def is_full(error: Exception) -> bool:
    """Whether what was raised while weights were written says that the disk is full."""
    if isinstance(error, OSError):
        return disk_is_full(error)
    return any(said in str(error) for said in _WRITERS)


@contextmanager
def saving_faults(stage: StageDirectory) -> Iterator[None]:
    """Raises InfrastructureError for a full disk, which names the last good checkpoint; other errors stay."""
    try:
        yield
    except Exception as error:
        if isinstance(error, CudaL1Error) or not is_full(error):
            raise
        kept = stage.checkpoint()
        left = shutil.disk_usage(stage.path).free >> 20
        raise InfrastructureError(
            f"{stage.path}: the disk is full at a checkpoint ({one_line(error)}; {left} MiB are free); free some space "
            f"and go on with --resume from {kept.name if kept else 'the beginning'}"
        ) from error


def going_on_from(stage: StageDirectory, processes: Processes) -> Path | None:
    """The latest whole checkpoint of a stage, the same one in all processes.

    Raises UsageError where other than so many processes wrote it: each has random states of its own, and a part of
    every batch; and where it lacks what a trainer would go on without, to other weights.
    """
    checkpoint = processes.share(stage.checkpoint)
    if checkpoint is not None and (lacking := [part for part in _PARTS if not any(checkpoint.glob(f"{part}*"))]):
        raise UsageError(
            f"{checkpoint}: has no {lacking[0]}, as a copy that was cut short; delete it, and --resume goes on from "
            "the one before"
        )
    if checkpoint is not None and (count := len(list(checkpoint.glob("rng_state*.pth")))) != processes.count:
        raise UsageError(
            f"{checkpoint}: written by {count} processes, and {processes.count} are training now; start as many again, "
            "or begin another run"
        )
    return checkpoint
