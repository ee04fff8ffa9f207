"""The live display of a search, on stderr."""

from __future__ import annotations

from collections.abc import Mapping

from rich.table import Table

from cuda_l1.cli.live import Display
from cuda_l1.cli.output import Output
from cuda_l1.report.terminal import times
from cuda_l1.search import events
from cuda_l1.search.result import BaselineResult
from cuda_l1.texts import many
from cuda_l1.types import Outcome

Row = tuple[str, str, str, str]
COLUMNS = ("candidate", "outcome", "speed-up", "best so far")
LAST_ROWS = 12


class SearchDisplay(Display):
    """A table that grows with the search on a terminal, a line per event elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[Row] = []
        self._doing = "starting"
        self._waited_for: set[str] = set()

    def on_event(self, event: events.Event) -> None:
        """Takes in one event of `search.events`."""
        match event:
            case events.Started():
                self._note(f"{event.task_id}: run {event.run}")
            case events.Evaluating():
                self._doing = f"{event.label} ({event.protocol})"
                self._redraw()
            case events.BaselineDone():
                self._add((f"baseline {event.name}", outcome(event), times(event.speedup), ""), event.detail)
            case events.CandidateDone():
                known = " (known)" if event.known else ""
                row = (event.label, outcome(event) + known, times(event.speedup), times(event.best_so_far))
                self._add(row, event.detail)
            case events.Waiting():
                self._doing = f"waiting for {', '.join(event.proposers)}"
                self._redraw()
            case events.Replied():
                self._say(reply_line(event))
            case events.Reviewed():
                self._say(review_line(event, event.label))
            case events.Stopped():
                self._note(f"search ended: {event.reason}, {many(event.evaluations, 'evaluation')}")
            case events.Confirmed():
                held = "confirmed" if event.holds else "not confirmed"
                self._add((f"{event.label}, final", held, times(event.speedup), ""), event.detail)

    def tell(self, line: str) -> None:
        """One line of the evaluator's own progress. Where there is no terminal only that a device is waited for, once
        for each of its holders."""
        if self._live:
            self._doing = line
            self._redraw()
        elif line.startswith("waiting for ") and line not in self._waited_for:
            self._waited_for.add(line)
            Output.say(line)

    def _add(self, row: Row, detail: str) -> None:
        self._rows.append(row)
        if self._live:
            self._redraw()
        else:
            figure = f"  {row[2]}" if row[2] != "-" else ""
            best = f"  best {row[3]}" if row[3] not in ("", "-") else ""
            Output.say(f"{row[0]}: {row[1]}{figure}{best}{f'  ({detail})' if detail else ''}")

    def _note(self, text: str) -> None:
        self._doing = text
        if self._live:
            self._redraw()
        else:
            Output.say(text)

    def _say(self, text: str) -> None:
        """A line that stays."""
        if self._live:
            self._live.console.print(text)
        else:
            Output.say(text)

    def _redraw(self) -> None:
        if self._live:
            made = Table(*COLUMNS, box=None, caption=self._doing, caption_justify="left")
            for row in self._rows[-LAST_ROWS:]:
                made.add_row(*row)
            self._live.update(made, refresh=True)


def outcome(event: events.BaselineDone | events.CandidateDone | events.Replied | BaselineResult) -> str:
    """How it ended, and of what is right but does not count that it does not; what there was no time for has no end."""
    if event.outcome is Outcome.ACCEPTED and not event.counts:
        return f"{event.outcome}, does not count"
    return str(event.outcome) if event.outcome else "not measured"


def reply_line(event: events.Replied) -> str:
    """What came of a question to a language model."""
    return f"{event.model} replied: {_held(event)}, {event.tokens_in} tokens in, {event.tokens_out} out"


def _held(event: events.Replied) -> str:
    if event.problem:
        return f"{event.problem} ({event.detail})"
    if event.outcome:
        return f"known: {', '.join([outcome(event), *([times(event.speedup)] if event.speedup else [])])}"
    return "a copy of an earlier reply" if event.is_copy else "a candidate"


def review_line(event: events.Reviewed, label: str) -> str:
    """What a reviewer says, or that there is none."""
    if event.finding is None:
        return f"no second opinion on {label}, though {event.jump}: no reviewer was named (--reviewer URL)"
    return f"second opinion on {label}: {event.finding.evidence}"


def say_review(names: Mapping[str, str], event: events.Event) -> None:
    """The lines of `evaluate` about a reviewer; `names` are the candidates' by their ids."""
    if isinstance(event, events.Evaluating):
        Output.say(f"asking the reviewer about {names[event.candidate_id]}")
    elif isinstance(event, events.Reviewed):
        Output.say(review_line(event, names[event.candidate_id]))
