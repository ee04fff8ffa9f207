"""Seeds: the same state of every generator, whatever a candidate has put in the place of the functions that set it.
Modes: whatever a module in a model makes of them."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from torch import nn

from cuda_l1.evaluator.guest.load import Seeds, construct, made_on, seed_everything, set_mode


def drawn() -> tuple[float, float, float, float]:
    return float(torch.rand(())), random.random(), random.gauss(), float(np.random.rand())


@pytest.mark.parametrize("seed", [0, 7, 2**31 - 1, 2**62 + 1])
def test_the_same_numbers_as_by_the_functions_that_users_call(seed, monkeypatch):
    seeds = Seeds()
    seed_everything(seed)
    expected = drawn()
    random.gauss()  # an odd number of them: Python keeps every second one
    for owner in (torch, random, np.random):
        monkeypatch.setattr(owner, "manual_seed" if owner is torch else "seed", lambda *_: pytest.fail("it is called"))
    seeds.set(seed)
    assert drawn() == expected


class Refuses(nn.Module):
    """As a module that torch.export has made."""

    def __init__(self):
        super().__init__()
        self.inside = nn.Dropout()

    def train(self, mode=True):
        raise NotImplementedError("Calling train() is not supported yet.")


class Notes(nn.Module):
    def train(self, mode=True):
        self.told = mode
        return super().train(mode)


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_a_module_that_refuses_a_mode_keeps_it_from_no_other_one(mode):
    model = nn.Sequential(nn.Dropout(), Refuses(), nn.Sequential(Refuses(), Notes()), nn.Dropout())
    for module in model.modules():
        module.training = mode == "eval"
    set_mode(model, mode)
    assert {module.training for module in model.modules()} == {mode == "train"}
    assert model[2][1].told is (mode == "train")


def test_what_else_a_mode_raises_is_told():
    class Broken(nn.Module):
        def train(self, mode=True):
            raise ValueError("no luck")

    with pytest.raises(ValueError, match="no luck"):
        set_mode(nn.Sequential(Broken()), "eval")


def array():
    return torch.from_numpy(np.ones(3, dtype=np.float32))


def test_what_a_text_keeps_on_the_cpu_is_made_there():
    assert made_on("meta", lambda: torch.ones(3)).device.type == "meta"
    assert made_on("meta", lambda: torch.ones(3) + array()).device.type == "cpu"


def test_what_fails_on_the_cpu_too_says_what_it_said_first():
    def make():
        raise RuntimeError(f"on {torch.empty(0).device.type}")

    with pytest.raises(RuntimeError, match="on meta"):
        made_on("meta", make)


def test_what_runs_out_of_memory_is_not_made_again():
    attempts = []

    def make():
        attempts.append(1)
        raise torch.OutOfMemoryError("none left")

    with pytest.raises(torch.OutOfMemoryError):
        made_on("meta", make)
    assert len(attempts) == 1


def test_a_constructor_begins_again_with_the_same_seed():
    seen = []

    class DrawsOnTheCpu(nn.Module):
        def __init__(self):
            super().__init__()
            ahead = torch.randn(2)
            self.weight = nn.Parameter(torch.randn(3) * array())
            seen.append(torch.cat([ahead, self.weight.detach()]))

    assert construct(DrawsOnTheCpu, [], "meta", seed=5).weight.is_meta
    seed_everything(5)
    torch.testing.assert_close(seen, [torch.cat([torch.randn(2), torch.randn(3)])])
