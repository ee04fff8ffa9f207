"""The proposer that asks language models: questions are under way in the background while others are evaluated.

All work but the waiting is done in `propose`, on the caller's thread: while candidates are timed, nothing here runs.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError

from cuda_l1.config import LlmSettings
from cuda_l1.endpoint import Answer, Background
from cuda_l1.errors import EndpointError, UsageError
from cuda_l1.proposers import NOT_YET, NotYet
from cuda_l1.proposers.interfaces import Draw, Failed, Prompts, Replies
from cuda_l1.proposers.llm.ledger import Ledger
from cuda_l1.proposers.llm.prices import Prices
from cuda_l1.proposers.llm.purse import Purse, estimated_tokens
from cuda_l1.proposers.llm.questions import Asked, Question
from cuda_l1.proposers.llm.talk import FailedText, Talk
from cuda_l1.proposers.replies import read_reply
from cuda_l1.types import Candidate, Outcome, Prompt, Record, Reply, Task

REPAIRED_OUTCOMES = frozenset(Outcome) - {Outcome.ACCEPTED, Outcome.REJECTED}
"""Who was caught at an attack is not told how."""
REPAIRED_PROBLEMS = frozenset({"no-code", "several-blocks", "wrong-sections", "no-model-new", "syntax-error"})
"""What a model can put right when it is told. A reply that was cut off would be cut off again."""


class LlmProposer:
    """Asks each of its models as long as it has room and the purse allows, with exemplars drawn anew each time.

    A candidate that fails is handed back once. Replies that `replies` holds of this run and place are taken first and
    cost nothing. It asks on until its time or money is spent, or until each model is gone: its endpoint fails, or its
    replies hold nothing new.
    """

    name = "llm"

    def __init__(
        self,
        settings: LlmSettings,
        *,
        run: str,
        environment_key: str,
        prompts: Prompts,
        draw: Draw,
        replies: Replies,
        prices: Prices,
        on_reply: Callable[[Reply], None] = lambda reply: None,
        purse: Purse | None = None,
        attempts: int | None = None,
    ) -> None:
        """`environment_key`: where candidates are judged. `on_reply` hears of each reply that comes in. `purse` is one
        that several proposers pay from; default: its own. `attempts` is the most replies of the run that a model at an
        endpoint gives about a task, repairs and copies among them; None: no such limit. Raises UsageError for a key
        file that holds no key."""
        self._on_reply, self._attempts = on_reply, attempts
        self._settings, self._run, self._environment_key = settings, run, environment_key
        self._prompts, self._draw, self._replies = prompts, draw, replies
        self._purse = purse or Purse(settings, prices, Ledger())
        self.ledger = self._purse.ledger
        self._models = [Asked.of(model) for model in settings.models]
        self._talks: dict[str, Talk] = {}
        self._spent: str | None = None
        self._background: Background | None = None

    @property
    def failures(self) -> Sequence[str]:
        """Why models were not asked any more, one line each."""
        gone = [f"{model.name}: {model.gone}" for model in self._models if model.gone]
        return [*gone, *self._unaskable, *filter(None, [self._spent])]

    @property
    def unfinished(self) -> str | None:
        """Why it stopped before its models had nothing new to say: a failing endpoint, a prompt that does not fit, no
        money. None: it did not."""
        gone = [f"{model.name}: {model.gone}" for model in self._models if model.gone and not model.is_exhausted]
        return next(iter([*gone, *self._unaskable]), self._spent)

    @property
    def fault(self) -> EndpointError | UsageError | None:
        """Why no model is left, or no question could be written, where none has ever replied."""
        if self.ledger.replies:
            return None
        if self._unaskable:
            return UsageError("; ".join(self._unaskable))
        if not all(model.gone for model in self._models):
            return None
        first = self._models[0].gone
        return EndpointError("; ".join(self.failures), kind=first.kind if first else "")

    @property
    def _unaskable(self) -> list[str]:
        return [talk.unaskable for talk in self._talks.values() if talk.unaskable]

    def propose(self, task: Task, history: Sequence[Record], until: float) -> Candidate | NotYet | None:
        """The next reply's candidate; `NOT_YET` while all are under way. A question that cannot be written ends the
        asking about its task, and nothing else: `failures` says why. Raises ArchiveError."""
        talk = self._talk(task)
        for question in [question for question in talk.open if question.future.done()]:
            self._close(talk, question)
        self._repair_failed(talk, history)
        if time.monotonic() <= until:
            self._ask(talk, history)
        if talk.ready:
            candidate, asked = talk.ready.popleft()
            if asked is not None:
                asked.under_way -= 1
            return candidate
        pausing = any(model.is_pausing and self._may_ask(talk, model) for model in self._models)
        awaited = talk.open or (time.monotonic() <= until and pausing)
        return NOT_YET if awaited else None

    def close(self) -> None:
        """Stores the replies that have come in since the last `propose`, and leaves what is under way. Raises
        ArchiveError."""
        background, self._background = self._background, None
        if background is None:
            return
        try:
            for talk in self._talks.values():
                for question in [question for question in talk.open if question.future.done()]:
                    self._take_in(talk, question)
        finally:
            self._leave(background)

    def _leave(self, background: Background) -> None:
        for talk in self._talks.values():
            for question in talk.open:
                question.future.cancel()
                self._purse.release(question.reserved)
            talk.open.clear()
        closing = [background.submit(model.chat.close()) for model in self._models]
        for future in closing:
            with contextlib.suppress(Exception):  # it is left in any case
                future.result(1.0)
        background.close()

    # ── Asking ────────────────────────────────────────────────────────────────────────────────────

    def _ask(self, talk: Talk, history: Sequence[Record]) -> None:
        objections: dict[str, str] = {}
        while not talk.is_blocked and (asked := self._next(talk, objections)):
            if (prompt := self._written(talk, history)) is None:
                break
            objection = self._put(talk, asked, prompt, shown=prompt.exemplars)
            if objection:
                objections[asked.name] = objection
            else:
                talk.questions += 1
        if objections and not talk.open:
            self._spent = next(iter(objections.values()))
        talk.is_blocked = talk.is_blocked or bool(objections)

    def _written(self, talk: Talk, history: Sequence[Record]) -> Prompt | None:
        if talk.unaskable:
            return None
        exemplars = self._draw(talk.task, self._settings.seed + talk.questions)
        try:
            return self._prompts.render(talk.task, exemplars, history)
        except UsageError as error:  # what was found before must not be lost with it
            talk.unaskable = str(error)
            return None

    def _may_ask(self, talk: Talk, asked: Asked) -> bool:
        return self._attempts is None or talk.attempts(asked) < self._attempts

    def _next(self, talk: Talk, without: dict[str, str]) -> Asked | None:
        free = [m for m in self._models if m.has_room and m.name not in without and self._may_ask(talk, m)]
        return min(free, key=lambda model: model.questions, default=None)

    def _put(
        self, talk: Talk, asked: Asked, prompt: Prompt, *, repairs: str | None = None, shown: tuple[str, ...] = ()
    ) -> str | None:
        """Sends a question off, or says why it may not cost that much."""
        reserved = self._purse.estimate(asked.settings, prompt)
        if objection := self._purse.objection(reserved):
            return objection
        self._purse.reserve(reserved)
        number = talk.number(asked, prompt.sha)
        question = Question(talk.task, asked, prompt, number, reserved, repairs, shown)
        self._background = self._background or Background()
        question.put(self._background)
        asked.questions += 1
        asked.under_way += 1
        talk.open.append(question)
        return None

    def _repair_failed(self, talk: Talk, history: Sequence[Record]) -> None:
        for record in history[talk.seen :]:
            found, reply = record.evaluation, talk.replies.get(record.candidate.id)
            if reply is not None and found.outcome in REPAIRED_OUTCOMES:
                failed = FailedText(record.candidate.source, found.outcome, found.detail, found.log)
                self._repair(talk, reply, failed)
        talk.seen = len(history)

    def _repair(self, talk: Talk, reply: Reply, failed: Failed) -> None:
        """Asks once, and not for what is itself a repair; without money or room for the prompt it is let go."""
        if not self._settings.repair or reply.repairs is not None or reply.id in talk.repaired:
            return
        place = (reply.model, reply.endpoint)
        asked = next((m for m in self._models if (m.settings.name, m.place) == place and not m.gone), None)
        if asked is None or not self._may_ask(talk, asked):
            return
        talk.repaired.add(reply.id)
        with contextlib.suppress(UsageError):
            prompt = self._prompts.repair(talk.task, failed)
            self._put(talk, asked, prompt, repairs=reply.id, shown=tuple(filter(None, [reply.candidate_id])))

    # ── Hearing ───────────────────────────────────────────────────────────────────────────────────

    def _talk(self, task: Task) -> Talk:
        """That about a task, begun with what the run has stored of it in this place."""
        if task.sha in self._talks:
            return self._talks[task.sha]
        talk = self._talks[task.sha] = Talk(task)
        found = self._replies.of_run(self._run, task.sha)
        stored = [reply for reply in found if reply.is_of(self._environment_key)]
        for reply in stored:
            self.ledger.add(reply)
            talk.questions += reply.repairs is None
            candidate = None if reply.problem else read_reply(reply, task, self._prompts, self.name)[1]
            if talk.hear(reply, candidate) and candidate:
                talk.ready.append((candidate, None))
        for reply in stored:
            self._repair_unusable(talk, reply)
        return talk

    def _take_in(self, talk: Talk, question: Question) -> tuple[Reply, Candidate | None] | None:
        """Stores and books the reply of a question that has ended; None where it has none."""
        talk.open.remove(question)
        talk.is_blocked = False
        self._purse.release(question.reserved)
        try:
            answer, wall_s = question.future.result()
        except (EndpointError, CancelledError) as error:
            question.asked.under_way -= 1
            question.asked.failed(error if isinstance(error, EndpointError) else EndpointError("cancelled"))
            return None
        reply, candidate = self._reply(question, answer, wall_s)
        self._replies.append(reply)
        self._on_reply(reply)
        self.ledger.add(reply)
        return reply, candidate

    def _close(self, talk: Talk, question: Question) -> None:
        """Takes in how a question ended, and what follows from it."""
        if (taken := self._take_in(talk, question)) is None:
            return
        (reply, candidate), asked = taken, question.asked
        is_new = talk.hear(reply, candidate)
        asked.answered(is_new=is_new)
        if candidate is not None and is_new:
            talk.ready.append((candidate, asked))
        else:
            asked.under_way -= 1
            self._repair_unusable(talk, reply)

    def _repair_unusable(self, talk: Talk, reply: Reply) -> None:
        if reply.problem in REPAIRED_PROBLEMS:
            self._repair(talk, reply, FailedText(reply.text, reply.problem, reply.detail))

    def _reply(self, question: Question, answer: Answer, wall_s: float) -> tuple[Reply, Candidate | None]:
        text = self._prompts.spoken(answer.text) if answer.text else answer.refusal
        finish_reason = answer.finish_reason if answer.text or not answer.refusal else "refusal"
        prompt, place = question.prompt, question.asked.place
        cost = self._purse.cost(
            question.asked.settings.name,
            place,
            tokens_in=_counted(answer.tokens_in, prompt.system + prompt.user),
            tokens_out=_counted(answer.tokens_out, answer.text),
            wall_s=wall_s,
        )
        reply = Reply(
            run=self._run,
            task_sha=question.task.sha,
            model=question.asked.settings.name,
            endpoint=place,
            prompt_sha=prompt.sha,
            template=prompt.template,
            exemplars=question.shown,
            repairs=question.repairs,
            number=question.number,
            environment_key=self._environment_key,
            text=text,
            finish_reason=finish_reason,
            cost=cost,
        )
        return read_reply(reply, question.task, self._prompts, self.name)


def _counted(tokens: int | None, text: str) -> int:
    """What the server counted, else our estimate."""
    return estimated_tokens(text) if tokens is None else tokens
