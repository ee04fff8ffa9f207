"""Are exemplars drawn as the formula says? Pearson's chi-square test of every sampler that has one.

    PYTHONPATH=src python benchmarks/exemplar_distribution.py --out build/distribution

Fills a SQLite archive with `--variants` variants of one task, whose log speed-ups are normal around 0.3 with a standard
deviation of 0.8, and draws from it through `archive.exemplars.draw` with the seeds 0, 1, ..., `--draws` times for each
row. What is expected is computed here, from the records' scores alone: the softmax of CUDA-L1 (arXiv 2507.14111) over
the means of the buckets, tau the setting `temperature` times their standard deviation; a second bucket from what is
left; uniformly inside a bucket, and over islands. `variant` counts which one is drawn where one is asked for, `buckets`
the two buckets where two are. Outcomes that are expected fewer than five times are counted as one. The rows with
another formula say what the test can tell: the same draws against a tau that is a tenth larger.

`top`, `none` and the scores of the two controls leave nothing to chance. Writes exemplar_distribution.csv and .md.
"""

from __future__ import annotations

import argparse
import math
import sqlite3
import statistics
import tempfile
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import torch
from sqlalchemy import create_engine, select

from csv_table import Row, Table
from cuda_l1.archive import Archive
from cuda_l1.archive.tables import records
from cuda_l1.config import SamplerSettings
from cuda_l1.report.markdown import table_lines
from cuda_l1.types import Task
from exemplar_draw import PLACE, fill
from provenance import PROVENANCE, cpu_columns, header, plain_parser, run, say, write_report

KINDS = ("bucket", "bucket-shuffled-scores", "bucket-hidden-scores", "island", "random")
FORMULAS = {"the paper's": 1.0, "tau a tenth larger": 1.1}
DRAWN = {"variant": 1, "buckets": 2}
FIGURES = ("variants", "bucket_width", "draws", "outcomes", "chi_square", "degrees", "p")
COLUMNS = ("kind", "drawn", "formula", *FIGURES, *PROVENANCE)
WIDTH = 0.25
LEAST_EXPECTED = 5.0
Outcome = Hashable


class Variant(NamedTuple):
    candidate_id: str
    score: float
    """Natural logarithm of its speed-up."""

    @property
    def bucket(self) -> int:
        return math.floor(self.score / WIDTH)

    def island(self, islands: int) -> int:
        """By its hash, as docs/exemplars.md and docs/record-format.md say."""
        return int(self.candidate_id[:8], 16) % 16 % islands


def main() -> int:
    options = _options()
    table = Table(options.out / "exemplar_distribution.csv", COLUMNS, keys=3)
    done = {table.key(row) for row in table.rows()}
    asked = [(kind, drawn) for kind in KINDS for drawn in DRAWN]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "archive.sqlite"
        (task,) = fill(path, options.variants, 1)
        known = variants_of(path)
        with Archive.open(path) as archive:
            for kind, drawn in asked:
                if (kind, drawn, "the paper's") in done:
                    continue
                for row in compared(archive, task, known, kind, drawn, options.draws):
                    table.append({**row, "variants": len(known), **_provenance()})
                    say(f"{kind}, {drawn}, {row['formula']}: chi-square {row['chi_square']:.1f}, p {row['p']:.3g}")
    write_report(options.out / "exemplar_distribution.md", report(table.rows()))
    return 0


def _options() -> argparse.Namespace:
    made = plain_parser(__doc__)
    made.add_argument("--variants", type=int, default=400)
    made.add_argument("--draws", type=int, default=20_000, help="of each row")
    return made.parse_args()


def _provenance() -> dict[str, object]:
    return {"torch": torch.__version__, **cpu_columns()}


# ── what is drawn ─────────────────────────────────────────────────────────────────────────────────


def variants_of(path: Path) -> list[Variant]:
    """The candidates of an archive with their scores, as their records have them."""
    engine = create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        found = connection.execute(select(records.c.candidate_id, records.c.log_speedup)).all()
    engine.dispose()
    return [Variant(str(key), float(score)) for key, score in found]


def compared(
    archive: Archive, task: Task, known: Sequence[Variant], kind: str, drawn: str, draws: int
) -> Iterator[dict[str, Any]]:
    """A row for each formula: for `random` there is one."""
    settings = SamplerSettings.model_validate({"kind": kind, "count": DRAWN[drawn], "bucket_width": WIDTH})
    observed: Counter[Outcome] = Counter()
    own = {variant.candidate_id: variant for variant in known}
    for seed in range(draws):
        found = archive.exemplars.draw(task.sha, settings, seed=seed, environment_key=PLACE.key)
        assert len(found) == DRAWN[drawn]
        names = [exemplar.candidate_id for exemplar in found]
        observed[names[0] if drawn == "variant" else tuple(sorted(own[name].bucket for name in names))] += 1
    for formula, factor in FORMULAS.items():
        if kind == "random" and factor != 1.0:
            continue
        chances = expected(known, settings, factor)
        outcomes, statistic = chi_square(observed, chances, draws)
        yield {
            "kind": kind,
            "drawn": drawn,
            "formula": formula,
            "bucket_width": WIDTH,
            "draws": draws,
            "outcomes": outcomes,
            "chi_square": statistic,
            "degrees": outcomes - 1,
            "p": tail(statistic, outcomes - 1),
        }


# ── what is expected ──────────────────────────────────────────────────────────────────────────────


def expected(known: Sequence[Variant], settings: SamplerSettings, factor: float = 1.0) -> dict[Outcome, float]:
    """The probability of each outcome; `factor` multiplies tau."""
    if settings.kind == "random":
        return _anywhere(known, settings.count)
    if settings.kind != "island":
        return _by_formula(known, settings, factor)
    chances: defaultdict[Outcome, float] = defaultdict(float)
    inhabited = sorted({variant.island(settings.islands) for variant in known})
    for island in inhabited:
        own = [variant for variant in known if variant.island(settings.islands) == island]
        for outcome, chance in _by_formula(own, settings, factor).items():
            chances[outcome] += chance / len(inhabited)
    return dict(chances)


def _by_formula(known: Sequence[Variant], settings: SamplerSettings, factor: float) -> dict[Outcome, float]:
    buckets = _buckets(known)
    means = {number: statistics.fmean(variant.score for variant in own) for number, own in buckets.items()}
    mu, tau = statistics.fmean(means.values()), factor * settings.temperature * statistics.pstdev(means.values())
    weights = {number: math.exp((mean - mu) / tau) for number, mean in means.items()}
    p = {number: weight / sum(weights.values()) for number, weight in weights.items()}
    if settings.count == 1:
        return {variant.candidate_id: p[n] / len(own) for n, own in buckets.items() for variant in own}
    return {(i, j): p[i] * p[j] / (1 - p[i]) + p[j] * p[i] / (1 - p[j]) for i, j in combinations(sorted(p), 2)}


def _anywhere(known: Sequence[Variant], count: int) -> dict[Outcome, float]:
    if count == 1:
        return {variant.candidate_id: 1 / len(known) for variant in known}
    sizes = {number: len(own) for number, own in _buckets(known).items()}
    pairs = math.comb(len(known), 2)
    chances: dict[Outcome, float] = {(i, i): math.comb(size, 2) / pairs for i, size in sizes.items() if size > 1}
    return chances | {(i, j): sizes[i] * sizes[j] / pairs for i, j in combinations(sorted(sizes), 2)}


def _buckets(known: Sequence[Variant]) -> dict[int, list[Variant]]:
    found: defaultdict[int, list[Variant]] = defaultdict(list)
    for variant in known:
        found[variant.bucket].append(variant)
    return dict(found)


def chi_square(observed: Mapping[Outcome, int], chances: Mapping[Outcome, float], draws: int) -> tuple[int, float]:
    """(outcomes, sum of (observed - expected)^2 / expected), rare outcomes counted as one. ValueError for an outcome
    that cannot be."""
    if observed.keys() - chances.keys():
        raise ValueError(f"drawn although the formula gives it no chance: {sorted(observed.keys() - chances.keys())}")
    cells = [(observed.get(outcome, 0), draws * chance) for outcome, chance in chances.items()]
    often = [cell for cell in cells if cell[1] >= LEAST_EXPECTED]
    rare = [cell for cell in cells if cell[1] < LEAST_EXPECTED]
    if rare:
        often.append((sum(seen for seen, _ in rare), sum(wanted for _, wanted in rare)))
    return len(often), sum((seen - wanted) ** 2 / wanted for seen, wanted in often)


def tail(statistic: float, degrees: int) -> float:
    """The probability of a chi-square so large or larger."""
    half = torch.tensor([degrees / 2, statistic / 2], dtype=torch.float64)
    return float(torch.special.gammaincc(half[0], half[1]))


# ── report ────────────────────────────────────────────────────────────────────────────────────────


def report(rows: Sequence[Row]) -> str:
    """The rows as a table with what they were drawn from."""
    first = rows[0]
    lines = header("The distribution of drawn exemplars", list(rows))
    lines += [
        f"{first['draws']} draws a row from {first['variants']} variants in buckets of width {first['bucket_width']} "
        f"(SQLite {sqlite3.sqlite_version}), against the formula of docs/exemplars.md; p is the probability of a "
        "chi-square so large or larger if the formula holds. From equal seeds the controls draw what `bucket` draws: "
        "their rows are equal to its.",
        "",
    ]
    head = ("sampler", "drawn", "formula", "outcomes", "chi-square", "degrees of freedom", "p")
    return "\n".join([*lines, *table_lines(head, [_cells(row) for row in rows]), ""])


def _cells(row: Row) -> list[str]:
    figures = [row["outcomes"], f"{float(row['chi_square']):.1f}", row["degrees"], f"{float(row['p']):.2g}"]
    return [row["kind"], row["drawn"], row["formula"], *figures]


if __name__ == "__main__":
    run(main)
