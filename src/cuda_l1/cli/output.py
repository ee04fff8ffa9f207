"""stdout is data, stderr is talk."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

from pydantic import BaseModel
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

PIPED_COLUMNS = 240


def printable(text: str) -> str:
    """The text without what a terminal obeys: in place of each control character, and of each that turns the direction
    of writing, stands a replacement character. Line ends and tabs stay."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


class Screen(Console):
    """Where tables are drawn. They hold texts of candidates, models and files of somebody's: nothing in one is markup,
    and none speaks to the terminal."""

    def __init__(self, file: IO[str], width: int | None = None) -> None:
        super().__init__(file=file, highlight=False, markup=False, emoji=False, width=width)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The parts of what is drawn; those that rich itself made for the terminal stay as they are."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text), style, control)


class Output:
    """What a command prints: tables for people, or with `--json` one object a line, the summary last."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def record(self, kind: str, fields: BaseModel | dict[str, Any], **more: Any) -> None:
        """One JSON line, with `--json` only. Fields of a model have the names of `cuda_l1.types`."""
        if self.as_json:
            _put(to_json({"kind": kind, **plain(fields), **more}) + "\n")
            Output.flush()

    def summary(self, **fields: Any) -> None:
        """The last JSON line."""
        self.record("summary", fields)

    def show(self, *parts: RenderableType) -> None:
        """A table or a line of the result, without `--json` only."""
        if self.as_json:
            return
        file = sys.stdout if is_terminal() else io.StringIO()
        console = Screen(file, width())
        for part in parts:
            console.print(part, soft_wrap=isinstance(part, Text))  # a sentence is one line, however long
        if isinstance(console.file, io.StringIO):
            lines = console.file.getvalue().splitlines()
            _put("".join(f"{line.rstrip()}\n" for line in lines))

    @staticmethod
    def text(text: str) -> None:
        """A text that is the result: as it is into a file or a pipe, without what a terminal obeys on a terminal."""
        _put(printable(text) if is_terminal() else text)

    @staticmethod
    def flush() -> None:
        """Writes what stdout still holds, since what cannot be written shall not come up at exit only."""
        with _named():
            sys.stdout.flush()

    @staticmethod
    def say(text: str) -> None:
        """A line of talk. Raises BrokenPipeError where whoever read it has left."""
        talk(f"{printable(text)}\n")

    @staticmethod
    def error(text: str) -> None:
        """The one line that a failed command leaves."""
        with suppress(BrokenPipeError):
            talk(f"cuda-l1: {printable(text)}\n")


def talk(text: str) -> None:
    """Writes to stderr. A log on a full disk, or a terminal that was closed, ends no work: a command's exit code and
    what it writes do not depend on who listens. Raises BrokenPipeError."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except BrokenPipeError:
        raise
    except OSError:  # Python holds some of it, which goes out with a later line where there is room again
        pass


def let_go_of_streams() -> None:
    """Where one takes nothing more: what Python still holds for it must not raise again at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _put(text: str) -> None:
    with _named():
        sys.stdout.write(text)


@contextmanager
def _named() -> Iterator[None]:
    """An error of stdout's has no file name that says so."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, "stdout") from error


def is_terminal() -> bool:
    """Whether a person looks at stdout."""
    return sys.stdout.isatty()


def width() -> int | None:
    """Columns: None leaves it to the terminal. What is piped has no width, and a cut table would lose data."""
    return None if is_terminal() else PIPED_COLUMNS


def plain(fields: BaseModel | dict[str, Any]) -> dict[str, Any]:
    """JSON values; pydantic writes what is not finite as null."""
    if isinstance(fields, BaseModel):
        values: dict[str, Any] = json.loads(fields.model_dump_json())
        return values
    return fields


def to_json(fields: dict[str, Any]) -> str:
    """One line of strict JSON."""
    return json.dumps(fields, allow_nan=False, default=str)
