"""What each part of the training is worth: one recipe, a row for each way to train, several seeds, one table.

    python benchmarks/policy_ablation.py --base recipes/one-gpu.toml --seeds 0,1,2 --out results/ablation
    python benchmarks/policy_ablation.py --base recipes/one-gpu.toml --rows grpo,bucket --seeds 0 --out results/ablation

All is trained and evaluated by `cuda-l1 train`. Variants are collected once, stages 1 and 2 are trained once for each
seed, and all rows of the seed begin from there; every row that has a stage 3 is given as many replies in it, and each
row the same number of replies to the same held-out tasks. Verdicts are looked up in one table (`[evaluation] table`):
a variant that several rows write is measured once. Figures are those of `screen`.

OUT/table.sqlite        the verdicts of all runs
OUT/shared/             data, and stages 1 and 2 of each seed
OUT/runs/ROW-SEED/      a training run like any other; no policy in rows without learning
OUT/logs/               what the commands said
OUT/finals.sqlite       the verdicts of --finals
OUT/ablation.md, .json  the table, of what is finished

What is finished is not run again, what was killed goes on. The same command may be started several times side by side,
also with other rows: a run that another process is at is passed over.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import MappingProxyType

import ablation_table as tables
from ablation_finals import Finals, with_finals
from ablation_rows import ROWS, Row, Run, replies_of_stage_3, runs
from ablation_runs import Ablation, claimed
from ablation_table import Line, Reply
from cuda_l1.archive import Archive
from cuda_l1.errors import CudaL1Error, UsageError
from provenance import PROVENANCE, columns_of, header, say
from provenance import run as run_script


def lines(
    ablation: Ablation,
    asked: Sequence[Run],
    baselines: dict[str, float],
    failed: dict[str, str],
    measured: Finals = MappingProxyType({}),
) -> list[Line]:
    """A line for each row that is asked for, with the finals that were measured."""
    found: dict[str, dict[int, list[Reply]]] = {run.row.name: {} for run in asked}
    for run in asked:
        if ablation.is_done(run):
            found[run.row.name][run.seed] = with_finals(ablation.replies(run), measured)
    return [_line(ablation, ROWS[name], found, asked, baselines, failed) for name in found]


def _line(
    ablation: Ablation,
    row: Row,
    found: dict[str, dict[int, list[Reply]]],
    asked: Sequence[Run],
    baselines: dict[str, float],
    failed: dict[str, str],
) -> Line:
    mine = [run for run in asked if run.row == row]
    seeds = found[row.name]
    missing = [f"{run.name} {failed.get(run.name, '')}".strip() for run in mine if run.seed not in seeds]
    cells = tables.cells(seeds, baselines) if seeds else {}
    for figure, (other, of) in tables.OVER.items():
        if row.name != other and (ratio := tables.over(seeds, found.get(other, {}), of)) is not None:
            cells[figure] = ratio
    trained = [ablation.trained_on(run) for run in mine if run.seed in seeds]
    asked_for = _mean([len(replies) for replies in seeds.values()])
    return Line(
        row.name, row.label, cells, _mean(trained), asked_for, tables.outcomes(seeds), "; ".join(missing)
    )  # fmt: skip


def write(ablation: Ablation, lines: Sequence[Line], *, at_final: bool = False) -> str:
    """The table as Markdown, also in the folder, there for programs, too."""
    with Archive.open(ablation.out / "table.sqlite") as table:
        known = list(table.records(limit=1))
        place = columns_of(known[0].evaluation.environment) if known else {}
    shown = {name: str(place.get(name) or "") for name in PROVENANCE}
    notes = [
        f"Base recipe: `{ablation.path.name}`, digest {ablation.base.digest[:12]}; a stage 3 asks for "
        f"{replies_of_stage_3(ablation.base):,} replies, the evaluation for "
        f"{ablation.base.evaluation.held_out_samples} to each held-out task. "
        + (
            "The best reply to each task by its `screen` counts as it was measured anew, at `final`."
            if at_final
            else "Figures are those of `screen`, each variant measured once."
        ),
        "",
        "A task counts by the best of its right replies, 1.0x at least; *one reply* is the geometric mean over its "
        "replies, each 1.0x at least and by its screen, the final being a bound where there is one. Intervals "
        "are 95 %: over seeds Student's t "
        "(of speed-ups on logarithms), over tasks a bootstrap, which says nothing of another seed. *Replies in "
        "training* are those of stages 2 and 3 beside the variants collected for stage 1, which all rows that learn "
        "share; what `leaky` learned from is no verdict of ours. What analysis in words is worth cannot be seen in a "
        "small policy from random weights: `no-analysis` leaves out what it says by rule.",
        "",
    ]
    text = "\n".join([*header("Policy ablation", [shown]), *notes, *tables.markdown(lines)]) + "\n"
    (ablation.out / "ablation.md").write_text(text)
    (ablation.out / "ablation.json").write_text(json.dumps(tables.document(lines), indent=2) + "\n")
    return text


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def do_all(ablation: Ablation, asked: Sequence[Run], on_change: Callable[[dict[str, str]], None]) -> dict[str, str]:
    """Does what is not done; one that fails does not end the rest. Returns why runs are not finished, by name."""
    failed: dict[str, str] = {}
    for number, run in enumerate(asked, start=1):
        if ablation.is_done(run):
            continue
        with claimed(ablation.out, run.name, waits=False) as mine:
            if not mine:
                failed[run.name] = "(another process is at it)"
                continue
            if ablation.is_done(run):  # by another process, since
                continue
            say(f"run {number} of {len(asked)}: {run.name}")
            try:
                ablation.do(run)
            except CudaL1Error as error:
                failed[run.name] = f"({error})"
                say(f"{run.name}: {error}")
        on_change(failed)
    return failed


def arguments() -> Namespace:
    """What was typed."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, required=True, metavar="RECIPE", help="what all runs have in common")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="for all runs and the table")
    parser.add_argument("--rows", default=",".join(ROWS), help="default: all; " + ", ".join(ROWS))
    parser.add_argument("--seeds", default="0,1,2", help="default: 0,1,2")
    parser.add_argument("--set", dest="sets", action="append", default=[], metavar="SECTION.KEY=VALUE",
                        help="in place of the base recipe's value")  # fmt: skip
    parser.add_argument("--policy", type=Path, metavar="FOLDER",
                        help="what all seeds take for their stage 1: the `final` that one has left")  # fmt: skip
    parser.add_argument("--finals", action="store_true",
                        help="at the end, measure the best reply to each task anew, at `final`")  # fmt: skip
    parser.add_argument("--best-baseline", action="store_true", help="measure the baselines of held-out tasks, too")
    return parser.parse_args()


def main() -> int:
    """Trains, evaluates, writes the table; 1 where a run is not finished."""
    asked = arguments()
    try:
        seeds = list(dict.fromkeys(int(each) for each in asked.seeds.split(",")))
    except ValueError:
        raise UsageError(f"--seeds {asked.seeds}: give whole numbers, e.g. 0,1,2") from None
    wanted = runs([each.strip() for each in asked.rows.split(",")], seeds)
    ablation = Ablation(asked.base, asked.sets, asked.out.absolute(), asked.policy)
    baselines = ablation.baselines() if asked.best_baseline else {}

    def on_change(failed: dict[str, str]) -> None:
        write(ablation, lines(ablation, wanted, baselines, failed))

    failed = do_all(ablation, wanted, on_change)
    measured = ablation.finals(wanted) if asked.finals else {}
    sys.stdout.write(write(ablation, lines(ablation, wanted, baselines, failed, measured), at_final=asked.finals))
    return 1 if failed else 0


if __name__ == "__main__":
    run_script(main)
