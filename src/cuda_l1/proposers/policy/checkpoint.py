"""A folder with a trained model: whether it can be asked at all, before anything is loaded."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from cuda_l1.config import PromptFormat
from cuda_l1.errors import UsageError
from cuda_l1.prompts.templates import built_in_template
from cuda_l1.types import digest
from cuda_l1.validation import first_problem

FORMAT_FILE = "prompt_format.json"
ADAPTER = "adapter_config.json"
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json")
CAUSAL = ("ForCausalLM", "LMHeadModel")
"""How `transformers` ends the names of models that continue a text."""
NAMED_FOLDERS = 2
"""Folders of its path that name a checkpoint: `self/final`."""


class Checkpoint(NamedTuple):
    """A model, its tokenizer and its chat template on this disk."""

    path: Path
    sha: str
    """Digest of all its files, the base model's aside."""
    context_tokens: int | None
    """What prompt and reply may have together; None: the model does not say."""
    format: PromptFormat

    @property
    def name(self) -> str:
        """For people and records, e.g. `self/final@1f3a9c20`."""
        return f"{'/'.join(self.path.parts[-NAMED_FOLDERS:])}@{self.sha[:8]}"


def read_checkpoint(folder: str | Path) -> Checkpoint:
    """What `save_pretrained` of a model and of its tokenizer wrote; nothing is loaded.

    Raises UsageError: no such folder, no causal language model, no weights in safetensors, no tokenizer, or another one
    than it was trained with, no chat template, or a damaged file.
    """
    path = Path(folder).expanduser().resolve()
    if not path.is_dir():
        raise UsageError(f"checkpoint {folder}: no such folder")
    config = _model_config(path)
    _check_architecture(path, config)
    if not any(path.glob("*.safetensors")):
        raise UsageError(f"checkpoint {path}: holds no weights (*.safetensors)")
    if not any((path / name).is_file() for name in TOKENIZERS):
        raise UsageError(f"checkpoint {path}: holds no tokenizer (tokenizer.json); save it into the same folder")
    if not _has_chat_template(path):
        raise UsageError(f"checkpoint {path}: its tokenizer has no chat template (chat_template.jinja)")
    asked = read_format(path)
    if asked.tokenizer is not None and asked.tokenizer != tokens_sha(path):
        raise UsageError(f"checkpoint {path}: its tokenizer is not the one that it was trained with ({FORMAT_FILE})")
    _check_questions(path, asked)
    return Checkpoint(path, _digest(path), _context(config), asked)


def read_format(path: Path) -> PromptFormat:
    """What the policy in this folder was trained to read; the defaults where the folder does not say. UsageError."""
    file = path / FORMAT_FILE
    if not file.is_file():
        return PromptFormat()
    try:
        found = PromptFormat.model_validate_json(file.read_bytes())
    except ValidationError as error:
        raise UsageError(f"{file}: {first_problem(error)}") from error
    if found.prompt.template is None:
        return found
    template = str(path / found.prompt.template)
    return found.model_copy(update={"prompt": found.prompt.model_copy(update={"template": template})})


def write_format(path: Path, asked: PromptFormat) -> None:
    """Says beside the weights how they are to be asked, and of which tokens they are. Raises OSError."""
    asked = asked.model_copy(update={"tokenizer": tokens_sha(path), "questions": _questions(asked)})
    (path / FORMAT_FILE).write_text(asked.model_dump_json(indent=2) + "\n", encoding="utf-8")


def tokens_sha(path: Path) -> str | None:
    """Digest of the tokens of a folder's tokenizer and of how a text becomes them, whatever wrote the file; None where
    there is no `tokenizer.json`. Raises UsageError for one that cannot be read."""
    if not (path / TOKENIZERS[0]).is_file():
        return None
    found = _json(path / TOKENIZERS[0])
    parts = ("normalizer", "pre_tokenizer", "model", "added_tokens")
    return digest(json.dumps([found.get(part) for part in parts], sort_keys=True))


def _model_config(path: Path) -> dict[str, Any]:
    """That of the model, or of the base model where the folder holds an adapter."""
    if (path / "config.json").is_file():
        return _json(path / "config.json")
    if (path / ADAPTER).is_file():
        base = Path(str(_json(path / ADAPTER).get("base_model_name_or_path")))
        if not (base / "config.json").is_file():
            raise UsageError(f"checkpoint {path}: an adapter to {base}, which is no folder with a model on this disk")
        return _json(base / "config.json")
    below = [found.parent for found in sorted(path.glob("*/config.json"))]
    hint = f"; did you mean {below[-1]}?" if below else "; name a folder that `save_pretrained` has written"
    raise UsageError(f"checkpoint {path}: holds no model (config.json){hint}")


def _check_architecture(path: Path, config: dict[str, Any]) -> None:
    names = [str(name) for name in config.get("architectures") or []]
    if names and not any(name.endswith(CAUSAL) for name in names):
        raise UsageError(f"checkpoint {path}: a {', '.join(names)}, which is no causal language model")


def _check_questions(path: Path, asked: PromptFormat) -> None:
    """A small policy that is asked otherwise than it has learned to be asked writes far fewer right replies."""
    if asked.questions is None or asked.questions == _questions(asked):
        return
    raise UsageError(
        f"checkpoint {path}: it has learned to read {asked.questions}, and this version of cuda-l1 asks "
        f"{_questions(asked)}; train it anew, use the version that it was trained with, or take `questions` out of "
        f"{FORMAT_FILE} to ask it all the same"
    )


def _questions(asked: PromptFormat) -> str | None:
    return None if asked.prompt.template is not None else built_in_template(asked.prompt.kind).version


def _context(config: dict[str, Any]) -> int | None:
    said = config.get("max_position_embeddings") or config.get("n_positions")
    return said if isinstance(said, int) else None


def _has_chat_template(path: Path) -> bool:
    settings = path / "tokenizer_config.json"
    return (path / "chat_template.jinja").is_file() or (
        settings.is_file() and bool(_json(settings).get("chat_template"))
    )


def _json(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{file}: cannot be read ({' '.join(str(error).split())[:120]})") from error
    if not isinstance(found, dict):
        raise UsageError(f"{file}: holds no JSON object")
    return found


def _digest(path: Path) -> str:
    whole = hashlib.sha256()
    for file in sorted(found for found in path.iterdir() if found.suffix in (".safetensors", ".json", ".jinja", ".j2")):
        with file.open("rb") as stream:
            whole.update(f"{file.name} {hashlib.file_digest(stream, 'sha256').hexdigest()}\n".encode())
    return whole.hexdigest()
