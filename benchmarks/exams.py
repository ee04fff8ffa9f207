"""Other projects' tests of evaluators, put to this one: which of their attacks are stopped, which honest kernels pass?

    PYTHONPATH=src python benchmarks/exams.py --device cuda --out build/exams --kernelbench KernelBench \\
        --sol-execbench SOL-ExecBench --pygpubench pygpubench --cuda-l1 CUDA-L1

Each exam is read from a checkout of yours and run unchanged; nothing of it is kept. Behind a sample's text stands what
makes a module of it, and nothing else. A sample that cannot be adapted, or needs a device that is not here, is listed
with the reason.

Writes exams.csv, a row per sample as soon as it has its verdict, and exams.md. The same command again goes on where it
stopped.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import exam_cuda_l1
import exam_kernelbench
import exam_pygpubench
import exam_sol_execbench
from csv_table import Row, Table
from cuda_l1.api.places import resolve_device
from cuda_l1.config import SCREEN, EvaluatorSettings, Limits
from cuda_l1.errors import InfrastructureError, TaskError, UsageError
from cuda_l1.evaluator import Evaluator
from cuda_l1.report.markdown import table_lines
from cuda_l1.scoring import in_headline
from cuda_l1.types import Evaluation
from exam_samples import Sample, commit_of
from provenance import PROVENANCE, Deadline, columns_of, header, parser, run, say, write_report

EXAMS: dict[str, Callable[[Path], list[Sample]]] = {
    module.EXAM: module.samples for module in (exam_kernelbench, exam_sol_execbench, exam_pygpubench, exam_cuda_l1)
}
COLUMNS = (
    *("exam", "sample", "kind", "result", "outcome", "precision_class", "findings", "speedup", "seconds", "detail"),
    *("exam_commit", *PROVENANCE),
)
LIMITS = Limits(build_s=180.0, first_call_s=60.0, verdict_s=180.0)
EXPECTED_S = 60.0
"""A verdict is not begun with less time than this left."""
NOTHING = 1.05
"""A candidate that is accepted with no more than this speed-up has gained nothing by its trick."""
STOPPED, NO_GAIN, FOOLED = "stopped", "gains nothing", "fooled us"
PASSED, ALARM = "passed", "false alarm"
COUNTS, COUNTS_NOT = "in a headline", "in none"
NOT_ADAPTED, NO_DEVICE, NO_VERDICT = "not adapted", "needs cuda", "no verdict"
UNTRIED = (NOT_ADAPTED, NO_DEVICE, NO_VERDICT)
MEANING = (
    "stopped: in no headline. Gains nothing: accepted without a suspicion at a speed-up of at most "
    f"{NOTHING}: what it attacks is not here. Fooled us: accepted beyond that (aim: 0). False alarm: honest, and in no "
    "headline (aim: 0). Of samples that nobody has labelled is said how many may stand in a headline."
)


def main() -> int:
    options = _options()
    deadline, device = Deadline(options.deadline), resolve_device(options.device)
    wanted = _wanted(options)
    table = Table(options.out / "exams.csv", COLUMNS, keys=2)
    held = {table.key(row) for row in table.rows()}
    missing = [item for item in wanted if (item[0], item[1].name) not in held]
    if missing:
        settings = EvaluatorSettings(device=device, limits=LIMITS, cache_dir=str(options.out / "cache"))
        with Evaluator(settings) as evaluator:
            _judge(missing, evaluator, table, deadline)
    rows = table.rows()
    write_report(options.out / "exams.md", report(rows))
    done = {table.key(row) for row in rows} >= {(exam, sample.name) for exam, sample, _ in wanted}
    return 0 if done and not any(row["result"] in (FOOLED, ALARM) for row in rows) else 1


def _options() -> argparse.Namespace:
    made = parser(__doc__)
    for exam in EXAMS:
        made.add_argument(f"--{exam}", type=Path, metavar="PATH", help="the root of a checkout")
    return made.parse_args()


def _wanted(options: argparse.Namespace) -> list[tuple[str, Sample, str]]:
    """(exam, sample, commit). Raises UsageError where no exam is named, or a path is none."""
    paths = {exam: getattr(options, exam.replace("-", "_")) for exam in EXAMS}
    named = {exam: path for exam, path in paths.items() if path}
    if not named:
        raise UsageError("name at least one exam: " + ", ".join(f"--{exam} PATH" for exam in EXAMS))
    return [(exam, sample, commit_of(path)) for exam, path in named.items() for sample in EXAMS[exam](path)]


def _judge(todo: Sequence[tuple[str, Sample, str]], evaluator: Evaluator, table: Table, deadline: Deadline) -> None:
    """A row for each, until the time is up. What a fault of the machine kept from a verdict has none."""
    for number, (exam, sample, commit) in enumerate(todo, 1):
        if not deadline.allows(EXPECTED_S):
            say("no time left; the same command goes on from here")
            return
        try:
            row = row_of(sample, evaluator)
        except InfrastructureError as fault:
            say(f"{exam} {sample.name}: no verdict: {fault}")
            continue
        place = columns_of(evaluator.environment)
        table.append({"exam": exam, "sample": sample.name, "kind": sample.kind, **row, "exam_commit": commit, **place})
        say(f"{number}/{len(todo)} {exam} {sample.name} ({sample.kind}): {row['result']}")


def row_of(sample: Sample, evaluator: Evaluator) -> dict[str, object]:
    """One verdict as columns. Raises InfrastructureError."""
    if sample.task is None or sample.candidate is None:
        return {"result": NOT_ADAPTED, "detail": sample.reason}
    if evaluator.environment.device not in sample.devices:
        return {"result": NO_DEVICE}
    try:
        evaluation = evaluator.evaluate(sample.task, sample.candidate, protocol=SCREEN)
    except TaskError as error:
        return {"result": NO_VERDICT, "detail": str(error)}
    timing = evaluation.timing()
    return {
        "result": result(sample, evaluation),
        "outcome": evaluation.outcome,
        "precision_class": evaluation.precision_class,
        "findings": " ".join(f"{f.check}({f.severity})" for f in evaluation.findings),
        "speedup": timing.speedup if timing else None,
        "seconds": evaluation.stage_s.get("total"),
        "detail": evaluation.detail or "; ".join(evaluation.task_flags),
    }


def result(sample: Sample, evaluation: Evaluation) -> str:
    """What a verdict says of the evaluator, given what the exam says of the sample."""
    timing, good = evaluation.timing(), in_headline(evaluation)
    if sample.kind == "honest":
        return PASSED if good else ALARM
    if sample.kind == "unlabelled":
        return COUNTS if good else COUNTS_NOT
    if not good:
        return STOPPED
    return FOOLED if timing is not None and timing.speedup > NOTHING else NO_GAIN


# ── what it shows ─────────────────────────────────────────────────────────────────────────────────


def report(rows: Sequence[Row]) -> str:
    """Rates per exam, then every sample."""
    exams = list(dict.fromkeys(row["exam"] for row in rows))
    head = (
        "exam",
        "its commit",
        "attacks",
        *(STOPPED, NO_GAIN, FOOLED),
        "honest",
        *(PASSED, ALARM),
        "unlabelled",
        "untried",
    )
    lines = [*header("External exams", list(rows)), MEANING, ""]
    lines += table_lines(head, [_counts(exam, [row for row in rows if row["exam"] == exam]) for exam in exams])
    for exam in exams:
        lines += ["", f"## {exam}", "", *_samples([row for row in rows if row["exam"] == exam])]
    return "\n".join([*lines, ""])


def _counts(exam: str, rows: Sequence[Row]) -> list[str]:
    tried = [row for row in rows if row["result"] not in UNTRIED]
    attacks, honest, others = (
        [row for row in tried if row["kind"] == kind] for kind in ("attack", "honest", "unlabelled")
    )
    figures = [len(attacks), *(_count(attacks, name) for name in (STOPPED, NO_GAIN, FOOLED))]
    figures += [len(honest), *(_count(honest, name) for name in (PASSED, ALARM))]
    said = f"{_count(others, COUNTS)} of {len(others)} {COUNTS}" if others else "0"
    commits = ", ".join(dict.fromkeys(row["exam_commit"] for row in rows))
    return [exam, commits, *map(str, figures), said, str(len(rows) - len(tried))]


def _count(rows: Sequence[Row], name: str) -> int:
    return sum(row["result"] == name for row in rows)


def _samples(rows: Sequence[Row]) -> list[str]:
    """Those with a verdict, then the reasons why others have none."""
    tried = [row for row in rows if row["result"] not in UNTRIED]
    head = ("sample", "it is", "result", "verdict", "findings", "speed-up")
    body = [
        (row["sample"], row["kind"], row["result"], f"{row['outcome']} {row['precision_class']}".strip(),
         row["findings"] or "none", f"{float(row['speedup']):.2f}" if row["speedup"] else "-")
        for row in tried
    ]  # fmt: skip
    return [*(table_lines(head, body) if tried else []), *(_reasons(rows))]


def _reasons(rows: Sequence[Row]) -> Iterator[str]:
    why: dict[str, list[str]] = {}
    for row in rows:
        if row["result"] in UNTRIED:
            why.setdefault(f"{row['result']}: {row['detail']}".removesuffix(": "), []).append(row["sample"])
    if why:
        yield from ("", *(f"- {reason}: {', '.join(names)}" for reason, names in why.items()))


if __name__ == "__main__":
    run(main)
