"""The fenced code blocks of a reply, as CommonMark has them, save for three things.

A file may hold fences of its own, in a text of kernels or a docstring, and CommonMark ends the block at the first of
them. So a block ends at the first closing fence at which its text is complete Python, and where there is no
such fence at the first one. Inside a string nothing is complete, so no fence of the file's own ends it.

A fence may end a line of text (`The file: ```python`), and one that wraps a whole reply as Markdown is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cuda_l1.prompts.python_text import syntax_problem

MOST_ENDS = 16
"""Closing fences that are tried for one block."""
SLACK = 3
"""Columns by which a closing fence may stand further right than its opening one."""

_OPEN = re.compile(
    r"(?P<lead>[ \t]*(?:>[ \t]?)*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?)(?P<mark>`{3,}(?=[^`]*$)|~{3,})(?P<label>.*)"
)
_LATE_OPEN = re.compile(r"(?P<lead>)[^`]*[:.*>][ \t]*(?P<mark>```)(?P<label>py(?:thon)?3?)[ \t]*", re.IGNORECASE)
_QUOTE = re.compile(r"[ \t]*(?:>[ \t]?)+")


class Block(NamedTuple):
    """One block; `first` to `last` are the lines that it takes, fences included, counted from 0."""

    label: str
    """What stands beside the opening fence, e.g. `python`."""
    text: str
    first: int
    last: int
    closed: bool


def blocks_of(lines: Sequence[str]) -> list[Block]:
    """The blocks of a text, in order. The last may be unclosed; it then reaches to the end."""
    found: list[Block] = []
    at, wrapped = 0, False
    while at < len(lines):
        opening = _OPEN.fullmatch(lines[at]) or ("```" in lines[at] and _LATE_OPEN.fullmatch(lines[at]))
        if opening and _is_wrapper(lines, at, opening):
            wrapped = True
        elif opening and wrapped and not opening["label"].strip():  # where the wrapper ends
            wrapped = False
        elif opening:
            found.append(_block(lines, at, opening))
            at = found[-1].last
        at += 1
    return found


def _is_wrapper(lines: Sequence[str], at: int, opening: re.Match[str]) -> bool:
    """Whether a fence says that Markdown follows, and the next one is that of a block with a language."""
    if opening["label"].strip().lower() not in ("markdown", "md"):
        return False
    following = next(filter(None, map(_OPEN.fullmatch, lines[at + 1 :])), None)
    return following is not None and bool(following["label"].strip())


def _block(lines: Sequence[str], at: int, opening: re.Match[str]) -> Block:
    label, texts = opening["label"].strip(), _texts(lines, at, opening)
    first = text = next(texts)
    while text.closed and syntax_problem(text.text):
        longer = next(texts, None)
        if longer is None or not longer.closed:
            text = first
            break
        text = longer
    return Block(label, text.text, at, text.last, text.closed)


class _Text(NamedTuple):
    text: str
    last: int
    closed: bool


def _texts(lines: Sequence[str], at: int, opening: re.Match[str]) -> Iterator[_Text]:
    """What a block may hold: up to its first closing fence, up to its second, and so on; at last all that follows."""
    lead, mark = opening["lead"], opening["mark"]
    closing = re.compile(rf"[ \t]{{0,{SLACK}}}{re.escape(mark[0])}{{{len(mark)},}}[ \t]*")
    inner: list[str] = []
    ends = 0
    for number in range(at + 1, len(lines)):
        line = _without_lead(lines[number], lead)
        if closing.fullmatch(line):
            yield _Text(_moved_left(inner, lead), number, closed=True)
            ends += 1
            if ends == MOST_ENDS:
                return
        inner.append(lines[number])
    yield _Text(_moved_left(inner, lead), len(lines) - 1, closed=False)


def _moved_left(lines: Sequence[str], lead: str) -> str:
    """Lines less what their block's `lead` put before them. Where one stands further left than its block, as under the
    number of a list, all move as far as it can: to Python the difference between two lines means something."""
    room = min((_blank(line) for line in lines if line.strip()), default=0)
    return "\n".join(_without_lead(line, lead[:room] if ">" not in lead else lead) for line in lines)


def _without_lead(line: str, lead: str) -> str:
    """A line less the quotation marks and the indentation of the block that it stands in."""
    if ">" in lead:
        quoted = _QUOTE.match(line)
        return line[quoted.end() :] if quoted else line
    return line[min(_blank(line), len(lead)) :]


def _blank(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))
