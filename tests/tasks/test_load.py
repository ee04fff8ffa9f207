"""Files, classes, folders and what is wrong with them; nothing of a file is executed."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn as nn
from safetensors.torch import load_file, save_file

from cuda_l1.errors import TaskError
from cuda_l1.tasks import load_task, load_tasks, load_weights

TASK = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, dim):
        super(Model, self).__init__()
        self.linear = nn.Linear(dim, dim)
        self.state = torch.zeros(dim)

    def forward(self, x):
        return self.linear(x) + self.state

def get_inputs():
    return [torch.randn(2, 4)]

def get_init_inputs():
    return [4]
"""

CLASSES = '''
"""Two blocks."""
from __future__ import annotations
import torch.nn as nn

class Block(nn.Module):
    def __init__(self, dim: int, heads: int = 2, *, bias: bool = True) -> None:
        super().__init__()
        self.heads = heads
        self.linear = nn.Linear(dim, dim, bias=bias)

    def forward(self, x, scale=1.0):
        return self.linear(x) * scale

class Plain(nn.Module):
    def forward(self, x):
        return x + 1
'''


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def built(task):
    namespace = {}
    exec(task.source, namespace)
    model = namespace["Model"](*namespace["get_init_inputs"]())
    inputs = namespace["get_inputs"]()
    return model, inputs, model(*inputs)


def refused(spec, **options) -> str:
    with pytest.raises(TaskError) as caught:
        load_tasks(str(spec), **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_kernelbench_file_is_its_own_source(tmp_path):
    task = load_task(str(write(tmp_path / "mine.py", TASK)))
    assert (task.suite, task.name, task.level, task.source) == ("file", "mine", None, TASK)
    built(task)


def test_a_mark_in_front_of_the_text_is_none_of_it(tmp_path):
    path = tmp_path / "marked.py"
    path.write_text("\ufeff" + TASK, encoding="utf-8")
    assert load_task(str(path)).source == TASK


def test_a_file_in_another_encoding_is_told_how_to_be_saved(tmp_path):
    path = tmp_path / "old.py"
    path.write_bytes(f"# -*- coding: latin-1 -*-\n# caf\xe9\n{TASK}".encode("latin-1"))
    with pytest.raises(TaskError, match=r"old\.py: is not text in UTF-8 \(byte 31\); save it in UTF-8"):
        load_task(str(path))


def test_dtype_casts_parameters_attributes_and_inputs(tmp_path):
    task = load_task(str(write(tmp_path / "mine.py", TASK)), dtype="bf16")
    model, inputs, output = built(task)
    assert task.name == "mine-bf16"
    assert {t.dtype for t in (model.linear.weight, model.state, *inputs, output)} == {torch.bfloat16}


def test_dtype_casts_what_lies_in_a_dict(tmp_path):
    text = TASK.replace("def forward(self, x):", "def forward(self, given):\n        x = given['x']")
    text = text.replace("[torch.randn(2, 4)]", "[{'x': torch.randn(2, 4), 'k': 1}]")
    _, (given,), output = built(load_task(str(write(tmp_path / "mine.py", text)), dtype="bf16"))
    assert given["x"].dtype == output.dtype == torch.bfloat16 and given["k"] == 1


@pytest.mark.parametrize(
    ("signature", "body", "got"),
    [
        ("n, m=8", "return [[], {'n': 4}]", {"n": 4, "m": 8}),
        ("n, m=8, k=1", "size = 3\n    return ([size], {'k': size + 1})", {"n": 3, "m": 8, "k": 4}),
        ("n, *, m", "return [(2,), {'m': 5}]", {"n": 2, "m": 5}),
        ("n=1, cfg=2", "return [[], {}]", {"n": 1, "cfg": 2}),
        ("sizes, cfg", "return [[2, 3], {'m': 5}]", {"sizes": [2, 3], "cfg": {"m": 5}}),
        ("sizes, cfg", "return [[2, 3], {}]", {"sizes": [2, 3], "cfg": {}}),
        ("sizes, cfg", "return [[2], {'sizes': 5}]", {"sizes": [2], "cfg": {"sizes": 5}}),
        ("sizes, cfg", "return [[], {1: 5}]", {"sizes": [], "cfg": {1: 5}}),
    ],
)
def test_constructor_arguments_may_be_a_list_and_named_ones(tmp_path, signature, body, got):
    path = tmp_path / "task.py"
    path.write_text(
        f"class Model:\n    def __init__(self, {signature}):\n        self.got = dict(locals())\n\n\n"
        f"def get_inputs():\n    return []\n\n\ndef get_init_inputs():\n    {body}\n"
    )
    namespace: dict = {}
    exec(load_task(str(path)).source, namespace)
    init = namespace["get_init_inputs"]()
    model = namespace["Model"](**init) if isinstance(init, dict) else namespace["Model"](*init)
    assert {name: value for name, value in model.got.items() if name != "self"} == got


def test_a_file_without_get_init_inputs_takes_none(tmp_path):
    text = TASK.replace("dim):", "dim=4):").partition("def get_init_inputs")[0]
    task = load_task(str(write(tmp_path / "mine.py", text)))
    assert "return []" in task.source
    built(task)


@pytest.mark.parametrize(
    ("signature", "wanted"),
    [("dim", "dim=..."), ("dim, heads, bias=True", "dim=..., heads=..."), ("dim=4, *, bias, eps=1e-5", "bias=...")],
)
def test_a_constructor_that_takes_arguments_and_is_given_none_says_which(tmp_path, signature, wanted):
    text = TASK.replace("dim):", f"{signature}):").partition("def get_init_inputs")[0]
    path = write(tmp_path / "mine.py", text)
    with pytest.raises(TaskError, match=re.escape(f"the constructor of `Model` takes arguments: --init '{wanted}'")):
        load_task(str(path))


def test_a_file_that_was_meant_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "blocks.py", CLASSES)
    write(tmp_path / "candidate.py", "class ModelNew: ...")
    for spec, meant in (("blocks", "blocks.py"), ("blocks.py:Block", "blocks.py::Block")):
        with pytest.raises(TaskError, match=f"did you mean {meant}[?]"):
            load_task(spec)
    with pytest.raises(TaskError, match="defines `ModelNew`, as a candidate does; a task defines `Model`"):
        load_task("candidate.py")


def test_a_class_with_described_inputs(tmp_path):
    path = write(tmp_path / "blocks.py", CLASSES)
    task = load_task(f"{path}::Block", inputs="randn(3, 8) 0.5", init="dim=8, heads=4")
    model, inputs, _ = built(task)
    assert task.name == "blocks.Block" and "return [8, 4]" in task.source
    assert model.heads == 4 and inputs[1] == 0.5
    assert built(load_task(f"{path}::Plain", inputs="randn(3)"))[0]


def test_parameters_follow_the_dtype_of_all_inputs(tmp_path):
    path = write(tmp_path / "blocks.py", CLASSES)
    half = load_task(f"{path}::Block", inputs="randn(3, 8):bf16", init="[8]")
    assert built(half)[2].dtype == torch.bfloat16 and half.name == "blocks.Block-bf16"
    mixed = load_task(f"{path}::Block", inputs="randn(3, 8) randn(1):bf16", init="[8]")
    assert built(mixed)[0].linear.weight.dtype == torch.float32
    stated = load_task(f"{path}::Block", inputs="randn(3, 8)", init="[8]", dtype="fp64")
    assert built(stated)[2].dtype == torch.float64


def test_keyword_only_arguments_are_bound(tmp_path):
    path = write(tmp_path / "blocks.py", CLASSES)
    model, _, _ = built(load_task(f"{path}::Block", inputs="randn(3, 8)", init="8, bias=False"))
    assert model.linear.bias is None


def test_a_class_that_imports_its_neighbours(tmp_path):
    """Their text goes into the task's, which then runs where nothing lies beside it and changes when they change."""
    neighbour = write(tmp_path / "neighbour_of_block.py", "import own_package.deep\nSCALE = own_package.deep.SCALE\n")
    write(tmp_path / "own_package" / "__init__.py", "from .deep import NOTE\n")
    write(tmp_path / "own_package" / "deep.py", r'import math; SCALE, NOTE = 3.0, "\x21" + ' + "'''\"\"\"'''\n")
    write(tmp_path / "own_package" / "unused.py", "not Python")
    write(tmp_path / "json.py", "raise RuntimeError('the one of the standard library is meant')\n")
    text = CLASSES.replace(
        "import torch.nn as nn\n", "import json\nfrom neighbour_of_block import SCALE\nimport torch.nn as nn\n"
    )
    path = write(tmp_path / "blocks.py", text)
    task = load_task(f"{path}::Plain", inputs="randn(3)")
    assert task.source.index("__future__") < task.source.index("sys.meta_path") < task.source.index("import SCALE")
    assert "unused" not in task.source and str(tmp_path) not in task.source
    says = "\nimport inspect, own_package.deep\nprint(Model()(*get_inputs()).shape, SCALE, own_package.NOTE)\n"
    says += "print(inspect.getsource(own_package.deep)[:11])\n"
    script = write(tmp_path / "elsewhere" / "run.py", task.source + says)
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=script.parent, check=True)
    assert run.stdout == 'torch.Size([3]) 3.0 !"""\nimport math\n'
    neighbour.write_text("SCALE = 4.0\n")
    assert load_task(f"{path}::Plain", inputs="randn(3)").sha != task.sha


def test_what_a_text_holds_already_is_not_looked_for_again(tmp_path):
    write(tmp_path / "neighbour_of_block.py", "SCALE = 3.0\n")
    task = load_task(str(write(tmp_path / "mine.py", "import neighbour_of_block\n" + TASK)))
    write(tmp_path / "neighbour_of_block.py", "SCALE = 4.0\n")
    assert load_task(str(write(tmp_path / "again.py", task.source))).source == task.source


def test_odd_escapes_of_a_file_are_its_own_business(tmp_path, recwarn):
    load_task(str(write(tmp_path / "mine.py", "PATTERN = '\\d'\n" + TASK)))
    assert not recwarn.list


def test_a_text_that_is_nested_too_deep_says_so(tmp_path):
    path = write(tmp_path / "deep.py", f"{TASK}x = {'-' * 200_000}1\n")
    assert refused(path).endswith("deep.py: cannot be parsed: nested too deep")


def test_neighbours_that_cannot_be_taken_along(tmp_path):
    path = write(tmp_path / "blocks.py", "import neighbour_of_block\n" + TASK)
    write(tmp_path / "neighbour_of_block.py", "def f(:\n")
    assert f"neighbour_of_block, which {path} imports: cannot be parsed" in refused(path)
    write(tmp_path / "neighbour_of_block.py", f'TEXT = "{"x" * 1_000_000}"\n')
    assert "over 1000 kB" in refused(path)


def test_inputs_from_a_file_of_tensors(tmp_path):
    path = write(tmp_path / "blocks.py", CLASSES)
    torch.save([torch.randn(50, 8) * 2 + 7, 3.0], tmp_path / "inputs.pt")
    _, inputs, _ = built(load_task(f"{path}::Block", inputs=f"{tmp_path}/inputs.pt", init="[8]"))
    assert inputs[0].shape == (50, 8) and abs(inputs[0].mean() - 7) < 1 and inputs[1] == 3.0
    torch.save(torch.randn(5, 8), tmp_path / "one.pt")
    _, inputs, _ = built(load_task(f"{path}::Block", inputs=f"{tmp_path}/one.pt", init="[8]", dtype="bf16"))
    assert inputs[0].shape == (5, 8) and inputs[0].dtype == torch.bfloat16


def test_inputs_from_a_function(tmp_path, monkeypatch):
    path = write(tmp_path / "blocks.py", CLASSES)
    made = 'raise_if_run = """\\\\"""\nimport torch\n\ndef make():\n    return torch.randn(2, 8)\n'
    write(tmp_path / "package" / "drawing.py", made)
    write(tmp_path / "package" / "__init__.py", "raise RuntimeError('imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for spec in (f"{tmp_path}/package/drawing.py:make", "package.drawing:make"):
        _, inputs, _ = built(load_task(f"{path}::Block", inputs=spec, init="[8]"))
        assert inputs[0].shape == (2, 8)
    assert "import json.nowhere" in load_task(f"{path}::Block", inputs="json.nowhere:make", init="[8]").source
    assert "defines no `nope`" in refused(f"{path}::Block", inputs=f"{tmp_path}/package/drawing.py:nope")
    assert "no such file" in refused(f"{path}::Block", inputs=f"{tmp_path}/none.py:make")


def test_weights_are_kept_by_content(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = write(tmp_path / "mine.py", TASK)
    state = nn.Linear(4, 4).state_dict(prefix="linear.")
    save_file(state, tmp_path / "a.safetensors")
    torch.save({"state_dict": state}, tmp_path / "a.pt")
    bare, stored, converted = (
        load_task(str(path)),
        load_task(str(path), weights=str(tmp_path / "a.safetensors")),
        load_task(str(path), weights=str(tmp_path / "a.pt")),
    )
    assert bare.sha != stored.sha and stored.weights.path == str(tmp_path / "a.safetensors")
    torch.testing.assert_close(load_file(converted.weights.path), dict(state), rtol=0, atol=0)
    assert load_weights(tmp_path / "a.pt") == converted.weights


def test_wrong_weights_are_one_clear_line(tmp_path):
    path = write(tmp_path / "mine.py", TASK)
    write(tmp_path / "bad.safetensors", "no")
    write(tmp_path / "bad.pt", "no")
    torch.save({"a": 3}, tmp_path / "odd.pt")
    torch.save(nn.Linear(2, 2), tmp_path / "pickled.pt")
    assert "no such file" in refused(path, weights="none.safetensors")
    assert "not a safetensors file" in refused(path, weights=str(tmp_path / "bad.safetensors"))
    assert "not a file of plain tensors" in refused(path, weights=str(tmp_path / "bad.pt"))
    (tmp_path / "text.pt").write_text("import torch\n")
    assert "weights_only" not in refused(path, weights=str(tmp_path / "text.pt"))
    assert "`a` is not a tensor" in refused(path, weights=str(tmp_path / "odd.pt"))
    assert "not a file of plain tensors" in refused(path, weights=str(tmp_path / "pickled.pt"))


def test_wrong_files_are_one_clear_line(tmp_path):
    path = write(tmp_path / "blocks.py", CLASSES)
    bad = write(tmp_path / "bad.py", "import torch\n\ndef f(:\n    pass\n")
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe\x00")
    relative = write(tmp_path / "relative.py", "from . import x\n" + TASK)
    inputless = write(tmp_path / "inputless.py", "class Model: pass\n")
    assert "no such file" in refused(tmp_path / "none.py")
    assert "no such file" in refused(f"{tmp_path}/none.py::Block")
    assert f"{bad}:3: syntax error" in refused(bad)
    assert "is not text in UTF-8 (byte 0)" in refused(tmp_path / "binary.py")
    assert f"{relative}:1: relative import" in refused(relative)
    assert "defines no `get_inputs`" in refused(inputless) and "--inputs" in refused(inputless)
    assert "choose a class" in refused(path) and "::Plain" in refused(path)
    assert "defines no `Nope`" in refused(f"{path}::Nope")
    assert "not the name of a class" in refused(f"{path}::")
    assert "defines no `Model`" in refused(write(tmp_path / "empty.py", ""))
    assert "no task is named" in refused(" ")
    assert "parameters cannot be i64" in refused(f"{path}::Plain", inputs="randn(3)", dtype="i64")


def test_nothing_of_a_file_is_executed(tmp_path):
    text = f"open({str(tmp_path / 'touched')!r}, 'w')\n" + TASK
    load_task(str(write(tmp_path / "mine.py", text)))
    assert not (tmp_path / "touched").exists()


@pytest.fixture
def checkout(tmp_path):
    for level, names in {1: ["10_Ten", "2_Two"], 2: ["1_One"]}.items():
        for name in names:
            write(tmp_path / "repo" / "KernelBench" / f"level{level}" / f"{name}.py", TASK)
    write(tmp_path / "repo" / "KernelBench" / "level1" / "helpers.py", "x = 1\n")
    return tmp_path / "repo"


def test_a_checkout_of_kernelbench_and_its_parts(checkout):
    names = [task.name for task in load_tasks(str(checkout))]
    assert names == ["level1/2_Two", "level1/10_Ten", "level2/1_One"]
    assert [task.name for task in load_tasks(str(checkout / "KernelBench"))] == names
    level = load_tasks(str(checkout / "KernelBench" / "level1"))
    assert [(task.suite, task.level) for task in level] == [("kernelbench", 1)] * 2
    assert load_task(str(checkout / "KernelBench" / "level2" / "1_One.py")).id == load_tasks(str(checkout))[2].id


def test_a_path_may_begin_at_home(checkout, tmp_path, monkeypatch):
    """Also behind a colon, and what lies there may be a part of a checkout, or chosen from it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = checkout.relative_to(tmp_path)
    everything = load_tasks(f"kernelbench:{checkout}")
    assert load_tasks(f"kernelbench:~/{folder}") == everything
    assert load_tasks(f"kernelbench:~/{folder}#{everything[0].name}") == everything[:1]
    assert load_tasks(f"~/{folder}/KernelBench/level1") == load_tasks(str(checkout / "KernelBench" / "level1"))
    with pytest.raises(TaskError, match=re.escape(f"{checkout}#{everything[0].name}")):
        load_task(f"kernelbench:~/{folder}")


def test_any_folder_of_task_files(tmp_path):
    write(tmp_path / "b.py", TASK)
    write(tmp_path / "a.py", TASK + "\n# a\n")
    write(tmp_path / "helpers.py", "x = 1\n")
    assert [task.name for task in load_tasks(str(tmp_path))] == ["a", "b"]
    assert "--inputs is for one task" in refused(tmp_path, inputs="randn(3)")
    (tmp_path / "empty").mkdir()
    assert "no file here defines" in refused(tmp_path / "empty")
    write(tmp_path / "old.py", "print 'not a task'\n")
    (tmp_path / "other.py").write_bytes(b"# \xe9\n")
    assert [task.name for task in load_tasks(str(tmp_path))] == ["a", "b"]
    for damaged in (b"\x1f\x8bdamaged", gzip.compress(TASK.encode())[:-1]):
        (tmp_path / "packed.py").write_bytes(damaged)
        assert "packed.py: cannot be read: its gzip packing is damaged or cut off" in refused(tmp_path)
    (tmp_path / "packed.py").unlink()
    bad = write(tmp_path / "worse.py", TASK + "def f(:\n")
    assert f"{bad}:{len(TASK.splitlines()) + 1}: syntax error" in refused(tmp_path)
