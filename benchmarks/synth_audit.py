"""How long does it take to generate and audit synthetic tasks, and how many are sound?

    python benchmarks/synth_audit.py --device cpu --out build/synth [--n 1000] [--seed 0] [--deadline 6m]

Writes `synth.csv`, a row for every hundred tasks, and `synth.md`. The tasks themselves lie in OUT/tasks. Started again
with the same --out it goes on; the seconds of all rows, starts of evaluators included, are what it took.
"""

from __future__ import annotations

import json
import statistics
import time
from collections import Counter
from pathlib import Path

from csv_table import Row, Table
from cuda_l1.api.places import resolve_device
from cuda_l1.api.synthesis import synthesise
from cuda_l1.config import EvaluatorSettings
from cuda_l1.evaluator import Evaluator
from cuda_l1.tasks.synth.folder import MANIFEST, Entry, Settings
from provenance import PROVENANCE, Deadline, columns_of, header, parser, run, say, write_report

SLICE = 100
SLICE_S = 240.0
"""A slice may take this long."""
COLUMNS = ("sound", "audited", "seconds", *PROVENANCE)


def main() -> None:
    """Audits slice by slice while the deadline allows, then writes the report."""
    options = parser(__doc__)
    options.add_argument("--n", type=int, default=1000, help="how many sound tasks")
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    deadline = Deadline(chosen.deadline)
    device = resolve_device(chosen.device)
    table = Table(chosen.out / "synth.csv", COLUMNS, keys=1)
    evaluators = EvaluatorSettings(device=device)
    with Evaluator(evaluators) as evaluator:
        environment = columns_of(evaluator.environment)
    settings = Settings(seed=chosen.seed, device=device.partition(":")[0], device_memory_gib=None)
    done = {int(row["sound"]) for row in table.rows()}
    for count in range(min(SLICE, chosen.n), chosen.n + SLICE, SLICE):
        count = min(count, chosen.n)
        if count in done:
            continue
        if not deadline.allows(SLICE_S):
            say(f"{len(done) * SLICE} of {chosen.n}: the deadline is near; the same command goes on")
            return
        table.append(_timed(chosen.out / "tasks", count, settings, evaluators) | environment)
        done.add(count)
        say(f"{count} of {chosen.n} tasks")
    report = chosen.out / "synth.md"
    write_report(report, "\n".join(_report(table.rows(), _entries(chosen.out / "tasks"))) + "\n")
    say(f"{report}")


def _timed(folder: Path, count: int, settings: Settings, evaluators: EvaluatorSettings) -> dict[str, object]:
    heard: list[Entry] = []
    began = time.monotonic()
    synthesise(folder, count=count, settings=settings, evaluators=evaluators, levels=(1, 2, 3), on_entry=heard.append)
    return {"sound": count, "audited": len(heard), "seconds": time.monotonic() - began}


def _entries(folder: Path) -> list[Entry]:
    lines = (folder / MANIFEST).read_text().splitlines()[1:]
    return [Entry.model_validate(json.loads(line)) for line in lines]


def _report(rows: list[Row], entries: list[Entry]) -> list[str]:
    seconds = sum(float(row["seconds"]) for row in rows)
    sound = [entry for entry in entries if entry.sound]
    times = sorted(entry.reference_us for entry in sound if entry.reference_us is not None)
    deciles = statistics.quantiles(times, n=20)
    return [
        *header("Synthetic tasks", rows),
        f"{len(entries)} tasks were generated and audited in {seconds / 60:.1f} minutes "
        f"({seconds / len(entries):.2f} s each, every core in use); {len(sound)} are sound.",
        "",
        "| split | level 1 | level 2 | level 3 |",
        "| --- | --- | --- | --- |",
        *(_split_row(name, sound) for name in ("train", "validation", "held-out")),
        "",
        "One call of the reference, by the audit's rough clock: "
        f"5 % take less than {deciles[0]:.0f} us, half of them less than {statistics.median(times):.0f} us, "
        f"5 % more than {deciles[-1]:.0f} us.",
        "",
        "| why a task is not sound | tasks |",
        "| --- | --- |",
        *(f"| {reason} | {count} |" for reason, count in _reasons(entries).most_common()),
    ]


def _split_row(name: str, sound: list[Entry]) -> str:
    counts = Counter(entry.level for entry in sound if entry.split == name)
    return f"| {name} | {counts[1]} | {counts[2]} | {counts[3]} |"


def _reasons(entries: list[Entry]) -> Counter[str]:
    refused = [entry for entry in entries if not entry.sound]
    return Counter(", ".join(entry.flags) or "the reference raises" for entry in refused)


if __name__ == "__main__":
    run(main)
