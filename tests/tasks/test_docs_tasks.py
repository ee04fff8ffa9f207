"""The examples of docs/tasks.md work as written."""

from __future__ import annotations

import re
from pathlib import Path

import torch

from cuda_l1.tasks import load_task
from cuda_l1.tasks.input_spec import _DRAWINGS, render_inputs

PAGE = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text()


def test_each_described_input_can_be_drawn():
    block = re.search(r"<!-- inputs:.*?```text\n(.*?)```", PAGE, re.DOTALL)[1]
    for line in block.splitlines():
        namespace = {"torch": torch}
        exec(render_inputs(line), namespace)
        assert namespace["get_inputs"]()


def test_each_drawing_is_documented():
    assert [name for name in _DRAWINGS if f"{name}(" not in PAGE] == []


def test_the_example_is_a_task(tmp_path):
    (tmp_path / "model.py").write_text(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1])
    namespace = {}
    exec(load_task(str(tmp_path / "model.py")).source, namespace)
    model = namespace["Model"](*namespace["get_init_inputs"]())
    assert model(*namespace["get_inputs"]()).shape == (16, 64)


def test_the_header_of_a_built_in_file_is_as_shown():
    header = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]
    file = Path(__file__).parents[2] / "src/cuda_l1/tasks/builtin/bias_gelu_scale.py"
    assert header in file.read_text()
