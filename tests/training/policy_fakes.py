"""A real decoder of few parameters with random weights, whose tokens are lines: chance writes programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
SPECIAL = ("<|pad|>", "<|end|>", "<|unknown|>", "<|system|>", "<|user|>", "<|assistant|>")
FATES = (*(f"speed={number / 4}" for number in range(1, 17)), *(f"wrong={number}" for number in range(8)))
PROGRAMS = tuple(f"class ModelNew: {fate}\n" for fate in FATES)
REPLIES = tuple(f"```python\n{program}```\n" for program in PROGRAMS)
LINES = (*PROGRAMS[::4], "There is none yet: yours is the first.\n", "I do not know.\n")


def save_policy(folder: Path, *, replies: Sequence[str] = REPLIES, seed: int = 0) -> Path:
    """A decoder of 30,000 parameters and its tokenizer, as `save_pretrained` writes them; each reply is one token."""
    vocabulary = {token: number for number, token in enumerate((*SPECIAL, *replies, *LINES))}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="<|unknown|>"))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"[^\n]*\n"), "isolated")
    backend.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="<|pad|>",
        eos_token="<|end|>",
        unk_token="<|unknown|>",
        extra_special_tokens=list(SPECIAL[3:]),
    )
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    Qwen3ForCausalLM(config).save_pretrained(folder)
    return folder
