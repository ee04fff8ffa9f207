"""The proposer that lets a policy write: a batch of replies at a time, stored before anything is made of them."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

from cuda_l1.errors import UsageError
from cuda_l1.proposers import NOT_YET, NotYet
from cuda_l1.proposers.interfaces import Draw, Prompts, Replies
from cuda_l1.proposers.policy.policy import Policy, Written
from cuda_l1.proposers.replies import read_reply
from cuda_l1.types import Candidate, Cost, Prompt, Record, Reply, Task, digest

MOST_USELESS = 20
"""It is not asked again about a task after so many replies in a row that held nothing new."""
HERE = "this machine"


class Asked(NamedTuple):
    """A prompt, and which of the run's samples for it the reply will be."""

    prompt: Prompt
    number: int


@dataclass
class Talk:
    """What a run has asked and heard about one task."""

    task: Task
    ready: deque[Candidate] = field(default_factory=deque)
    """To be handed out."""
    known: set[str] = field(default_factory=set)
    """Ids of the candidates that any reply held."""
    numbers: Counter[str] = field(default_factory=Counter)
    """Prompt -> how often it was asked."""
    questions: int = 0
    useless: int = 0
    """Replies in a row that held nothing new."""
    unaskable: str | None = None
    """Why no prompt can be written."""
    asked: list[Asked] = field(default_factory=list)
    batch: Future[list[Written | None]] | None = None
    began: float = 0.0

    def hear(self, reply: Reply, candidate: Candidate | None) -> None:
        """Takes a reply in, stored or new."""
        self.numbers[reply.prompt_sha] = max(self.numbers[reply.prompt_sha], reply.number + 1)
        if candidate is None or candidate.id in self.known:
            self.useless += 1
            return
        self.useless = 0
        self.known.add(candidate.id)
        self.ready.append(candidate)


class PolicyProposer:
    """Asks a policy for a batch of replies when those before are used up, with exemplars drawn anew for each.

    A policy that shares its device with the evaluator is waited for, so that nothing is measured while it writes. One
    with a device of its own writes while others are evaluated. Replies that `replies` holds of this run and
    place are taken first. It goes on until 20 replies in a row hold nothing new.
    """

    name = "policy"

    def __init__(
        self,
        policy: Policy,
        model: str,
        *,
        run: str,
        environment_key: str,
        prompts: Prompts,
        draw: Draw,
        replies: Replies,
        is_alone: bool = False,
        on_reply: Callable[[Reply], None] = lambda reply: None,
    ) -> None:
        """`model` names the checkpoint in records. `environment_key`: where candidates are judged. `is_alone`: nothing
        is measured on the policy's device. `on_reply` hears of each reply that comes in."""
        self._policy, self._model = policy, model
        self._run, self._environment_key = run, environment_key
        self._prompts, self._draw, self._replies = prompts, draw, replies
        self._is_alone, self._on_reply = is_alone, on_reply
        self._talks: dict[str, Talk] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="policy")
        self._is_closed = False

    @property
    def failures(self) -> Sequence[str]:
        """Why it was not asked any more."""
        talks = self._talks.values()
        spent = any(talk.useless >= MOST_USELESS for talk in talks)
        line = f"{self._model}: {MOST_USELESS} replies in a row held nothing new"
        return [*(talk.unaskable for talk in talks if talk.unaskable), *([line] if spent else [])]

    @property
    def fault(self) -> UsageError | None:
        """Why no prompt could be written, where there was never a reply."""
        unaskable = [talk.unaskable for talk in self._talks.values() if talk.unaskable]
        has_heard = any(talk.numbers for talk in self._talks.values())
        return UsageError("; ".join(unaskable)) if unaskable and not has_heard else None

    def propose(self, task: Task, history: Sequence[Record], until: float) -> Candidate | NotYet | None:
        """The next reply's candidate, for which it waits where the device is shared, else `NOT_YET`. What is not
        written by `until` is dropped. Raises InfrastructureError where memory is short, ArchiveError."""
        talk = self._talk(task)
        while True:
            if talk.batch is not None and (talk.batch.done() or not (self._is_alone or talk.ready)):
                self._take(talk)
            if talk.batch is None and (self._is_alone or not talk.ready):
                self._begin(talk, history, until)
            if talk.ready:
                return talk.ready.popleft()
            if talk.batch is None:
                return None
            if self._is_alone:
                return NOT_YET

    def close(self) -> None:
        """Ends what is being written."""
        self._is_closed = True
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _may_ask(self, talk: Talk, until: float) -> bool:
        return talk.unaskable is None and talk.useless < MOST_USELESS and time.monotonic() <= until

    def _begin(self, talk: Talk, history: Sequence[Record], until: float) -> None:
        """Has the next batch written, where there is a prompt for it."""
        if not self._may_ask(talk, until):
            return
        settings = self._policy.settings
        try:
            prompts = [self._prompt(talk, history) for _ in range(settings.batch)]
        except UsageError as error:  # what was found before must not be lost with it
            talk.unaskable = str(error)
            return
        talk.asked, talk.began = [self._numbered(talk, prompt) for prompt in prompts], time.monotonic()
        talk.batch = self._thread.submit(
            self._policy.generate,
            prompts,
            [seed_of(settings.seed, asked.prompt.sha, asked.number) for asked in talk.asked],
            is_over=lambda: self._is_closed or time.monotonic() > until,
        )

    def _prompt(self, talk: Talk, history: Sequence[Record]) -> Prompt:
        exemplars = self._draw(talk.task, self._policy.settings.seed + talk.questions)
        prompt = self._prompts.render(talk.task, exemplars, history)
        talk.questions += 1
        return prompt

    def _numbered(self, talk: Talk, prompt: Prompt) -> Asked:
        talk.numbers[prompt.sha] += 1
        return Asked(prompt, talk.numbers[prompt.sha] - 1)

    def _take(self, talk: Talk) -> None:
        """Waits for the batch, stores its replies and takes them in."""
        assert talk.batch is not None
        batch, talk.batch = talk.batch, None
        wall_s = time.monotonic() - talk.began
        for asked, written in zip(talk.asked, batch.result(), strict=True):
            if written is None:
                continue
            reply, candidate = self._reply(talk.task, asked, written, wall_s)
            self._replies.append(reply)
            self._on_reply(reply)
            talk.hear(reply, candidate)

    def _reply(self, task: Task, asked: Asked, written: Written, wall_s: float) -> tuple[Reply, Candidate | None]:
        reply = Reply(
            run=self._run,
            task_sha=task.sha,
            model=self._model,
            endpoint=HERE,
            prompt_sha=asked.prompt.sha,
            template=asked.prompt.template,
            exemplars=asked.prompt.exemplars,
            number=asked.number,
            environment_key=self._environment_key,
            text=self._prompts.spoken(written.text),
            finish_reason=written.finish_reason,
            cost=Cost(tokens_in=written.tokens_in, tokens_out=written.tokens_out, wall_s=wall_s),
        )
        return read_reply(reply, task, self._prompts, self.name)

    def _talk(self, task: Task) -> Talk:
        """That about a task, begun with what the run has stored of it in this place."""
        if task.sha in self._talks:
            return self._talks[task.sha]
        talk = self._talks[task.sha] = Talk(task)
        for reply in self._replies.of_run(self._run, task.sha):
            if (reply.model, reply.endpoint) == (self._model, HERE) and reply.is_of(self._environment_key):
                talk.questions += 1
                talk.hear(reply, None if reply.problem else read_reply(reply, task, self._prompts, self.name)[1])
        return talk


def seed_of(seed: int, prompt_sha: str, number: int) -> int:
    """Of one reply: the same for the same question of a run, whatever was asked before. 63 bits."""
    return int(digest("policy", str(seed), prompt_sha, str(number))[:16], 16) >> 1
