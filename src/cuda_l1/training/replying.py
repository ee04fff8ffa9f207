"""TRL's GRPO trainer as one that writes replies now and is told later what they are worth.

Imports torch and TRL: only a running stage imports it. The methods that are overridden are private to TRL, which is
why its version is pinned; `tests/training/test_trl_contract.py` holds what is relied on.
"""

from __future__ import annotations

import contextlib
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from transformers import PrinterCallback
from trl import GRPOConfig, GRPOTrainer

from cuda_l1.errors import UsageError
from cuda_l1.proposers.policy.captured import writing_in_parts
from cuda_l1.proposers.policy.policy import any_length, return_memory
from cuda_l1.training.in_parts import call_head, is_in_parts
from cuda_l1.training.processes import Processes
from cuda_l1.training.server import Server
from cuda_l1.training.step_time import StepTime

Row = dict[str, Any]
REWARD = "reward"
"""In the names of TRL's own figures of rewards, which it is not told."""


class Replies(NamedTuple):
    """Replies that wait for what they are worth."""

    batch: dict[str, Any]
    """This process's part of them, as TRL trains on them, without advantages that count."""
    figures: dict[str, list[float]]
    """TRL's, of writing them."""
    texts: list[tuple[str, bool, int]]
    """All processes': text, whether it was ended, tokens."""


class ReplyingTrainer(GRPOTrainer):
    """GRPO with replies in parts, their rewards from elsewhere, and one end for all processes."""

    def __init__(
        self,
        *,
        processes: Processes,
        at_a_time: int,
        keeps_chances: bool,
        args: GRPOConfig,
        server: Server | None = None,
        **others: Any,
    ) -> None:
        """`at_a_time` is how many replies a process writes together where no server does; `keeps_chances`: replies keep
        the probabilities that they were written with; `server` is the one that writes; `others` are GRPOTrainer's
        arguments."""
        self._processes, self._at_a_time, self._keeps_chances = processes, at_a_time, keeps_chances
        self._time, self._server = StepTime(), server
        self._texts: list[tuple[str, bool, int]] = []
        super().__init__(args=args, reward_funcs=[self.collected], **others)
        for each in filter(None, (self.model, self.ref_model)):
            call_head(each)
        self.remove_callback(PrinterCallback)
        if server is not None and processes.is_main:
            server.client, self.vllm_generation.vllm_client = self.vllm_generation.vllm_client, server

    def written(self, rows: Sequence[Row]) -> Replies:
        """The policy's replies to the `prompt` of each row, as it is now."""
        before, self._metrics["train"] = self._metrics["train"], defaultdict(list)
        with self._time.doing("generate_s"):
            batch: dict[str, Any] = super()._generate_and_score_completions(list(rows))
            if self._keeps_chances and "old_per_token_logps" not in batch:
                batch["old_per_token_logps"] = self._chances(batch)
        return_memory()
        figures, self._metrics["train"] = self._metrics["train"], before
        self._time.wrote(sum(tokens for *_, tokens in self._texts))
        return Replies(batch, {name: values for name, values in figures.items() if REWARD not in name}, self._texts)

    def collected(self, completions: Sequence[Any], completion_ids: Sequence[Any], **_: Any) -> list[float]:
        """The reward function that TRL calls in every process: takes the replies. Their rewards come later, and the
        advantages are put in the place of TRL's."""
        ends = {*self.eos_token_ids, self._tokenizer.pad_token_id}
        own = [
            (str(message["content"]), bool(ids) and ids[-1] in ends, len(ids))
            for (message,), ids in zip(completions, completion_ids, strict=True)
        ]
        self._texts = self._processes.gather(own)
        return [0.0] * len(own)

    def _generate_single_turn(
        self, prompt_ids: list[Any], images: Any, multimodal_fields: Any, num_generations: int, **others: Any
    ) -> tuple[list[Any], list[Any] | None]:
        """A part of the replies at a time where the trainer's own model writes: memory is finite."""
        at_a_time = len(prompt_ids) if self.use_vllm else self._at_a_time
        replies: list[Any] = []
        chances: list[Any] = []
        for start in range(0, len(prompt_ids), at_a_time):
            part = prompt_ids[start : start + at_a_time]
            is_written = False
            while not is_written:
                with self._writing():
                    written, known = super()._generate_single_turn(
                        part, images, multimodal_fields, num_generations, **others
                    )
                is_written = self._is_written()
            replies += written
            chances += known or []
        return replies, chances or None

    def _is_written(self) -> bool:
        """Whether no server has failed over what was just asked for; one that is back has the weights that it began
        with."""
        server = self._server
        if server is None or not self._processes.share(lambda: server.is_back(self.accelerator.device)):
            return True
        self._last_loaded_step = -1
        return False

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """How the trainer's own model writes; processes that hold parts of one model stay in step to the last reply."""
        model = self.accelerator.unwrap_model(self.model)
        in_parts = contextlib.nullcontext() if self.use_vllm or is_in_parts(model) else writing_in_parts(model)
        # Within autocast weights are cast once for all tokens, not for each one anew.
        with self.accelerator.autocast(), any_length(), in_parts:
            try:
                yield
            except RuntimeError as error:
                if "probability tensor" not in str(error):
                    raise
                raise UsageError(
                    f"the policy after step {self.state.global_step} writes nothing: its probabilities are no numbers; "
                    "begin another run with a lower contrastive.learning_rate"
                ) from error

    def _chances(self, batch: dict[str, Any]) -> torch.Tensor:
        """The logarithms of the probabilities of the replies' tokens; (replies, tokens)."""
        ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
        mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
        with torch.no_grad():
            found: torch.Tensor = self._get_per_token_logps_and_entropies(
                self.model, ids, mask, batch["completion_ids"].shape[1], self.args.per_device_train_batch_size
            )[0]
        return found

    def training_step(self, *args: Any, **others: Any) -> torch.Tensor:
        """TRL's, which must give a number in every process: the weights would be lost with the next update."""
        loss: torch.Tensor = super().training_step(*args, **others)
        for value in self._processes.gather([loss.item()]):
            if not math.isfinite(value):
                raise UsageError(
                    f"the loss is {value} after step {self.state.global_step}; begin another run with a lower "
                    f"contrastive.learning_rate (the last good checkpoint is unharmed)"
                )
        return loss

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """TRL's, with where the step's time went."""
        for name, value in self._time.end().items():
            self._metrics["train"][name].append(value)
        super().log(logs, start_time)

    def create_model_card(self, *_: Any, **__: Any) -> None:
        """None of TRL's: the card that we write says what was trained on."""

    def _save_rng_state(self, output_dir: str) -> None:
        """A checkpoint's last file follows: it says that the random states of all processes are there."""
        super()._save_rng_state(output_dir)
        self._processes.gather([0])
