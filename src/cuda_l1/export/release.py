"""Best verified kernels in the format of CUDA-L1's release, each with the evidence for it: one JSON object a line.

`tasks/release.py` reads the format; what is added here stands under `evidence`, which other readers pass over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

from cuda_l1.tasks.sizes import other_sizes
from cuda_l1.types import Clock, Record, Task, Timing

SCORES = {
    "score_torch_compile_default": "compile",
    "score_torch_compile_reduce_overhead": "compile-reduce-overhead",
    "score_cuda_graph": "cuda-graph",
    "score_cudnn": "cudnn-benchmark",
}
"""The release's names for speed-ups against something else than eager, and the baselines that they are against."""


class Numbered(NamedTuple):
    """A kernel under the number that the release gives to its task."""

    level_id: int
    """KernelBench's level; 0 for tasks of other suites."""
    task_id: int
    """KernelBench's number within the level; for other suites the place in the order of their names."""
    task: Task
    record: Record

    @property
    def other_sizes(self) -> str | None:
        """The sizes that are not the suite's, where the task was scaled down to fit a device."""
        return other_sizes(self.task)


def numbered(found: Iterable[tuple[Task, Record]]) -> tuple[list[Numbered], list[str]]:
    """(the kernels in the order of their numbers, what had to be left out, a line each).

    Of several tasks with one number, other shapes of a problem, say, the one with the latest record stands, and none
    that was scaled down beside one that was not. A task with weights of its own is left out: the format has no place
    for them.
    """
    rows: dict[tuple[int, int], Numbered] = {}
    left_out: list[str] = []
    others = 0
    for task, record in sorted(found, key=lambda pair: (pair[0].suite, pair[0].name, pair[1].time)):
        if task.weights is not None:
            left_out.append(f"{task.id}: its weights lie in a file of their own")
            continue
        key = _kernelbench_number(task)
        if key is None:
            others += 1
            key = 0, others
        if key in rows:
            rivals = sorted((rows[key], Numbered(*key, task, record)), key=_preference)
            why = (
                "at the suite's sizes" if rivals[0].other_sizes and not rivals[1].other_sizes else "with a later record"
            )
            left_out.append(f"{rivals[0].task.id}: another task is level{key[0]}/{key[1]} too, {why}")
            if rivals[0].task.sha == task.sha:
                continue
        rows[key] = Numbered(*key, task, record)
    return [rows[key] for key in sorted(rows)], left_out


def _preference(row: Numbered) -> tuple[bool, datetime]:
    return row.other_sizes is None, row.record.time


def release_lines(rows: Iterable[Numbered], clock: Clock | None = None) -> Iterator[str]:
    """One line of strict JSON for each, its figures on `clock` (default: the device's objective)."""
    for row in rows:
        yield json.dumps(_fields(row, clock), allow_nan=False)


def _fields(row: Numbered, clock: Clock | None) -> dict[str, Any]:
    evaluation = row.record.evaluation
    eager = evaluation.timing("eager", clock)
    best = evaluation.best_baseline_timing(clock)
    correctness = evaluation.correctness
    return {
        "level_id": row.level_id,
        "task_id": row.task_id,
        "ref_code": row.task.source,
        "custom_code": row.record.candidate.source,
        "cuda_graph_code": None,
        "cudnn_code": None,
        "score_default": eager.speedup if eager else None,
        **{name: _against(row.record, baseline, clock) for name, baseline in SCORES.items()},
        "evidence": {
            "task": row.task.id,
            "task_sha": row.task.sha,
            "other_sizes": row.other_sizes,
            "record": row.record.id,
            "time": row.record.time.isoformat(),
            "technique": row.record.candidate.label,
            "protocol": evaluation.protocol,
            "clock": eager.clock if eager else None,
            "pairs": len(eager.pairs) if eager else 0,
            "precision_class": evaluation.precision_class,
            "task_class": correctness.task_class if correctness else None,
            "task_flags": evaluation.task_flags,
            **_interval("speedup_eager", eager),
            **_interval("speedup_best_baseline", best),
            "best_baseline": best.opponent if best else None,
            "best_of": best.best_of if best else (),
            "findings": [finding.model_dump() for finding in evaluation.findings],
            "environment": evaluation.environment.model_dump(),
        },
    }


def _interval(name: str, timing: Timing | None) -> dict[str, float | None]:
    if timing is None:
        return dict.fromkeys((name, f"{name}_low", f"{name}_high"))
    return {name: timing.speedup, f"{name}_low": timing.speedup_low, f"{name}_high": timing.speedup_high}


def _against(record: Record, baseline: str, clock: Clock | None) -> float | None:
    """Only what was timed against it in the same lease; a quotient of two figures would be none of ours."""
    timing = record.evaluation.timing(baseline, clock)
    return timing.speedup if timing else None


def _kernelbench_number(task: Task) -> tuple[int, int] | None:
    number = re.match(r"\d+", task.name.rpartition("/")[2])
    return (task.level, int(number[0])) if task.level is not None and number else None
