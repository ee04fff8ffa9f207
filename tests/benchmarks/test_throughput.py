"""The batches of the throughput benchmark are what they say, and its figures follow from what was found."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from benchmark_fakes import GPU

import kernelbench_side
import throughput
from csv_table import Table, read_rows
from provenance import columns_of
from throughput import COLUMNS, report, summed
from throughput_batch import FUNCTIONS, KINDS, batch, spelled

MATH = {"exp": math.exp, "log": math.log, "sqrt": math.sqrt, "abs": abs, "max": max, "min": min}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_language_computes_the_same(name: str) -> None:
    import torch

    tl = SimpleNamespace(**{k: v for k, v in MATH.items() if k not in ("max", "min")}, maximum=max, minimum=min)
    c = {"expf": math.exp, "logf": math.log, "sqrtf": math.sqrt, "fabsf": abs, "fmaxf": max, "fminf": min}
    for x in (-3.5, -0.25, 0.5, 4.0):
        expected = eval(FUNCTIONS[name], {**MATH, "x": x})
        in_torch = eval(spelled(name, "torch"), {"torch": torch, "x": torch.tensor(x, dtype=torch.float64)})
        text = spelled(name, "c")
        assert not re.search(r"\d\.\d+(?!f)\b", text), text
        in_c = eval(re.sub(r"(\d\.\d+)f", r"\1", text), {**c, "x": x})
        in_triton = eval(spelled(name, "triton"), {"tl": tl, "x": x})
        assert float(in_torch) == pytest.approx(expected) and in_c == in_triton == pytest.approx(expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_batch_is_40_texts_for_20_tasks(kind: str, device: str) -> None:
    entries = batch(kind, count=40, device=device, token="token")
    assert len({entry.candidate.source for entry in entries}) == 40 == len({entry.variant for entry in entries})
    assert len({entry.task.sha for entry in entries}) == 20
    for entry in entries:
        compile(entry.candidate.source, entry.variant, "exec")
        assert "EXPRESSION" not in entry.candidate.source and "WIDTH" not in entry.candidate.source
        assert ("__global__" in entry.candidate.source) == (kind == "inline" and device == "cuda")
    assert entries[0].candidate.source != batch(kind, count=1, device=device, token="other")[0].candidate.source


def test_kernelbench_can_take_the_tasks() -> None:
    """It makes every input float32, and compares one tensor."""
    import torch

    for entry in batch("none", count=40, device="cpu", token="token")[::2]:
        names: dict[str, object] = {}
        exec(entry.task.source, names)
        inputs = names["get_inputs"]()  # type: ignore[operator]
        assert all(isinstance(x, torch.Tensor) and x.dtype == torch.float32 for x in inputs), entry.variant
        with torch.no_grad():
            found = names["Model"](*names["get_init_inputs"]())(*inputs)  # type: ignore[operator]
        assert isinstance(found, torch.Tensor), entry.variant


def test_the_error_of_a_speedup_is_known_where_the_true_one_is(tmp_path: Path) -> None:
    entries = batch("none", count=4, device="cpu", token="token")
    found = [
        {"outcome": "ACCEPTED", "speedup": 1 + error, "build_s": 0.5, "finished_s": 3.0 * place}
        for place, error in enumerate((0.01, -0.02, 0.03), start=1)
    ]
    found.append({"outcome": "CRASHED", "speedup": None, "build_s": None, "finished_s": 12.0})
    row = summed(entries, found, "none")
    assert (row["candidates"], row["tasks"], row["accepted"], row["per_minute"]) == (4, 2, 3, 20.0)
    assert row["error_median"] == pytest.approx(0.02) and row["error_p95"] == pytest.approx(0.03)
    assert row["build_s"] == 1.5 and row["half_width_median"] is None
    assert summed(entries, found, "triton")["error_median"] is None, "a kernel's true speed-up is not known"
    table = Table(tmp_path / "throughput.csv", COLUMNS, keys=3)
    common = {"kind": "none", "wall_s": 12.0, "evaluators": 2, **columns_of(GPU)}
    table.append({"system": "cuda-l1", "protocol": "screen", **common, **row})
    table.append({"system": "KernelBench", "protocol": "default", **common, **row, "per_minute": 4.0})
    text = report(table.rows())
    assert "| none | cuda-l1 | screen | 3 of 4 | 2 | 12.0 | 20.0 | 1.5 | 2.00 % | 3.00 % | - |" in text
    assert "- build none: screen judges 5.00 times as many as KernelBench" in text


def side(tmp_path: Path, evaluation: str) -> str:
    package = tmp_path / "src" / "kernelbench"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "eval.py").write_text(evaluation)
    (tmp_path / "batch.json").write_text("[]")
    words = [sys.executable, kernelbench_side.__file__, str(tmp_path), str(tmp_path / "batch.json"), "results.jsonl"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env={"CUDA_VISIBLE_DEVICES": ""})
    assert done.returncode == 1 and "Traceback" not in done.stderr
    return done.stderr


def test_what_kernelbench_lacks_is_one_line(tmp_path: Path) -> None:
    assert "cannot be imported" in side(tmp_path, "import a_module_that_nobody_has\n")


def test_clients_of_language_models_need_not_be_there(tmp_path: Path) -> None:
    text = "from litellm import completion\nimport openai\nfrom openai import OpenAI\nfrom dotenv import load_dotenv\n"
    assert "on a GPU only" in side(tmp_path, text + "load_dotenv()\n")


@pytest.mark.e2e
def test_a_small_batch_is_judged_once(tmp_path: Path) -> None:
    command = [sys.executable, throughput.__file__, "--device", "cpu", "--kinds", "none,triton", "--count", "3"]
    done = [subprocess.run([*command, "--out", str(tmp_path)], capture_output=True, text=True) for _ in range(2)]
    assert [d.returncode for d in done] == [0, 0], done[0].stderr
    (row,) = read_rows(tmp_path / "throughput.csv", COLUMNS[:3])
    assert (row["kind"], row["candidates"], row["tasks"], row["accepted"]) == ("none", "3", "2", "3")
    assert float(row["per_minute"]) > 0 and row["error_median"] and not done[1].stderr
