"""Where things are: the device that a person named, and the folder for what is kept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cuda_l1.errors import InfrastructureError, UsageError

if TYPE_CHECKING:
    from cuda_l1.types import Record

UNCONFINED = (
    "the sandbox rung is R0, where a candidate could change its own verdict, so none wins or is exported; "
    "`cuda-l1 doctor` says how to raise it"
)
"""What people are told where nothing walls candidates off."""


def by_earlier_rules(records: Iterable[Record]) -> str | None:
    """A line where some of these verdicts were given by other rules than this release's."""
    from cuda_l1.evaluator.environment import RULES

    earlier = [record for record in records if record.evaluation.environment.rules < RULES]
    if not earlier:
        return None
    which = ", ".join(sorted({record.candidate.task_id.partition("@")[0] for record in earlier}))
    return f"judged by the rules of an earlier release: {which}; `cuda-l1 evaluate --fresh` judges anew"


def resolve_device(text: str, name: str = "--device") -> str:
    """`cpu`, `cuda` or `cuda:N` for `auto` or one of these, without loading torch.

    `name` is what a person calls the setting. Raises UsageError for any other text, InfrastructureError for a GPU that
    is not there.
    """
    from cuda_l1.evaluator.environment import find_device

    try:
        device = find_device(text, name=name)
    except UsageError as error:
        if re.fullmatch(r"cuda(:\d+)?", text):
            raise InfrastructureError(str(error)) from error
        raise
    return device.kind if text == "auto" else text


def check_choice(name: str, value: str | None, known: Sequence[str | None]) -> None:
    """Raises UsageError where `value` is none of the words that an argument called `name` may be."""
    if value not in known:
        raise UsageError(f"{name} `{value}`: choose one of {', '.join(word for word in known if word)}")


def check_clock(clock: str | None, device: str, name: str = "--clock") -> None:
    """Raises UsageError for a device clock where there is no device; `name` is what a person calls the setting."""
    if clock == "device" and device == "cpu":
        raise UsageError(f"{name} device: a CPU has no device clock; leave it out, or give {name} call")


def data_folder(archive: str | Path | None) -> Path:
    """Where runs and weights are kept: beside the archive's file; for one on a server under $XDG_DATA_HOME."""
    from cuda_l1.archive import database
    from cuda_l1.config import data_home

    path = database.sqlite_file(database.locate(archive))
    return path.parent if path else data_home()
