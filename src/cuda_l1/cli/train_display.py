"""The live view of a training, on stderr: a table on a terminal, a line for each event elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from rich.table import Table

from cuda_l1.cli.live import Display
from cuda_l1.cli.output import Output
from cuda_l1.report.terminal import times
from cuda_l1.training.stages import Event

SHOWN = {
    "loss": ("loss", "{:.4f}"),
    "validation_loss": ("validation loss", "{:.4f}"),
    "reward": ("reward", "{:.3f}"),
    "pass_rate": ("right replies", "{:.0%}"),
    "train_pass_rate": ("right replies, training tasks", "{:.0%}"),
    "validation_pass_rate": ("right replies, validation tasks", "{:.0%}"),
    "unique_replies": ("unique replies", "{:.0%}"),
    "train_unique_replies": ("unique replies, training tasks", "{:.0%}"),
    "tokens_per_s": ("tokens/s", "{:.0f}"),
    "wait_share": ("training waits", "{:.0%}"),
}
"""The figures of events that are shown, in this order: their label and how they are written."""
PROGRESS = frozenset({"step", "task", "reply", "verdict"})
"""Figures of events that others of their kind soon follow."""
BEST_ROWS = 8


class TrainDisplay(Display):
    """Takes the events of stages, from any thread."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._stage = self._doing = ""
        self._figures: dict[str, Any] = {}
        self._best: dict[str, float] = {}

    def on_event(self, event: Event) -> None:
        """Shows what is new."""
        with self._lock:
            if self._live:
                self._take(event)
                if not PROGRESS & event.figures.keys():
                    self._live.console.print(f"{event.stage}: {event.text}")  # a line that stays
                self._live.update(self._table(), refresh=True)
            else:
                Output.say(f"{event.stage}: {event.text}")

    def _take(self, event: Event) -> None:
        if event.stage != self._stage:
            self._stage, self._figures, self._best = event.stage, {}, {}
        self._doing = event.text
        self._figures |= event.figures
        best: Mapping[str, float] = event.figures.get("best", {})
        self._best |= {task: max(value, self._best.get(task, 0.0)) for task, value in best.items()}

    def _table(self) -> Table:
        made = Table(self._stage, "", box=None, caption=self._doing, caption_justify="left")
        for key, (label, form) in SHOWN.items():
            if self._figures.get(key) is not None:
                made.add_row(label, form.format(self._figures[key]))
        if "verdicts" in self._figures:
            waiting = self._figures["verdicts"] - self._figures["verdict"]
            made.add_row("verdicts awaited", f"{waiting} of {self._figures['verdicts']}")
        found = sorted(self._best.items(), key=lambda item: -item[1])
        for task, value in found[:BEST_ROWS]:
            made.add_row(f"best of {task}", times(value))
        if len(found) > BEST_ROWS:
            made.add_row("", f"and {len(found) - BEST_ROWS} tasks more")
        return made
