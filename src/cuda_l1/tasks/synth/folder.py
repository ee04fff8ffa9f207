"""Synthetic tasks on disk: a folder per split, and a manifest with a line for every task that was audited."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cuda_l1.errors import InfrastructureError, TaskError
from cuda_l1.tasks.synth.generate import VERSION, SyntheticTask
from cuda_l1.tasks.synth.splits import Split
from cuda_l1.types import Frozen, Task

MANIFEST = "manifest.jsonl"


class Settings(Frozen):
    """What a folder was made with: the manifest's first line."""

    seed: int
    device: str
    """`cpu` or `cuda`: where the tasks were audited."""
    device_memory_gib: float | None
    """For which the sizes were chosen; null: small ones, for a CPU."""
    version: int = VERSION
    """Of the generator."""


class Entry(Frozen):
    """One line of the manifest: a task of the stream, and what the audit said of it."""

    number: int
    name: str
    """`train/0017_linear_gelu`: the file is this with `.py`, where the task is sound."""
    split: Split
    level: int
    sha: str
    """Of the source."""
    graph: str
    """The graph hash."""
    stages: tuple[str, ...]
    sound: bool
    problem: str = ""
    """Why it is not: its flags, or the error of the reference."""
    flags: tuple[str, ...] = ()
    task_class: str | None = None
    reference_us: float | None = None


class SynthFolder:
    """A folder that one writer appends to. A task's file is written before its line, so a line never lies."""

    def __init__(self, path: Path, settings: Settings) -> None:
        """Opens a folder, or begins one. Raises TaskError for one that holds something else, InfrastructureError where
        nothing can be written."""
        self.path = path
        self.entries: dict[int, Entry] = {}
        """By number; of tasks that are sound and of tasks that are not."""
        manifest = path / MANIFEST
        if manifest.exists():
            known, self.entries, length = _read(path)
            if known != settings:
                raise TaskError(f"{path}: {_difference(known, settings)}; choose another folder with --out")
            os.truncate(manifest, length)
        elif path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise TaskError(f"{path}: is there already and holds no {MANIFEST}; choose another folder with --out")
        else:
            with _faults(path):
                path.mkdir(parents=True, exist_ok=True)
                manifest.write_text(settings.model_dump_json() + "\n")

    @property
    def sound(self) -> list[Entry]:
        """The tasks that stand in the folder, by number."""
        return sorted((entry for entry in self.entries.values() if entry.sound), key=lambda entry: entry.number)

    def add(self, made: SyntheticTask, entry: Entry) -> None:
        """Record one audited task, and write its file where it is sound. Raises InfrastructureError."""
        with _faults(self.path):
            if entry.sound:
                file = self.path / f"{entry.name}.py"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(made.task.source)
            with (self.path / MANIFEST).open("a") as manifest:
                manifest.write(entry.model_dump_json() + "\n")
        self.entries[entry.number] = entry


@contextmanager
def _faults(folder: Path) -> Iterator[None]:
    """A full disk names no file."""
    try:
        yield
    except OSError as error:
        raise InfrastructureError(
            f"{error.filename or folder}: {error.strerror or error}; the tasks before are kept, and the same command "
            "goes on from there"
        ) from error


def read_folder(path: Path) -> list[Task]:
    """The tasks of a folder that `cuda-l1 tasks synth` wrote, by number. Raises TaskError, also for a changed file, and
    for a folder of another version, since its names say other splits than there are."""
    settings, entries, _ = _read(path)
    if settings.version != VERSION:
        difference = _difference(settings, settings.model_copy(update={"version": VERSION}))
        raise TaskError(f"{path}: {difference}, whose splits are others; write it anew with `cuda-l1 tasks synth`")
    tasks = []
    for entry in sorted(entries.values(), key=lambda entry: entry.number):
        if not entry.sound:
            continue
        try:
            source = (path / f"{entry.name}.py").read_text("utf-8", "replace")  # damage shows in the hash
        except OSError as error:
            raise TaskError(f"{path / entry.name}.py: {error.strerror}; the manifest names it") from None
        task = Task(suite="synth", name=entry.name, source=source, level=entry.level)
        if task.sha != entry.sha:
            raise TaskError(f"{path / entry.name}.py: is not what was audited; write the folder anew")
        tasks.append(task)
    if not tasks:
        raise TaskError(f"{path}: holds no audited task yet")
    return tasks


def is_synth_folder(path: Path) -> bool:
    """Whether its manifest begins as one that `cuda-l1 tasks synth` wrote; others may have a file of that name."""
    try:
        with (path / MANIFEST).open("rb") as manifest:
            Settings.model_validate(_object(manifest.readline(1 << 16).decode(errors="replace")))
    except (OSError, ValueError, RecursionError):
        return False
    return True


def _read(path: Path) -> tuple[Settings, dict[int, Entry], int]:
    """(settings, entries, how many bytes of the manifest are whole lines)."""
    try:
        data = (path / MANIFEST).read_bytes()
    except OSError as error:
        raise TaskError(f"{path / MANIFEST}: {error.strerror}; `cuda-l1 tasks synth --out {path}` writes one") from None
    whole = data[: data.rfind(b"\n") + 1]  # the writer may have been killed in the middle of a line
    lines = whole.decode(errors="replace").splitlines()
    try:
        settings = Settings.model_validate(_object(lines[0] if lines else ""))
        entries = [Entry.model_validate(_object(line)) for line in lines[1:]]
    except (ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        raise TaskError(f"{path / MANIFEST}: cannot be read ({reason}); choose another folder with --out") from None
    return settings, {entry.number: entry for entry in entries}, len(whole)


def _object(line: str) -> Any:
    return json.loads(line)


def _difference(known: Settings, asked: Settings) -> str:
    """One line about the first setting that differs."""
    for name in Settings.model_fields:
        old, new = getattr(known, name), getattr(asked, name)
        if old != new:
            return f"was written with {name.replace('_', ' ')} {old}, not {new}"
    return "was written otherwise"
