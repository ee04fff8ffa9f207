"""How many candidates a minute are judged, by what they take to build; and KernelBench's own evaluation beside it.

    PYTHONPATH=src python benchmarks/throughput.py --device cuda --out build/h100
    PYTHONPATH=src python benchmarks/throughput.py --device cuda --out build/h100 --kernelbench ~/KernelBench

Three batches of 40 candidates over 20 tasks whose reference takes less than 1 ms on a GPU, each apart
(`throughput_batch.py` says what they are). The clock runs from the question to the last answer; the first evaluator,
and KernelBench's first interpreter, are up before. No text has been seen by any cache. For candidates that need no
build the true speed-up is 1: `error` is how far what was measured lies from it. Writes throughput.csv, a row per batch
and system, candidates.csv, a row per candidate, and throughput.md.
"""

from __future__ import annotations

import argparse
import json
import math
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from csv_table import Row, Table
from cuda_l1.api.batch import Answer, Asked, judge_many
from cuda_l1.api.limits import parse_limits
from cuda_l1.api.places import resolve_device
from cuda_l1.api.pool import EvaluatorPool
from cuda_l1.archive import Archive
from cuda_l1.config import FINAL, SCREEN, EvaluatorSettings
from cuda_l1.errors import UsageError
from cuda_l1.report.markdown import table_lines
from provenance import PROVENANCE, Deadline, columns_of, header, parser, run, say, write_report
from throughput_batch import KINDS, Entry, batch

OURS, THEIRS = "cuda-l1", "KernelBench"
SECONDS_EACH = {"none": 12.0, "triton": 15.0, "inline": 60.0}
"""A batch is not begun with less time than this for each candidate left."""
STAGES = ("build", "wait", "judge", "load", "check", "prepare", "samples", "time", "total")
"""Of a verdict of ours; `prepare` and `samples` are parts of `time`, `wait` is for the device."""
COLUMNS = (
    *("system", "kind", "protocol", "candidates", "tasks", "accepted", "wall_s", "per_minute"),
    *("build_s", "build_wall_s", "error_median", "error_p95", "half_width_median", "evaluators", "first_start_s"),
    *PROVENANCE,
)
CANDIDATE_COLUMNS = (
    *("system", "kind", "protocol", "name", "outcome", "speedup", "speedup_low", "speedup_high"),
    *(f"{stage}_s" for stage in STAGES),
    *("finished_s", "detail"),
)
Found = dict[str, object]


def main() -> int:
    options = _options()
    device = resolve_device(options.device)
    kinds = options.kinds.split(",")
    if unknown := set(kinds) - set(KINDS):
        raise UsageError(f"--kinds {options.kinds}: unknown {', '.join(sorted(unknown))}; known are {', '.join(KINDS)}")
    if device == "cpu":
        kinds = [kind for kind in kinds if kind != "triton"]
    deadline = Deadline(options.deadline)
    batches = Table(options.out / "throughput.csv", COLUMNS, keys=3)
    each = Table(options.out / "candidates.csv", CANDIDATE_COLUMNS, keys=4)
    done = {batches.key(row) for row in batches.rows()}
    complete = True
    for kind in kinds:
        for system, protocol in [(OURS, options.protocol), *([(THEIRS, "default")] if options.kernelbench else [])]:
            if (system, kind, protocol) in done:
                continue
            if not deadline.allows(SECONDS_EACH[kind] * options.count):
                say("no time left; the same command goes on from here")
                complete = False
                continue
            entries = batch(kind, count=options.count, device=device, token=secrets.token_hex(8))
            say(f"{system}: {len(entries)} candidates, build: {kind}")
            row, found = _ours(entries, options, device) if system == OURS else theirs(kind, entries, options)
            if row is None:
                complete = False
                continue
            key = {"system": system, "kind": kind, "protocol": protocol}
            for one in found:
                each.append({**key, **one})
            batches.append({**key, **row, **summed(entries, found, kind)})
            write_report(options.out / "throughput.md", report(batches.rows()))
    return 0 if complete else 1


def _options() -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument("--count", type=int, default=40, help="candidates of a kind, two for each task")
    made.add_argument("--kinds", default=",".join(KINDS), help="of none,triton,inline; no Triton on a CPU")
    made.add_argument("--protocol", choices=("screen", "final"), default="screen")
    made.add_argument("--evaluators", type=int, help="how many at once; default: what cores and memory allow")
    made.add_argument("--limits", help="as for `cuda-l1 evaluate`")
    made.add_argument("--kernelbench", type=Path, metavar="PATH", help="a checkout, to run its own evaluation, too")
    made.add_argument("--kernelbench-python", default=sys.executable, metavar="PROGRAM", help="its interpreter")
    return made.parse_args()


# ── the two systems ───────────────────────────────────────────────────────────────────────────────


def _ours(entries: Sequence[Entry], options: argparse.Namespace, device: str) -> tuple[Found | None, list[Found]]:
    settings = EvaluatorSettings(device=device, limits=parse_limits(options.limits))
    asked = [Asked(entry.task, entry.candidate) for entry in entries]
    protocol = FINAL if options.protocol == "final" else SCREEN
    begin = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        Archive.open(f"{folder}/archive.sqlite") as archive,
        EvaluatorPool(settings, size=options.evaluators) as pool,
    ):
        began = time.monotonic()
        found = []
        for answer in judge_many(asked, protocol=protocol, archive=archive, pool=pool, run="throughput"):
            found.append(columns(entries[answer.index], answer, time.monotonic() - began))
            say(f"[{len(found)}/{len(asked)}] {found[-1]['name']}: {found[-1]['outcome']}")
        row: Found = {
            "wall_s": time.monotonic() - began,
            "first_start_s": began - begin,
            "evaluators": min(pool.size, len(asked)),
            **columns_of(pool.first.environment),
        }
    return row, found


def columns(entry: Entry, answer: Answer, finished_s: float) -> Found:
    """One verdict of ours as a row."""
    evaluation, timing = answer.judged.record.evaluation, answer.judged.versus_eager
    return {
        "name": entry.variant,
        "outcome": str(evaluation.outcome),
        "speedup": timing.speedup if timing else None,
        "speedup_low": timing.speedup_low if timing else None,
        "speedup_high": timing.speedup_high if timing else None,
        **{f"{stage}_s": evaluation.stage_s.get(stage) for stage in STAGES},
        "finished_s": finished_s,
        "detail": evaluation.detail,
    }


def theirs(kind: str, entries: Sequence[Entry], options: argparse.Namespace) -> tuple[Found | None, list[Found]]:
    """KernelBench's row; (None, []) after a line on stderr where it cannot be run."""
    with tempfile.TemporaryDirectory() as folder:
        jobs = [
            {"name": e.variant, "kind": kind, "reference": e.task.source, "candidate": e.candidate.source}
            for e in entries
        ]
        batch_file, results = Path(folder) / "batch.json", Path(folder) / "results.jsonl"
        batch_file.write_text(json.dumps(jobs))
        script = str(Path(__file__).with_name("kernelbench_side.py"))
        words = [options.kernelbench_python, script, str(options.kernelbench.resolve()), str(batch_file), str(results)]
        done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode or not results.exists():
            say(f"{THEIRS}: {(done.stderr.strip().splitlines() or ['it printed nothing'])[-1]}")
            return None, []
        head, *rows = (json.loads(line) for line in results.read_text().splitlines())
    return {"evaluators": head.pop("gpus"), **head}, rows


# ── figures ───────────────────────────────────────────────────────────────────────────────────────


def summed(entries: Sequence[Entry], found: Sequence[Mapping[str, object]], kind: str) -> Found:
    """What all candidates of a batch show together."""
    good = [one for one in found if one["outcome"] in ("ACCEPTED", "correct")]
    wall_s = max(float(str(one["finished_s"])) for one in found)
    built = [float(str(one["build_s"])) for one in found if one.get("build_s") is not None]
    speedups = [float(str(one["speedup"])) for one in good if one["speedup"] is not None]
    errors = sorted(abs(speedup - 1) for speedup in speedups) if kind == "none" else []
    widths = [
        (math.log(float(str(one["speedup_high"]))) - math.log(float(str(one["speedup_low"])))) / 2
        for one in good
        if one.get("speedup_low") is not None
    ]
    row: Found = {
        "candidates": len(found),
        "tasks": len({entry.task.sha for entry in entries}),
        "accepted": len(good),
        "per_minute": 60 * len(found) / wall_s,
        "error_median": statistics.median(errors) if errors else None,
        "error_p95": errors[math.ceil(0.95 * len(errors)) - 1] if errors else None,
        "half_width_median": statistics.median(widths) if widths else None,
    }
    return {**row, "build_s": sum(built)} if built else row


def report(rows: Sequence[Row]) -> str:
    """One table for all kinds, a line for each system."""
    lines = header("Throughput", list(rows))
    head = ("build", "system", "protocol", "accepted", "evaluators", "wall s", "candidates a minute", "build s in all",
            "error of the speed-up, median", "95 %", "interval, half")  # fmt: skip
    body = [
        (
            *(row["kind"], row["system"], row["protocol"], f"{row['accepted']} of {row['candidates']}"),
            *(row["evaluators"], _number(row["wall_s"], 1), _number(row["per_minute"], 1), _number(row["build_s"], 1)),
            *(_percent(row[name]) for name in ("error_median", "error_p95", "half_width_median")),
        )
        for row in sorted(rows, key=lambda row: (KINDS.index(row["kind"]), row["system"]))
    ]
    return "\n".join([*lines, *table_lines(head, body), "", *_ratios(rows), ""])


def _ratios(rows: Sequence[Row]) -> list[str]:
    lines = []
    for kind in KINDS:
        own_rows, other_rows = (
            [r for r in rows if (r["kind"], r["system"]) == (kind, name)] for name in (OURS, THEIRS)
        )
        for own in own_rows:
            for other in other_rows:
                ratio = float(own["per_minute"]) / float(other["per_minute"])
                lines.append(f"- build {kind}: {own['protocol']} judges {ratio:.2f} times as many as {THEIRS}")
    return lines


def _number(text: str, digits: int) -> str:
    return f"{float(text):.{digits}f}" if text else "-"


def _percent(text: str) -> str:
    return f"{100 * float(text):.2f} %" if text else "-"


if __name__ == "__main__":
    run(main)
