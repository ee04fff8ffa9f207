"""Findings from what a runner saw its candidate do to the process around it."""

from __future__ import annotations

from cuda_l1.evaluator.bench import Bench, Runner
from cuda_l1.types import Finding


def observed(bench: Bench, runner: Runner) -> list[Finding]:
    """What the candidate changed so far, loaded and called. Raises Failure when the runner is gone."""
    patched = bench.ask(runner, "observe", 60.0, quiet=True)["patched"]
    if not patched:
        return []
    names = ", ".join(patched[:5]) + (f" and {len(patched) - 5} more" if len(patched) > 5 else "")
    text = f"replaced {names}: whoever relies on them in this process is told what the candidate likes"
    return [Finding(check="patched", severity="suspect", evidence=text)]
