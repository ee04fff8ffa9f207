"""`ablate`: the list of techniques that a person names, or that of a candidate in the archive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cli_fakes import FAST, lines
from typer.testing import Result

from cuda_l1.archive import Archive
from cuda_l1.proposers.techniques import build
from cuda_l1.tasks import load_task
from cuda_l1.types import Record

Run = Callable[..., Result]


def test_every_subset_stands_in_the_table(run: Run) -> None:
    result = run("ablate", "linear_sum", "reduce_linear+straight_line", "--device", "cpu")
    assert result.exit_code == 0, result.stderr
    assert "reduce_linear + straight_line" in result.stdout and "together / product alone" in result.stdout
    assert "reduce_linear: ACCEPTED" in result.stderr


def test_json_has_a_line_for_each_subset_technique_and_pair(run: Run) -> None:
    *objects, summary = lines(run("ablate", "linear_sum", "reduce_linear+cuda_graph", "--device", "cpu", "--json"))
    assert [o["kind"] for o in objects] == ["variant"] * 3 + ["technique"] * 2 + ["pair"]
    assert objects[1]["why_not"] == "cuda_graph would change nothing" and objects[1]["speedup_eager"] is None
    assert objects[0]["outcome"] == "ACCEPTED" and objects[0]["counts"] is True
    assert summary["techniques"] == ["reduce_linear", "cuda_graph"] and summary["accepted"] == 1


def test_a_candidate_of_the_archive_is_taken_apart(run: Run) -> None:
    task = load_task("linear_sum", device="cpu")
    candidate = build(task, ["reduce_linear"], "cpu")
    assert candidate is not None
    run("ablate", "linear_sum", "straight_line", "--device", "cpu")
    with Archive.open(create=False) as archive:
        evaluation = next(archive.records()).evaluation
        archive.append(Record(run="x", sequence=1, candidate=candidate, evaluation=evaluation), task)
    result = run("ablate", "linear_sum", candidate.id[:12], "--device", "cpu", "--json")
    assert lines(result)[-1]["techniques"] == ["reduce_linear"]


def test_what_is_no_list_of_techniques_is_refused(run: Run, reference: Path, tmp_path: Path) -> None:
    result = run("ablate", "linear_sum", "reduce_linear+magic", "--device", "cpu")
    assert result.exit_code == 2 and "`reduce_linear+magic` is neither techniques" in result.stderr
    (tmp_path / "fast.py").write_text(FAST)
    run("evaluate", reference, tmp_path / "fast.py", "--device", "cpu")
    with Archive.open(create=False) as archive:
        written = next(archive.records()).candidate.id[:12]
    result = run("ablate", "linear_sum", written, "--device", "cpu")
    assert result.exit_code == 2 and "was not built of techniques" in result.stderr


def test_a_technique_named_twice_is_one_line(run: Run) -> None:
    result = run("ablate", "linear_sum", "straight_line+reduce_linear+straight_line", "--device", "cpu")
    assert result.exit_code == 2 and result.stderr.count("\n") == 1
    assert "names straight_line twice" in result.stderr and result.stdout == ""


@pytest.mark.parametrize("text", ["", "+", " "])
def test_an_empty_list_is_refused(run: Run, text: str) -> None:
    assert run("ablate", "linear_sum", text, "--device", "cpu").exit_code == 2
