"""What stage 3 relies on in TRL, whose private methods it overrides: a new release must keep these."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs transformers and trl: pip install 'cuda-l1[train]'")

import torch
from datasets import Dataset
from transformers import AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

from cuda_l1 import scoring
from cuda_l1.proposers.policy import captured, writing
from small_policy import save_policy

REWARDS = [0.0, 2.0, 1.0, None, 0.0, 0.0, 3.0, 0.0]


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_policy(tmp_path_factory.mktemp("policy"))


class Watched(GRPOTrainer):
    """Notes what passes the hooks."""

    overwrite: list[float] | None = None

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        self.seen.append([row["task"] for row in inputs])
        said = f"step {self.state.global_step}\n"
        asked = [{**row, "prompt": [{"role": "user", "content": f"task {row['task']} {said}"}]} for row in inputs]
        output = super()._generate_and_score_completions(asked)
        self.own.append(output["advantages"].clone())
        if self.overwrite is not None:
            output["advantages"] = torch.tensor(self.overwrite)
        self.rows = dict(zip(map(tuple, output["completion_ids"].tolist()), output["advantages"], strict=True))
        return output

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        self.used += list(zip(map(tuple, inputs["completion_ids"].tolist()), inputs["advantages"], strict=True))
        return super()._compute_loss(model, inputs)


def trainer(policy: Path, folder: Path, reward: Any, steps: int = 1, **settings: Any) -> Watched:
    args = GRPOConfig(
        output_dir=str(folder),
        **{
            "max_steps": steps,
            "per_device_train_batch_size": 4,
            "gradient_accumulation_steps": 2,
            "num_generations": 4,
            "max_completion_length": 4,
            "shuffle_dataset": False,
            "use_cpu": True,
            "bf16": False,
            "report_to": [],
            "save_strategy": "no",
            "disable_tqdm": True,
            "learning_rate": 1e-2,
            "gradient_checkpointing": False,
            "dataloader_pin_memory": False,
            **settings,
        },
    )
    made = Watched(
        model=str(policy),
        args=args,
        reward_funcs=[reward],
        train_dataset=Dataset.from_dict({"task": list("abcdefgh")}),
        processing_class=AutoTokenizer.from_pretrained(policy),
    )
    made.seen, made.own, made.used = [], [], []
    return made


def fixed(completions: Sequence[Any], **_: Any) -> list[float | None]:
    return REWARDS[: len(completions)]


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
def test_our_advantages_of_raw_rewards_are_those_of_trl(policy: Path, tmp_path: Path, scale: scoring.Scale) -> None:
    made = trainer(policy, tmp_path, fixed, scale_rewards=scale)
    made.train()
    ours = scoring.advantages([REWARDS[:4], REWARDS[4:]], scale)
    assert made.own[0].tolist() == pytest.approx([value for group in ours for value in group], abs=1e-5)


def test_rows_come_group_by_group_in_the_order_of_the_data_set(policy: Path, tmp_path: Path) -> None:
    made = trainer(policy, tmp_path, fixed, steps=3)
    made.train()
    assert ["".join(rows) for rows in made.seen] == ["aaaabbbb", "ccccdddd", "eeeeffff"]


def test_replies_are_made_from_prompts_that_the_hook_wrote_at_this_step(policy: Path, tmp_path: Path) -> None:
    asked: list[list[str]] = []

    def reward(prompts: Sequence[Any], completions: Sequence[Any], **_: Any) -> list[float | None]:
        asked.append([message["content"] for (message,) in prompts])
        return fixed(completions)

    trainer(policy, tmp_path, reward, steps=2).train()
    assert [set(prompts) for prompts in asked] == [
        {"task a step 0\n", "task b step 0\n"},
        {"task c step 1\n", "task d step 1\n"},
    ]


def test_the_trainers_own_model_can_write_in_parts(
    policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts: list[int] = []
    monkeypatch.setattr(writing, "PART", 1)
    write = writing.write

    def counted(generate: Any, **inputs: Any) -> Any:
        def noted(**part: Any) -> Any:
            parts.append(part["generation_config"].max_new_tokens)
            return generate(**part)

        return write(noted, **inputs)

    monkeypatch.setattr(captured, "write", counted)
    made = trainer(policy, tmp_path, fixed)
    with captured.writing_in_parts(made.accelerator.unwrap_model(made.model)):
        made.train()
    assert parts == [1, 1]  # one token that says all, and the end


def test_an_advantage_that_is_overwritten_reaches_the_loss_with_its_own_reply(policy: Path, tmp_path: Path) -> None:
    made = trainer(policy, tmp_path, fixed)
    made.overwrite = [float(number) for number in range(8)]
    made.train()
    assert sorted(float(value) for _, value in made.used) == made.overwrite
    alone = {ids for ids, _ in made.used if sum(ids == other for other, _ in made.used) == 1}
    assert alone
    assert all(made.rows[ids] == value for ids, value in made.used if ids in alone)


def test_the_weights_that_are_trained_stay_in_fp32_under_bf16(policy: Path, tmp_path: Path) -> None:
    made = trainer(policy, tmp_path, fixed, bf16=True)
    made.train()
    assert {each.dtype for each in made.model.parameters()} == {torch.float32}
    states = made.optimizer.state.values()
    assert {value.dtype for state in states for value in state.values() if torch.is_tensor(value)} == {torch.float32}


def test_the_reference_policy_is_read_from_the_folder_that_training_began_with(policy: Path, tmp_path: Path) -> None:
    made = trainer(policy, tmp_path, fixed, beta=0.1, steps=2)
    made.train()
    before = {name: each.clone() for name, each in made.ref_model.named_parameters()}
    assert any(not torch.equal(each, before[name]) for name, each in made.model.named_parameters() if name in before)
