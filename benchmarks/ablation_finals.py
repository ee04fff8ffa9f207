"""The end points of the policy ablation, measured anew: the best reply to each held-out task of each run at `final`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ablation_table import Reply, by_task
from cuda_l1 import scoring
from cuda_l1.api.training import evaluators_of
from cuda_l1.archive import Archive
from cuda_l1.config import FINAL
from cuda_l1.training.judging import Asked, Judging
from cuda_l1.training.recipe import Recipe
from cuda_l1.types import Candidate, Task
from provenance import say

NAME = "finals"
LONG_S = 1e6
Finals = Mapping[str, float]
"""Speed-up over the reference at `final` by a candidate's id, 0 where it does not hold."""


def best_of(replies: Sequence[Reply]) -> list[Reply]:
    """The best right reply to each task that has one faster than the reference, by its screen."""
    right = [[reply for reply in found if reply.right and reply.candidate] for _, found in by_task(replies)]
    best = [max(found, key=lambda reply: reply.reward or 0.0) for found in right if found]
    return [reply for reply in best if (reply.reward or 0.0) > 1.0]


def with_finals(replies: Sequence[Reply], finals: Finals) -> list[Reply]:
    """The same, where the best reply to a task counts as its final does, and none of the others more: a screen chose,
    so that a lucky one is not paid for."""
    caps = {
        reply.task: finals[reply.candidate]
        for reply in best_of(replies)
        if reply.candidate is not None and reply.candidate in finals
    }
    return [
        reply._replace(reward=min(reply.reward, caps[reply.task]))
        if reply.right and reply.reward is not None and reply.task in caps
        else reply
        for reply in replies
    ]


def measured(
    out: Path, recipe: Recipe, tasks: Sequence[Task], replies: Iterable[Reply], archives: Iterable[Path]
) -> dict[str, float]:
    """The finals of what is best in each run, in `OUT/finals.sqlite`; what is there is not measured again."""
    wanted = {reply.candidate: reply.task for reply in replies if reply.candidate is not None}
    by_sha = {task.sha: task for task in tasks}
    texts = _candidates(archives, set(wanted))
    section = recipe.evaluation
    with (
        Archive.open(out / f"{NAME}.sqlite") as archive,
        evaluators_of(section, threads=recipe.run.threads) as evaluators,
    ):
        judge = Judging(
            evaluators,
            archive=archive,
            run=NAME,
            within_s=LONG_S,
            protocol=FINAL,
            on_judgement=lambda done, all_: say(f"{NAME}: verdict {done} of {all_}"),
        )
        asked = [Asked(by_sha[task], texts[identity]) for identity, task in wanted.items() if identity in texts]
        found = zip(asked, judge(asked), strict=True)
        return {
            each.candidate.id: scoring.reward(one.record.evaluation, section.clock, section.precision)
            for each, one in found
            if one.record is not None
        }


def _candidates(archives: Iterable[Path], wanted: set[str]) -> dict[str, Candidate]:
    found: dict[str, Candidate] = {}
    for path in archives:
        with Archive.open(path) as archive:
            found |= {each.candidate.id: each.candidate for each in archive.records() if each.candidate.id in wanted}
    return found
