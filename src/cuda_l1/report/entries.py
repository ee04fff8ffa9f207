"""A record as a report needs it: whose candidate it is, and its evaluation without the samples."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

from cuda_l1 import scoring
from cuda_l1.config import Precision
from cuda_l1.report.technique_rules import tags
from cuda_l1.types import Candidate, Evaluation, Origin, Record, Task

EAGER = "eager"
TECHNIQUES = "techniques"
"""The proposer whose candidates are our own techniques, each chosen by what the ones before it did."""
FILE, RELEASE = "file", "release"
"""Proposers of texts that were handed in."""
HEADLINE_PROTOCOLS = ("final", "screen")
"""Whose figures a report shows, best evidence first. Compatibility protocols imitate others and mean something else."""


@dataclass(frozen=True, order=True)
class Method:
    """Who made a candidate: one row of a table."""

    kind: Literal["baseline", "given", "system"]
    """`given`: a text that was handed in, a file or one of a release; `system`: what searches, and chooses."""
    name: str
    """A baseline's name, a model's, or else the proposer's; for a release with the column that it stands in."""


@dataclass(frozen=True)
class Entry:
    """One record, small enough to keep every one of a large archive."""

    task: Task
    record_id: str
    run: str
    time: datetime
    candidate_id: str
    label: str
    methods: tuple[Method, ...]
    """Several proposers may have written the same text."""
    evaluation: Evaluation
    """Without raw samples and log."""
    techniques: tuple[str, ...] = ()
    """What it is made with: by name where our own techniques wrote it, else by rule from its text and as labelled."""
    tagged: bool = False
    """By rule."""

    @property
    def is_baseline(self) -> bool:
        """Whether a baseline's text was judged, whoever else wrote it."""
        return any(method.kind == "baseline" for method in self.methods)

    @property
    def is_eager(self) -> bool:
        """Whether it is what everything is timed against."""
        return Method("baseline", EAGER) in self.methods

    def counts(self, precision: Precision) -> bool:
        """Whether figures of it may stand in a report that asks for this precision (`scoring.counts`)."""
        return scoring.counts(self.evaluation, precision, is_eager=self.is_eager)


class Sampled(NamedTuple):
    """A model's reply to a task: one sample, whether or not it holds a candidate."""

    run: str
    model: str
    task_sha: str
    candidate_id: str | None
    environment_key: str = ""
    """Where its candidate was to be judged; empty where that is not known."""


NOT_REACHED = "not reached: the run was interrupted, or goes on; the same command takes it up"
"""Why there is no verdict on a task that a run has not come to."""


class Skipped(NamedTuple):
    """A task that a run was to judge and did not."""

    task_sha: str
    name: str
    run: str
    why: str


def entry_of(record: Record, task: Task) -> Entry:
    """What a report keeps of a record of `task`."""
    full = record.evaluation
    lean = full.model_copy(
        update={"timings": tuple(t.model_copy(update={"pairs": ()}) for t in full.timings), "log": ""}
    )
    return Entry(
        task=task,
        record_id=record.id,
        run=record.run,
        time=record.time,
        candidate_id=record.candidate.id,
        label=record.candidate.label,
        methods=methods_of(record.candidate),
        evaluation=lean,
        **_techniques(record.candidate, task),
    )


def _techniques(candidate: Candidate, task: Task) -> dict[str, Any]:
    named = [origin for origin in candidate.origins if origin.proposer == TECHNIQUES]
    if named:
        return {"techniques": named[0].techniques}
    if candidate.is_baseline:
        return {}
    labels = (name for origin in candidate.origins if origin.proposer != RELEASE for name in origin.techniques)
    return {"techniques": tuple(dict.fromkeys((*tags(candidate.source, task.source), *labels))), "tagged": True}


def methods_of(candidate: Candidate) -> tuple[Method, ...]:
    """Everybody who wrote this text; a candidate of unknown origin counts as a file's."""
    found = [_method(origin) for origin in candidate.origins or (Origin(proposer=FILE),)]
    return tuple(dict.fromkeys(found))


def _method(origin: Origin) -> Method:
    if origin.proposer == "baselines" and origin.techniques:
        return Method("baseline", " + ".join(origin.techniques))
    if origin.proposer in (FILE, RELEASE):
        columns = origin.techniques if origin.proposer == RELEASE else ()
        return Method("given", ": ".join((origin.proposer, *columns)))
    return Method("system", origin.model or origin.proposer)
