"""One `optimize` from a task to a file: what the command line and Python share."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from cuda_l1 import scoring
from cuda_l1.api.llm import as_exit
from cuda_l1.api.places import UNCONFINED
from cuda_l1.api.proposers import Sources, make_proposers
from cuda_l1.api.roofline import roofline_us
from cuda_l1.archive import Archive, RunDirectory
from cuda_l1.archive.runs import resolve, settings_digest
from cuda_l1.config import SCREEN, SearchSettings
from cuda_l1.errors import CandidateError, InfrastructureError, TaskError
from cuda_l1.evaluator import Evaluator
from cuda_l1.export.dropin import dropin_candidate
from cuda_l1.proposers import ModelProposer, Proposer
from cuda_l1.proposers.baselines import baselines
from cuda_l1.reviewer import Reviewer
from cuda_l1.search import Result
from cuda_l1.search import optimize as search
from cuda_l1.search.events import Event, Replied
from cuda_l1.types import Candidate, Record, Reply, Task

REUSED_OUTPUT = "reused-output"
"""The finding that a later call overwrites what a candidate returned."""


class Narrated:
    """An evaluator whose progress, one line at a time, goes to `tell`."""

    def __init__(self, evaluator: Evaluator, tell: Callable[[str], None]) -> None:
        self.environment = evaluator.environment
        self.evaluate = functools.partial(evaluator.evaluate, progress=tell)


def run_search(
    task: Task,
    settings: SearchSettings,
    *,
    archive: Archive,
    evaluator: Evaluator,
    runs: Path,
    on_event: Callable[[Event], None] = lambda event: None,
    tell: Callable[[str], None] = lambda line: None,
    started: float | None = None,
) -> Result:
    """Searches `task` and measures the winner's drop-in file anew.

    The run's directory under `runs` is found again by the settings as long as the run has not ended, so the same call
    after an interruption goes on where it stopped. Raises what `search.optimize` raises, and InfrastructureError at
    sandbox rung R0, where nothing could win; where only models propose and none ever replies, EndpointError, or
    UsageError for a key or a name that is refused, or a prompt that cannot be written.
    """
    if not scoring.is_confined(evaluator.environment):
        raise InfrastructureError(UNCONFINED)
    run = _run_directory(runs, settings)
    least_us = roofline_us(task, settings.clock, evaluator)
    heard = _Heard(task, settings, archive, run.name, evaluator.environment.key, on_event)
    sources = Sources(archive, run.name, evaluator.environment, least_us, heard.on_reply)
    on = settings.device.partition(":")[0]
    with _made(settings, sources) as proposers:
        run.log("started", task=task.id)
        result = search(
            task,
            proposers,
            settings=settings,
            archive=archive,
            evaluator=Narrated(evaluator, tell),
            run=run.name,
            baselines=baselines(task, on, settings.precision),
            export=lambda candidate: _dropin(task, candidate, archive, evaluator),
            reviewer=Reviewer(settings.reviewer) if settings.reviewer else None,
            on_event=on_event,
            roofline_us=least_us,
            started=time.monotonic() if started is None else started,
        )
        faults = [proposer.fault if isinstance(proposer, ModelProposer) else None for proposer in proposers]
    if faults[0] is not None and all(faults):
        raise as_exit(faults[0])  # nobody but models was asked, and none has ever replied
    if result.stop_reason != "interrupted":
        run.log("ended", reason=result.stop_reason, evaluations=result.evaluations)
    return result


@contextlib.contextmanager
def _made(settings: SearchSettings, sources: Sources) -> Iterator[list[Proposer]]:
    """The proposers, whose questions to models end with the search."""
    proposers = make_proposers(settings, sources)
    with contextlib.ExitStack() as stack:
        for proposer in proposers:
            if isinstance(proposer, ModelProposer):
                stack.callback(proposer.close)
        yield proposers


class _Heard:
    """Tells of each reply, and whether its text has a verdict or was there before."""

    def __init__(
        self, task: Task, settings: SearchSettings, archive: Archive, run: str, key: str, tell: Callable[[Event], None]
    ) -> None:
        self._settings, self._archive, self._key, self._tell = settings, archive, key, tell
        earlier = archive.replies.of_run(run, task.sha, environment_key=key)
        self._ids = {reply.candidate_id for reply in earlier if reply.candidate_id}

    def on_reply(self, reply: Reply) -> None:
        """Tells of one. Raises ArchiveError."""
        event = Replied(reply.model, reply.problem, reply.detail, reply.cost.tokens_in, reply.cost.tokens_out)
        if reply.candidate_id:
            event = replace(event, is_copy=reply.candidate_id in self._ids, **self._verdict(reply.candidate_id))
            self._ids.add(reply.candidate_id)
        self._tell(event)

    def _verdict(self, candidate_id: str) -> dict[str, Any]:
        record = self._archive.find(candidate_id, self._key, SCREEN.name)
        if record is None:
            return {}
        evaluation = record.evaluation
        speedup = scoring.speedup(evaluation, self._settings.clock) if evaluation.accepted else None
        counts = scoring.counts(evaluation, self._settings.precision)
        return {"outcome": evaluation.outcome, "speedup": speedup, "counts": counts}


def _dropin(task: Task, candidate: Candidate, archive: Archive, evaluator: Evaluator) -> Candidate:
    from cuda_l1.export.probe import guard_for

    screened = archive.find(candidate.id, evaluator.environment.key, SCREEN.name)
    clone = screened is not None and any(f.check == REUSED_OUTPUT for f in screened.evaluation.findings)
    try:
        guard = guard_for(task, evaluator.environment, evaluator.audit(task).mode, clone=clone)
    except TaskError as error:
        raise CandidateError(f"no drop-in file can be made: {error}") from error
    return dropin_candidate(task, candidate, guard)


def _run_directory(root: Path, settings: SearchSettings) -> RunDirectory:
    """The first directory of these settings whose run has not ended."""
    own = settings_digest(resolve(settings))[:12]
    number = 1
    while True:
        run = RunDirectory.create(root, settings, name=own if number == 1 else f"{own}-{number}")
        if not any(event["event"] == "ended" for event in run.events()):
            return run
        number += 1


def guard_us(task: Task, final: Record) -> float | None:
    """What the guard of the task's drop-in costs a call on this machine, microseconds; None where it cannot be made."""
    from cuda_l1.export.cost import guard_cost_us
    from cuda_l1.export.probe import guard_for

    with contextlib.suppress(TaskError):
        return guard_cost_us(guard_for(task, final.evaluation.environment))
    return None
