"""Stage 3 on a real decoder: it learns, its groups share their question, and an interruption changes no bit."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs transformers and trl: pip install 'cuda-l1[train]'")

import torch
from judge_fakes import TASKS, FakeEvaluator
from safetensors.torch import load_file

from cuda_l1.archive import Archive
from cuda_l1.errors import InfrastructureError, UsageError
from cuda_l1.training import contrastive
from cuda_l1.training.checks import check_lag
from cuda_l1.training.contrastive_trainer import ContrastiveTrainer
from cuda_l1.training.forms import write_shown
from cuda_l1.training.judging import Asked, Judgement, Judging
from cuda_l1.training.recipe import Recipe, load_recipe, recipe_from
from cuda_l1.training.rounds import Rounds
from cuda_l1.training.run_directory import RunDirectory, StageDirectory
from cuda_l1.training.stages import Event
from small_policy import REPLIES, save_policy


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_policy(tmp_path_factory.mktemp("policy"))


def recipe(folder: Path, **section: Any) -> Recipe:
    values = {
        "rounds": 4,
        "prompts": 2,
        "group": 4,
        "batch": 4,
        "learning_rate": 1e-2,
        "checkpoint_every": 2,
        "min_pass_rate": 0.0,
    }
    return recipe_from(
        {
            "run_dir": str(folder),
            "contrastive": {**values, **section},
            "generation": {"max_new_tokens": 3},
            "run": {"device": "cpu"},
        },
        "test",
    )


class Bench:
    """A stage in a folder of its own, as often as it is run."""

    def __init__(self, folder: Path, policy: Path) -> None:
        self.folder, self.policy = folder, policy
        self.stage = StageDirectory(folder / "contrastive")
        self.evaluator = FakeEvaluator()
        self.events: list[Event] = []
        self.cards: dict[str, dict[str, float]] = {}

    def beside(self, folder: Path, figures: dict[str, float]) -> None:
        self.cards[folder.name] = figures

    def train(
        self, tell: Callable[[Event], None] = lambda event: None, *, rate: float | None = None, **section: Any
    ) -> dict[str, torch.Tensor]:
        """`rate`: a learning rate beyond what a recipe may say."""

        def on_event(event: Event) -> None:
            self.events.append(event)
            tell(event)

        with Archive.open(self.folder / "archive.sqlite") as archive:
            judge = Judging([self.evaluator], archive=archive, run="run", within_s=60.0)
            asked = recipe(self.folder, **section)
            if rate is not None:
                stage = asked.contrastive.model_copy(update={"learning_rate": rate})
                asked = asked.model_copy(update={"contrastive": stage})
            final = contrastive.train(
                RunDirectory(self.folder, asked),
                TASKS,
                start=self.policy,
                archive=archive,
                judge=judge,
                on_event=on_event,
                beside=self.beside,
            )
        return load_file(final / "model.safetensors")

    def rows(self, file: str) -> list[dict[str, Any]]:
        return list(self.stage.rows(file))


@pytest.fixture
def bench(tmp_path: Path, policy: Path) -> Bench:
    return Bench(tmp_path, policy)


def test_the_policy_learns_what_is_fast(tmp_path: Path) -> None:
    replies = [REPLIES[1], REPLIES[5], REPLIES[9], REPLIES[-1]]
    bench = Bench(tmp_path, save_policy(tmp_path / "policy", replies=replies))
    bench.train(rounds=12, prompts=2, group=12, batch=24)
    metrics = [row for row in bench.rows("metrics") if "reward" in row]
    assert len(metrics) == 12
    first, last = (sum(row["reward"] for row in part) / 3 for part in (metrics[:3], metrics[-3:]))
    assert last > first + 0.5
    assert {"pass_rate", "invalid_replies", "flat_groups", "loss", "grad_norm"} <= metrics[0].keys()
    assert (bench.stage.final / "tokenizer.json").exists()


def test_all_replies_of_a_group_answer_one_question_and_the_archive_grows_into_the_next(bench: Bench) -> None:
    bench.train(rounds=6, prompts=2, group=4)
    prompts = bench.rows("prompts")
    assert [row["round"] for row in prompts] == list(range(6)) and all(len(row["groups"]) == 2 for row in prompts)
    found: dict[str, set[str]] = {}
    for row in prompts:
        for group in row["groups"]:
            assert set(group["prompt"]["exemplars"]) <= found.get(group["task"], set())
            shown = min(2, len(found.get(group["task"], set())))
            assert len(group["prompt"]["exemplars"]) == shown  # as many as there were at that moment: none is missed
        for sample in bench.rows("samples"):
            if sample["round"] == row["round"] and sample["outcome"] == "ACCEPTED":
                found.setdefault(sample["task"], set()).add(sample["candidate"])
    assert any(found.values())


class Killed(BaseException):
    """As SIGKILL leaves a run: nothing is tidied up."""


@pytest.mark.parametrize(("iterations", "lag"), [(1, 0), (2, 1)])
def test_a_killed_run_goes_on_to_the_same_weights_and_pays_nothing_twice(
    tmp_path: Path, policy: Path, iterations: int, lag: int
) -> None:
    whole, broken = Bench(tmp_path / "whole", policy), Bench(tmp_path / "broken", policy)
    for each in (whole, broken):
        each.folder.mkdir()
    wanted = whole.train(iterations=iterations, lag=lag, rounds=6, prompts=3, group=8, batch=8)

    def kill(event: Event) -> None:
        if event.figures.get("step") == 4 * iterations:
            raise Killed

    with pytest.raises(Killed):
        broken.train(kill, iterations=iterations, lag=lag, rounds=6, prompts=3, group=8, batch=8)
    assert not broken.stage.is_done and broken.stage.checkpoint() == broken.stage.path / f"checkpoint-{2 * iterations}"
    beyond = [row for row in broken.rows("samples") if row["round"] >= 2]
    assert any(row["outcome"] == "ACCEPTED" and not row["known"] for row in beyond)  # not to be shown too soon
    found = broken.train(iterations=iterations, lag=lag, rounds=6, prompts=3, group=8, batch=8)
    assert found.keys() == wanted.keys()
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)
    assert broken.evaluator.paid == whole.evaluator.paid
    assert len(set(whole.evaluator.paid)) > 1
    rewards = {(row["round"], row["index"]): row["reward"] for row in broken.rows("samples")}
    assert rewards == {(row["round"], row["index"]): row["reward"] for row in whole.rows("samples")}


def test_sizes_that_do_not_divide_each_other_are_refused(bench: Bench) -> None:
    with pytest.raises(UsageError, match="= 8 replies do not divide"):
        bench.train(batch=3)


def test_a_machine_that_fails_stops_the_stage_without_a_step(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Judging, asked: Sequence[Asked]) -> list[Judgement]:
        return [Judgement(None, fault="the device is gone") for _ in asked]

    monkeypatch.setattr(Judging, "__call__", broken)
    with pytest.raises(InfrastructureError, match="the device is gone"):
        bench.train()
    assert bench.stage.checkpoint() is None and not bench.stage.is_done


def test_a_loss_that_is_no_number_stops_before_the_weights_are_touched(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = ContrastiveTrainer.compute_loss

    def wrong(self: ContrastiveTrainer, *args: Any, **others: Any) -> Any:
        loss = right(self, *args, **others)
        return loss * float("nan") if self.state.global_step == 3 else loss

    monkeypatch.setattr(ContrastiveTrainer, "compute_loss", wrong)
    with pytest.raises(UsageError, match="the loss is nan after step 3"):
        bench.train()
    checkpoint = bench.stage.checkpoint()
    assert checkpoint is not None and checkpoint.name == "checkpoint-2"
    assert all(torch.isfinite(each).all() for each in load_file(checkpoint / "model.safetensors").values())


def test_a_gradient_that_is_no_number_is_not_learned_from_and_the_run_can_go_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = ContrastiveTrainer.training_step

    def wrong(self: ContrastiveTrainer, model: Any, *args: Any, **others: Any) -> Any:
        loss = right(self, model, *args, **others)
        if self.state.global_step == 3:
            next(each for each in model.parameters() if each.grad is not None).grad.view(-1)[0] = float("inf")
        return loss

    with monkeypatch.context() as patch:
        patch.setattr(ContrastiveTrainer, "training_step", wrong)
        with pytest.raises(UsageError, match=r"gradients at step 4 are not finite.*checkpoint is checkpoint-2\)"):
            bench.train()
    assert not (bench.stage.path / "checkpoint-4").exists() and not bench.stage.is_done
    assert all(torch.isfinite(each).all() for each in bench.train().values())


@pytest.mark.parametrize(
    ("rate", "said"), [(1e38, "weights at step 1 are not finite"), (1e30, "its probabilities are no numbers")]
)
def test_weights_that_are_no_numbers_are_never_written(bench: Bench, rate: float, said: str) -> None:
    with pytest.raises(UsageError, match=f"{said}.*lower"):
        bench.train(rate=rate, warmup=0.0, checkpoint_every=1)
    written = [load_file(each / "model.safetensors") for each in bench.stage.path.glob("checkpoint-*")]
    assert all(torch.isfinite(each).all() for weights in written for each in weights.values())


def test_of_few_updates_none_is_spent_on_warming_up(bench: Bench) -> None:
    bench.train(rounds=2)
    assert [row["learning_rate"] for row in bench.rows("metrics")] == [0.01, 0.01]


def test_a_divergence_from_the_beginning_can_be_held_back(bench: Bench) -> None:
    bench.train(rounds=2, kl=0.1)
    assert all("kl" in row for row in bench.rows("metrics") if "reward" in row)


def test_checkpoints_and_the_final_policy_have_our_card_with_what_a_reader_wants(bench: Bench) -> None:
    bench.train(rounds=4)
    assert list(bench.cards) == ["checkpoint-2", "checkpoint-4", "final.partial"]
    assert bench.cards["checkpoint-2"]["rounds"] == 2 and bench.cards["final.partial"]["rounds"] == 4
    assert {"reward_in_the_last_round", "pass_rate_in_the_last_round"} <= bench.cards["checkpoint-2"].keys()
    assert not any("clip_ratio" in name or "learning_rate" in name for name in bench.cards["final.partial"])
    assert not list(bench.folder.rglob("README.md")), "TRL's card knows nothing"


def test_what_is_logged_is_json(bench: Bench) -> None:
    bench.train(rounds=2)
    for file in ("metrics", "samples", "prompts"):
        for line in (bench.stage.path / f"{file}.jsonl").read_text().splitlines():
            json.loads(line, parse_constant=pytest.fail)


@pytest.mark.parametrize("shown", [None, 1, 2])
def test_questions_of_a_form_that_stage_1_had_no_example_of_are_named(bench: Bench, shown: int | None) -> None:
    sft = StageDirectory(bench.folder / "sft")
    if shown is not None:
        write_shown(sft, shown)
        sft.final.mkdir()
        (sft.final / "config.json").write_text("{}")
    bench.train(rounds=1, sampler={"count": 2})
    said = [event.text for event in bench.events if "variants (contrastive.sampler.count)" in event.text]
    assert len(said) == (shown == 1) and all("of stage 1 at most 1: replies may" in text for text in said)


def test_with_a_lag_of_one_a_round_is_written_before_the_one_before_is_judged(bench: Bench) -> None:
    said: list[str] = []
    ask, collect = Rounds.ask, Rounds.collect
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rounds, "ask", lambda self, number, shas: said.append(f"ask {number}") or ask(self, number, shas))
        patch.setattr(Rounds, "collect", lambda self, number: said.append(f"judged {number}") or collect(self, number))
        bench.train(rounds=6, lag=1, checkpoint_every=3)
    assert said == [
        *("ask 0", "ask 1", "judged 0", "ask 2", "judged 1", "judged 2"),  # nothing is ahead at a checkpoint
        *("ask 3", "ask 4", "judged 3", "ask 5", "judged 4", "judged 5"),
    ]
    found: dict[int, set[str]] = {}
    for sample in bench.rows("samples"):
        found.setdefault(sample["round"], set()).add(sample["candidate"])
    for row in bench.rows("prompts"):
        last = row["round"] - (1 if row["round"] % 3 == 0 else 2)  # the last round whose verdicts were known
        before = set[str]().union(*(found[number] for number in range(last + 1)))
        assert all(set(group["prompt"]["exemplars"]) <= before for group in row["groups"])


def test_with_a_lag_the_ratio_of_probabilities_is_that_to_the_policy_that_wrote(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[float] = []
    loss = ContrastiveTrainer._compute_loss

    def watched(self: ContrastiveTrainer, model: Any, inputs: dict[str, Any]) -> Any:
        ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], dim=1)
        mask = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], dim=1)
        with torch.no_grad():
            now, _, _ = self._get_per_token_logps_and_entropies(model, ids, mask, inputs["completion_ids"].shape[1])
        difference = (now - inputs["old_per_token_logps"]) * inputs["completion_mask"]
        seen.append(float(difference.abs().max()))
        return loss(self, model, inputs)

    monkeypatch.setattr(ContrastiveTrainer, "_compute_loss", watched)
    bench.train(rounds=4, lag=1, warmup=0.0, checkpoint_every=2, prompts=2, group=8, batch=16)
    assert [difference > 1e-4 for difference in seen] == [False, True, False, True]  # one update old, or none


def test_a_lag_on_the_device_that_is_measured_is_refused(tmp_path: Path) -> None:
    def lagging(place: str, device: str) -> Recipe:
        asked = recipe(tmp_path, lag=1)
        return asked.model_copy(
            update={
                "evaluation": asked.evaluation.model_copy(update={"device": place}),
                "run": asked.run.model_copy(update={"device": device}),
            }
        )

    for place, device in (("cpu", "cpu"), ("cuda", "cuda"), ("cuda:0", "cuda")):
        with pytest.raises(UsageError, match=f"contrastive.lag = 1 would train on {place} while rewards"):
            check_lag(lagging(place, device))
    check_lag(lagging("cuda:1", "cuda"))
    check_lag(load_recipe(Path(__file__).parents[2] / "recipes" / "node8-7b.toml"))
    check_lag(lagging("cpu", "cuda"))
    check_lag(recipe(tmp_path))


def test_where_the_time_of_a_step_goes_is_logged(bench: Bench) -> None:
    bench.train(rounds=2)
    for row in bench.rows("metrics"):
        parts = row["generate_s"] + row["wait_s"] + row["train_s"]
        assert row["step_s"] == pytest.approx(parts) and row["train_s"] > 0 and row["tokens_per_s"] > 0
        assert row["wait_share"] == pytest.approx(row["wait_s"] / row["step_s"])
        assert {"build_s", "lease_s", "evaluate_s", "judge_s"} <= row.keys()
