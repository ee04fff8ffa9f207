"""One verdict for a text that somebody wrote, with the best baseline beside it where that is known or asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from cuda_l1 import scoring
from cuda_l1.archive import Archive
from cuda_l1.config import SCREEN, AnyProtocol, Precision
from cuda_l1.errors import CandidateError, TaskError
from cuda_l1.proposers.baselines import baselines
from cuda_l1.search import verdict
from cuda_l1.search.interfaces import SupportsEvaluate
from cuda_l1.search.result import fastest_of
from cuda_l1.search.review import Reviews
from cuda_l1.search.verdicts import known
from cuda_l1.tasks.own_modules import parsed, with_own_modules
from cuda_l1.types import Candidate, Clock, Origin, Record, Task, Timing

MAX_SOURCE_BYTES = 8 << 20
_TOO_LARGE = f"a candidate may have {MAX_SOURCE_BYTES >> 20} MiB; larger constants belong into files or weights"


class Opponent(NamedTuple):
    """The best baseline of a task, and the names that it is best of."""

    candidate: Candidate
    best_of: tuple[str, ...]
    is_eager: bool


@dataclass(frozen=True)
class Comparison:
    """What is known of a task's baselines in one place."""

    best: Opponent | None
    """None where one of them has no record, or none may stand."""
    left_out: tuple[str, ...] = ()
    """Those that failed or may not stand, each with the reason."""
    missing: tuple[str, ...] = ()
    """Those without a record."""


@dataclass(frozen=True)
class Judged:
    """A record and what it may be compared with."""

    record: Record
    best: Opponent | None
    """None when it is not known."""
    clock: Clock | None = None

    @property
    def versus_eager(self) -> Timing | None:
        return self.record.evaluation.timing("eager", self.clock)

    @property
    def versus_best_baseline(self) -> Timing | None:
        """Eager's timing where eager is the best baseline, or turns out to be; None where none is known."""
        if self.best is None:
            return None
        if self.best.is_eager:
            return self.versus_eager
        timing = self.record.evaluation.best_baseline_timing(self.clock)
        if timing is None or timing.opponent_id != self.best.candidate.id:
            return None
        return fastest_of(timing, self.versus_eager)


def candidate_from(task: Task, source: str) -> Candidate:
    """A text as a candidate for `task`. Raises CandidateError for one that cannot be written to a file."""
    try:
        size = len(source.encode())
    except UnicodeEncodeError as error:
        raise CandidateError(
            f"the candidate's text holds half a character at {error.start}; it must be UTF-8"
        ) from error
    if size > MAX_SOURCE_BYTES:
        raise CandidateError(f"the candidate is {_mib(size)}; {_TOO_LARGE}")
    return Candidate.of(task, source, Origin(proposer="file"))


def read_source(path: Path) -> str:
    """A candidate's text, newlines as Python reads them. Raises CandidateError when there is none to read."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_SOURCE_BYTES + 1)  # a link may lead to what never ends
        if len(data) > MAX_SOURCE_BYTES:
            size = path.stat().st_size
            raise CandidateError(f"{path}: {f'is {_mib(size)}' if size else 'has no end'}; {_TOO_LARGE}")
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise CandidateError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CandidateError(f"{path}: is not text in UTF-8 (byte {error.start})") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_candidate(path: Path) -> str:
    """A candidate's text with that of the modules beside it that it imports; of a text that is no Python, itself.

    They are looked for in the file's own folder alone: the imports of somebody else's file say what is read.
    Raises CandidateError as `read_source` does, and for one of them that is no Python or too large.
    """
    text = read_source(path)
    try:
        tree = parsed(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text  # the verdict says so
    try:
        return with_own_modules(text, tree, path, (path.resolve().parent,))
    except TaskError as error:
        raise CandidateError(str(error)) from None


def _mib(size: int) -> str:
    return f"{size / 2**20:.1f} MiB"


def best_baseline(
    task: Task,
    *,
    measure: bool,
    precision: Precision,
    archive: Archive,
    evaluator: SupportsEvaluate,
    run: str,
    clock: Clock | None = None,
) -> Comparison:
    """The fastest baseline on `clock` of a class that may stand, by its screen.

    With `measure` off there is one only where the archive holds a screen of every baseline that applies: the best of
    some could be beaten by one of the others.
    """
    named: dict[str, tuple[float, Candidate]] = {}
    left_out, missing = [], []
    eager, *others = baselines(task, evaluator.environment.device, precision)
    for baseline in (eager, *others):
        if measure:
            record = verdict(task, baseline, protocol=SCREEN, archive=archive, evaluator=evaluator, run=run)
        elif (found := known(baseline, SCREEN, archive, evaluator)) is not None:
            record = found
        else:
            missing.append(baseline.label)
            continue
        is_eager = baseline is eager
        speedup = scoring.speedup(record.evaluation, clock, is_eager=is_eager)
        if speedup is not None and scoring.counts(record.evaluation, precision, is_eager=is_eager):
            named[baseline.label] = speedup, baseline
        else:
            left_out.append(f"{baseline.label} ({_why_not(record)})")
    name = scoring.best_baseline({name: speedup for name, (speedup, _) in named.items()})
    if missing or name is None:
        return Comparison(None, tuple(left_out), tuple(missing))
    _, best = named[name]
    return Comparison(Opponent(best, tuple(named), best is eager), tuple(left_out))


def _why_not(record: Record) -> str:
    evaluation = record.evaluation
    if not evaluation.accepted:
        return str(evaluation.outcome)
    if not scoring.is_confined(evaluation.environment):
        return f"sandbox rung {evaluation.environment.rung}"
    suspects = ", ".join(f.check for f in evaluation.disqualifying)
    return suspects or f"class {evaluation.precision_class}"


def judge(
    task: Task,
    candidate: Candidate,
    *,
    protocol: AnyProtocol,
    best: Opponent | None,
    archive: Archive,
    evaluator: SupportsEvaluate,
    run: str,
    fresh: bool = False,
    clock: Clock | None = None,
) -> Judged:
    """The verdict on `candidate`, timed against eager and, where it is another, the best baseline."""
    opponents = [best.candidate] if best and not best.is_eager else []
    record = verdict(
        task,
        candidate,
        protocol=protocol,
        archive=archive,
        evaluator=evaluator,
        run=run,
        fresh=fresh,
        baselines=opponents,
        best_of=best.best_of if best else (),
    )
    return Judged(record, best, clock)


def reviewed(judged: Judged, task: Task, reviews: Reviews) -> Judged:
    """The same with a second opinion where its speed-up is a jump over the best baseline that is known.

    Other candidates do not count here: of two that cheat each would make the other's speed-up look familiar.
    """
    eager, baseline = judged.versus_eager, judged.versus_best_baseline
    best = eager.speedup / baseline.speedup if eager and baseline else None
    return replace(judged, record=reviews.of(judged.record, task, best_before=best))
