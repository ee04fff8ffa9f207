"""What can be known of a recipe before anything is paid for. Imports torch, and not TRL."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence

from cuda_l1.errors import UsageError
from cuda_l1.proposers.policy.checkpoint import read_checkpoint
from cuda_l1.proposers.policy.policy import TEMPLATE_TOKENS
from cuda_l1.training import processes
from cuda_l1.training.loading import trackers
from cuda_l1.training.policy_model import check_sizes
from cuda_l1.training.recipe import Recipe
from cuda_l1.training.task_sets import load_task_sets

LEARN_REPLIES = frozenset({"self", "contrastive"})
"""Stages in which the policy writes, and what it writes is judged."""


def check(names: Sequence[str], recipe: Recipe) -> None:
    """Whether the stages `names` can do what the recipe says, as far as it and this machine tell: a mistake in what the
    last one needs is not to be found when those before it are paid for. Raises UsageError."""
    trackers(recipe)
    _check_context(set(names), recipe)
    if LEARN_REPLIES & set(names):
        load_task_sets(recipe, recipe.evaluation.kind)
    if "contrastive" in names:
        check_lag(recipe)
        batches(recipe, processes.count())
        _check_engine(recipe)


def check_lag(recipe: Recipe) -> None:
    """Raises UsageError where a lag would have the policy trained on a device that rewards are measured on."""
    shared = [place for place in recipe.evaluation.places if not _is_apart(place, recipe)]
    if recipe.contrastive.lag and shared:
        raise UsageError(
            f"contrastive.lag = 1 would train on {shared[0]} while rewards are measured there, and measure the "
            "training too; set contrastive.lag = 0, or measure on devices that do not train (evaluation.device)"
        )


def batches(recipe: Recipe, count: int) -> int:
    """Batches of a round of stage 3 in each of `count` processes. Raises UsageError where they do not divide."""
    section = recipe.contrastive
    replies = section.prompts * section.group
    if replies % (section.batch * count):
        raise UsageError(
            f"contrastive.prompts x contrastive.group = {replies} replies do not divide into {count} processes x "
            f"contrastive.batch = {section.batch}; choose a batch that divides them"
        )
    return replies // (section.batch * count)


def _is_apart(place: str, recipe: Recipe) -> bool:
    """Whether a device is none that trains: of this machine's GPUs that are the first ones, one for each process."""
    kind, _, number = place.partition(":")
    here = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return kind != recipe.run.device or (kind == "cuda" and number.isdigit() and int(number) >= here)


def _check_context(names: set[str], recipe: Recipe) -> None:
    """Whether what is asked and written has room in the policy's context."""
    path = recipe.model.path
    if path is None:
        check_sizes(recipe.model)
    context = recipe.model.context if path is None else read_checkpoint(path).context_tokens
    if context is None:
        return
    if names & {"sft", "self"} and recipe.sft.max_length > context:
        raise UsageError(
            f"sft.max_length = {recipe.sft.max_length} is longer than the policy's context of {context} tokens; lower "
            "it"
        )
    if names & LEARN_REPLIES and recipe.generation.max_new_tokens + TEMPLATE_TOKENS >= context:
        raise UsageError(
            f"generation.max_new_tokens = {recipe.generation.max_new_tokens} leaves no room for a question in the "
            f"policy's context of {context} tokens; lower it"
        )


def _check_engine(recipe: Recipe) -> None:
    engine = recipe.generation.engine
    if engine == "transformers":
        return
    if any(importlib.util.find_spec(name) is None for name in ("vllm", "requests")):
        raise UsageError(
            f"generation.engine = {engine}: vLLM is not installed; run: pip install 'trl[vllm]', or set "
            "generation.engine = transformers"
        )
    if not recipe.run.on_gpu:
        raise UsageError(
            f"generation.engine = {engine}: vLLM takes new weights from a GPU, and run.device = cpu; set "
            "generation.engine = transformers"
        )
