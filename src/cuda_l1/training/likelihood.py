"""Likelihood training on question and answer pairs: TRL's SFTTrainer with what our runs need around it."""

from __future__ import annotations

import math
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from pyarrow.compute import list_value_length
from transformers import PrinterCallback, TrainerState
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from cuda_l1.errors import UsageError
from cuda_l1.texts import many
from cuda_l1.training.checkpoints import saving_faults
from cuda_l1.training.compiling import compiled_layers
from cuda_l1.training.finite import Finite
from cuda_l1.training.in_parts import call_head
from cuda_l1.training.lessons import Tokenized
from cuda_l1.training.loading import LENGTHS, Loaded, trackers
from cuda_l1.training.order import by_length
from cuda_l1.training.processes import ALONE, Processes, lost_processes
from cuda_l1.training.recipe import Recipe
from cuda_l1.training.run_directory import StageDirectory, step_of
from cuda_l1.training.sections import SftSection
from cuda_l1.training.watching import Watching
from cuda_l1.training.whole import COMPLETE

RIGHT_TOKENS = "mean_token_accuracy"
"""TRL's name for the share of the answers' tokens that are the most likely ones after those before them, the mean of
all batches."""


class LikelihoodTrainer(SFTTrainer):
    """TRL's, in an order of our own, and with checkpoints that are whole in all processes."""

    def __init__(self, *, processes: Processes, **others: Any) -> None:
        """`others` are SFTTrainer's arguments."""
        self._processes = processes
        super().__init__(**others)
        call_head(self.model)
        if not self.args.packing:
            self.model.register_forward_pre_hook(_without_mask, with_kwargs=True)

    def _get_train_sampler(self, train_dataset: Any = None) -> list[int]:
        """The order of the whole training, as one epoch: a resumed one finds its place in it by the step alone."""
        rows = self.train_dataset if train_dataset is None else train_dataset
        size = self.args.train_batch_size * self.args.gradient_accumulation_steps * self._processes.count
        lengths = list_value_length(rows.with_format("arrow")["input_ids"]).to_pylist()
        return by_length(lengths, batch=size, batches=self.args.max_steps, seed=self.args.seed)

    def _determine_best_metric(self, metrics: dict[str, float], trial: Any) -> bool:
        """Of equals the later checkpoint; and where the best one so far was chosen by another figure, as by an earlier
        version, the present one, since the two cannot be compared."""
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


def train_on(
    lessons: Tokenized,
    validation: Tokenized | None,
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
    has_validation = validation is not None and validation.count > 0
    too_long = lessons.fits.count(False)
    watching.say(describe(lessons, settings.max_length), lessons=lessons.count, too_long=too_long)
    if not lessons.count:
        raise UsageError(
            f"no example fits into max_length = {settings.max_length} (the longest has {lessons.longest} tokens); "
            "raise it, or give data with shorter variants"
        )
    trainer: Any = LikelihoodTrainer(
        processes=processes,
        model=policy.model,
        args=arguments(settings, recipe, stage, has_validation=has_validation, large=policy.is_large),
        train_dataset=lessons.dataset,
        eval_dataset=validation.dataset if validation is not None and has_validation else None,
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
        layers = compiled_layers(trainer.model) if settings.compile else nullcontext()
        with saving_faults(stage), lost_processes(), layers:
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


def describe(found: Tokenized, max_length: int) -> str:
    """How many examples are learned from, and how many are too long."""
    text, too_long = f"{many(found.count, 'example')}, {len(found.ids)} tokens", found.fits.count(False)
    if too_long:
        text += (
            f"; {too_long} of {len(found.fits)} left out, longer than max_length = {max_length} (up to {found.longest})"
        )
    return text
