"""The one function by which anything gets a verdict: looked up, or evaluated and recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

from cuda_l1.archive import Archive
from cuda_l1.config import SCREEN, AnyProtocol, LlmSettings, PolicySettings, Protocol
from cuda_l1.errors import ArchiveError, InfrastructureError, UsageError
from cuda_l1.search.credits import credited, is_credited
from cuda_l1.search.interfaces import SupportsEvaluate
from cuda_l1.types import Candidate, Evaluation, HackCase, Outcome, Record, Task

ATTEMPTS = 3
"""How often the machine may fail at one evaluation, one after the other, before that is reported."""
RETRY_PAUSE_S = 2.0
"""Pause after a fault of the machine: long enough for a driver to come back or a neighbour's memory to be freed."""


def verdict(
    task: Task,
    candidate: Candidate,
    *,
    protocol: AnyProtocol,
    archive: Archive,
    evaluator: SupportsEvaluate,
    run: str,
    fresh: bool = False,
    baselines: Sequence[Candidate] = (),
    best_of: Sequence[str] = (),
    best_so_far: float | None = None,
    within_s: float | None = None,
) -> Record:
    """The record of `candidate` in the evaluator's place under `protocol`, paid for at most once.

    What the archive holds is returned unless `fresh` asks for a new evaluation. Where it names others as authors of the
    text than `candidate` does, and reports have a row for these (`credits`), its evaluation is recorded again, under
    all of them. `baselines`, `best_of`, `best_so_far` (speed-up against eager)
    and `within_s` go to the evaluator.

    Raises OutOfTimeError where it was given up after `within_s` and InfrastructureError when the machine failed three
    times in a row; neither is ever recorded. ArchiveError when the archive cannot be used. What the evaluator REJECTED
    becomes a hack case.
    """
    if not fresh:
        stored = known(candidate, protocol, archive, evaluator, baselines=baselines)
        if stored is not None:
            if is_credited(stored, candidate):
                return stored
            return entered(stored.evaluation, task, credited(stored, candidate), archive=archive, run=run)
    ask = partial(evaluator.evaluate, task, candidate, protocol=protocol, baselines=baselines)
    evaluation = _retried(lambda: ask(best_of=best_of, best_so_far=best_so_far, within_s=within_s))
    return entered(evaluation, task, candidate, archive=archive, run=run)


def entered(evaluation: Evaluation, task: Task, candidate: Candidate, *, archive: Archive, run: str) -> Record:
    """The record of an evaluation, stored as the next one of `run`; what was REJECTED becomes a hack case.

    Raises ArchiveError, also where an archive that was opened can no longer be written to: what the person asked for is
    right, and no other verdict could be kept.
    """
    record = Record(run=run, sequence=archive.next_sequence(run), candidate=candidate, evaluation=evaluation)
    try:
        archive.append(record, task)
    except UsageError as error:
        raise ArchiveError(str(error)) from error
    if evaluation.outcome is Outcome.REJECTED:
        archive.hacks.add([_confirmed(record, task)])
    return record


def screening(asked: Sequence[LlmSettings | PolicySettings | None], best: float | None) -> Protocol:
    """`SCREEN`; where the prompts of one of `asked` say where the best variant's time goes, one that also profiles
    whatever is faster than `best` (a speed-up against eager)."""
    is_shown = any(settings.prompt.profile for settings in asked if settings is not None)
    return SCREEN.model_copy(update={"profile_above": best or 0.0}) if is_shown else SCREEN


def _confirmed(record: Record, task: Task) -> HackCase:
    """An attack that the evaluator has evidence of, for the reviewer to know its like."""
    candidate = record.candidate
    seen = [f"{f.check}: {f.evidence}" for f in record.evaluation.findings if f.severity == "reject"]
    return HackCase(
        name=f"{task.suite}/{task.name}/{candidate.id[:8]}",
        source=candidate.source,
        why="; ".join(seen) or record.evaluation.detail or "rejected by the evaluator",
        reference=task.source,
    )


def known(
    candidate: Candidate,
    protocol: AnyProtocol,
    archive: Archive,
    evaluator: SupportsEvaluate,
    *,
    baselines: Sequence[Candidate] = (),
    run: str | None = None,
) -> Record | None:
    """The archive's record that answers this question (within `run`), or None.

    One without a timing against each of `baselines` answers another question, unless the candidate failed or the
    baseline did.
    """
    record = archive.find(candidate.id, evaluator.environment.key, protocol.name, run=run)
    if record is None or not _covers(record.evaluation, baselines):
        return None
    return record


def _covers(evaluation: Evaluation, baselines: Sequence[Candidate]) -> bool:
    """Whether it says how the candidate does against each of the baselines, as far as that can be said."""
    timed = {timing.opponent_id for timing in evaluation.timings}
    failed = {f.evidence.split(":")[0] for f in evaluation.findings if f.check == "baseline-failed"}
    return not evaluation.accepted or all(b.id in timed or b.label in failed for b in baselines)


def _retried(evaluate: Callable[[], Evaluation]) -> Evaluation:
    for _ in range(ATTEMPTS - 1):
        try:
            return evaluate()
        except InfrastructureError:
            time.sleep(RETRY_PAUSE_S)
    return evaluate()
