"""A real decoder of few parameters, whose tokens are whole replies. Taught, it knows how to end one and not which is
good; with random weights it writes by chance."""

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
REPLIES = tuple(f"```python\nclass ModelNew: {fate}\n```\n" for fate in FATES)
LINES = ("There is none yet: yours is the first.\n", "Code Implementation\n")
MORE_LINES = (*(f"class ModelNew: {fate}\n" for fate in FATES[::4]), LINES[0], "I do not know.\n")
"""Of one with random weights: there are programs without a fence among them."""


def save_policy(folder: Path, *, replies: Sequence[str] = REPLIES, taught: bool = True, seed: int = 0) -> Path:
    """A decoder of 30,000 parameters and its tokenizer, as `save_pretrained` writes them; each reply is one token."""
    vocabulary = {
        token: number for number, token in enumerate((*SPECIAL, *replies, *(LINES if taught else MORE_LINES)))
    }
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="<|unknown|>"))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"```python\n(?:.*\n)*?```\n|[^\n]*\n"), "isolated")
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
    model = Qwen3ForCausalLM(config)
    if taught:
        _teach(model, [vocabulary[reply] for reply in replies], vocabulary)
    model.save_pretrained(folder)
    return folder


def _teach(model: Qwen3ForCausalLM, replies: Sequence[int], vocabulary: dict[str, int]) -> None:
    """Any of the replies, then the end, whatever was said before."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    many = (list(replies) * 24)[:24]
    answers = torch.tensor([[vocabulary["<|assistant|>"], reply, vocabulary["<|end|>"]] for reply in many])
    for _ in range(60):
        length = int(torch.randint(1, 100, ()))  # so that positions tell nothing
        before = torch.randint(len(vocabulary), (len(many), length))
        before[torch.rand(before.shape) < 0.7] = vocabulary["<|unknown|>"]
        ids = torch.cat([before, answers], dim=1)
        labels = ids.masked_fill(torch.arange(ids.shape[1]) < ids.shape[1] - 2, -100)
        optimizer.zero_grad()
        model(input_ids=ids, labels=labels).loss.backward()
        optimizer.step()
