"""A table of verdicts that several training runs look rewards up in and add to, each with an archive of its own.

candidate ──► own archive? ──► table? ──► evaluator ──► table
                  ▲               └───────────┴──► entered into the own archive, as a record of this run

A run's exemplars are drawn from its own archive alone, so that runs never see each other's variants; what the table
knows of a variant counts for a run from the moment that it writes the variant itself.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from cuda_l1.archive import Archive
from cuda_l1.archive.faults import file_faults
from cuda_l1.config import SCREEN
from cuda_l1.errors import UsageError
from cuda_l1.search.disturbed import is_disturbed, undisturbed
from cuda_l1.search.interfaces import SupportsEvaluate
from cuda_l1.search.verdicts import entered, known
from cuda_l1.types import Candidate, Record, Task

CLAIMS = 256
"""Files that are locked while something is measured, by the first two digits of a candidate's id: with a few
evaluators at work two different candidates seldom wait for each other."""


class Found(NamedTuple):
    """A verdict through a table."""

    record: Record
    """Of the run that asked, in its own archive."""
    is_hit: bool
    """Whether the table had it."""


class Table:
    """A database of verdicts at `screen`, and locks beside it (`PATH.claims/`), so that of several processes which
    want the same verdict one measures and the others read. The kernel gives locks back when their holder dies."""

    def __init__(self, archive: Archive, claims: Path) -> None:
        self._archive, self._claims = archive, claims

    @classmethod
    @contextmanager
    def open(cls, path: str) -> Iterator[Table]:
        """The table in a file, made where there is none. Raises UsageError for what is no file, ArchiveError."""
        if "://" in path:
            raise UsageError(f"evaluation.table {path}: give a file; of a server nobody could claim a measurement")
        with Archive.open(path) as archive:
            yield cls(archive, Path(path).with_name(f"{Path(path).name}.claims"))

    def look_up(
        self, task: Task, candidate: Candidate, *, evaluator: SupportsEvaluate, archive: Archive, run: str
    ) -> Record | None:
        """What it knows of the candidate in the evaluator's place, entered into `archive` as `run`'s; None: measure it.

        Raises ArchiveError.
        """
        found = known(candidate, SCREEN, self._archive, evaluator)
        if found is None or is_disturbed(found.evaluation):
            return None
        return entered(found.evaluation, task, candidate, archive=archive, run=run)

    def verdict(
        self,
        task: Task,
        candidate: Candidate,
        *,
        evaluator: SupportsEvaluate,
        archive: Archive,
        run: str,
        best_so_far: float | None = None,
    ) -> Found:
        """The verdict at `screen`, measured where nobody has yet; entered into `archive` either way.

        Waits while another process measures the same candidate. Raises as `search.verdict` does.
        """
        with self._claimed(candidate):
            own = self.look_up(task, candidate, evaluator=evaluator, archive=archive, run=run)
            if own is not None:
                return Found(own, is_hit=True)
            made = undisturbed(
                task, candidate, protocol=SCREEN, archive=self._archive, evaluator=evaluator, run=run,
                best_so_far=best_so_far,
            )  # fmt: skip
        return Found(entered(made.evaluation, task, candidate, archive=archive, run=run), is_hit=False)

    @contextmanager
    def _claimed(self, candidate: Candidate) -> Iterator[None]:
        path = self._claims / f"{int(candidate.id[:8], 16) % CLAIMS:02x}.lock"
        with file_faults(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            claim = path.open("ab")
        with claim:
            fcntl.flock(claim, fcntl.LOCK_EX)
            yield
