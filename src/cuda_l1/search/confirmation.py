"""The last step of a search: the winner's artefact, measured anew.

The best of many screens is partly the luckiest, so its figure is not quoted: a new `final` of the very file that will
be handed out is.
"""

from __future__ import annotations

from collections.abc import Callable

from cuda_l1 import scoring
from cuda_l1.config import FINAL
from cuda_l1.errors import CandidateError
from cuda_l1.ratios import towards_one
from cuda_l1.search.events import Confirmed
from cuda_l1.search.result import NotConfirmed, is_faster
from cuda_l1.search.review import is_reviewed
from cuda_l1.search.state import Search
from cuda_l1.types import Candidate, Record, Timing

ATTEMPTS = 3
"""Candidates that are tried at most: where three in a row were luck, the next ones are slower still."""

Export = Callable[[Candidate], Candidate]
"""Turns the winner into its drop-in artefact; CandidateError where it cannot."""


def confirm(search: Search, export: Export | None) -> None:
    """Measures the best candidate's artefact, the next best while time lasts when it does not hold up."""
    ranked = search.ranked()
    for attempt, screened in enumerate(ranked[:ATTEMPTS]):
        if attempt and not search.rules.another_final(search.progress()):
            _not_confirmed(search, screened, "no time was left to confirm it; give a longer budget")
            return
        try:
            artefact = export(screened.candidate) if export else screened.candidate
        except CandidateError as error:
            search.emit(Confirmed(screened.candidate.label, screened.candidate.id, False, None, None, None, str(error)))
            _not_confirmed(search, screened, f"no drop-in can be made of it: {error}")
            continue
        final = _final(search, artefact)
        if not is_reviewed(screened):
            final = search.review(final, search.best_baseline_speedup)
        holds = search.score(final) is not None and is_faster(final.evaluation.timing("eager", search.clock))
        if holds:
            search.winner, search.final = screened, final
        else:
            search.unconfirmed.append(final)
            _not_confirmed(search, screened, _why(search, final, "its drop-in"))
        _tell(search, final, holds=holds)
        if holds:
            return
    if not ranked:
        _tell_of_fastest(search)


def _tell_of_fastest(search: Search) -> None:
    """The fastest candidate of a search in which none may win."""
    speeds = [(scoring.speedup(r.evaluation, search.clock) or 0.0, r) for r in search.screened if r.evaluation.accepted]
    speed, fastest = max(speeds, key=lambda pair: pair[0], default=(0.0, None))
    if fastest and speed > 1.0:
        _not_confirmed(search, fastest, _why(search, fastest, "it"))


def _not_confirmed(search: Search, screened: Record, why: str) -> None:
    speedup = scoring.speedup(screened.evaluation, search.clock) or 1.0
    search.not_confirmed.append(
        NotConfirmed(
            technique=screened.candidate.label, candidate_id=screened.candidate.id, screen_speedup=speedup, why=why
        )
    )


def _why(search: Search, record: Record, what: str) -> str:
    """Why a record does not say that its candidate is faster, in one line; `what` is that candidate."""
    evaluation, precision = record.evaluation, search.settings.precision
    if not evaluation.accepted:
        return ": ".join(filter(None, (f"{what} is {evaluation.outcome}", evaluation.detail)))
    if scoring.slower_on_other_clock(evaluation, search.clock):
        return f"{what} is slower on the other clock"
    if suspects := evaluation.disqualifying:
        return f"{what} is suspect: " + "; ".join(f"{found.check}: {found.evidence}" for found in suspects)
    if not scoring.counts(evaluation, precision):
        return f"{what} is of the precision class {evaluation.precision_class}, which may not win here"
    timing = evaluation.timing("eager", search.clock)
    return f"measured anew it is not faster by more than the interval{_figure(timing) if timing else ''}"


def _figure(timing: Timing) -> str:
    low, high = timing.speedup_low, timing.speedup_high
    interval = f", 95 % {low:.2g} to {high:.2g}" if low is not None and high is not None else ""
    return f" ({towards_one(timing.speedup):.2f}x{interval})"


def _final(search: Search, artefact: Candidate) -> Record:
    """A new final; one that this very run had made before it was interrupted is that same final."""
    budget_s = search.rules.final_s(search.progress())
    return search.obtain(
        artefact,
        FINAL.model_copy(update={"budget_s": budget_s}),
        baselines=[search.opponent] if search.opponent else [],
        best_of=tuple(search.counted_baselines),
        within_run=True,
    )


def _tell(search: Search, final: Record, *, holds: bool) -> None:
    timing = final.evaluation.timing("eager", search.clock)
    search.emit(
        Confirmed(
            label=final.candidate.label,
            candidate_id=final.candidate.id,
            holds=holds,
            speedup=timing.speedup if timing else None,
            speedup_low=timing.speedup_low if timing else None,
            speedup_high=timing.speedup_high if timing else None,
            detail=final.evaluation.detail,
        )
    )
