"""A training run's folder: made once, resumed on equality, whole checkpoints only."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_l1.errors import UsageError
from cuda_l1.training.recipe import Recipe
from cuda_l1.training.run_directory import RunDirectory, StageDirectory
from cuda_l1.training.sections import SftSection


def recipe(path: Path, **changes: object) -> Recipe:
    return Recipe(run_dir=str(path), **changes)


def test_a_run_is_made_opened_and_resumed(tmp_path: Path) -> None:
    made = RunDirectory.create(recipe(tmp_path / "run"), resume=False)
    assert RunDirectory.open(made.path).recipe == made.recipe
    assert RunDirectory.create(recipe(tmp_path / "run"), resume=True).name == made.name
    assert made.archive == str(tmp_path / "run" / "archive.sqlite")


def test_a_run_is_never_overwritten_or_mixed_with_another(tmp_path: Path) -> None:
    RunDirectory.create(recipe(tmp_path / "run", sft=SftSection(steps=3)), resume=False)
    RunDirectory.create(recipe(tmp_path / "run"), resume=False)  # nothing was done yet, so the recipe may change
    (tmp_path / "run" / "sft").mkdir()
    RunDirectory.create(recipe(tmp_path / "run"), resume=False, stages=["self"])
    with pytest.raises(UsageError, match="sft was begun there; give --resume"):
        RunDirectory.create(recipe(tmp_path / "run"), resume=False, stages=["sft", "self"])
    with pytest.raises(UsageError, match=r"other values \(sft\.steps \d+, now \d+\);"):
        RunDirectory.create(recipe(tmp_path / "run", sft=SftSection(steps=3)), resume=True)
    with pytest.raises(UsageError, match="no run there to resume"):
        RunDirectory.create(recipe(tmp_path / "none"), resume=True)
    with pytest.raises(UsageError, match="no training run"):
        RunDirectory.open(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("x")
    with pytest.raises(UsageError, match="holds something else"):
        RunDirectory.create(recipe(tmp_path / "full"), resume=False)


def test_the_latest_whole_checkpoint_counts(tmp_path: Path) -> None:
    stage = StageDirectory(tmp_path / "sft")
    assert stage.checkpoint() is None and not stage.is_done
    for number, state in ((9, "{}"), (10, "{}"), (100, None), (101, '{"step": 1')):
        (stage.path / f"checkpoint-{number}").mkdir(parents=True)
        if state is not None:
            (stage.path / f"checkpoint-{number}" / "trainer_state.json").write_text(state)
    assert stage.checkpoint() == stage.path / "checkpoint-10"


def test_lines_survive_one_that_a_kill_has_torn(tmp_path: Path) -> None:
    stage = StageDirectory(tmp_path / "sft")
    stage.append("metrics", {"step": 1})
    with (stage.path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 2, "lo')
    stage.append("metrics", {"step": 3})
    assert list(stage.rows("metrics")) == [{"step": 1}, {"step": 3}]
    assert list(stage.rows("samples")) == []


def test_a_run_that_was_killed_before_its_recipe_was_whole_is_begun_again(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.partial").write_text("run_d")
    assert RunDirectory.create(recipe(tmp_path / "run"), resume=False).path == tmp_path / "run"
    assert [each.name for each in (tmp_path / "run").iterdir()] == ["recipe.toml"]


def test_two_commands_do_not_train_in_one_folder(tmp_path: Path) -> None:
    first, second = (RunDirectory.create(recipe(tmp_path / "run"), resume=False) for _ in range(2))
    with first.alone(), pytest.raises(UsageError, match="another command trains there"), second.alone():
        pytest.fail("both have it")
    with second.alone():
        pass
    RunDirectory.create(recipe(tmp_path / "run", sft=SftSection(steps=3)), resume=False)  # nothing was done yet
