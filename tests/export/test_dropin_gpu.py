"""The drop-in's guard on a GPU: device and current device are checked, and captured graphs follow the weights."""

from __future__ import annotations

import copy
import importlib.util
import sys
import warnings
from pathlib import Path
from types import ModuleType

import pytest
import torch

from cuda_l1.export.cost import guard_cost_us
from cuda_l1.export.dropin import render_dropin
from cuda_l1.export.probe import guard_for
from cuda_l1.proposers.techniques import build
from cuda_l1.types import Environment, Task

pytestmark = pytest.mark.gpu

TASK = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.fc = nn.Linear(size, size)

    def forward(self, x, y):
        return torch.relu(self.fc(x)) * y + y


def get_inputs():
    return [torch.randn(16, 64), torch.randn(16, 64)]


def get_init_inputs():
    return [64]
"""


def load(folder: Path, techniques: list[str]) -> ModuleType:
    task = Task(suite="file", name="gpu", source=TASK)
    candidate = build(task, techniques, "cuda")
    assert candidate is not None
    name = torch.cuda.get_device_name()
    place = Environment(device="cuda", device_name=name, lane="gpu", rung="R0", torch=torch.__version__)
    path = folder / f"dropin_{'_'.join(techniques)}.py"
    path.write_text(render_dropin(task, candidate, guard_for(task, place)))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def pair(module: ModuleType) -> tuple[torch.nn.Module, torch.nn.Module]:
    torch.manual_seed(0)
    original = module.Model(64).cuda()
    torch.manual_seed(0)
    return original, module.ModelNew(64).cuda()


def inputs(device: str = "cuda") -> list[torch.Tensor]:
    return [torch.randn(16, 64, device=device) for _ in range(2)]


def same(original: torch.nn.Module, new: torch.nn.Module, given: list[torch.Tensor]) -> None:
    with torch.no_grad():
        torch.testing.assert_close(new(*given), original(*given), rtol=1e-4, atol=1e-4)


def test_a_captured_graph_follows_the_weights_copies_and_moves(tmp_path: Path) -> None:
    original, new = pair(load(tmp_path, ["cuda_graph"]))
    same(original, new, inputs())
    with torch.no_grad():
        original.fc.weight.mul_(2)
        new.fc.weight.mul_(2)
    same(original, new, inputs())
    other = {name: torch.randn_like(t) for name, t in original.state_dict().items()}
    original.load_state_dict(other)
    new.load_state_dict(other, assign=True)
    same(original, new, inputs())
    copied = copy.deepcopy(new)
    with torch.no_grad():
        new.fc.weight.zero_()
    same(original, copied, inputs())
    copied.cpu().cuda()
    same(original, copied, inputs())
    assert new.report["fallbacks"] == copied.report["fallbacks"] == {}


def test_outputs_stay_what_they_were_after_a_later_call(tmp_path: Path) -> None:
    original, new = pair(load(tmp_path, ["cuda_graph"]))
    given = inputs()
    with torch.no_grad():
        kept, expected = new(*given), original(*given)
        new(*inputs())
    torch.testing.assert_close(kept, expected, rtol=1e-4, atol=1e-4)


def test_other_devices_run_the_original(tmp_path: Path) -> None:
    original, new = pair(load(tmp_path, ["straight_line"]))
    same(original, new, inputs())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(original.cpu(), new.cpu(), inputs("cpu"))
        with torch.no_grad(), pytest.raises(RuntimeError):
            new(*inputs("cuda"))
    assert new.report["fallbacks"] == {"device": 2}


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two NVIDIA GPUs")
def test_another_current_device_runs_the_original(tmp_path: Path) -> None:
    original, new = pair(load(tmp_path, ["straight_line"]))
    given = inputs()
    same(original, new, given)
    with torch.cuda.device(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(original, new, given)
    assert new.report["fallbacks"] == {"device": 1}


def test_another_gpu_model_warns_at_construction(tmp_path: Path) -> None:
    module = load(tmp_path, ["straight_line"])
    module._DROPIN_MEASURED["device_name"] = "Another GPU"
    with pytest.warns(UserWarning, match="instead of Another GPU"):
        module.ModelNew(64)


def test_the_guard_is_a_few_microseconds() -> None:
    task = Task(suite="file", name="gpu", source=TASK)
    place = Environment(device="cuda", device_name="x", lane="gpu", rung="R0", torch=torch.__version__)
    assert 0 < guard_cost_us(guard_for(task, place)) < 20
