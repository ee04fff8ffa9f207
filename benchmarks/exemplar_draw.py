"""How long does a draw of exemplars take from an archive of a million records?

    PYTHONPATH=src python benchmarks/exemplar_draw.py --out build/draw

Fills a SQLite archive with `--records` accepted records, each of another candidate of about a kilobyte, as appending
would leave it, once all of one task and once spread over `--tasks`. Log speed-ups are normal around 0.3 with a standard
deviation of 0.8. Then each sampler draws `--draws` times with other seeds, through `archive.exemplars.draw`, documents
included; `first_ms` is the first draw after opening the archive, whose pages the system has cached. `append_ms` is one
more record appended the ordinary way, which keeps the counts up to date and is on disk when it returns. The archive is
made in a temporary folder and removed (TMPDIR chooses the disk). Writes exemplar_draw.csv and exemplar_draw.md.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Table as DatabaseTable
from sqlalchemy import create_engine, insert

from csv_table import Row, Table
from cuda_l1.archive import Archive
from cuda_l1.archive.sampling import bin_of
from cuda_l1.archive.tables import candidates, records, tasks, variant_counts, variants
from cuda_l1.archive.variants import SLOTS
from cuda_l1.config import SamplerSettings
from cuda_l1.report.markdown import table_lines
from cuda_l1.types import (
    Candidate,
    Correctness,
    Environment,
    Evaluation,
    Origin,
    Outcome,
    Pair,
    Record,
    Task,
    Timing,
    Trial,
    digest,
)
from provenance import PROVENANCE, cpu_columns, header, plain_parser, run, say, write_report

KINDS = ("bucket", "island", "random", "top", "bucket-shuffled-scores")
FIGURES = ("first_ms", "median_ms", "p95_ms", "max_ms", "append_ms", "draws", "gigabytes", "sqlite")
COLUMNS = ("records", "tasks", "kind", *FIGURES, *PROVENANCE)
PLACE = Environment(device="cuda", device_name="benchmark", lane="gpu", rung="R2", torch="2.13.0", cuda="13.0")
BATCH = 20_000
TEXT = "x" * 900
APPENDS = 50
FAST = ("journal_mode=OFF", "synchronous=OFF", f"cache_size={-4 << 20}")
"""For filling alone: nothing is lost where a kill loses all of it, and 4 GiB of pages are kept in memory."""


def main() -> int:
    options = _options()
    table = Table(options.out / "exemplar_draw.csv", COLUMNS, keys=3)
    done = {table.key(row) for row in table.rows()}
    for count in dict.fromkeys((1, options.tasks)):
        keys = [{"records": options.records, "tasks": count, "kind": kind} for kind in KINDS]
        if all(table.key(key) in done for key in keys):
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "archive.sqlite"
            say(f"filling {options.records} records of {count} tasks")
            filled = fill(path, options.records, count)
            for row in measured(path, filled, options.draws):
                table.append({"records": options.records, "tasks": count, **row, **_provenance()})
                say(f"{count} tasks, {row['kind']}: {row['median_ms']:.2f} ms, at most {row['max_ms']:.2f} ms")
    write_report(options.out / "exemplar_draw.md", report(table.rows()))
    return 0


def _options() -> argparse.Namespace:
    made = plain_parser(__doc__)
    made.add_argument("--records", type=int, default=1_000_000)
    made.add_argument("--tasks", type=int, default=250, help="of the second archive; the first has one")
    made.add_argument("--draws", type=int, default=300, help="of each sampler")
    return made.parse_args()


def _provenance() -> dict[str, object]:
    return {"sqlite": sqlite3.sqlite_version, **cpu_columns()}


# ── the archive ───────────────────────────────────────────────────────────────────────────────────


def fill(path: Path, count: int, of_tasks: int) -> list[Task]:
    """Writes `count` records of `of_tasks` tasks into a new archive, many rows at a time."""
    Archive.open(path).close()
    known = [Task(suite="synth", name=f"{i}", source=f"class Model: number = {i}") for i in range(of_tasks)]
    draw, counts = random.Random(0), Counter[tuple[str, int, int]]()
    totals: defaultdict[tuple[str, int, int], float] = defaultdict(float)
    engine = create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        for pragma in FAST:
            connection.exec_driver_sql(f"PRAGMA {pragma}")
        connection.commit()
        connection.execute(insert(tasks), [_task_row(task) for task in known])
        for begin in range(0, count, BATCH):
            rows: dict[DatabaseTable, list[dict[str, Any]]] = {candidates: [], records: [], variants: []}
            for number in range(begin, min(begin + BATCH, count)):
                task, score = known[number % of_tasks], draw.gauss(0.3, 0.8)
                made = rows_of(task, number, score)
                for table, row in made.items():
                    rows[table].append(row)
                key = task.sha, made[variants]["bin"], made[variants]["slot"]
                counts[key] += 1
                totals[key] += score
            for table, found in rows.items():
                connection.execute(insert(table), found)
        connection.execute(insert(variant_counts), [
            {"task_sha": sha, "environment_key": PLACE.key, "bin": b, "slot": s, "count": n, "total": totals[sha, b, s]}
            for (sha, b, s), n in counts.items()
        ])  # fmt: skip
        connection.commit()
    engine.dispose()
    return known


def rows_of(task: Task, number: int, score: float) -> dict[DatabaseTable, dict[str, Any]]:
    """What appending a record leaves in three tables; the record's document, which no draw reads, is a stand-in."""
    source = f"# {number}\n{TEXT}"
    key, place = digest(task.sha, "cuda", source), PLACE.key
    origin = '{"proposer":"llm","model":"benchmark"}'
    document = (
        f'{{"task_sha":"{task.sha}","task_id":"{task.id}","source":"# {number}\\n{TEXT}",'
        f'"language":"cuda","origins":[{origin}]}}'
    )
    return {
        candidates: {"id": key, "task_sha": task.sha, "language": "cuda", "document": document},
        records: {
            "id": digest("record", str(number)), "task_sha": task.sha, "candidate_id": key, "outcome": "ACCEPTED",
            "protocol": "screen", "environment_key": place, "device_name": PLACE.device_name, "run": "benchmark",
            "sequence": number, "time": "2026-01-01T00:00:00.000000+00:00", "document": document,
            "log_speedup": score,
        },
        variants: {
            "environment_key": place, "candidate_id": key, "task_sha": task.sha, "bin": bin_of(score),
            "slot": int(key[:8], 16) % SLOTS, "log_reward": score,
        },
    }  # fmt: skip


def _task_row(task: Task) -> dict[str, Any]:
    return {"sha": task.sha, "suite": task.suite, "name": task.name, "document": task.model_dump_json()}


# ── what is measured ──────────────────────────────────────────────────────────────────────────────


def measured(path: Path, known: Sequence[Task], draws: int) -> Iterator[dict[str, Any]]:
    """A row for each sampler."""
    size = path.stat().st_size / 1e9
    for kind in KINDS:
        settings = SamplerSettings.model_validate({"kind": kind})
        with Archive.open(path) as archive:
            took_ms = [
                timed_ms(partial(draw_from, archive, task, settings, seed))
                for seed, task in enumerate(known[seed % len(known)] for seed in range(draws))
            ]
            appends = [timed_ms(appending(archive, known[0], f"{kind} {number}")) for number in range(APPENDS)]
        yield {
            "kind": kind,
            "first_ms": took_ms[0],
            "median_ms": statistics.median(took_ms),
            "p95_ms": statistics.quantiles(took_ms, n=20)[-1],
            "max_ms": max(took_ms),
            "append_ms": statistics.median(appends),
            "draws": draws,
            "gigabytes": size,
        }


def draw_from(archive: Archive, task: Task, settings: SamplerSettings, seed: int) -> None:
    """One draw, which must give what was asked for."""
    drawn = archive.exemplars.draw(task.sha, settings, seed=seed, environment_key=PLACE.key)
    assert len({exemplar.candidate_id for exemplar in drawn}) == settings.count


def timed_ms(do: Callable[[], object]) -> float:
    """Wall time of a call, milliseconds."""
    began = time.perf_counter()
    do()
    return (time.perf_counter() - began) * 1e3


def appending(archive: Archive, task: Task, text: str) -> Callable[[], object]:
    """The append of a record that counts."""
    source = f"class ModelNew: text = {text!r}"
    origins = (Origin(proposer="llm"),)
    candidate = Candidate(task_sha=task.sha, task_id=task.id, source=source, origins=origins)
    trial = Trial(kind="base", error=1e-7, reference_error=1e-7, bound=1e-6, passed_class="fp32")
    pair = Pair(candidate_us=(1.0,), opponent_us=(2.0,), candidate_pid=1, opponent_pid=2, log_ratio=0.7)
    timing = Timing(
        clock="device", opponent="eager", opponent_id="e", pairs=(pair,), speedup=2.0, candidate_us=1.0, opponent_us=2.0
    )
    evaluation = Evaluation(
        candidate_id=candidate.id,
        outcome=Outcome.ACCEPTED,
        correctness=Correctness(trials=(trial,), precision_class="fp32", task_class="fp32"),
        timings=(timing,),
        environment=PLACE,
        protocol="screen",
    )
    record = Record(run="appended", sequence=1, candidate=candidate, evaluation=evaluation)
    return lambda: archive.append(record, task)


# ── report ────────────────────────────────────────────────────────────────────────────────────────


def report(rows: Sequence[Row]) -> str:
    """The rows as a table with what they were measured on."""
    first = rows[0]
    lines = header("Drawing exemplars from a large archive", list(rows))
    lines += [
        f"A SQLite {first['sqlite']} archive of {float(first['gigabytes']):.1f} GB; {first['draws']} draws of two "
        "exemplars with each sampler, in milliseconds.",
        "",
    ]
    head = ("records", "tasks", "sampler", "first", "median", "95 %", "slowest", "an append")
    return "\n".join([*lines, *table_lines(head, [_cells(row) for row in rows]), ""])


def _cells(row: Row) -> list[str]:
    times = [f"{float(row[name]):.2f}" for name in ("first_ms", "median_ms", "p95_ms", "max_ms", "append_ms")]
    return [row["records"], row["tasks"], row["kind"], *times]


if __name__ == "__main__":
    run(main)
