"""What techniques write for stage 1 and nobody judges."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cuda_l1.api.training_data import plan, prepare
from cuda_l1.api.unjudged import write_unjudged
from cuda_l1.archive import Archive
from cuda_l1.errors import InfrastructureError, TaskError
from cuda_l1.prelude import expanded
from cuda_l1.tasks import load_tasks
from cuda_l1.tasks.synth import split_of_task
from cuda_l1.training import examples
from cuda_l1.training.data import read_facts, rows_of, unjudged_of
from cuda_l1.training.examples import Row, examples_by
from cuda_l1.training.lessons import lessons_of, tokenized, tokenizer_in
from cuda_l1.training.policy_model import train_tokenizer
from cuda_l1.training.recipe import Recipe
from cuda_l1.training.run_directory import RunDirectory
from cuda_l1.training.side_processes import side_processes
from cuda_l1.training.stages import Event

Make = Callable[..., Recipe]
SPECS = ["synth:7:8", "synth:8:8"]
TECHNIQUES = ["straight_line", "in_place", "identities", "traced_loops"]


def written(run_dir: Path, recipe: Make, **sft: object) -> tuple[RunDirectory, list[Row], list[str]]:
    chosen = recipe(run_dir, data={"unjudged": SPECS, "techniques": TECHNIQUES}, sft=sft, evaluation={"device": "cpu"})
    run = RunDirectory(run_dir, chosen)
    said: list[Event] = []
    write_unjudged(run, said.append)
    return run, unjudged_of(run), [event.text for event in said]


@pytest.fixture(scope="module")
def spawned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Processes import torch: once is enough."""
    return tmp_path_factory.mktemp("unjudged") / "run"


def test_variants_of_training_tasks_are_written_once(spawned: Path, recipe: Make) -> None:
    run, rows, said = written(spawned, recipe)
    tasks = {task.sha: task for spec in SPECS for task in load_tasks(spec, device="cpu")}
    training = {sha for sha, task in tasks.items() if split_of_task(task) == "train"}
    assert {row.task_sha for row in rows} == training and training != set(tasks)
    assert all(row.split == "train" and row.speedup_eager is None for row in rows)
    assert {name for row in rows for name in row.techniques} >= {"straight_line", "in_place"}
    assert all(tasks[row.task_sha].source == row.reference and "class ModelNew" in row.variant for row in rows)
    assert len(rows) > len(training), "there are two of most tasks"
    assert len(said) == 1 + len(SPECS) and said[0].endswith("which nobody judges")
    before = {file: file.stat().st_mtime_ns for file in run.unjudged.rglob("*.parquet")}
    assert len(before) == len(SPECS)
    _, again, said = written(spawned, recipe)
    assert again == rows and not said
    assert before == {file: file.stat().st_mtime_ns for file in run.unjudged.rglob("*.parquet")}


def test_they_are_answers_that_say_so(spawned: Path, recipe: Make) -> None:
    run, rows, _ = written(spawned, recipe)
    judged = rows_of(run.recipe, run)
    lessons = list(examples_by(run.recipe, [*judged, *rows]))
    of_unjudged = [lesson for lesson in lessons if lesson.row.speedup_eager is None]
    assert len(of_unjudged) == len(rows)
    assert all("Nobody has measured it." in lesson.completion for lesson in of_unjudged)
    assert not any("Nobody has measured" in lesson.completion for lesson in lessons if lesson.row.speedup_eager)


def test_many_cores_make_the_same_examples(
    spawned: Path, tmp_path: Path, recipe: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, rows, _ = written(spawned, recipe, max_length=8192)
    judged = [row._replace(speedup_eager=1.5, candidate_id=f"judged {row.candidate_id}") for row in rows[:9]]
    train_tokenizer(["class ModelNew(Model): pass"], 300, 4096).save_pretrained(tmp_path)
    alone = lessons_of([*judged, *rows], run.recipe, tmp_path)
    assert alone.shown and alone.tokens.count
    monkeypatch.setattr(examples, "MANY", 2)
    many = lessons_of([*judged, *rows], run.recipe, tmp_path)
    assert (many.shown, many.tokens.fits) == (alone.shown, alone.tokens.fits)
    for name in ("ids", "lengths", "given"):
        assert getattr(many.tokens, name).tolist() == getattr(alone.tokens, name).tolist()


def test_a_process_that_dies_is_told() -> None:
    with pytest.raises(InfrastructureError, match=r"prepares data died.*--resume"), side_processes(1) as pool:
        pool.submit(os._exit, 3).result()


def test_where_one_fails_the_others_end() -> None:
    with pytest.raises(ZeroDivisionError), side_processes(2) as pool:
        failing = pool.submit(divmod, 1, 0)
        pool.submit(time.sleep, 600)
        failing.result()
    assert not multiprocessing.active_children()


def test_other_names_are_those_of_question_and_answer(tmp_path: Path, spawned: Path, recipe: Make) -> None:
    _, rows, _ = written(spawned, recipe)
    run, others, _ = written(tmp_path / "run", recipe, other_names=1.0)
    own = {row.candidate_id: row for row in rows}
    assert {row.candidate_id for row in others} == set(own)
    assert sum(row.reference != own[row.candidate_id].reference for row in others) > len(rows) / 2
    assert len({row.reference for row in others}) == len({row.task_sha for row in others}), (
        "one can be shown beside another"
    )
    for row in others:
        namespace: dict[str, object] = {"__name__": "renamed"}
        exec(compile(expanded(row.variant), "renamed", "exec"), namespace)
    assert [lesson.row.reference for lesson in examples_by(run.recipe, others)] == [row.reference for row in others]


def test_the_card_names_tasks_that_others_evaluate_on(tmp_path: Path, archive: Archive, recipe: Make) -> None:
    data = {"unjudged": ["builtin"], "techniques": TECHNIQUES, "allow_overlap": True}
    run = RunDirectory.create(recipe(tmp_path / "run", data=data, evaluation={"device": "cpu"}), resume=False)
    prepare(run, plan(run.recipe), archive, lambda event: None)
    rows, facts = unjudged_of(run), read_facts(run)
    assert rows and facts and facts.unjudged == len(rows)
    assert len(facts.overlapping) == facts.unjudged_tasks == len({row.task_sha for row in rows})
    assert all(any(text.startswith(row.task_id) for text in facts.overlapping) for row in rows)


def test_a_spec_that_is_none_is_said_before_anything_is_paid_for(
    tmp_path: Path, archive: Archive, recipe: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cuda_l1.api.training_data._collect", None)
    data = {"tasks": ["synth:0:3"], "unjudged": ["synth:x:3"]}
    run = RunDirectory.create(recipe(tmp_path / "run", data=data, evaluation={"device": "cpu"}), resume=False)
    with pytest.raises(TaskError, match="synth:x:3"):
        prepare(run, plan(run.recipe), archive, lambda event: None)
    assert not run.unjudged.exists(), "so the recipe may still be changed"


def test_what_is_too_long_beside_others_is_told_without_them(spawned: Path, tmp_path: Path, recipe: Make) -> None:
    train_tokenizer(["class ModelNew(Model): pass"], 300, 4096).save_pretrained(tmp_path)
    run, rows, _ = written(spawned, recipe, max_length=8192)
    made = list(examples_by(run.recipe, rows))
    lengths = tokenized(made, tokenizer_in(tmp_path), 100_000).lengths
    too_long = int(next(length for one, length in zip(made, lengths, strict=True) if one.exemplars))
    run, rows, _ = written(spawned, recipe, max_length=too_long - 1)
    fit = sum(tokenized(made, tokenizer_in(tmp_path), too_long - 1).fits)
    found = lessons_of(rows, run.recipe, tmp_path).tokens
    assert len(found.fits) == len(made) and fit < found.count == sum(found.fits)
