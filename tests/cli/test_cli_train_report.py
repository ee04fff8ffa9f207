"""`train report`, `train evaluate`, and stage 2 as a command: what is shown of a run, and what cannot be."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_fakes import lines
from typer.testing import Result

from cuda_l1.training.recipe import as_toml, recipe_from
from cuda_l1.training.run_directory import RunDirectory, StageDirectory

Run = Callable[..., Result]
HELD_OUT = {
    "policy": "self/final", "policy_sha": "ab", "tasks": 4, "replies": 8, "pass_rate": 0.5, "tasks_solved": 0.75,
    "tasks_faster": 0.25, "speedup_best_of_task": 1.31, "left_out": 0,
}  # fmt: skip
FIGURES = {name: HELD_OUT[name] for name in list(HELD_OUT)[2:]}


@pytest.fixture
def trained(tmp_path: Path) -> RunDirectory:
    """A run with logs of two stages."""
    recipe = recipe_from({"run_dir": str(tmp_path / "out"), "run": {"device": "cpu"}}, "a test")
    directory = RunDirectory.create(recipe, resume=False, stages=["sft"])
    for step, loss in enumerate((3.0, 2.0, 2.5), start=1):
        directory.stage("sft").append("metrics", {"step": step, "loss": loss, "seconds": 1.0})
    directory.stage("self").append("metrics", {"step": 0, "round": 0, "rate": 0.25, "train_pass_rate": 0.25})
    for number in range(2):
        StageDirectory(directory.path / "self" / f"round-{number}").append("metrics", {"step": 1, "loss": 1.0 - number})
    return directory


def test_curves_are_a_page_a_table_and_lines(run: Run, trained: RunDirectory, tmp_path: Path) -> None:
    shown = run("train", "report", trained.path)
    assert shown.exit_code == 0, shown.stderr
    (loss,) = [line.split() for line in shown.stdout.splitlines() if line.split()[:2] == ["sft", "loss"]]
    assert loss[2:] == ["3", "3", "2", "3", "2.5"]
    page = (trained.path / "report" / "index.html").read_text()
    assert page.index("<h2>sft</h2>") < page.index("<h2>self</h2>") and "Loss, all rounds" in page

    *curves, summary = lines(run("train", "report", trained.path, "--html", tmp_path / "page", "--json"))
    assert {"stage": "self", "figure": "loss", "points": [[1, 1.0], [2, 0.0]]}.items() <= curves[-1].items()
    assert summary["stages"] == ["sft", "self"] and summary["held_out"] is None
    assert (tmp_path / "page" / "index.html").is_file()


def test_what_the_time_of_a_step_went_to_is_said(run: Run, trained: RunDirectory) -> None:
    for step, waited in enumerate((1.0, 3.0), start=1):
        times = {"generate_s": 2.0, "wait_s": waited, "train_s": 1.0, "step_s": 3.0 + waited}
        row = {
            "step": step,
            **times,
            "build_s": 0.5,
            "lease_s": 3.0,
            "evaluate_s": 4.0,
            "wait_share": waited / (3.0 + waited),
        }
        trained.stage("contrastive").append("metrics", row)
    line = (
        "contrastive: a step takes 5 s on average: generate 2 s, wait 2 s, train 1 s; the training waits 40% of it; "
        "evaluators together: build 0.5 s, lease 3 s, evaluate 4 s"
    )
    assert line in run("train", "report", trained.path).stdout.splitlines()
    assert lines(run("train", "report", trained.path, "--json"))[-1]["step_time"]["contrastive"]["wait_share"] == 0.4


def test_held_out_figures_stand_below_once_there_are_some(run: Run, trained: RunDirectory) -> None:
    (trained.path / "held-out").mkdir()
    (trained.path / "held-out" / "result.json").write_text(json.dumps(HELD_OUT))
    shown = run("train", "report", trained.path)
    assert "held-out, self/final: right 50% of 8 replies, tasks solved 75% of 4, faster 25%" in shown.stdout
    assert lines(run("train", "report", trained.path, "--json"))[-1]["held_out"] == HELD_OUT


def test_kinds_of_held_out_tasks_and_further_suites_have_lines_of_their_own(run: Run, trained: RunDirectory) -> None:
    (trained.path / "held-out").mkdir()
    kinds = {"unseen_pairs": {**FIGURES, "pass_rate": 0.25}, "unseen_graphs": {**FIGURES, "pass_rate": 1.0}}
    suites = {
        "builtin": {**FIGURES, "left_out": 36},
        "long": {"tasks": 0, "replies": 0, "left_out": 2},
        "broken": {"tasks": 0, "replies": 0, "unjudged_tasks": 1, "unjudged_replies": 8, "left_out": 0},
        "busy": {**FIGURES, "unjudged_tasks": 0, "unjudged_replies": 3},
    }
    (trained.path / "held-out" / "result.json").write_text(json.dumps({**HELD_OUT, **kinds, "suites": suites}))
    shown = " ".join(run("train", "report", trained.path).stdout.split())
    assert "pairs of operators that training never shows together: right 25% of 8 replies, tasks solved 75%" in shown
    assert "other graphs that training never shows: right 100% of 8 replies" in shown
    assert "builtin: right 50% of 8 replies, tasks solved 75% of 4, faster 25%, best of a task 1.31x" in shown
    assert "geometric mean); 36 tasks left out, since their questions do not fit into the policy's context" in shown
    assert "long: 2 tasks left out" in shown
    assert "broken: 8 more replies could not be judged, nor any to 1 more tasks busy: right 50%" in shown
    assert "1.31x (screen, geometric mean); 3 more replies could not be judged written:" in shown
    assert shown.count("could not be judged") == 2


@pytest.mark.parametrize("name", ["index.html", "style.css"])
def test_a_page_of_yours_is_not_lost(run: Run, trained: RunDirectory, tmp_path: Path, name: str) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / name).write_text("mine")
    done = run("train", "report", trained.path, "--html", "site")
    assert (done.exit_code, done.stderr.count("\n")) == (
        2,
        1,
    ) and f"site: holds {name} of something else" in done.stderr
    assert (tmp_path / "site" / name).read_text() == "mine"
    assert run("train", "report", trained.path, "--html", "other").exit_code == 0
    assert run("train", "report", trained.path, "--html", "other").exit_code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["report", "nowhere"], "no training run there"),
        (["report", "empty"], "no stage has logged anything yet"),
        (["evaluate", "nowhere"], "no training run there"),
        (["evaluate", "empty"], "no stage is finished"),
    ],
)
def test_a_run_without_that_is_one_line(run: Run, tmp_path: Path, words: list[str], said: str) -> None:
    RunDirectory.create(recipe_from({"run_dir": str(tmp_path / "empty")}, "a test"), resume=False, stages=["sft"])
    done = run("train", *words)
    assert (done.exit_code, said in done.stderr, done.stderr.count("\n")) == (2, True, 1), done.stderr


def test_stage_2_of_a_policy_that_writes_nonsense_says_so_after_its_first_round(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("trl", reason="needs transformers and TRL")
    import cuda_l1.training.model_card as cards
    from tiny_policy import make_checkpoint

    monkeypatch.setattr(cards, "rows_of", lambda recipe, run: [])
    (tmp_path / "task.py").write_text(TASK)
    values: dict[str, Any] = {
        "model": {"path": str(make_checkpoint(tmp_path / "start"))},
        "data": {"tasks": [str(tmp_path / "task.py")], "techniques": ["straight_line"]},
        "prompt": {"kind": "compact"},
        "self_supervised": {"samples": 4},
        "generation": {"max_new_tokens": 8},
    }
    values |= {"run_dir": "out", "run": {"device": "cpu"}, "evaluation": {"device": "cpu"}}
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(as_toml(recipe_from(values, "a test")))
    done = run("train", "self", recipe)
    assert done.exit_code == 2 and "none of the replies of round 0 is executable and right" in done.stderr
    (row,) = StageDirectory(tmp_path / "out" / "self").rows("metrics")
    assert row["train_pass_rate"] == 0.0 and row["train_invalid_replies"] == 1.0
    assert len(list(StageDirectory(tmp_path / "out" / "self").rows("samples"))) == 4


TASK = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(torch.sin(torch.cos(x)))


def get_inputs():
    return [torch.randn(4, 4)]


def get_init_inputs():
    return []
"""
