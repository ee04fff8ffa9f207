"""What a policy's replies are worth: parsed, judged, read by a reviewer where it is hard to believe, rewarded. Without
torch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from cuda_l1 import scoring
from cuda_l1.errors import InfrastructureError, TaskError
from cuda_l1.prompts.reply import ParsedReply, ReplyKind, parse_reply
from cuda_l1.proposers.replies import RATIONALE_CHARACTERS
from cuda_l1.ratios import geometric_mean
from cuda_l1.training.denominators import Denominators
from cuda_l1.training.judging import Asked, Judge, Judgement
from cuda_l1.training.opinions import Opinions
from cuda_l1.training.sections import EvaluationSection
from cuda_l1.types import Candidate, Cost, Origin, Prompt, Task


class Written(NamedTuple):
    """One reply of a policy, and the question that it answers."""

    task: Task
    prompt: Prompt
    text: str
    ended: bool
    """Whether the policy ended it; else it met the limit of its length."""
    tokens: int
    best_before: float | None = None
    """The best speed-up that was known of the task when it was asked, against eager; None: none."""


class Scored(NamedTuple):
    """What came of a reply."""

    reward: float | None
    """Speed-up over `evaluation.denominator`; 0 for a failure and for a reply without code; None where the machine
    failed, or others disturbed it."""
    is_right: bool = False
    """Executable and correct, and nothing suspected."""
    problem: str | None = None
    """Why it holds no candidate: a failure of its form."""
    judgement: Judgement | None = None
    """None where there was nothing to judge."""

    fault: str | None = None
    """Why it could be judged and has no reward; None where it has one, or nothing was asked."""
    is_task_fault: bool = False
    """The fault is the task's, not the machine's."""

    @property
    def outcome(self) -> str:
        """An `Outcome`, a `ReplyProblem`, or `fault`."""
        if self.problem is not None:
            return self.problem
        record = self.judgement.record if self.judgement else None
        return str(record.evaluation.outcome) if record and self.fault is None else "fault"

    @property
    def candidate_id(self) -> str | None:
        """Of what was judged."""
        record = self.judgement.record if self.judgement else None
        return record.candidate.id if record else None

    @property
    def logged(self) -> dict[str, Any]:
        """What the logs of replies say came of it."""
        came = {"outcome": self.outcome, "candidate": self.candidate_id}
        return {**came, "right": self.is_right, "reward": self.reward}


@dataclass(frozen=True)
class Grader:
    """Reads replies, has their candidates judged and says what they are worth."""

    judge: Judge
    evaluation: EvaluationSection
    kind: ReplyKind
    """Of the questions."""
    model: str
    """Who writes, for the origins of candidates."""
    opinions: Opinions | None = None
    """Asked about jumps; None: they are taken as they are."""

    def __call__(self, replies: Sequence[Written]) -> list[Scored]:
        """One for each reply, in order. All candidates are handed to the judge at once. Raises ArchiveError."""
        parsed = [self._parsed(reply) for reply in replies]
        pairs = [(reply, one) for reply, one in zip(replies, parsed, strict=True) if one.source is not None]
        wanted = [Asked(reply.task, self._candidate(reply, one.source or "", one.design)) for reply, one in pairs]
        denominators = Denominators(self.evaluation, [each.task for each in wanted])
        found = self.judge([*wanted, *denominators.asked])
        denominators.learn(found[len(wanted) :])
        judged = found[: len(wanted)]
        if self.opinions is not None:
            before = [denominators.at_least(reply.best_before, reply.task) for reply, _ in pairs]
            judged = self.opinions.on(wanted, judged, before)
        rewarded = iter(self._rewarded(one, a.task, denominators) for a, one in zip(wanted, judged, strict=True))
        return [Scored(0.0, problem=one.problem) if one.source is None else next(rewarded) for one in parsed]

    def _parsed(self, reply: Written) -> ParsedReply:
        ending = "stop" if reply.ended else "length"
        return parse_reply(reply.text, kind=self.kind, finish_reason=ending, reference=reply.task.source, must_end=True)

    def _candidate(self, reply: Written, source: str, design: str) -> Candidate:
        origin = Origin(
            proposer="policy",
            model=self.model,
            parents=reply.prompt.exemplars,
            prompt_sha=reply.prompt.sha,
            template=reply.prompt.template,
            cost=Cost(tokens_out=reply.tokens),
        )
        return Candidate.of(reply.task, source, origin, design[:RATIONALE_CHARACTERS])

    def _rewarded(self, judgement: Judgement, task: Task, denominators: Denominators) -> Scored:
        for each in (judgement, denominators.fault(task)):
            if each is not None and each.lacking is not None:
                fault, is_tasks = each.lacking, each.is_task_fault
                return Scored(None, judgement=judgement, fault=fault, is_task_fault=is_tasks)
        denominator = denominators.of(task)
        assert judgement.record is not None and denominator is not None, "there is no fault"
        found, clock, precision = judgement.record.evaluation, self.evaluation.clock, self.evaluation.precision
        reward = scoring.reward(found, clock, precision) / denominator
        return Scored(reward, scoring.counts(found, precision), judgement=judgement)


def check_machine(scored: Sequence[Scored], name: str) -> None:
    """Raises InfrastructureError where the machine failed for every candidate of what is called `name`, TaskError where
    none of its tasks can be judged."""
    faults = [each for each in scored if each.fault is not None]
    if not faults or len(faults) < sum(each.judgement is not None for each in scored):
        return
    if all(each.is_task_fault for each in faults):
        raise TaskError(f"no task of {name} can be judged ({faults[0].fault}); take such tasks out of data.tasks")
    first = next(each.fault for each in faults if not each.is_task_fault)
    raise InfrastructureError(
        f"the machine failed for all {len(faults)} candidates of {name} ({first}); nothing was learned from it, go on "
        "with --resume"
    )


def pass_rate(scored: Sequence[Scored]) -> float:
    """The share of executable and right replies among those that could be judged."""
    return _share(each.is_right for each in scored if each.reward is not None)


def figures(replies: Sequence[Written], scored: Sequence[Scored]) -> dict[str, float]:
    """What there is to say of many replies; speed-ups only where one is right."""
    judged = [each.judgement for each in scored if each.judgement is not None]
    right = [each.reward for each in scored if each.reward and each.is_right]
    speedups = {"speedup_right": geometric_mean(right)} if right else {}
    return {
        "pass_rate": pass_rate(scored),
        "invalid_replies": _share(each.problem is not None for each in scored),
        "cut_replies": _share(not reply.ended for reply in replies),
        "unique_replies": len({reply.text for reply in replies}) / len(replies) if replies else 0.0,
        "known_verdicts": _share(each.is_known for each in judged),
        "table_hits": _share(each.is_tabulated for each in judged),
        "faults": _share(each.fault is not None for each in scored if each.judgement is not None),
        "suspected": _share(
            bool(each.fault is None and each.judgement.record and each.judgement.record.evaluation.suspects())
            for each in scored
            if each.judgement is not None
        ),
        **speedups,
        **({"speedup_best": max(right)} if right else {}),
    }


def best_rewards(replies: Sequence[Written], scored: Sequence[Scored]) -> dict[str, float]:
    """The greatest reward of a right reply, by the id of its task; tasks without one are not in it."""
    best: dict[str, float] = {}
    for reply, one in zip(replies, scored, strict=True):
        if one.is_right and one.reward:
            best[reply.task.id] = max(one.reward, best.get(reply.task.id, 0.0))
    return best


def _share(found: Iterable[bool]) -> float:
    values = list(found)
    return sum(values) / len(values) if values else 0.0
