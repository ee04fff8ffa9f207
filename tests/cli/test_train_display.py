"""The live view of a training: a table on a terminal, the lines as they are elsewhere."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator

import pytest

from cuda_l1.cli.train_display import TrainDisplay
from cuda_l1.training.stages import Event

EVENTS = [
    Event("contrastive", "2 of 9 tasks are left out, too long to ask about"),
    Event("contrastive", "verdict 5 of 16", {"verdict": 5, "verdicts": 16}),
    Event(
        "contrastive",
        "step 3/200: reward 1.204",
        {"step": 3, "reward": 1.204, "pass_rate": 0.75, "unique_replies": 0.5, "tokens_per_s": 1234.0,
         "best": {"synth/0/1": 1.5, "synth/0/2": 2.999}},
    ),
    Event("contrastive", "verdict 16 of 16", {"verdict": 16, "verdicts": 16}),
    Event("contrastive", "step 4/200", {"step": 4, "reward": 0.9, "best": {"synth/0/1": 1.75}}),
    Event("contrastive", "round 5: no group has replies of different reward", {"alarm": "round 5"}),
]  # fmt: skip


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    found = Terminal()
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    yield found


def test_a_terminal_shows_the_latest_figures_and_the_best_of_each_task(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal)
    with TrainDisplay() as display:
        for event in EVENTS[:2]:
            display.on_event(event)
        early = terminal.getvalue()
        for event in EVENTS[2:]:
            display.on_event(event)
        terminal.truncate(0)
        terminal.seek(0)
        display.on_event(Event("contrastive", "step 5/200", {"step": 5}))
        late = terminal.getvalue()
    assert "2 of 9 tasks are left out" in early and "11 of 16" in early
    for label, value in {
        "reward": "0.900",
        "tokens/s": "1234",
        "unique replies": "50%",
        "best of synth/0/1": "1.75x",
    }.items():
        assert re.search(rf"{label}\s+{re.escape(value)}", late), label
    assert re.search(r"best of synth/0/2\s+2\.99x", late)  # towards 1
    assert "0 of 16" in late and "step 5/200" in late and "alarm" not in late


def test_elsewhere_each_event_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with TrainDisplay() as display:
        for event in EVENTS:
            display.on_event(event)
    assert capsys.readouterr().err.splitlines() == [f"contrastive: {event.text}" for event in EVENTS]
