"""TRL's GRPO trainer with hooks: prompts that are written at the moment of asking, and advantages of our own.

Imports torch and TRL: only a running stage imports it. The methods that are overridden are private to TRL, which is
why its version is pinned; `tests/training/test_trl_contract.py` holds what is relied on.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from accelerate.utils import broadcast_object_list, gather_object
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from cuda_l1.errors import UsageError
from cuda_l1.proposers.policy.policy import messages_of
from cuda_l1.training.rounds import Rounds, Worth
from cuda_l1.training.run_directory import StageDirectory
from cuda_l1.training.stages import Event
from cuda_l1.types import Prompt

Row = dict[str, Any]


class ContrastiveTrainer(GRPOTrainer):
    """GRPO whose groups are asked about tasks (a column `task` with the sha) in place of fixed prompts.

    The main process writes a round's questions and has the replies judged; the others wait and get the result, so that
    one process alone reads and writes the archive.
    """

    def __init__(self, *, rounds: Rounds | None, at_a_time: int, args: GRPOConfig, **others: Any) -> None:
        """`rounds` are needed in the main process alone; `at_a_time` is how many replies a process writes together
        where no server does; `others` are GRPOTrainer's arguments.

        The data set has a column `task` and is as long as the training, in the order in which it is to be asked
        (`shuffle_dataset` is off): TRL's own order begins anew in a resumed run, which is right in its first epoch
        only.
        """
        self._rounds, self._at_a_time = rounds, at_a_time
        self._worth: Worth | None = None
        super().__init__(args=args, reward_funcs=[self.speedup], **others)
        self.remove_callback(PrinterCallback)

    @property
    def round(self) -> int:
        """The number of the round that comes next, from 0: each is trained on `num_iterations` times."""
        return int(self.state.global_step) // int(self.num_iterations)

    def _generate_and_score_completions(self, inputs: Sequence[Row]) -> dict[str, Any]:
        """A generation batch: rows in TRL's order, each task `num_generations` times in a row over all processes."""
        began = time.monotonic()
        prompts = self._asked([row["task"] for row in inputs])
        self._replied = self._judged = began
        tokenizer = self.processing_class
        output: dict[str, Any] = super()._generate_and_score_completions(
            [{**row, "prompt": messages_of(prompt, tokenizer)} for row, prompt in zip(inputs, prompts, strict=True)]
        )
        assert self._worth is not None
        own = self._own(self._worth.advantages, len(inputs))
        output["advantages"] = torch.tensor(own, dtype=torch.float32, device=self.accelerator.device)
        seconds = {"generate_s": self._replied - began, "judge_s": self._judged - self._replied}
        for name, value in {**self._worth.figures, **seconds}.items():
            self._metrics["train"][name].append(value)
        return output

    def _generate_single_turn(
        self, prompt_ids: list[Any], images: Any, multimodal_fields: Any, num_generations: int, **others: Any
    ) -> tuple[list[Any], list[Any] | None]:
        """A part of the replies at a time where the trainer's own model writes: memory is finite."""
        at_a_time = len(prompt_ids) if self.use_vllm else self._at_a_time
        replies: list[Any] = []
        chances: list[Any] = []
        for start in range(0, len(prompt_ids), at_a_time):
            part = prompt_ids[start : start + at_a_time]
            written, known = super()._generate_single_turn(part, images, multimodal_fields, num_generations, **others)
            replies += written
            chances += known or []
        return replies, chances or None

    def _asked(self, shas: Sequence[str]) -> list[Prompt]:
        """The question of each row of this process. One is written for a group, wherever its rows lie."""
        everywhere: list[str] = gather_object(list(shas))
        size = int(self.num_generations)
        groups = [everywhere[start : start + size] for start in range(0, len(everywhere), size)]
        if any(len(set(group)) != 1 or len(group) != size for group in groups):
            raise AssertionError("a group of replies must be about one task; TRL's order of rows has changed")
        written: list[list[Prompt]] = [[]]
        if self._rounds is not None:
            written = [self._rounds.ask(self.round, [group[0] for group in groups])]
        (prompts,) = broadcast_object_list(written)
        return self._own([prompt for prompt in prompts for _ in range(size)], len(shas))

    def speedup(
        self, prompts: Sequence[Any], completions: Sequence[Any], completion_ids: Sequence[Any], **_: Any
    ) -> list[float | None]:
        """The reward function that TRL calls in every process: raw rewards, None for what the machine failed at."""
        self._replied = time.monotonic()
        ends = {*self.eos_token_ids, self._tokenizer.pad_token_id}
        texts = [
            (str(message["content"]), bool(ids) and ids[-1] in ends, len(ids))
            for (message,), ids in zip(completions, completion_ids, strict=True)
        ]
        everywhere = gather_object(texts)
        found: list[Worth | None] = [None]
        if self._rounds is not None:
            found = [self._rounds.score(self.round, everywhere)]
        (self._worth,) = broadcast_object_list(found)
        assert self._worth is not None
        self._judged = time.monotonic()
        return self._own(self._worth.rewards, len(texts))

    def _own(self, everywhere: list[Any], count: int) -> list[Any]:
        """This process's part of what all have, in the order of the processes."""
        start = int(self.accelerator.process_index) * count
        return everywhere[start : start + count]

    def training_step(self, *args: Any, **others: Any) -> torch.Tensor:
        """TRL's, which must give a number: otherwise the weights would be lost with the next update."""
        loss: torch.Tensor = super().training_step(*args, **others)
        if not math.isfinite(loss.item()):
            raise UsageError(
                f"the loss is {loss.item()} after step {self.state.global_step}; the checkpoint before it is unharmed: "
                "begin another run with a lower contrastive.learning_rate"
            )
        return loss


class Told(TrainerCallback):
    """Writes what the trainer logs to `metrics.jsonl`, a line for each round, and tells of it."""

    def __init__(self, stage: StageDirectory, on_event: Callable[[Event], None]) -> None:
        self._stage, self._on_event = stage, on_event
        self.latest: dict[str, float] = {}
        """The figures of the last round."""

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Called in every process."""
        if not state.is_world_process_zero or logs is None or "reward" not in logs:
            return
        self.latest = {name: value for name, value in logs.items() if value is not None}
        figures = {"step": state.global_step, **self.latest}
        self._stage.append("metrics", figures)
        best = f", best {figures['speedup_best']:.2f}x" if "speedup_best" in figures else ""
        said = f"reward {logs['reward'] or 0.0:.3f}, {logs['pass_rate']:.0%} right{best}"
        self._on_event(Event(self._stage.path.name, f"step {state.global_step}/{state.max_steps}: {said}", figures))
