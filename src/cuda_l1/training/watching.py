"""What a trainer does, for people and for `metrics.jsonl`; and what ends it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from cuda_l1.errors import UsageError
from cuda_l1.training.run_directory import StageDirectory
from cuda_l1.training.stages import Event

SHOWN = {
    "loss": "loss",
    "learning_rate": "learning_rate",
    "grad_norm": "gradient_norm",
    "mean_token_accuracy": "token_accuracy",
    "num_tokens": "tokens",
    "eval_loss": "validation_loss",
    "eval_mean_token_accuracy": "validation_token_accuracy",
}
"""What TRL calls a figure, and what it is called in `metrics.jsonl`."""
SAID_EVERY_S = 10.0


class Watching:
    """Hears of a stage's training: figures go to `metrics.jsonl`, a line every ten seconds to whoever waits."""

    def __init__(
        self,
        name: str,
        stage: StageDirectory,
        on_event: Callable[[Event], None],
        *,
        on_checkpoint: Callable[[Path, Any], None] = lambda folder, model: None,
    ) -> None:
        """`on_checkpoint` is called with each checkpoint's folder, once it is whole, and the model."""
        self._name, self._stage, self._on_event = name, stage, on_event
        self._said = self._began = time.monotonic()
        self.callback = _Callback(self, on_checkpoint)
        self.latest: dict[str, float] = {}
        """The last value of each figure."""

    def say(self, text: str, **figures: Any) -> None:
        """A line for whoever waits."""
        self._on_event(Event(self._name, text, figures))

    def figures(self, step: int, steps: int, values: dict[str, float], *, is_main: bool = True) -> None:
        """Figures of a step, in all processes. Raises UsageError for a loss or a gradient that is not finite."""
        row = {SHOWN[key]: value for key, value in values.items() if key in SHOWN}
        if not row:
            return
        self._check(step, row)
        if not is_main:
            return
        self.latest |= row
        self._stage.append("metrics", {"step": step, "seconds": round(time.monotonic() - self._began, 3), **row})
        if (now := time.monotonic()) >= self._said + SAID_EVERY_S or step == steps:
            self._said = now
            said = ", ".join(f"{key.replace('_', ' ')} {row[key]:.4g}" for key in row if key.endswith("loss"))
            self.say(f"step {step}/{steps}: {said}", step=step, **row)

    def chosen(self, step: int, accuracy: float) -> None:
        """The checkpoint of this step is the final one, for the tokens of validation answers that it has right."""
        figures = {"chosen_step": step, "validation_token_accuracy": accuracy}
        self.latest |= figures
        text = f"final is the policy of step {step}: it has most tokens of validation answers right, {accuracy:.2%}"
        self.say(text, **figures)

    def _check(self, step: int, row: dict[str, float]) -> None:
        for key in ("loss", "gradient_norm"):
            if not math.isfinite(row.get(key, 0.0)):
                kept = self._stage.checkpoint()
                raise UsageError(
                    f"the {key.replace('_', ' ')} at step {step} is {row[key]}; lower the learning rate (the last good "
                    f"checkpoint is {kept.name if kept else 'the beginning'})"
                )


class _Callback(TrainerCallback):
    """The trainer's ear. A figure is logged before the checkpoint of its step is written, so none holds a NaN."""

    def __init__(self, watching: Watching, on_checkpoint: Callable[[Path, Any], None]) -> None:
        self._watching, self._on_checkpoint = watching, on_checkpoint

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **kwargs: Any,
    ) -> None:
        self._watching.figures(state.global_step, state.max_steps, logs or {}, is_main=state.is_world_process_zero)

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, model: Any = None, **kwargs: Any
    ) -> None:
        if state.is_world_process_zero:
            self._on_checkpoint(Path(args.output_dir or ".") / f"checkpoint-{state.global_step}", model)
