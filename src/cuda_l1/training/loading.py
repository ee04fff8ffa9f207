"""A policy that is about to be trained."""

from __future__ import annotations

import importlib.util
import shutil
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from datasets import disable_progress_bars
from peft import LoraConfig, PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

from cuda_l1.archive.faults import file_faults, one_line
from cuda_l1.errors import CudaL1Error, InfrastructureError, UsageError
from cuda_l1.proposers.policy.checkpoint import read_checkpoint
from cuda_l1.proposers.policy.policy import mismatched
from cuda_l1.training.checkpoints import is_full
from cuda_l1.training.recipe import Recipe

LARGE = 1_000_000_000
"""Parameters from which activations are computed again in the backward pass, to save memory."""
WHOLE = 1 << 50
"""Bytes of a shard where there is to be one."""
LENGTHS = 128
"""What the lengths of batches are multiples of on a GPU: cuDNN's attention makes a plan for each new one, 70 ms of an
H100's host for a step of stage 1, and Triton kernels are specialised by them."""
HEADER = 1 << 16
"""Bytes of a shard besides its tensors: their names and places, generously."""


class Loaded(NamedTuple):
    """Model and tokenizer, and the adapters that are to be trained in place of the weights."""

    model: Any
    tokenizer: Any
    adapters: LoraConfig | None
    parameters: int

    @property
    def is_large(self) -> bool:
        """Whether memory is worth more than the time to compute activations again."""
        return self.parameters >= LARGE


def load_policy(folder: Path, recipe: Recipe, *, longest: int) -> Loaded:
    """The policy of a checkpoint folder, in float32; with adapters on a GPU in bfloat16, since it stays as it is.

    `longest`: tokens of a sequence that it is to be trained on. Raises UsageError: it is no such folder, weights are
    missing, its tokenizer is that of another model, or its context is shorter than `longest`; InfrastructureError: it
    does not fit into memory.
    """
    checkpoint = read_checkpoint(folder)
    if checkpoint.context_tokens is not None and longest > checkpoint.context_tokens:
        raise UsageError(
            f"checkpoint {folder}: its context has {checkpoint.context_tokens} tokens, and max_length = {longest}; "
            f"lower max_length"
        )
    torch.set_num_threads(recipe.run.threads)
    quiet()
    adapters = recipe.model.lora_rank is not None
    dtype = torch.bfloat16 if adapters and recipe.run.on_gpu else torch.float32
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        load: Any = AutoModelForCausalLM.from_pretrained  # its type knows nothing of `info`
        model, info = load(folder, dtype=dtype, local_files_only=True, output_loading_info=True)
    except Exception as error:  # a folder of somebody's: its readers raise kinds of their own, and ask for packages
        if isinstance(error, MemoryError | torch.OutOfMemoryError) or "allocate memory" in str(error):
            raise InfrastructureError(f"checkpoint {folder}: does not fit into memory ({one_line(error)})") from error
        raise UsageError(f"checkpoint {folder}: cannot be loaded: {one_line(error)}") from error
    if missing := sorted(info["missing_keys"]):
        raise UsageError(
            f"checkpoint {folder}: its weights are not those of its configuration; {missing[0]} is missing"
        )
    if mismatch := mismatched(model, tokenizer):
        raise UsageError(f"checkpoint {folder}: {mismatch}")
    return Loaded(model, tokenizer, _adapters(recipe), sum(each.numel() for each in model.parameters()))


def trackers(recipe: Recipe) -> list[str]:
    """What trainers report to, beside `metrics.jsonl`. Raises UsageError where it is not installed."""
    name = recipe.run.tracking
    if name == "none":
        return []
    if importlib.util.find_spec(name) is None:
        raise UsageError(f"run.tracking = {name}: not installed; run: pip install {name}, or set run.tracking = none")
    return [name]


def quiet() -> None:
    """No progress bars and warnings of the libraries: what people need to know is said by `Watching`."""
    talk: Any = logging
    talk.set_verbosity_error()
    talk.disable_progress_bar()
    disable_progress_bars()
    warnings.filterwarnings("ignore", module=r"(trl|transformers|peft|torch|accelerate)\b")


def _adapters(recipe: Recipe) -> LoraConfig | None:
    rank = recipe.model.lora_rank
    if rank is None:
        return None
    return LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM")


def save_policy(
    model: Any,
    tokenizer: Any,
    folder: Path,
    *,
    recipe: Recipe,
    weights: Mapping[str, torch.Tensor] | None = None,
    beside: Callable[[Path], None] = lambda folder: None,
) -> None:
    """Writes a model whole or not at all, adapters merged into its weights, so that anything can load it; `[run]` says
    in which files and precision. Servers that heed `generation_config.json` sample as `[generation]` says.

    The model is not to be trained on afterwards. `weights` are its own, where it holds a part of them
    (`in_parts.whole_weights`); `beside` writes what else belongs into the folder that it is given. Raises
    InfrastructureError for a full disk.
    """
    merged = model.merge_and_unload() if isinstance(model, PeftModel) else model
    if recipe.run.bf16_weights and weights is not None:
        weights = {name: each.to(torch.bfloat16) for name, each in weights.items()}
    elif recipe.run.bf16_weights:
        merged = merged.to(torch.bfloat16)
    asked = recipe.generation
    merged.generation_config.update(do_sample=True, temperature=asked.temperature, top_p=asked.top_p, top_k=0)
    partial = folder.with_name(f"{folder.name}.partial")
    try:
        with file_faults(folder):
            shutil.rmtree(partial, ignore_errors=True)
            merged.save_pretrained(partial, state_dict=weights, max_shard_size=_shard_bytes(recipe.run.shard_mib))
            tokenizer.save_pretrained(partial)
            beside(partial)
            partial.replace(folder)
    except Exception as error:
        shutil.rmtree(partial, ignore_errors=True)  # a part of a policy, on a disk that may be full
        if isinstance(error, CudaL1Error) or not is_full(error):
            raise
        raise InfrastructureError(
            f"{folder}: the disk is full ({one_line(error)}); free some space and go on with --resume, what was "
            "written before is kept"
        ) from error


def _shard_bytes(mib: int | None) -> int:
    return WHOLE if mib is None else (mib << 20) - HEADER
