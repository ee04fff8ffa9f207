"""What proposers that ask a model need of prompts and of the archive, by shape: they know neither."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from cuda_l1.types import Exemplar, Prompt, Record, Reply, ReplyProblem, Task

Draw = Callable[[Task, int], Sequence[Exemplar]]
"""The exemplars for a question about a task, by a seed."""


class Parsed(Protocol):
    """What a reply's text holds: a source or a problem."""

    @property
    def source(self) -> str | None:
        """Text that defines `ModelNew`."""
        ...

    @property
    def design(self) -> str:
        """What the model says that it does."""
        ...

    @property
    def problem(self) -> ReplyProblem | None:
        """Why there is no source."""
        ...

    @property
    def detail(self) -> str:
        """The problem in one line."""
        ...


class Failed(Protocol):
    """An attempt that did not work out, and what was said about it."""

    @property
    def source(self) -> str:
        """The candidate's text; the whole reply where it held none."""
        ...

    @property
    def outcome(self) -> str:
        """An `Outcome`, or a `ReplyProblem`."""
        ...

    @property
    def detail(self) -> str:
        """What was wrong, in one line."""
        ...

    @property
    def log(self) -> str:
        """What the compiler and the candidate printed."""
        ...


class Prompts(Protocol):
    """Writes questions and reads answers."""

    def render(self, task: Task, exemplars: Sequence[Exemplar], history: Sequence[Record]) -> Prompt:
        """The question for a faster version of `task`. Raises UsageError where it does not fit."""
        ...

    def repair(self, task: Task, failed: Failed) -> Prompt:
        """The question to put right what failed. Raises UsageError where it does not fit."""
        ...

    def spoken(self, text: str) -> str:
        """A reply without what the model thought aloud, which `parse` reads as it does the whole."""
        ...

    def parse(self, text: str, finish_reason: str, *, reference: str) -> Parsed:
        """What a reply about the task with the text `reference` holds. Never raises."""
        ...


class Replies(Protocol):
    """Keeps every reply as soon as it is there."""

    def append(self, reply: Reply) -> object:
        """Stores it. Raises ArchiveError."""
        ...

    def of_run(self, run: str, task_sha: str) -> Iterable[Reply]:
        """Those of a run about a task, oldest first."""
        ...
