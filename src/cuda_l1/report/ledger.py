"""What language models cost, and what came of it: tokens, money and verified gains of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from cuda_l1 import scoring
from cuda_l1.archive import Archive
from cuda_l1.config import SCREEN
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
    confirmed_speedup: float | None
    """The fastest of its candidates that a `final` found faster than eager by more than the interval, by that final."""
    wall_s: float
    """Spent waiting for the replies, summed over those that were under way together."""


def uses_in(
    archive: Archive, run: str, environment_key: str, clock: Clock, task_sha: str | None = None
) -> list[ModelUse]:
    """What each model was paid in a run in one place (about one task), and what came of it; a text that was judged
    before has its verdict from there. Raises ArchiveError."""
    replies = list(archive.replies.of_run(run, task_sha, environment_key=environment_key))
    ids = dict.fromkeys(reply.candidate_id for reply in replies if reply.candidate_id)
    screens = (
        archive.find(candidate, environment_key, SCREEN.name, run=run)
        or archive.find(candidate, environment_key, SCREEN.name)
        for candidate in ids
    )
    finals = archive.records(task_sha=task_sha, run=run, protocol="final")
    return model_uses(replies, [*filter(None, screens), *finals], clock)


def model_uses(replies: Iterable[Reply], records: Sequence[Record], clock: Clock) -> list[ModelUse]:
    """A line for each model at each place, in the order of their first replies.

    `records` are those of the replies' candidates; speed-ups are those of their screens on `clock`.
    """
    screens = {r.candidate.id: r for r in records if r.evaluation.protocol == "screen"}
    by_model: dict[tuple[str, str], list[Reply]] = {}
    for reply in replies:
        by_model.setdefault((reply.model, reply.endpoint), []).append(reply)
    finals = [record for record in records if record.evaluation.protocol == "final"]
    return [
        _use(model, place, found, screens, clock, _confirmed(model, found, finals, clock))
        for (model, place), found in by_model.items()
    ]


def combined(uses: Iterable[ModelUse]) -> list[ModelUse]:
    """A line for each model at each place from those of several tasks."""
    by_model: dict[tuple[str, str], list[ModelUse]] = {}
    for use in uses:
        by_model.setdefault((use.model, use.endpoint), []).append(use)
    return [_sum(found) for found in by_model.values()]


def _sum(uses: list[ModelUse]) -> ModelUse:
    gains, usd = sum(use.gains for use in uses), _total(use.usd for use in uses)
    counted = ("replies", "candidates", "accepted", "tokens_in", "tokens_out")
    totals = {name: sum(getattr(use, name) for use in uses) for name in counted}
    problems: Counter[str] = Counter()
    for use in uses:
        problems.update(use.problems)
    return ModelUse(
        **totals,
        model=uses[0].model,
        endpoint=uses[0].endpoint,
        problems=dict(problems),
        gains=gains,
        best_speedup=max((use.best_speedup for use in uses if use.best_speedup), default=None),
        usd=usd,
        usd_per_gain=usd / gains if usd is not None and gains else None,
        confirmed_speedup=max((use.confirmed_speedup for use in uses if use.confirmed_speedup), default=None),
        wall_s=round(sum(use.wall_s for use in uses), 2),
    )


def _total(prices: Iterable[float | None]) -> float | None:
    """None where one of them is unknown."""
    known = list(prices)
    return None if None in known else sum(price for price in known if price is not None)


def _confirmed(model: str, replies: list[Reply], finals: list[Record], clock: Clock) -> float | None:
    """A final is of the exported file, another text, which says from which question it comes."""
    asked = {reply.prompt_sha for reply in replies}
    own = [f for f in finals if any(o.model == model and o.prompt_sha in asked for o in f.candidate.origins)]
    timings = [final.evaluation.timing("eager", clock) for final in own if scoring.counts(final.evaluation)]
    return max((t.speedup for t in timings if t and t.speedup_low and t.speedup_low > 1.0), default=None)


def _use(
    model: str,
    place: str,
    replies: list[Reply],
    screens: dict[str, Record],
    clock: Clock,
    confirmed_speedup: float | None,
) -> ModelUse:
    ids = dict.fromkeys(reply.candidate_id for reply in replies if reply.candidate_id)
    accepted = [screens[i].evaluation for i in ids if i in screens and screens[i].evaluation.accepted]
    speedups = [scoring.speedup(evaluation, clock) for evaluation in accepted if scoring.counts(evaluation)]
    gains = [speedup for speedup in speedups if speedup is not None and speedup > 1.0]
    usd = _total(reply.cost.usd for reply in replies)
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
        confirmed_speedup=confirmed_speedup,
        wall_s=round(sum(reply.cost.wall_s for reply in replies), 2),
    )
