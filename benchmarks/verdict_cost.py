"""What a verdict costs, and where its seconds go, for candidates that need no compiling and run in microseconds.

    PYTHONPATH=src python benchmarks/verdict_cost.py --device cpu --out build/cost-cpu

Three ways of asking, each candidate with a text of its own: `screen` with warm pools (the evaluator had time to start
unused runners after the verdict before); `screen` back to back (it had none, as in a search or in training); `final`.
Writes verdict_cost.csv, a row per verdict, and verdict_cost.md. The first verdict on a task, which starts the judge and
computes the truth, is made beforehand and shown apart.
"""

from __future__ import annotations

import argparse
import secrets
import statistics
import time
from collections.abc import Sequence

from csv_table import Row, Table
from cuda_l1.api.places import resolve_device
from cuda_l1.config import FINAL, SCREEN, EvaluatorSettings
from cuda_l1.evaluator import Evaluator
from cuda_l1.report.markdown import table_lines
from cuda_l1.types import Candidate, Evaluation, Origin, Task
from provenance import PROVENANCE, Deadline, columns_of, header, parser, run, say, write_report
from suite_rows import STAGES, stage_seconds
from suite_summary import numbers

WAYS = ("first", "screen, warm pools", "screen, back to back", "final")
LONGEST_S = {"first": 30.0, "final": 40.0}
"""A verdict is not begun with less time than this left; other ways: 10 s."""
COLUMNS = (
    *("way", "number", "outcome", "candidate_us", "pairs", "total_s", "without_samples_s", "round_trip_s"),
    *(f"{stage}_s" for stage in STAGES),
    *PROVENANCE,
)

TASK = Task(
    suite="benchmark",
    name="relu_4096",
    source='''"""ReLU of 4096 numbers: the call itself takes microseconds on any device."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(64, 64)]


def get_init_inputs():
    return []
''',
)
CANDIDATE = """import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.clamp_min(x, 0.0)
"""


def candidate() -> Candidate:
    """The same arithmetic under a text that no cache has seen."""
    source = f"# {secrets.token_hex(8)}\n{CANDIDATE}"
    return Candidate(task_sha=TASK.sha, task_id=TASK.id, source=source, origins=(Origin(proposer="file"),))


def main() -> int:
    options = _options()
    deadline = Deadline(options.deadline)
    table = Table(options.out / "verdict_cost.csv", COLUMNS, keys=2)
    wanted = dict(zip(WAYS, (1, options.repeats, options.repeats, options.finals), strict=True))
    done = {table.key(row) for row in table.rows()}
    missing = [(way, n) for way, count in wanted.items() for n in range(1, count + 1) if (way, str(n)) not in done]
    if missing:
        with Evaluator(EvaluatorSettings(device=resolve_device(options.device))) as evaluator:
            if missing[0][0] != "first":
                evaluator.evaluate(TASK, candidate())
            for way, index in missing:
                if not deadline.allows(LONGEST_S.get(way, 10.0)):
                    say("no time left; the same command goes on from here")
                    break
                table.append({"way": way, "number": index, **measured(evaluator, way)})
    rows = table.rows()
    write_report(options.out / "verdict_cost.md", report(rows))
    return 0 if len(rows) >= sum(wanted.values()) else 1


def _options() -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument("--repeats", type=int, default=15, help="verdicts of each way of `screen`")
    made.add_argument("--finals", type=int, default=3)
    return made.parse_args()


def measured(evaluator: Evaluator, way: str) -> dict[str, object]:
    """One verdict as columns of a row."""
    if way.endswith("warm pools"):
        # The evaluator turns to its pool once nothing more is asked; what is asked then waits until the pool is full.
        time.sleep(0.3)
        evaluator.audit(TASK)
    began = time.monotonic()
    evaluation = evaluator.evaluate(TASK, candidate(), protocol=FINAL if way == "final" else SCREEN)
    round_trip_s = time.monotonic() - began
    row = {"outcome": evaluation.outcome, "round_trip_s": round_trip_s, **columns(evaluation)}
    say(f"{way}: {evaluation.outcome} in {round_trip_s:.2f} s")
    return {**row, **columns_of(evaluation.environment)}


def columns(evaluation: Evaluation) -> dict[str, object]:
    """The seconds of a verdict, in all and by stage."""
    stages, total_s = stage_seconds(evaluation), evaluation.stage_s["total"]
    timing = evaluation.timing("eager")
    return {
        "candidate_us": timing.candidate_us if timing else None,
        "pairs": len(timing.pairs) if timing else None,
        "total_s": total_s,
        "without_samples_s": total_s - stages["samples"],
        **{f"{name}_s": seconds for name, seconds in stages.items()},
    }


def report(rows: Sequence[Row]) -> str:
    """Median, least and most of every column of seconds, for each way of asking."""
    lines = header("Cost of a verdict", list(rows))
    for way in WAYS:
        group = [row for row in rows if row["way"] == way]
        if not group:
            continue
        accepted = sum(row["outcome"] == "ACCEPTED" for row in group)
        timed = [row for row in group if row["pairs"]]
        pairs = statistics.median(numbers(timed, "pairs") or [0.0])
        lines += [f"## {way}", "", f"{len(group)} verdicts, {accepted} accepted, {pairs:g} pairs in the median", ""]
        names = ("total", "without_samples", "round_trip", *STAGES)
        lines += [*table_lines(("seconds", "median", "least", "most"), [_spread(group, name) for name in names]), ""]
        if way == "final" and timed:
            each = [
                total / count for total, count in zip(*(numbers(timed, c) for c in ("total_s", "pairs")), strict=True)
            ]
            lines += [f"A pair costs {statistics.median(each):.2f} s, all in.", ""]
    return "\n".join(lines)


def _spread(rows: Sequence[Row], name: str) -> tuple[str, str, str, str]:
    values = numbers(rows, f"{name}_s") or [0.0]
    return name, f"{statistics.median(values):.3f}", f"{min(values):.3f}", f"{max(values):.3f}"


if __name__ == "__main__":
    run(main)
