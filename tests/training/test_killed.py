"""Stages 2 and 3 killed by SIGKILL at moments drawn by a seed go on to the same weights and pay for nothing twice.

With an evaluator that reads a candidate's fate off its text; `test_smoke_recipe.py` kills a run with the real one.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("trl", reason="needs transformers and trl: pip install 'cuda-l1[train]'")

import killing
from killing import Moment, Run

from small_policy import save_policy

PLAN = (("judged", 0.25), ("verdict", 0.25), ("pass", 0.4), ("change", 0.4), ("checkpoint", 0.0))
"""A run's ends, one after the other: of which kind, and up to which share of the events of an uninterrupted run. What
is begun again repeats what was not in a checkpoint, and pays for no verdict again."""
SEED = 7


def moments(seen: Counter[str], draw: Random) -> list[Moment]:
    """One for each end of the plan."""
    return [Moment(kind, draw.randrange(max(1, round(seen[kind] * share)))) for kind, share in PLAN]


@pytest.mark.parametrize("stage", ["contrastive", "self_supervised"])
def test_a_killed_stage_goes_on_to_the_same_weights_and_pays_for_nothing_twice(tmp_path: Path, stage: str) -> None:
    policy = save_policy(tmp_path / "policy")
    whole, broken = (Run(tmp_path / name, policy, getattr(killing, stage)) for name in ("whole", "broken"))
    assert whole.go_on() == 0
    drawn = moments(whole.seen, Random(SEED))
    ends = [broken.go_on(moment) for moment in drawn]
    assert ends.count(-9) >= 4 and set(ends) <= {0, -9}, list(zip(drawn, ends, strict=True))
    assert broken.go_on() == 0
    weights = [next(run.folder.glob("*/final/model.safetensors")).read_bytes() for run in (whole, broken)]
    assert weights[0] == weights[1], drawn
    judged = broken.judged
    assert len(judged) == len(set(judged)) and sorted(judged) == sorted(whole.judged)
    under_way = sum(moment.kind in ("verdict", "judged") for moment in drawn)  # lost with the process that paid
    assert len(broken.paid) <= len(judged) + under_way
