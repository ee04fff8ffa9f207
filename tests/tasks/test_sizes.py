"""The sizes that a task's text names: found without running it, and changed where they stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_l1.errors import UsageError
from cuda_l1.tasks import builtin_names, load_task
from cuda_l1.tasks.sizes import automatic, axes, other_sizes, own_sizes, parse_shapes, resized, variants
from cuda_l1.types import Task

MODEL = "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x * 2\n\n\n"


def task_of(text: str) -> Task:
    return Task(suite="test", name="task", source=MODEL + text)


def called(task: Task, name: str = "get_inputs") -> object:
    """What a function of the task's text returns; the texts are this test's own."""
    names: dict[str, object] = {}
    exec(task.source, names)
    return names[name]()  # type: ignore[operator]


NAMED = task_of("""
batch_size = 16
dim = 64 * 8
half = dim // 2
kernel_size = 3
shape = (32, 100)
rows, columns = 5, 6
EPSILON: float = 1e-5
FLAG = True


def made(n):
    return torch.randn(n, rows)


def get_inputs():
    return [torch.randn(batch_size, half), torch.randn(*shape), made(columns)]


def get_init_inputs():
    return [dim, kernel_size]
""")


@pytest.mark.parametrize("size", [{"batch_size": 4}, {"shape[0]": 8, "shape[1]": 20}])
def test_a_task_at_other_sizes_says_which_in_its_name(size):
    assert other_sizes(NAMED) is None
    assert other_sizes(resized(NAMED, size)) == ",".join(f"{name}={value}" for name, value in size.items())


def test_constants_that_the_inputs_read_come_first():
    found = {axis.name: (axis.value, axis.is_drawn) for axis in axes(NAMED)}
    assert found == {
        "batch_size": (16, True),
        "dim": (512, True),
        "shape[0]": (32, True),
        "shape[1]": (100, True),
        "rows": (5, True),
        "columns": (6, True),
        "kernel_size": (3, False),
    }
    assert [size for size in automatic(NAMED) if "kernel_size" in size] == []


def test_another_size_changes_the_text_and_what_follows_from_it():
    other = resized(NAMED, {"dim": 7, "shape[1]": 9, "columns": 2, "batch_size": 1})
    first, second, third = called(other)
    assert (first.shape, second.shape, third.shape) == ((1, 3), (32, 9), (2, 5))
    assert called(other, "get_init_inputs") == [7, 3]
    assert other.sha != NAMED.sha and other.name == "task[dim=7,shape[1]=9,columns=2,batch_size=1]"


def test_literals_of_one_value_are_one_size():
    task = task_of("""
def get_inputs():
    return [torch.randn(8, 64), torch.randint(0, 64, (8, 3)), torch.rand((64,)), torch.ones(1, 8).expand(8, 8), 8.0]


def get_init_inputs():
    return [64, 8]
""")
    assert own_sizes(task) == {"3": 3, "8": 8, "64": 64}
    x, indices, table, view, number = called(resized(task, {"8": 5, "64": 6}))
    assert (x.shape, indices.shape, table.shape, view.shape, number) == ((5, 6), (5, 3), (6,), (5, 5), 8.0)
    inputs_only, both = variants(task, {"64": 6})
    assert called(inputs_only, "get_init_inputs") == [64, 8] and called(both, "get_init_inputs") == [6, 8]
    assert [len(variants(task, {"3": 2})), called(both)[1].max() < 64] == [1, True]


def test_what_the_command_line_appends_is_what_counts(tmp_path: Path):
    path = tmp_path / "ref.py"
    path.write_text(MODEL + "batch = 4\n\n\ndef get_inputs():\n    return [torch.randn(batch, 3)]\n")
    assert own_sizes(load_task(str(path))) == {"batch": 4, "3": 3}
    task = load_task(str(path), inputs="randn(8, 128, 4096):bf16 randint(0, 1000, 8)")
    assert [axis.name for axis in axes(task) if axis.is_drawn] == ["8", "128", "4096"]
    x, indices = called(resized(task, {"8": 2}))
    assert x.shape == (2, 128, 4096) and indices.shape == (2,)
    cast = load_task(str(path), dtype="bf16")
    assert [axis.name for axis in axes(cast) if axis.is_drawn] == ["batch", "3"]


def test_a_chain_of_names_is_one_size():
    task = task_of(
        "height = width = 128\na = b = (4, 6)\n\n\ndef get_inputs():\n    return [torch.randn(2, width, *b)]\n"
    )
    assert {axis.name: (axis.value, axis.is_drawn) for axis in axes(task)} == {
        "height": (128, True), "a[0]": (4, True), "a[1]": (6, True), "2": (2, True)
    }  # fmt: skip
    (x,) = called(resized(task, {"height": 16, "a[1]": 5}))
    assert x.shape == (2, 16, 4, 5)


def test_text_before_a_size_may_be_of_any_alphabet():
    task = task_of("größe = 4; höhe = 6\n\n\ndef get_inputs():\n    return [torch.randn(größe, höhe)]\n")
    (x,) = called(resized(task, {"höhe": 1}))
    assert x.shape == (4, 1)


@pytest.mark.parametrize("name", builtin_names())
def test_every_built_in_task_has_sizes(name: str):
    task = load_task(name)
    sizes = automatic(task)
    assert sizes and all(resized(task, size).source != task.source for size in sizes)


def test_what_can_be_asked_for():
    assert parse_shapes("batch_size=1,7 dim=8", NAMED) == [{"batch_size": 1}, {"batch_size": 7}, {"dim": 8}]
    assert parse_shapes("rows=1+columns=9; rows=1+columns=9", NAMED) == [{"rows": 1, "columns": 9}]
    own, auto = parse_shapes("kernel_size=5", NAMED), parse_shapes("auto", NAMED)
    assert own == [{"kernel_size": 5}] and {"batch_size": 17} in auto and {"batch_size": 32} in auto
    assert {"batch_size": 16} not in auto


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("width=3", "no size `width`; it has batch_size=16, dim=512"),
        ("batch_size", "give auto, or NAME=NUMBER"),
        ("batch_size=0", "whole numbers from 1"),
        ("batch_size=-1", "whole numbers from 1"),
        ("batch_size=x", "whole numbers from 1"),
        ("batch_size=2147483648", "whole numbers from 1 to 2147483647"),
        ("rows=1,2+columns=3,4", "one value for each"),
        ("", "give auto"),
    ],
)
def test_what_cannot(text: str, told: str):
    with pytest.raises(UsageError, match="--shapes") as caught:
        parse_shapes(text, NAMED)
    assert told in str(caught.value) and "\n" not in str(caught.value)


def test_a_task_without_sizes_says_what_to_do():
    task = task_of("def get_inputs():\n    return [torch.load('x.pt')]\n")
    with pytest.raises(UsageError, match="give the sizes of its inputs names at module level"):
        parse_shapes("auto", task)
