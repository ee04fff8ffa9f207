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
    changes: tuple[str, ...] = ()
    """Values of the recipe in what it trains for itself."""
    form: tuple[str, ...] = ()
    """Values of the recipe in all stages: it shares none with other rows."""
    judge: Literal["ours", "leaky"] = "ours"
    """Whose rewards it learns stage 3 from; what is evaluated is always judged by ours."""
    techniques: Literal["constant", "random", "search"] | None = None
    """No policy: techniques alone."""
    helps_search: str | None = None
    """The row whose policy gives the second half of its replies, after a search by techniques has given the first."""

    @property
    def has_seeds(self) -> bool:
        """Whether anything in it is drawn."""
        return self.techniques not in ("constant", "search")


def _contrastive(name: str, label: str, sampler: str, *changes: str) -> Row:
    return Row(name, f"1 + 2 + {label}", learns=("contrastive",), sampler=sampler, changes=changes)


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
        Row(
            "no-analysis",
            "control: bucket, without the analysis section in any stage",
            learns=("contrastive",),
            sampler="bucket",
            form=("prompt.analysis=false",),
        ),
        _contrastive("raw", "bucket, raw rewards", "bucket", "contrastive.shaping='raw'"),
        _contrastive("log", "bucket, logarithms of rewards", "bucket", "contrastive.shaping='log'"),
        _contrastive("rank", "bucket, ranks for rewards", "bucket", "contrastive.shaping='rank'"),
        Row(
            "leaky",
            "1 + 2 + bucket, rewards of a leaky evaluator",
            learns=("contrastive",),
            sampler="bucket",
            judge="leaky",
        ),
        Row(
            "constant", "no learning: the technique that was best on training tasks, always", (), techniques="constant"
        ),
        Row("best-of-k", "no learning: k random techniques", (), techniques="random"),
        Row("search", "no learning: the techniques' own search, k candidates", (), techniques="search"),
        Row("search-policy", "half that search, half `bucket`, which sees it", sampler="bucket", helps_search="bucket"),
    )
}


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
    return [
        f"run_dir={json.dumps(str(folder))}",
        f"run.seed={seed}",
        f"evaluation.table={json.dumps(str(out / 'table.sqlite'))}",
        f"evaluation.held_out_rounds={_parts(base)}",
        "contrastive.patience=0",  # all are given as many replies
    ]


def own(row: Row, base: Recipe) -> list[str]:
    """Values of a row."""
    found = [f"contrastive.sampler.kind={json.dumps(row.sampler)}", *row.form, *row.changes]
    if row.helps_search:
        left = base.evaluation.held_out_samples - searched(base)
        found += [f"evaluation.held_out_samples={left}", f"evaluation.held_out_rounds={min(left, _parts(base))}"]
    if row.name == "longer":
        rounds = base.self_supervised.rounds + more_rounds(base)
        found += [f"self_supervised.rounds={rounds}", f"self_supervised.patience={rounds}"]
    return found


def _parts(base: Recipe) -> int:
    evaluation = base.evaluation
    return min(PARTS, evaluation.held_out_samples) if evaluation.held_out_rounds == 1 else evaluation.held_out_rounds


def searched(base: Recipe) -> int:
    """Candidates of the techniques' search that come before a policy's replies, where one helps it."""
    return base.evaluation.held_out_samples // 2


def replies_of_stage_3(base: Recipe) -> int:
    """Evaluations that a row with a stage 3 is given in it, at most: duplicates cost none."""
    return base.contrastive.rounds * base.contrastive.prompts * base.contrastive.group


def more_rounds(base: Recipe) -> int:
    """Rounds of stage 2 that ask for as many replies as stage 3 does."""
    section = base.self_supervised
    return math.ceil(replies_of_stage_3(base) / ((section.tasks + section.validation_tasks) * section.samples))
