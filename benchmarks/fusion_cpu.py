"""Fused C++ kernels beside eager and torch.compile on this CPU, in one process and in turn.

    OMP_NUM_THREADS=2 python benchmarks/fusion_cpu.py [name ...] [--clock wall|cpu] [--rounds 31]

Prints the median time of each in microseconds and how many times faster the fused kernels are. These are quick
figures for working on the generator; the ones that count come from the evaluator (`benchmarks/suite.py`).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

from cuda_l1.proposers.techniques import build
from cuda_l1.types import Task

CASES = {
    "tiny": ("F.gelu(x * 2) + 1", "torch.randn(64, 64)"),
    "gelu": ("F.gelu(x * 1.5 + 0.5) * x", "torch.randn(2048, 2048)"),
    "silu_bf16": ("F.silu(x) * y", "torch.randn(2048, 2048).bfloat16(), torch.randn(2048, 2048).bfloat16()"),
    "softmax": ("x.softmax(-1)", "torch.randn(1024, 4096)"),
    "softmax_long": ("x.softmax(-1)", "torch.randn(16, 1 << 18)"),
    "softmax_dim1": ("x.softmax(1)", "torch.randn(16, 512, 1024)"),
    "rms_norm": ("x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * y + x",
                 "torch.randn(2048, 2048), torch.randn(2048)"),
    "layer_norm": ("F.layer_norm(x, (64, 64, 64))", "torch.randn(16, 64, 64, 64)"),
    "group_norm": ("F.group_norm(x, 8)", "torch.randn(16, 64, 64, 64)"),
    "batch_norm": ("F.batch_norm(x, None, None, training=True).relu()", "torch.randn(32, 64, 32, 32)"),
    "cross_entropy": ("F.cross_entropy(x, y)", "torch.randn(256, 32000), torch.randint(0, 32000, (256,))"),
    "mse": ("F.mse_loss(x, y)", "torch.randn(2048, 2048), torch.randn(2048, 2048)"),
    "rotary": ("torch.cat([-x[..., 64:], x[..., :64]], -1) * y + x * y",
               "torch.randn(4, 16, 512, 128), torch.randn(512, 128)"),
    "quantise": ("(x / 0.1).round().clamp(-128, 127) * 0.1", "torch.randn(2048, 2048)"),
    "cumsum": ("torch.cumsum(x * 2, 1)", "torch.randn(1024, 4096)"),
}  # fmt: skip
"""Forward and inputs; `y` is an argument where it is used."""

CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}


def source_of(body: str, inputs: str) -> str:
    """A task around one expression."""
    args = "x, y" if "y" in inputs or inputs.count("torch.") > 1 else "x"
    return (
        "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\nclass Model(nn.Module):\n"
        f"    def forward(self, {args}):\n        return {body}\n\n\n"
        f"def get_inputs():\n    return [{inputs}]\n\n\ndef get_init_inputs():\n    return []\n"
    )


def modules(name: str) -> tuple[dict[str, Any], list[torch.Tensor]]:
    """Eager, torch.compile and the fused candidate of one case, with inputs."""
    task = Task(suite="benchmark", name=name, source=source_of(*CASES[name]))
    candidate = build(task, ["fusion"], "cpu")
    if candidate is None:
        raise SystemExit(f"{name}: nothing was fused")
    scope: dict[str, Any] = {"__name__": "candidate"}
    exec(compile(candidate.source, name, "exec"), scope)
    eager = scope["Model"]()
    return {"eager": eager, "compile": torch.compile(eager), "fused": scope["ModelNew"]()}, scope["get_inputs"]()


def measure(name: str, clock: Callable[[], float], rounds: int) -> dict[str, float]:
    """Median microseconds per call of each, measured in turn so that a noisy neighbour meets all of them."""
    candidates, inputs = modules(name)
    samples: dict[str, list[float]] = {label: [] for label in candidates}
    with torch.no_grad():
        for call in candidates.values():
            for _ in range(3):
                call(*inputs)
        start = time.perf_counter()
        candidates["eager"](*inputs)
        repeats = max(1, int(0.005 / (time.perf_counter() - start)))
        for _ in range(rounds):
            for label, call in candidates.items():
                begin = clock()
                for _ in range(repeats):
                    call(*inputs)
                samples[label].append((clock() - begin) / repeats * 1e6)
    return {label: statistics.median(times) for label, times in samples.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(CASES), help="cases to run")
    parser.add_argument("--clock", choices=sorted(CLOCKS), default="wall")
    parser.add_argument("--rounds", type=int, default=31)
    options = parser.parse_args()
    if unknown := set(options.names) - set(CASES):
        parser.error(f"unknown case {', '.join(sorted(unknown))}; known are {', '.join(CASES)}")
    row = "{:<15}{:>12}{:>12}{:>12}{:>11}{:>12}\n"
    sys.stdout.write(row.format("case", "eager us", "compile us", "fused us", "vs eager", "vs compile"))
    for name in options.names:
        found = measure(name, CLOCKS[options.clock], options.rounds)
        ratios = [f"{found[label] / found['fused']:.2f}" for label in ("eager", "compile")]
        times = [f"{found[label]:.1f}" for label in ("eager", "compile", "fused")]
        sys.stdout.write(row.format(name, *times, *ratios))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
