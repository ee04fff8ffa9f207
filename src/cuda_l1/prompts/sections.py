"""The three sections that the contrastive prompt asks for, however a model marks their headings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from cuda_l1.prompts.fences import Block

ANALYSIS, DESIGN, CODE = "Performance Analysis", "Algorithm Design", "Code Implementation"
NAMES = (ANALYSIS, DESIGN, CODE)

_MARKS = r"[\W_]*+"
"""Markdown's marks, punctuation of any alphabet, pictures."""
_NUMBER = rf"(?:\d{{1,2}}|(?:[IVX]{{1,3}}|[A-C])[.):]+)?{_MARKS}"
_HEADING = re.compile(
    rf"{_MARKS}(?:(?:section|part|step|phase|stage)\s+)?{_NUMBER}"
    rf"(?P<name>{'|'.join(name.replace(' ', '[ _]') for name in NAMES)})\b",
    re.IGNORECASE,
)
"""No quantifier gives back what it took: a model that repeats blanks without end must not cost their number squared."""
_SHORT_HEADING = re.compile(
    rf"{_MARKS}{_NUMBER}"
    r"(?:(?:the|my|final|complete|full|new|optimi[sz]ed|improved|source|python|pytorch|cuda|triton|c\+\+)\s+){0,3}"
    rf"(?:code(?:\s+implementation)?|implementation|kernel|file|solution|answer){_MARKS}",
    re.IGNORECASE,
)
"""How the third heading is named otherwise, where the second one is there and it is not."""
_HTML = re.compile(r"</?(?:h[1-6]|b|strong|summary)>", re.IGNORECASE)
"""What marks a heading in HTML."""
HEADING_CHARACTERS = 120
"""Within so many a line shows that it is one."""
_NOTHING = re.compile(_MARKS)
_COLON = re.compile(r"[*_]*+\s*+[:：–—]")


class Section(NamedTuple):
    """One section; `first` is the line of its heading, `last` its last line, counted from 0."""

    name: str
    first: int
    last: int
    text: str
    """Without the heading."""


def sections_of(lines: Sequence[str], blocks: Sequence[Block]) -> list[Section]:
    """The sections of a reply, in their order; one may occur twice. What is in a block is no heading."""
    inside = {line for block in blocks for line in range(block.first + 1, block.last + 1)}
    outside = [(number, line) for number, line in enumerate(lines) if number not in inside]
    heads = [(number, *head) for number, line in outside if (head := _heading(line))]
    names = {name for _, name, _ in heads}
    if DESIGN in names and CODE not in names:
        last = max(number for number, _, _ in heads)
        heads += [(number, CODE, "") for number, line in outside if number > last and _is_short_heading(line)]
    ends = [*(n - 1 for n, _, _ in heads[1:]), len(lines) - 1]
    return [
        Section(name, first, last, "\n".join([rest, *lines[first + 1 : last + 1]]).strip())
        for (first, name, rest), last in zip(heads, ends, strict=False)
    ]


def _is_short_heading(line: str) -> bool:
    """Whether a line is nothing but a marked `Code`, `Triton Kernel`, `Solution` or the like."""
    bare = line.strip()
    marked = not bare[:1].isalpha() or bare.endswith((":", "："))
    return bool(bare) and marked and bool(_SHORT_HEADING.fullmatch(bare[:HEADING_CHARACTERS]))


def _heading(line: str) -> tuple[str, str] | None:
    """The section whose heading a line is, and what else it says; a sentence that begins so is none."""
    bare = _HTML.sub("**", line.strip()[:HEADING_CHARACTERS]) + line.strip()[HEADING_CHARACTERS:]
    found = _HEADING.match(bare[:HEADING_CHARACTERS])
    if not found:
        return None
    rest = bare[found.end() :]
    marked = bare.startswith("#") or (bare[:2] in ("**", "__") and bare[-2:] == bare[:2])
    if not (marked or _NOTHING.fullmatch(rest) or _COLON.match(rest)):
        return None
    name = next(each for each in NAMES if each.lower() == found["name"].lower().replace("_", " "))
    return name, "" if _NOTHING.fullmatch(rest) else rest.strip(" \t*_:：#=–—")
