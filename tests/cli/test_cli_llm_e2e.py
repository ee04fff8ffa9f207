"""The whole command on a real evaluator, with a server that replays what a model might say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from llm_server import Request, serving

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

EAGER_ONLY = Path(__file__).with_name("eager_only.py")

REFERENCE = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(rows))

    def forward(self, x):
        for _ in range(6):  # so slow that no neighbour's load hides what a better one gains
            y = torch.diag(self.scale) @ x
        return y


def get_inputs():
    return [torch.randn(384, 384)]


def get_init_inputs():
    return [384]
"""

WRONG = """import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(rows))

    def forward(self, x):
        return self.scale * x
"""
RIGHT = WRONG.replace("self.scale * x", "self.scale[:, None] * x")


def said(code: str) -> str:
    return (
        "<think>```python\nclass ModelNew: pass\n```</think>\n"
        "## Performance Analysis\nA product with a diagonal matrix is a scaling.\n\n"
        "## Algorithm Design\nScale the rows.\n\n"
        f"## Code Implementation\n```python\n{code}```\n"
    )


def model(request: Request) -> str:
    """Wrong at first, and right once it is told so."""
    return said(RIGHT if "WRONG_VALUES" in request["messages"][-1]["content"] else WRONG)


def test_what_a_model_repairs_is_verified_and_wins(tmp_path: Path) -> None:
    (tmp_path / "ref.py").write_text(REFERENCE)
    with serving(model) as server:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")},
            "OPENAI_BASE_URL": server.url,
            "OPENAI_API_KEY": "a-key-of-the-test",
            "CUDA_L1_ARCHIVE": str(tmp_path / "archive.sqlite"),
        }
        words = ("--budget", "2", "--final-budget", "4s", "--device", "cpu", "--proposer", "llm", "--model", "m")
        done = subprocess.run(
            [sys.executable, EAGER_ONLY, "optimize", "ref.py", *words, "--json"],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=500,
        )  # fmt: skip
    *records, summary = [json.loads(line) for line in done.stdout.splitlines()]
    judged = [r for r in records if r["candidate"]["origins"][0]["model"] == "m"]
    assert [r["evaluation"]["outcome"] for r in judged][:2] == ["WRONG_VALUES", "ACCEPTED"], done.stderr
    assert judged[0]["candidate"]["origins"][0]["template"].startswith("contrastive@")
    (use,) = summary["models"]
    assert use["accepted"] == use["gains"] == 1 and use["replies"] >= 2
    assert "a-key-of-the-test" not in done.stdout + done.stderr
    final = judged[-1]["evaluation"]
    assert (final["protocol"], final["outcome"]) == ("final", "ACCEPTED")
    if done.returncode and {f["check"] for f in final["findings"]} & {"busy-machine", "few-pairs"}:
        return  # on a machine that others slow down this much nothing is confirmed, whoever wrote it
    assert done.returncode == 0, done.stderr
    assert summary["technique"] == "m" and summary["speedup_eager_low"] > 1.0
    assert "self.scale[:, None] * x" in (tmp_path / "ref_optimized.py").read_text()
