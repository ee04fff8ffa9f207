"""The benchmark's chi-square: known tails, chances that add up, the samplers accepted and a wrong formula refused."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import exemplar_distribution
from csv_table import Table
from cuda_l1.archive import Archive
from cuda_l1.config import SamplerSettings
from exemplar_distribution import (
    COLUMNS,
    DRAWN,
    KINDS,
    WIDTH,
    _provenance,
    chi_square,
    compared,
    expected,
    report,
    tail,
    variants_of,
)
from exemplar_draw import fill


def test_the_tail_is_that_of_the_tables() -> None:
    for statistic, degrees, p in ((3.841, 1, 0.05), (18.307, 10, 0.05), (149.449, 100, 0.001)):
        assert tail(statistic, degrees) == pytest.approx(p, rel=2e-3)


def test_rare_outcomes_are_one_and_impossible_ones_an_error() -> None:
    chances = {"a": 0.5, "b": 0.49, "c": 0.006, "d": 0.004}
    assert chi_square({"a": 50, "b": 49, "c": 1}, chances, 100) == (3, 0.0)
    with pytest.raises(ValueError, match="no chance"):
        chi_square({"e": 1}, chances, 100)


def test_every_sampler_is_accepted_and_another_formula_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "archive.sqlite"
    (task,) = fill(path, 60, 1)
    known = variants_of(path)
    table = Table(tmp_path / "exemplar_distribution.csv", COLUMNS, keys=3)
    with Archive.open(path) as archive:
        for kind in KINDS:
            for drawn, count in DRAWN.items():
                settings = SamplerSettings.model_validate({"kind": kind, "count": count, "bucket_width": WIDTH})
                assert math.isclose(sum(expected(known, settings).values()), 1.0)
                for row in compared(archive, task, known, kind, drawn, 300):
                    table.append({**row, "variants": len(known), **_provenance()})
                    assert row["p"] > 1e-4 or row["formula"] != "the paper's", row
        monkeypatch.setattr(exemplar_distribution, "FORMULAS", {"another": 4.0})
        for kind, drawn in (("bucket", "variant"), ("bucket", "buckets"), ("island", "buckets")):
            (row,) = compared(archive, task, known, kind, drawn, 300)
            assert row["p"] < 1e-4
    assert "| bucket | variant | the paper's |" in report(table.rows())
