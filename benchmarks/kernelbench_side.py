"""KernelBench's own evaluation of a batch, from a checkout of the user's, as its `eval_from_generations.py` does it.

    python benchmarks/kernelbench_side.py CHECKOUT BATCH.json RESULTS.jsonl

Run by `throughput.py --kernelbench`, under the interpreter that KernelBench is installed for. Its settings are its
script's defaults: one process for each GPU and candidate, 5 trials, 100 timed calls of candidate and of reference, CUDA
events, builds beforehand by 20 workers into its cache (`build_cache` on). Modules that its utilities import for other
purposes (clients of language models) are stood in for.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import json
import multiprocessing
import os
import sys
import time
import types
from pathlib import Path
from typing import Any

CORRECT_TRIALS, TIMED_TRIALS, BUILD_WORKERS, TIMEOUT_S = 5, 100, 20, 180
NOT_NEEDED = {"openai", "litellm", "dotenv", "modal", "datasets", "requests", "pydra", "together", "anthropic", "tqdm"}


class StandIn(types.ModuleType):
    """A module that nothing of the evaluation uses."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: args[0] if args else None


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands in for those of `NOT_NEEDED`, installed or not: one may be there, and what it needs itself not."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        return importlib.util.spec_from_loader(name, self) if name.partition(".")[0] in NOT_NEEDED else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return StandIn(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        module.__path__ = []


def evaluation_of(checkout: str) -> Any:
    """KernelBench's module `eval`. Raises ImportError where something that it needs is missing."""
    importlib.import_module("torch")  # before: it asks for some of them, and does without

    sys.meta_path.insert(0, Finder())
    sys.path.insert(0, str(Path(checkout) / "src"))
    import kernelbench.eval

    return kernelbench.eval


def build(checkout: str, job: dict[str, Any], folder: str) -> float:
    """Builds one candidate into its cache; seconds."""
    began = time.monotonic()
    evaluation_of(checkout).build_compile_cache(custom_model_src=job["candidate"], verbose=False, build_dir=folder)
    return time.monotonic() - began


def evaluate(checkout: str, job: dict[str, Any], folder: str, gpu: int) -> dict[str, Any]:
    """KernelBench's verdict on one candidate."""
    import torch

    evaluation = evaluation_of(checkout)
    result = evaluation.eval_kernel_against_ref(
        original_model_src=job["reference"],
        custom_model_src=job["candidate"],
        measure_performance=True,
        timing_method="cuda_event",
        verbose=False,
        num_correct_trials=CORRECT_TRIALS,
        num_perf_trials=TIMED_TRIALS,
        build_dir=folder,
        device=torch.device(f"cuda:{gpu}"),
        backend="triton" if job["kind"] == "triton" else "cuda",
        precision=torch.float32,
    )
    if result is None:
        return {"outcome": "none", "speedup": None}
    timed = result.correctness and result.runtime > 0 and result.ref_runtime > 0
    return {
        "outcome": "correct" if result.correctness else "wrong" if result.compiled else "not compiled",
        "speedup": result.ref_runtime / result.runtime if timed else None,
        "detail": str({**result.metadata})[:300],
    }


def main() -> None:
    checkout, batch_file, results_file = sys.argv[1:]
    jobs = json.loads(Path(batch_file).read_text())
    try:
        evaluation_of(checkout)
    except ImportError as error:
        sys.exit(f"KernelBench cannot be imported from {checkout}: {error}; --kernelbench-python names its interpreter")
    import torch

    if not torch.cuda.is_available():
        sys.exit("KernelBench evaluates on a GPU only, and torch sees none here")
    major, minor = torch.cuda.get_device_capability()
    os.environ["TORCH_CUDA_ARCH_LIST"] = f"{major}.{minor}"
    context = multiprocessing.get_context("spawn")
    folders = [str(Path(results_file).with_suffix("") / str(index)) for index in range(len(jobs))]
    began = time.monotonic()
    build_s: list[float] = []
    if jobs[0]["kind"] == "inline":
        with context.Pool(min(BUILD_WORKERS, len(jobs))) as pool:
            build_s = pool.starmap(build, [(checkout, job, folder) for job, folder in zip(jobs, folders, strict=True)])
    built = time.monotonic()
    rows = []
    gpus = torch.cuda.device_count()
    for first in range(0, len(jobs), gpus):
        places = range(first, min(first + gpus, len(jobs)))
        with context.Pool(gpus) as pool:
            asked = [pool.apply_async(evaluate, (checkout, jobs[i], folders[i], i - first)) for i in places]
            for index, answer in zip(places, asked, strict=True):
                try:
                    found = answer.get(TIMEOUT_S)
                except multiprocessing.TimeoutError:
                    found = {"outcome": "timed out", "speedup": None}
                except Exception as error:  # noqa: BLE001  as its script: whatever a candidate raises is a result
                    found = {"outcome": "error", "speedup": None, "detail": str(error)[:300]}
                rows.append({**found, "name": jobs[index]["name"], "finished_s": time.monotonic() - began})
    told = {"wall_s": time.monotonic() - began, "build_wall_s": built - began, "build_s": sum(build_s), "gpus": gpus}
    Path(results_file).write_text("".join(json.dumps(row) + "\n" for row in [told, *rows]))


if __name__ == "__main__":
    main()
