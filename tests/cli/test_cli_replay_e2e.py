"""A release of our own on a real evaluator: an honest kernel, and one of each trick that a CPU can show."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n"
LINEAR = HEAD + textwrap.dedent("""
    class Model(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.linear = nn.Linear(width, width)

        def forward(self, x):
            return torch.relu(self.linear(x))


    def get_inputs():
        return [torch.randn(64, 128)]


    def get_init_inputs():
        return [128]
""")
NOTHING = HEAD + textwrap.dedent("""
    class Model(nn.Module):
        def forward(self, x):
            return x * 0


    def get_inputs():
        return [torch.randn(64, 128)]
""")


def kernel(forward: str, before: str = "", reference: str = LINEAR) -> str:
    """The reference with another forward, and lines before the class."""
    text = reference.replace("class Model(", "class ModelNew(")
    begin = text.index("        return") if reference is NOTHING else text.index("        return torch.relu")
    end = text.index("\n", begin)
    body = textwrap.indent(textwrap.dedent(forward).strip(), " " * 8)
    return text[: len(HEAD)] + textwrap.dedent(before) + text[len(HEAD) : begin] + body + text[end:]


LATER = """
    class Later(torch.Tensor):
        pass
"""
BROKEN = """
    def my_kernel(x):
        raise RuntimeError("no compiler")
"""
KERNELS = {
    "honest": kernel(
        """
        one, two = (part.t() for part in self.linear.weight.split(64, dim=1))
        return (x[:, :64] @ one + x[:, 64:] @ two + self.linear.bias).clamp_min(0)
        """
    ),
    "unchanged reference": kernel("return torch.relu(self.linear(x))"),
    "failed to build": LINEAR,
    "wrong in train mode": kernel("return torch.relu(self.linear(x)) + float(self.training)"),
    "lazy": kernel("return torch.relu(self.linear(x)).as_subclass(Later)", LATER),
    "cached": kernel(
        """
        if x.data_ptr() not in known:
            known[x.data_ptr()] = torch.relu(self.linear(x))
        return known[x.data_ptr()]
        """,
        "known = {}\n",
    ),
    "other weights": kernel("return torch.relu(x @ self.kept + self.linear.bias)").replace(
        "self.linear = nn.Linear(width, width)\n",
        "self.linear = nn.Linear(width, width)\n        self.kept = self.linear.weight.detach().t().clone()\n",
    ),
    "silent fallback": kernel(
        """
        try:
            return my_kernel(x)
        except RuntimeError:
            return torch.relu(self.linear(x))
        """,
        BROKEN,
    ),
    "relaxed precision": kernel(
        """
        weight, bias = self.linear.weight.bfloat16(), self.linear.bias.bfloat16()
        return torch.relu(F.linear(x.bfloat16(), weight, bias)).float()
        """
    ),
    "degenerate task": kernel("return torch.zeros_like(x)", reference=NOTHING),
}


def release(folder: Path) -> Path:
    rows = []
    for number, (name, text) in enumerate(KERNELS.items(), start=1):
        reference = NOTHING if name == "degenerate task" else LINEAR
        scores = {"score_default": 1000.0 if name == "honest" else None}
        rows.append({"level_id": 1, "task_id": number, "ref_code": reference, "custom_code": text, **scores})
    path = folder / "release.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_each_trick_has_its_reason_and_the_honest_kernel_stands(tmp_path: Path) -> None:
    words = ["replay", str(release(tmp_path)), "--ours", "screen", "--device", "cpu", "--json"]
    environment = {**os.environ, "CUDA_L1_ARCHIVE": str(tmp_path / "a.sqlite"), "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "cuda_l1.cli", *words], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    *found, summary = [json.loads(line) for line in done.stdout.splitlines()]
    told: dict[str, Any] = {list(KERNELS)[int(line["task"].rpartition("/")[2]) - 1]: line for line in found}
    assert set(told) == set(KERNELS) and summary["kernels"] == len(KERNELS)
    for name, line in told.items():
        why = [reason["why"] for reason in line["reasons"]]
        assert name in why or name == "honest", (name, line)
    honest = told["honest"]
    busy = {"hidden work", "suspect", "measured otherwise"}  # what a machine that others disturb may look like
    assert {reason["why"] for reason in honest["reasons"]} - busy == {"another figure here"}
    assert honest["theirs"]["outcome"] == honest["ours"]["outcome"] == "ACCEPTED"
    assert {f["check"] for f in honest["theirs"]["findings"]} == {"host-clock"}
    assert told["wrong in train mode"]["theirs"]["outcome"] == "ACCEPTED"
    assert told["other weights"]["theirs"]["outcome"] == "ACCEPTED"
    assert [reason["why"] for reason in told["other weights"]["reasons"]] == ["other weights"]
    assert told["failed to build"]["theirs"]["outcome"] == "BUILD_FAILED"
