"""A policy from nothing: a byte-level tokenizer of its own and a small decoder with random weights."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM, set_seed

from cuda_l1.errors import UsageError
from cuda_l1.training.loading import save_policy
from cuda_l1.training.recipe import Recipe
from cuda_l1.training.sections import ModelSection

PAD, START, END = "<|pad|>", "<|im_start|>", "<|im_end|>"
CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{{- '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}"
)
"""ChatML, which servers take a Qwen3's conversation for. Line ends are in expressions: Jinja takes away those that
stand before a tag."""


def make_policy(recipe: Recipe, tokenizer: PreTrainedTokenizerFast, folder: Path) -> Path:
    """Writes a decoder of the sizes of `[model]` and its tokenizer into `folder`, and returns it.

    The same arguments give the same weights. Raises UsageError for sizes that do not go together.
    """
    save_policy(decoder(recipe.model, tokenizer, seed=recipe.run.seed), tokenizer, folder, recipe=recipe)
    return folder


def train_tokenizer(texts: Iterable[str], vocabulary: int, context: int) -> PreTrainedTokenizerFast:
    """Byte-level BPE with at most `vocabulary` entries and a chat template; it can write any text. Each digit is a
    token: a size that few tasks have would be one that is hardly ever learned, and could not be copied."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    bpe = Tokenizer(models.BPE())
    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), bytes_])
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[PAD, START, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(texts, trainer)
    fast: Any = PreTrainedTokenizerFast
    made: PreTrainedTokenizerFast = fast(
        tokenizer_object=bpe,
        pad_token=PAD,
        eos_token=END,
        padding_side="left",
        model_max_length=context,
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
    )
    return made


def check_sizes(section: ModelSection) -> None:
    """Raises UsageError for sizes that do not go together."""
    if section.hidden % section.heads or section.heads % section.key_value_heads:
        raise UsageError(
            f"[model] hidden = {section.hidden} must be a multiple of heads = {section.heads}, and heads one of "
            f"key_value_heads = {section.key_value_heads}"
        )


def decoder(section: ModelSection, tokenizer: PreTrainedTokenizerFast, *, seed: int) -> Qwen3ForCausalLM:
    """A decoder in Qwen3's form with random float32 weights, embeddings shared with the output."""
    check_sizes(section)
    set_seed(seed)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=section.hidden,
        intermediate_size=section.intermediate,
        num_hidden_layers=section.layers,
        num_attention_heads=section.heads,
        num_key_value_heads=section.key_value_heads,
        head_dim=section.hidden // section.heads,
        max_position_embeddings=section.context,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        dtype=torch.float32,
    )
    return Qwen3ForCausalLM(config)
