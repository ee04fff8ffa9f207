"""What stage 3 logs and says of each round. Imports transformers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from transformers import TrainerCallback

from cuda_l1.training.run_directory import StageDirectory
from cuda_l1.training.stages import Event


class Told(TrainerCallback):
    """Writes what the trainer logs to `metrics.jsonl`, a line for each round, and tells of it."""

    def __init__(
        self, stage: StageDirectory, on_event: Callable[[Event], None], best: Mapping[str, float] | None = None
    ) -> None:
        """`best` is the best speed-up of each task so far, and is told as it is then."""
        self._stage, self._on_event, self._best = stage, on_event, {} if best is None else best
        self.latest: dict[str, float] = {}
        """The figures of the last round."""

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Called in every process."""
        if not state.is_world_process_zero or logs is None or "reward" not in logs:
            return
        self.latest = {name: value for name, value in logs.items() if value is not None}
        figures = {"step": state.global_step, **self.latest}
        self._stage.append("metrics", figures)
        best = f", best {figures['speedup_best']:.2f}x" if "speedup_best" in figures else ""
        said = f"reward {logs['reward'] or 0.0:.3f}, {logs['pass_rate']:.0%} right{best}"
        told = {**figures, "best": dict(self._best)}
        self._on_event(Event(self._stage.path.name, f"step {state.global_step}/{state.max_steps}: {said}", told))
