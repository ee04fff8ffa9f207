"""What stage 1 reads is made once, and again where it would be something else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from training_fakes import row, write_rows

pytest.importorskip("trl", reason="needs transformers and TRL")

from cuda_l1.training import kept_lessons
from cuda_l1.training.examples import Row
from cuda_l1.training.kept_lessons import Lessons, lessons_for
from cuda_l1.training.policy_model import train_tokenizer
from cuda_l1.training.recipe import Recipe
from cuda_l1.training.run_directory import RunDirectory

Make = Callable[..., Recipe]
ROWS = [*(row(number) for number in range(1, 5)), row(9, task="v", split="validation")]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows lessons were made of, each time."""
    counts: list[int] = []

    def counting(rows: list[Row], recipe: Recipe, folder: Path) -> object:
        counts.append(len(rows))
        return whole(rows, recipe, folder)

    whole = kept_lessons.lessons_of
    monkeypatch.setattr(kept_lessons, "lessons_of", counting)
    return counts


@pytest.fixture
def start(tmp_path: Path) -> Path:
    train_tokenizer(["class ModelNew(Model): pass"], 300, 4096).save_pretrained(tmp_path / "policy")
    return tmp_path / "policy"


def lessons(tmp_path: Path, recipe: Make, start: Path, rows: list[Row] = ROWS, **sft: object) -> Lessons:
    chosen = recipe(tmp_path / "run", sft={"exemplars": 1, **sft})
    chosen = chosen.model_copy(
        update={"data": chosen.data.model_copy(update={"examples": [str(write_rows(tmp_path / "rows", rows))]})}
    )
    return lessons_for(chosen, RunDirectory(tmp_path / "run", chosen), start)


def as_lists(found: Lessons) -> list[object]:
    return [getattr(each.tokens, name).tolist() for each in found[:2] for name in ("ids", "lengths", "given")] + [
        (each.shown, each.tokens.fits, each.tokens.longest) for each in found[:2]
    ]


def test_they_are_made_once(tmp_path: Path, recipe: Make, start: Path, made: list[int]) -> None:
    first = lessons(tmp_path, recipe, start)
    again = lessons(tmp_path, recipe, start, steps=77, learning_rate=1e-5)
    assert made == [4, 1] and as_lists(first) == as_lists(again)
    assert first.asked == again.asked and first.asked[0].row.split == "validation"


def test_what_would_be_others_now_is_made_again(tmp_path: Path, recipe: Make, start: Path, made: list[int]) -> None:
    lessons(tmp_path, recipe, start)
    lessons(tmp_path, recipe, start, exemplars=0)
    assert made == [4, 1, 4, 1]
    lessons(tmp_path, recipe, start, exemplars=0, rows=[*ROWS, row(5)])
    assert made == [4, 1, 4, 1, 5]
    train_tokenizer(["def forward(self, x): return x"], 290, 4096).save_pretrained(tmp_path / "other")
    lessons(tmp_path, recipe, tmp_path / "other", exemplars=0, rows=[*ROWS, row(5)])
    assert made == [4, 1, 4, 1, 5, 5, 1]
    assert len(list((tmp_path / "run" / "lessons").iterdir())) == 2


@pytest.mark.parametrize("kept", [0, 100, -1])
def test_what_a_disk_has_cut_short_is_made_again(
    tmp_path: Path, recipe: Make, start: Path, made: list[int], kept: int
) -> None:
    first = lessons(tmp_path, recipe, start)
    for file in (tmp_path / "run" / "lessons").iterdir():
        file.write_bytes(file.read_bytes()[:kept])
    assert as_lists(lessons(tmp_path, recipe, start)) == as_lists(first) and made == [4, 1, 4, 1]
