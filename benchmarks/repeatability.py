"""Whether the reported intervals hold the truth, how wide they are, and whether a reference beats itself.

    PYTHONPATH=src python benchmarks/repeatability.py --device cpu --out build/repeatability-cpu

`repeat`: the same candidate gets --repeats `final` verdicts; how often does the mean of all lie inside the interval of
one, what is the median half-width, and how many verdicts are near the median of all? The candidates are a few
workloads, or with --candidates honest ones of `throughput_batch.py`, each of a task of its own. Writes repeat.csv.
`aa`: the reference of --count tasks of --suite is judged as a candidate; how many of its intervals exclude 1, on each
clock? Writes aa.csv. Both: repeatability.md. Intervals are those of log(t_reference / t_candidate); half-widths are in
per cent. --report-only writes the page again from the tables in --out, under the command that it names, and measures
nothing.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from csv_table import Row, Table, read_rows
from cuda_l1.api.places import resolve_device
from cuda_l1.cli.bench import shard_of
from cuda_l1.config import FINAL, EvaluatorSettings, Protocol
from cuda_l1.errors import TaskError, UsageError
from cuda_l1.evaluator import Evaluator, eager_candidate
from cuda_l1.report.markdown import table_lines
from cuda_l1.tasks import load_tasks
from cuda_l1.types import Candidate, Evaluation, Origin, Task
from provenance import PROVENANCE, Deadline, columns_of, command_of, header, parser, run, say, write_report
from suite_summary import number
from throughput_batch import BUILT_IN, FUNCTIONS, batch

BEYOND_TIMING_S = 30.0
"""What building, checking and the last pair of a verdict may take besides the seconds for its pairs."""
FIGURES = ("outcome", "speedup", "low", "high", "half_width_percent", "pairs", "candidate_us", "reference_us",
           "findings", "total_s")  # fmt: skip
REPEAT_COLUMNS = ("workload", "number", "clock", *FIGURES, *PROVENANCE)
AA_COLUMNS = ("task", "clock", "excludes_1", *FIGURES, *PROVENANCE)
KEYS = {"repeat.csv": ("workload", "number", "clock"), "aa.csv": ("task", "clock")}


# ── workloads ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Workload:
    """A function of one tensor `x` (and a square weight `w` where `inner` is set), and the same one in other words."""

    shape: tuple[int, ...]
    function: str
    again: str
    inner: int | None = None

    def task(self, name: str) -> Task:
        source = f"{_module('Model', self.function, self.inner)}\n\n{_INPUTS.format(shape=self.shape)}"
        return Task(suite="benchmark", name=name.replace(" ", "_"), source=source)

    def candidate(self, task: Task) -> Candidate:
        source = _module("ModelNew", self.again, self.inner)
        return Candidate(task_sha=task.sha, task_id=task.id, source=source, origins=(Origin(proposer="file"),))


_INPUTS = """def get_inputs():
    return [torch.randn{shape}]


def get_init_inputs():
    return []
"""
_MODULE = """import torch


class {name}(torch.nn.Module):
{weight}    def forward(self, x):
        return {function}
"""
_WEIGHT = """    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn({inner}, {inner}))

"""


def _module(name: str, function: str, inner: int | None) -> str:
    return _MODULE.format(name=name, function=function, weight=_WEIGHT.format(inner=inner) if inner else "")


def _chain(first: str) -> str:
    """Twelve element-wise kernels, one after another."""
    text = "x"
    for _ in range(4):
        text = f"torch.tanh({first.format(text)} * 2.0)"
    return text


WORKLOADS = {
    "cpu": {
        "relu, about 50 us": Workload((1 << 18,), "torch.relu(x)", "torch.clamp_min(x, 0.0)"),
        "product of 512, about 2 ms": Workload((512, 512), "x @ self.w", "torch.mm(x, self.w)", inner=512),
    },
    "cuda": {
        "relu 1 MB, about 5 us": Workload((1 << 18,), "torch.relu(x)", "torch.clamp_min(x, 0.0)"),
        "relu 64 MB, about 50 us": Workload((1 << 24,), "torch.relu(x)", "torch.clamp_min(x, 0.0)"),
        "product of 2048, about 350 us": Workload((2048, 2048), "x @ self.w", "torch.mm(x, self.w)", inner=2048),
        "12 launches, about 35 us": Workload((1 << 18,), _chain("torch.relu({})"), _chain("torch.clamp_min({}, 0.0)")),
    },
}


# ── measuring ─────────────────────────────────────────────────────────────────────────────────────


def main() -> int:
    options = _options()
    page = options.out / "repeatability.md"
    if options.report_only:
        if not any(_held(options, name) for name in KEYS):
            raise UsageError(f"{options.out}: holds neither {' nor '.join(KEYS)}")
        write_report(page, report(options, command_of(page)))
        return 0
    device, deadline = resolve_device(options.device), Deadline(options.deadline)
    protocol = FINAL.model_copy(update={"budget_s": options.final_budget})
    options.out.mkdir(parents=True, exist_ok=True)
    complete = True
    with Evaluator(EvaluatorSettings(device=device)) as evaluator:
        for part in options.parts:
            steps = (
                repeat(evaluator, protocol, options)
                if part == "repeat"
                else against_itself(evaluator, protocol, options)
            )
            for _ in steps:
                write_report(page, report(options))
                if not deadline.allows(options.final_budget + BEYOND_TIMING_S):
                    say("no time left; the same command goes on from here")
                    complete = False
                    break
    return 0 if complete else 1


def _options() -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument("--parts", default="repeat,aa", type=lambda text: text.split(","), help="repeat, aa or both")
    made.add_argument("--repeats", type=int, default=20, help="verdicts of each workload")
    made.add_argument("--workloads", help="numbers of those to repeat, e.g. 1,3; default all of the device")
    made.add_argument("--candidates", type=int, metavar="N", help="repeat N of throughput_batch.py in their place")
    made.add_argument("--count", type=int, default=24, help="tasks whose reference is judged against itself")
    made.add_argument("--suite", default="builtin", help="where these tasks come from")
    made.add_argument("--shard", default="1/1", metavar="I/N", help="every N-th workload and task, from the I-th on")
    made.add_argument("--final-budget", type=float, default=60.0, metavar="SECONDS", help="for the pairs of a verdict")
    made.add_argument("--report-only", action="store_true", help="write the page from the tables in --out")
    options = made.parse_args()
    unknown = set(options.parts) - {"repeat", "aa"}
    if unknown:
        made.error(f"--parts {','.join(sorted(unknown))}: known are repeat and aa")
    return options


def repeat(evaluator: Evaluator, protocol: Protocol, options: argparse.Namespace) -> Iterator[None]:
    """One verdict at a time, each workload once, then again, so that a run that is cut short has judged all as often.
    What the table holds is not measured again."""
    table = Table(options.out / "repeat.csv", REPEAT_COLUMNS, keys=3)
    done = {(row["workload"], row["number"]) for row in table.rows()}
    device = evaluator.environment.device
    chosen = _of_a_batch(device, options.candidates) if options.candidates else _chosen(device, options.workloads)
    mine = shard_of(list(chosen), options.shard)
    for index, name in itertools.product(range(1, options.repeats + 1), mine):
        if (name, str(index)) in done:
            continue
        task, candidate = chosen[name]
        evaluation = evaluator.evaluate(task, candidate, protocol=protocol)
        say(f"{name}, {index}: {evaluation.outcome} {evaluation.detail}")
        for clock_row in rows_of(evaluation):
            table.append({"workload": name, "number": index, **clock_row, **columns_of(evaluation.environment)})
        yield


def _chosen(device: str, numbers: str | None) -> dict[str, tuple[Task, Candidate]]:
    """Raises UsageError for a number that names no workload."""
    known = list(WORKLOADS[device].items())
    try:
        named = known if numbers is None else [known[int(number) - 1] for number in numbers.split(",")]
    except (ValueError, IndexError):
        names = "; ".join(f"{index} {name}" for index, (name, _) in enumerate(known, 1))
        raise UsageError(f"--workloads {numbers}: choose of {names}") from None
    tasks = {name: (work, work.task(name)) for name, work in named}
    return {name: (task, work.candidate(task)) for name, (work, task) in tasks.items()}


def _of_a_batch(device: str, count: int) -> dict[str, tuple[Task, Candidate]]:
    """References under another text, each of another task, then kernels. Raises UsageError where there are fewer."""
    kernels = "triton" if device != "cpu" else "inline"
    entries = [
        (f"{kind} {entry.variant}", (entry.task, entry.candidate))
        for kind, tasks in (("none", len(BUILT_IN)), (kernels, len(FUNCTIONS)))
        for entry in batch(kind, count=2 * tasks, device=device, token="repeatability")[::2]
    ]
    if count > len(entries):
        raise UsageError(f"--candidates {count}: there are {len(entries)}")
    return dict(entries[:count])


def against_itself(evaluator: Evaluator, protocol: Protocol, options: argparse.Namespace) -> Iterator[None]:
    """The reference of one task after another, as a candidate."""
    table = Table(options.out / "aa.csv", AA_COLUMNS, keys=2)
    done = {row["task"] for row in table.rows()}
    tasks = load_tasks(options.suite, device=evaluator.environment.device)[: options.count]
    for task in shard_of(tasks, options.shard):
        name = task.name if options.suite == "builtin" else task.id
        if name in done:
            continue
        try:
            evaluation = evaluator.evaluate(task, eager_candidate(task), protocol=protocol)
        except TaskError as error:
            say(f"{name}: left out: {error}")
            continue
        say(f"{name}: {evaluation.outcome} {evaluation.detail}")
        for clock_row in rows_of(evaluation):
            table.append(
                {
                    "task": name,
                    "excludes_1": _excludes_one(clock_row),
                    **clock_row,
                    **columns_of(evaluation.environment),
                }
            )
        yield


def _excludes_one(row: dict[str, object]) -> bool | None:
    low, high = row.get("low"), row.get("high")
    return not low <= 1.0 <= high if isinstance(low, float) and isinstance(high, float) else None


def rows_of(evaluation: Evaluation) -> Iterator[dict[str, object]]:
    """The figures of a verdict against eager: one row a clock, or a single one without figures when there are none."""
    common: dict[str, object] = {
        "outcome": evaluation.outcome,
        "findings": " ".join(f"{f.check}({f.severity})" for f in evaluation.findings),
        "total_s": evaluation.stage_s.get("total"),
    }
    timings = [t for t in evaluation.timings if t.opponent == "eager" and t.speedup_low and t.speedup_high]
    if not timings:
        yield {**common, "clock": "none"}
    for timing in timings:
        assert timing.speedup_low and timing.speedup_high
        half = math.log(timing.speedup_high / timing.speedup_low) / 2
        yield {
            **common,
            "clock": timing.clock,
            "speedup": timing.speedup,
            "low": timing.speedup_low,
            "high": timing.speedup_high,
            "half_width_percent": 100 * math.expm1(half),
            "pairs": len(timing.pairs),
            "candidate_us": timing.candidate_us,
            "reference_us": timing.opponent_us,
        }


# ── the report ────────────────────────────────────────────────────────────────────────────────────


def report(options: argparse.Namespace, command: str | None = None) -> str:
    """Markdown over what the two tables hold, under the command that runs or another."""
    held = {name: _held(options, name) for name in KEYS}
    lines = header("Repeatability", [row for rows in held.values() for row in rows], command)
    if held["repeat.csv"]:
        columns = ("workload", "clock", "verdicts", "hold the mean", "half-width, median", "most", "speed-up, mean",
                "standard deviation", "us", "pairs, median", "s a verdict")  # fmt: skip
        lines += ["## The same candidate again", "", *table_lines(columns, _repeated(held["repeat.csv"])), ""]
        heads = ("clock", "candidates", "verdicts", "near their median", "hold the mean", "half-width, median")
        lines += [*table_lines(heads, _together(held["repeat.csv"])), "", _NEAR, ""]
        lines += [_AIMS_AGAIN, "", *_missed_again(held["repeat.csv"]), ""]
    if held["aa.csv"]:
        head = ("clock", "tasks", "exclude 1", "by chance", "off 1 from 100 us on, median", "below 100 us",
                "half-width, median", "which")  # fmt: skip
        lines += ["## References against themselves", "", *table_lines(head, _itself(held["aa.csv"])), ""]
        lines += [_AIMS_ITSELF, "", *_missed_itself(held["aa.csv"]), ""]
    return "\n".join([*lines, *_failures(held)]).rstrip() + "\n"


def _held(options: argparse.Namespace, name: str) -> list[Row]:
    path = options.out / name
    return read_rows(path, KEYS[name]) if path.exists() else []


def _groups(rows: Sequence[Row], *columns: str) -> dict[tuple[str, ...], list[Row]]:
    """Rows with figures, by the values of some columns."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if row["speedup"]:
            groups.setdefault(tuple(row[column] for column in columns), []).append(row)
    return groups


def _repeated(rows: Sequence[Row]) -> list[list[str]]:
    return [[*key, *coverage(group)] for key, group in _groups(rows, "workload", "clock").items()]


def coverage(group: Sequence[Row]) -> list[str]:
    """How often the mean of all verdicts lies inside the interval of one, and how wide the intervals are."""
    logs = [math.log(float(row["speedup"])) for row in group]
    mean = math.exp(statistics.fmean(logs))
    inside = _inside(group)
    widths = [float(row["half_width_percent"]) for row in group]
    spread = f"{100 * statistics.stdev(logs):.2f} %" if len(logs) > 1 else "-"
    return [
        str(len(group)),
        f"{inside} ({inside / len(group):.0%})",
        f"{statistics.median(widths):.2f} %",
        f"{max(widths):.2f} %",
        f"{mean:.4f}",
        spread,
        f"{statistics.median(float(row['candidate_us']) for row in group):.2f}",
        f"{statistics.median(float(row['pairs']) for row in group):g}",
        f"{statistics.median(number(row, 'total_s') or 0.0 for row in group):.1f}",
    ]


_NEAR = (
    "Near: within 1 % of the median of a candidate's verdicts, 3 % where it takes less than 100 us. Half-widths: of "
    "what takes more than 20 us, candidates with a single verdict among it, which stand in no other column."
)


def _together(rows: Sequence[Row]) -> list[list[str]]:
    """All candidates of a clock in one line."""
    table = []
    for (clock,), every in _groups(rows, "clock").items():
        groups = _repeats(every)
        verdicts = sum(map(len, groups))
        counts = [sum(map(count, groups)) for count in (_near_the_median, _inside)]
        widths = [float(row["half_width_percent"]) for row in every if float(row["candidate_us"]) > 20]
        width = f"{statistics.median(widths):.2f} %" if widths else "-"
        share = [f"{count} ({count / verdicts:.1%})" if verdicts else "-" for count in counts]
        table.append([clock, str(len(groups)), str(verdicts), *share, width])
    return table


def _repeats(rows: Sequence[Row]) -> list[list[Row]]:
    """The verdicts of each candidate that has several: one alone is its own median and mean."""
    return [group for group in _groups(rows, "workload").values() if len(group) > 1]


def _near_the_median(group: Sequence[Row]) -> int:
    middle = statistics.median(float(row["speedup"]) for row in group)
    slow = statistics.median(float(row["candidate_us"]) for row in group) >= 100
    return sum(abs(float(row["speedup"]) / middle - 1) <= (0.01 if slow else 0.03) for row in group)


def _inside(group: Sequence[Row]) -> int:
    """How many intervals hold the geometric mean of all."""
    mean = math.exp(statistics.fmean(math.log(float(row["speedup"])) for row in group))
    return sum(float(row["low"]) <= mean <= float(row["high"]) for row in group)


_AIMS_AGAIN = (
    "Aims, on a GPU of the device clock: 95 % near their median, 93 % of the intervals hold the mean, half-width at "
    "most 2 % in the median."
)


def _missed_again(rows: Sequence[Row]) -> list[str]:
    """A line for each aim that is missed, or one that says that none is."""
    every = _objective(rows)
    if not every:
        return []
    groups = _repeats(every)
    verdicts = sum(map(len, groups))
    near, inside = (sum(map(count, groups)) for count in (_near_the_median, _inside))
    widths = [float(row["half_width_percent"]) for row in every if float(row["candidate_us"]) > 20]
    missed = []
    if near < 0.95 * verdicts:
        missed.append(f"{near} of {verdicts} verdicts ({near / verdicts:.1%}) are near their median")
    if inside < 0.93 * verdicts:
        missed.append(f"{inside} of {verdicts} intervals ({inside / verdicts:.1%}) hold the mean")
    if widths and statistics.median(widths) > 2:
        missed.append(f"the half-width is {statistics.median(widths):.2f} % in the median")
    return _told(missed)


def _objective(rows: Sequence[Row]) -> list[Row]:
    """Rows with figures on the device clock, or on the calls' where that is all there is."""
    by_clock = _groups(rows, "clock")
    return by_clock.get(("device",)) or by_clock.get(("call",), [])


def _told(missed: Sequence[str], *, some: bool = False) -> list[str]:
    return [f"- **Missed**: {what}." for what in missed] or [f"- All {'others ' * some}met."]


def _itself(rows: Sequence[Row]) -> list[list[str]]:
    table = []
    for (clock,), group in _groups(rows, "clock").items():
        out = [row for row in group if row["excludes_1"] == "yes"]
        width = statistics.median(float(row["half_width_percent"]) for row in group)
        which = "; ".join(f"{row['task']} ({row['low']} to {row['high']})" for row in out) or "-"
        off = [f"{100 * middle:.2f} % of {count}" if count else "-" for middle, count in off_one(group)]
        table.append([clock, str(len(group)), str(len(out)), f"{0.05 * len(group):.1f}", *off, f"{width:.2f} %", which])
    return table


def off_one(group: Sequence[Row]) -> list[tuple[float, int]]:
    """Median |speed-up - 1| and number of the tasks whose reference takes 100 us and more, then of the others."""
    parts: tuple[list[float], list[float]] = ([], [])
    for row in group:
        parts[float(row["reference_us"]) < 100].append(abs(float(row["speedup"]) - 1))
    return [(statistics.median(part) if part else 0.0, len(part)) for part in parts]


def most_by_chance(count: int) -> int:
    """So many of `count` 95 % intervals, or fewer, exclude the truth in 99 of 100 runs: 4 of 24, 9 of 74."""
    below = 0.0
    for most in range(count + 1):
        below += math.comb(count, most) * 0.05**most * 0.95 ** (count - most)
        if below >= 0.99:
            return most
    return count


_AIMS_ITSELF = (
    "Aims, on a GPU of the device clock: at most 4 of 24 or 9 of 74 intervals exclude 1 (what chance exceeds in 1 of "
    "100 runs); off 1 by less than 0.5 % in the median from 100 us on, 1.5 % below."
)


def _missed_itself(rows: Sequence[Row]) -> list[str]:
    group = _objective(rows)
    if not group:
        return []
    out, most = sum(row["excludes_1"] == "yes" for row in group), most_by_chance(len(group))
    missed = [f"{out} of {len(group)} intervals exclude 1, {most} may"] if out > most else []
    unknown = []
    for (middle, count), aim, where in zip(
        off_one(group), (0.005, 0.015), ("from 100 us on", "below 100 us"), strict=True
    ):
        if not count:
            unknown.append(f"- Not known: no task is {where}.")
        elif middle >= aim:
            missed.append(f"off 1 by {100 * middle:.2f} % in the median {where}")
    return [*unknown, *_told(missed, some=bool(unknown))]


def _failures(held: dict[str, list[Row]]) -> list[str]:
    bad = [row for rows in held.values() for row in rows if row["outcome"] != "ACCEPTED"]
    lines = [f"- {row.get('workload') or row.get('task')}: {row['outcome']} {row['findings']}" for row in bad]
    return ["## Not accepted", "", *dict.fromkeys(lines), ""] if lines else []


if __name__ == "__main__":
    run(main)
