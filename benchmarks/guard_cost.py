"""What a drop-in's guard costs a call, for 1 to 4 tensors: `python benchmarks/guard_cost.py`.

Prints CSV: number of tensors, layout, microseconds (host time of one core; every figure that a header states contains
it). The median of five repeats, each a median over 200 blocks of 50 calls.
"""

from __future__ import annotations

import platform
import statistics
import sys

import torch

from cuda_l1.export.cost import guard_cost_us
from cuda_l1.export.guard import Guard, TensorSpec

LAYOUTS = {
    "contiguous": TensorSpec(shape=(64, 128), stride=(128, 1), dtype="float32"),
    "transposed": TensorSpec(shape=(64, 128), stride=(1, 64), dtype="float32"),
}


def guard(tensors: int, layout: str) -> Guard:
    """A guard for that many tensors of one layout."""
    inputs = (LAYOUTS[layout],) * tensors
    return Guard(inputs=inputs, modes={}, device="cpu", device_name="", torch=torch.__version__.split("+")[0])


def main() -> None:
    torch.set_num_threads(1)
    machine = platform.processor() or platform.machine()
    sys.stdout.write(f"# {machine}, Python {platform.python_version()}, torch {torch.__version__}\n")
    sys.stdout.write("tensors,layout,guard_us\n")
    for layout in LAYOUTS:
        for tensors in range(1, 5):
            cost = statistics.median(guard_cost_us(guard(tensors, layout)) for _ in range(5))
            sys.stdout.write(f"{tensors},{layout},{cost:.2f}\n")


if __name__ == "__main__":
    main()
