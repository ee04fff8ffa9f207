"""Prompts, replies and verdicts that say of themselves what they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from cuda_l1.config import LlmSettings, ModelSettings
from cuda_l1.proposers.interfaces import Failed
from cuda_l1.proposers.llm.prices import Prices
from cuda_l1.proposers.llm.proposer import LlmProposer
from cuda_l1.types import (
    Candidate,
    Environment,
    Evaluation,
    Exemplar,
    Outcome,
    Prompt,
    Record,
    Reply,
    ReplyProblem,
    Task,
)

TASK = Task(suite="file", name="toy", source="class Model: ...")
PLACE = Environment(device="cpu", device_name="test cpu", lane="0", rung="R1", torch="2.13.0")


class Parsed(NamedTuple):
    source: str | None
    problem: ReplyProblem | None = None
    detail: str = ""
    design: str = "a design"


class FakePrompts:
    """`code X` holds the source X; any other text is what it says, a problem."""

    def render(self, task: Task, exemplars: Sequence[Exemplar], history: Sequence[Record]) -> Prompt:
        shown = tuple(each.candidate_id for each in exemplars)
        return Prompt(system="sys", user=f"faster than {' '.join(shown)}", template="t@1", exemplars=shown)

    def repair(self, task: Task, failed: Failed) -> Prompt:
        return Prompt(system="sys", user=f"repair {failed.source}: {failed.outcome} {failed.detail}", template="r@1")

    def spoken(self, text: str) -> str:
        return text.rpartition("</think>")[2]

    def parse(self, text: str, finish_reason: str, *, reference: str) -> Parsed:
        if text.startswith("code "):
            return Parsed(text[5:])
        problems: dict[str, ReplyProblem] = {"length": "cut-off", "refusal": "refusal"}
        return Parsed(None, problems.get(finish_reason, "no-code"), "says nothing of use")


class FakeReplies:
    def __init__(self, *stored: Reply) -> None:
        self.stored = list(stored)

    def append(self, reply: Reply) -> None:
        assert reply.id not in {other.id for other in self.stored}
        self.stored.append(reply)

    def of_run(self, run: str, task_sha: str) -> Iterable[Reply]:
        return [reply for reply in self.stored if (reply.run, reply.task_sha) == (run, task_sha)]


def model(url: str, name: str = "m", **more: Any) -> ModelSettings:
    return ModelSettings(name=name, url=url, **{"timeout_s": 20, "retries": 2, **more})


def proposer(
    *models: ModelSettings,
    replies: FakeReplies | None = None,
    prices: Prices | None = None,
    attempts: int | None = None,
    **more: Any,
) -> LlmProposer:
    return LlmProposer(
        LlmSettings(models=models, **more),
        run="a-run",
        environment_key=PLACE.key,
        prompts=FakePrompts(),
        draw=lambda task, seed: [Exemplar(candidate_id=f"seed-{seed}", source="", language="cpp", label="", score=1.0)],
        replies=replies or FakeReplies(),
        prices=prices or {},
        attempts=attempts,
    )


def judged(candidate: Candidate, outcome: Outcome = Outcome.BUILD_FAILED, detail: str = "line 3") -> Record:
    evaluation = Evaluation(
        candidate_id=candidate.id, outcome=outcome, detail=detail, environment=PLACE, protocol="screen"
    )
    return Record(run="a-run", sequence=0, candidate=candidate, evaluation=evaluation)
