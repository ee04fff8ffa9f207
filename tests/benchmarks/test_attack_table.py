"""The table of attacks: what it counts, and a few rows of it made for real."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from benchmark_fakes import GPU

import attack_table
from attack_table import ATTACK, KERNEL, KNOWN, TWIN, Item
from csv_table import Row, Table, read_rows
from cuda_l1.errors import InfrastructureError, TaskError, UsageError
from provenance import Deadline, columns_of


def rows(folder: Path, *given: dict[str, object]) -> list[Row]:
    table = Table(folder / "attacks.csv", attack_table.COLUMNS, keys=2)
    for number, one in enumerate(given):
        common = {"kind": ATTACK, "case": f"clock/{number}", "family": "clock", "full_credit": False, "seconds": 1.5}
        table.append({**common, **columns_of(GPU), **one})
    return table.rows()


def test_a_report_counts_by_family_and_says_what_stopped_each(tmp_path: Path) -> None:
    text = attack_table.report(
        rows(
            tmp_path,
            {"outcome": "WRONG_VALUES"},
            {"outcome": "WRONG_VALUES", "findings": "reused-output(note)"},
            {"outcome": "ACCEPTED", "findings": "patched(suspect) streams(note)"},
            {"outcome": "ACCEPTED", "full_credit": True, "wrong": "gets full credit", "precision_class": "tf32"},
            {"outcome": "ACCEPTED", "speedup": 0.9, "precision_class": "fp32"},
            {"outcome": "not tried", "detail": "stopped from R2 on"},
            {"kind": TWIN, "outcome": "ACCEPTED", "full_credit": True},
            {"kind": KNOWN, "outcome": "ACCEPTED", "full_credit": True, "speedup": 2.0, "precision_class": "exact"},
            {"kind": KNOWN, "outcome": "WRONG_VALUES"},
            {"kind": KERNEL, "outcome": "REJECTED", "wrong": "honest, and turned away or suspected"},
        )
    )
    assert "| clock | 5 | 1 | 1 | 1 | 0 | 1 | 1 | 2 | 1 | 15 |" in text
    assert "| memory | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |" in text
    for line in (
        "| clock | WRONG_VALUES | 2 |",
        "| clock | ACCEPTED: patched | 1 |",
        "| attack | clock/3 | gets full credit | ACCEPTED: class tf32 |",
        "| clock | ACCEPTED: class fp32, gains nothing | 1 |",
        "| clock/5 | stopped from R2 on |",
        "| clock/7 | ACCEPTED: class exact |",
    ):
        assert line in text


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_every_case_and_kernel_of_a_device_is_an_item_once(device: str) -> None:
    found = attack_table.items(device)
    assert len({(item.kind, item.case) for item in found}) == len(found)
    kinds = [item.kind for item in found]
    assert (
        kinds.count(ATTACK) + kinds.count(KNOWN) == kinds.count(TWIN)
        and kinds.count(ATTACK) >= 60
        and kinds.count(KERNEL) >= 28
    )
    assert {item.family for item in found} == set(attack_table.FAMILIES)


@pytest.mark.e2e
def test_shares_hold_every_item_once_and_an_attack_with_its_twin() -> None:
    found = attack_table.items("cpu")
    shares = [attack_table.share_of(found, f"{number}/3") for number in (1, 2, 3)]
    assert sum(map(len, shares)) == len(found)
    assert not {item.case for item in shares[0]} & {item.case for item in (*shares[1], *shares[2])}
    for text in ("0/3", "4/3", "3", "a/b"):
        with pytest.raises(UsageError, match="give I/N"):
            attack_table.share_of(found, text)


@pytest.mark.parametrize("fault", [InfrastructureError("the GPU was lost"), TaskError("Model.forward raised")])
def test_what_is_kept_from_a_verdict_keeps_no_other_from_it(tmp_path: Path, monkeypatch, capsys, fault) -> None:
    first, second = attack_table.items("cpu")[:2]

    def row_of(item: Item, _: object) -> dict[str, object]:
        if item is first:
            raise fault
        return {"kind": item.kind, "case": item.case, "family": item.family, "outcome": "ACCEPTED", "wrong": None}

    monkeypatch.setattr(attack_table, "row_of", row_of)
    evaluator = SimpleNamespace(environment=GPU)
    pool = SimpleNamespace(run=lambda jobs, verdict: ((job, verdict(evaluator, job.work)) for job in jobs))
    table = Table(tmp_path / "attacks.csv", attack_table.COLUMNS, keys=2)
    assert attack_table._judge([first, second], pool, table, Deadline(None))
    assert [row["case"] for row in table.rows()] == [second.case]
    assert f"{first.case}: no verdict: {fault}" in "".join(capsys.readouterr())


def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    command = [sys.executable, attack_table.__file__, "--device", "cpu", "--out", str(tmp_path)]
    only = ["--only", "meaning/half-that-says-float"]
    stopped = subprocess.run([*command, *only, "--deadline", "1s"], capture_output=True, text=True)
    assert stopped.returncode == 1 and "no time left" in stopped.stderr
    first, second = (subprocess.run([*command, *only], capture_output=True, text=True) for _ in range(2))
    assert (first.returncode, second.returncode) == (0, 0), first.stderr
    assert "1/2" in first.stderr and not second.stderr
    made = read_rows(tmp_path / "attacks.csv", attack_table.COLUMNS[:2])
    assert [(row["kind"], row["full_credit"], row["wrong"]) for row in made] == [(ATTACK, "no", ""), (TWIN, "yes", "")]
