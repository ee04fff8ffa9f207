"""KernelBench as a Hugging Face dataset: rows of `level`, `problem_id`, `name` and `code`."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from cuda_l1.errors import InfrastructureError, TaskError
from cuda_l1.tasks.file_task import source_task
from cuda_l1.tasks.folders import require_single
from cuda_l1.tasks.source_file import SourceFile
from cuda_l1.types import Task

_HUB, _OFFLINE = "https://huggingface.co", "HF_HUB_OFFLINE"
_COLUMNS = ("level", "problem_id", "name", "code")


def dataset_tasks(name: str, *, dtype: str | None = None) -> list[Task]:
    """Every task of the dataset `OWNER/NAME`, `OWNER/NAME@REVISION`, or of a copy in a folder, all splits together.

    Names and texts are those of a checkout's files, so that both are the same tasks; nothing is executed. Raises
    TaskError (no library `datasets`, other columns, one problem twice), InfrastructureError where it cannot be loaded.
    """
    rows = sorted(_rows(name), key=lambda row: (int(row["level"]), int(row["problem_id"])))
    require_single(
        (int(row["level"]), f"{row['problem_id']}", f"row {index} of hf:{name}") for index, row in enumerate(rows)
    )
    return [_task(name, row, dtype) for row in rows]


def _task(dataset: str, row: Mapping[str, Any], dtype: str | None) -> Task:
    level, stem = int(row["level"]), str(row["name"]).removesuffix(".py")
    if not stem.startswith(f"{row['problem_id']}_"):
        stem = f"{row['problem_id']}_{stem}"
    where = Path(f"hf:{dataset}") / f"level{level}" / f"{stem}.py"
    return source_task(SourceFile(where, str(row["code"])), "kernelbench", f"level{level}/{stem}", level, dtype=dtype)


def _rows(name: str) -> Iterator[Mapping[str, Any]]:
    path, _, revision = name.partition("@")
    unknown = None if Path(path).is_dir() else _unknown_host()
    try:
        with _offline(unknown is not None):
            import datasets
    except ImportError:
        raise TaskError(f"hf:{name}: needs the library `datasets`, which is not here: pip install datasets") from None
    try:
        with _without_warnings():
            splits = datasets.load_dataset(path, revision=revision or None)
    except (OSError, ValueError, RuntimeError) as error:
        if unknown:
            raise InfrastructureError(
                f"hf:{name}: no copy is in the cache, and there is no way to {unknown}: its name cannot be looked up"
            ) from error
        reason = " ".join(str(error).split())[:300]
        raise InfrastructureError(f"hf:{name}: cannot be loaded: {type(error).__name__}: {reason}") from error
    for split in splits.values():
        missing = [column for column in _COLUMNS if column not in split.column_names]
        if missing:
            raise TaskError(f"hf:{name}: has no column {', '.join(missing)}; KernelBench has {', '.join(_COLUMNS)}")
        yield from split


def _unknown_host() -> str | None:
    """The Hub's host where its name cannot be looked up: asking it would fail six times over half a minute.

    A proxy looks names up by itself.
    """
    host = urlsplit(os.environ.get("HF_ENDPOINT", _HUB)).hostname
    if host is None or getproxies():
        return None
    try:
        socket.getaddrinfo(host, None)
    except OSError:
        return host
    return None


@contextmanager
def _offline(wanted: bool) -> Iterator[None]:
    """What is imported meanwhile asks no host, and looks only into its cache."""
    before = os.environ.get(_OFFLINE)
    if wanted:
        os.environ[_OFFLINE] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_OFFLINE, None)
        else:
            os.environ[_OFFLINE] = before


@contextmanager
def _without_warnings() -> Iterator[None]:
    """What the library says of each of its attempts is left out: the last one is told as an error."""
    logger = logging.getLogger("huggingface_hub")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
