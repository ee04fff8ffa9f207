"""What is collected for a run: its training and validation tasks, and never one that it is evaluated on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from training_fakes import row, write_rows

from cuda_l1.api import training_data
from cuda_l1.api.collecting import Choice, choose, read_source
from cuda_l1.api.training import _start, prepare_data
from cuda_l1.archive import Archive
from cuda_l1.errors import UsageError
from cuda_l1.tasks.evaluation_suites import evaluation_tasks
from cuda_l1.tasks.synth import split_of_task
from cuda_l1.training.data import read_facts
from cuda_l1.training.kept_lessons import lessons_for
from cuda_l1.training.model_card import describe
from cuda_l1.training.recipe import Recipe, recipe_from
from cuda_l1.training.run_directory import RunDirectory
from cuda_l1.training.task_sets import load_task_sets
from cuda_l1.types import Task

OWN = "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return {}\n"
FUNCTIONS = ("relu", "tanh", "sigmoid", "sin", "cos", "exp", "abs", "erf")


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Files of a user's own, some of which a run holds out."""
    (tmp_path / "own").mkdir()
    for outer in FUNCTIONS:
        for inner in FUNCTIONS:
            text = OWN.format(f"torch.{outer}(torch.{inner}(x))")
            (tmp_path / "own" / f"{outer}_{inner}.py").write_text(
                f"{text}\n\ndef get_inputs():\n    return [torch.randn(4)]\n\n\ndef get_init_inputs():\n    return []\n"
            )
    return str(tmp_path / "own")


def prepared(recipe: Recipe, archive: Archive, monkeypatch: pytest.MonkeyPatch) -> tuple[RunDirectory, list[Task]]:
    """A run with its data, and the tasks that were collected from."""
    collected: list[Task] = []

    def collect(run: RunDirectory, chosen: Sequence[Choice], *rest: Any) -> None:
        collected.extend(choice.task for choice in chosen)

    monkeypatch.setattr(training_data, "_collect", collect)
    run = RunDirectory.create(recipe, resume=False)
    training_data.prepare(run, training_data.plan(recipe), archive, lambda event: None)
    return run, collected


@pytest.mark.parametrize("allow_overlap", [False, True])
@pytest.mark.parametrize("suite", ["own", "synth:0:60"])
def test_no_suites_held_out_tasks_are_collected(
    tmp_path: Path, archive: Archive, folder: str, suite: str, allow_overlap: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = {"tasks": [folder if suite == "own" else suite], "allow_overlap": allow_overlap}
    recipe = recipe_from({"run_dir": str(tmp_path / "run"), "data": data, "evaluation": {"device": "cpu"}}, "a test")
    sets = load_task_sets(recipe, "cpu")
    run, collected = prepared(recipe, archive, monkeypatch)
    assert sets.held_out and sets.validation
    assert {task.sha for task in collected} == {task.sha for task in (*sets.train, *sets.validation)}
    facts = read_facts(run)
    assert facts is not None and facts.left_out == len(sets.held_out) + (0 if allow_overlap else len(sets.overlapping))


def test_held_out_tasks_of_a_data_set_are_counted_as_left_out(
    tmp_path: Path, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row(1), row(2, task="v", split="validation"), row(3, task="h", split="held-out")]
    examples = [str(write_rows(tmp_path / "rows", rows))]
    recipe = recipe_from({"run_dir": str(tmp_path / "run"), "data": {"examples": examples}}, "a test")
    run, _ = prepared(recipe, archive, monkeypatch)
    facts = read_facts(run)
    assert facts is not None and (facts.tasks, facts.left_out) == (2, 1)
    (run.path / "data.json").write_text('{"sources": [')
    with pytest.raises(UsageError, match=r"data\.json: damaged \(.*\); delete it, and --resume"):
        read_facts(run)


@pytest.mark.parametrize("base", [None, "models/Base-7B"])
def test_a_card_says_what_of_its_contamination_nobody_knows(
    tmp_path: Path, archive: Archive, monkeypatch: pytest.MonkeyPatch, base: str | None
) -> None:
    pytest.importorskip("trl", reason="a card names its version")
    examples = [str(write_rows(tmp_path / "rows", [row(1)]))]
    values = {"run_dir": str(tmp_path / "run"), "data": {"examples": examples}, "model": {"path": base}}
    run, _ = prepared(recipe_from(values, "a test"), archive, monkeypatch)
    describe(run.path, run, "sft", start=Path(base or run.start), figures={})
    card = (run.path / "README.md").read_text()
    assert "1 task from rows; 0 left out" in card and "1 right variant of 1 task:" in card
    assert "None of what it was trained on here is among them." in card
    assert ("What `Base-7B` had learned from before was not compared." in card) == (base is not None)


def test_collect_without_training_leaves_out_what_the_generator_holds_out_alone(folder: str) -> None:
    known, _ = evaluation_tasks((), "cpu")
    own, synth = read_source(folder, device="cpu"), read_source("synth:0:60", device="cpu")
    chosen, left_out = choose([own, synth], known, allow_overlap=False)
    assert {choice.task.suite for choice in chosen if split_of_task(choice.task) == "held-out"} == {"file"}
    assert left_out.held_out and all("is held out by the generator" in line for line in left_out.held_out)
    chosen, left_out = choose([synth], known, allow_overlap=True)
    named = {choice.task.sha for choice in chosen if choice.overlaps == "held out by the generator"}
    assert named == {task.sha for task in synth.tasks if split_of_task(task) == "held-out"} and not left_out.lines


def test_data_is_made_where_no_policy_can_be_trained_and_goes_on_elsewhere(
    tmp_path: Path, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recipe for a GPU, prepared here; where it is trained the device and its threads may be others, until it has
    weights."""
    values = {
        "run_dir": str(tmp_path / "run"),
        "data": {"tasks": [folder]},
        "evaluation": {"device": "cpu", "cores": 1},
        "run": {"device": "cuda", "threads": 1000},
    }
    lanes: list[int] = []

    def collect(run: RunDirectory, chosen: Sequence[Choice], archive: Archive, on_event: Any, threads: int) -> None:
        lanes.append(threads)
        write_rows(run.data, [row(1), row(2), row(3, task="v", split="validation")])

    monkeypatch.setattr(training_data, "_collect", collect)
    said: list[str] = []
    path = prepare_data(recipe_from(values, "a test"), resume=False, on_event=lambda event: said.append(event.text))
    assert path == tmp_path / "run" and lanes in ([0], [1])
    assert said[-1].endswith(" examples to learn from, as tokens")
    elsewhere = recipe_from({**values, "run": {"device": "cpu", "threads": 2}}, "a test")
    assert read_facts(RunDirectory.create(elsewhere, resume=False, stages=["sft"])) is not None
    kept = {file: file.stat().st_mtime_ns for file in (path / "lessons").iterdir()}
    lessons_for(elsewhere, RunDirectory(path, elsewhere), _start("sft", RunDirectory(path, elsewhere)))
    assert len(kept) == 2 and kept == {file: file.stat().st_mtime_ns for file in (path / "lessons").iterdir()}
    with pytest.raises(UsageError, match=r"run\.device cuda, now cpu"):
        RunDirectory.create(elsewhere, resume=True)


def test_what_was_written_under_other_names_stays_so(tmp_path: Path, folder: str) -> None:
    """`other_names` is a key of stage 1, and of what techniques have written before."""
    values = {"run_dir": str(tmp_path / "run"), "data": {"tasks": [folder]}, "evaluation": {"device": "cpu"}}
    path = RunDirectory.create(recipe_from(values, "a test"), resume=False).path
    others = recipe_from({**values, "sft": {"other_names": 0.5}}, "a test")
    with RunDirectory.create(others, resume=False).alone():
        pass
    (path / "unjudged").mkdir()
    with pytest.raises(UsageError, match=r"sft\.other_names"):
        RunDirectory.create(recipe_from(values, "a test"), resume=True)
