"""Stage 2 with a real model of random weights whose tokens are programs, and an evaluator that reads their fate."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from judge_fakes import TASKS, FakeEvaluator, evaluation

from cuda_l1.archive import Archive
from cuda_l1.config import PromptFormat
from cuda_l1.errors import InfrastructureError, UsageError
from cuda_l1.proposers.policy.checkpoint import write_format
from cuda_l1.training import self_supervised
from cuda_l1.training.judging import Judgement, Judging
from cuda_l1.training.recipe import Recipe, recipe_from
from cuda_l1.training.replies import Grader, Scored, Written
from cuda_l1.training.run_directory import RunDirectory
from cuda_l1.training.sections import EvaluationSection, SelfSupervisedSection
from cuda_l1.training.self_supervised import Asked, best_of, by_level, is_flat, lessons
from cuda_l1.training.stages import Event, Surroundings
from cuda_l1.training.task_sets import TaskSets
from cuda_l1.training.tracking import track
from cuda_l1.types import Candidate, Prompt, Task
from small_policy import save_policy

pytest.importorskip("trl", reason="needs transformers and trl")
VALIDATION = Task(suite="synth", name="checked", source="class Model: # checked\n    pass")
REPLIES = [f"```python\nclass ModelNew: {fate}\n```\n" for fate in ("speed=0.5", "speed=1.5", "speed=2.5", "wrong=1")]
SETS = TaskSets(tuple(TASKS), (VALIDATION,), (), ())


@pytest.fixture(autouse=True)
def without_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_supervised, "load_task_sets", lambda recipe, device: SETS)
    monkeypatch.setattr(self_supervised, "describe", lambda folder, *_, **__: write_format(folder, PromptFormat()))


def recipe_of(folder: Path, **section: Any) -> Recipe:
    own = {
        "rounds": 2,
        "samples": 16,
        "tasks": 3,
        "batch": 4,
        "learning_rate": 3e-3,
        "epochs": 4,
        "patience": 9,
        **section,
    }
    return recipe_from(
        {
            "run_dir": str(folder),
            "self_supervised": own,
            "sft": {"max_length": 1024, "exemplars": 1},
            "generation": {"max_new_tokens": 6, "batch": 24},
            "run": {"device": "cpu"},
            "evaluation": {"device": "cpu"},
        },
        "a test",
    )


class Stopping(FakeEvaluator):
    """Is interrupted at the verdict of this number."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self._at = at

    def evaluate(self, *asked: Any, **more: Any) -> Any:
        if len(self.paid) == self._at:
            self._at = -1
            raise KeyboardInterrupt
        return super().evaluate(*asked, **more)


def trained(
    folder: Path, start: Path, evaluator: FakeEvaluator, *, resume: bool = False, **section: Any
) -> list[Event]:
    """Runs the stage; what it said."""
    recipe = recipe_of(folder, **section)
    run = RunDirectory.create(recipe, resume=resume, stages=["self"])
    with Archive.open(folder / "archive.sqlite") as archive:
        around = Surroundings(archive, lambda: nullcontext([evaluator]))
        final = self_supervised.run(recipe, run, start=start, surroundings=around, on_event=lambda event: None)
    assert final == run.stage("self").final and (final / "prompt_format.json").is_file()


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "self" / f"{name}.jsonl").read_text().splitlines()]


def test_the_share_of_right_replies_rises_and_nothing_is_learned_from_validation(tmp_path: Path) -> None:
    evaluator = FakeEvaluator()
    wrong = [f"```python\nclass ModelNew: wrong={number}\n```\n" for number in range(5)]
    start = save_policy(
        tmp_path / "start", replies=[*REPLIES, *wrong]
    )  # it knows how to end a reply, not which is right
    trained(tmp_path / "run", start, evaluator, epochs=8)
    metrics = rows(tmp_path / "run", "metrics")
    assert [row["round"] for row in metrics] == [0, 1, 2]
    assert metrics[-1]["validation_pass_rate"] > metrics[0]["validation_pass_rate"] + 0.3
    assert metrics[0]["train_pass_rate_level_none"] == metrics[0]["train_pass_rate"]
    with Archive.open(tmp_path / "run" / "archive.sqlite") as archive:
        judged = [record.candidate.id for record in archive.records()]
    assert len(judged) == len(set(judged)) == len(evaluator.paid), "a verdict was paid for twice"
    assert list((tmp_path / "run" / "self" / "runs").glob("events*")), "TensorBoard has no rates to show"
    learnt = {row["task"] for row in rows(tmp_path / "run", "samples") if row["split"] == "train"}
    assert VALIDATION.id not in learnt and len(learnt) == 3


def test_every_round_is_validated_with_the_questions_of_the_first(tmp_path: Path) -> None:
    trained(tmp_path / "run", save_policy(tmp_path / "start", replies=REPLIES), FakeEvaluator(), samples=8)
    asked = {
        row["name"]: [q["prompt"]["exemplars"] for q in row["questions"]] for row in rows(tmp_path / "run", "prompts")
    }
    assert set(asked) == {"0 train", "0 validation", "1 train"} and any(asked["1 train"])
    assert not any(asked["0 validation"]), "what it wrote itself would be a hint"
    replies = [row["name"] for row in rows(tmp_path / "run", "replies") if "validation" in row["name"]]
    assert replies == [f"{number} validation" for number in range(3) for _ in range(8)]


def test_a_tracker_hears_of_the_rates_of_each_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunDirectory(tmp_path, recipe_of(tmp_path))
    track(run, "self", 3, {"validation_pass_rate": 0.25, "train_pass_rate_level_1": 1.0, "split": "train"})
    (file,) = (tmp_path / "self" / "runs").glob("events.out.tfevents*")
    assert b"self/validation_pass_rate" in file.read_bytes() and b"level_1" in file.read_bytes()
    said: list[dict[str, float]] = []
    fake = SimpleNamespace(init=lambda **given: said.append(given), log=said.append, finish=lambda: None)
    monkeypatch.setitem(sys.modules, "wandb", fake)
    monkeypatch.setattr("cuda_l1.training.tracking.trackers", lambda recipe: ["wandb"])
    track(run, "self", 3, {"rate": 0.5})
    assert said[1] == {"self/rate": 0.5}


def test_an_interrupted_run_goes_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    start = save_policy(tmp_path / "start", replies=REPLIES)
    trained(tmp_path / "whole", start, FakeEvaluator(), samples=8, rounds=1)
    broken = Stopping(at=6)
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "broken", start, broken, samples=8, rounds=1)
    trained(tmp_path / "broken", start, broken, resume=True, samples=8, rounds=1)
    once = [(row["round"], row["split"], row["reply"], row["outcome"]) for row in rows(tmp_path / "whole", "samples")]
    again = [(row["round"], row["split"], row["reply"], row["outcome"]) for row in rows(tmp_path / "broken", "samples")]
    assert once == again
    weights = [(tmp_path / name / "self" / "final" / "model.safetensors").read_bytes() for name in ("whole", "broken")]
    assert weights[0] == weights[1]
    assert len(rows(tmp_path / "broken", "replies")) == len(rows(tmp_path / "whole", "replies"))


def test_without_a_right_reply_there_is_nothing_to_learn_from(tmp_path: Path) -> None:
    class Strict(FakeEvaluator):
        def evaluate(self, task: Task, candidate: Candidate, **more: Any) -> Any:
            return evaluation(candidate.model_copy(update={"source": "wrong"}))

    with pytest.raises(UsageError, match=r"none of the replies of round 0 is executable and right.*stage 1 longer"):
        trained(tmp_path / "run", save_policy(tmp_path / "start", replies=REPLIES), Strict())


def test_a_machine_that_fails_for_all_candidates_teaches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(FakeEvaluator):
        def evaluate(self, *asked: Any, **more: Any) -> Any:
            raise InfrastructureError("the device is gone")

    monkeypatch.setattr("cuda_l1.search.verdicts.RETRY_PAUSE_S", 0.0)
    start = save_policy(tmp_path / "start", replies=REPLIES)
    with pytest.raises(InfrastructureError, match=r"failed for all \d+ candidates of round 0 \(the device is gone"):
        trained(tmp_path / "run", start, Broken())
    assert not (tmp_path / "run" / "self" / "round-0").exists()


def test_the_stage_ends_where_nothing_is_gained_and_keeps_the_best_round() -> None:
    section = SelfSupervisedSection(patience=2, min_gain=0.01)
    assert not is_flat([0.1, 0.1], section) and is_flat([0.1, 0.1, 0.1], section)
    assert not is_flat([0.1, 0.1, 0.2], section) and is_flat([0.5, 0.3, 0.505], section)
    assert best_of([0.1, 0.3, 0.3, 0.2]) == 2


def test_a_variant_is_learned_once_whatever_its_formatting(tmp_path: Path) -> None:
    fates = ("speed=2", "speed=2  # again", "speed=3", "wrong=1", "suspect=speed=2")
    asked = [
        Written(
            task, Prompt(system="s", user=str(n), template="t@1"), f"```python\nclass ModelNew: {fate}\n```\n", True, 5
        )
        for task in TASKS[:2]
        for n, fate in enumerate(fates)
    ]
    with Archive.open(tmp_path / "a.sqlite") as archive:
        judge = Judging([FakeEvaluator()], archive=archive, run="r", within_s=60)
        found = lessons(Asked(asked, Grader(judge, EvaluationSection(), "one-shot", model="m")(asked)))
    assert [lesson.prompt.user for lesson in found] == ["0", "2", "0", "2"]


def test_levels_are_counted_apart() -> None:
    def one(level: int | None, right: bool) -> tuple[Written, Scored]:
        task = Task(suite="s", name="n", source="class Model: ...", level=level)
        judgement = Judgement(None) if not right else None
        reply = Written(task, Prompt(system="", user="", template="t"), "", True, 1)
        return reply, Scored(1.0 if right else 0.0, right, None, judgement)

    pairs = [one(1, True), one(1, False), one(2, True), one(None, False)]
    asked = Asked([reply for reply, _ in pairs], [scored for _, scored in pairs])
    assert dict(by_level(asked)) == {"level_1": 0.5, "level_2": 1.0, "level_none": 0.0}
