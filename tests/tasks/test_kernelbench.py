"""KernelBench as people have it: files of both generations, and a whole checkout where there is one.

`CUDA_L1_KERNELBENCH=path/to/checkout pytest tests/tasks/test_kernelbench.py` runs the last test; nothing of
KernelBench is part of this repository.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cuda_l1.errors import TaskError
from cuda_l1.tasks import load_task, load_tasks
from cuda_l1.tasks.namespace import instantiated
from cuda_l1.types import Task

# Constants between class and functions, a comment behind the last statement, no newline at the end.
ELEMENTWISE = """import torch
import torch.nn as nn

class Model(nn.Module):
    \"\"\"
    Simple model that performs a Tanh activation.
    \"\"\"
    def __init__(self):
        super(Model, self).__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x)

batch_size = {rows}
dim = {columns}

def get_inputs():
    x = torch.{draw}(batch_size, dim)
    return [x]

def get_init_inputs():
    return []  # No special initialization inputs needed"""

# Arguments through constants, one of them a shape, and a comment after the last function.
CONVOLUTION = """import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, bias_shape):
        super(Model, self).__init__()
        self.conv = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        x = self.conv(x)
        original_x = x.clone().detach()
        return x + self.bias + original_x

batch_size = {batch}
in_channels = 4
out_channels = 8
depth, height, width = {sizes}
kernel_size, stride = 3, 2
bias_shape = (out_channels, 1, 1, 1)

def get_inputs():
    return [torch.{draw}(batch_size, in_channels, depth, height, width)]

def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, bias_shape]
# Test code follows
# model = Model(*get_init_inputs())
"""

# Helpers before the model, constructor arguments as a dict, numbers of a tensor taken in the constructor.
NETWORK = """import math
import collections.abc
from itertools import repeat

import torch
import torch.nn as nn
import torch.nn.functional as F

# From a repository that somebody else keeps

def _ntuple(n):
    def parse(x):
        if isinstance(x, collections.abc.Iterable) and not isinstance(x, str):
            return x
        return tuple(repeat(x, n))
    return parse

to_2tuple = _ntuple(2)

class NewGELU(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))

class Block(nn.Module):
    def __init__(self, width, drop_path):
        super().__init__()
        self.mlp = nn.ModuleDict(dict(fc=nn.Linear(width, 4 * width), act=NewGELU(), proj=nn.Linear(4 * width, width)))
        self.drop_path = drop_path

    def forward(self, x):
        m = self.mlp
        return x + m.proj(m.act(m.fc(x)))

class Model(nn.Module):
    def __init__(self, image, width=32, depths=(1, 1), rate=0.1):
        super().__init__()
        self.image = to_2tuple(image)
        rates = [x.item() for x in torch.linspace(0, rate, sum(depths))]
        self.blocks = nn.ModuleList([Block(width, rates[i]) for i in range(sum(depths))])
        self.register_buffer("mask", torch.tril(torch.ones(image, image)).view(1, image, image))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x * self.mask[:, : x.shape[1], :1]

batch_size = {batch}
image = {image}
width = 32

def get_inputs():
    return [torch.{draw}(batch_size, image, width)]

def get_init_inputs():
    return {{"image": image, "width": width, "depths": [2, 1]}}

if __name__ == '__main__':
    print(Model(**get_init_inputs())(*get_inputs()).shape)
"""

OLD, NEW = "randn", "rand"
FILES = {
    "level1/22_Tanh.py": {
        OLD: ELEMENTWISE.format(rows=16, columns=16384, draw=OLD),
        NEW: ELEMENTWISE.format(rows=4096, columns=393216, draw=NEW),
    },
    "level2/20_ConvTranspose3d_Sum.py": {
        OLD: CONVOLUTION.format(batch=16, sizes="8, 8, 8", draw=OLD),
        NEW: CONVOLUTION.format(batch=128, sizes="64, 128, 128", draw=NEW),
    },
    "level3/30_SwinLike.py": {
        OLD: NETWORK.format(batch=2, image=7, draw=OLD),
        NEW: NETWORK.format(batch=10, image=224, draw=NEW),
    },
}
SHAPES = {
    OLD: [(16, 16384), (16, 4, 8, 8, 8), (2, 7, 32)],
    NEW: [(4096, 393216), (128, 4, 64, 128, 128), (10, 224, 32)],
}


@pytest.fixture(params=[OLD, NEW])
def generation(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def checkout(tmp_path: Path, generation: str) -> Path:
    for name, texts in FILES.items():
        path = tmp_path / "KernelBench" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(texts[generation])
    return tmp_path


def test_files_of_both_generations(checkout: Path, generation: str) -> None:
    """The text is the file's own to the byte; what is of the size of a GPU takes no memory here."""
    tasks = load_tasks(str(checkout))
    assert [(task.suite, task.name, task.level) for task in tasks] == [
        ("kernelbench", "level1/22_Tanh", 1),
        ("kernelbench", "level2/20_ConvTranspose3d_Sum", 2),
        ("kernelbench", "level3/30_SwinLike", 3),
    ]
    for task, shape, texts in zip(tasks, SHAPES[generation], FILES.values(), strict=True):
        assert task.source == texts[generation]
        with instantiated(task.source) as (_, inputs):
            assert [tuple(value.shape) for value in inputs] == [shape]


def test_constructors_are_given_what_the_file_says(checkout: Path) -> None:
    _, convolution, network = load_tasks(str(checkout))
    with instantiated(convolution.source) as (model, _):
        assert model.conv.weight.shape == (4, 8, 3, 3, 3) and model.bias.shape == (8, 1, 1, 1)
    with instantiated(network.source) as (model, inputs):
        assert len(model.blocks) == 3 and model.blocks[2].drop_path == pytest.approx(0.1)
        assert model(*inputs).shape == inputs[0].shape


@pytest.mark.parametrize(("name", "shape"), list(zip(FILES, SHAPES[OLD], strict=True)))
def test_another_dtype_is_appended_behind_the_last_comment(name: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir()
    path.write_text(FILES[name][OLD])
    task = load_task(str(path), dtype="bf16")
    assert task.name.endswith("-bf16") and task.source.startswith(FILES[name][OLD].rstrip("\n"))
    with instantiated(task.source) as (model, inputs):
        assert [(str(value.dtype), tuple(value.shape)) for value in inputs] == [("torch.bfloat16", shape)]
        assert all(str(value.dtype) == "torch.bfloat16" for value in model.parameters())


@pytest.mark.skipif(not os.environ.get("CUDA_L1_KERNELBENCH"), reason="CUDA_L1_KERNELBENCH names no checkout")
def test_a_whole_checkout() -> None:
    """Every task of levels 1 to 3 is loaded and constructed; those of level 4 would fetch language models.

    What lacks einops, which KernelBench installs and we do not, is passed over.
    """
    tasks = load_tasks(os.environ["CUDA_L1_KERNELBENCH"])
    levels = [task.level for task in tasks]
    assert [levels.count(level) for level in (1, 2, 3)] == [100, 100, 50]
    assert len({task.sha for task in tasks}) == len({task.name for task in tasks}) == len(tasks)
    failures = {task.name: why for task in tasks if task.level != 4 and (why := _failure(task))}
    assert not {name: why for name, why in failures.items() if not why.endswith("No module named 'einops'")}


def _failure(task: Task) -> str:
    try:
        with instantiated(task.source) as (_, inputs):
            return "" if inputs else "no inputs"
    except TaskError as error:
        return str(error)
