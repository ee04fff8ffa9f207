"""What stage 3 logs and says of each round. Imports transformers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from cuda_l1.ratios import towards_one
from cuda_l1.training.run_directory import StageDirectory
from cuda_l1.training.stages import Event
from cuda_l1.training.validation import NAME, SCORE

ON_THE_CARD = ("reward", "pass_rate", "speedup_right", "speedup_best", "invalid_replies", "flat_groups")
"""What a reader of a policy's card wants to know of the last round."""


class Told(TrainerCallback):
    """Writes what the trainer logs to `metrics.jsonl`, a line for each round, and tells of it."""

    def __init__(
        self,
        stage: StageDirectory,
        on_event: Callable[[Event], None],
        best: Mapping[str, float] | None = None,
        *,
        on_checkpoint: Callable[[Path, dict[str, float]], None] = lambda folder, figures: None,
    ) -> None:
        """`best` is the best speed-up of each task so far, and is told as it is then. `on_checkpoint` is called with
        each checkpoint's folder, once it is whole, and the figures for its card."""
        self._stage, self._on_event, self._best = stage, on_event, {} if best is None else best
        self._on_checkpoint = on_checkpoint

    @property
    def results(self) -> dict[str, float]:
        """For a card: how many rounds there were, what came of the last one, and the best validation by then."""
        lines = list(self._stage.rows("metrics"))
        rounds = [row for row in lines if "reward" in row]
        last = rounds[-1] if rounds else {}
        found = {"rounds": len(rounds)} | {
            f"{name}_in_the_last_round": last[name] for name in ON_THE_CARD if name in last
        }
        score = f"{NAME}_{SCORE}"
        best = max((row for row in lines if score in row), key=lambda row: (row[score], row["step"]), default=None)
        return found if best is None else found | {"best_validation_step": best["step"], f"best_{score}": best[score]}

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Called in every process."""
        if not state.is_world_process_zero or logs is None or "reward" not in logs:
            return
        figures = {"step": state.global_step, **{name: value for name, value in logs.items() if value is not None}}
        self._stage.append("metrics", figures)
        best = f", best {towards_one(figures['speedup_best']):.2f}x" if "speedup_best" in figures else ""
        said = f"reward {logs['reward'] or 0.0:.3f}, {logs['pass_rate']:.0%} right{best}"
        told = {**figures, "best": dict(self._best)}
        self._on_event(Event(self._stage.path.name, f"step {state.global_step}/{state.max_steps}: {said}", told))

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: dict[str, float], **_: Any) -> None:
        """Called in every process, after a validation."""
        if not state.is_world_process_zero:
            return
        row = {"step": state.global_step, **{f"{NAME}_{name}": value for name, value in metrics.items()}}
        self._stage.append("metrics", row)
        said = f"validation: {metrics['pass_rate']:.0%} right, reward {metrics['reward']:.3f}"
        best = ", the best so far" if state.best_global_step == state.global_step else ""
        self._on_event(Event(self._stage.path.name, f"step {state.global_step}/{state.max_steps}: {said}{best}", row))

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Called in every process."""
        if state.is_world_process_zero:
            self._on_checkpoint(Path(args.output_dir) / f"checkpoint-{state.global_step}", self.results)
