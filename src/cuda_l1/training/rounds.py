"""One round of stage 3: the questions of its groups, and the advantages of the replies to them. Without torch.

A round's questions are written when the policy is about to be asked, from what the archive holds then, and kept in
`prompts.jsonl`; what came of the replies is kept in `samples.jsonl`. These two logs are the stage's position in the
archive: a round that is repeated after an interruption asks what it asked before, although the archive knows more now,
and the running moments are those of the samples of all rounds before it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from cuda_l1 import scoring
from cuda_l1.archive import Archive
from cuda_l1.errors import UsageError
from cuda_l1.prompts.prompting import Prompting
from cuda_l1.scoring import Moments
from cuda_l1.training.judging import best_speedup
from cuda_l1.training.replies import Grader, Scored, Written, best_rewards, check_machine, figures, pass_rate
from cuda_l1.training.run_directory import StageDirectory
from cuda_l1.training.sections import ContrastiveSection
from cuda_l1.training.step_time import evaluator_seconds, in_background
from cuda_l1.types import Prompt, Task

PROMPTS, SAMPLES = "prompts", "samples"
"""The files of a stage that hold what was asked and what came of it, a JSON object a line."""


class Worth(NamedTuple):
    """What the replies of a round are worth, in their order."""

    rewards: list[float | None]
    """Raw: speed-ups, and 0 for failures."""
    advantages: list[float]
    figures: dict[str, float]


class Asked(NamedTuple):
    """The question to a group."""

    task: Task
    prompt: Prompt
    best: float | None
    """The task's best speed-up by then."""


class Awaited(NamedTuple):
    """Replies of a round and the verdicts on them, which may be under way."""

    size: int
    """Replies to one question."""
    replies: list[Written]
    verdicts: Callable[[], tuple[list[Scored], float]]
    """Waits for them; also the seconds that they took."""


@dataclass
class Rounds:
    """Writes the questions of a stage's rounds and says what the replies are worth."""

    tasks: Mapping[str, Task]
    """By sha."""
    section: ContrastiveSection
    prompting: Prompting
    archive: Archive
    grade: Grader
    stage: StageDirectory
    seed: int
    alarm: Callable[[str], None]
    """Hears what a person should know of."""
    best: dict[str, float] = field(default_factory=dict, init=False)
    """The greatest reward so far, by the id of its task."""
    _moments: dict[str, Moments] = field(default_factory=dict, init=False)
    """By the sha of the task."""
    _asked: dict[int, list[Asked]] = field(default_factory=dict, init=False)
    _judged: dict[int, Awaited] = field(default_factory=dict, init=False)
    _stored: dict[int, list[dict[str, Any]]] = field(default_factory=dict, init=False)

    def resume(self, first: int) -> None:
        """Takes up the logs of a stage whose next round is `first`."""
        self._stored = {row["round"]: row["groups"] for row in self.stage.rows(PROMPTS) if row["round"] >= first}
        before = {(row["round"], row["index"]): row for row in self.stage.rows(SAMPLES) if row["round"] < first}
        self._moments = {}
        rows = [row for _, row in sorted(before.items(), key=lambda item: item[0])]
        self._learn([(row["task"], row["reward"]) for row in rows])
        for row in rows:
            if row["reward"] and row["task"] in self.tasks:
                self._praise({self.tasks[row["task"]].id: row["reward"]})

    def ask(self, number: int, shas: Sequence[str]) -> list[Prompt]:
        """The question of each group of round `number`, one for each of `shas`. Raises UsageError, ArchiveError."""
        stored = self._stored.get(number, [])
        if [row["task"] for row in stored] == list(shas):
            asked = [
                Asked(self.tasks[row["task"]], Prompt.model_validate(row["prompt"]), row.get("best")) for row in stored
            ]
        else:
            asked = [self._question(number, group, self.tasks[sha]) for group, sha in enumerate(shas)]
            groups = [
                {"task": one.task.sha, "prompt": one.prompt.model_dump(mode="json"), "best": one.best} for one in asked
            ]
            self.stage.append(PROMPTS, {"round": number, "groups": groups})
        self._asked[number] = asked
        return [one.prompt for one in asked]

    def submit(self, number: int, texts: Sequence[tuple[str, bool, int]]) -> None:
        """Hands over the replies (text, whether it was ended, tokens) to the round's questions, each question's
        together and in the order of the questions. With `lag` their verdicts are begun at once, beside the training."""
        asked = self._asked.pop(number)
        size = len(texts) // len(asked)
        questions = (one for one in asked for _ in range(size))
        replies = [
            Written(one.task, one.prompt, text, ended, tokens, one.best)
            for one, (text, ended, tokens) in zip(questions, texts, strict=True)
        ]
        judge = partial(self._graded, replies)
        self._judged[number] = Awaited(size, replies, in_background(judge) if self.section.lag else judge)

    def collect(self, number: int) -> Worth:
        """What the replies of the round that was submitted are worth; waits for their verdicts.

        Raises InfrastructureError when the machine failed for every candidate, UsageError where too few of the first
        round are right.
        """
        size, replies, verdicts = self._judged.pop(number)
        scored, judge_s = verdicts()
        check_machine(scored, f"round {number + 1}")
        rewards = [each.reward for each in scored]
        self._learn([(reply.task.sha, reward) for reply, reward in zip(replies, rewards, strict=True)])
        self._praise(best_rewards(replies, scored))
        groups = [rewards[start : start + size] for start in range(0, len(rewards), size)]
        shaped = [self._shaped(group, reply.task.sha) for group, reply in zip(groups, replies[::size], strict=True)]
        found = [each for group in scoring.advantages(shaped, self.section.scale) for each in group]
        self._log(number, replies, scored, found)
        self._check(number, scored)
        flat = sum(len({value for value in group if value is not None}) < 2 for group in shaped) / len(groups)
        if flat == 1.0:
            self.alarm(
                f"round {number + 1}: no group has replies whose rewards differ once they are shaped "
                f"(contrastive.shaping = {self.section.shaping}), so nothing is learned from it"
            )
        times = {"judge_s": judge_s, **evaluator_seconds(scored)}
        return Worth(rewards, found, {**_rewards(rewards), **figures(replies, scored), "flat_groups": flat, **times})

    def _graded(self, replies: Sequence[Written]) -> tuple[list[Scored], float]:
        """Their verdicts, and the seconds that those took."""
        began = time.monotonic()
        return self.grade(replies), time.monotonic() - began

    def _question(self, number: int, group: int, task: Task) -> Asked:
        seed = (self.seed << 40) + (number << 16) + group
        sampler, place = self.section.sampler, self.grade.judge.place
        exemplars = self.archive.exemplars.draw(task.sha, sampler, seed=seed, environment_key=place)
        best = best_speedup(self.archive, task.sha, place)
        return Asked(task, self.prompting.render(task, exemplars, ()), best)

    def _check(self, number: int, scored: Sequence[Scored]) -> None:
        share, least = pass_rate(scored), self.section.min_pass_rate
        if number == 0 and share < least:
            raise UsageError(
                f"{share:.0%} of the first {len(scored)} replies of {self.grade.model} are executable and right, below "
                f"contrastive.min_pass_rate = {least:.0%}: too few to learn from; train stages 1 and 2 longer, or "
                f"begin another run from that model with a lower share ({self.stage.path / SAMPLES}.jsonl says what is "
                "wrong with them)"
            )

    def _learn(self, rewards: Sequence[tuple[str, float | None]]) -> None:
        """Takes rewards into the moments of their tasks."""
        for sha, reward in rewards:
            if reward is not None:
                self._moments[sha] = self._moments.get(sha, Moments()).after([reward])

    def _praise(self, rewards: Mapping[str, float]) -> None:
        self.best |= {task: max(reward, self.best.get(task, 0.0)) for task, reward in rewards.items()}

    def _shaped(self, rewards: Sequence[float | None], task_sha: str) -> list[float | None]:
        known = [reward for reward in rewards if reward is not None]
        moments = self._moments.get(task_sha, Moments())
        section = self.section
        values = iter(scoring.shaped(known, section.shaping, moments, section.clip, section.noise))
        return [None if reward is None else next(values) for reward in rewards]

    def _log(
        self, number: int, replies: Sequence[Written], scored: Sequence[Scored], advantages: Sequence[float]
    ) -> None:
        for index, (reply, one) in enumerate(zip(replies, scored, strict=True)):
            row = {
                "round": number,
                "index": index,
                "task": reply.task.sha,
                "text": reply.text,
                "tokens": reply.tokens,
                "outcome": one.outcome,
                "candidate": one.candidate_id,
                "known": bool(one.judgement and one.judgement.is_known),
                "reward": one.reward,
                "advantage": advantages[index],
            }
            self.stage.append(SAMPLES, row)


def _rewards(rewards: Sequence[float | None]) -> dict[str, float]:
    """Mean and standard deviation of those that there are."""
    known = [reward for reward in rewards if reward is not None]
    return {"reward": statistics.fmean(known), "reward_std": statistics.pstdev(known)} if known else {}
