"""Whether a checkpoint is there to the ends of its files: a kill leaves one without its last file, and a disk that
failed or a copy that was cut short one with less. Nothing is loaded, and torch is not imported."""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import is_zipfile

COMPLETE = "trainer_state.json"
"""The last file that a trainer writes into a checkpoint: one without it was being written when it was killed."""
_ZIPPED = (".pt", ".pth", ".bin")
"""What `torch.save` writes: its list of contents is at the end."""


def is_whole(checkpoint: Path) -> bool:
    """Whether what trainers write of weights and states (`.safetensors`, `.pt`, `.pth`, `.bin`) can be read, by its
    beginnings and ends; what lies in folders is not looked at."""
    return _is_json(checkpoint / COMPLETE) and all(_is_readable(file) for file in checkpoint.iterdir())


def _is_json(file: Path) -> bool:
    try:
        json.loads(file.read_bytes())
    except (OSError, ValueError):
        return False
    return True


def _is_readable(file: Path) -> bool:
    if file.suffix in _ZIPPED:
        return is_zipfile(file)
    return file.suffix != ".safetensors" or _holds_its_tensors(file)


def _holds_its_tensors(file: Path) -> bool:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="numpy"):
            return True
    except (OSError, SafetensorError):
        return False
