"""`ablate`: the list of techniques that a person names, or that of a candidate in the archive."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_fakes import FAST, FakeEvaluator, lines, timing
from typer.testing import Result

from cuda_l1.archive import Archive
from cuda_l1.config import SCREEN
from cuda_l1.proposers.techniques import build
from cuda_l1.tasks import load_task
from cuda_l1.types import Evaluation, Record

Run = Callable[..., Result]


def test_every_subset_stands_in_the_table(run: Run) -> None:
    result = run("ablate", "linear_sum", "reduce_linear+straight_line", "--device", "cpu")
    assert result.exit_code == 0, result.stderr
    assert "reduce_linear + straight_line" in result.stdout and "together / product alone" in result.stdout
    assert "reduce_linear: ACCEPTED" in result.stderr


def test_json_has_a_line_for_each_subset_technique_and_pair(run: Run) -> None:
    *objects, summary = lines(run("ablate", "linear_sum", "reduce_linear+cuda_graph", "--device", "cpu", "--json"))
    assert [o["kind"] for o in objects] == ["variant"] * 3 + ["technique"] * 2 + ["pair"]
    assert (
        objects[1]["why_not"] == "cuda_graph would change nothing here, or is not for this device"
        and objects[1]["speedup_eager"] is None
    )
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
    assert "unknown technique `magic`; `cuda-l1 optimize" in result.stderr
    result = run("ablate", "linear_sum", "reduce_linaer", "--device", "cpu")
    assert result.exit_code == 2 and "did you mean reduce_linear" in result.stderr
    assert not (tmp_path / "data").exists(), "what is refused leaves nothing behind"
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


def test_what_is_not_decided_names_the_option_that_decides_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    own, factor = FakeEvaluator.evaluate, itertools.cycle((1.0, 1.5))

    def restless(self: FakeEvaluator, *given: Any, **more: Any) -> Evaluation:
        found = own(self, *given, **more)
        logs = [t.pairs[0].model_copy(update={"log_ratio": math.log(next(factor))}) for t in found.timings]
        timings = tuple(t.model_copy(update={"pairs": (p,)}) for t, p in zip(found.timings, logs, strict=True))
        return found.model_copy(update={"timings": timings})

    monkeypatch.setattr(FakeEvaluator, "evaluate", restless)
    words = "ablate", "linear_sum", "reduce_linear", "--device", "cpu"
    assert "no effect" in run(*words).stdout
    result = run(*words, "--fresh")
    assert "not decided" in result.stdout and "--protocol final measures more pairs" in result.stdout
    assert re.search(r"reduce_linear +ACCEPTED +fp32 +1\.22x \(0\.\d\d to \d+\.\d\d\) +2\b", result.stdout)
    (variant,) = [line for line in lines(run(*words, "--json")) if line["kind"] == "variant"]
    assert variant["pairs"] == 2 and variant["half"] > 1
    pooled, low, high = (math.log(variant[f"speedup_eager{end}"]) for end in ("", "_low", "_high"))
    assert pooled == pytest.approx(math.log(1.5) / 2)
    assert (low, high) == pytest.approx((pooled - variant["half"], pooled + variant["half"]))


@pytest.mark.parametrize(("clock", "figure"), [(None, 4.0), ("device", 4.0), ("call", 1.0)])
def test_every_figure_is_that_of_the_clock(
    run: Run, monkeypatch: pytest.MonkeyPatch, clock: str | None, figure: float
) -> None:
    own = FakeEvaluator.evaluate
    gpu = FakeEvaluator.environment.model_copy(update={"device": "cuda", "device_name": "test gpu"})

    def two_clocks(self: FakeEvaluator, *given: Any, **more: Any) -> Evaluation:
        found = own(self, *given, **more)
        on_device = timing(4.0, SCREEN, "eager").model_copy(update={"clock": "device"})
        return found.model_copy(update={"timings": (*found.timings, on_device)})

    monkeypatch.setattr(FakeEvaluator, "environment", gpu)
    monkeypatch.setattr(FakeEvaluator, "evaluate", two_clocks)
    monkeypatch.setattr("cuda_l1.api.places.check_clock", lambda *_: None)  # there is no GPU where this runs
    words = "ablate", "linear_sum", "reduce_linear", "--device", "cpu", *(("--clock", clock) if clock else ())
    shown, told = run(*words), f"{figure:.2f}x"
    assert f"reduce_linear: ACCEPTED {told}" in shown.stderr and f"fp32    {told}" in shown.stdout
    (variant,) = [line for line in lines(run(*words, "--json")) if line["kind"] == "variant"]
    assert variant["speedup_eager"] == pytest.approx(figure) and variant["speedup_eager_low"] is None
