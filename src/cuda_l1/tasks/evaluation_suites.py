"""What others evaluate on, so that nothing is trained on it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cuda_l1.tasks.contamination import EvaluationTasks
from cuda_l1.tasks.load import load_tasks
from cuda_l1.tasks.synth import known_graphs


def short_name(spec: str) -> str:
    """`kernelbench:/data/KernelBench#level1` as `kernelbench:KernelBench#level1`."""
    kind, separator, rest = spec.rpartition(":")
    return f"{kind}{separator}{rest if kind == 'hf' else Path(rest).name}"


def evaluation_tasks(against: Sequence[str], device: str) -> tuple[EvaluationTasks, list[str]]:
    """The built-in suite, KernelBench by its graphs, and the suites in `against`; and their names. Raises TaskError."""
    known, names = EvaluationTasks(), ["builtin", "kernelbench"]
    for place in ("cpu", "cuda"):
        known.add(load_tasks("builtin", device=place))
    known.add_graphs("kernelbench", known_graphs())
    for spec in against:
        known.add(load_tasks(spec, device=device))
        names.append(short_name(spec))
    return known, list(dict.fromkeys(names))
