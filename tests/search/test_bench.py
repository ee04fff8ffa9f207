"""From records of baselines to the row of a task, and from rows to what is said of a suite."""

from __future__ import annotations

from pathlib import Path

import pytest
from search_fakes import EAGER, TASK, FakeEvaluator, baseline, make_evaluation

from cuda_l1.archive import Archive
from cuda_l1.config import SCREEN
from cuda_l1.errors import CudaL1Error, InfrastructureError, TaskError
from cuda_l1.search.bench import TaskRow, attempt, overview, row_of, skipped_row
from cuda_l1.types import Candidate, Record, Task


def record(candidate: Candidate, protocol: str = "screen") -> Record:
    return Record(run="r", sequence=1, candidate=candidate, evaluation=make_evaluation(candidate, protocol))


def row(*baselines: Candidate, precision: str = "default", protocol: str = "screen") -> TaskRow:
    found: list[tuple[Candidate, Record | CudaL1Error | None]] = [
        (one, record(one, protocol)) for one in (EAGER, *baselines)
    ]
    return row_of(TASK, found, precision=precision, clock=None)


def test_the_best_is_the_fastest_of_those_that_count() -> None:
    compiled, relaxed = baseline("compile", "speed=1.5"), baseline("bf16", "speed=3.0 relaxed")
    wrong, suspect = baseline("cuda-graph", "wrong"), baseline("tf32", "speed=9.0 suspect")
    made = row(compiled, relaxed, wrong, suspect)
    assert (made.best_baseline, made.best_speedup, made.task_class) == ("compile", 1.5, "fp32")
    assert made.best_of == ("eager", "compile")
    by_name = {standing.name: standing for standing in made.baselines}
    assert by_name["bf16"].precision_class == "relaxed" and by_name["bf16"].speedup == 3.0
    assert by_name["cuda-graph"].outcome == "WRONG_VALUES" and by_name["cuda-graph"].detail
    assert row(compiled, relaxed, precision="relaxed").best_baseline == "bf16"


def test_eager_against_itself_is_one_and_may_be_the_best() -> None:
    made = row(baseline("compile", "speed=0.7"), protocol="final")
    assert made.best_baseline == "eager" and made.best_speedup == 1.0
    eager, compiled = made.baselines
    assert eager.speedup_low is None and compiled.speedup_low == pytest.approx(0.7 * 0.99)


def test_a_suspicion_about_eagers_own_timing_leaves_it_the_best() -> None:
    noisy, compiled = baseline("eager", "speed=1.0 suspect"), baseline("compile", "speed=0.4")
    made = row_of(TASK, [(noisy, record(noisy)), (compiled, record(compiled))], precision="default", clock=None)
    assert (made.best_baseline, made.best_of) == ("eager", ("eager", "compile"))


def test_what_is_not_measured_is_named() -> None:
    lost = baseline("compile", "speed=2.0")
    found: list[tuple[Candidate, Record | CudaL1Error | None]] = [(EAGER, record(EAGER)), (lost, None)]
    made = row_of(TASK, found, precision="default", clock=None)
    assert made.baselines[1].detail == "not measured" and made.best_baseline == "eager"
    found[1] = lost, InfrastructureError("disk full")
    made = row_of(TASK, found, precision="default", clock=None)
    assert made.baselines[1].detail == "not measured: disk full"


def test_the_overview_leaves_out_what_is_unsound_and_says_its_coverage() -> None:
    good = row(baseline("compile", "speed=2.0"))
    rows = [
        good,
        row(baseline("compile", "speed=8.0")),
        row(baseline("compile", "wrong")),
        good.model_copy(update={"flags": ("degenerate",)}),
        skipped_row(TASK, "does not fit"),
    ]
    eager, compiled, best = overview(rows, ["eager", "compile"])
    assert (compiled.counted, compiled.tasks, compiled.geometric_mean) == (2, 3, pytest.approx(4.0))
    assert (best.name, best.counted, best.geometric_mean) == ("best baseline", 3, pytest.approx(16 ** (1 / 3)))
    assert eager.geometric_mean == 1.0
    assert overview([], ["eager"])[0].geometric_mean is None


def test_a_bad_task_and_a_broken_machine_are_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuda_l1.search.verdicts.RETRY_PAUSE_S", 0.0)

    class Failing(FakeEvaluator):
        error: Exception = TaskError("toy: raises")

        def evaluate(self, task: Task, candidate: Candidate, **_: object) -> None:  # type: ignore[override]
            raise self.error

    evaluator = Failing()
    with Archive.open(tmp_path / "archive.sqlite") as archive:
        for evaluator.error in (TaskError("toy: raises"), InfrastructureError("no room")):
            got = attempt(TASK, EAGER, protocol=SCREEN, archive=archive, evaluator=evaluator, run="r")
            assert got is evaluator.error
        assert not list(archive.records())
