"""What language models cost, and what came of it: tokens, money and verified gains of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from cuda_l1 import scoring
from cuda_l1.types import Clock, Frozen, Record, Reply


class ModelUse(Frozen):
    """One model's replies of a run, and how their candidates fared."""

    model: str
    endpoint: str
    """Host and port."""
    replies: int
    candidates: int
    """Replies that held a candidate, copies of others included."""
    problems: dict[str, int]
    """Why the others held none, and how often."""
    accepted: int
    """Different candidates that were found right."""
    gains: int
    """Those of them that count and are faster than eager."""
    best_speedup: float | None
    """The fastest of them, against eager, at `screen`."""
    tokens_in: int
    tokens_out: int
    """With what the model thought aloud."""
    usd: float | None
    """None: the price of some reply is unknown."""
    usd_per_gain: float | None
    """None without a gain, too."""
    wall_s: float
    """Spent waiting for the replies, summed over those that were under way together."""


def model_uses(replies: Iterable[Reply], records: Sequence[Record], clock: Clock) -> list[ModelUse]:
    """A line for each model at each place, in the order of their first replies.

    `records` are those of the replies' candidates; speed-ups are those of their screens on `clock`.
    """
    screens = {r.candidate.id: r for r in records if r.evaluation.protocol == "screen"}
    by_model: dict[tuple[str, str], list[Reply]] = {}
    for reply in replies:
        by_model.setdefault((reply.model, reply.endpoint), []).append(reply)
    return [_use(model, place, found, screens, clock) for (model, place), found in by_model.items()]


def _use(model: str, place: str, replies: list[Reply], screens: dict[str, Record], clock: Clock) -> ModelUse:
    ids = dict.fromkeys(reply.candidate_id for reply in replies if reply.candidate_id)
    accepted = [screens[i].evaluation for i in ids if i in screens and screens[i].evaluation.accepted]
    speedups = [scoring.speedup(evaluation, clock) for evaluation in accepted if scoring.counts(evaluation)]
    gains = [speedup for speedup in speedups if speedup is not None and speedup > 1.0]
    prices = [reply.cost.usd for reply in replies]
    usd = None if None in prices else sum(price for price in prices if price is not None)
    return ModelUse(
        model=model,
        endpoint=place,
        replies=len(replies),
        candidates=sum(reply.problem is None for reply in replies),
        problems=dict(Counter(reply.problem for reply in replies if reply.problem)),
        accepted=len(accepted),
        gains=len(gains),
        best_speedup=max(gains, default=None),
        tokens_in=sum(reply.cost.tokens_in for reply in replies),
        tokens_out=sum(reply.cost.tokens_out for reply in replies),
        usd=usd,
        usd_per_gain=usd / len(gains) if usd is not None and gains else None,
        wall_s=round(sum(reply.cost.wall_s for reply in replies), 2),
    )
