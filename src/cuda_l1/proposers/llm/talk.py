"""What a run has asked and heard about one task."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

from cuda_l1.proposers.llm.questions import Asked, Question
from cuda_l1.types import Candidate, Reply, Task


@dataclass(frozen=True)
class FailedText:
    """A text that did not work out (`interfaces.Failed`)."""

    source: str
    outcome: str
    detail: str
    log: str = ""


@dataclass
class Talk:
    """One task's questions and replies."""

    task: Task
    open: list[Question] = field(default_factory=list)
    """Under way, in the order in which they were asked."""
    ready: deque[tuple[Candidate, Asked | None]] = field(default_factory=deque)
    """To be handed out, with the model that has it under way."""
    replies: dict[str, Reply] = field(default_factory=dict)
    """Candidate id -> the first reply that held it."""
    repaired: set[str] = field(default_factory=set)
    """Ids of replies that a repair was asked for."""
    numbers: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """(model, place, prompt) -> how often it was asked."""
    heard: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(model, place) -> its replies, stored ones and copies included."""
    questions: int = 0
    """Repairs not counted."""
    seen: int = 0
    """Records of the history that were looked at."""
    unaskable: str | None = None
    """Why no question about the task can be written any more: its prompt does not fit, say."""
    is_blocked: bool = False
    """No money for more questions, until one that is under way turns out cheaper than it might have been."""

    def number(self, asked: Asked, prompt_sha: str) -> int:
        """The number of the next sample for this prompt and model; counts it."""
        key = (asked.settings.name, asked.place, prompt_sha)
        self.numbers[key] += 1
        return self.numbers[key] - 1

    def attempts(self, asked: Asked) -> int:
        """Replies of the model at its place, and questions to it that are under way."""
        key = (asked.settings.name, asked.place)
        open_ = sum((question.asked.settings.name, question.asked.place) == key for question in self.open)
        return self.heard[key] + open_

    def hear(self, reply: Reply, candidate: Candidate | None) -> bool:
        """Takes a reply in, stored or new; whether it holds a candidate that was not there before."""
        key = (reply.model, reply.endpoint, reply.prompt_sha)
        self.heard[reply.model, reply.endpoint] += 1
        self.numbers[key] = max(self.numbers[key], reply.number + 1)
        if reply.repairs is not None:
            self.repaired.add(reply.repairs)
        if candidate is None or candidate.id in self.replies:
            return False
        self.replies[candidate.id] = reply
        return True
