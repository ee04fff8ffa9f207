"""Honest kernels timed by this evaluator and by KernelBench's own clock: where do they differ, and why?

    PYTHONPATH=src python benchmarks/agreement.py --out build/agreement --ours repeat.csv --theirs candidates.csv

Reads what two other scripts measured of the same kernels on the same GPU model. --theirs: the speed-ups of
KernelBench's `cuda_event` timing, in its own processes (`throughput.py --kernelbench`). --ours: `final` verdicts
(`repeatability.py --candidates N`), of which the median counts: on the `device` clock the launches are hidden wholly,
on the `call` clock not at all. KernelBench hides them behind a flush, as far as that lasts: a speed-up of its that lies
between our two is explained by the launches.

Writes agreement.csv, a row per kernel, and agreement.md.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

from csv_table import Row, Table, read_rows
from cuda_l1.errors import UsageError
from cuda_l1.report.markdown import table_lines
from provenance import PROVENANCE, header, plain_parser, run, write_report
from repeatability import KEYS
from throughput import THEIRS

COLUMNS = (
    *("kind", "name", "theirs", "device", "device_low", "device_high", "call", "difference_percent", "verdict"),
    *("verdicts", "candidate_us", "eager_us", *PROVENANCE),
)
THEIR_KEYS = ("system", "kind", "protocol", "name")
TOLERANCE = 0.03
AGREE, LAUNCHES, THEIRS_ERRS, UNEXPLAINED, NO_FIGURE = "agree", "launches", "theirs errs", "unexplained", "no figure"
SAME = "none"
"""The kind of candidates that are the reference itself."""


def main() -> None:
    options = _options()
    rows = list(compared(_rows(options.ours, KEYS["repeat.csv"]), _rows(options.theirs, THEIR_KEYS)))
    if not rows:
        raise UsageError(f"{options.ours} and {options.theirs} have no kernel in common")
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "agreement.csv").unlink(missing_ok=True)
    table = Table(options.out / "agreement.csv", COLUMNS, keys=2)
    for row in rows:
        table.append(row)
    write_report(options.out / "agreement.md", report(table.rows()))


def _options() -> argparse.Namespace:
    made = plain_parser(__doc__)
    made.add_argument("--ours", type=Path, required=True, metavar="CSV", help="repeat.csv of repeatability.py")
    made.add_argument("--theirs", type=Path, required=True, metavar="CSV", help="candidates.csv of throughput.py")
    return made.parse_args()


def _rows(path: Path, keys: Sequence[str]) -> list[Row]:
    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    return read_rows(path, keys)


def compared(ours: Sequence[Row], theirs: Sequence[Row]) -> Iterator[dict[str, object]]:
    """A row for each kernel that both have judged: both systems' speed-ups, and what their difference is."""
    other = {(row["kind"], row["name"]): row["speedup"] for row in theirs if row["system"] == THEIRS}
    groups: dict[str, list[Row]] = {}
    for row in ours:
        groups.setdefault(row["workload"], []).append(row)
    for workload, group in groups.items():
        kind, _, name = workload.partition(" ")
        if (kind, name) not in other:
            continue
        found = {"kind": kind, "name": name, **{column: group[0].get(column, "") for column in PROVENANCE}}
        device = [row for row in group if row["clock"] == "device"]
        call = [row for row in group if row["clock"] == "call"]
        if not (device and call and other[kind, name]):
            yield {**found, "theirs": other[kind, name], "verdict": NO_FIGURE}
            continue
        their = float(other[kind, name])
        own = {column: statistics.median(float(row[column]) for row in device)
               for column in ("speedup", "low", "high", "candidate_us", "reference_us")}  # fmt: skip
        own_call = statistics.median(float(row["speedup"]) for row in call)
        is_one = kind == SAME and own["low"] <= 1 <= own["high"]
        yield {
            **found,
            "theirs": their,
            "device": own["speedup"],
            "device_low": own["low"],
            "device_high": own["high"],
            "call": own_call,
            "difference_percent": 100 * (their / own["speedup"] - 1),
            "verdict": explained(their, own["speedup"], own_call, is_one=is_one),
            "verdicts": len(device),
            "candidate_us": own["candidate_us"],
            "eager_us": own["reference_us"],
        }


def explained(other: float, device: float, call: float, *, is_one: bool = False) -> str:
    """`agree` within 3 %; `launches` where it lies between the speed-ups with and without them. `is_one`: 1 is known to
    be true, and lies in our interval."""
    if abs(other / device - 1) <= TOLERANCE:
        return AGREE
    if is_one:
        return THEIRS_ERRS
    low, high = sorted((device, call))
    return LAUNCHES if low * (1 - TOLERANCE) <= other <= high * (1 + TOLERANCE) else UNEXPLAINED


def report(rows: Sequence[Row]) -> str:
    """Counts by kind, then every kernel on which the two differ."""
    verdicts = (AGREE, LAUNCHES, THEIRS_ERRS, UNEXPLAINED, NO_FIGURE)
    lines = [
        *header("Agreement with KernelBench's clock", list(rows)),
        f"`{AGREE}`: within {TOLERANCE:.0%} of our device clock. `{LAUNCHES}`: between our device and call clocks.",
        f"`{THEIRS_ERRS}`: the candidate is the reference in another text, which our interval holds and theirs misses.",
        "",
    ]
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    body = [
        (kind, *(str(sum((row["kind"], row["verdict"]) == (kind, name) for row in rows)) for name in verdicts))
        for kind in kinds
    ]
    lines += table_lines(("build", *verdicts), body)
    odd = [row for row in rows if row["verdict"] != AGREE]
    names = ("name", "theirs", "device", "device_low", "device_high", "call", "candidate_us", "eager_us", "verdict")
    if odd:
        lines += [
            "",
            "## Where they differ",
            "",
            *table_lines(names, [tuple(row[n] or "-" for n in names) for row in odd]),
        ]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    run(main)
