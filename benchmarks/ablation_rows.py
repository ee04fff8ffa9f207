"""The rows of the policy ablation: what each begins with, what it learns, and the runs that this makes."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from cuda_l1.errors import UsageError
from cuda_l1.training.recipe import Recipe

PARTS = 4
"""Parts that the replies to a held-out task are asked for in, where the recipe does not say: without several no
exemplar of a held-out task could be shown."""


class Row(NamedTuple):
    """One line of the table."""

    name: str
    label: str
    begins_with: tuple[str, ...] = ("sft", "self")
    """Stages that all rows of a seed share."""
    learns: tuple[str, ...] = ()
    """Stages that it trains for itself."""
    sampler: str = "none"
    """Of exemplars, while it learns stage 3 and in the evaluation."""
    templates: Literal["constant", "random"] | None = None
    """No policy: techniques alone."""

    @property
    def has_seeds(self) -> bool:
        """Whether anything in it is drawn."""
        return self.templates != "constant"


def _contrastive(name: str, label: str, sampler: str) -> Row:
    return Row(name, f"1 + 2 + {label}", learns=("contrastive",), sampler=sampler)


ROWS = {
    row.name: row
    for row in (
        Row("stage-1", "stage 1", begins_with=("sft",)),
        Row("stages-1-2", "1 + 2"),
        Row(
            "longer",
            "1 + 2, as many replies more as in stage 3; exemplars at inference",
            ("sft",),
            ("self",),
            "bucket",
        ),
        Row("inference-only", "1 + 2, exemplars at inference only", sampler="bucket"),
        _contrastive("grpo", "GRPO without exemplars", "none"),
        _contrastive("random", "contrastive, random exemplars", "random"),
        _contrastive("bucket", "contrastive, bucket", "bucket"),
        _contrastive("island", "contrastive, island", "island"),
        _contrastive("top", "contrastive, top", "top"),
        _contrastive("shuffled-scores", "control: bucket, scores beside the wrong variants", "bucket-shuffled-scores"),
        _contrastive("hidden-scores", "control: bucket, no scores", "bucket-hidden-scores"),
        Row("constant", "no learning: the technique that was best on training tasks, always", (), templates="constant"),
        Row("best-of-k", "no learning: k random techniques", (), templates="random"),
    )
}
NOT_RUN = (
    "Without the analysis section: not run; each form of question that shows variants (`contrastive`, `compact`) asks "
    "for one."
)


class Run(NamedTuple):
    """A row with one seed."""

    row: Row
    seed: int

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{self.row.name}-{self.seed}"


def runs(rows: Sequence[str], seeds: Sequence[int]) -> list[Run]:
    """Seed by seed, so that a table of fewer seeds is there early; what draws nothing is run once.

    Raises UsageError.
    """
    if unknown := [name for name in rows if name not in ROWS]:
        raise UsageError(f"--rows {unknown[0]}: no such row; known are {', '.join(ROWS)}")
    chosen = [row for name, row in ROWS.items() if name in rows]
    return [Run(row, seed) for seed in seeds for row in chosen if row.has_seeds or seed == seeds[0]]


def common(base: Recipe, out: Path, seed: int, folder: Path) -> list[str]:
    """Values of every run in place of the base recipe's."""
    evaluation = base.evaluation
    parts = min(PARTS, evaluation.held_out_samples) if evaluation.held_out_rounds == 1 else evaluation.held_out_rounds
    return [
        f"run_dir={json.dumps(str(folder))}",
        f"run.seed={seed}",
        f"evaluation.table={json.dumps(str(out / 'table.sqlite'))}",
        f"evaluation.held_out_rounds={parts}",
    ]


def own(row: Row, base: Recipe) -> list[str]:
    """Values of a row."""
    found = [f"contrastive.sampler.kind={json.dumps(row.sampler)}"]
    if row.name == "longer":
        rounds = base.self_supervised.rounds + more_rounds(base)
        found += [f"self_supervised.rounds={rounds}", f"self_supervised.patience={rounds}"]
    return found


def replies_of_stage_3(base: Recipe) -> int:
    """Evaluations that a row with a stage 3 is given in it, at most: duplicates cost none."""
    return base.contrastive.rounds * base.contrastive.prompts * base.contrastive.group


def more_rounds(base: Recipe) -> int:
    """Rounds of stage 2 that ask for as many replies as stage 3 does."""
    section = base.self_supervised
    return math.ceil(replies_of_stage_3(base) / ((section.tasks + section.validation_tasks) * section.samples))
