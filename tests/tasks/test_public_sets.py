"""Public training sets on disk, in small files of our own in their formats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cuda_l1.errors import TaskError
from cuda_l1.tasks import load_tasks
from cuda_l1.tasks.graph_hash import graph_hash
from cuda_l1.tasks.public_sets import read_public_set

PLAIN = """
import torch

class Model(torch.nn.Module):
    def __init__(self, dim=1, scale=2.0):
        super(Model, self).__init__()
        self.dim, self.scale = dim, scale

    def forward(self, x):
        return torch.softmax(x, self.dim) * self.scale

def get_inputs():
    return [torch.rand([4, 4])]

def get_init_inputs():
    return []
"""
KERNELBOOK = {
    "entry_point": "SoftScale",
    "python_code": PLAIN.replace("Model", "SoftScale").replace("return []", "return [[], {'scale': 3.0}]"),
    "triton_code": "import torch\n\nclass SoftScaleNew(torch.nn.Module):\n    def __init__(self):\n"
    "        super(SoftScaleNew, self).__init__()\n",
    "original_triton_code": "async_compile = 1",
    "repo_name": "someone/something",
    "module_name": "SoftScale",
    "synthetic": False,
    "uuid": 7,
    "licenses": ["MIT", "Apache-2.0"],
    "stars": 3,
    "sha": "0123",
    "repo_link": "https://github.com/someone/something",
}
"""The columns that programs which read `dataset_permissive.parquet` name."""
CUDA_AGENT: dict[str, Any] = {"ops": ["torch.softmax", "torch.mul"], "data_source": "torch#2", "code": PLAIN}
DRKERNEL = {
    "original_python_code": PLAIN,
    "messages": [
        {"role": "user", "content": "faster"},
        {"role": "assistant", "content": "```python\nclass ModelNew:\n    first = 1\n```"},
        {"role": "user", "content": "wrong"},
        {"role": "assistant", "content": "```python\nclass ModelNew:\n    second = 2\n```"},
    ],
    "best_round": 2,
    "uuid": 0,
    "entry_point": "Model",
    "repo_name": "",
    "module_name": "",
    "final_speedup": 1.3,
    "num_rounds": 2,
    "timestamp": 1.7e9,
    "conversion_mode": "full_conversation_enhanced",
    "enable_thinking": False,
}
"""The columns of the card of drkernel-coldstart-8k."""


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_kernelbook_gets_the_names_and_arguments_of_kernelbench(tmp_path: Path) -> None:
    (found,) = read_public_set("kernelbook", write(tmp_path / "book.jsonl", KERNELBOOK)).found
    scope: dict[str, Any] = {}
    torch = pytest.importorskip("torch")
    exec(found.task.source, scope)
    model = scope["Model"](*scope["get_init_inputs"]())
    assert (model.dim, model.scale) == (1, 3.0)
    assert torch.equal(model(*(given := scope["get_inputs"]())), torch.softmax(given[0], 1) * 3.0)
    assert found.task.name == "00000_SoftScale" and found.task.suite == "kernelbook"
    assert found.provenance == "book.jsonl, row 0, someone/something (MIT, Apache-2.0)"
    assert found.variant is not None
    assert "class ModelNew" in found.variant.source and "SoftScale" not in found.variant.source
    assert found.variant.origins[0].proposer == "import"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"python_code": "class SoftScale(:"}, "is not Python"),
        ({"entry_point": "Missing"}, "0 classes would be called Model"),
        ({"python_code": KERNELBOOK["python_code"] + "\nclass Model: pass\n"}, "2 classes would be called Model"),
        ({"python_code": KERNELBOOK["python_code"].replace("'scale'", "'other'")}, "other of Model go by name only"),
        ({"python_code": KERNELBOOK["python_code"].replace("[[], {", "[{").replace("}]", "}]")}, "does not return"),
        ({"python_code": KERNELBOOK["python_code"].replace("{'scale': 3.0}", "{**x}")}, "syntax"),
        ({"python_code": KERNELBOOK["python_code"] + f"\n\nx = {'+'.join('1' * 2000)}\n"}, "recursion"),
    ],
)
def test_a_row_that_cannot_be_read_is_named_and_the_rest_goes_on(
    tmp_path: Path, change: dict[str, str], says: str
) -> None:
    read = read_public_set("kernelbook", write(tmp_path / "book.jsonl", {**KERNELBOOK, **change}, KERNELBOOK))
    assert len(read.found) == 1
    (problem,) = read.problems
    assert problem.startswith("book.jsonl, row 0: ") and says in problem


def test_a_name_is_plain_letters_whatever_stands_in_its_row(tmp_path: Path) -> None:
    row = {**KERNELBOOK, "entry_point": "../../x\n\x1b[2J", "python_code": PLAIN.replace("[]", "[[], {}]")}
    (found,) = read_public_set("kernelbook", write(tmp_path / "book.jsonl", {**row, "triton_code": ""})).found
    assert found.task.name == "00000_______x___2J"


def test_cuda_agents_rows_are_tasks_as_they_stand(tmp_path: Path) -> None:
    write(tmp_path / "ops.jsonl", CUDA_AGENT)
    read = read_public_set("cuda-agent-ops", tmp_path)
    assert [(i.task.name, i.variant) for i in read.found] == [("00000_softmax_mul", None)]
    assert "cc-by-4.0" in read.licence
    (tmp_path / "README.md").write_text("---\nlanguage: en\nlicense: cc-by-4.0\n---\n# The set\n")
    assert read_public_set("cuda-agent-ops", tmp_path).licence == "cc-by-4.0"


def test_the_variant_of_a_conversation_is_that_of_its_best_round(tmp_path: Path) -> None:
    (found,) = read_public_set("drkernel", write(tmp_path / "cold.jsonl", DRKERNEL)).found
    assert found.variant is not None and "second = 2" in found.variant.source


def test_a_row_whose_variant_is_none_is_a_task_and_says_why(tmp_path: Path) -> None:
    two = "```python\nclass ModelNew:\n    a = 1\n```\nor\n```python\nclass ModelNew:\n    b = 2\n```"
    told = [{"role": "assistant", "content": two}]
    rows = [{**DRKERNEL, "messages": told, "best_round": 1}, {**DRKERNEL, "best_round": 3}, DRKERNEL]
    read = read_public_set("drkernel", write(tmp_path / "cold.jsonl", *rows))
    assert [found.variant is not None for found in read.found] == [False, False, True]
    assert read.problems[0].startswith("cold.jsonl, row 0: its variant: several-blocks")
    assert read.problems[1] == "cold.jsonl, row 1: its variant: best_round is 3, of 2 turns"
    book = write(tmp_path / "book.jsonl", {**KERNELBOOK, "triton_code": "pass"}, {**KERNELBOOK, "triton_code": ""})
    read = read_public_set("kernelbook", book)
    assert [found.variant for found in read.found] == [None, None]
    assert read.problems == ["book.jsonl, row 0: its variant: 0 classes would be called ModelNew"]


def test_operators_are_a_list_or_its_text(tmp_path: Path) -> None:
    rows = [{**CUDA_AGENT, "ops": '["torch.relu", "nn.Linear"]'}, {**CUDA_AGENT, "ops": "torch.abs"}]
    read = read_public_set("cuda-agent-ops", write(tmp_path / "ops.jsonl", *rows))
    assert [found.task.name for found in read.found] == ["00000_relu_Linear", "00001_abs"]


def test_a_json_list_is_read_as_json_lines_are(tmp_path: Path) -> None:
    (tmp_path / "dataset_permissive.json").write_text(json.dumps([KERNELBOOK, KERNELBOOK], indent=1))
    assert len(read_public_set("kernelbook", tmp_path).found) == 2
    (tmp_path / "dataset_permissive.json").write_text("[1]")
    with pytest.raises(TaskError, match="its entry 0 is not a JSON object"):
        read_public_set("kernelbook", tmp_path)


def test_the_same_computation_has_the_same_graph_in_every_set(tmp_path: Path) -> None:
    book = write(
        tmp_path / "book.jsonl", {**KERNELBOOK, "python_code": KERNELBOOK["python_code"].replace("3.0", "2.0")}
    )
    agent = write(tmp_path / "ops.jsonl", CUDA_AGENT)
    (one,), (two,) = load_tasks(f"kernelbook:{book}"), load_tasks(f"cuda-agent-ops:{agent}")
    assert graph_hash(one) == graph_hash(two)
    assert not graph_hash(one).startswith("syntax-")


def test_parquet_is_read_as_json_lines_are(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.Table.from_pylist([DRKERNEL]), tmp_path / "a.parquet")
    (tmp_path / "b").mkdir()
    write(tmp_path / "b" / "cold.jsonl", DRKERNEL)
    one, two = read_public_set("drkernel", tmp_path / "a.parquet"), read_public_set("drkernel", tmp_path / "b")
    assert [(i.task.sha, i.variant) for i in one.found] == [(i.task.sha, i.variant) for i in two.found]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "it is empty"),
        ("{", "a.jsonl:1: is not JSON"),
        ("[1]", "is not a JSON object"),
        ('{"code": "x"}', "has no column ops; is it another data set?"),
        ('{"code": "x = 1", "ops": []}', "no row of it is a task; a.jsonl, row 0: defines no `Model`"),
    ],
)
def test_another_file_is_one_line(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "a.jsonl").write_text(content)
    with pytest.raises(TaskError) as caught:
        read_public_set("cuda-agent-ops", tmp_path)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_without_data_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"no \.parquet, \.jsonl or \.json file there"):
        load_tasks(f"kernelbook:{tmp_path}")
