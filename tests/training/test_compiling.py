"""Layers that are compiled for the steps of a training compute what they did."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from training_fakes import made_policy

pytest.importorskip("trl", reason="needs transformers and TRL")

import torch
from torch._dynamo.testing import CompileCounter

from cuda_l1.training.compiling import compiled_layers
from cuda_l1.training.loading import load_policy
from cuda_l1.training.recipe import Recipe

Make = Callable[..., Recipe]
DEEPER = {"hidden": 32, "intermediate": 64, "layers": 4}


@pytest.fixture
def model(tmp_path: Path, recipe: Make) -> Any:
    torch._dynamo.reset()
    chosen = recipe(tmp_path / "run", model=DEEPER)
    return load_policy(made_policy(chosen, tmp_path / "start"), chosen, longest=256).model


def gradients(model: Any, length: int) -> list[torch.Tensor]:
    ids = torch.arange(length).remainder(7).repeat(2, 1).to(next(model.parameters()).device)
    model.zero_grad()
    loss = model(ids, labels=ids, use_cache=False).loss
    loss.backward()
    return [loss.detach().cpu(), *(each.grad.cpu() for each in model.parameters() if each.grad is not None)]


def test_all_layers_are_one_graph_for_any_length(model: Any) -> None:
    counter = CompileCounter()
    model.train()
    plain = [gradients(model, length) for length in (32, 64, 96)]
    with compiled_layers(model, backend=counter):
        compiled = [gradients(model, length) for length in (32, 64, 96)]
    assert counter.frame_count == 2  # for the first length, and for any
    torch.testing.assert_close(compiled, plain)


def test_who_writes_and_who_comes_later_has_layers_as_they_were(model: Any) -> None:
    counter, names = CompileCounter(), list(model.state_dict())
    with compiled_layers(model, backend=counter):
        model.eval()
        model.generate(torch.ones(1, 4, dtype=torch.long), max_new_tokens=3, do_sample=False)
        assert list(model.state_dict()) == names
    model.train()
    gradients(model, 32)
    assert counter.frame_count == 0 and not any("forward" in vars(each) for each in model.modules())


@pytest.mark.gpu
def test_a_gpu_computes_the_same_up_to_rounding(model: Any) -> None:
    model.cuda().train()
    plain = [gradients(model, length) for length in (128, 256)]
    with compiled_layers(model):
        compiled = [gradients(model, length) for length in (128, 256)]
    torch.testing.assert_close(compiled, plain, rtol=1e-3, atol=1e-5)
