"""Ctrl-C, kill -9 and a full clock: nothing recorded is lost and nothing is paid twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from search_fakes import EAGER, FakeEvaluator, ListProposer, baseline

from cuda_l1.archive import Archive
from cuda_l1.errors import InfrastructureError
from cuda_l1.search import Result
from cuda_l1.search.events import Confirmed, Event, Stopped

Search = Callable[..., Result]
TEXTS = ["a speed=1.1", "b speed=2.0", "c speed=1.5", "d speed=3.0 final=2.5", "e speed=1.2"]

SEARCH_IN_A_PROCESS = """
import sys, time
from pathlib import Path
from search_fakes import EAGER, TASK, FakeEvaluator, ListProposer
from cuda_l1.archive import Archive
from cuda_l1.config import SearchSettings
from cuda_l1.search import optimize

folder, hang_at, texts = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]

def before(text):
    if text == hang_at:
        (folder / "reached").touch()
        time.sleep(600)

with Archive.open(folder / "archive.sqlite") as archive:
    settings = SearchSettings(task_sha=TASK.sha, budget_s=None, budget_evaluations=4)
    result = optimize(TASK, [ListProposer(*texts)], settings=settings, archive=archive,
                      evaluator=FakeEvaluator(folder / "paid", before), run="run", baselines=[EAGER])
    print(result.winner.candidate.source, result.stop_reason, result.evaluations)
"""


def start(folder: Path, hang_at: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SEARCH_IN_A_PROCESS, str(folder), hang_at, *TEXTS],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        stdout=subprocess.PIPE,
        text=True,
    )


def killed_at(folder: Path, text: str) -> None:
    process = start(folder, text)
    deadline = time.monotonic() + 60
    while not (folder / "reached").exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    (folder / "reached").unlink()
    assert process.stdout is not None
    process.stdout.close()


@pytest.mark.parametrize("done", [0, 1, 3, 4])
def test_kill_9_in_the_middle_loses_nothing_and_nothing_is_paid_twice(tmp_path: Path, done: int) -> None:
    screens = [EAGER.source, *TEXTS[:4]]
    killed_at(tmp_path, screens[done])
    with Archive.open(tmp_path / "archive.sqlite") as archive:
        assert [record.candidate.source for record in archive.records()] == screens[:done]
    output, _ = start(tmp_path, "never").communicate(timeout=60)
    assert output.split()[-2:] == ["evaluation-budget", str(5 - done + 1)]
    # All together exactly what one uninterrupted run pays for: eager, the four of the budget, one final.
    paid = (tmp_path / "paid").read_text().splitlines()
    assert paid == [f"screen {text}" for text in screens] + [f"final {TEXTS[3]}"]
    again, _ = start(tmp_path, "never").communicate(timeout=60)
    assert again.split()[-2:] == ["evaluation-budget", "0"]
    assert (tmp_path / "paid").read_text().splitlines() == paid


def test_ctrl_c_in_the_search_keeps_the_records_and_goes_on(search: Search, archive: Archive) -> None:
    def interrupt(text: str) -> None:
        if text.startswith("c"):
            raise KeyboardInterrupt

    events: list[Event] = []
    with pytest.raises(KeyboardInterrupt):
        search(ListProposer(*TEXTS), evaluator=FakeEvaluator(before=interrupt), on_event=events.append)
    assert [record.candidate.source for record in archive.records()] == [EAGER.source, *TEXTS[:2]]
    assert events[-1] == Stopped("interrupted", evaluations=3, duplicates=0), "as many as the archive holds"


def test_ctrl_c_in_the_final_goes_on(search: Search) -> None:
    evaluator = FakeEvaluator()

    def interrupt(event: Event) -> None:
        if getattr(event, "protocol", "") == "final":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(ListProposer(*TEXTS), evaluator=evaluator, on_event=interrupt)
    paid = list(evaluator.calls)
    assert evaluator.finals() == [] and evaluator.screens() == TEXTS
    result = search(ListProposer(*TEXTS), evaluator=evaluator)
    assert evaluator.calls == [*paid, ("final", TEXTS[3])], "one final and no new screens"
    assert result.final is not None and result.evaluations == 1


def test_ctrl_c_after_the_confirmation_still_delivers(search: Search) -> None:
    def interrupt(event: Event) -> None:
        if isinstance(event, Confirmed):
            raise KeyboardInterrupt

    result = search(ListProposer(*TEXTS), on_event=interrupt)
    assert result.stop_reason == "interrupted"
    assert result.final is not None and result.outcome == "beats-best-baseline"


def test_a_fault_of_the_machine_keeps_what_was_recorded(
    search: Search, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cuda_l1.search.verdicts.RETRY_PAUSE_S", 0.0)

    def fail(text: str) -> None:
        if text.startswith("c"):
            raise InfrastructureError("the GPU fell off the bus")

    with pytest.raises(InfrastructureError):
        search(ListProposer(*TEXTS), evaluator=FakeEvaluator(before=fail))
    assert len(list(archive.records())) == 3


def test_the_time_budget_covers_baselines_and_what_came_before(search: Search, evaluator: FakeEvaluator) -> None:
    compiled = baseline("compile", "speed=1.5")
    late = time.monotonic() - 30.0
    result = search(ListProposer(*TEXTS), baselines=[EAGER, compiled], budget_s=60.0, started=late)
    assert result.baselines[1].outcome is None
    assert "no time" in result.baselines[1].detail
    assert result.wall_s >= 30.0
    assert evaluator.asked[-1]["budget_s"] == pytest.approx(30.0, abs=3.0)


def test_a_baseline_that_takes_all_of_the_time_leaves_a_candidate(
    search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, later = time.monotonic, [0.0]

    def before(text: str) -> None:
        later[0] += 70.0 * text.startswith("compile:")

    monkeypatch.setattr(time, "monotonic", lambda: real() + later[0])
    evaluator, compiled = FakeEvaluator(before=before), baseline("compile", "speed=1.5")
    proposer = ListProposer("a speed=2.0", "b speed=3.0")
    result = search(proposer, evaluator=evaluator, baselines=[EAGER, compiled], budget_s=60.0)
    assert evaluator.screens() == ["a speed=2.0"]
    assert (result.best_baseline, result.stop_reason, result.outcome) == (
        "compile",
        "time-budget",
        "beats-best-baseline",
    )


def test_a_baseline_that_would_not_end_in_time_is_left_out(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    real, later = time.monotonic, [0.0]

    def before(text: str) -> None:
        later[0] += 12.0 * text.startswith("compile:")

    monkeypatch.setattr(time, "monotonic", lambda: real() + later[0])
    evaluator = FakeEvaluator(before=before)
    offered = [EAGER, *(baseline(name, "speed=1.5") for name in ("compile", "compile-reduce-overhead", "cuda-graph"))]
    result = search(ListProposer(*TEXTS), evaluator=evaluator, baselines=offered, budget_s=60.0)
    assert [b.name for b in result.baselines if b.outcome is not None] == ["eager", "compile", "cuda-graph"]


def test_an_overdrawn_time_budget_ends_without_a_candidate(search: Search, evaluator: FakeEvaluator) -> None:
    result = search(ListProposer(*TEXTS), budget_s=60.0, started=time.monotonic() - 61.0)
    assert (result.stop_reason, result.outcome) == ("time-budget", "no-improvement")
    assert evaluator.screens() == []
