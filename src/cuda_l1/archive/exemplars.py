"""The exemplar database: earlier variants of a task, drawn by score for a prompt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, Engine, Table, func, select

from cuda_l1.archive.faults import database_faults
from cuda_l1.archive.rebuild import parse
from cuda_l1.archive.sampling import BINS, Bucket, Place, by_buckets, deranged, uniformly
from cuda_l1.archive.tables import candidates, records, variant_counts, variants
from cuda_l1.archive.variants import SLOTS
from cuda_l1.config import SamplerSettings
from cuda_l1.types import Candidate, Exemplar

_SHIFT = 1_000_000
"""Keeps the numerator positive where SQL divides: databases round the quotient of negative integers towards zero."""

_VARIANT = select(variants.c.candidate_id, variants.c.bin, variants.c.log_reward)
_BY_SCORE = (variants.c.bin, variants.c.log_reward, variants.c.candidate_id)


class Elsewhere(NamedTuple):
    """Variants that were measured in another place."""

    device_name: str
    environment_key: str
    variants: int


class _Variant(NamedTuple):
    candidate_id: str
    bin: int
    log_reward: float


class _Scope(NamedTuple):
    """One task in one place, or an island of it."""

    task_sha: str
    environment_key: str
    slots: tuple[int, ...] | None = None

    def of(self, table: Table) -> list[ColumnElement[bool]]:
        """The conditions that its rows in `table` meet."""
        found = [table.c.task_sha == self.task_sha, table.c.environment_key == self.environment_key]
        return found if self.slots is None else [*found, table.c.slot.in_(self.slots)]


class Exemplars:
    """The variants of one archive that may be shown: what counts, by the latest record of each candidate in a place.

    Scores of different places cannot be compared, so a draw is from one; `elsewhere` says what others hold. All methods
    raise ArchiveError as those of `Archive` do.
    """

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self._name = name

    def draw(self, task_sha: str, settings: SamplerSettings, *, seed: int, environment_key: str) -> list[Exemplar]:
        """At most `settings.count` different variants, in an order that says nothing about their scores.

        `bucket`: from as many different score buckets, drawn by the softmax of their mean scores; `island`: the same
        within one part of the variants, chosen uniformly; `random`: any; `top`: the fastest; `none`: none.
        `bucket-shuffled-scores` puts the scores beside the wrong variants, `bucket-hidden-scores` leaves them out.
        Where there are fewer buckets than `count`, some give several; where there are fewer variants, all come.

        The same archive, settings and seed give the same exemplars.
        """
        if settings.kind == "none" or settings.count == 0:
            return []
        rng = Random(f"{seed} {task_sha} {environment_key}")
        with database_faults(self._name), self._engine.connect() as connection:
            rows = self._rows(connection, _Scope(task_sha, environment_key), settings, rng)
            known = _documents(connection, [row.candidate_id for row in rows])
        rng.shuffle(rows)
        width = _bins(settings)
        found = [(parse(Candidate, "candidate", row.candidate_id, known[row.candidate_id]), row) for row in rows]
        return _labelled([_exemplar(candidate, row, width) for candidate, row in found], settings, rng)

    def count(self, task_sha: str, environment_key: str) -> int:
        """How many variants there are to draw from."""
        with database_faults(self._name), self._engine.connect() as connection:
            total = select(func.sum(variant_counts.c.count))
            return connection.scalar(total.where(*_Scope(task_sha, environment_key).of(variant_counts))) or 0

    def elsewhere(self, task_sha: str, environment_key: str) -> list[Elsewhere]:
        """What other places hold of the task, most first: never drawn from, but a person should hear of it."""
        number = func.sum(variant_counts.c.count)
        place = variant_counts.c.environment_key
        others = select(place, number).where(variant_counts.c.task_sha == task_sha, place != environment_key)
        with database_faults(self._name), self._engine.connect() as connection:
            counted = connection.execute(others.group_by(place).order_by(number.desc(), place)).all()
            return [Elsewhere(_device_name(connection, task_sha, key), key, int(found)) for key, found in counted]

    def _rows(self, connection: Connection, scope: _Scope, settings: SamplerSettings, rng: Random) -> list[_Variant]:
        if settings.kind == "top":
            return _best(connection, scope, settings.count)
        if settings.kind == "island":
            scope = _island(connection, scope, settings.islands, rng)
        width = _bins(settings)
        buckets = _buckets(connection, scope, width)
        if settings.kind == "random":
            places = uniformly(buckets, settings.count, rng)
        else:
            places = by_buckets(buckets, settings.count, settings.temperature, rng)
        found = (_at(connection, scope, place, width) for place in places)
        return [row for row in found if row is not None]


def _bins(settings: SamplerSettings) -> int:
    """How many bins make a bucket."""
    return round(settings.bucket_width * BINS)


def _buckets(connection: Connection, scope: _Scope, width: int) -> list[Bucket]:
    number = (variant_counts.c.bin + width * _SHIFT) // width
    query = select(number, func.sum(variant_counts.c.count), func.sum(variant_counts.c.total))
    rows = connection.execute(query.where(*scope.of(variant_counts)).group_by(number).order_by(number))
    return [Bucket(int(at) - _SHIFT, int(count), float(total) / int(count)) for at, count, total in rows]


def _at(connection: Connection, scope: _Scope, place: Place, width: int) -> _Variant | None:
    """The variant of that rank in its bucket; None where another process has just taken it away."""
    bins, rank = variant_counts.c.bin, place.rank
    first = place.bucket.number * width
    counted = select(bins, func.sum(variant_counts.c.count)).where(
        *scope.of(variant_counts), bins >= first, bins < first + width
    )
    for number, count in connection.execute(counted.group_by(bins).order_by(bins)):
        if rank < count:
            lowest_first = _VARIANT.where(*scope.of(variants), variants.c.bin == number).order_by(*_BY_SCORE)
            row = connection.execute(lowest_first.offset(rank).limit(1)).first()
            return None if row is None else _Variant(*row)
        rank -= int(count)
    return None


def _best(connection: Connection, scope: _Scope, count: int) -> list[_Variant]:
    highest_first = _VARIANT.where(*scope.of(variants)).order_by(*(column.desc() for column in _BY_SCORE))
    return [_Variant(*row) for row in connection.execute(highest_first.limit(count))]


def _island(connection: Connection, scope: _Scope, islands: int, rng: Random) -> _Scope:
    """One of the islands that hold variants. Which island a variant lives on is decided by its hash."""
    used = connection.scalars(select(variant_counts.c.slot).where(*scope.of(variant_counts)).distinct())
    inhabited = sorted({slot % islands for slot in used})
    chosen = rng.choice(inhabited) if inhabited else 0
    return scope._replace(slots=tuple(range(chosen, SLOTS, islands)))


def _documents(connection: Connection, ids: Sequence[str]) -> dict[str, str]:
    rows = connection.execute(select(candidates.c.id, candidates.c.document).where(candidates.c.id.in_(ids)))
    return {str(candidate_id): str(document) for candidate_id, document in rows}


def _device_name(connection: Connection, task_sha: str, environment_key: str) -> str:
    one = select(variants.c.candidate_id).where(*_Scope(task_sha, environment_key).of(variants)).limit(1)
    named = select(records.c.device_name).where(
        records.c.candidate_id.in_(one), records.c.environment_key == environment_key
    )
    return connection.scalar(named.limit(1)) or "another machine"


def _exemplar(candidate: Candidate, row: _Variant, width: int) -> Exemplar:
    return Exemplar(
        candidate_id=candidate.id,
        source=candidate.source,
        language=candidate.language,
        label=candidate.label,
        score=math.exp(row.log_reward),
        bucket=row.bin // width,
    )


def _labelled(found: list[Exemplar], settings: SamplerSettings, rng: Random) -> list[Exemplar]:
    """The scores as the prompt shows them: the true ones, or a control's."""
    if settings.kind == "bucket-hidden-scores":
        return [exemplar.model_copy(update={"score": None}) for exemplar in found]
    if settings.kind == "bucket-shuffled-scores":
        scores = deranged([exemplar.score or 0.0 for exemplar in found], rng)
        return [e.model_copy(update={"score": score}) for e, score in zip(found, scores, strict=True)]
    return found
