"""CUDA-L1's release: published kernels beside their references, one JSON object a line, or its older nested layout, or
the objects in one array or one behind another over several lines each.

    {"level_id": 1, "task_id": 12, "ref_code": "...", "custom_code": "...", "cuda_graph_code": "...",
     "cudnn_code": "...", "score_default": 2.75, "score_torch_compile_default": 1.9, ...}
    {"1": [{"task_id": 12, "ref_code": "...", "custom_code": "...", "score": "2.75"}, ...], "2": [...]}

A file that gzip has packed is read as what it holds. An id may say more than a number: `level1`, `1_12`,
`level1/12_Name.py`; a code may stand in a fence, as a model's reply has it.

Reading executes nothing. What cannot be read of a file is reported with its place, and the rest goes on; of one
document, nested or an array, that is what stands before its first fault, and of a packed file that is cut off what
stands before the cut.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from cuda_l1.errors import TaskError
from cuda_l1.prompts.fences import blocks_of
from cuda_l1.prompts.python_text import syntax_problem
from cuda_l1.tasks.file_task import source_task
from cuda_l1.tasks.source_file import SourceFile
from cuda_l1.texts import read_up_to_a_cut
from cuda_l1.types import Frozen, Task
from cuda_l1.validation import plain

Column = Literal["custom", "cuda_graph", "cudnn"]
COLUMNS: tuple[Column, ...] = ("custom", "cuda_graph", "cudnn")


MOST_CHARACTERS = 1 << 30
"""Of a release."""
LONGEST_NUMBER = 1000
"""Digits of a whole number that is read as one; Python refuses to read one of some thousand."""

_ENDS_EARLY = "the file is cut off inside its gzip packing"
_PARQUET = "PAR1"
"""What a Parquet file begins with."""
LONGEST_SHOWN = 40
"""Characters of a value in a message."""


def _whole(text: str) -> int | float:
    """A longer one is an infinite float, so that it spoils what it stands for and not its row."""
    return int(text) if len(text) <= LONGEST_NUMBER else float(text)


_DECODER = json.JSONDecoder(parse_int=_whole)


class ReleaseEntry(Frozen):
    """One task of a release and what was published for it."""

    level_id: int
    task_id: int
    """KernelBench's number within the level."""
    task: Task
    """The release's own reference, `ref_code`, as a task of suite `release`."""
    codes: dict[Column, str]
    """The published text by column, without a fence around it; what is null or empty in the file is not here."""
    scores: dict[str, float]
    """Published speed-ups of `custom` by what they are against: `default` (eager), `torch_compile_default`,
    `torch_compile_reduce_overhead`, `cuda_graph`, `cudnn`. What is null in the file is not here, nor what is no
    speed-up: 0 or less."""
    place: str
    """Where in the file it stands, for messages, e.g. `line 12`."""
    called: str = ""
    """What its evidence calls the task, in a release of ours; one of another suite has no other name."""

    @property
    def name(self) -> str:
        """`level1/12`."""
        return self.task.name

    @property
    def title(self) -> str:
        """The name for people: with what a task is called that is none of KernelBench's, whose level is 0."""
        return f"{self.name} ({self.called})" if self.called and not self.level_id else self.name

    def source(self, column: Column) -> str | None:
        """The text of `column` as a candidate's, defining `ModelNew`; None where nothing was published.

        The columns `cuda_graph` and `cudnn` hold rewritten references, whose class is called `Model`: there the name
        is added. `custom` is left as it was published, with or without a `ModelNew`.
        """
        code = self.codes.get(column)
        if code is None or column == "custom":
            return code
        return code.rstrip("\n") + "\n\n\nModelNew = Model\n"


class Release(Frozen):
    """What a release file holds, and what of it could not be read."""

    path: str
    entries: tuple[ReleaseEntry, ...]
    """In the order of level and number; no two of one id."""
    problems: tuple[str, ...] = ()
    """One line each, with the place in the file and in its order: lines that are not JSON, rows that lack a field, ids
    that repeat, scores that are no object, no number, or 0 or less, which their kernels do without."""
    unread: tuple[Task | None, ...] = ()
    """For each row of which nothing could be read its task, without a text; None where it does not say which."""


_Text = Annotated[str, Field(pattern="")]
"""What can be written in UTF-8: a pattern, whichever, refuses halves of surrogate pairs."""


def _no_boolean(value: Any) -> Any:
    """Python takes JSON's `true` for 1, and `1_2` for 12."""
    if isinstance(value, bool) or (isinstance(value, str) and "_" in value):
        raise ValueError("must be a number")
    return value


_Number = Annotated[int, Field(ge=0), BeforeValidator(_no_boolean)]
_SCORE = TypeAdapter(Annotated[FiniteFloat, BeforeValidator(_no_boolean)])


_LEVEL = re.compile(r"(?:level[_ ]?)?([0-9]{1,9})", re.IGNORECASE)
_NAMED = re.compile(rf"(?:{_LEVEL.pattern}[/_])?([0-9]{{1,9}})(?:_.*)?(?:\.py)?", re.IGNORECASE)


class _Place(BaseModel):
    """Which task a row is about."""

    model_config = ConfigDict(extra="ignore")
    level_id: _Number
    task_id: _Number

    @model_validator(mode="before")
    @classmethod
    def _read_names(cls, row: Any) -> Any:
        """Numbers out of `level1` and of names such as `12_Name`, `1_12` and `level1/12_Name.py`."""
        if not isinstance(row, dict):
            return row
        level, task = row.get("level_id"), row.get("task_id")
        if isinstance(level, str) and (named := _LEVEL.fullmatch(level.strip())):
            level = int(named[1])
        if isinstance(task, str) and (named := _NAMED.fullmatch(task.strip())):
            task = int(named[2])
            if named[1] and level not in (None, int(named[1])):
                raise ValueError(f"`task_id` names level {int(named[1])}, and `level_id` level {level}")
            level = int(named[1]) if named[1] else level
        return row | {key: value for key, value in (("level_id", level), ("task_id", task)) if value is not None}

    def task(self, source: str) -> Task:
        return Task(suite="release", name=f"level{self.level_id}/{self.task_id}", level=self.level_id, source=source)


class _Row(_Place):
    """One row of either layout, as it stands in the file."""

    ref_code: str = Field(pattern=r"\S")
    custom_code: _Text | None = None
    cuda_graph_code: _Text | None = None
    cudnn_code: _Text | None = None
    scores: dict[str, Any]
    other_scores: Any = None
    """What stands there in place of an object."""
    evidence: Any = None

    @model_validator(mode="before")
    @classmethod
    def _gather_scores(cls, row: Any) -> Any:
        if not isinstance(row, dict):
            raise ValueError("not an object with `level_id`, `task_id` and `ref_code`")
        held = row.get("scores")
        named, other = (held, None) if isinstance(held, dict) else ({}, held)
        named = named | {key.removeprefix("score_"): value for key, value in row.items() if key.startswith("score_")}
        named |= {"default": row["score"]} if "score" in row else {}
        return row | {"scores": named, "other_scores": other}


class _Found(NamedTuple):
    place: str
    row: Any
    fault: str = ""
    """Why there is no row here."""


def read_release(path: Path) -> Release:
    """All that `path` holds; of several rows of one id the last stands, as in the release's own harness.

    Raises TaskError, one line, where the file cannot be read or no row of it can be used.
    """
    text, is_cut_off = _text(path)
    problems: list[str] = []
    entries: dict[tuple[int, int], ReleaseEntry] = {}
    unread: list[Task | None] = []
    for place, row, fault in _up_to_the_cut(path, text) if is_cut_off else _rows(path, text):
        if fault:
            problems.append(f"{place}: {fault}")
            unread.append(None)
            continue
        try:
            entry = _entry(_Row.model_validate(row), place, problems)
        except ValidationError as error:
            problems.append(f"{place}: {_first(error)}")
            unread.append(_task(row))
            continue
        key = (entry.level_id, entry.task_id)
        if key in entries:
            problems.append(f"{place}: {entry.name} is there twice; this one is used, not that of {entries[key].place}")
        entries[key] = entry
    if not entries:
        why = f" ({problems[0]})" if problems else ""
        raise TaskError(f"{path}: holds no published kernel{why}; a release has one JSON object a line with `ref_code`")
    found = tuple(entries[key] for key in sorted(entries))
    return Release(path=str(path), entries=found, problems=tuple(problems), unread=tuple(unread))


def release_tasks(path: Path, *, dtype: str | None = None) -> list[Task]:
    """The references of a release, in the order of level and number, with `dtype` cast to it. Raises TaskError."""
    tasks = [entry.task for entry in read_release(path).entries]
    return [_cast(path, task, dtype) for task in tasks] if dtype else tasks


def _cast(path: Path, task: Task, dtype: str) -> Task:
    return source_task(SourceFile(path / task.name, task.source), task.suite, task.name, task.level, dtype=dtype)


def _text(path: Path) -> tuple[str, bool]:
    """(the text, whether gzip's packing of it is cut off behind that). Bytes that are no UTF-8 are halves of surrogate
    pairs, which spoil the row that they stand in and no other."""
    try:
        text, is_cut_off = read_up_to_a_cut(path, most=MOST_CHARACTERS, encoding="utf-8-sig", errors="surrogateescape")
        if "\udc80" <= text[:1] <= "\udcff":  # the byte order mark of another encoding, or an archive
            raise TaskError(f"{path}: is not text in UTF-8 (byte 0); save a release in UTF-8")
        if text.startswith(_PARQUET):
            raise TaskError(
                f"{path}: is Parquet, and a release is JSON lines; write it as such, e.g. by "
                f"`pandas.read_parquet({str(path)!r}).to_json('release.jsonl', orient='records', lines=True)`"
            )
        return text, is_cut_off
    except OSError as error:
        raise TaskError(f"{path}: cannot be read: {error.strerror or error}") from error


def _up_to_the_cut(path: Path, text: str) -> list[_Found]:
    """As `_rows`, of a text that breaks off, which is its last fault. Raises TaskError where no row stands before."""
    try:
        rows = list(_rows(path, text))
    except TaskError as error:
        raise TaskError(f"{path}: cannot be read: {_ENDS_EARLY}, and no row stands before") from error
    if rows and rows[-1].fault:
        return [*rows[:-1], rows[-1]._replace(fault=f"{rows[-1].fault}; {_ENDS_EARLY}")]
    last = text.rstrip().count("\n") + 1
    return [*rows, _Found(f"after line {last}", None, _ENDS_EARLY)]


def _rows(path: Path, text: str) -> Iterable[_Found]:
    """The rows of any layout and what is wrong between them, in the order of the file."""
    try:
        document = _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        if _is_json(text.lstrip().partition("\n")[0]):
            return _lines(path, text, error)
        if _DOCUMENT.match(text):
            return _before_the_fault(text)
        return _one_behind_another(text) or _lines(path, text, error)
    if isinstance(document, list):
        return [_Found(f"entry {number}", row) for number, row in enumerate(document, start=1)]
    if isinstance(document, dict) and _is_nested(document):
        return _nested(document)
    return [_Found("line 1", document)]


def _is_nested(document: dict[str, Any]) -> bool:
    """Whether it is the nested layout, or was meant as such, and no row, which may hold lists too."""
    groups = any(isinstance(value, list | dict) for value in document.values())
    return groups and not document.keys() & _Row.model_fields.keys()


_DOCUMENT = re.compile(r'\s*(\[\s*\{|\{\s*"[^"\\]*"\s*:\s*\[)')
"""How an array of rows begins, and how the nested layout does."""


def _is_json(line: str) -> bool:
    try:
        _DECODER.decode(line)
    except (ValueError, RecursionError):
        return False
    return True


def _before_the_fault(text: str) -> Iterator[_Found]:
    """The rows of an array, or of the nested layout, that end before the place where the text stops being JSON; the
    fault last."""
    reading = _Reading(text)
    try:
        if reading.takes("["):
            yield from reading.rows()
            reading.must_end()
            return
        reading.must_take("{")
        while not reading.takes("}"):
            level = reading.value()
            reading.must_take(":")
            reading.must_take("[")
            for found in reading.rows(f" of level {level}"):
                yield found._replace(row=_with_level(level, found.row))
            if not reading.takes(","):
                reading.must_take("}")
                break
        reading.must_end()
    except (ValueError, RecursionError) as error:
        what = (
            f"{error.msg.removesuffix(' at')} at line {error.lineno}"
            if isinstance(error, json.JSONDecodeError)
            else str(error)
        )
        yield _Found(reading.place, None, f"not JSON: {what}; nothing behind it can be read")


def _one_behind_another(text: str) -> list[_Found]:
    """Rows over several lines each, as `jq` prints them, or with commas between them; none where anything else stands
    in between."""
    reading = _Reading(text)
    values = []
    try:
        while not reading.is_at_end():
            values.append(reading.value())
            reading.takes(",")
    except (ValueError, RecursionError):
        return []
    rows = all(isinstance(value, dict) for value in values)
    return [_Found(f"entry {number}", value) for number, value in enumerate(values, start=1)] if rows else []


class _Reading:
    """A JSON document, value by value; what is not JSON raises json's errors."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self.place = "line 1"
        """Of the row that was read last."""

    def takes(self, sign: str) -> bool:
        """Whether that comes next; then it is passed over."""
        while self._text[self._at : self._at + 1].isspace():
            self._at += 1
        found = self._text.startswith(sign, self._at)
        self._at += len(sign) if found else 0
        return found

    def must_take(self, sign: str) -> None:
        if not self.takes(sign):
            comma = "',' or " if sign in "]}" else ""
            raise json.JSONDecodeError(f"Expecting {comma}'{sign}'", self._text, self._at)

    def is_at_end(self) -> bool:
        self.takes("")  # the space behind what was read
        return self._at >= len(self._text)

    def must_end(self) -> None:
        if not self.is_at_end():
            raise json.JSONDecodeError("Extra data", self._text, self._at)

    def value(self) -> Any:
        self.takes("")  # the space before it
        value, self._at = _DECODER.raw_decode(self._text, self._at)
        return value

    def rows(self, of: str = "") -> Iterator[_Found]:
        """The values up to the end of an array that has begun."""
        number = 0
        while not self.takes("]"):
            number += 1
            self.place = f"entry {number}{of}"
            yield _Found(self.place, self.value())
            if not self.takes(","):
                self.must_take("]")
                return


def _lines(path: Path, text: str, whole: Exception) -> list[_Found]:
    """JSON lines. Raises TaskError where no line is JSON: a damaged document of the nested layout, say."""
    found = []
    for number, line in enumerate(text.split("\n"), start=1):  # not splitlines: strings may hold U+2028
        if not line.strip():
            continue
        try:
            found.append(_Found(f"line {number}", _DECODER.decode(line)))
        except (ValueError, RecursionError) as error:
            found.append(_Found(f"line {number}", None, f"not JSON: {_brief(error)}"))
    if not text.strip():
        raise TaskError(f"{path}: is empty; a release has one JSON object a line with `ref_code`")
    if not any(isinstance(line.row, dict) for line in found):
        raise TaskError(f"{path}: is neither JSON lines nor one JSON document: {whole}")
    return found


def _nested(document: dict[str, Any]) -> Iterator[_Found]:
    for level, rows in document.items():
        if not isinstance(rows, list):
            fault = "is no list; the nested layout has a list of rows for each level, and in each row its `task_id`"
            yield _Found(f"level {_shown(level)}", None, fault)
            continue
        for number, row in enumerate(rows, start=1):
            yield _Found(f"entry {number} of level {level}", _with_level(level, row))


def _with_level(level: Any, row: Any) -> Any:
    return {"level_id": level} | row if isinstance(row, dict) else row


def _task(row: Any) -> Task | None:
    """That of a row that cannot be used, without a text; None where it does not say which."""
    try:
        return _Place.model_validate(row).task("")
    except ValidationError:
        return None


def _entry(row: _Row, place: str, problems: list[str]) -> ReleaseEntry:
    codes: dict[Column, str] = {}
    for column in COLUMNS:
        code = getattr(row, f"{column}_code")
        if code and code.strip():
            codes[column] = _out_of_its_fence(code)
    task = row.task(_out_of_its_fence(row.ref_code))
    if row.other_scores is not None:
        problems.append(f"{place}: {task.name}, `scores` = {_shown(row.other_scores)}: not an object; left out")
    scores = {}
    below = []
    for against, given in row.scores.items():
        try:
            score = _SCORE.validate_python(given) if given is not None else None
        except ValidationError as error:
            problems.append(f"{place}: {task.name}, score `{against}` = {_shown(given)}: {_first(error)}; left out")
            continue
        if score is not None and score > 0:
            scores[against] = score
        elif score is not None:
            below.append(f"`{against}` = {_shown(given)}")
    if below:
        problems.append(f"{place}: {task.name}, score {', '.join(below)}: no speed-up is 0 or less; left out")
    called = row.evidence.get("task") if isinstance(row.evidence, dict) else None
    return ReleaseEntry(
        level_id=row.level_id,
        task_id=row.task_id,
        task=task,
        codes=codes,
        scores=scores,
        place=place,
        called=called.partition("@")[0] if isinstance(called, str) else "",
    )


def _shown(value: Any) -> str:
    """A value as JSON has it, for a message: a long one cut, of an object or a list the brackets."""
    if isinstance(value, dict | list):
        return "{...}" if isinstance(value, dict) else "[...]"
    text = json.dumps(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def _out_of_its_fence(code: str) -> str:
    """The one fenced block of a text that is no Python itself."""
    if not ("```" in code or "~~~" in code) or not syntax_problem(code):
        return code
    blocks = blocks_of(code.replace("\r\n", "\n").split("\n"))
    return f"{blocks[0].text}\n" if len(blocks) == 1 and blocks[0].closed else code


def _first(error: ValidationError) -> str:
    """The first thing that is wrong with a row, in one line; of an id with what stands there."""
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"])
    held = f" = {_shown(first['input'])}" if field in _Place.model_fields and first["type"] != "missing" else ""
    return f"`{field}`{held}: {plain(first)}" if field else plain(first)


def _brief(error: Exception) -> str:
    """json's message with the column only: the line is that of the file."""
    return (
        f"{error.msg.removesuffix(' at')} at column {error.colno}"
        if isinstance(error, json.JSONDecodeError)
        else str(error)
    )
