"""One call of a candidate between the marks that a profiler looks for: what Nsight Compute starts.

    python -I counted_call.py CANDIDATE REFERENCE train|eval

Run as a file, in the guest of `counters.py`, with nothing but torch and `load.py` beside it. Weights are those of the
constructor: they change no counter worth showing. The exit code is 0 once the call was made.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import torch

DEVICE = "cuda:0"
WARM_UP = 3
"""Calls before it, in which Triton and torch.compile build, tune and capture."""


def main(candidate: str, reference: str, mode: str) -> None:
    profiler: Any = torch.cuda.profiler
    start, stop, synchronize = profiler.start, profiler.stop, torch.cuda.synchronize
    load = _load()
    task = load.load_module(reference, "reference_task")
    load.seed_everything(load.PUBLIC_SEED)
    init: Any = getattr(task, "get_init_inputs", list)()
    drawn = task.get_inputs()
    inputs = [_moved(each) for each in drawn] if isinstance(drawn, (list, tuple)) else [_moved(drawn)]
    model = load.construct(load.load_module(candidate, "candidate").ModelNew, init, DEVICE)
    load.set_mode(model, mode)
    with torch.no_grad():
        for _ in range(WARM_UP):
            model(*inputs)
        synchronize()
        start()
        model(*inputs)
        synchronize()
        stop()


def _load() -> Any:
    path = Path(__file__).with_name("load.py")
    spec = importlib.util.spec_from_file_location("load", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _moved(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(DEVICE)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_moved, value))
    if isinstance(value, (list, tuple)):
        return type(value)(map(_moved, value))
    return {key: _moved(each) for key, each in value.items()} if isinstance(value, dict) else value


if __name__ == "__main__":
    main(*sys.argv[1:])
