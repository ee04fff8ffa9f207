"""Replies of a policy to questions about tasks: asked as training asks, kept as they come.

prompts.jsonl    what was asked, a line for each set of questions
replies.jsonl    what came back, a line for each reply, as soon as its batch is written

A set that is asked for again, after an interruption, is the one that was asked before, although the archive knows more
now; only what is missing of its replies is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from cuda_l1.archive import Archive
from cuda_l1.config import GenerationSettings
from cuda_l1.errors import UsageError
from cuda_l1.prompts.prompting import Prompting
from cuda_l1.proposers.policy.checkpoint import read_checkpoint
from cuda_l1.proposers.policy.policy import Policy
from cuda_l1.proposers.policy.proposer import seed_of
from cuda_l1.training.judging import best_speedup
from cuda_l1.training.recipe import Recipe
from cuda_l1.training.replies import Written
from cuda_l1.training.run_directory import StageDirectory
from cuda_l1.types import Prompt, Task, digest

PROMPTS, REPLIES = "prompts", "replies"
"""The files of a stage."""
ROUND = "round-"
"""How the folders of a stage's rounds begin."""


class Question(NamedTuple):
    """What is asked about a task."""

    task: Task
    prompt: Prompt
    best: float | None
    """The task's best speed-up by then."""


def policy_of(folder: Path, recipe: Recipe) -> Policy:
    """The policy in a folder, which writes as `[generation]` says where `[run]` trains. Raises UsageError,
    InfrastructureError."""
    return Policy.load(read_checkpoint(folder), settings_of(recipe), recipe.run.device)


def settings_of(recipe: Recipe) -> GenerationSettings:
    """How a policy writes by `[generation]`."""
    asked = recipe.generation
    return GenerationSettings(
        temperature=asked.temperature,
        top_p=asked.top_p,
        max_new_tokens=asked.max_new_tokens,
        batch=asked.batch,
        seed=recipe.run.seed,
    )


def prompting_of(recipe: Recipe, policy: Policy) -> Prompting:
    """Questions as a policy is asked, counted by its own tokenizer: one that leaves no room for a reply in the policy's
    context loses exemplars."""
    settings = recipe.prompt.settings.model_copy(update={"max_tokens": policy.prompt_tokens})
    return Prompting(settings=settings, counter=policy.counter)


def validated(tasks: Sequence[Task], count: int) -> list[Task]:
    """The tasks of the validation split that are asked about again and again, at most `count`: the same ones in all
    stages."""
    return sorted(tasks, key=lambda task: task.sha)[:count]


@dataclass(frozen=True)
class Sampler:
    """Asks a policy about tasks, 0 to `sft.exemplars` scored variants in each question as in stage 1."""

    recipe: Recipe
    stage: StageDirectory
    archive: Archive
    place: str
    """Key of the environment that the variants shown were measured in."""
    say: Callable[..., None]
    """Hears one line at a time, and the same as figures."""

    def questions(
        self, name: str, tasks: Sequence[Task], samples: int, policy: Callable[[], Policy], *, first: int = 0
    ) -> list[Question]:
        """`samples` questions about each task, those about one task together; `name` is the set's. They are the task's
        questions from number `first` on: the counts of variants shown go on from there.

        Tasks whose question does not fit into the policy's context are left out, and said. Raises ArchiveError.
        """
        by_sha = {task.sha: task for task in tasks}
        for row in self.stage.rows(PROMPTS):
            if row["name"] == name:
                return [_stored(q, by_sha) for q in row["questions"]]
        prompting = prompting_of(self.recipe, policy())
        asked: list[Question] = []
        for task in tasks:
            try:
                best = best_speedup(self.archive, task.sha, self.place)
                asked += [Question(task, self._prompt(prompting, name, task, first + i), best) for i in range(samples)]
            except UsageError as error:
                self.say(f"{task.name} is left out: {error}")
        rows = [{"task": q.task.sha, "prompt": q.prompt.model_dump(mode="json"), "best": q.best} for q in asked]
        self.stage.append(PROMPTS, {"name": name, "questions": rows})
        return asked

    def replies(self, name: str, questions: Sequence[Question], policy: Callable[[], Policy]) -> list[Written]:
        """A reply to each question of the set `name`; `policy` is called where some are missing. The same seed of the
        recipe, the same questions and the same weights give the same replies on a CPU. Raises InfrastructureError."""
        stored = {row["index"]: row for row in self.stage.rows(REPLIES) if row["name"] == name}
        size = self.recipe.generation.batch
        for begin in range(0, len(questions), size):
            batch = range(begin, min(begin + size, len(questions)))
            if all(index in stored for index in batch):
                continue
            self.say(f"writes replies {begin + 1} to {batch.stop} of {len(questions)}")
            for row in self._batch(name, questions, batch, policy()):
                stored[row["index"]] = row
                self.stage.append(REPLIES, row)
            self.say(f"reply {batch.stop} of {len(questions)}", reply=batch.stop, replies=len(questions))
        return [_written(question, stored[index]) for index, question in enumerate(questions)]

    def _batch(self, name: str, questions: Sequence[Question], batch: range, policy: Policy) -> list[dict[str, Any]]:
        prompts = [questions[index].prompt for index in batch]
        seeds = [seed_of(self.recipe.run.seed, f"{name} {questions[index].prompt.sha}", index) for index in batch]
        found = zip(batch, policy.generate(prompts, seeds), strict=True)
        return [
            {"name": name, "index": i, "text": one.text, "ended": one.finish_reason == "stop", "tokens": one.tokens_out}
            for i, one in found
            if one is not None
        ]

    def _prompt(self, prompting: Prompting, name: str, task: Task, index: int) -> Prompt:
        """Question number `index` about a task: the counts of variants shown take turns."""
        sampler = self.recipe.contrastive.sampler.model_copy(update={"count": index % (self.recipe.sft.exemplars + 1)})
        seed = int(digest(str(self.recipe.run.seed), name, task.sha, str(index))[:12], 16)
        exemplars = self.archive.exemplars.draw(task.sha, sampler, seed=seed, environment_key=self.place)
        return prompting.render(task, exemplars, ())


def _stored(row: dict[str, Any], tasks: Mapping[str, Task]) -> Question:
    return Question(tasks[row["task"]], Prompt.model_validate(row["prompt"]), row.get("best"))


def _written(question: Question, row: dict[str, Any]) -> Written:
    task, prompt, best = question
    return Written(task, prompt, row["text"], row["ended"], row["tokens"], best)
