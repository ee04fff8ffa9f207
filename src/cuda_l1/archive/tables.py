"""The tables as they are now: index columns beside one JSON document each. How they came to be is in `migrations`.

The document is the truth; every other column is there to be searched and can be rebuilt from it.
"""

from __future__ import annotations

import math

from sqlalchemy import Column, Double, ForeignKey, Index, Integer, MetaData, String, Table, Text

from cuda_l1.config import COMPAT
from cuda_l1.types import Evaluation

metadata = MetaData()

schema_versions = Table(
    "cuda_l1_schema",
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("name", String(64), nullable=False),
    Column("applied_at", String(32), nullable=False),
)

tasks = Table(
    "tasks",
    metadata,
    Column("sha", String(64), primary_key=True),
    Column("suite", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("document", Text, nullable=False),
)

candidates = Table(
    "candidates",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("task_sha", String(64), ForeignKey("tasks.sha"), nullable=False),
    Column("language", String(16), nullable=False),
    Column("document", Text, nullable=False),
)

records = Table(
    "records",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("task_sha", String(64), ForeignKey("tasks.sha"), nullable=False),
    Column("candidate_id", String(64), ForeignKey("candidates.id"), nullable=False),
    Column("outcome", String(32), nullable=False),
    Column("protocol", String(32), nullable=False),
    Column("environment_key", String(64), nullable=False),
    Column("device_name", Text, nullable=False),
    Column("run", Text, nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("time", String(32), nullable=False),
    Column("document", Text, nullable=False),
    Column("log_speedup", Double),
    Index("records_by_candidate", "candidate_id", "environment_key", "protocol"),
    Index("records_by_run", "run", "sequence"),
    Index("records_by_task", "task_sha", "protocol", "log_speedup"),
)

hack_cases = Table(
    "hack_cases",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("name", Text, nullable=False),
    Column("document", Text, nullable=False),
)

replies = Table(
    "replies",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("run", Text, nullable=False),
    Column("task_sha", String(64), nullable=False),
    Column("model", Text, nullable=False),
    Column("time", String(32), nullable=False),
    Column("problem", String(32)),
    Column("tokens_in", Integer, nullable=False),
    Column("tokens_out", Integer, nullable=False),
    Column("usd", Double),
    Column("document", Text, nullable=False),
    Index("replies_by_run", "run", "time"),
    Index("replies_by_task", "task_sha", "model"),
)

variants = Table(
    "variants",
    metadata,
    Column("environment_key", String(64), primary_key=True),
    Column("candidate_id", String(64), ForeignKey("candidates.id"), primary_key=True),
    Column("task_sha", String(64), nullable=False),
    Column("bin", Integer, nullable=False),
    Column("slot", Integer, nullable=False),
    Column("log_reward", Double, nullable=False),
    Index("variants_by_score", "task_sha", "environment_key", "bin", "log_reward", "candidate_id"),
)

variant_counts = Table(
    "variant_counts",
    metadata,
    Column("task_sha", String(64), primary_key=True),
    Column("environment_key", String(64), primary_key=True),
    Column("bin", Integer, primary_key=True, autoincrement=False),
    Column("slot", Integer, primary_key=True, autoincrement=False),
    Column("count", Integer, nullable=False),
    Column("total", Double, nullable=False),
)


def log_speedup(evaluation: Evaluation) -> float | None:
    """The column of that name: log of the speed-up against eager on the device's objective clock, when ACCEPTED by a
    protocol of ours."""
    timing = evaluation.timing("eager")
    if not evaluation.accepted or evaluation.protocol in COMPAT or timing is None or not timing.speedup > 0:
        return None
    return math.log(timing.speedup)
