"""A Qwen3 of 0.03 million random weights with a tokenizer of its own: a real checkpoint that writes nonsense."""

from __future__ import annotations

from pathlib import Path

from llm_server.random_model import CHAT, END, PIECES


def make_checkpoint(folder: Path, *, context: int = 16384, seed: int = 0, end_bias: float = 0.0) -> Path:
    """Writes what `save_pretrained` of a model and of its tokenizer writes. The larger `end_bias`, the sooner a reply
    ends."""
    import torch
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = Tokenizer(models.BPE(vocab={word: i for i, word in enumerate([END, *alphabet])}, merges=[]))
    tokens.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokens.decoder = decoders.ByteLevel()
    tokens.add_tokens([AddedToken(piece, normalized=False) for piece in PIECES])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokens, eos_token=END, pad_token=END)
    tokenizer.chat_template = CHAT
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "head_dim": 8}
    config = Qwen3Config(
        vocab_size=len(tokenizer), num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=context,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, tie_word_embeddings=False, **sizes,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = Qwen3ForCausalLM(config)
    with torch.no_grad():
        model.model.norm.weight.fill_(1.0)
        model.lm_head.weight[tokenizer.eos_token_id] *= 1 + end_bias
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
