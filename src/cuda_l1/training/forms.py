"""How many scored variants the questions of stage 1 have shown: of more than that a policy from nothing can make
nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence

from cuda_l1.archive.faults import file_faults
from cuda_l1.config import SamplerSettings
from cuda_l1.training.examples import Example
from cuda_l1.training.run_directory import StageDirectory

FILE = "shown.json"
"""In the folder of stage 1."""


def most_shown(examples: Sequence[Example], fits: Sequence[bool]) -> int:
    """Of the examples that fit into what is trained on, the scored variants that the one with the most shows."""
    told = zip(examples, fits, strict=True)
    return max((one.exemplars for one, fit in told if fit and one.row.speedup_eager is not None), default=0)


def write_shown(stage: StageDirectory, count: int) -> None:
    """Keeps the count beside what stage 1 leaves."""
    with file_faults(stage.path):
        stage.path.mkdir(parents=True, exist_ok=True)
        (stage.path / FILE).write_text(json.dumps({"exemplars": count}) + "\n", "utf-8")


def read_shown(stage: StageDirectory) -> int | None:
    """The count of a run's stage 1; None where the run has none that is finished."""
    file = stage.path / FILE
    if not stage.is_done or not file.is_file():
        return None
    found: int = json.loads(file.read_text("utf-8"))["exemplars"]
    return found


def too_few(shown: int, wanted: int) -> str | None:
    """What is wrong where stage 1 has no example with as many variants as its recipe wants."""
    if shown >= wanted:
        return None
    return (
        f"no example shows more than {shown} scored variants of its task, where sft.exemplars = {wanted}: later stages "
        "ask with more of them, and replies may be nonsense; data.keep must be above sft.exemplars, and sft.max_length "
        "have room"
    )


def unseen(shown: int | None, sampler: SamplerSettings) -> str | None:
    """What is wrong where stage 3 shows more variants than the run's stage 1 has. With None the policy is one of
    others, or of another run: nobody knows what it can read."""
    if shown is None or sampler.kind == "none" or sampler.count <= shown:
        return None
    return (
        f"questions show up to {sampler.count} variants (contrastive.sampler.count), the examples of stage 1 at most "
        f"{shown}: replies may be nonsense"
    )
