"""Three candidates taken apart: which of their techniques do what, alone and together?

    PYTHONPATH=src python benchmarks/technique_studies.py --device cpu --protocol final --out build/studies

Studies like those of CUDA-L1's paper (arXiv 2507.14111) on tasks of our own: every subset of the techniques is built
and judged by `cuda_l1.search.ablation`, as `cuda-l1 ablate` does; effects are those of `cuda_l1.report.ablation`.
- a recurrent cell over time: contiguity, static buffers, CUDA graph. The first two are no techniques of the package
  (`preallocation`, the nearest to static buffers, leaves out what is below 1 MiB), so the candidates are written here
  and bear their labels; `cuda-l1 ablate` takes techniques of the package alone.
- a diagonal matrix times a dense one, with techniques of the package.
- a pipeline that is provably constant, with techniques of the package. The audit marks such a task `degenerate`: who
  returns a constant is right, and the times are no speed-up.
What needs a GPU is left out on a CPU, and the report says so. On a GPU the first two tasks are larger.

Writes technique_studies.csv, a row per subset, technique_studies.md, and the verdicts in technique_studies.sqlite: what
is there is not measured again.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from csv_table import Row, Table
from cuda_l1 import scoring
from cuda_l1.api.places import resolve_device
from cuda_l1.archive import Archive
from cuda_l1.config import FINAL, SCREEN, EvaluatorSettings
from cuda_l1.evaluator import Evaluator
from cuda_l1.proposers.baselines.graph import captured
from cuda_l1.proposers.techniques import compose, load
from cuda_l1.proposers.techniques.draft import Device
from cuda_l1.ratios import from_log
from cuda_l1.report.ablation import Measured, effects, interactions, measured
from cuda_l1.report.cells import MISSING, times, with_bounds
from cuda_l1.report.markdown import table_lines
from cuda_l1.report.terminal import microseconds
from cuda_l1.search.ablation import Variant, ablate
from cuda_l1.search.verdicts import verdict
from cuda_l1.tasks import load_task
from cuda_l1.tasks.sizes import resized
from cuda_l1.types import UNSOUND_FLAGS, Candidate, Environment, Origin, Record, Task
from provenance import PROVENANCE, Deadline, columns_of, header, parser, run, say, write_report
from repeatability import BEYOND_TIMING_S
from suite_summary import number

COLUMNS = (
    *("study", "techniques", "protocol", "task", "outcome", "precision_class", "counts", "speedup", "half", "pairs"),
    *("is_interval", "candidate_us", "eager_us", "findings", "task_flags", "remark", "total_s", "rules", *PROVENANCE),
)
TASKS = Path(__file__).parent / "technique_tasks"
CONTIGUITY, STATIC_BUFFERS, CUDA_GRAPH = "contiguity", "static_buffers", "cuda_graph"
Build = Callable[[Task, Sequence[str], Device], Candidate | None]


# ── the recurrent cell, written by hand ───────────────────────────────────────────────────────────

_CELL = """import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.from_input = nn.Linear(dim, 4 * dim)
        self.from_hidden = nn.Linear(dim, 4 * dim, bias=False)
{constructor}
    def forward(self, x, hidden, memory):
        steps = {steps}
{loop}"""
_STRIDED = "x.unbind(dim=1)"
_DENSE = "x.transpose(0, 1).contiguous().unbind(dim=0)"
_ALLOCATING = """        states = []
        for step in steps:
            gates = self.from_input(step) + self.from_hidden(hidden)
            keep, write, show, offer = gates.chunk(4, dim=-1)
            memory = torch.sigmoid(keep) * memory + torch.sigmoid(write) * torch.tanh(offer)
            hidden = torch.sigmoid(show) * torch.tanh(memory)
            states.append(hidden)
        return torch.stack(states, dim=1)
"""
_KEPT = """        self.kept = {}

    def buffers_for(self, x):
        key = (x.shape, x.dtype, x.device)
        if key not in self.kept:
            batch, time, dim = x.shape
            self.kept[key] = [
                x.new_empty(batch, 4 * dim), x.new_empty(batch, 4 * dim), x.new_empty(batch, dim),
                x.new_empty(batch, dim), x.new_empty(time, batch, dim),
            ]
        return self.kept[key]
"""
_STATIC = """        gates, driven, own, shown, states = self.buffers_for(x)
        keep, write, show, offer = gates.chunk(4, dim=-1)
        own.copy_(memory)
        for step, state in zip(steps, states.unbind(dim=0)):
            torch.addmm(self.from_input.bias, step, self.from_input.weight.t(), out=gates)
            torch.mm(hidden, self.from_hidden.weight.t(), out=driven)
            gates.add_(driven)
            own.mul_(keep.sigmoid_()).add_(write.sigmoid_().mul_(offer.tanh_()))
            torch.tanh(own, out=shown)
            torch.mul(show.sigmoid_(), shown, out=state)
            hidden = state
        return torch.stack(states.unbind(dim=0), dim=1)
"""
# The result is memory of its own: a buffer that is handed out would change under its owner in the next call.


def recurrent_cell(task: Task, techniques: Sequence[str], device: Device) -> Candidate:
    """The cell of `technique_tasks/recurrent_cell.py` with some of the three techniques."""
    is_static = STATIC_BUFFERS in techniques
    text = _CELL.format(
        constructor=_KEPT if is_static else "",
        steps=_DENSE if CONTIGUITY in techniques else _STRIDED,
        loop=_STATIC if is_static else _ALLOCATING,
    )
    last = captured(text) if CUDA_GRAPH in techniques else "\n\nclass ModelNew(Model):\n    pass\n"
    origin = Origin(proposer="file", techniques=tuple(techniques))
    return Candidate(task_sha=task.sha, task_id=task.id, source=text + last, origins=(origin,))


# ── the studies ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Study:
    """A task and what is taken apart."""

    task: str
    """As for `load_task`."""
    techniques: tuple[str, ...]
    build: Build = compose
    gpu_sizes: dict[str, int] = field(default_factory=dict)
    """For a task that has no sizes of its own for a GPU."""
    by_hand: bool = False
    """Whether the techniques are labels of texts in this file, and none of the package's."""

    def usable(self, device: Device) -> list[str]:
        """Those of its techniques that this kind of device has."""
        return [name for name in self.techniques if device in devices_of(name)]

    def load(self, device: str) -> Task:
        """Raises TaskError."""
        task = load_task(self.task, device=device)
        return resized(task, self.gpu_sizes) if device != "cpu" and self.gpu_sizes else task


def devices_of(technique: str) -> frozenset[str]:
    """Where a technique may be used."""
    if technique in (CONTIGUITY, STATIC_BUFFERS):
        return frozenset({"cpu", "cuda"})
    return load(technique).devices


STUDIES = {
    "recurrent cell over time": Study(
        str(TASKS / "recurrent_cell.py"),
        (CONTIGUITY, STATIC_BUFFERS, CUDA_GRAPH),
        recurrent_cell,
        {"BATCH": 64, "TIME": 48, "DIM": 512},
        by_hand=True,
    ),
    "diagonal matmul": Study("diagonal_matmul", ("diagonal_matmul", "inductor", CUDA_GRAPH)),
    "provably constant pipeline": Study(
        str(TASKS / "constant_pipeline.py"),
        ("constant_output", "fusion", CUDA_GRAPH),
    ),
}


class NoTimeLeft(Exception):
    """The deadline allows no further verdict."""


def main() -> int:
    options = _options()
    place, deadline = resolve_device(options.device), Deadline(options.deadline)
    table = Table(options.out / "technique_studies.csv", COLUMNS, keys=2)
    with (
        Archive.open(options.out / "technique_studies.sqlite") as archive,
        Evaluator(EvaluatorSettings(device=place)) as evaluator,
    ):
        try:
            for name in STUDIES:
                measure(name, table, archive, evaluator, options, deadline)
        except NoTimeLeft:
            say("no time left; the same command goes on from here")
            return 1
        finally:
            write_report(options.out / "technique_studies.md", report(table.rows()))
    return 0


def _options() -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument("--protocol", choices=("screen", "final"), default="screen", help="how much evidence")
    made.add_argument("--final-budget", type=float, default=12.0, metavar="SECONDS", help="for the pairs of a verdict")
    return made.parse_args()


# ── measuring ─────────────────────────────────────────────────────────────────────────────────────


def measure(
    name: str, table: Table, archive: Archive, evaluator: Evaluator, options: argparse.Namespace, deadline: Deadline
) -> None:
    """Every subset of a study; what the archive holds is not measured again. Raises NoTimeLeft."""
    study, environment = STUDIES[name], evaluator.environment
    device: Device = "cpu" if environment.device == "cpu" else "cuda"
    task = study.load(environment.device)
    protocol = SCREEN
    if options.protocol == "final":
        protocol = FINAL.model_copy(update={"budget_s": options.final_budget})

    def judge(candidate: Candidate) -> Record:
        if not deadline.allows(options.final_budget + BEYOND_TIMING_S):
            raise NoTimeLeft
        return verdict(task, candidate, protocol=protocol, archive=archive, evaluator=evaluator, run="studies")

    known = {(row["study"], row["techniques"], row["protocol"]) for row in table.rows()}

    def write(variant: Variant) -> None:
        row = {"study": name, "task": task.id, "protocol": options.protocol, **columns(variant, environment)}
        say(f"{name}, {row['techniques']}: {row['outcome'] or row['remark']}")
        if (name, str(row["techniques"]), options.protocol) not in known:
            table.append(row)

    ablate(study.usable(device), build=lambda subset: study.build(task, subset, device), judge=judge, on_variant=write)


def columns(variant: Variant, environment: Environment) -> dict[str, object]:
    """A subset's part of its row."""
    common: dict[str, object] = {
        "techniques": "+".join(variant.techniques),
        "rules": environment.rules,
        **columns_of(environment),
    }
    if variant.record is None:
        return {**common, "outcome": None, "remark": variant.why_not}
    evaluation = variant.record.evaluation
    row = {
        **common,
        "outcome": evaluation.outcome,
        "precision_class": evaluation.precision_class,
        "counts": scoring.counts(evaluation),
        "findings": " ".join(f"{f.check}({f.severity})" for f in evaluation.findings),
        "task_flags": " ".join(evaluation.task_flags),
        "remark": evaluation.detail or scoring.why_not(evaluation),
        "total_s": evaluation.stage_s.get("total"),
    }
    timing = evaluation.timing("eager")
    if timing is None:
        return row
    found = measured([timing])
    return row | {
        "speedup": found.speedup,
        "half": found.half,
        "pairs": found.pairs,
        "is_interval": found.is_interval,
        "candidate_us": timing.candidate_us,
        "eager_us": timing.opponent_us,
    }


# ── the report ────────────────────────────────────────────────────────────────────────────────────


def report(rows: Sequence[Row]) -> str:
    """Markdown: a section for each study."""
    lines = header("Techniques taken apart", list(rows))
    rules, protocols = (", ".join(dict.fromkeys(row[column] for row in rows)) for column in ("rules", "protocol"))
    lines += [f"Rules {rules}, protocol `{protocols}`. {_READING}", ""]
    for name, study in STUDIES.items():
        found = [row for row in rows if row["study"] == name]
        if found:
            lines += [f"## {name[0].upper()}{name[1:]}", "", *_section(study, found), ""]
    return "\n".join(lines).rstrip() + "\n"


_READING = (
    "Speed-ups are against eager; within: 95 % interval, or how far the samples of a single pair spread. "
    "docs/reports.md says what the verdicts mean."
)


def _section(study: Study, rows: Sequence[Row]) -> list[str]:
    used = list(dict.fromkeys(name for row in rows for name in row["techniques"].split("+")))
    flags = sorted({flag for row in rows for flag in row["task_flags"].split()})
    unsound = sorted(UNSOUND_FLAGS & set(flags))
    lines = [_how(study, rows[0]["task"], used), ""]
    if missing := [name for name in study.techniques if name not in used and "cpu" not in devices_of(name)]:
        lines += [f"Left out, since it needs a GPU: {', '.join(missing)}.", ""]
    if unsound:
        lines += [
            f"**The task is {', '.join(flags)}**: the audit finds that an answer made without the work passes. No "
            "headline counts what is measured here, and the times below are no speed-up.",
            "",
        ]
    head = ("techniques", "outcome", "class", "time", "eager", "vs eager", "pairs", "remarks")
    lines += table_lines(head, [_line(row, is_sound=not unsound) for row in rows])
    return lines if unsound else [*lines, "", *_effects(used, rows)]


def _how(study: Study, task: str, used: Sequence[str]) -> str:
    if study.by_hand:
        return (
            f"Task `{task}`. The techniques are labels of texts that `technique_studies.py` holds: none of the "
            "package's is contiguity, and `preallocation`, the nearest to static buffers, leaves out what is below "
            "1 MiB. `cuda-l1 ablate` takes techniques of the package alone, so it does not do this study."
        )
    spec = Path(study.task)
    shown = f"benchmarks/technique_tasks/{spec.name}" if spec.suffix else study.task
    return f"Task `{task}`; the same without this script: `cuda-l1 ablate {shown} {'+'.join(used)}`."


def _line(row: Row, *, is_sound: bool) -> list[str]:
    speedup, half = number(row, "speedup"), number(row, "half")
    figure = MISSING
    if is_sound and speedup is not None and half is not None and row["counts"] == "yes":
        low, high = (from_log(math.log(speedup) + sign * half) for sign in (-1, 1))
        figure = with_bounds(speedup, low, high) if row["is_interval"] == "yes" else times(speedup)
    return [
        row["techniques"].replace("+", " + "),
        row["outcome"] or MISSING,
        row["precision_class"] or MISSING,
        microseconds(number(row, "candidate_us")),
        microseconds(number(row, "eager_us")),
        figure,
        row["pairs"] or MISSING,
        " ".join(part for part in (row["remark"], row["findings"]) if part),
    ]


def _effects(techniques: Sequence[str], rows: Sequence[Row]) -> list[str]:
    counted = {
        frozenset(row["techniques"].split("+")): Measured(
            float(row["speedup"]), float(row["half"]), int(row["pairs"]), row["is_interval"] == "yes"
        )
        for row in rows
        if row["counts"] == "yes" and row["speedup"]
    }
    head = ("technique", "alone", "all / all others", "mean of adding it", "within", "best without it", "verdict")
    lines = table_lines(
        head,
        [
            [e.technique, times(e.alone), times(e.in_all), times(e.mean), _percent(e.half), times(e.best_without),
             e.verdict]
            for e in effects(techniques, counted)
        ],
    )  # fmt: skip
    pairs = [
        [f"{p.first}, {p.second}", times(p.ratio), _percent(p.half), p.verdict]
        for p in interactions(techniques, counted)
    ]
    return (
        [*lines, "", *table_lines(("pair", "together / product alone", "within", "verdict"), pairs)] if pairs else lines
    )


def _percent(half: float | None) -> str:
    return MISSING if half is None else f"{100 * math.expm1(half):.1f} %"


if __name__ == "__main__":
    run(main)
