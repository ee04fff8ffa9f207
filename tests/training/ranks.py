"""Processes that train together, forked from one that has loaded torch and TRL: quicker than `torchrun`, and no agent
ends the others when one of them ends."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from killing import FORKS, PATIENCE_S

from cuda_l1.errors import CudaL1Error
from cuda_l1.training.processes import Processes, joined

COUNT = 2


def run(
    work: Callable[..., object], folder: Path, *args: Any, collective_s: float = 60.0, grace_s: float = 60.0
) -> list[str]:
    """How `work(processes, folder, *args)` ended in each of two processes: what it returned, or what was raised, as
    texts; `killed`, or `hangs` for one that is not over `grace_s` seconds after the one before it."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    told = (work, folder, args, collective_s)
    processes = [FORKS.Process(target=_rank, args=(rank, port, *told), daemon=True) for rank in range(COUNT)]
    for process in processes:
        process.start()
    ends: list[str] = []
    for rank, process in enumerate(processes):
        process.join(grace_s if ends else PATIENCE_S)
        ends.append("hangs" if process.exitcode is None else _end(folder, rank))
        process.kill()
    return ends


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _end(folder: Path, rank: int) -> str:
    path = folder / f"{rank}.end"
    return path.read_text() if path.exists() else "killed"


def _rank(
    rank: int, port: int, work: Callable[..., object], folder: Path, args: tuple[Any, ...], collective_s: float
) -> None:
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(COUNT), "LOCAL_WORLD_SIZE": str(COUNT)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    end = folder / f"{rank}.end"
    end.unlink(missing_ok=True)
    try:
        with joined(on_gpu=False, collective_s=collective_s) as processes:
            said = str(_called(work, processes, folder, args))
    except CudaL1Error as error:
        said = f"{type(error).__name__}: {error}"
    end.write_text(said)
    os._exit(0)


def _called(work: Callable[..., object], processes: Processes, folder: Path, args: tuple[Any, ...]) -> object:
    return work(processes, folder, *args)
