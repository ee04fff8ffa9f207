"""The harness that everybody writes first: same process, fixed seeds, one tolerance, a clock that can be reached.

    python tests/attacks/naive.py REFERENCE CANDIDATE --device cpu

Prints {"correct": ..., "speedup": ...} as its last line. Every attack of the corpus is accepted by it; that is what
makes it an attack. It is modelled on no project in particular and on all of them a little: weights by seed, inputs
with the same seeds each time, `allclose` at 1e-2, the mean of many calls on one set of inputs. Some attacks need a
habit that only some of them have (`--habit`).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

Close = Callable[[torch.Tensor, torch.Tensor], bool]
TRIALS = 5
CALLS = 30
TOLERANCE = 1e-2
GRADIENTS, GREATER = "gradients", "greater"
HABITS = {
    GRADIENTS: "answers are compared with gradients enabled, and calls are timed without",
    GREATER: "an answer is wrong where its largest difference is greater than the tolerance",
}


def main() -> int:
    made = argparse.ArgumentParser()
    made.add_argument("reference")
    made.add_argument("candidate")
    made.add_argument("--device", default="cpu")
    made.add_argument("--habit", choices=HABITS)
    options = made.parse_args()
    torch.manual_seed(42)
    reference = load(options.reference)
    init = reference.get_init_inputs()
    torch.manual_seed(42)
    model = reference.Model(*init).to(options.device)
    torch.manual_seed(42)
    new = load(options.candidate).ModelNew(*init).to(options.device)
    with torch.set_grad_enabled(options.habit == GRADIENTS):
        close = differs_by_little if options.habit == GREATER else is_close
        correct = all(agrees(reference, model, new, options.device, seed, close) for seed in range(TRIALS))
    with torch.no_grad():
        speedup = 0.0
        if correct:
            inputs = drawn(reference, options.device, 0)
            speedup = clocked(model, inputs, options.device) / clocked(new, inputs, options.device)
    sys.stdout.write(json.dumps({"correct": bool(correct), "speedup": speedup}) + "\n")
    sys.stdout.flush()
    return 0


def load(path: str) -> ModuleType:
    module = ModuleType(Path(path).stem)
    module.__file__ = path
    sys.modules[module.__name__] = module
    exec(compile(Path(path).read_text(), path, "exec"), module.__dict__)
    return module


def drawn(reference: ModuleType, device: str, seed: int) -> list[Any]:
    torch.manual_seed(seed)
    return [x.to(device) if isinstance(x, torch.Tensor) else x for x in reference.get_inputs()]


def agrees(reference: ModuleType, model: Any, new: Any, device: str, seed: int, close: Close) -> bool:
    inputs = drawn(reference, device, seed)
    pairs = zip(leaves(model(*inputs)), leaves(new(*inputs)), strict=True)
    return all(one.shape == two.shape and close(one, two) for one, two in pairs)


def is_close(one: torch.Tensor, two: torch.Tensor) -> bool:
    return torch.allclose(one, two, TOLERANCE, TOLERANCE)


def differs_by_little(one: torch.Tensor, two: torch.Tensor) -> bool:
    return not (one - two).abs().max() > TOLERANCE


def leaves(answer: Any) -> list[torch.Tensor]:
    if isinstance(answer, dict):
        return [leaf for value in answer.values() for leaf in leaves(value)]
    if isinstance(answer, tuple | list):
        return [leaf for value in answer for leaf in leaves(value)]
    return [] if isinstance(answer, bool | int | float | str | None) else [answer]


def clocked(model: Any, inputs: list[Any], device: str) -> float:
    """Mean seconds of a call: warmed up, then all calls on the same inputs."""
    for _ in range(3):
        model(*inputs)
    if device == "cpu":
        start = time.perf_counter()
        for _ in range(CALLS):
            model(*inputs)
        return (time.perf_counter() - start) / CALLS
    times = []
    for _ in range(CALLS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        begin.record()
        model(*inputs)
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return sum(times) / len(times)


if __name__ == "__main__":
    sys.exit(main())
