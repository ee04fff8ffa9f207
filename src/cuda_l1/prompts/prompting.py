"""Prompts and replies of one search: what stays the same between questions, put together once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from cuda_l1 import scoring
from cuda_l1.config import PromptSettings
from cuda_l1.prompts.build import render, render_repair
from cuda_l1.prompts.facts import DeviceFacts, FailedAttempt, Roofline
from cuda_l1.prompts.profile import profile_of
from cuda_l1.prompts.reply import ParsedReply, ReplyKind, parse_reply, spoken
from cuda_l1.prompts.templates import PromptTemplate
from cuda_l1.prompts.tokens import ESTIMATE, TokenCounter
from cuda_l1.types import Clock, Exemplar, HackCase, Prompt, Record, Task


class Failed(Protocol):
    """An attempt that did not work out; `FailedAttempt` is one."""

    @property
    def source(self) -> str: ...
    @property
    def outcome(self) -> str: ...
    @property
    def detail(self) -> str: ...
    @property
    def log(self) -> str: ...


@dataclass(frozen=True, kw_only=True)
class Prompting:
    """Writes the questions of a search and reads the answers."""

    settings: PromptSettings
    facts: DeviceFacts | None = None
    roofline_us: float | None = None
    """`TaskAudit.roofline_us`, where there is one; what the verdicts of the history counted goes before it."""
    clock: Clock | None = None
    """The objective; None: the device's default."""
    recall: Callable[[Task], Sequence[Record]] | None = None
    """What is remembered of earlier attempts at a task, in place of the history of the caller."""
    cases: Callable[[str], Sequence[HackCase]] = lambda text: ()
    """The known attacks most like a text."""
    template: PromptTemplate | None = None
    must_end: bool = False
    """A reply that met its token limit holds nothing; else what is complete in it counts."""
    counter: TokenCounter = ESTIMATE

    def render(self, task: Task, exemplars: Sequence[Exemplar], history: Sequence[Record]) -> Prompt:
        """The question for a faster version of `task`; `history` are its records in one place, oldest first, unless
        there is `recall`.

        Its latest failures are shown, and what its best variant is told by. Raises UsageError as `build.render` does.
        """
        history = self.recall(task) if self.recall else history
        best = self._best(history)
        return render(
            task,
            exemplars=exemplars,
            failures=_failures(history, self.settings.failures),
            facts=self.facts,
            roofline=self._roofline(history, best),
            profile=profile_of(best) if best and self.settings.profile else None,
            cases=self.cases("\n".join(each.source for each in exemplars) or task.source),
            settings=self.settings,
            template=self.template,
            counter=self.counter,
        )

    def repair(self, task: Task, failed: Failed) -> Prompt:
        """The question to put right what failed. Raises UsageError as `build.render_repair` does."""
        attempt = FailedAttempt(source=failed.source, outcome=failed.outcome, detail=failed.detail, log=failed.log)
        return render_repair(task, attempt, facts=self.facts, settings=self.settings, counter=self.counter)

    def parse(
        self, text: str, finish_reason: str = "", kind: ReplyKind | None = None, *, reference: str = ""
    ) -> ParsedReply:
        """What a reply holds; sections are looked for where the prompt's kind asks for them. Never raises."""
        return parse_reply(
            text,
            kind=kind or self.settings.kind,
            finish_reason=finish_reason,
            reference=reference,
            must_end=self.must_end,
        )

    def spoken(self, text: str) -> str:
        """A reply without what the model thought aloud, which `parse` reads as it does the whole."""
        return spoken(text)

    def _best(self, history: Sequence[Record]) -> Record | None:
        rated = [
            (figure, record)
            for record in history
            if scoring.counts(record.evaluation)
            and not record.candidate.is_baseline
            and (figure := scoring.speedup(record.evaluation, self.clock)) is not None
        ]
        return max(rated, key=lambda pair: pair[0], default=(0.0, None))[1]

    def _roofline(self, history: Sequence[Record], best: Record | None) -> Roofline | None:
        found = [record.evaluation for record in history if record.evaluation.work]
        shown = None
        if found and found[-1].work:
            task_class = found[-1].correctness.task_class if found[-1].correctness else None
            shown = Roofline.of_work(found[-1].work, task_class)
        elif self.roofline_us is not None:
            shown = Roofline(least_us=self.roofline_us)
        timing = best.evaluation.timing("eager", self.clock) if best else None
        if shown is None or timing is None:
            return shown
        return shown.model_copy(update={"reference_us": timing.opponent_us, "best_us": timing.candidate_us})


def _failures(history: Sequence[Record], most: int) -> list[FailedAttempt]:
    """The latest failed attempts that failed in different ways, latest first."""
    found: dict[tuple[str, str], FailedAttempt] = {}
    for record in reversed(history):
        if len(found) >= most:
            break
        if not record.evaluation.accepted and not record.candidate.is_baseline:
            found.setdefault((record.evaluation.outcome, record.evaluation.detail), FailedAttempt.of(record))
    return list(found.values())
