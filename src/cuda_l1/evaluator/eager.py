"""The reference itself as a candidate: what everything is timed against."""

from __future__ import annotations

from cuda_l1.types import Candidate, Origin, Task


def eager_candidate(task: Task) -> Candidate:
    """The reference itself as a candidate: what everything is timed against."""
    return Candidate(
        task_sha=task.sha,
        task_id=task.id,
        source=f"{task.source.rstrip()}\n\n\nModelNew = Model\n",
        origins=(Origin(proposer="baselines", techniques=("eager",)),),
    )
