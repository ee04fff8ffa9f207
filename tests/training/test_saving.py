"""How policies are written: in parts of a size that is asked for, in which precision, and what servers read beside."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from training_fakes import made_policy

pytest.importorskip("trl", reason="needs transformers and TRL")

import torch
from transformers import AutoModelForCausalLM

from cuda_l1.config import GenerationSettings
from cuda_l1.errors import InfrastructureError, UsageError
from cuda_l1.proposers.policy.checkpoint import read_checkpoint
from cuda_l1.proposers.policy.policy import Policy
from cuda_l1.training.loading import load_policy, save_policy
from cuda_l1.training.recipe import Recipe
from cuda_l1.types import Prompt
from small_policy import save_policy as small_policy

Make = Callable[..., Recipe]
WIDER = {"hidden": 192, "intermediate": 528, "layers": 2}
PROMPT = Prompt(system="s", user="u", template="t")


def loaded(folder: Path, recipe: Recipe) -> dict[str, Any]:
    return dict(load_policy(folder, recipe, longest=64).model.state_dict())


def test_a_policy_in_shards_is_the_same_policy(tmp_path: Path, recipe: Make) -> None:
    whole = recipe(tmp_path / "run", model=WIDER)
    parts = recipe(tmp_path / "run", model=WIDER, run={"shard_mib": 1})
    one, many = (made_policy(each, tmp_path / n) for n, each in (("one", whole), ("many", parts)))
    assert [file.name for file in one.glob("*.safetensors")] == ["model.safetensors"]
    sizes = {file.name: file.stat().st_size for file in many.glob("*.safetensors")}
    assert len(sizes) >= 4 and max(sizes.values()) <= 1 << 20, sizes
    named = json.loads((many / "model.safetensors.index.json").read_text())["weight_map"]
    assert set(named.values()) == set(sizes)
    left, right = loaded(one, whole), loaded(many, parts)
    assert left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)
    settings = GenerationSettings(max_new_tokens=4, temperature=0.0)
    said = [Policy.load(read_checkpoint(each), settings, "cpu").generate([PROMPT], [0]) for each in (one, many)]
    assert said[0] == said[1] and said[0][0] is not None


def test_a_shard_that_is_lost_or_cut_short_and_a_tokenizer_that_is_none_are_named(tmp_path: Path, recipe: Make) -> None:
    parts = recipe(tmp_path / "run", model=WIDER, run={"shard_mib": 1})
    folder = made_policy(parts, tmp_path / "many")
    shard = sorted(folder.glob("*.safetensors"))[1]
    whole = shard.read_bytes()
    shard.unlink()
    with pytest.raises(UsageError, match=r"many: cannot be loaded: .*model-00002-of"):
        load_policy(folder, parts, longest=64)
    shard.write_bytes(whole[:-1])
    with pytest.raises(UsageError, match=r"many: cannot be loaded: .*not fully covered"):
        load_policy(folder, parts, longest=64)
    shard.write_bytes(whole)
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(UsageError, match=r"many: cannot be loaded: ") as caught:
        load_policy(folder, parts, longest=64)
    assert "\n" not in str(caught.value)


def test_a_policy_without_memory_for_it_is_the_machines_matter(tmp_path: Path, recipe: Make, monkeypatch) -> None:
    run = recipe(tmp_path / "run")
    folder = made_policy(run, tmp_path / "made")
    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", lambda *_, **__: torch.empty(1 << 60))
    with pytest.raises(InfrastructureError, match=r"made: does not fit into memory \(.*can't allocate memory"):
        load_policy(folder, run, longest=64)


def test_half_of_the_size_is_half_of_the_precision(tmp_path: Path, recipe: Make) -> None:
    full, half = recipe(tmp_path / "run"), recipe(tmp_path / "run", run={"bf16_weights": True})
    one, other = made_policy(full, tmp_path / "full"), made_policy(half, tmp_path / "half")
    sizes = [(folder / "model.safetensors").stat().st_size for folder in (one, other)]
    assert sizes[1] == pytest.approx(sizes[0] / 2, rel=0.05)
    left, right = loaded(one, full), loaded(other, half)
    assert all(torch.equal(left[name].bfloat16().float(), right[name]) for name in left)
    assert {each.dtype for each in right.values()} == {torch.float32}, "training goes on in full precision"


def test_a_server_samples_as_training_did(tmp_path: Path, recipe: Make) -> None:
    asked = recipe(tmp_path / "run", generation={"temperature": 0.6, "top_p": 0.9})
    folder = made_policy(asked, tmp_path / "policy")
    found = json.loads((folder / "generation_config.json").read_text())
    assert (found["do_sample"], found["temperature"], found["top_p"], found["top_k"]) == (True, 0.6, 0.9, 0)
    assert found["eos_token_id"] == json.loads((folder / "config.json").read_text())["eos_token_id"]


def test_a_model_of_others_keeps_its_own_ends(tmp_path: Path, recipe: Make) -> None:
    chosen = recipe(tmp_path / "run")
    theirs = small_policy(tmp_path / "theirs", taught=False)
    policy = load_policy(theirs, chosen, longest=64)
    policy.model.generation_config.eos_token_id = [1, 2]
    save_policy(policy.model, policy.tokenizer, tmp_path / "ours", recipe=chosen)
    assert json.loads((tmp_path / "ours" / "generation_config.json").read_text())["eos_token_id"] == [1, 2]


def test_a_server_reads_what_a_policy_from_nothing_says(tmp_path: Path, recipe: Make) -> None:
    serving = pytest.importorskip("transformers.cli.serving.utils", reason="needs transformers with its server")
    chosen = recipe(tmp_path / "run")
    policy = load_policy(made_policy(chosen, tmp_path / "policy"), chosen, longest=64)
    asked = policy.tokenizer.apply_chat_template([{"role": "user", "content": "well?"}], add_generation_prompt=True)
    said = policy.tokenizer("```python\nx = 1\n```<|im_end|>")["input_ids"]
    found = serving.parse_assistant_message(policy.tokenizer, policy.model, said, asked["input_ids"])
    assert found == ("```python\nx = 1\n```", None, None), "neither the question nor the end is part of it"
