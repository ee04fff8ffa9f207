"""The hack cases: confirmed attacks, each with why it is one, and those that a new text is most like."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import Engine, delete, select

from cuda_l1.archive import database
from cuda_l1.archive.faults import database_faults
from cuda_l1.archive.rebuild import parse
from cuda_l1.archive.tables import hack_cases
from cuda_l1.types import HackCase

SHOWN = 3
"""How many similar cases a reviewer is shown: as many as CUDA-L1's was (arXiv 2507.14111, section 3.2)."""


class Similar(NamedTuple):
    """A case and how like a text it is: 1 for the same names, 0 for none in common."""

    similarity: float
    case: HackCase


class HackCases:
    """The cases of one archive. They are advice, not verdicts: one that was a mistake can be removed.

    All methods raise ArchiveError and, where they write, UsageError, as those of `Archive` do.
    """

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self._name = name

    def add(self, cases: Iterable[HackCase]) -> int:
        """Stores what is not there yet; returns how many were new. A text that is there keeps its explanation."""
        with database_faults(self._name), database.writing(self._engine).begin() as connection:
            return sum(database.insert_new(connection, hack_cases, hack_cases.c.id, _row(case)) for case in cases)

    def remove(self, case_id: str) -> None:
        """Forgets a case; nothing where there is none of that id."""
        with database_faults(self._name), database.writing(self._engine).begin() as connection:
            connection.execute(delete(hack_cases).where(hack_cases.c.id == case_id))

    def all(self) -> list[HackCase]:
        """Every case, by name."""
        query = select(hack_cases.c.id, hack_cases.c.document).order_by(hack_cases.c.name, hack_cases.c.id)
        with database_faults(self._name), self._engine.connect() as connection:
            return [parse(HackCase, "hack case", case_id, document) for case_id, document in connection.execute(query)]

    def similar(self, source: str, count: int = SHOWN) -> list[Similar]:
        """The `count` cases most like `source`, most similar first."""
        return most_similar(source, self.all(), count)


def most_similar(source: str, cases: Iterable[HackCase], count: int = SHOWN) -> list[Similar]:
    """The `count` cases whose texts use the names that `source` uses, most similar first.

    Names once each, in alphabetical order, compared by the insertions and deletions that make one list of the other.
    Order and repetition say more about the task than about the attack; docs/lab-notes.md has the comparison.
    """
    from rapidfuzz import process
    from rapidfuzz.distance import Indel

    known = list(cases)
    found = process.extract(
        names(source), [names(case.source) for case in known], scorer=Indel.normalized_similarity, limit=count
    )
    return [Similar(similarity, known[index]) for _, similarity, index in found]


def names(source: str) -> list[str]:
    """The identifiers and words of a text, once each, sorted."""
    return sorted(set(re.findall(r"[A-Za-z_]\w+", source)))


def _row(case: HackCase) -> dict[str, str]:
    return {"id": case.id, "name": case.name, "document": case.model_dump_json()}
