"""Ten thousand damaged replies: does the parser crash, or take what is not the answer?

    PYTHONPATH=src python benchmarks/damaged_replies.py --out build/replies

The labelled replies of tests/prompts are damaged at random, each kind of damage with what may be made of the result
(tests/prompts/reply_mutations.py). Writes damaged_replies.csv, a row for each kind of damage, and damaged_replies.md.
Exits with 1 where anything was mistaken.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from csv_table import Table
from cuda_l1.evaluator.environment import cpu_name
from cuda_l1.prompts.reply import parse_reply
from cuda_l1.report.markdown import table_lines
from provenance import ROOT, command_line, commit, run, say, today, write_report

sys.path.append(str(ROOT / "tests" / "prompts"))
from labelled_replies import labelled_replies
from reply_mutations import DAMAGES, damaged

COLUMNS = (
    "damage",
    "replies",
    "mistaken",
    "with_file",
    "crashed",
    "slowest_ms",
    "seed",
    "device_name",
    "commit",
    "date",
)
LABELS = "none (as labelled)"


def main() -> int:
    options = _options()
    replies = labelled_replies()
    say(f"{len(replies)} labelled replies, {options.count} damaged ones")
    counts: dict[str, Counter[str]] = {name: Counter() for name in (LABELS, *DAMAGES)}
    slowest = dict.fromkeys(counts, 0.0)
    for reply in replies:
        found = parse_reply(reply.text, kind=reply.kind, finish_reason=reply.finish_reason)
        right = (found.source, found.problem) == (reply.source, reply.problem)
        counts[LABELS].update(replies=1, mistaken=not right, with_file=found.source is not None)
    for each in damaged(replies, options.count, options.seed):
        begin = time.process_time()
        try:
            found = parse_reply(each.text, kind=each.kind, finish_reason=each.finish_reason)
        except Exception as error:  # noqa: BLE001 - that nothing is raised is what is counted
            say(f"{each.of}, {each.damage}: {type(error).__name__}: {error}")
            counts[each.damage].update(replies=1, crashed=1)
            continue
        slowest[each.damage] = max(slowest[each.damage], 1e3 * (time.process_time() - begin))
        if wrong := each.wrong(found):
            say(f"{each.of}, {each.damage}: {wrong}")
        counts[each.damage].update(replies=1, mistaken=bool(wrong), with_file=found.source is not None)
    return _write(options.out, options.seed, counts, slowest)


def _options() -> argparse.Namespace:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--out", type=Path, required=True, help="folder for results")
    made.add_argument("--count", type=int, default=10_000)
    made.add_argument("--seed", type=int, default=0)
    return made.parse_args()


def _write(out: Path, seed: int, counts: dict[str, Counter[str]], slowest: dict[str, float]) -> int:
    file = out / "damaged_replies.csv"
    file.unlink(missing_ok=True)
    table = Table(file, COLUMNS, keys=1)
    here = {"seed": seed, "device_name": cpu_name(), "commit": commit(), "date": today()}
    for name, found in counts.items():
        figures = {key: found[key] for key in ("replies", "mistaken", "with_file", "crashed")}
        table.append({"damage": name, **figures, "slowest_ms": round(slowest[name], 1) or None, **here})
    shown = COLUMNS[:6]
    lines = [
        *("# Damaged replies", "", f"- command: `{command_line()}`", f"- device: {here['device_name']}"),
        *(f"- commit: {here['commit']}; date: {here['date']}; seed: {seed}", ""),
        *table_lines(shown, [[row[column] for column in shown] for row in table.rows()]),
    ]
    write_report(out / "damaged_replies.md", "\n".join(lines) + "\n")
    return 1 if any(found["mistaken"] or found["crashed"] for found in counts.values()) else 0


if __name__ == "__main__":
    run(main)
