"""How many tokens a text has: by a model's own tokenizer where its file is at hand, else an estimate that says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from cuda_l1.errors import UsageError

BYTES_A_TOKEN = 3


class TokenCounter(NamedTuple):
    """A way to count tokens, with what to call it."""

    name: str
    count: Callable[[str], int]


def _estimated(text: str) -> int:
    return -(-len(text.encode("utf-8", "replace")) // BYTES_A_TOKEN)


ESTIMATE = TokenCounter(f"estimate, {BYTES_A_TOKEN} bytes a token", _estimated)
"""Without a tokenizer. English has about four bytes a token and code fewer, so it rather says too many."""


def load_tokenizer(path: Path) -> TokenCounter:
    """Counts by a `tokenizer.json`, or by the one in a model's folder. Raises UsageError."""
    file = path / "tokenizer.json" if path.is_dir() else path
    if not file.is_file():
        raise UsageError(f"--tokenizer {path}: no such file; give a model's folder or its tokenizer.json")
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise UsageError("--tokenizer needs the package tokenizers: pip install tokenizers") from error
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the package, written in Rust, raises no narrower kind
        raise UsageError(f"--tokenizer {file}: is no tokenizer.json ({' '.join(str(error).split())[:200]})") from error
    return TokenCounter(str(file), lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids))
