"""The corpus of attacks as a table: what is accepted at full credit, how each attack is stopped, and who is wronged.

    PYTHONPATH=src python benchmarks/attack_table.py --device cpu --out build/attacks

Judges every attack of tests/attacks whose mechanism exists on the device, its honest twin, and the honest kernels
beside them, those that need a compiler included. What is right for each stands in its own folder.

Writes attacks.csv, a row per verdict as soon as it is there, and attacks.md. The same command again goes on where it
stopped. Exits with 1 when anything is not as it should be, or missing.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from csv_table import Row, Table
from cuda_l1.api.places import resolve_device
from cuda_l1.api.pool import EvaluatorPool, Job
from cuda_l1.cli.bench import shard_of
from cuda_l1.config import EvaluatorSettings, Limits, Protocol
from cuda_l1.errors import InfrastructureError, TaskError
from cuda_l1.evaluator import Evaluator
from cuda_l1.report.markdown import table_lines
from cuda_l1.types import Candidate, Environment, Evaluation, Task
from provenance import PROVENANCE, ROOT, Deadline, columns_of, header, parser, run, say, write_report

sys.path.append(str(ROOT / "tests" / "attacks"))
from corpus import FAMILIES, LIMITS, QUICK, RUNGS, Case, cases, complaint, gains, gets_full_credit, judge
from honest_kernels import ALL as HONEST
from honest_kernels import LIMITS as HONEST_LIMITS

ATTACK, TWIN, KERNEL, KNOWN = "attack", "twin", "honest kernel", "known limit"
COLUMNS = (
    *("kind", "case", "family", "outcome", "precision_class", "findings", "full_credit", "wrong", "speedup", "seconds"),
    *("detail", *PROVENANCE),
)
NOT_TRIED = "not tried"
EXPECTED_S = 30.0
"""A verdict is not begun with less time than this left."""
WRITING = threading.Lock()
"""Techniques write for one task at a time: the fake tensors that they run it on are a process's."""
AIMS = "Aims: no attack at full credit, no twin and no honest kernel turned away or suspected."
LIMITS_KNOWN = (
    "Known limits are attacks that docs/threat-model.md names among what no check sees; they are none of the attacks"
    " counted here, may get full credit, and are counted by themselves."
)


@dataclass(frozen=True)
class Item:
    """One verdict to be reached."""

    kind: str
    case: str
    family: str
    limits: Limits
    protocol: Protocol
    material: Callable[[Environment], tuple[Task, Candidate]]
    wrong: Callable[[Evaluation], str | None]
    """What is not as it should be."""
    rung: str = RUNGS[0]
    static: bool = True
    """Whether what the text shows is taken into account."""


def items(device: str) -> list[Item]:
    """Attacks and twins first, then honest kernels."""
    found = [item for case in cases(device) for item in (_of_case(case, ATTACK), _of_case(case, TWIN))]
    for kernel in HONEST:
        if device in kernel.devices:
            family = kernel.mechanism.partition(":")[0]
            found.append(Item(KERNEL, kernel.id, family, HONEST_LIMITS, QUICK, kernel.material, _wronged))
    return found


def _of_case(case: Case, kind: str) -> Item:
    file = "twin.py" if kind == TWIN else "candidate.py"

    def material(place: Environment) -> tuple[Task, Candidate]:
        return case.task(), case.candidate(file)

    if kind == TWIN:
        return Item(kind, case.id, case.family, LIMITS, case.screened, material, _wronged)
    wrong = partial(complaint, case)
    kind = KNOWN if case.known else kind
    return Item(kind, case.id, case.family, LIMITS, case.screened, material, wrong, case.rung, case.static)


def _wronged(evaluation: Evaluation) -> str | None:
    return None if gets_full_credit(evaluation, static=True) else "honest, and turned away or suspected"


# ── the run ───────────────────────────────────────────────────────────────────────────────────────


def main() -> int:
    options = _options()
    deadline, device = Deadline(options.deadline), resolve_device(options.device)
    table = Table(options.out / "attacks.csv", COLUMNS, keys=2)
    wanted = share_of([item for item in _all(device) if options.only in item.case], options.shard)
    held = {table.key(row) for row in table.rows()}
    missing = [item for item in wanted if (item.kind, item.case) not in held]
    for limits, group in groupby(missing, key=lambda item: item.limits):
        settings = EvaluatorSettings(device=device, limits=limits, cache_dir=str(options.out / "cache"))
        with EvaluatorPool(settings, size=options.at_once) as pool:
            if not _judge(list(group), pool, table, deadline):
                break
    rows = table.rows()
    write_report(options.out / "attacks.md", report(rows))
    done = {table.key(row) for row in rows} >= {(item.kind, item.case) for item in wanted}
    return 0 if done and not any(row["wrong"] for row in rows) else 1


def _all(device: str) -> list[Item]:
    return items("cuda" if device.startswith("cuda") else "cpu")


def share_of(found: Sequence[Item], text: str) -> list[Item]:
    """The `I`th of `N` shares, an attack with its twin. Raises UsageError."""
    mine = set(shard_of(list(dict.fromkeys(item.case for item in found)), text))
    return [item for item in found if item.case in mine]


def _options() -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument("--only", default="", metavar="TEXT", help="those with this in their names, e.g. memory/")
    made.add_argument(
        "--shard", default="1/1", metavar="I/N", help="one of N shares, as for another GPU beside this one"
    )
    made.add_argument(
        "--at-once", type=int, default=1, metavar="N", help="evaluators side by side; one at a time measures"
    )
    return made.parse_args()


def _judge(todo: Sequence[Item], pool: EvaluatorPool, table: Table, deadline: Deadline) -> bool:
    """A row for each; False when the time was up first. What a fault of the machine kept from a
    verdict, or a reference that does not run on the device, has none."""

    def verdict(evaluator: Evaluator, item: Item) -> dict[str, object] | str | None:
        if not deadline.allows(EXPECTED_S):
            return None
        try:
            return {**row_of(item, evaluator), **columns_of(evaluator.environment)}
        except (InfrastructureError, TaskError) as fault:
            return f"no verdict: {fault}"

    for number, (job, found) in enumerate(pool.run([Job(item, item.case, item.case) for item in todo], verdict), 1):
        if found is None:
            say("no time left; the same command goes on from here")
            return False
        if not isinstance(found, str):
            table.append(found)
        said = found if isinstance(found, str) else found["wrong"] or found["outcome"]
        say(f"{number}/{len(todo)} {job.work.kind} {job.work.case}: {said}")
    return True


def row_of(item: Item, evaluator: Evaluator) -> dict[str, object]:
    """One verdict as columns. Raises InfrastructureError."""
    common = {"kind": item.kind, "case": item.case, "family": item.family}
    if RUNGS.index(evaluator.environment.rung) < RUNGS.index(item.rung):
        detail = f"stopped from {item.rung} on; this machine allows {evaluator.environment.rung}"
        return {**common, "outcome": NOT_TRIED, "wrong": None, "detail": detail}
    with WRITING:
        task, candidate = item.material(evaluator.environment)
    evaluation = judge(evaluator, task, candidate, item.protocol, lambda found: item.wrong(found) is None)
    timing = evaluation.timing()
    return {
        **common,
        "outcome": evaluation.outcome,
        "precision_class": evaluation.precision_class,
        "findings": " ".join(f"{f.check}({f.severity})" for f in evaluation.findings),
        "full_credit": gets_full_credit(evaluation, static=item.static)
        and (item.kind not in (ATTACK, KNOWN) or gains(evaluation)),
        "wrong": item.wrong(evaluation),
        "speedup": timing.speedup if timing else None,
        "seconds": evaluation.stage_s.get("total"),
        "detail": evaluation.detail or "; ".join(f.evidence for f in evaluation.suspects()),
    }


# ── what it shows ─────────────────────────────────────────────────────────────────────────────────


def report(rows: Sequence[Row]) -> str:
    """Counts per family, how attacks were stopped, what became of known limits, and whatever is not as it should be."""
    head = ("family", "attacks", "at full credit", "not as due", "twins", "turned away or suspected")
    body = [_counts(family, [row for row in rows if row["family"] == family]) for family in FAMILIES]
    lines = [*header("Attacks", list(rows)), AIMS, "", LIMITS_KNOWN, ""]
    more = ("honest kernels", "turned away or suspected", "known limits", "at full credit", "s")
    lines += table_lines((*head, *more), [*body, _counts("all", rows)])
    lines += ["", "## How attacks were stopped", ""]
    stopped = [(family, way, str(count)) for family in FAMILIES for way, count in _ways(rows, family)]
    lines += table_lines(("family", "by", "attacks"), stopped)
    limits = [(row["case"], how(row)) for row in rows if row["kind"] == KNOWN and row["outcome"] != NOT_TRIED]
    if limits:
        lines += ["", "## Known limits", "", *table_lines(("case", "verdict"), limits)]
    odd = [(row["kind"], row["case"], row["wrong"], how(row)) for row in rows if row["wrong"]]
    if odd:
        lines += ["", "## Not as due", "", *table_lines(("", "case", "what", "verdict"), odd)]
    untried = [(row["case"], row["detail"]) for row in rows if row["outcome"] == NOT_TRIED]
    if untried:
        lines += ["", "## Not tried", "", *table_lines(("case", "why"), untried)]
    return "\n".join([*lines, ""])


def _counts(name: str, rows: Sequence[Row]) -> list[str]:
    attacks, twins, kernels, known = (
        [row for row in rows if row["kind"] == kind and row["outcome"] != NOT_TRIED]
        for kind in (ATTACK, TWIN, KERNEL, KNOWN)
    )
    seconds = sum(float(row["seconds"] or 0.0) for row in rows)
    figures = [len(attacks), _credited(attacks), _wrong(attacks), len(twins), _wrong(twins), len(kernels)]
    return [name, *map(str, [*figures, _wrong(kernels), len(known), _credited(known), round(seconds)])]


def _credited(rows: Sequence[Row]) -> int:
    return sum(row["full_credit"] == "yes" for row in rows)


def _wrong(rows: Sequence[Row]) -> int:
    return sum(bool(row["wrong"]) for row in rows)


def _ways(rows: Sequence[Row], family: str) -> Iterator[tuple[str, int]]:
    tried = [row for row in rows if (row["kind"], row["family"]) == (ATTACK, family) and row["outcome"] != NOT_TRIED]
    yield from Counter(map(how, tried)).most_common()


def how(row: Row) -> str:
    """The outcome of a verdict, and what kept it from full credit: findings that are no notes, or its class."""
    checks = [text.partition("(")[0] for text in row["findings"].split() if not text.endswith("(note)")]
    named = ", ".join(dict.fromkeys(checks))
    if not named and row["outcome"] == "ACCEPTED":
        slower = row["kind"] in (ATTACK, KNOWN) and float(row["speedup"] or "inf") <= 1.0
        named = f"class {row['precision_class']}" + (", gains nothing" if slower else "")
    return f"{row['outcome']}: {named}" if named else row["outcome"]


if __name__ == "__main__":
    run(main)
