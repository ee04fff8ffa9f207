"""A language model of 0.05 million random weights with a tokenizer of its own: a real one that talks nonsense.

Nothing is downloaded, and neither torch nor transformers is loaded to make it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HIDDEN, FEED_FORWARD, LAYERS, HEADS = 32, 64, 2, 4
END = "<|end|>"
PIECES = (
    "```python\n", "```cpp\n", "\n```\n", "<think>", "</think>", "class ModelNew(nn.Module):\n", "import torch\n",
    "## Performance Analysis\n", "## Algorithm Design\n", "## Code Implementation\n", "def forward(self, x):\n", "\n",
)  # fmt: skip
"""Tokens of their own, so that a nonsensical reply holds what a parser looks for."""
CHAT = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}assistant:"


def make(folder: Path, *, context_tokens: int = 32768, seed: int = 0) -> None:
    """Writes configuration, weights and tokenizer in the form that `transformers` reads."""
    words = _write_tokenizer(folder)
    _write_weights(folder / "model.safetensors", words, seed)
    config: dict[str, Any] = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": words, "hidden_size": HIDDEN,
        "intermediate_size": FEED_FORWARD, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
        "max_position_embeddings": context_tokens, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0,
        "dtype": "float32",
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    sampling = {"do_sample": True, "top_k": 0, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
    (folder / "generation_config.json").write_text(json.dumps(sampling))


def _write_tokenizer(folder: Path) -> int:
    """Bytes and PIECES; returns how many tokens that is."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={word: i for i, word in enumerate([END, *alphabet])}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([END])
    tokenizer.add_tokens([AddedToken(piece, normalized=False) for piece in PIECES])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END, "pad_token": END, "chat_template": CHAT}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return int(tokenizer.get_vocab_size())


def _write_weights(path: Path, words: int, seed: int) -> None:
    import numpy as np
    from safetensors.numpy import save_file

    random = np.random.default_rng(seed)
    shapes = {"model.embed_tokens": (words, HIDDEN), "lm_head": (words, HIDDEN)}
    for layer in range(LAYERS):
        name = f"model.layers.{layer}"
        shapes |= {f"{name}.self_attn.{part}_proj": (HIDDEN, HIDDEN) for part in "qkvo"}
        shapes |= {f"{name}.mlp.{part}_proj": (FEED_FORWARD, HIDDEN) for part in ("gate", "up")}
        shapes[f"{name}.mlp.down_proj"] = (HIDDEN, FEED_FORWARD)
    norms = [
        "model.norm",
        *(f"model.layers.{i}.{n}_layernorm" for i in range(LAYERS) for n in ("input", "post_attention")),
    ]
    weights = {name: random.normal(0, 0.1, shape).astype(np.float32) for name, shape in shapes.items()}
    weights |= {name: np.ones(HIDDEN, np.float32) for name in norms}
    save_file({f"{name}.weight": values for name, values in weights.items()}, path, metadata={"format": "pt"})
