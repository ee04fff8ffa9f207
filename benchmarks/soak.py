"""Hundreds of mixed evaluations with faults among them: nothing lost, nothing left behind, no verdict changed.

    PYTHONPATH=src python benchmarks/soak.py --device cpu --out build/soak

Honest, wrong and broken candidates of several tasks are judged one after the other by one evaluator. In every fifth
evaluation something fails: a process is killed by SIGKILL in the middle of it (in turn a runner or build, the judge,
the fork template, a keeper; once the evaluator's parent), or the candidate is itself a fault: it hangs, takes more
memory or more disk than it may, and on a GPU also hangs there, reads where it must not or takes all memory. Each
verdict must be the one that the same candidate got beforehand with nothing failing. Every tenth time, what the
evaluator holds is counted: processes, descriptors, memory, folders.

Writes soak.csv, a row per evaluation as soon as it has ended, and soak.md. The same command again goes on where it
stopped. Exits with 1 when anything is not as it should be.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from csv_table import Row, Table
from cuda_l1.api.places import resolve_device
from cuda_l1.config import EvaluatorSettings, Limits, Protocol
from cuda_l1.errors import CudaL1Error, InfrastructureError
from cuda_l1.evaluator import Evaluator
from cuda_l1.evaluator.guest import group
from cuda_l1.report.markdown import table_lines
from cuda_l1.types import Evaluation
from provenance import PROVENANCE, Deadline, columns_of, header, parser, run, say, write_report
from soak_cases import MIXED, WORKLOADS, candidate, faulty, task

LIMITS = Limits(first_call_s=2.0, build_s=20.0, verdict_s=60.0, memory_bytes=512 << 20, work_bytes=24 << 20)
QUICK = Protocol(name="screen", pair_s=0.02, max_samples=12)
"""Enough samples for a verdict, too few for a figure."""
EVERY = 5
"""One evaluation in so many holds a fault."""
COUNT_EVERY = 10
KILLED = ("runner", "judge", "template", "keeper")
STAGES = ("build", "judge", "load", "check", "time")
LONG = ("honest", "wrong")
"""Candidates whose verdict lasts long enough to be struck."""
GRACE_S = 10.0
"""What a verdict may take beyond the deadline of a candidate that hangs, and beyond the time without a fault."""
GROWTH_MB = 32.0
LOOKS = 8
"""At the descriptors, of which the least counts: what leaks is in each."""
APPEARS_S = 0.2
"""How long to wait for a process that is to be killed."""
COUNTED = ("processes", "parent_descriptors", "parent_mb", "templates_mb", "own_descriptors", "own_mb", "folders")
COLUMNS = (
    *("phase", "number", "task", "candidate", "fault", "hit", "outcome", "expected", "seconds", "retries", "parent"),
    *COUNTED,
    "detail",
    *PROVENANCE,
)


@dataclass(frozen=True)
class Step:
    """One evaluation of the plan."""

    number: int
    task: str
    candidate: str
    kill: str = ""
    """What is killed in the middle of it: one of KILLED or `parent`."""
    stage: str = ""
    """When: in this stage or the first one after it that has such a process."""
    delay_s: float = 0.0


def plan(count: int, device: str, seed: int = 0) -> list[Step]:
    """The same steps for the same arguments; a longer plan begins with the shorter one."""
    draw = random.Random(seed)
    faults = [*KILLED, *faulty(device)]
    steps: list[Step] = []
    for number in range(count):
        name, kind = draw.choice(sorted(WORKLOADS)), draw.choice(MIXED)
        stage, delay_s = draw.choice(STAGES[:-1]), draw.uniform(0.0, 0.02)
        fault = ""
        if number % EVERY == EVERY - 2:
            turn = number // EVERY
            fault = "parent" if turn == 0 else faults[(turn - 1) % len(faults)]
        if fault in faulty(device):
            steps.append(Step(number, name, fault))
        else:
            steps.append(Step(number, name, kind if not fault else draw.choice(LONG), fault, stage, delay_s))
    return steps


# ── one evaluation ────────────────────────────────────────────────────────────────────────────────


@dataclass
class Saboteur:
    """Kills one process of an evaluator in the middle of a verdict; called with each stage that begins."""

    evaluator: Evaluator
    step: Step
    hit: str = ""
    """The stage in which it struck."""
    retries: int = 0
    _waits: bool = field(default=True, init=False)

    def __call__(self, said: str) -> None:
        if said.startswith("fault of the machine"):
            self.retries += 1
        if not self.step.kill or self.hit or said not in STAGES:
            return
        self._waits = self._waits and said != self.step.stage
        if self._waits:
            return
        time.sleep(self.step.delay_s)
        deadline = time.monotonic() + APPEARS_S
        while (victim := _victim(self.evaluator.pid, self.step.kill)) is None and time.monotonic() < deadline:
            time.sleep(0.005)
        if victim is not None:
            os.kill(victim, signal.SIGKILL)
            self.hit = said


def _victim(parent: int, kind: str) -> int | None:
    """The process to kill; None when there is no such one now."""
    if kind == "parent":
        return parent
    if kind == "template":
        return next(iter(_children(parent)), None)
    names = {"judge": ("cuda-l1-judge",)}.get(kind, ("cuda-l1-runner", "cuda-l1-build"))
    found = [pid for pid in group.descendants(parent) if _name_of(pid) in names]
    if not found:
        return None
    return group.parent_of(found[-1]) if kind == "keeper" else found[-1]


def _children(pid: int) -> list[int]:
    return [below for below in group.descendants(pid) if group.parent_of(below) == pid]


def _name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def judged(evaluator: Evaluator, step: Step) -> dict[str, object]:
    """One verdict as columns of a row. A parent that was killed is asked once more, as any caller would."""
    device = evaluator.environment.device
    saboteur = Saboteur(evaluator, step)
    began = time.monotonic()
    again = 0
    while True:
        try:
            evaluation = _verdict(evaluator, step, device, saboteur)
            break
        except InfrastructureError as fault:
            if not (step.kill == "parent" and saboteur.hit and not again):
                return _row(step, saboteur, began, again, "error", str(fault))
            again = 1
        except CudaL1Error as error:
            return _row(step, saboteur, began, again, "error", str(error))
    outcome = f"{evaluation.outcome} {evaluation.precision_class or ''}".strip()
    return _row(step, saboteur, began, again, outcome, evaluation.detail)


def _verdict(evaluator: Evaluator, step: Step, device: str, saboteur: Saboteur) -> Evaluation:
    made = candidate(step.task, step.candidate, device)
    return evaluator.evaluate(task(step.task), made, protocol=QUICK, progress=saboteur)


def _row(step: Step, saboteur: Saboteur, began: float, again: int, outcome: str, detail: str) -> dict[str, object]:
    return {
        "number": step.number,
        "task": step.task,
        "candidate": step.candidate,
        "fault": step.kill or (step.candidate if step.candidate not in MIXED else ""),
        "hit": saboteur.hit,
        "outcome": outcome,
        "seconds": time.monotonic() - began,
        "retries": saboteur.retries + again,
        "detail": detail,
    }


# ── what it holds ─────────────────────────────────────────────────────────────────────────────────


def counted(evaluator: Evaluator, name: str) -> dict[str, object]:
    """Processes, descriptors, memory and folders, once the evaluator has filled its pool of unused runners."""
    for _ in range(2):  # the first one may have to start a judge
        evaluator.audit(task(name))
        time.sleep(0.3)
    evaluator.audit(task(name))
    parent = evaluator.pid
    descriptors = []
    for _ in range(LOOKS):  # some are of runners that have just ended
        descriptors.append(len(os.listdir(f"/proc/{parent}/fd")))
        time.sleep(0.2)
    return {
        "parent": parent,
        "processes": len(group.descendants(parent)),
        "parent_descriptors": min(descriptors),
        "parent_mb": _resident_mb(parent),
        "templates_mb": max(map(_resident_mb, _children(parent)), default=0.0),
        "own_descriptors": len(os.listdir("/proc/self/fd")),
        "own_mb": _resident_mb(os.getpid()),
        "folders": sum(1 for path in Path(tempfile.gettempdir()).rglob("*") if path.is_dir() and not path.is_symlink()),
    }


def _resident_mb(pid: int) -> float:
    """Anonymous memory: what the process itself holds."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in text.splitlines() if line.startswith("RssAnon")), 0.0)


# ── the run ───────────────────────────────────────────────────────────────────────────────────────


def main() -> int:
    options = _options()
    deadline, device = Deadline(options.deadline), resolve_device(options.device)
    table = Table(options.out / "soak.csv", COLUMNS, keys=2)
    steps = plan(options.count, "cuda" if device.startswith("cuda") else "cpu")
    settings = EvaluatorSettings(device=device, limits=LIMITS, cache_dir=str(options.out / "cache"))
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        os.environ["TMPDIR"] = tempfile.tempdir = folder  # so that every folder left behind is this run's
        with Evaluator(settings) as evaluator:
            finished = _run(evaluator, steps, table, deadline)
            pids = [evaluator.pid, *group.descendants(evaluator.pid)]
        left = [*_alive(pids), *map(str, Path(folder).iterdir())]
    say(f"{'all' if finished else 'not all'} of {len(steps)} in {time.monotonic() - began:.0f} s")
    problems = [*troubles(table.rows(), len(steps)), *(f"left behind after closing: {what}" for what in left)]
    write_report(options.out / "soak.md", report(table.rows(), problems))
    for problem in problems:
        say(problem)
    return 0 if finished and not problems else 1


def _options() -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument("--count", type=int, default=500, help="evaluations")
    return made.parse_args()


def _run(evaluator: Evaluator, steps: Sequence[Step], table: Table, deadline: Deadline) -> bool:
    """Every verdict that the table does not hold yet; False when the time was up first."""
    held = {table.key(row): row["outcome"] for row in table.rows()}
    plain = {(s.task, s.candidate) for s in steps}
    alone = [Step(number, *case) for number, case in enumerate(sorted(plain))]
    expected: dict[tuple[str, str], str] = {}
    for phase, todo in (("alone", alone), ("soak", steps)):
        for step in todo:
            case = step.task, step.candidate
            outcome = held.get((phase, f"{phase}-{step.number}"))
            if outcome is None:
                if not deadline.allows(30.0):
                    say("no time left; the same command goes on from here")
                    return False
                row = judged(evaluator, step)
                outcome = str(row["outcome"])
                if phase == "soak" and step.number % COUNT_EVERY == COUNT_EVERY - 1:
                    row |= counted(evaluator, step.task)
                    say(f"{step.number + 1} of {len(steps)}")
                wanted = expected.get(case, outcome)
                where = columns_of(evaluator.environment)
                table.append({"phase": phase, **row, "number": f"{phase}-{step.number}", "expected": wanted, **where})
            if phase == "alone":
                expected[case] = outcome
    return True


def _alive(pids: Sequence[int]) -> list[str]:
    deadline = time.monotonic() + GRACE_S
    while True:
        left = [pid for pid in pids if group.state_of(pid) not in (None, "Z")]
        if not left or time.monotonic() > deadline:
            return [f"process {pid}" for pid in left]
        time.sleep(0.05)


# ── what it shows ─────────────────────────────────────────────────────────────────────────────────


def troubles(rows: Sequence[Row], wanted: int) -> list[str]:
    """One line for each thing that is not as it should be."""
    soaked = [row for row in rows if row["phase"] == "soak"]
    lines = [] if len(soaked) >= wanted else [f"{len(soaked)} of {wanted} evaluations have a verdict"]
    for row in soaked:
        if row["outcome"] != row["expected"]:
            text = f"{row['outcome']} where it was {row['expected']}: {row['detail']}"
            lines.append(f"{row['number']} ({row['task']}, {row['candidate']}, {row['fault'] or 'no fault'}): {text}")
    longest = LIMITS.first_call_s + GRACE_S
    lines += [f"{row['number']}: took {row['seconds']} s" for row in soaked if float(row["seconds"]) > longest]
    for name, before, after in growth(rows):
        allowed = GROWTH_MB if name.endswith("_mb") else 1.0
        if after > before + allowed:
            lines.append(f"{name} grew from {before:g} to {after:g}")
    return lines


def growth(rows: Sequence[Row]) -> list[tuple[str, float, float]]:
    """What was counted of the parent that lived longest: medians of the first fifth of its counts, and of the last."""
    counts: dict[str, list[Row]] = {}
    for row in rows:
        if row["parent"]:
            counts.setdefault(row["parent"], []).append(row)
    longest = max(counts.values(), key=len, default=[])
    if len(longest) < 2:
        return []
    fifth = max(1, len(longest) // 5)
    ends = longest[:fifth], longest[-fifth:]
    return [
        (name, *(statistics.median(float(row[name]) for row in end) for end in ends))  # type: ignore[misc]
        for name in COUNTED
    ]


def report(rows: Sequence[Row], problems: Sequence[str]) -> str:
    """Markdown over what the table holds."""
    soaked = [row for row in rows if row["phase"] == "soak"]
    if not soaked:
        return "\n".join(header("Soak", list(rows)))
    same = sum(row["outcome"] == row["expected"] for row in soaked)
    struck = [row for row in soaked if row["hit"] or (row["fault"] and row["fault"] == row["candidate"])]
    lines = header("Soak", list(rows))
    lines += [
        f"{len(soaked)} evaluations in {sum(float(row['seconds']) for row in soaked):.0f} s, {len(struck)} with a "
        f"fault ({len(struck) / len(soaked):.0%}); {same} verdicts are those that the same candidates got with nothing "
        "failing.",
        "",
        "## By fault",
        "",
        *table_lines(
            ("fault", "meant", "struck", "same verdict", "retries", "s, median", "s, most"), _by_fault(soaked)
        ),
        "",
        "## By candidate",
        "",
        *table_lines(("candidate", "evaluations", "outcomes"), _by_candidate(soaked)),
        "",
        "## What the evaluator held",
        "",
        "Medians of the first and the last fifth of the counts of the parent process that lived longest.",
        "",
        *table_lines(("", "first", "last"), [[n, f"{b:.4g}", f"{a:.4g}"] for n, b, a in growth(rows)]),
        "",
    ]
    return "\n".join([*lines, "## Not as it should be", "", *(f"- {p}" for p in problems or ["nothing"])]) + "\n"


def _by_fault(rows: Sequence[Row]) -> list[list[str]]:
    body = []
    for fault in dict.fromkeys(row["fault"] for row in sorted(rows, key=lambda row: row["fault"])):
        group_of = [row for row in rows if row["fault"] == fault]
        struck = sum(bool(row["hit"]) or row["fault"] == row["candidate"] for row in group_of) if fault else 0
        seconds = [float(row["seconds"]) for row in group_of]
        name = f"{fault} killed" if fault in (*KILLED, "parent") else fault and f"candidate: {fault}"
        counts = (len(group_of), struck, sum(row["outcome"] == row["expected"] for row in group_of))
        retries = sum(int(row["retries"]) for row in group_of)
        body.append([name or "none", *map(str, counts), str(retries), *_seconds(seconds)])
    return body


def _seconds(values: Sequence[float]) -> tuple[str, str]:
    return f"{statistics.median(values):.2f}", f"{max(values):.2f}"


def _by_candidate(rows: Sequence[Row]) -> list[list[str]]:
    body = []
    for name in dict.fromkeys(row["candidate"] for row in rows):
        outcomes = [row["outcome"] for row in rows if row["candidate"] == name]
        told = ", ".join(f"{outcome} {outcomes.count(outcome)}" for outcome in sorted(set(outcomes)))
        body.append([name, str(len(outcomes)), told])
    return sorted(body)


if __name__ == "__main__":
    run(main)
