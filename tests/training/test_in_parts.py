"""Models whose weights lie in parts, here in the one part of a single process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from training_fakes import made_policy

pytest.importorskip("trl", reason="needs transformers and TRL")

import torch
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, init_device_mesh
from trl.trainer.utils import add_fused_lm_head

from cuda_l1.training.in_parts import call_head, whole_weights
from cuda_l1.training.loading import load_policy, save_policy
from cuda_l1.training.recipe import Recipe

Make = Callable[..., Recipe]
WIDER = {"hidden": 192, "intermediate": 528, "layers": 2}


@pytest.fixture
def alone_in_a_group(tmp_path: Path) -> Iterator[None]:
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/meet", rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize("half", [False, True])
def test_weights_that_lie_in_parts_are_written_whole(
    tmp_path: Path, recipe: Make, alone_in_a_group: None, half: bool
) -> None:
    chosen = recipe(tmp_path / "run", run={"shard_mib": 1, "bf16_weights": half}, model=WIDER)
    start = made_policy(chosen, tmp_path / "start")
    model, tokenizer, *_ = load_policy(start, chosen, longest=64)
    assert whole_weights(model) is None
    fully_shard(model, mesh=init_device_mesh("cpu", (1,)))
    assert all(isinstance(each, DTensor) for each in model.parameters())
    save_policy(model, tokenizer, tmp_path / "saved", recipe=chosen, weights=whole_weights(model))
    left, right = (load_policy(each, chosen, longest=64).model.state_dict() for each in (start, tmp_path / "saved"))
    assert left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)
    assert json.loads((tmp_path / "saved" / "config.json").read_text())["architectures"] == ["Qwen3ForCausalLM"]


def test_the_head_is_called_where_a_loss_only_reads_its_weight(
    tmp_path: Path, recipe: Make, alone_in_a_group: None
) -> None:
    chosen = recipe(tmp_path / "run")
    model = load_policy(made_policy(chosen, tmp_path / "start"), chosen, longest=64).model
    add_fused_lm_head(model)
    call_head(model)
    called: list[torch.Size] = []
    model.lm_head.register_forward_hook(lambda head, given, output: called.append(output.shape))
    ids = torch.arange(4).unsqueeze(0)
    alone = model(ids, labels=ids, fused_lm_head=True).loss
    assert not called, "nothing waits for it where weights are whole"
    fully_shard([model.model.embed_tokens, model.model.norm, model.lm_head], mesh=init_device_mesh("cpu", (1,)))
    fully_shard(model, mesh=init_device_mesh("cpu", (1,)))
    assert torch.equal(model(ids, labels=ids, fused_lm_head=True).loss, alone)
    assert called == [(0, model.config.vocab_size)]
