"""`cuda-l1 evaluate --shapes`: what holds at other sizes is said, and only that."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cli_fakes import FAST, PLACE, REFERENCE, lines
from typer.testing import Result

from cuda_l1.report.shapes import ShapeReport, SizeResult
from cuda_l1.types import Correctness, Outcome, Trial, Verification

Run = Callable[..., Result]


@pytest.fixture
def sized(tmp_path: Path) -> Path:
    path = tmp_path / "sized.py"
    head = "# refuses dim=3\n# degenerate dim=1\nbatch = 4\ndim = 64\n"
    path.write_text(head + REFERENCE.replace("torch.randn(4, 4)", "torch.randn(batch, dim)"))
    return path


@pytest.fixture
def candidate(tmp_path: Path) -> Path:
    path = tmp_path / "candidate.py"
    path.write_text("# speedup 2.0\n# wrong dim=7\n" + FAST)
    return path


def test_a_line_for_each_size_and_one_about_all(run: Run, sized: Path, candidate: Path) -> None:
    words = ("evaluate", sized, candidate, "--device", "cpu", "--shapes", "batch=1,9 dim=1,3,7,128")
    result = run(*words, "--json")
    assert result.exit_code == 0, "a size is no verdict on the candidate's own"
    found = lines(result)
    sizes = [line for line in found if line["kind"] == "size"]
    assert [(line["size"], line["verdict"]) for line in sizes] == [
        ({"batch": 1}, "holds"),
        ({"batch": 9}, "holds"),
        ({"dim": 1}, "proves nothing"),
        ({"dim": 3}, "refused"),
        ({"dim": 7}, "fails"),
        ({"dim": 128}, "holds"),
    ]
    assert sizes[4]["outcome"] == "WRONG_VALUES" and sizes[3]["detail"] == "no such size"
    (said,) = [line for line in found if line["kind"] == "shapes"]
    assert said["holds"] is False and said["statement"] == (
        "holds for batch 1, 4, 9; dim 64, 128 (multiples of 64, of which it fails at none) (one changed at a time); "
        "fails at dim=7 (WRONG_VALUES); proves nothing at dim=1 (degenerate); the reference itself refuses dim=3"
    )
    assert said["statement"] in run(*words).stdout


def test_alone_it_tries_every_size(run: Run, sized: Path, candidate: Path) -> None:
    places = (
        ("evaluate", sized, candidate, "--device", "cpu", "--json", "--shapes"),
        ("evaluate", sized, candidate, "--shapes", "--device", "cpu", "--json"),
        ("evaluate", "--shapes", sized, candidate, "--device", "cpu", "--json"),
        ("evaluate", sized, "--device", "cpu", "--json", "--shapes", "auto", candidate),
    )
    for words in places:
        sizes = [line["size"] for line in lines(run(*words)) if line["kind"] == "size"]
        assert {"batch": 8} in sizes and {"dim": 65} in sizes and len(sizes) == 12


def test_only_what_is_asked_for_is_required(run: Run, sized: Path, candidate: Path) -> None:
    words = ("evaluate", sized, candidate, "--device", "cpu", "--require-shapes")
    told = run(*words, "--shapes", "dim=7,128")
    assert told.exit_code == 1 and "does not hold at all sizes" in told.stdout
    assert run(*words, "--shapes", "dim=128").exit_code == 0
    assert run(*words).exit_code == 2, "required without any"


def test_a_wrong_candidate_is_not_tried(run: Run, sized: Path, tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("# outcome WRONG_VALUES\n" + FAST)
    result = run("evaluate", sized, "wrong.py", "--device", "cpu", "--shapes", "auto", "--json")
    assert result.exit_code == 1 and [line["kind"] for line in lines(result)] == ["evaluation", "summary"]


def test_copies_share_their_sizes(run: Run, sized: Path, candidate: Path, tmp_path: Path) -> None:
    (tmp_path / "copy.py").write_text(candidate.read_text() + "\n")
    result = run("evaluate", sized, candidate, "copy.py", "--device", "cpu", "--shapes", "dim=7", "--json")
    assert [line["path"] for line in lines(result) if line["kind"] == "shapes"] == [str(candidate), "copy.py"]
    assert result.stderr.count(" at dim=7: fails") == 1


@pytest.mark.parametrize("words", [("--shapes", ""), ("--shapes", " "), ("--shapes=",)])
def test_an_empty_one_is_refused(run: Run, sized: Path, candidate: Path, words: tuple[str, ...]) -> None:
    result = run("evaluate", sized, candidate, "--device", "cpu", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("cuda-l1: --shapes: is empty; give auto, or NAME=NUMBER,NUMBER,...")


def test_an_unknown_size_costs_nothing(run: Run, sized: Path, candidate: Path) -> None:
    result = run("evaluate", sized, candidate, "--device", "cpu", "--shapes", "width=7")
    assert result.exit_code == 2 and not result.stdout
    assert "no size `width`; it has batch=4, dim=64" in result.stderr


# ── the statement ─────────────────────────────────────────────────────────────────────────────────


def at(outcome: Outcome = Outcome.ACCEPTED, precision_class: str = "fp32", **size: int) -> SizeResult:
    trial = Trial(kind="base", error=0.0, reference_error=0.0, bound=0.0, passed_class="fp32")
    correctness = Correctness(trials=(trial,), precision_class=precision_class, task_class="fp32")  # type: ignore[arg-type]
    found = Verification(candidate_id="c", task_sha="t", outcome=outcome, correctness=correctness, environment=PLACE)
    return SizeResult(size, found)


def test_no_factor_is_claimed_without_a_failure_beside_it() -> None:
    report = ShapeReport({"n": 64}, (at(n=8), at(n=128)))
    assert report.holds and report.statement == "holds for n 8, 64, 128"


def test_no_factor_is_claimed_against_the_evidence() -> None:
    report = ShapeReport({"n": 64}, (at(n=8), at(Outcome.CRASHED, n=16), at(Outcome.CRASHED, n=7)))
    assert not report.holds and report.statement == "holds for n 8, 64; fails at n=7, 16 (CRASHED)"


def test_sizes_changed_together_are_told_apart() -> None:
    report = ShapeReport({"n": 4, "m": 5}, (at(n=1, m=2), at(Outcome.CRASHED, n=3, m=3)))
    assert report.statement == (
        "holds for n 4; m 5 (one changed at a time); together: n=1, m=2; fails at n=3 with m=3 (CRASHED)"
    )


def test_a_less_exact_class_does_not_hold() -> None:
    report = ShapeReport({"n": 4}, (at(precision_class="relaxed", n=1),))
    assert not report.holds and report.statement == "holds for n 4; fails at n=1 (class relaxed)"


def test_nothing_tried_is_not_all_held() -> None:
    refused = SizeResult({"n": 1}, None, "no")
    assert not ShapeReport({"n": 4}, (refused,)).holds


SIZED = """
import torch


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = torch.nn.Linear(width, width)

    def forward(self, x):
        return torch.relu(self.linear(x))


def get_inputs():
    return [torch.randn(16, 32)]


def get_init_inputs():
    return [32]
"""
"""Its width is a literal twice: the inputs' last dimension, and what the constructor is given."""


@pytest.mark.e2e
def test_the_reference_at_each_size_is_the_truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import cuda_l1

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "ref.py").write_text(SIZED)
    by_eights = SIZED.replace("class Model(", "class ModelNew(").replace(
        "return torch", "x = x[:, : x.shape[1] // 8 * 8]\n        return torch"
    )
    by_eights = by_eights.replace("self.linear(x)", "x @ self.linear.weight[:, : x.shape[1]].t() + self.linear.bias")
    report = cuda_l1.verify_shapes(tmp_path / "ref.py", by_eights, "16=1,7 32=31,40", device="cpu")
    assert [result.verdict for result in report.results] == ["holds", "holds", "fails", "holds"]
    assert report.statement == (
        "holds for the 16s as 1, 7, 16; the 32s as 32, 40 (multiples of 8, of which it fails at none) "
        "(one changed at a time); fails at 32=31 (WRONG_VALUES)"
    )
