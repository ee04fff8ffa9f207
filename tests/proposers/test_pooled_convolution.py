"""pooled_convolution: means and sums of convolutions over all positions; other axes and what stands between stay."""

from __future__ import annotations

import itertools

import pytest
from graphs import applies, check, make_task

LAYERS = [
    ("nn.Conv2d(3, 4, 3)", "2, 3, 7, 6"),
    ("nn.Conv2d(3, 4, 3, padding=1)", "2, 3, 7, 6"),
    ("nn.Conv2d(3, 4, (3, 2), stride=2, padding=(2, 1), bias=False)", "2, 3, 8, 9"),
    ("nn.Conv2d(3, 4, 2, dilation=3, padding=4)", "2, 3, 5, 5"),
    ("nn.Conv2d(3, 4, 5, padding=4, stride=3)", "1, 3, 4, 6"),
    ("nn.ConvTranspose2d(3, 4, 3)", "2, 3, 5, 4"),
    ("nn.ConvTranspose2d(3, 4, 4, stride=2, padding=1)", "2, 3, 5, 4"),
    ("nn.ConvTranspose2d(3, 4, 3, stride=3, padding=2, output_padding=1, bias=False)", "2, 3, 5, 4"),
    ("nn.ConvTranspose2d(3, 4, (2, 3), dilation=2, padding=1)", "2, 3, 5, 4"),
]
POOLS = [
    "y.mean((2, 3))",
    "y.mean([3, 2], keepdim=True)",
    "y.sum((-1, -2))",
    "(y * 2 / 3).mean((2, 3))",
    "F.adaptive_avg_pool2d(y, 1)",
]


@pytest.mark.parametrize(("layer", "pool"), list(itertools.product(LAYERS, POOLS)))
def test_two_dimensions(layer: tuple[str, str], pool: str) -> None:
    task = make_task(f"y = self.c(x)\nreturn {pool}", f"torch.randn({layer[1]})", f"self.c = {layer[0]}")
    built = check(task, "pooled_convolution", tolerance=32)
    assert "conv" not in built.source.split("class ModelNew")[1].replace("self.c", "")


@pytest.mark.parametrize(
    ("layer", "size", "pool"),
    [
        ("nn.Conv1d(3, 4, 3, padding=1)", "2, 3, 9", "y.mean(2)"),
        ("nn.Conv1d(3, 4, 3, stride=2)", "2, 3, 9", "F.adaptive_avg_pool1d(y, 1)"),
        ("nn.ConvTranspose1d(3, 4, 3, stride=2)", "2, 3, 9", "y.sum(-1, keepdim=True)"),
        ("nn.Conv3d(2, 4, (1, 2, 3), padding=1)", "2, 2, 4, 5, 6", "y.mean((2, 3, 4))"),
        ("nn.ConvTranspose3d(2, 4, 2, stride=2, padding=1)", "2, 2, 3, 4, 3", "F.adaptive_avg_pool3d(y, 1)"),
    ],
)
def test_other_dimensions(layer: str, size: str, pool: str) -> None:
    task = make_task(f"y = self.c(x)\nreturn {pool}", f"torch.randn({size})", f"self.c = {layer}")
    check(task, "pooled_convolution", tolerance=32)


NEAR = [
    "y.relu().mean((2, 3))",
    "y.mean(2)",
    "y.mean(1)",
    "y.mean((1, 2, 3))",
    "y.mean((0, 2, 3))",
    "y.mean()",
    "y.amax((2, 3))",
    "y.mean((2, 3)), y",
    "y.mean((2, 3)) + y.sum((2, 3))",
    "(y + 1).mean((2, 3))",
    "(y * y).mean((2, 3))",
    "(y * self.s).mean((2, 3))",
    "F.adaptive_avg_pool2d(y, 2)",
    "F.adaptive_avg_pool2d(y, (1, 2))",
    "F.avg_pool2d(y, 2).mean((2, 3))",
    "F.adaptive_max_pool2d(y, 1)",
    "y.mean((2, 3), dtype=torch.float64)",
    "y.flatten(2).mean(2)",
    "y.var((2, 3))",
    "self.g(x).mean((2, 3))",
    "F.conv2d(x[0], self.c.weight).mean((1, 2))",
    "y.std((2, 3))",
]


@pytest.mark.parametrize("text", NEAR)
def test_near_misses(text: str) -> None:
    init = (
        "self.c = nn.Conv2d(4, 6, 3)\nself.g = nn.Conv2d(4, 6, 3, groups=2)\nself.s = nn.Parameter(torch.ones(6, 1, 1))"
    )
    forward = f"y = self.c(x)\nreturn {text}"
    assert not applies("pooled_convolution", make_task(forward, "torch.randn(2, 4, 7, 6)", init))


def test_a_convolution_that_is_written_to_stays() -> None:
    forward = "y = self.c(x)\ny[:, 0] = 1\nreturn y.mean((2, 3))"
    assert not applies(
        "pooled_convolution", make_task(forward, "torch.randn(2, 4, 7, 6)", "self.c = nn.Conv2d(4, 6, 3)")
    )
