"""Likelihood training on question and answer pairs: TRL's SFTTrainer with what our runs need around it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from datasets import Dataset
from transformers import PrinterCallback, TrainerState
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from cuda_l1.errors import UsageError
from cuda_l1.proposers.policy.policy import messages_of
from cuda_l1.training.checkpoints import saving_faults
from cuda_l1.training.finite import Finite
from cuda_l1.training.loading import LENGTHS, Loaded, trackers
from cuda_l1.training.order import by_length
from cuda_l1.training.processes import ALONE, Processes, lost_processes
from cuda_l1.training.recipe import Recipe
from cuda_l1.training.run_directory import COMPLETE, StageDirectory, step_of
from cuda_l1.training.sections import SftSection
from cuda_l1.training.watching import Watching
from cuda_l1.types import Prompt

PLACE = "the answer stands here"
"""In place of an answer in a conversation that is laid out without it."""
IGNORED = -100
"""Label of a token that nothing is learned from; torch's."""
RIGHT_TOKENS = "mean_token_accuracy"
"""TRL's name for the share of the answers' tokens that are the most likely ones after those before them, the mean of
all batches."""
PARALLEL = "TOKENIZERS_PARALLELISM"
AT_ONCE = 1000
"""Texts that a tokenizer is given together, so that it uses all cores."""


class Lesson(Protocol):
    """A question and the answer to learn; `examples.Example` is one."""

    @property
    def prompt(self) -> Prompt: ...
    @property
    def completion(self) -> str: ...


class Fitting(NamedTuple):
    """Lessons by whether they fit into the length that is trained."""

    rows: list[dict[str, Any]]
    """`input_ids` and `labels`, as TRL reads them."""
    too_long: int
    longest: int
    """Tokens of the longest lesson, those that are left out included."""
    tokens: int
    """Of all rows."""


class LikelihoodTrainer(SFTTrainer):
    """TRL's, in an order of our own, and with checkpoints that are whole in all processes."""

    def __init__(self, *, processes: Processes, **others: Any) -> None:
        """`others` are SFTTrainer's arguments."""
        self._processes = processes
        super().__init__(**others)
        if not self.args.packing:
            self.model.register_forward_pre_hook(_without_mask, with_kwargs=True)

    def _get_train_sampler(self, train_dataset: Any = None) -> list[int]:
        """The order of the whole training, as one epoch: a resumed one finds its place in it by the step alone."""
        rows = self.train_dataset if train_dataset is None else train_dataset
        size = self.args.train_batch_size * self.args.gradient_accumulation_steps * self._processes.count
        lengths = [len(ids) for ids in rows["input_ids"]]
        return by_length(lengths, batch=size, batches=self.args.max_steps, seed=self.args.seed)

    def _determine_best_metric(self, metrics: dict[str, float], trial: Any) -> bool:
        """Of equals the later one, whatever an earlier version chose by."""
        name = f"eval_{RIGHT_TOKENS}"
        chosen_by_it = any(row.get(name) == self.state.best_metric for row in self.state.log_history)
        if metrics.get(name) == self.state.best_metric or not chosen_by_it:
            self.state.best_metric = None
        found: bool = super()._determine_best_metric(metrics, trial)
        return found

    def _save_rng_state(self, output_dir: str) -> None:
        """A checkpoint's last file follows: it says that the random states of all processes are there."""
        super()._save_rng_state(output_dir)
        self._processes.gather([0])


def _without_mask(model: Any, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Rows are filled up on the right, and no token sees a later one: without a mask attention computes the same where
    there are labels, by its faster kernels."""
    return given, {**named, "attention_mask": None} if model.training else named


def fitting(lessons: Sequence[Lesson], tokenizer: Any, max_length: int) -> Fitting:
    """The lessons of at most `max_length` tokens as rows; longer ones are counted, never cut."""
    rows, longest, tokens, too_long = [], 0, 0, 0
    for first in range(0, len(lessons), AT_ONCE):
        with _many_threads():
            found = _rows(lessons[first : first + AT_ONCE], tokenizer)
        for row in found:
            length = len(row["input_ids"])
            longest = max(longest, length)
            if length > max_length:
                too_long += 1
            else:
                tokens += length
                rows.append(row)
    return Fitting(rows, too_long, longest, tokens)


@contextmanager
def _many_threads() -> Iterator[None]:
    """Meanwhile tokenizers use all cores; by default ours do not, since they complain of it in each process that is
    forked later."""
    before = os.environ.get(PARALLEL)
    os.environ[PARALLEL] = "true"
    try:
        yield
    finally:
        os.environ[PARALLEL] = before or "false"


def _rows(lessons: Sequence[Lesson], tokenizer: Any) -> list[dict[str, list[int]]]:
    """Tokens and labels of lessons. What an answer spells of the tokenizer's special tokens is text: a variant that
    holds the mark of an end as a string ends no turn, and reads back as it was."""
    heads, tails, questions = [], [], []
    for lesson in lessons:
        messages = messages_of(lesson.prompt, tokenizer)
        laid_out = [*messages, {"role": "assistant", "content": PLACE}]
        head, _, tail = tokenizer.apply_chat_template(laid_out, tokenize=False).rpartition(PLACE)
        heads.append(head)
        tails.append(tail)
        questions.append(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))
    asked = _tokens(questions, tokenizer)
    before = asked if heads == questions else _tokens(heads, tokenizer)
    answers = _tokens([lesson.completion for lesson in lessons], tokenizer, split_special_tokens=True)
    rows = []
    for question, head, answer, end in zip(asked, before, answers, _tokens(tails, tokenizer), strict=True):
        ids = [*head, *answer, *end]
        given = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(ids, question, strict=False)))
        rows.append({"input_ids": ids, "labels": [*[IGNORED] * given, *ids[given:]]})
    return rows


def _tokens(texts: list[str], tokenizer: Any, **how: bool) -> list[list[int]]:
    found: list[list[int]] = tokenizer(texts, add_special_tokens=False, **how)["input_ids"]
    return found


def train_on(
    lessons: Sequence[Lesson],
    validation: Sequence[Lesson],
    *,
    policy: Loaded,
    settings: SftSection,
    recipe: Recipe,
    stage: StageDirectory,
    watching: Watching,
    resume: Path | None,
    processes: Processes = ALONE,
) -> Any:
    """The model after `settings.steps` updates on the answers of `lessons`, going on from the checkpoint `resume`; with
    lessons for `validation` that of the checkpoint with most of their tokens right, unless `settings.final` says
    otherwise.

    The loss is on the answers alone. The same lessons and settings give the same weights, also when it was resumed.
    Raises UsageError: no lesson fits into `max_length`, or the loss is not finite; InfrastructureError: the disk is
    full at a checkpoint.
    """
    learnt = fitting(lessons, policy.tokenizer, settings.max_length)
    tested = fitting(validation, policy.tokenizer, settings.max_length)
    watching.say(
        describe(learnt, len(lessons), settings.max_length), lessons=len(learnt.rows), too_long=learnt.too_long
    )
    if not learnt.rows:
        raise UsageError(
            f"no example fits into max_length = {settings.max_length} (the longest has {learnt.longest} tokens); raise "
            f"it, or give data with shorter variants"
        )
    trainer: Any = LikelihoodTrainer(
        processes=processes,
        model=policy.model,
        args=arguments(settings, recipe, stage, has_validation=bool(tested.rows), large=policy.is_large),
        train_dataset=Dataset.from_list(learnt.rows).with_format("numpy"),  # which becomes a tensor ten times as fast
        eval_dataset=Dataset.from_list(tested.rows) if tested.rows else None,
        processing_class=policy.tokenizer,
        peft_config=policy.adapters,
        callbacks=[watching.callback, Finite(stage)],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.create_model_card = lambda *_, **__: None  # the card that we write says what was trained on
    if resume and step_of(resume) >= settings.steps:  # `train` would go on to the end of the epoch
        trainer.state = TrainerState.load_from_json(str(resume / COMPLETE))
        trainer._load_from_checkpoint(str(_best(trainer, stage) or resume))
    else:
        with saving_faults(stage), lost_processes():
            trainer.train(resume_from_checkpoint=str(resume) if resume else None)
    if best := _best(trainer, stage):
        watching.chosen(step_of(best), trainer.state.best_metric)
    return trainer.model


def _best(trainer: Any, stage: StageDirectory) -> Path | None:
    """The checkpoint that TRL has chosen at the end; None where it was not to choose."""
    step = trainer.state.best_global_step if trainer.args.load_best_model_at_end else None
    return stage.path / f"checkpoint-{step}" if step else None


def arguments(
    settings: SftSection, recipe: Recipe, stage: StageDirectory, *, has_validation: bool, large: bool
) -> SFTConfig:
    """What TRL is told. Nothing is reported to anyone but the trackers of the recipe."""
    on_gpu = recipe.run.on_gpu
    every = min(settings.checkpoint_every, settings.steps)
    choosing = has_validation and settings.final == "best"
    return SFTConfig(
        output_dir=str(stage.path),
        max_steps=settings.steps,
        per_device_train_batch_size=settings.batch,
        per_device_eval_batch_size=settings.batch,
        gradient_accumulation_steps=settings.accumulate,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=math.ceil(settings.warmup * settings.steps),
        max_length=settings.max_length,
        packing=settings.packing,
        pad_to_multiple_of=LENGTHS if on_gpu else None,
        eval_packing=False,
        completion_only_loss=True,
        shuffle_dataset=settings.packing,
        logging_steps=1,
        logging_nan_inf_filter=False,  # it would hide a loss that is not a number
        save_strategy="steps",
        save_steps=every,
        save_total_limit=recipe.run.keep_checkpoints,
        eval_strategy="steps" if has_validation else "no",
        eval_steps=every,
        load_best_model_at_end=choosing,
        metric_for_best_model=RIGHT_TOKENS if choosing else None,  # the loss rises while more becomes right: ADR 48
        greater_is_better=choosing or None,
        seed=recipe.run.seed,
        data_seed=recipe.run.seed,
        ddp_find_unused_parameters=False,  # all are used; looking for others takes time, and a warning says so
        use_cpu=not on_gpu,
        bf16=on_gpu,
        gradient_checkpointing=large,
        dataloader_pin_memory=on_gpu,
        disable_tqdm=True,
        report_to=trackers(recipe),
    )


def describe(found: Fitting, wanted: int, max_length: int) -> str:
    """How many examples are learned from, and how many are too long."""
    text = f"{len(found.rows)} examples, {found.tokens} tokens"
    if found.too_long:
        text += (
            f"; {found.too_long} of {wanted} left out, longer than max_length = {max_length} (up to {found.longest})"
        )
    return text
