"""The fenced code blocks of a reply, as CommonMark has them, save for one thing.

A file may hold fences of its own, in a text of kernels or a docstring, and CommonMark ends the block at the first of
them. So a block of Python ends at the first closing fence at which its text is complete Python, and where there is no
such fence at the first one. Inside a string nothing is complete, so no fence of the file's own ends it.
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
    at = 0
    while at < len(lines):
        opening = _OPEN.fullmatch(lines[at])
        if opening:
            found.append(_block(lines, at, opening))
            at = found[-1].last
        at += 1
    return found


def _block(lines: Sequence[str], at: int, opening: re.Match[str]) -> Block:
    label, lead = opening["label"].strip(), opening["lead"]
    inner = [_without_lead(line, lead) for line in lines[at + 1 :]]
    ends = _ends(inner, opening["mark"])
    first = next(ends, None)
    if first is None:
        return Block(label, "\n".join(inner), at, len(lines) - 1, closed=False)
    end = first
    if _may_be_python(label) and syntax_problem("\n".join(inner[:first])):
        end = next((n for n in ends if not syntax_problem("\n".join(inner[:n]))), first)
    return Block(label, "\n".join(inner[:end]), at, at + 1 + end, closed=True)


def _ends(inner: Sequence[str], mark: str) -> Iterator[int]:
    closing = re.compile(rf"[ \t]{{0,{SLACK}}}{re.escape(mark[0])}{{{len(mark)},}}[ \t]*")
    number = 0
    for index, line in enumerate(inner):
        if number < MOST_ENDS and closing.fullmatch(line):
            number += 1
            yield index


def _without_lead(line: str, lead: str) -> str:
    """A line less the quotation marks and the indentation of the block that it stands in."""
    if ">" in lead:
        quoted = _QUOTE.match(line)
        return line[quoted.end() :] if quoted else line
    blank = len(line) - len(line.lstrip(" \t"))
    return line[min(blank, len(lead)) :]


def _may_be_python(label: str) -> bool:
    return not label or label.lower().lstrip("{.").startswith("py")
