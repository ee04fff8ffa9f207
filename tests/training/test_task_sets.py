"""Which tasks a recipe learns from, chooses with and evaluates with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cuda_l1.errors import UsageError
from cuda_l1.tasks import load_task
from cuda_l1.tasks.synth import split_of_task
from cuda_l1.training.recipe import Recipe, recipe_from
from cuda_l1.training.task_sets import load_task_sets

OWN = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return {body}


def get_inputs():
    return [torch.randn(4, 4)]


def get_init_inputs():
    return []
"""


def recipe(evaluation: dict[str, Any] | None = None, **data: Any) -> Recipe:
    return recipe_from({"run_dir": "run", "data": data, "evaluation": evaluation or {}}, "a test")


def write(folder: Path, *bodies: str) -> str:
    """A folder of tasks, each with such a forward."""
    for number, body in enumerate(bodies):
        (folder / f"t{number}.py").write_text(OWN.format(body=body))
    return str(folder)


def test_the_splits_share_no_task_and_no_graph(tmp_path: Path) -> None:
    functions = ("relu", "tanh", "sigmoid", "sin", "cos", "exp", "abs", "erf")
    bodies = [f"torch.{outer}(torch.{inner}(x))" for outer in functions for inner in functions if outer != inner]
    folder = write(tmp_path, *bodies)
    sets = load_task_sets(recipe(tasks=(folder, folder)), "cpu")
    splits = {"train": sets.train, "validation": sets.validation, "held-out": sets.held_out}
    shas = [task.sha for tasks in splits.values() for task in tasks]
    assert all(splits.values()) and len(set(shas)) == len(shas) == len(bodies) - len(sets.overlapping)
    assert all(split_of_task(task) == name for name, tasks in splits.items() for task in tasks)
    assert len(sets.train) > len(sets.held_out)


def test_a_task_of_an_evaluation_suite_is_in_no_split_unless_it_is_allowed(tmp_path: Path) -> None:
    write(tmp_path, "torch.sinh(x) + torch.atan(x)")
    (tmp_path / "renamed.py").write_text("# another text\n" + load_task("diagonal_matmul").source)
    sets = load_task_sets(recipe(tasks=(str(tmp_path),)), "cpu")
    (line,) = sets.overlapping
    assert "renamed" in line and "diagonal_matmul" in line
    assert [task.name.rpartition("/")[2] for task in (*sets.train, *sets.validation, *sets.held_out)] == ["t0"]
    allowed = load_task_sets(recipe(tasks=(str(tmp_path),), allow_overlap=True), "cpu")
    assert len(allowed.train) == 2 and allowed.overlapping == sets.overlapping


def test_numbers_do_not_move_a_task_to_another_split(tmp_path: Path) -> None:
    write(tmp_path, *(f"torch.relu(torch.sin(torch.cos(x))) * {number}.5" for number in range(2, 7)))
    sets = load_task_sets(recipe(tasks=(str(tmp_path),)), "cpu")
    assert sorted(map(len, sets[:3])) == [0, 0, 5]


def test_a_suite_that_the_run_is_evaluated_on_is_kept_away_from_training(tmp_path: Path) -> None:
    for name, number in (("mine", "2"), ("suite", "2.0")):
        (tmp_path / name).mkdir()
        write(
            tmp_path / name,
            f"torch.sinh(x) * {number}",
            *([] if name == "suite" else ["torch.sinh(x) + torch.atan(x)"]),
        )
    tasks, suite = str(tmp_path / "mine"), str(tmp_path / "suite")
    assert len(load_task_sets(recipe(tasks=[tasks]), "cpu").train) == 2
    sets = load_task_sets(recipe({"held_out_suites": [suite]}, tasks=[tasks]), "cpu")
    assert [task.name for task in sets.train] == ["t1"] and "file/t0: the same graph" in sets.overlapping[0]


def test_nothing_to_train_on_is_one_line() -> None:
    with pytest.raises(UsageError, match="names no tasks"):
        load_task_sets(recipe(), "cpu")
    with pytest.raises(UsageError, match="of 1, 1 belong to evaluation suites"):
        load_task_sets(recipe(tasks=("diagonal_matmul",)), "cpu")
