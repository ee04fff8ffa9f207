"""Smaller sizes for a task that takes too much memory; what a call takes is said by a stand-in."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from cuda_l1.tasks.fitting import Measure, fetches_a_model, missing_modules, scaled_to
from cuda_l1.tasks.sizes import axes
from cuda_l1.types import Task

TEXT = """import torch

batch_size = 64
rows, dim = 1024, 4096


class Model(torch.nn.Module):
    def forward(self, x):
        return x


def get_inputs():
    return [torch.randn(batch_size, rows, dim)]
"""


def task(text: str = TEXT) -> Task:
    return Task(suite="file", name="t", source=text)


def sizes(of: Task) -> dict[str, int]:
    found = re.search(r"batch_size = (\d+)\nrows, dim = (\d+), (\d+)", of.source)
    assert found
    return dict(zip(("batch_size", "rows", "dim"), map(int, found.groups()), strict=True))


def measure(of: Task) -> int:
    values = sizes(of)
    return 4 * values["batch_size"] * values["rows"] * values["dim"]


def scaled(most: int, how: Measure = measure) -> tuple[str, int] | None:
    found = scaled_to(task(), most, measure(task()), how)
    assert found is None or how(found.task) == found.peak_bytes <= most
    return found and (found.change, found.peak_bytes)


def test_the_batch_goes_first_by_a_power_of_two_and_no_further_than_it_must() -> None:
    found = scaled_to(task(), 40 << 20, measure(task()), measure)
    assert found is not None and sizes(found.task) == {"batch_size": 2, "rows": 1024, "dim": 4096}
    assert (found.change, found.peak_bytes) == ("batch_size=2 instead of 64", 32 << 20)
    assert found.task.name == "t[batch_size=2]" and found.task.sha != task().sha


def test_other_sizes_follow_the_larger_first_and_stay_at_16_or_more() -> None:
    """A batch of 1 takes 16 MiB."""
    assert scaled(4 << 20) == ("batch_size=1 instead of 64, dim=1024 instead of 4096", 4 << 20)
    assert scaled(20 << 10) == (
        "batch_size=1 instead of 64, dim=64 instead of 4096, rows=64 instead of 1024", 16 << 10
    )  # fmt: skip
    assert scaled(1 << 9) is None


def test_a_batch_that_another_size_must_equal_goes_with_it() -> None:
    """Level 1's hinge loss multiplies (batch, n) by (batch): at sizes of its own the batch must be n."""
    text = (
        "import torch\n\nbatch_size = 1024\ninput_shape = (1024,)\n\n\nclass Model(torch.nn.Module):\n"
        "    def forward(self, x, y):\n        return x * y\n\n\ndef get_inputs():\n"
        "    return [torch.rand(batch_size, *input_shape), torch.rand(batch_size)]\n"
    )

    def square(of: Task) -> int | None:
        batch, side = map(int, re.findall(r"= \(?(\d+)", of.source))
        return 4 * batch * side if batch == side else None

    found = scaled_to(task(text), 64 << 10, 4 << 20, square)
    assert found is not None
    assert (found.change, found.peak_bytes) == (
        "batch_size=128 instead of 1024, input_shape[0]=128 instead of 1024", 64 << 10
    )  # fmt: skip


def test_a_size_that_the_rest_does_not_follow_is_left_alone() -> None:
    def fixed_batch(of: Task) -> int | None:
        return measure(of) if sizes(of)["batch_size"] == 64 else None

    def no_batch_of_one(of: Task) -> int | None:
        return measure(of) if sizes(of)["batch_size"] > 1 else None

    assert scaled(32 << 20, no_batch_of_one) == ("batch_size=2 instead of 64", 32 << 20)
    assert scaled(16 << 20, no_batch_of_one) == ("batch_size=2 instead of 64, dim=2048 instead of 4096", 16 << 20)
    assert scaled(512 << 20, fixed_batch) == ("dim=2048 instead of 4096", 512 << 20)


PERCEPTRON = """import torch

batch_size = 128
input_size = 16384
layer_sizes = [16384, 16384]
output_size = 8192


def get_inputs():
    return [torch.randn(batch_size, input_size)]
"""


def test_sizes_of_one_value_are_halved_together_where_that_runs() -> None:
    def of_weights(of: Task) -> int:
        values = {axis.name: axis.value for axis in axes(of)}
        widths = [values[name] for name in ("input_size", "layer_sizes[0]", "layer_sizes[1]", "output_size")]
        return 4 * (sum(a * b for a, b in pairwise(widths)) + sum(widths) * values["batch_size"])

    found = scaled_to(task(PERCEPTRON), 10 << 20, of_weights(task(PERCEPTRON)), of_weights)
    assert found is not None and found.peak_bytes == of_weights(found.task) <= 10 << 20
    assert "input_size = 512\nlayer_sizes = [512, 512]\noutput_size = 512\n" in found.task.source

    def one_alone(of: Task) -> int | None:
        return measure(of) if sizes(of)["rows"] == 1024 else None

    square = task(TEXT.replace("4096", "1024"))
    found = scaled_to(square, 1 << 20, measure(square), one_alone)
    assert found is not None and found.change == "batch_size=1 instead of 64, dim=256 instead of 1024"


LITERAL = """import torch


def get_inputs():
    return [torch.randn(16, 64)]


def get_init_inputs():
    return [64]
"""


def test_a_number_of_the_inputs_is_halved_with_the_same_of_the_constructor() -> None:
    def follows(of: Task) -> int | None:
        drawn, constructed = (int(found) for found in re.findall(r"(\d+)[)]?\]", of.source))
        return 16 * 4 * drawn if drawn == constructed else None

    found = scaled_to(task(LITERAL), 2048, 4096, follows)
    assert found is not None and found.change == "64=32 instead of 64" and "return [32]" in found.task.source


def test_a_text_without_sizes_is_not_scaled() -> None:
    fixed = task("import torch\n\n\ndef get_inputs():\n    return make()\n")
    assert scaled_to(fixed, 1, 100, lambda t: 1) is None


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("import torch, nowhere_to_be_found.part\nfrom os import path\n", ["nowhere_to_be_found"]),
        ("from nowhere_to_be_found import x\nimport nowhere_to_be_found\n", ["nowhere_to_be_found"]),
        ("try:\n    import nowhere_to_be_found\nexcept ImportError:\n    pass\n", []),
        ("import sys\nsys.path.insert(0, '/x')\nimport nowhere_to_be_found\n", []),
        ("from . import x\n", []),
        ("def broken(:\n", []),
        ("import __main__\n", []),
        (f"import nowhere_to_be_found\nx = {'+'.join('1' * 100_000)}\n", []),
        (f"x = {'-' * 200_000}1\n", []),
    ],
)
def test_libraries_that_are_not_here(text: str, missing: list[str]) -> None:
    assert missing_modules(task(text)) == missing


FOR_OTHERS = """
class Model(torch.nn.Module):
    @classmethod
    def from_pretrained(cls, name):
        return transformers.GPT2.from_pretrained(name)
"""


@pytest.mark.parametrize(
    ("text", "fetches"),
    [
        ("from transformers import AutoConfig\nconfig = AutoConfig.from_pretrained('gpt2')\n", True),
        ("class Model:\n    def __init__(self):\n        self.model = A.from_pretrained('gpt2')\n", True),
        (FOR_OTHERS, False),
        ("# from_pretrained() is only talked about\n", False),
        ("def broken(:\n", False),
        (f"A.from_pretrained('gpt2')\nx = {'-' * 200_000}1\n", False),
    ],
)
def test_what_fetches_a_model(text: str, fetches: bool) -> None:
    assert fetches_a_model(task(text)) is fetches
