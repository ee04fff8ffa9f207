"""`cuda-l1 evaluate` with many candidates: nothing is paid for twice, and what is printed keeps the order asked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_fakes import FAST, REFERENCE, FakeEvaluator, lines
from typer.testing import Result

from cuda_l1.api.batch import normalised
from cuda_l1.api.pool import EvaluatorPool, Job
from cuda_l1.config import EvaluatorSettings
from cuda_l1.types import Evaluation

Run = Callable[..., Result]


@pytest.fixture
def paid(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The first lines of the texts that were evaluated, in the order in which that began."""
    seen: list[str] = []
    original = FakeEvaluator.evaluate

    def counting(self: FakeEvaluator, task: Any, made: Any, **rest: Any) -> Evaluation:
        seen.append(made.source.splitlines()[0])
        time.sleep(0.1 if "slow" in made.source else 0.0)
        return original(self, task, made, **rest)

    monkeypatch.setattr(FakeEvaluator, "evaluate", counting)
    return seen


def write(folder: Path, *texts: str) -> list[Path]:
    paths = [folder / f"c{index}.py" for index in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text + FAST)
    return paths


def test_the_same_text_is_judged_once(run: Run, reference: Path, tmp_path: Path, paid: list[str]) -> None:
    paths = write(tmp_path, "# speedup 2.0\n", "# speedup 2.0  \n", "# speedup 3.0\n")
    (tmp_path / "c1.py").write_text("# speedup 2.0  \n" + FAST + "\n\n")
    result = run("evaluate", reference, *paths, "--json", "--device", "cpu")
    first, copy, other, summary = lines(result)
    assert sorted(paid) == ["# speedup 2.0", "# speedup 3.0"]
    assert [line["path"] for line in (first, copy, other)] == [str(path) for path in paths]
    assert (first["verdict_from"], copy["verdict_from"], other["verdict_from"]) == ("measured", "same text", "measured")
    assert copy["record"] == first["record"] and summary["evaluated"] == 3
    told = run("evaluate", reference, *paths, "--device", "cpu")
    assert f"same text as {paths[0]}" in told.stdout and told.stdout.count("known, from the archive") == 2
    assert len(paid) == 2


def test_a_blank_inside_a_line_is_another_text() -> None:
    assert normalised("a = 1 \r\nb = 2\n\n") == normalised("a = 1\nb = 2")
    assert normalised("a  = 1") != normalised("a = 1") and normalised("  a") != normalised("a")


def test_lines_keep_the_order_asked_and_progress_that_of_the_answers(
    run: Run, reference: Path, tmp_path: Path, paid: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cuda_l1.api.pool.default_size", lambda devices, on_gpu: 2)
    paths = write(tmp_path, "# slow\n", "# speedup 2.0\n")
    result = run("evaluate", reference, *paths, "--json", "--device", "cpu")
    assert [line["path"] for line in lines(result)[:-1]] == [str(path) for path in paths]
    told = [line for line in result.stderr.splitlines() if line.startswith("[")]
    assert told[0].startswith(f"[1/2] {paths[1]}: ACCEPTED 2.00x")
    assert told[1].startswith(f"[2/2] {paths[0]}: ACCEPTED 1.00x")


def test_what_takes_a_compiler_is_begun_first(run: Run, reference: Path, tmp_path: Path, paid: list[str]) -> None:
    others = [f"# slow {index}\n" for index in range(3)]
    paths = write(tmp_path, *others, "# uses load_inline\n")
    assert run("evaluate", reference, *paths, "--device", "cpu").exit_code == 0
    # Two evaluators may begin at the same moment, in either order.
    assert "# uses load_inline" in paid[:2] and len(paid) == 4


def test_ctrl_c_keeps_what_is_finished(run: Run, reference: Path, tmp_path: Path, paid: list[str]) -> None:
    paths = write(tmp_path, "# speedup 2.0\n", "# raise KeyboardInterrupt\n# slow\n")
    result = run("evaluate", reference, *paths, "--json", "--device", "cpu")
    assert result.exit_code == 130 and "kept in the archive" in result.stderr
    paid.clear()
    again = run("evaluate", reference, paths[0], "--json", "--device", "cpu")
    assert lines(again)[0]["verdict_from"] == "archive" and not paid


def test_evaluators_work_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuda_l1.evaluator.Evaluator", FakeEvaluator)
    together = threading.Barrier(3, timeout=10.0)
    with EvaluatorPool(EvaluatorSettings(device="cpu"), size=3) as pool:
        jobs = [Job(number, "task", "") for number in range(3)]
        found = {job.work: result for job, result in pool.run(jobs, lambda evaluator, work: together.wait() >= 0)}
    assert found == {0: True, 1: True, 2: True}


def test_an_evaluator_stays_with_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuda_l1.evaluator.Evaluator", FakeEvaluator)
    together = threading.Barrier(2, timeout=10.0)
    served: dict[int, set[int]] = {}

    def do(evaluator: Any, work: int) -> None:
        served.setdefault(id(evaluator), set()).add(work // 2)
        together.wait()

    with EvaluatorPool(EvaluatorSettings(device="cpu"), size=2) as pool:
        list(pool.run([Job(work, f"task {work // 2}", "") for work in range(4)], do))
    assert sorted(map(sorted, served.values())) == [[0], [1]]


def test_an_evaluator_goes_on_with_its_task_in_the_next_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuda_l1.evaluator.Evaluator", FakeEvaluator)
    together = threading.Barrier(2, timeout=10.0)
    served: dict[int, list[str]] = {}

    def do(evaluator: Any, task: str) -> None:
        served.setdefault(id(evaluator), []).append(task)
        together.wait()

    with EvaluatorPool(EvaluatorSettings(device="cpu"), size=2) as pool:
        for order in ("ab", "ba", "ba"):
            list(pool.run([Job(task, task, task) for task in order], do))
    assert sorted(served.values()) == [["a"] * 3, ["b"] * 3]


def test_the_first_fault_ends_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted = threading.Event()

    class Waiting(FakeEvaluator):
        def interrupt(self) -> None:
            interrupted.set()

    def do(evaluator: Any, work: int) -> None:
        if work:
            raise OSError("no space")
        assert interrupted.wait(10.0)

    monkeypatch.setattr("cuda_l1.evaluator.Evaluator", Waiting)
    with pytest.raises(OSError, match="no space"), EvaluatorPool(EvaluatorSettings(device="cpu"), size=2) as pool:
        list(pool.run([Job(0, "task", ""), Job(1, "task", "")], do))
    assert interrupted.is_set()


@pytest.mark.e2e
@pytest.mark.timeout(300)
def test_an_interrupted_batch_goes_on(tmp_path: Path) -> None:
    (tmp_path / "ref.py").write_text(REFERENCE)
    text = "import torch\nimport time\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
    paths = [tmp_path / f"c{number}.py" for number in range(4)]
    for number, path in enumerate(paths):
        path.write_text(f"# {number}\n{text}        time.sleep(0.005)\n        return x.clamp_min(0)\n")
    words = [sys.executable, "-m", "cuda_l1.cli", "evaluate", "ref.py", *(path.name for path in paths)]
    words += ["--protocol", "screen", "--device", "cpu", "--json", "--archive", "a.sqlite"]
    place = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    process = subprocess.Popen(
        words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=place
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("[2/4]"):
            process.send_signal(signal.SIGINT)
            break
    told = process.communicate(timeout=60)[1]
    assert process.returncode == 130 and "Traceback" not in told and "kept in the archive" in told
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env=place, timeout=200)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line.get("path") for line in found[:-1]] == [path.name for path in paths], done.stderr
    assert sum(line["verdict_from"] == "archive" for line in found[:-1]) in (2, 3)
