"""From a recipe to what TRL's GRPO is told. Imports TRL."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from trl import GRPOConfig

from cuda_l1.training import processes
from cuda_l1.training.checks import batches
from cuda_l1.training.loading import LENGTHS, trackers
from cuda_l1.training.recipe import Recipe
from cuda_l1.training.sections import GenerationSection

TRUNCATED_AT = 2.0
CORRECTION = {
    "vllm_importance_sampling_correction": True,
    "vllm_importance_sampling_mode": "token_truncate",
    "vllm_importance_sampling_clip_max": TRUNCATED_AT,
}
"""How replies are weighted that another engine sampled: each token by its probability here over its probability there,
at most `TRUNCATED_AT`.

TRL's default multiplies the ratios of a reply's tokens, as its probability asks for, and drops the reply where the
product is above 3. Over 3,000 tokens a difference of 0.0004 a token in one direction is enough to drop one, and in the
other to weight it by a third: length and rounding would decide what is learned from. Ratios of single tokens neglect
how likely the tokens before were, which biases by about that difference, and none counts more than twice.
"""


def arguments(recipe: Recipe, folder: Path, *, large: bool) -> GRPOConfig:
    """TRL's settings for a recipe and a model that is `large` or not; nothing is reported to anyone but the tracker of
    the recipe. Raises UsageError."""
    section, generation, run = recipe.contrastive, recipe.generation, recipe.run
    updates = section.rounds * section.iterations
    return GRPOConfig(
        output_dir=str(folder),
        max_steps=updates,
        per_device_train_batch_size=section.batch,
        gradient_accumulation_steps=batches(recipe, processes.count()),
        num_generations=section.group,
        num_iterations=section.iterations,
        shuffle_dataset=False,
        learning_rate=section.learning_rate,
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=math.floor(section.warmup * updates),  # the first of them has a learning rate of 0,
        beta=section.kl,
        epsilon=section.clip_low,
        epsilon_high=section.clip_high,
        loss_type=section.loss,
        temperature=generation.temperature,
        top_p=generation.top_p,
        max_completion_length=generation.max_new_tokens,
        ddp_find_unused_parameters=False,  # all are used; looking for others takes time, and a warning says so
        use_cpu=not run.on_gpu,
        bf16=run.on_gpu,
        pad_to_multiple_of=LENGTHS if run.on_gpu else None,
        gradient_checkpointing=large,
        dataloader_pin_memory=run.on_gpu,
        save_steps=section.checkpoint_every * section.iterations,
        save_total_limit=run.keep_checkpoints,
        logging_steps=section.iterations,
        logging_nan_inf_filter=False,  # it would hide a loss that is not a number
        disable_tqdm=True,
        report_to=trackers(recipe),
        seed=run.seed,
        **_engine(generation),
    )


def _engine(generation: GenerationSection) -> dict[str, Any]:
    """Who writes the replies."""
    if generation.engine == "transformers":
        return {}
    own: dict[str, Any] = {"vllm_server_base_url": generation.server} if generation.server else {}
    if generation.engine == "vllm-colocate":
        own = {"vllm_gpu_memory_utilization": generation.vllm_memory, "vllm_enable_sleep_mode": True}
    return {"use_vllm": True, "vllm_mode": generation.engine.removeprefix("vllm-"), **CORRECTION, **own}
