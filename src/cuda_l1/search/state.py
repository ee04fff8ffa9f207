"""One search in progress: what it was given, what it has found and what it has paid."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cuda_l1 import scoring
from cuda_l1.archive import Archive
from cuda_l1.config import Protocol, SearchSettings
from cuda_l1.errors import OutOfTimeError
from cuda_l1.search.events import CandidateDone, Evaluating, Event
from cuda_l1.search.interfaces import SupportsEvaluate
from cuda_l1.search.result import BaselineResult, NotConfirmed
from cuda_l1.search.review import Reviews
from cuda_l1.search.stopping import GAIN, Progress, StopRules
from cuda_l1.search.verdicts import known, screening, verdict
from cuda_l1.types import Candidate, Clock, Record, Task, default_clock


@dataclass
class Search:
    """The state that the steps of `optimize` share."""

    task: Task
    settings: SearchSettings
    rules: StopRules
    archive: Archive
    evaluator: SupportsEvaluate
    reviews: Reviews
    run: str
    emit: Callable[[Event], None]
    started: float = field(default_factory=time.monotonic)

    history: list[Record] = field(default_factory=list)
    """Every record of this search, eager's first: what proposers see."""
    screened: list[Record] = field(default_factory=list)
    """Those of proposed candidates."""
    baselines: list[BaselineResult] = field(default_factory=list)
    counted_baselines: dict[str, tuple[Candidate, float]] = field(default_factory=dict)
    """Those that the best one is best of, by name, each with its speed-up against eager."""
    first_s: float = 0.0
    """What the candidate took that was tried before the baselines."""
    winner: Record | None = None
    final: Record | None = None
    unconfirmed: list[Record] = field(default_factory=list)
    not_confirmed: list[NotConfirmed] = field(default_factory=list)

    given_up: int = 0
    """Proposed candidates that could not be judged in the time that was left."""
    evaluations: int = 0
    duplicates: int = 0
    _counted: int = 0
    _without_gain: int = 0
    _costs_s: list[float] = field(default_factory=list)

    @property
    def clock(self) -> Clock:
        """The objective."""
        return self.settings.clock or default_clock(self.evaluator.environment.device)

    @property
    def best_baseline(self) -> str | None:
        """The name of the fastest that counts, or None where none does."""
        return scoring.best_baseline({name: speedup for name, (_, speedup) in self.counted_baselines.items()})

    @property
    def best_baseline_speedup(self) -> float:
        """Against eager; eager's own where none counts."""
        best = self.best_baseline
        return self.counted_baselines[best][1] if best is not None else 1.0

    @property
    def opponent(self) -> Candidate | None:
        """What a final is timed against besides eager: the best baseline, where it is another."""
        best = self.best_baseline
        if best is None or best == self.baselines[0].name:
            return None
        return self.counted_baselines[best][0]

    def score(self, record: Record) -> float | None:
        """Speed-up against eager when the record may win, else None."""
        evaluation = record.evaluation
        if not scoring.counts(evaluation, self.settings.precision) or scoring.slower_on_other_clock(
            evaluation, self.clock
        ):
            return None
        return scoring.speedup(evaluation, self.clock)

    def ranked(self) -> list[Record]:
        """Proposed candidates that may win and are faster than eager, best first."""
        scored = [(score, record) for record in self.screened if (score := self.score(record)) and score > 1.0]
        return [record for _, record in sorted(scored, key=lambda pair: pair[0], reverse=True)]

    def best(self) -> float | None:
        """The highest speed-up of a proposed candidate that may win."""
        return max((score for record in self.screened if (score := self.score(record))), default=None)

    def progress(self) -> Progress:
        """How far it has come, for the stop rules."""
        leader = next(iter(self.ranked()), None)
        timing = leader.evaluation.timing("eager", self.clock) if leader else None
        judged = leader or next(iter(self.history), None)  # eager, before there is a leader
        screen_s = statistics.fmean(self._costs_s) if self._costs_s else 0.0
        return Progress(
            elapsed_s=time.monotonic() - self.started,
            first_s=self.first_s,
            evaluations=self._counted,
            without_gain=self._without_gain,
            tried=len(self.screened) + self.given_up,
            screen_s=screen_s,
            once_s=_once_s(judged) if judged else 0.0,
            pair_s=self._pair_s(),
            best_us=timing.candidate_us if timing else None,
        )

    def _pair_s(self) -> float | None:
        """Seconds that a pair of the final is expected to take: the median of the screens so far, half as much again
        where an opponent besides eager is a third process in it; None before anything was timed."""
        timed = [_pair_s(record) for record in self.history if record.evaluation.timings]
        return statistics.median(timed) * (1.5 if self.opponent else 1.0) if timed else None

    def is_repeat(self, candidate: Candidate) -> bool:
        """Whether this search already has a record of the candidate; counts it as a duplicate if so."""
        repeat = any(record.candidate.id == candidate.id for record in self.history)
        self.duplicates += repeat
        return repeat

    def screen(self, candidate: Candidate) -> None:
        """Evaluates a proposed candidate, or looks it up, and takes it into the history, unless time is up before."""
        leading, paid, began = self.best(), self.evaluations, time.monotonic()
        before = leading or 1.0
        best = max(before, self.best_baseline_speedup)
        within_s = self.rules.within_s(self.progress())
        protocol = screening([self.settings.llm, self.settings.policy], leading)
        try:
            record = self.obtain(candidate, protocol, best_so_far=best, within_s=within_s)
        except OutOfTimeError as error:
            self.given_up += 1
            self.emit(CandidateDone(candidate.label, candidate.id, None, None, leading, False, str(error), False))
            return
        known, took_s = self.evaluations == paid, time.monotonic() - began
        record = self.review(record, best)
        self.screened.append(record)
        self.history.append(record)
        self.duplicates += known
        if record.run == self.run:
            # What this run paid for before it was interrupted counts as if it had not been interrupted.
            gained = (self.score(record) or 0.0) > GAIN * before
            self._counted += 1
            self._without_gain = 0 if gained else self._without_gain + 1
            self._costs_s.append(total_s(record) if known else took_s)
        self._tell(record, known=known)

    def review(self, record: Record, best_before: float) -> Record:
        """The record, with a second opinion where it is a jump over `best_before`."""
        within_s = self.rules.review_s(self.progress())
        return self.reviews.of(record, self.task, best_before=best_before, within_s=within_s)

    def obtain(
        self,
        candidate: Candidate,
        protocol: Protocol,
        *,
        baselines: Sequence[Candidate] = (),
        best_of: Sequence[str] = (),
        best_so_far: float | None = None,
        within_s: float | None = None,
        within_run: bool = False,
        fresh: bool = False,
    ) -> Record:
        """A record from the archive (with `within_run`, only of this very run; with `fresh`, none), else a new one,
        counted as paid. Raises OutOfTimeError where that takes longer than `within_s`."""
        if not fresh:
            run = self.run if within_run else None
            stored = known(candidate, protocol, self.archive, self.evaluator, baselines=baselines, run=run)
            if stored is not None:
                return stored
        self.emit(Evaluating(candidate.label, candidate.id, protocol.name))
        record = verdict(
            self.task,
            candidate,
            protocol=protocol,
            archive=self.archive,
            evaluator=self.evaluator,
            run=self.run,
            fresh=True,
            baselines=baselines,
            best_of=best_of,
            best_so_far=best_so_far,
            within_s=within_s,
        )
        self.evaluations += 1  # not before: one that is interrupted, or given up, leaves no record
        return record

    def _tell(self, record: Record, *, known: bool) -> None:
        evaluation, precision = record.evaluation, self.settings.precision
        speedup = scoring.speedup(evaluation, self.clock) if evaluation.accepted else None
        self.emit(
            CandidateDone(
                label=record.candidate.label,
                candidate_id=record.candidate.id,
                outcome=evaluation.outcome,
                speedup=speedup,
                best_so_far=self.best(),
                known=known,
                detail=evaluation.detail or scoring.why_not(evaluation, precision),
                counts=scoring.counts(evaluation, precision),
            )
        )


def total_s(record: Record) -> float:
    """What the evaluation took where it was made, seconds."""
    return record.evaluation.stage_s.get("total", 0.0)


def _once_s(record: Record) -> float:
    return sum(record.evaluation.stage_s.get(stage, 0.0) for stage in ("build", "load", "check"))


def _pair_s(record: Record) -> float:
    # A screen that was in doubt has timed three pairs, and keeps one of them.
    evaluation = record.evaluation
    timed = max((len(timing.pairs) for timing in evaluation.timings), default=1)
    doubted = any(finding.check == "unstable" for finding in evaluation.findings)
    return evaluation.stage_s.get("time", 0.0) / (3 if doubted else max(timed, 1))
