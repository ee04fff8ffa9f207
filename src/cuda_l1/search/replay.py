"""Published kernels, each under the harness that its figure comes from and under our own protocol.

release -> items (reference and candidate of each entry) -> two verdicts an item, each paid for at most once
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cuda_l1.archive import Archive
from cuda_l1.config import AnyProtocol
from cuda_l1.errors import InfrastructureError, UsageError
from cuda_l1.ratios import within_floats
from cuda_l1.search.interfaces import SupportsEvaluate
from cuda_l1.search.verdicts import verdict
from cuda_l1.tasks.release import Column, ReleaseEntry
from cuda_l1.tasks.same_program import same_reference
from cuda_l1.tasks.selection import problem_number
from cuda_l1.types import Candidate, Origin, Record, Task


@dataclass(frozen=True)
class Item:
    """One kernel of a release and what it is judged against."""

    entry: ReleaseEntry
    column: Column
    task: Task
    candidate: Candidate
    reference: Literal["release", "kernelbench"]
    """Whose reference it is judged against."""
    differs: bool
    """The release's own reference is another program than the checkout's."""

    @property
    def published(self) -> float | None:
        """The published speed-up against eager."""
        return published(self.entry, self.column)


def published(entry: ReleaseEntry, column: Column) -> float | None:
    """The published speed-up against eager. Scores are all of `custom`: that of another column follows from two."""
    ours, theirs = entry.scores.get("default"), entry.scores.get(column)
    if column == "custom":
        return ours
    return within_floats(ours / theirs) if ours and theirs else None


@dataclass(frozen=True)
class Replayed:
    """What was found out about one kernel."""

    item: Item
    theirs: Record | None
    """Under the published harness; None where it could not be asked."""
    ours: Record | None
    fault: str | None = None
    """Why a verdict could not be given: what is wrong with the task itself, or with the machine."""
    machine: InfrastructureError | None = None
    """The latter: another attempt may give one."""


def items(entries: Sequence[ReleaseEntry], column: Column, checkout: Sequence[Task] | None = None) -> list[Item]:
    """The kernels of a column, in the order of the entries.

    The reference comes from `checkout` (tasks of a KernelBench checkout), where it has the problem; else from the
    release. Entries without a kernel in that column are passed over.
    """
    known = {(task.level, problem_number(task)): task for task in checkout or ()}
    return [
        _item(entry, column, source, known.get((entry.level_id, entry.task_id)))
        for entry in entries
        if (source := entry.source(column)) is not None
    ]


def _item(entry: ReleaseEntry, column: Column, source: str, own: Task | None) -> Item:
    task = own or entry.task
    differs = not same_reference(task.source, entry.task.source)
    candidate = Candidate.of(task, source, Origin(proposer="release", techniques=(column,)))
    return Item(entry, column, task, candidate, "kernelbench" if own else "release", differs)


def replay(
    item: Item, *, theirs: AnyProtocol, ours: AnyProtocol, archive: Archive, evaluator: SupportsEvaluate, run: str
) -> Replayed:
    """Both verdicts on one kernel; what the archive holds is not paid for again.

    A reference that does not work is a fault of the task's, and is told, and so is one of the machine. Raises
    ArchiveError.
    """
    records: list[Record | None] = [None, None]
    faults = []
    machine = None
    for place, protocol in enumerate((theirs, ours)):
        try:
            records[place] = verdict(
                item.task, item.candidate, protocol=protocol, archive=archive, evaluator=evaluator, run=run
            )
        except (UsageError, InfrastructureError) as error:  # also a text that is too large for any judge
            faults.append(str(error))
            machine = error if isinstance(error, InfrastructureError) else machine
    return Replayed(item, records[0], records[1], "; ".join(dict.fromkeys(faults)) or None, machine)
