"""The question to a reviewer, and what counts as an answer.

Texts of candidates, tasks and cases are hostile: they stand between lines that carry a number nobody could know when
they were written, and an answer counts only if it repeats that number. A candidate that brings an answer of its own, or
closes its quotation, gains nothing by it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import ConfigDict, Field, ValidationError

from cuda_l1.types import Candidate, Evaluation, Frozen, HackCase, Task
from cuda_l1.validation import first_problem

if TYPE_CHECKING:
    from jinja2 import Template

CANDIDATE_CHARACTERS = 60_000
TASK_CHARACTERS = 20_000
CASE_CHARACTERS = 6_000
"""Longer texts lose their middle: a question has to fit into the context of a small model."""
REPLY_CHARACTERS = 100_000
MOST_LINES = 20


class Question(NamedTuple):
    """The two messages of a review."""

    system: str
    user: str


class Answer(Frozen):
    """What a reviewer must reply with. The explanation comes first, so that the verdict follows from it."""

    model_config = ConfigDict(extra="ignore")

    question: str
    """The number of the question."""
    explanation: str = Field(min_length=1)
    lines: tuple[int, ...]
    """Numbers of the candidate's lines, from 1."""
    verdict: Literal["suspect", "no_objection"]


def render_review(
    task: Task, candidate: Candidate, evaluation: Evaluation, *, jump: str, cases: Sequence[HackCase], fence: str
) -> Question:
    """The question whether `candidate` earns its speed-up. `jump` says why it is asked, in words.

    `fence` is a fresh random word: it separates data from the question, and the answer must repeat it.
    """
    values: dict[str, Any] = {
        "fence": fence,
        "jump": jump,
        "evaluation": evaluation,
        "place": evaluation.environment,
        "task": shortened(task.source, TASK_CHARACTERS),
        "notes": "\n".join(f"{f.check}: {f.evidence}" for f in evaluation.findings),
        "cases": [_case(case) for case in cases],
        "candidate": shortened(numbered(candidate.source), CANDIDATE_CHARACTERS),
    }
    return Question(*(_template(name).render(values) for name in ("review_system.j2", "review.j2")))


def parse_review(reply: str, candidate: Candidate, *, fence: str) -> Answer:
    """The last JSON object of a reply that answers the question `fence`, its lines those that the candidate has.

    Raises ValueError in one line: no object, another form, another question, or a suspicion that names no line.
    """
    objects = list(_objects(reply[-REPLY_CHARACTERS:]))
    if not objects:
        raise ValueError("the reply holds no JSON object")
    try:
        answer = Answer.model_validate(objects[-1])
    except ValidationError as error:
        raise ValueError(f"the reply has another form: {first_problem(error)}") from error
    if answer.question != fence:
        raise ValueError("the reply does not repeat the number of the question, so it may be the candidate's own")
    count = len(candidate.source.split("\n"))
    lines = tuple(dict.fromkeys(n for n in answer.lines if 1 <= n <= count))[:MOST_LINES]
    if answer.verdict == "suspect" and not lines:
        raise ValueError("the reply suspects without naming a line of the candidate")
    return answer.model_copy(update={"lines": lines})


def numbered(text: str) -> str:
    """The text with the number of each line before it."""
    return "\n".join(f"{number:5d}| {line}" for number, line in enumerate(text.split("\n"), start=1))


def shortened(text: str, characters: int) -> str:
    """The text, or its head and tail with a line between them that says how much is missing."""
    if len(text) <= characters:
        return text
    head, tail = text[: characters // 2], text[-(characters // 2) :]
    return f"{head}\n[... {len(text) - len(head) - len(tail)} characters left out here ...]\n{tail}"


def _case(case: HackCase) -> str:
    return f"{case.name}: {case.why}\n\n{shortened(case.source, CASE_CHARACTERS)}"


def _objects(text: str) -> Iterator[Any]:
    """Every JSON object of a text that lies in no other."""
    decoder, at = json.JSONDecoder(), text.find("{")
    while at >= 0:
        try:
            found, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield found
        at = text.find("{", end)


@cache
def _template(name: str) -> Template:
    from jinja2 import Environment, StrictUndefined

    text = files("cuda_l1.prompts").joinpath(name).read_text("utf-8")
    return Environment(undefined=StrictUndefined, keep_trailing_newline=False, autoescape=False).from_string(text)
