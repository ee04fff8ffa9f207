"""Which records a report is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from cuda_l1.archive import Archive
from cuda_l1.report.entries import HEADLINE_PROTOCOLS, Entry, Sampled, entry_of, methods_of
from cuda_l1.types import Record


@dataclass
class Selection:
    """Entries of the protocols that count, and what was left out."""

    entries: list[Entry] = field(default_factory=list)
    runs: set[str] = field(default_factory=set)
    """Runs that brought an entry."""
    replies: dict[str, Sampled] = field(default_factory=dict)
    """What language models answered, by the reply's id; without repairs, which are no samples of their own."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Records under other protocols, by protocol."""


def select(
    archives: Sequence[Archive], runs: Sequence[str] = (), on_record: Callable[[], None] | None = None
) -> Selection:
    """Everything in the archives, or what `runs` recorded, with the baselines of its tasks from wherever they are.

    A run pays for nothing that the archive already knows, so a baseline that it was measured against is often another
    run's record. `on_record` is called for each record read. Raises ArchiveError where an archive cannot be read.
    """
    found = Selection()
    for archive in archives:
        tasks = {task.sha: task for task in archive.tasks()}
        for record in _records(archive, runs):
            if on_record:
                on_record()
            protocol = record.evaluation.protocol
            if protocol not in HEADLINE_PROTOCOLS:
                found.left_out[protocol] += 1
                continue
            found.entries.append(entry_of(record, tasks[record.candidate.task_sha]))
            found.runs.add(record.run)
        found.replies |= _sampled(archive, runs)
    return found


def _sampled(archive: Archive, runs: Sequence[str]) -> dict[str, Sampled]:
    replies = [reply for run in dict.fromkeys(runs) for reply in archive.replies.of_run(run)]
    return {
        reply.id: Sampled(reply.run, reply.model, reply.task_sha, reply.candidate_id)
        for reply in (replies if runs else archive.replies.all())
        if reply.repairs is None
    }


def _records(archive: Archive, runs: Sequence[str]) -> Iterator[Record]:
    if not runs:
        yield from archive.records()
        return
    touched: dict[str, None] = {}
    for run in dict.fromkeys(runs):
        for record in archive.records(run=run):
            touched[record.candidate.task_sha] = None
            yield record
    for sha in touched:
        for record in archive.records(task_sha=sha):
            if record.run not in runs and any(method.kind == "baseline" for method in methods_of(record.candidate)):
                yield record
