"""Which records a report is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from cuda_l1.archive import Archive
from cuda_l1.report.entries import HEADLINE_PROTOCOLS, Entry, Sampled, Skipped, entry_of, methods_of
from cuda_l1.types import Record


class RunParts(NamedTuple):
    """A run, and what belongs to it beside the records of its name."""

    name: str
    searches: tuple[str, ...] = ()
    """Runs that it made itself, one for each task that it searched."""
    tasks: frozenset[str] = frozenset()
    """Hashes of the tasks that it is about: the baselines of all of them may have been known before."""
    skipped: tuple[Skipped, ...] = ()
    found: frozenset[str] = frozenset()
    """Records of what its searches found, which may have been judged before, under another name."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of all its records."""
        return self.name, *self.searches


@dataclass
class Selection:
    """Entries of the protocols that count, and what was left out."""

    entries: list[Entry] = field(default_factory=list)
    runs: set[str] = field(default_factory=set)
    """Those of the runs asked for that brought an entry."""
    replies: dict[str, Sampled] = field(default_factory=dict)
    """What language models answered, by the reply's id; without repairs, which are no samples of their own."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Records under other protocols, by protocol."""


def select(
    archives: Sequence[Archive], runs: Sequence[RunParts] = (), on_record: Callable[[], None] | None = None
) -> Selection:
    """Everything in the archives, or what `runs` recorded, with the baselines of their tasks and what their searches
    found from wherever they are.

    A run pays for nothing that the archive already knows, so a baseline that it was measured against is often another
    run's record. A record that several of the archives hold is one. `on_record` is called for each record read. Raises
    ArchiveError where an archive cannot be read.
    """
    found = Selection()
    entries: dict[str, Entry] = {}
    left_out: dict[str, str] = {}
    for archive in archives:
        tasks = {task.sha: task for task in archive.tasks()}
        for record in _records(archive, runs):
            if on_record:
                on_record()
            protocol = record.evaluation.protocol
            if protocol not in HEADLINE_PROTOCOLS:
                left_out[record.id] = protocol
                continue
            sha = record.candidate.task_sha
            if sha not in tasks:  # another process appends meanwhile
                tasks[sha] = archive.task_of(record)
            entry = entry_of(record, tasks[sha])
            entries[entry.record_id] = entry
            found.runs |= {run.name for run in runs if _is_of(record, run)}
        found.replies |= _sampled(archive, runs)
    found.entries, found.left_out = list(entries.values()), Counter(left_out.values())
    return found


def _is_of(record: Record, run: RunParts) -> bool:
    return record.run in run.names or record.candidate.task_sha in run.tasks


def _sampled(archive: Archive, runs: Sequence[RunParts]) -> dict[str, Sampled]:
    replies = [reply for name in _names(runs) for reply in archive.replies.of_run(name)]
    return {
        reply.id: Sampled(reply.run, reply.model, reply.task_sha, reply.candidate_id, reply.environment_key)
        for reply in (replies if runs else archive.replies.all())
        if reply.repairs is None
    }


def _names(runs: Sequence[RunParts]) -> list[str]:
    return list(dict.fromkeys(name for run in runs for name in run.names))


def _records(archive: Archive, runs: Sequence[RunParts]) -> Iterator[Record]:
    if not runs:
        yield from archive.records()
        return
    names = _names(runs)
    touched = dict.fromkeys(sha for run in runs for sha in sorted(run.tasks))
    found = frozenset[str]().union(*(run.found for run in runs))
    for name in names:
        for record in archive.records(run=name):
            touched[record.candidate.task_sha] = None
            yield record
    for sha in touched:
        for record in archive.records(task_sha=sha):
            if record.run in names:
                continue
            if record.id in found or any(method.kind == "baseline" for method in methods_of(record.candidate)):
                yield record
