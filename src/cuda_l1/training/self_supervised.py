"""Stage 2: the policy learns from those of its own replies that are executable and right.

REINFORCE with reward 1 for a right reply, 0 for any other and no baseline is likelihood training on the right replies;
that is what a round does, with the replies of the policy as it is at its beginning. How fast they are decides nothing.

round n:  questions ──► replies ──► verdicts ──► right ones, each text once ──► likelihood training ──► round-n/final
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from cuda_l1.archive import Archive
from cuda_l1.archive.faults import file_faults
from cuda_l1.errors import UsageError
from cuda_l1.proposers.policy.policy import Policy
from cuda_l1.tasks.contamination import normal_text
from cuda_l1.training.checkpoints import going_on_from
from cuda_l1.training.in_parts import whole_weights
from cuda_l1.training.judging import Judge, Judging
from cuda_l1.training.lessons import tokenized
from cuda_l1.training.likelihood import train_on
from cuda_l1.training.loading import load_policy, save_policy
from cuda_l1.training.model_card import describe
from cuda_l1.training.opinions import Opinions
from cuda_l1.training.processes import ALONE, Processes
from cuda_l1.training.recipe import Recipe
from cuda_l1.training.replies import Grader, Scored, Written, best_rewards, check_machine, figures, pass_rate
from cuda_l1.training.run_directory import RunDirectory, StageDirectory
from cuda_l1.training.sampling import ROUND, Sampler, policy_of, validated
from cuda_l1.training.sections import SelfSupervisedSection, SftSection
from cuda_l1.training.stages import Event, Surroundings
from cuda_l1.training.step_time import StepTime, evaluator_seconds
from cuda_l1.training.task_sets import TaskSets, load_task_sets
from cuda_l1.training.tracking import track
from cuda_l1.training.watching import Watching
from cuda_l1.types import Prompt, Task

NAME = "self"
Say = Callable[[Event], None]


def run(recipe: Recipe, run: RunDirectory, *, start: Path, surroundings: Surroundings, on_event: Say) -> Path:
    """Trains the policy in `start` on its own right replies to the recipe's tasks; see `stages.RunStage`.

    The final policy is that of the round with the highest success rate on the validation tasks. Goes on in the middle
    of a round: replies that are written and verdicts that are known are not paid for again. The main process alone
    writes and judges; all learn. Raises UsageError where no reply is right, InfrastructureError where the machine
    failed for every candidate.
    """
    processes, archive = surroundings.processes, surroundings.archive
    with ExitStack() as stack:
        evaluators = processes.first(lambda: stack.enter_context(surroundings.evaluators()))
        judge = opinions = None
        if evaluators is not None and archive is not None:
            judge = Judging.of(run, NAME, evaluators, archive=archive, table=surroundings.table, on_event=on_event)
            say = partial(_said, on_event)
            opinions = Opinions.of(recipe.evaluation, archive, surroundings.reviewer, say)
        sets = load_task_sets(recipe, recipe.evaluation.kind)
        return SelfSupervised(recipe, run, sets, archive, judge, on_event, opinions, processes).train(start)


def _said(on_event: Say, text: str) -> None:
    on_event(Event(NAME, text))


class Lesson(NamedTuple):
    """A right reply and the question that it answers."""

    prompt: Prompt
    completion: str


class Asked(NamedTuple):
    """What came of one set of questions."""

    replies: list[Written]
    scored: list[Scored]


@dataclass(frozen=True)
class SelfSupervised:
    """The stage with all that it needs at hand."""

    recipe: Recipe
    run: RunDirectory
    sets: TaskSets
    archive: Archive | None
    judge: Judge | None
    """Both are None in all processes but the main one."""
    on_event: Say
    opinions: Opinions | None = None
    processes: Processes = ALONE

    @property
    def stage(self) -> StageDirectory:
        """Its folder."""
        return self.run.stage(NAME)

    @property
    def section(self) -> SelfSupervisedSection:
        """Its settings."""
        return self.recipe.self_supervised

    def train(self, start: Path) -> Path:
        """All rounds; the folder of the best policy."""
        policies, rates = [start], list[float]()
        clock = StepTime()
        clock.begin()
        known = self.processes.share(lambda: {row["round"]: row for row in self.stage.rows("metrics")})
        for number in range(self.section.rounds + 1):
            if number < max(known, default=0):  # a later round was begun: this one is over
                rates.append(known[number]["rate"])
                policies.append(self._folder(number).final)
                continue
            sampled = partial(self._sampled, number, policies[-1], clock, is_known=number in known)
            rate, right = self.processes.share(sampled)
            rates.append(rate)
            if number == self.section.rounds or is_flat(rates, self.section) or (not right and number > 0):
                break
            policies.append(self._learn(number, policies[-1], start, right))
            self.processes.first(partial(self._forget, policies, rates))
        best = best_of(rates)
        self._say(f"ends after {len(rates) - 1} rounds; the best success rate, {rates[best]:.0%}, has round {best}")
        figures = {"round": best, "success_rate": rates[best]}
        self.processes.first(partial(self._finish, policies[best], start, figures))
        return self.stage.final

    # ── A round ───────────────────────────────────────────────────────────────────────────────────

    def _sampled(self, number: int, folder: Path, clock: StepTime, *, is_known: bool) -> tuple[float, list[Lesson]]:
        """The success rate of the policy in `folder`, and its right replies to training tasks. A step of `clock` ends:
        what was learned before, what is written and judged now."""
        asked = self._ask(number, folder, clock)
        rate = self._measure(number, asked, clock.end(), is_known=is_known)
        clock.begin()
        return rate, lessons(asked["train"]) if "train" in asked else []

    def _ask(self, number: int, folder: Path, clock: StepTime) -> dict[str, Asked]:
        """The round's sets of questions by the name of their split, answered by the policy in `folder` and judged."""
        assert self.archive is not None and self.judge is not None, "the main process has them"
        writer: Callable[[], Policy] = cache(lambda: policy_of(folder, self.recipe))
        sampler = Sampler(self.recipe, self.stage, self.archive, self.judge.place, self._say)
        replies: dict[str, list[Written]] = {}
        for split, tasks in self._tasks(number).items():
            asked_in = (
                0 if split == "validation" else number
            )  # the same in all rounds: no reply is a hint for a later one
            with clock.doing("generate_s"):
                questions = sampler.questions(f"{asked_in} {split}", tasks, self.section.samples, writer)
                replies[split] = sampler.replies(f"{number} {split}", questions, writer)
            clock.wrote(sum(reply.tokens for reply in replies[split]))
        recipe = self.recipe
        grade = Grader(self.judge, recipe.evaluation, recipe.prompt.kind, folder.name, self.opinions)
        with clock.doing("wait_s"):
            return {split: Asked(each, grade(each)) for split, each in replies.items()}

    def _tasks(self, number: int) -> dict[str, Sequence[Task]]:
        """What a round asks about. The last one only measures, so that training tasks are asked without need."""
        validation = validated(self.sets.validation, self.section.validation_tasks)
        train = Random(f"{self.recipe.run.seed} {number}").sample(
            self.sets.train, min(self.section.tasks, len(self.sets.train))
        )
        if not validation:
            return {"train": train}
        return (
            {"validation": validation} if number == self.section.rounds else {"train": train, "validation": validation}
        )

    def _measure(self, number: int, asked: dict[str, Asked], times: dict[str, float], *, is_known: bool) -> float:
        """The success rate that counts, on tasks that nothing is learned from where there are some; logs all figures.

        Raises InfrastructureError where there is no verdict at all.
        """
        scored = [one for part in asked.values() for one in part.scored]
        check_machine(scored, f"round {number}")
        rates = {split: pass_rate(part.scored) for split, part in asked.items()}
        rate = rates.get("validation", rates.get("train", 0.0))
        row: dict[str, Any] = {"step": number, "round": number, "rate": rate, **times, **evaluator_seconds(scored)}
        for split, part in asked.items():
            row |= {f"{split}_{name}": value for name, value in figures(part.replies, part.scored).items()}
            row |= {f"{split}_pass_rate_{name}": value for name, value in by_level(part)}
        if not is_known:
            self.stage.keep("samples", number - 1)  # of a round that was killed here
            for split, part in asked.items():
                self._log(number, split, part)
            self.stage.append("metrics", row)
            track(self.run, NAME, number, row)
        said = ", ".join(f"{split} {value:.0%}" for split, value in rates.items())
        best = best_rewards([each for part in asked.values() for each in part.replies], scored)
        self.on_event(Event(NAME, f"round {number}: right replies: {said}", {**row, "best": best}))
        return rate

    def _log(self, number: int, split: str, part: Asked) -> None:
        for reply, one in zip(part.replies, part.scored, strict=True):
            row = {"step": number, "round": number, "split": split, "task": reply.task.id, "reply": reply.text}
            self.stage.append("samples", row | one.logged)

    def _learn(self, number: int, folder: Path, start: Path, right: Sequence[Lesson]) -> Path:
        """The policy after the round. Raises UsageError where there is nothing to learn from."""
        own = self._folder(number)
        if self.processes.share(lambda: own.is_done):
            return own.final
        if not right:
            raise UsageError(
                f"none of the replies of round {number} is executable and right, so there is nothing to learn from; "
                f"train stage 1 longer ({self.stage.path / 'samples.jsonl'} says what is wrong with them)"
            )
        settings = self._settings(len(right))
        policy = load_policy(folder, self.recipe, longest=settings.max_length)
        resume = going_on_from(own, self.processes)
        self.processes.first(lambda: own.rewind("metrics", resume))
        tokens = self.processes.share(lambda: tokenized(right, policy.tokenizer, settings.max_length))
        model = train_on(
            tokens, None, policy=policy, settings=settings, recipe=self.recipe, stage=own,
            watching=Watching(NAME, own, self.on_event), resume=resume, processes=self.processes,
        )  # fmt: skip
        weights = whole_weights(model)
        self.processes.first(lambda: self._keep(model, policy.tokenizer, weights, own, start))
        return own.final

    def _keep(
        self, model: Any, tokenizer: Any, weights: dict[str, Any] | None, own: StageDirectory, start: Path
    ) -> None:
        """The policy of a round, in place of its checkpoints."""

        def beside(place: Path) -> None:
            describe(place, self.run, NAME, start=start, figures={})

        save_policy(model, tokenizer, own.final, recipe=self.recipe, weights=weights, beside=beside)
        for checkpoint in own.path.glob("checkpoint-*"):
            shutil.rmtree(checkpoint)

    def _settings(self, count: int) -> SftSection:
        """`count` lessons: as likelihood training is told. A batch is that of each process."""
        steps = math.ceil(count * self.section.epochs / (self.section.batch * self.processes.count))
        own = {
            "steps": steps,
            "batch": self.section.batch,
            "accumulate": 1,
            "learning_rate": self.section.learning_rate,
            "warmup": 0.0,
            "packing": False,
            "checkpoint_every": steps,
        }
        return self.recipe.sft.model_copy(update=own)

    # ── Folders ───────────────────────────────────────────────────────────────────────────────────

    def _folder(self, number: int) -> StageDirectory:
        return StageDirectory(self.stage.path / f"{ROUND}{number}")

    def _forget(self, policies: Sequence[Path], rates: Sequence[float]) -> None:
        """Weights of rounds that are neither the best nor the latest."""
        kept = {policies[best_of(rates)], policies[-1], policies[0]}
        for folder in policies:
            if folder not in kept and folder.exists():
                shutil.rmtree(folder)

    def _finish(self, best: Path, start: Path, found: dict[str, float]) -> None:
        final = self.stage.final
        made = final.with_name("final.partial")
        with file_faults(final):
            shutil.rmtree(made, ignore_errors=True)
            shutil.copytree(best, made)
            describe(made, self.run, NAME, start=start, figures=found)
            made.replace(final)

    def _say(self, text: str, **figures: Any) -> None:
        self.on_event(Event(NAME, text, figures))


def lessons(asked: Asked) -> list[Lesson]:
    """The right replies, each variant of a task once, whatever its comments and formatting."""
    found: dict[tuple[str, str], Lesson] = {}
    for reply, one in zip(asked.replies, asked.scored, strict=True):
        record = one.judgement.record if one.judgement else None
        if one.is_right and record is not None:
            variant = (reply.task.sha, normal_text(record.candidate.source))
            found.setdefault(variant, Lesson(reply.prompt, reply.text))
    return list(found.values())


def by_level(asked: Asked) -> Iterable[tuple[str, float]]:
    """(`level_1`, its success rate) for each level of the tasks, in order; those without one are `level_none`."""
    found: dict[str, list[Scored]] = {}
    for reply, one in zip(asked.replies, asked.scored, strict=True):
        level = "none" if reply.task.level is None else str(reply.task.level)
        found.setdefault(f"level_{level}", []).append(one)
    return [(name, pass_rate(scored)) for name, scored in sorted(found.items())]


def best_of(rates: Sequence[float]) -> int:
    """The round with the highest success rate; the later one of equals."""
    return max(range(len(rates)), key=lambda number: (rates[number], number))


def is_flat(rates: Sequence[float], section: SelfSupervisedSection) -> bool:
    """Whether the last `patience` rounds have brought less than `min_gain` over the best one before them."""
    if len(rates) <= section.patience:
        return False
    before, latest = rates[: -section.patience], rates[-section.patience :]
    return max(latest) < max(before) + section.min_gain
