"""The built-in suite: one search per task, as `cuda-l1 optimize TASK --budget 60s` makes it, and what all of it shows.

    PYTHONPATH=src python benchmarks/suite.py --device cpu --budget 60s --out build/suite-cpu

Writes to the folder of --out: suite.csv, a row per task as soon as it has ended; suite.md, the summary, anew after each
task; archive.sqlite and runs/, every verdict. The same command again goes on where it stopped, within a task too.
The columns are explained in docs/results/README.md.

A search gives at most a third of its budget to the baselines, and names those that there was no time for. With
--all-baselines every one is measured before the search, beside the budget: a stricter opponent, and a longer run.

One task at a time: a search beside another would compile and check on the device that the other is timing on. Several
GPUs of a machine can share the work, each process with a GPU and cores of its own and all with one --out:

    CUDA_VISIBLE_DEVICES=1 taskset -c 16-31 python benchmarks/suite.py --device cuda --shard 2/8 --out DIR
"""

from __future__ import annotations

import argparse
import contextlib
import re
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from csv_table import Table
from cuda_l1.api.budget import parse_budget
from cuda_l1.api.judging import best_baseline
from cuda_l1.api.places import data_folder, resolve_device
from cuda_l1.api.searching import run_search
from cuda_l1.archive import Archive
from cuda_l1.cli.progress import SearchDisplay
from cuda_l1.config import EvaluatorSettings, Precision, SearchSettings
from cuda_l1.errors import CudaL1Error, UsageError
from cuda_l1.evaluator import Evaluator
from cuda_l1.search.events import Confirmed, Event
from cuda_l1.tasks import builtin_dtypes, builtin_names, load_task
from cuda_l1.types import Evaluation, Task
from provenance import Deadline, parser, run, say, write_report
from suite_rows import COLUMNS, KEYS, Search, result_columns
from suite_summary import summary

GRACE_S = 15.0
"""What a search may take beyond its budget."""


class TimedEvaluator(Evaluator):
    """An evaluator that adds up how long it was waited for."""

    asked_s = 0.0

    def evaluate(self, *args: Any, **kwargs: Any) -> Evaluation:
        began = time.monotonic()
        try:
            return super().evaluate(*args, **kwargs)
        finally:
            self.asked_s += time.monotonic() - began


@dataclass(frozen=True)
class Plan:
    """What was asked for."""

    items: tuple[tuple[str, str], ...]
    """(task, dtype) of the whole run, in order."""
    own: tuple[tuple[str, str], ...]
    """Those of this shard."""
    device: str
    budget: str
    precision: Precision
    archive: str
    keep_evaluator: bool
    all_baselines: bool

    def settings(self, task_sha: str) -> SearchSettings:
        seconds, evaluations = parse_budget(self.budget)
        return SearchSettings(
            task_sha=task_sha,
            device=self.device,
            precision=self.precision,
            budget_s=seconds,
            budget_evaluations=evaluations,
        )


def main() -> int:
    options = _options()
    plan, deadline = _plan(options), Deadline(options.deadline)
    table = Table(options.out / "suite.csv", COLUMNS, keys=KEYS)
    _check_rows(table, plan)
    least_s = (parse_budget(plan.budget).seconds or 0.0) + GRACE_S
    with Archive.open(plan.archive) as archive, _evaluators(plan) as opened:
        for name, dtype in plan.own:
            if (name, dtype) in _finished(table):
                continue
            if not deadline.allows(least_s):
                say(f"no time left for {name} {dtype}; the same command goes on from here")
                break
            table.append({"task": name, "dtype": dtype, **_one(name, dtype, plan, archive, opened)})
            _write_summary(table, plan)
    _write_summary(table, plan)
    return 0 if set(plan.own) <= _finished(table) else 1


def _options() -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument("--budget", default="60s", help="per task: a time (60s) or a number of evaluations (20)")
    made.add_argument("--tasks", help="names, separated by commas; default all")
    made.add_argument("--dtypes", default="fp32", help="e.g. fp32,bf16; a task is run in those that it comes in")
    made.add_argument("--precision", default="default", choices=("default", "fp32", "tf32", "relaxed"))
    made.add_argument("--archive", help="where the verdicts go; default archive.sqlite in --out")
    made.add_argument("--shard", default="1/1", metavar="K/N", help="only every N-th task, beginning with the K-th")
    made.add_argument(
        "--keep-evaluator",
        action="store_true",
        help="one evaluator for all tasks: saves its start, which a command pays within its budget",
    )
    made.add_argument("--all-baselines", action="store_true", help="measure every baseline first, beside the budget")
    return made.parse_args()


def _plan(options: argparse.Namespace) -> Plan:
    """Raises UsageError for an unknown task, dtype or shard, before anything starts."""
    parse_budget(options.budget)
    wanted = options.tasks.split(",") if options.tasks else builtin_names()
    items = tuple((name, dtype) for dtype in options.dtypes.split(",") for name in wanted if dtype in _dtypes(name))
    if not items:
        raise UsageError(f"none of the tasks asked for comes in {options.dtypes}")
    shard = re.fullmatch(r"(\d+)/(\d+)", options.shard)
    if shard is None or not 1 <= int(shard[1]) <= int(shard[2]):
        raise UsageError(f"--shard {options.shard}: give K/N with K from 1 to N")
    return Plan(
        items=items,
        own=items[int(shard[1]) - 1 :: int(shard[2])],
        device=resolve_device(options.device),
        budget=options.budget,
        precision=options.precision,
        archive=options.archive or str(options.out / "archive.sqlite"),
        keep_evaluator=options.keep_evaluator,
        all_baselines=options.all_baselines,
    )


def _dtypes(name: str) -> tuple[str, ...]:
    if name not in builtin_names():
        raise UsageError(f"no built-in task is called `{name}`; `cuda-l1 tasks list` shows them, --dtypes their dtypes")
    return builtin_dtypes(name)


def _check_rows(table: Table, plan: Plan) -> None:
    """Figures of different budgets never stand in one file."""
    for row in table.rows():
        if (row["budget"], row["precision"]) != (plan.budget, plan.precision):
            found = f"budget {row['budget']} and precision {row['precision']}"
            raise UsageError(f"{table.path}: holds rows of {found}; ask for the same, or give another --out")


def _finished(table: Table) -> set[tuple[str, str]]:
    """What has a verdict; a task that ended in an error is tried again."""
    return {(row["task"], row["dtype"]) for row in table.rows() if row["outcome"] != "error"}


# ── one task ──────────────────────────────────────────────────────────────────────────────────────


Opened = Callable[[], contextlib.AbstractContextManager[TimedEvaluator]]
"""Gives the evaluator for the next task."""


@contextlib.contextmanager
def _evaluators(plan: Plan) -> Iterator[Opened]:
    """A fresh evaluator for each task, or always the same."""
    settings = EvaluatorSettings(device=plan.device)
    if not plan.keep_evaluator:
        yield lambda: TimedEvaluator(settings)
        return
    with TimedEvaluator(settings) as kept:
        yield lambda: contextlib.nullcontext(kept)


def _one(name: str, dtype: str, plan: Plan, archive: Archive, opened: Opened) -> dict[str, object]:
    """The row of one task; a fault is a row too, so that one task never costs the figures of the others."""
    began = time.monotonic()
    say(f"── {name} {dtype}")
    fixed = {"budget": plan.budget, "precision": plan.precision}
    try:
        with opened() as evaluator:
            return {**fixed, **_search(name, dtype, plan, archive, evaluator, began)}
    except CudaL1Error as error:
        detail = f"{type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001 - a defect that one task brings to light must not end the run
        say(traceback.format_exc())
        detail = f"{type(error).__name__}: {error}"
    say(detail)
    return {**fixed, "outcome": "error", "wall_s": time.monotonic() - began, "detail": detail}


def _search(
    name: str, dtype: str, plan: Plan, archive: Archive, evaluator: TimedEvaluator, began: float
) -> dict[str, object]:
    task = load_task(name, device=plan.device, dtype=dtype)
    beforehand_s = 0.0
    if plan.all_baselines:
        _measure_baselines(task, plan, archive, evaluator)
        beforehand_s, began = time.monotonic() - began, time.monotonic()
    since, asked_before = datetime.now(UTC), evaluator.asked_s
    details: list[str] = []
    with SearchDisplay() as display:

        def on_event(event: Event) -> None:
            display.on_event(event)
            if isinstance(event, Confirmed) and not event.holds:
                details.append(event.detail or "not faster than eager by more than the interval")

        result = run_search(
            task,
            plan.settings(task.sha),
            archive=archive,
            evaluator=evaluator,
            runs=data_folder(plan.archive) / "runs",
            on_event=on_event,
            started=began,
        )
    if result.stop_reason == "interrupted":
        raise KeyboardInterrupt
    key = evaluator.environment.key
    records = [r for r in archive.records(task_sha=task.sha) if r.evaluation.environment.key == key]
    own = [r for r in records if r.run == result.run]
    paid = [r for r in own if r.time >= since]
    search = Search(
        environment=evaluator.environment,
        records=records,
        paid=paid,
        asked_s=evaluator.asked_s - asked_before,
        resumed=len(paid) < len(own),
        detail=details[-1] if details else "",
    )
    return {**result_columns(result, search), "beforehand_s": beforehand_s}


def _measure_baselines(task: Task, plan: Plan, archive: Archive, evaluator: Evaluator) -> None:
    """Into the archive, where the search finds them; those that are there cost nothing."""
    say("measuring every baseline")
    best_baseline(task, measure=True, precision=plan.precision, archive=archive, evaluator=evaluator, run="baselines")


def _write_summary(table: Table, plan: Plan) -> None:
    write_report(table.path.with_suffix(".md"), summary(table.rows(), plan.items))


if __name__ == "__main__":
    run(main)
