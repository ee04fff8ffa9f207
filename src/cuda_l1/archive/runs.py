"""The directory of a run: its resolved configuration with a digest, and a log of what happened.

    runs/<name>/config.json     {"digest": ..., "settings": {...}}
    runs/<name>/events.jsonl    one JSON object a line: {"time": ..., "event": ..., ...}

The name is the digest's beginning unless one is given, so the same settings find their own directory again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel

from cuda_l1.archive.faults import file_faults
from cuda_l1.archive.json_lines import append_line, read_lines
from cuda_l1.errors import UsageError
from cuda_l1.types import digest

_LONGEST = 60
"""Characters of a setting's value that a message shows."""
_LEAD = 20
"""Those before the first that differs, among them."""
_ABSENT = "(not there)"


class RunDirectory:
    """A run's files. Errors of the disk: InfrastructureError when it is full, UsageError where nothing can be written,
    else ArchiveError."""

    def __init__(self, path: Path, settings_digest: str) -> None:
        self.path = path
        self.digest = settings_digest
        """SHA-256 of the resolved settings, 64 hex characters."""

    @property
    def name(self) -> str:
        """The run's name: what records carry as `run`."""
        return self.path.name

    @classmethod
    def create(cls, root: str | Path, settings: BaseModel, name: str | None = None) -> Self:
        """Makes `root/name`, or takes up the one that is there when its settings are the same.

        Raises UsageError with the settings that differ, or when the name is not a plain folder name.
        """
        resolved = resolve(settings)
        own = settings_digest(resolved)
        folder = name or own[:12]
        if folder != Path(folder).name or folder in (".", ".."):
            raise UsageError(f"run name {folder!r}: give a plain folder name without slashes")
        path = Path(root) / folder
        if (path / "config.json").exists():
            return cls.open(path, settings)
        with file_faults(path):
            path.mkdir(parents=True, exist_ok=True)
            _write_whole(path / "config.json", {"digest": own, "settings": resolved})
        return cls(path, own)

    @classmethod
    def open(cls, path: str | Path, settings: BaseModel | None = None) -> Self:
        """Opens an existing directory, with `settings` only when they are those that it was made with.

        Raises UsageError: no such run, damaged configuration, or the settings that differ, with both values.
        """
        stored = _read_config(Path(path))
        if settings is not None and settings_digest(resolve(settings)) != stored["digest"]:
            told = described(differing(stored["settings"], resolve(settings)))
            raise UsageError(f"{path}: made with other settings ({told}); give the same ones, or begin another run")
        return cls(Path(path), stored["digest"])

    @property
    def settings(self) -> dict[str, Any]:
        """The resolved settings as plain JSON values."""
        settings: dict[str, Any] = _read_config(self.path)["settings"]
        return settings

    def log(self, event: str, **fields: Any) -> None:
        """Appends one event; `fields` must be JSON values. Whole lines only, also from several processes."""
        said = {"time": datetime.now(UTC).isoformat(), "event": event, **fields}
        append_line(self.path / "events.jsonl", said)

    def events(self) -> Iterator[dict[str, Any]]:
        """What happened, oldest first. A line that a kill has torn is left out, and what is no event."""
        found = read_lines(self.path / "events.jsonl")
        return (event for event in found if isinstance(event.get("event"), str))


def resolve(settings: BaseModel) -> dict[str, Any]:
    """Settings as plain JSON values, defaults written out."""
    return settings.model_dump(mode="json")


def settings_digest(resolved: dict[str, Any]) -> str:
    """SHA-256 of the settings, whatever the order of their keys."""
    return digest(json.dumps(resolved, sort_keys=True))


def differing(stored: dict[str, Any], given: dict[str, Any], prefix: str = "") -> dict[str, tuple[Any, Any]]:
    """The settings whose values differ, by their dotted names, sorted: (stored, given)."""
    found: dict[str, tuple[Any, Any]] = {}
    for key in sorted(stored.keys() | given.keys()):
        left, right = stored.get(key), given.get(key)
        if isinstance(left, dict) and isinstance(right, dict):
            found |= differing(left, right, f"{prefix}{key}.")
        elif left != right or (key in stored) != (key in given):
            found[f"{prefix}{key}"] = stored.get(key, _ABSENT), given.get(key, _ABSENT)
    return found


def described(differences: Mapping[str, tuple[Any, Any]]) -> str:
    """What differs, for people: `patience 5, now 1; precision default, now tf32`."""
    pairs = {name: (_text(left), _text(right)) for name, (left, right) in differences.items()}
    return "; ".join(
        f"{name} {_short(left, right)}, now {_short(right, left)}" for name, (left, right) in pairs.items()
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value)


def _short(text: str, other: str) -> str:
    """All of it, or a part from shortly before the place where the two are no longer the same."""
    is_long = max(len(text), len(other)) > _LONGEST
    same = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(text, other, strict=False))))
    begin = max(0, same - _LEAD) if is_long else 0
    end = begin + _LONGEST
    return f"{'...' if begin else ''}{text[begin:end]}{'...' if len(text) > end else ''}"


def _read_config(path: Path) -> dict[str, Any]:
    file = path / "config.json"
    if not file.exists():
        raise UsageError(f"{path}: no run there (no config.json); check the path")
    with file_faults(file):
        content = file.read_bytes()
    try:
        stored = json.loads(content)
        settings, own = stored["settings"], stored["digest"]
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise UsageError(f"{file}: damaged; remove the folder to start the run anew") from error
    if settings_digest(settings) != own:
        raise UsageError(f"{file}: edited since the run was made; undo that, or start a run of another name")
    return {"settings": settings, "digest": own}


def _write_whole(path: Path, content: dict[str, Any]) -> None:
    """Writes a file that is there whole or not at all, whatever kills us in between."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("w") as file:
            file.write(json.dumps(content, indent=2) + "\n")
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
