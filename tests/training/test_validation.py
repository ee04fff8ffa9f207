"""Stage 3 chooses among its checkpoints by tasks that nothing is learned from, and training does not notice."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs transformers and trl: pip install 'cuda-l1[train]'")

import ranks
import torch
from judge_fakes import TASKS, FakeEvaluator
from safetensors.torch import load_file

from cuda_l1.archive import Archive
from cuda_l1.training import contrastive
from cuda_l1.training.contrastive_trainer import ContrastiveTrainer
from cuda_l1.training.judging import Judgement, Judging
from cuda_l1.training.processes import ALONE, Processes
from cuda_l1.training.recipe import recipe_from
from cuda_l1.training.replies import Scored, Written
from cuda_l1.training.replying import ReplyingTrainer
from cuda_l1.training.run_directory import RunDirectory, StageDirectory
from cuda_l1.training.sections import ContrastiveSection
from cuda_l1.training.stages import Event
from cuda_l1.training.validation import is_over, score
from cuda_l1.types import Prompt, Task
from small_policy import save_policy

CHECKED = [Task(suite="synth", name=f"checked{n}", source=f"class Model: # checked {n}\n    pass") for n in range(3)]
SECTION = {"rounds": 6, "prompts": 2, "group": 4, "batch": 4, "learning_rate": 1e-2, "checkpoint_every": 3,
           "min_pass_rate": 0.0, "validate_by": "pass_rate",
           "validate_every": 2, "validation_tasks": 2, "validation_samples": 6}  # fmt: skip


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_policy(tmp_path_factory.mktemp("policy"))


class Killed(BaseException):
    """As SIGKILL leaves a run: nothing is tidied up."""


class Bench:
    """A stage in a folder of its own, as often as it is run."""

    def __init__(self, folder: Path, policy: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.policy, self.evaluator = folder, policy, FakeEvaluator()
        self.stage = StageDirectory(folder / "contrastive")
        self.checks = StageDirectory(folder / "contrastive" / "validation")
        self.events: list[Event] = []
        self.card: dict[str, float] = {}

    def train(
        self,
        tell: Callable[[Event], None] = lambda event: None,
        *,
        model: dict[str, Any] | None = None,
        keep: int = 9,
        processes: Processes = ALONE,
        **section: Any,
    ) -> dict[str, torch.Tensor]:
        values = {"contrastive": {**SECTION, **section}, "generation": {"max_new_tokens": 3, "batch": 5},
                  "model": model or {}, "run": {"device": "cpu", "keep_checkpoints": keep}}  # fmt: skip

        def on_event(event: Event) -> None:
            self.events.append(event)
            tell(event)

        def beside(folder: Path, figures: dict[str, float]) -> None:
            self.card = figures

        run = RunDirectory(self.folder, recipe_from({"run_dir": str(self.folder), **values}, "a test"))
        with Archive.open(self.folder / "archive.sqlite") if processes.is_main else nullcontext() as archive:
            judge = Judging([self.evaluator], archive=archive, run="run", within_s=60.0) if archive else None
            final = contrastive.train(run, TASKS, validation=CHECKED, start=self.policy, archive=archive, judge=judge,
                                      on_event=on_event, beside=beside, processes=processes)  # fmt: skip
        return load_file(final / "model.safetensors")

    def weights(self, step: int) -> dict[str, torch.Tensor]:
        return load_file(self.stage.path / f"checkpoint-{step}" / "model.safetensors")

    @property
    def validated(self) -> list[int]:
        return [row["step"] for row in self.stage.rows("metrics") if "validation_score" in row]

    @property
    def steps(self) -> list[int]:
        return [row["step"] for row in self.stage.rows("metrics") if "reward" in row]


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The scores of the validations to come, one after the other; a validation that is repeated takes one, too."""
    scores: list[float] = []
    monkeypatch.setattr("cuda_l1.training.validation.score", lambda *_: scores.pop(0))
    return scores


@pytest.mark.parametrize(("iterations", "lag"), [(1, 0), (2, 1)])
def test_what_is_learned_is_the_same_with_and_without_validation(
    tmp_path: Path, policy: Path, iterations: int, lag: int
) -> None:
    plain, checked = Bench(tmp_path / "plain", policy), Bench(tmp_path / "checked", policy)
    last = plain.train(validate_every=0, checkpoint_every=2, iterations=iterations, lag=lag)
    checked.train(checkpoint_every=2, iterations=iterations, lag=lag)
    assert same(last, plain.weights(6 * iterations)) and not plain.validated and not plain.checks.path.exists()
    assert checked.validated == [0, 2 * iterations, 4 * iterations, 6 * iterations]
    for step in checked.validated[1:]:
        assert same(plain.weights(step), checked.weights(step))
    learnt = {row["task"] for row in checked.stage.rows("samples")}
    assert learnt == {task.sha for task in TASKS}


def test_every_validation_asks_the_same_and_shows_nothing_that_was_written_since(bench: Bench) -> None:
    bench.train(rounds=5)
    assert bench.validated == [0, 2, 4, 5] and bench.steps == [1, 2, 3, 4, 5]
    assert sorted(path.name for path in bench.stage.path.glob("checkpoint-*")) == [
        f"checkpoint-{n}" for n in (2, 3, 4, 5)
    ]
    (asked,) = bench.checks.rows("prompts")
    tasks = [question["task"] for question in asked["questions"]]
    assert len(tasks) == 12 and set(tasks) == set(sorted(task.sha for task in CHECKED)[:2])
    assert not any(question["prompt"]["exemplars"] for question in asked["questions"])
    samples = list(bench.checks.rows("samples"))
    assert [row["step"] for row in samples] == [step for step in (0, 2, 4, 5) for _ in range(12)]
    row = next(row for row in bench.stage.rows("metrics") if "validation_score" in row and row["step"] == 2)
    first = [one for one in samples if one["step"] == 2]
    assert row["validation_score"] == pytest.approx(sum(one["right"] for one in first) / 12)
    assert row["validation_reward"] == pytest.approx(sum(one["reward"] for one in first) / 12)
    (tracked,) = bench.stage.path.glob("runs/*/events.out.tfevents*")
    assert b"eval/pass_rate" in tracked.read_bytes()


def test_the_best_checkpoint_is_kept_and_becomes_the_final_policy(bench: Bench, scored: list[float]) -> None:
    scored += [0.25, 0.5, 0.75, 0.25, 0.5]
    final = bench.train(rounds=8, keep=2)
    assert sorted(path.name for path in bench.stage.path.glob("checkpoint-*")) == ["checkpoint-4", "checkpoint-8"]
    assert same(final, bench.weights(4)) and not same(final, bench.weights(8))
    assert any("final is the policy of step 4" in event.text for event in bench.events)
    assert (bench.card["best_validation_step"], bench.card["best_validation_score"]) == (4, 0.75)
    said = [event.text for event in bench.events if "validation:" in event.text]
    assert ["best so far" in text for text in said] == [True, True, True, False, False]


@pytest.mark.parametrize("model", [{}, {"lora_rank": 4}])
def test_a_stage_that_makes_nothing_better_leaves_the_policy_that_it_began_with(
    bench: Bench, scored: list[float], model: dict[str, Any]
) -> None:
    scored += [0.75, 0.5, 0.25, 0.5]
    final = bench.train(model=model)
    assert same(final, load_file(bench.policy / "model.safetensors"))
    assert any("final is the policy that it began with" in str(event.figures.get("alarm")) for event in bench.events)
    assert (bench.card["best_validation_step"], bench.card["best_validation_score"]) == (0, 0.75)


@pytest.mark.parametrize("model", [{}, {"lora_rank": 4}])
def test_of_equals_the_later_one_is_the_best_and_adapters_are_merged(
    bench: Bench, scored: list[float], model: dict[str, Any]
) -> None:
    scored += [0.5, 0.5, 0.5, 0.25]
    best = bench.train(model=model)
    other = Bench(bench.folder / "other", bench.policy)
    assert same(best, other.train(model=model, rounds=4, validate_every=0))
    settings = [(each.stage.final / "generation_config.json").read_text() for each in (bench, other)]
    assert settings[0] == settings[1]


@pytest.fixture
def bench(tmp_path: Path, policy: Path) -> Bench:
    return Bench(tmp_path / "run", policy)


@pytest.mark.parametrize(("during", "lag"), [("reply 10 of 12", 0), ("validation:", 0), ("step 5/6", 1)])
def test_a_validation_that_was_paid_for_is_not_paid_for_again(
    tmp_path: Path, policy: Path, during: str, lag: int
) -> None:
    whole, broken = Bench(tmp_path / "whole", policy), Bench(tmp_path / "broken", policy)
    wanted = whole.train(lag=lag)

    def kill(event: Event) -> None:
        if during in event.text and len(broken.validated) >= (during != "reply 10 of 12"):
            raise Killed

    with pytest.raises(Killed):
        broken.train(kill, lag=lag)
    assert same(broken.train(lag=lag), wanted)
    assert sorted(broken.evaluator.paid) == sorted(whole.evaluator.paid)
    assert list(broken.checks.rows("replies")) == list(whole.checks.rows("replies"))
    for each in (whole, broken):
        assert each.validated == [0, 2, 4, 6] and each.steps == [1, 2, 3, 4, 5, 6]
        assert len(list(each.checks.rows("samples"))) == 48


def test_it_ends_where_nothing_is_better_and_learns_no_further_when_it_was_killed_then(
    bench: Bench, scored: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(*_: Any, **__: Any) -> None:
        raise Killed

    scored += [0.25, 0.5, 0.75, 0.75, 0.5]
    with monkeypatch.context() as patch:
        patch.setattr(contrastive, "save_policy", kill)
        with pytest.raises(Killed):
            bench.train(rounds=12, patience=2)
    assert bench.validated == [0, 2, 4, 6, 8] and not bench.stage.is_done
    final = bench.train(rounds=12, patience=2)
    assert bench.steps == [1, 2, 3, 4, 5, 6, 7, 8] and same(final, bench.weights(6))


def test_when_it_is_over() -> None:
    assert not is_over([0.5, 0.4, 0.3], 0) and not is_over([0.5, 0.4], 2)
    assert is_over([0.5, 0.5, 0.4], 2) and not is_over([0.5, 0.5, 0.6], 2) and not is_over([], 1)


def test_a_task_counts_once_however_many_of_its_replies_have_a_verdict() -> None:
    def one(task: Task, reward: float | None) -> tuple[Written, Scored]:
        reply = Written(task, Prompt(system="", user="", template="t"), "", True, 1)
        return reply, Scored(reward, bool(reward), None, Judgement(None))

    pairs = [one(CHECKED[0], 1.0), one(CHECKED[0], 3.0), one(CHECKED[1], 0.0), one(CHECKED[1], None)]
    replies, found = [reply for reply, _ in pairs], [scored for _, scored in pairs]
    assert score(replies, found, "pass_rate") == 0.5 and score(replies, found, "reward") == 1.0
    assert score(replies, found, "log_reward") == pytest.approx((math.log(2) + math.log(4)) / 4)
    assert ContrastiveSection().validate_by == "log_reward", "what is right and slow is no aim of stage 3"


def test_of_weights_in_parts_the_last_checkpoint_is_left_and_a_line_says_so(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(self: ContrastiveTrainer, **_: Any) -> None:
        assert not self.validates
        raise Killed

    made = ReplyingTrainer.__init__

    def in_parts(self: ContrastiveTrainer, **given: Any) -> None:
        made(self, **given)
        self.is_fsdp_enabled = True

    monkeypatch.setattr(ReplyingTrainer, "__init__", in_parts)
    monkeypatch.setattr(ContrastiveTrainer, "train", begin)
    with pytest.raises(Killed):
        bench.train()
    assert any("is not validated" in str(event.figures.get("alarm")) for event in bench.events)


def together(processes: Processes, folder: Path, policy: Path) -> object:
    bench = Bench(folder / "run", policy)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cuda_l1.training.validation.score", lambda *_: 1.0 / (1 + abs(len(bench.validated) - 1)))
        final = bench.train(rounds=8, prompts=1, batch=2, patience=1, processes=processes)
    return same(final, bench.weights(2)), not same(final, bench.weights(4)), bench.validated


def test_of_several_processes_one_validates_and_all_end(tmp_path: Path, policy: Path) -> None:
    (tmp_path / "run").mkdir()
    assert ranks.run(together, tmp_path, policy) == ["(True, True, [0, 2, 4])"] * 2
