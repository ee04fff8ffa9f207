"""From what a model answered to the candidate that it holds, or to why it holds none."""

from __future__ import annotations

from cuda_l1.endpoint import one_line
from cuda_l1.proposers.interfaces import Prompts
from cuda_l1.types import Candidate, Origin, Reply, Task

RATIONALE_CHARACTERS = 500


def read_reply(reply: Reply, task: Task, prompts: Prompts, proposer: str) -> tuple[Reply, Candidate | None]:
    """`reply` with its problem or its candidate's id, and that candidate, written by the proposer of this name.

    Equal texts give equal answers, so that a stored reply holds the same candidate again. Never raises.
    """
    parsed = prompts.parse(reply.text, reply.finish_reason, reference=task.source)
    if parsed.source is None:
        return reply.model_copy(update={"problem": parsed.problem, "detail": parsed.detail}), None
    candidate = _candidate(reply, task, parsed.source, parsed.design, proposer)
    return reply.model_copy(update={"candidate_id": candidate.id}), candidate


def _candidate(reply: Reply, task: Task, source: str, design: str, proposer: str) -> Candidate:
    origin = Origin(
        proposer=proposer,
        model=reply.model,
        parents=reply.exemplars,
        prompt_sha=reply.prompt_sha,
        template=reply.template or None,
        cost=reply.cost,
    )
    return Candidate.of(task, source, origin, one_line(design, RATIONALE_CHARACTERS))
