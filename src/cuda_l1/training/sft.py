"""Stage 1: supervised fine-tuning on right variants, with 0 to k scored variants in the question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cuda_l1.config import GenerationSettings
from cuda_l1.prompts.reply import parse_reply
from cuda_l1.proposers.policy.policy import Policy
from cuda_l1.training.checkpoints import going_on_from
from cuda_l1.training.examples import Example
from cuda_l1.training.forms import too_few, write_shown
from cuda_l1.training.in_parts import is_in_parts, whole_weights
from cuda_l1.training.kept_lessons import lessons_for
from cuda_l1.training.likelihood import train_on
from cuda_l1.training.loading import Loaded, load_policy, save_policy
from cuda_l1.training.model_card import describe
from cuda_l1.training.recipe import Recipe
from cuda_l1.training.run_directory import RunDirectory, step_of
from cuda_l1.training.stages import Event, Surroundings
from cuda_l1.training.watching import Watching

NAME = "sft"


def run(
    recipe: Recipe,
    run: RunDirectory,
    *,
    start: Path,
    surroundings: Surroundings,
    on_event: Callable[[Event], None],
) -> Path:
    """Fine-tunes the policy in `start` on the run's rows; see `stages.RunStage`. Raises as `train_on` does."""
    stage, processes = run.stage(NAME), surroundings.processes
    policy = load_policy(start, recipe, longest=recipe.sft.max_length)
    train, validation, asked = processes.share(partial(lessons_for, recipe, run, start))
    resume = going_on_from(stage, processes)
    for file in ("metrics", "samples"):
        processes.first(partial(stage.rewind, file, resume))
    beside = Beside(policy, run, start, asked)
    watching = Watching(NAME, stage, on_event, on_checkpoint=beside.checkpoint)
    beside.watching = watching
    if resume:
        watching.say(f"goes on from {resume.name}")
    processes.first(partial(write_shown, stage, train.shown))
    if text := too_few(train.shown, recipe.sft.exemplars):
        watching.say(text, alarm=text)
    model = train_on(
        train.tokens, validation.tokens, policy=policy, settings=recipe.sft, recipe=recipe, stage=stage,
        watching=watching, resume=resume, processes=processes,
    )  # fmt: skip
    keep = partial(save_policy, model, policy.tokenizer, stage.final, recipe=recipe, weights=whole_weights(model))
    processes.first(lambda: keep(beside=beside.describe))
    return stage.final


@dataclass
class Beside:
    """What lies beside the weights of a checkpoint: its card and how it is asked; in the log, what it writes."""

    policy: Loaded
    run: RunDirectory
    start: Path
    asked: Sequence[Example]
    watching: Watching | None = None

    def checkpoint(self, folder: Path, model: Any) -> None:
        """Called with each checkpoint that is whole."""
        self.describe(folder)
        self._sample(folder, model)

    def describe(self, folder: Path) -> None:
        """Writes the card and the form of the prompts into a folder of weights."""
        describe(folder, self.run, NAME, start=self.start, figures=self.watching.latest if self.watching else {})

    def _sample(self, folder: Path, model: Any) -> None:
        """The most likely replies to the first questions: no random number is drawn, so training goes on unchanged.

        None where the weights lie in parts: the main process, which alone is here, cannot write without the others.
        """
        if not self.asked or is_in_parts(model):
            return
        recipe = self.run.recipe
        settings = GenerationSettings(temperature=0.0, max_new_tokens=recipe.generation.max_new_tokens)
        policy = Policy(model, self.policy.tokenizer, settings, context_tokens=None)
        replies = policy.generate([example.prompt for example in self.asked], [0] * len(self.asked))
        for example, reply in zip(self.asked, replies, strict=True):
            if reply is None:
                continue
            parsed = parse_reply(reply.text, kind=recipe.prompt.kind, finish_reason=reply.finish_reason,
                                 reference=example.row.reference, must_end=True)  # fmt: skip
            row = {"step": step_of(folder), "task": example.row.task_id, "reply": reply.text}
            self.run.stage(NAME).append("samples", {**row, "problem": parsed.problem, "exemplars": example.exemplars})
