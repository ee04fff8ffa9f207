"""Stage 3's trainer: prompts that are written at the moment of asking, and advantages of our own.

Imports torch and TRL: only a running stage imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from transformers import TrainerCallback

from cuda_l1.proposers.policy.policy import messages_of, return_memory
from cuda_l1.training.processes import Processes
from cuda_l1.training.replying import Replies, ReplyingTrainer, Row
from cuda_l1.training.rounds import Rounds
from cuda_l1.training.run_directory import StageDirectory
from cuda_l1.training.validation import SCORE, Validation, is_over
from cuda_l1.types import Prompt


class Replied(NamedTuple):
    """A round whose replies are written."""

    number: int
    replies: Replies


class Validations(NamedTuple):
    """When the policy is validated, the same in all processes, and how."""

    every: int
    """Rounds; 0: never."""
    patience: int = 0
    """Validations without a better one that end the training; 0: none do."""
    before: tuple[float, ...] = ()
    """The scores up to the checkpoint that the training goes on from."""
    by: Validation | None = None
    """In the main process alone."""


class ContrastiveTrainer(ReplyingTrainer):
    """GRPO whose groups are asked about tasks (a column `task` with the sha) in place of fixed prompts.

    The main process writes a round's questions and has the replies judged; the others get the result, so that one
    process alone reads and writes the archive. With a lag of 1 the verdicts on a round are awaited when the next
    round's replies are written, so that they are given while the policy learns and writes. Nothing is ahead at a
    checkpoint, so that a resumed run is where an uninterrupted one would be.
    """

    control: Any
    """TRL's, which gives it no type."""

    def __init__(
        self, *, rounds: Rounds | None, processes: Processes, lag: int, validations: Validations, **others: Any
    ) -> None:
        """`rounds` are needed in the main process alone; `others` are ReplyingTrainer's arguments.

        The data set has a column `task` and is as long as the training, in the order in which it is to be asked
        (`shuffle_dataset` is off): TRL's own order begins anew in a resumed run, which is right in its first epoch
        only.
        """
        self._rounds, self._lag, self._validations = rounds, lag, validations
        self._scores = list(validations.before)
        self._prompts: dict[int, list[Prompt]] = {}
        self._under_way: Replied | None = None
        super().__init__(processes=processes, keeps_chances=lag > 0, **others)
        self._tasks: list[str] = list(self.train_dataset["task"])
        if self.is_fsdp_enabled:  # no process has all weights to write with
            self._validations = Validations(0)
        if self.validates:
            self.add_callback(_Validated(validations.every * int(self.num_iterations), self.evaluate))

    @property
    def validates(self) -> bool:
        """Whether there are validations, in all processes."""
        return self._validations.every > 0

    @property
    def round(self) -> int:
        """The number of the round that comes next, from 0: each is trained on `num_iterations` times."""
        return int(self.state.global_step) // int(self.num_iterations)

    def _generate_and_score_completions(self, inputs: Sequence[Row]) -> dict[str, Any]:
        """What is trained on in the next round; `inputs` are its rows, each task `num_generations` times in a row over
        all processes."""
        self._time.begin()
        number = self.round
        if [row["task"] for row in inputs] != self._shas(number):
            raise AssertionError("a round's rows are not those of the data set in order; TRL's order has changed")
        now = self._under_way or self._judging(self._replied(number))
        ahead = self._replied(number + 1) if self._is_ahead(number + 1) else None
        output = self._judged(now)
        self._under_way = self._judging(ahead) if ahead else None
        return output

    def _is_ahead(self, number: int) -> bool:
        """Whether a round's replies are written before there are verdicts on the round before it."""
        every, end = (int(steps) // int(self.num_iterations) for steps in (self.args.save_steps, self.args.max_steps))
        stops = [rounds for rounds in (every, self._validations.every) if rounds]
        return self._lag > 0 and number < end and all(number % rounds for rounds in stops)

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """What the policy is worth on validation tasks, in place of TRL's loss; also whether it is the best so far, and
        whether it was the last that is waited for. Called in every process, before the checkpoint is written."""
        found = self._processes.share(self._validated)
        self._scores.append(found[SCORE])
        if found[SCORE] == max(self._scores):  # the later one of equals
            self.state.best_metric, self.state.best_global_step = found[SCORE], self.state.global_step
        tracked = {f"eval_{name}": value for name, value in found.items()}
        self.control = self.callback_handler.on_log(self.args, self.state, self.control, tracked)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, found)
        self.control.should_training_stop |= is_over(self._scores, self._validations.patience)
        return found

    def _validated(self) -> dict[str, float]:
        """In the main process, which has all weights."""
        assert self._validations.by is not None, "the main process has it"
        model = self.accelerator.unwrap_model(self.model)
        with self.accelerator.autocast():
            found = self._validations.by(int(self.state.global_step), model, self.processing_class)
        return_memory()
        return found

    def take_best(self, stage: StageDirectory) -> int | None:
        """Goes back to the weights of the best checkpoint, in every process; the step that it was written after, None
        where there was no validation. With 0 the policy that the training began with was the best: of it there is no
        checkpoint, and the weights stay as they are."""
        step: int | None = self.state.best_global_step
        if step and step != self.state.global_step:
            self.state.best_model_checkpoint = str(stage.path / f"checkpoint-{step}")
            self._load_best_model()
        return step

    def _replied(self, number: int) -> Replied:
        """The policy as it is answers a round's questions."""
        prompts = self._prompts.pop(number, None) or self._asked(number)
        rows = [
            {"task": sha, "prompt": messages_of(prompt, self.processing_class)}
            for sha, prompt in zip(self._shas(number), prompts, strict=True)
        ]
        return Replied(number, self.written(rows))

    def _judging(self, replied: Replied) -> Replied:
        """Hands the replies over for verdicts. The questions of a round that is asked ahead are written before: they
        show what was known then, however fast the verdicts come."""
        following = replied.number + 1
        if self._is_ahead(following):
            self._prompts[following] = self._asked(following)
        if self._rounds is not None:
            self._rounds.submit(replied.number, replied.replies.texts)
        return replied

    def _judged(self, replied: Replied) -> dict[str, Any]:
        """Waits for the verdicts."""
        with self._time.doing("wait_s"):
            worth = self._processes.share(lambda: self._main.collect(replied.number))
        batch, figures, _ = replied.replies
        for name, values in {**figures, **{key: [value] for key, value in worth.figures.items()}}.items():
            self._metrics["train"][name] += values
        own = self._processes.own(worth.advantages)
        return {**batch, "advantages": torch.tensor(own, dtype=torch.float32, device=self.accelerator.device)}

    def _asked(self, number: int) -> list[Prompt]:
        """The question of each row of this process. One is written for a group, wherever its rows lie."""
        groups = self._processes.share(lambda: self._main.ask(number, self._groups(number)))
        return self._processes.own([prompt for prompt in groups for _ in range(int(self.num_generations))])

    def _groups(self, number: int) -> list[str]:
        """The task of each group of a round."""
        size = int(self.args.generation_batch_size) // int(self.num_generations)
        return self._tasks[number * size : (number + 1) * size]

    def _shas(self, number: int) -> list[str]:
        """The task of each row of this process."""
        return self._processes.own([sha for sha in self._groups(number) for _ in range(int(self.num_generations))])

    @property
    def _main(self) -> Rounds:
        assert self._rounds is not None, "rounds are the main process's"
        return self._rounds


class _Validated(TrainerCallback):
    """Has the policy validated as it is in the beginning, after every so many steps and after the last one, and a
    checkpoint written of each but the first."""

    def __init__(self, steps: int, evaluate: Callable[[], object]) -> None:
        self._steps, self._evaluate = steps, evaluate

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Called in every process, also in a run that goes on."""
        if state.global_step == 0:
            self._evaluate()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Called in every process."""
        if state.global_step % self._steps == 0 or state.global_step >= state.max_steps:
            control.should_evaluate = control.should_save = True
