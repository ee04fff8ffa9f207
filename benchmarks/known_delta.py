"""A reference with a known delay added to it: do the intervals hold the speed-up that this must give?

    PYTHONPATH=src python benchmarks/known_delta.py --device cuda --out build/delta
    PYTHONPATH=src python benchmarks/known_delta.py --device cuda --out build/delta-busy --busy

Delays of 1, 2, 5 and 20 % of the reference's time. On the host a loop that watches a clock, before the call's work: it
must show on the `call` clock and, on a GPU, not on the `device` clock. On the device a kernel that spins, behind the
call's work: it must show on both. How long a delay really is, is measured apart from the evaluator
(`known_delta_spin.py`). Each gets --repeats `final` verdicts; expected is t / (t + delay) with the verdict's own t of
the reference. --busy compiles on the other cores meanwhile.

Writes known_delta.csv, a row per verdict and clock, and known_delta.md. The same command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from csv_table import Row, Table
from cuda_l1.api.places import resolve_device
from cuda_l1.config import FINAL, EvaluatorSettings
from cuda_l1.evaluator import Evaluator
from cuda_l1.report.markdown import table_lines
from cuda_l1.types import Candidate, Clock, Evaluation, Origin, Task
from known_delta_spin import DEVICE_SPIN, HOST_SPIN
from provenance import PROVENANCE, Deadline, columns_of, header, parser, run, say, write_report
from repeatability import BEYOND_TIMING_S, Workload, rows_of

PERCENTS = (1, 2, 5, 20)
WORKLOADS = {
    "cpu": {"product of 512": Workload((512, 512), "x @ self.w", "", inner=512)},
    "cuda": {
        "product of 4096": Workload((4096, 4096), "x @ self.w", "", inner=4096),
        "tanh of 512 MB": Workload((1 << 27,), "torch.tanh(x)", ""),
    },
}
"""Long enough that 1 % of them is more than starting a kernel takes."""
COLUMNS = (
    *("workload", "side", "percent", "number", "clock", "delay_us", "expected", "held"),
    *("outcome", "speedup", "low", "high", "half_width_percent", "pairs", "candidate_us", "reference_us"),
    *("findings", "total_s", "busy", *PROVENANCE),
)


@dataclass(frozen=True)
class Delay:
    """One delay: where it is, how long, and the text that makes it."""

    side: str
    """`host` or `device`."""
    percent: int
    us: float
    """As measured."""
    text: str
    """Defines `before()` and `behind()`, called around the reference's work."""

    def candidate(self, task: Task, workload: Workload) -> Candidate:
        """The reference's text with the delay."""
        plain = workload.task("plain").source.replace("class Model(", "class Plain(")
        source = f"{plain}\n\n{self.text}\n\n{_DELAYED}"
        return Candidate(task_sha=task.sha, task_id=task.id, source=source, origins=(Origin(proposer="file"),))

    def expected(self, clock: Clock, reference_us: float) -> float:
        """The speed-up that must be found."""
        hidden = self.side == "host" and clock == "device"
        return 1.0 if hidden else reference_us / (reference_us + self.us)


_DELAYED = """class ModelNew(Plain):
    def forward(self, x):
        before()
        made = super().forward(x)
        behind()
        return made
"""


def main() -> int:
    options = _options()
    device, deadline = resolve_device(options.device), Deadline(options.deadline)
    table = Table(options.out / "known_delta.csv", COLUMNS, keys=5)
    complete = True
    with Evaluator(EvaluatorSettings(device=device)) as evaluator, _busy(options.busy):
        for _ in measured(evaluator, table, options):
            write_report(options.out / "known_delta.md", report(table.rows()))
            if not deadline.allows(options.final_budget + BEYOND_TIMING_S):
                say("no time left; the same command goes on from here")
                complete = False
                break
    return 0 if complete else 1


def _options() -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument("--repeats", type=int, default=5, help="verdicts of each delay")
    made.add_argument("--final-budget", type=float, default=60.0, metavar="SECONDS", help="for the pairs of a verdict")
    made.add_argument("--busy", action="store_true", help="compile on the other cores meanwhile")
    return made.parse_args()


# ── measuring ─────────────────────────────────────────────────────────────────────────────────────


def measured(evaluator: Evaluator, table: Table, options: argparse.Namespace) -> Iterator[None]:
    """One verdict at a time; what the table holds is not measured again."""
    device = evaluator.environment.device
    protocol = FINAL.model_copy(update={"budget_s": options.final_budget})
    done = {table.key(row)[:4] for row in table.rows()}
    for name, workload in WORKLOADS[device].items():
        wanted = [(s, p, n) for s in _sides(device) for p in PERCENTS for n in range(1, options.repeats + 1)]
        missing = [item for item in wanted if (name, *map(str, item)) not in done]
        if not missing:
            continue
        task = workload.task(name)
        delays = delays_of(task, evaluator)
        for side, percent, number in missing:
            delay = delays[side, percent]
            evaluation = evaluator.evaluate(task, delay.candidate(task, workload), protocol=protocol)
            say(f"{name}, {percent} % on the {side}, {number}: {evaluation.outcome} {evaluation.detail}")
            key = {"workload": name, "side": side, "percent": percent, "number": number, "busy": options.busy}
            for row in figures(evaluation, delay):
                table.append({**key, **row, **columns_of(evaluation.environment)})
            yield


def _sides(device: str) -> tuple[str, ...]:
    return ("host",) if device == "cpu" else ("host", "device")


def figures(evaluation: Evaluation, delay: Delay) -> Iterator[dict[str, object]]:
    """A row per clock, with what was expected and whether the interval holds it."""
    for row in rows_of(evaluation):
        low, high, reference_us = row.get("low"), row.get("high"), row.get("reference_us")
        if not (isinstance(low, float) and isinstance(high, float) and isinstance(reference_us, float)):
            yield {**row, "delay_us": delay.us}
            continue
        expected = delay.expected("device" if row["clock"] == "device" else "call", reference_us)
        yield {**row, "delay_us": delay.us, "expected": expected, "held": low <= expected <= high}


def delays_of(task: Task, evaluator: Evaluator) -> dict[tuple[str, int], Delay]:
    """Every delay for a task, measured in a process of its own."""
    device = evaluator.environment.device
    reference_us = evaluator.audit(task).reference_us or 1.0
    asked = {"source": task.source, "device": device, "us": [reference_us * p / 100 for p in PERCENTS]}
    command = [sys.executable, str(Path(__file__).with_name("known_delta_spin.py"))]
    done = subprocess.run(command, input=json.dumps(asked), stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout)
    return {
        (side, percent): Delay(side, percent, us, text.format(amount=amount))
        for side, text in (("host", HOST_SPIN), ("device", DEVICE_SPIN))
        if side in found
        for percent, (amount, us) in zip(PERCENTS, found[side], strict=True)
    }


@contextlib.contextmanager
def _busy(wanted: bool) -> Iterator[None]:
    """Compilers at work on all cores but four."""
    loop = "while :; do echo '#include <regex>' | g++ -O2 -x c++ -c -o /dev/null -; done"
    count = max(1, len(os.sched_getaffinity(0)) - 4) if wanted else 0
    loops = [subprocess.Popen(["sh", "-c", loop], start_new_session=True) for _ in range(count)]
    try:
        yield
    finally:
        for process in loops:
            os.killpg(process.pid, 15)
            process.wait()


# ── the report ────────────────────────────────────────────────────────────────────────────────────


def report(rows: Sequence[Row]) -> str:
    """How many intervals hold what was expected, by side, clock and delay."""
    lines = header("Known delays", list(rows))
    head = ("workload", "delay on the", "delay", "clock", "verdicts", "hold it", "expected", "found, median",
            "half-width, median")  # fmt: skip
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if row["held"]:
            groups.setdefault((row["workload"], row["side"], row["percent"], row["clock"]), []).append(row)
    body = [
        (work, side, f"{percent} %", clock, *_summary(group)) for (work, side, percent, clock), group in groups.items()
    ]
    counted = [row for row in rows if row["held"]]
    held = sum(row["held"] == "yes" for row in counted)
    share = f" ({held / len(counted):.0%})" if counted else ""
    lines += [f"{held} of {len(counted)} intervals{share} hold the speed-up that the delay must give; aim: 95 %.", ""]
    lines += table_lines(head, body)
    bad = [f"- {row['workload']}, {row['percent']} % on the {row['side']}: {row['outcome']}" for row in rows
           if row["outcome"] != "ACCEPTED"]  # fmt: skip
    return "\n".join([*lines, *(["", "## Not accepted", "", *dict.fromkeys(bad)] if bad else []), ""])


def _summary(group: Sequence[Row]) -> list[str]:
    def middle(column: str) -> float:
        return statistics.median(float(row[column]) for row in group)

    held = sum(row["held"] == "yes" for row in group)
    width = f"{middle('half_width_percent'):.2f} %"
    return [str(len(group)), str(held), f"{middle('expected'):.4f}", f"{middle('speedup'):.4f}", width]


if __name__ == "__main__":
    run(main)
