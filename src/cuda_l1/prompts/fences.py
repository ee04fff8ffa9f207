"""The fenced code blocks of a reply, as CommonMark has them, save for what models write.

A file may hold fences of its own, in a text of kernels or a docstring, and CommonMark ends the block at the first of
them. So a block ends at the first closing fence at which its text is complete Python, and where there is no
such fence at the first one. Inside a string nothing is complete, so no fence of the file's own ends it.

A fence may end a line of text (`The file: ```python`), and one that wraps a whole reply as Markdown or text is none.
Text may stand behind a closing fence ("``` fuses both."), and the closing fence of a file behind its last line. Where a
text has no fence at all, a file between tags (`<code>`, `</code>`) is a block.
"""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cuda_l1.prompts.python_text import defines_model_new, syntax_problem

MOST_ENDS = 16
"""Closing fences that are tried for one block, and tags for one text."""
MOST_AROUND = 4
"""Blocks without a language that are looked into for another."""
SLACK = 3
"""Columns by which a closing fence may stand further right than its opening one."""

_OPEN = re.compile(
    r"(?P<lead>[ \t]*(?:>[ \t]?)*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?)"
    r"(?P<mark>`{3,}(?=[^`]*$)|~{3,}|'{3}(?=python[ \t]*$))(?P<label>.*)"
)
"""Three quotes before the language's name are a fence, too: some models write them for backticks."""
_CODE_BESIDE = re.compile(r"(?:\w+[ \t]+)?(?P<code>(?:import|from[ \t]+[\w.]+[ \t]+import)[ \t]+\w.*)")
"""What stands beside a fence that lacks its line end."""
_LATE_OPEN = re.compile(
    r"(?P<lead>)[^`]*[:.*>：。][ \t]*(?P<mark>```)"
    r"(?P<label>py(?:thon)?3?|(?:(?<=[:>：]```)|(?<=[:：][ \t]```))\w*)[ \t]*",
    re.IGNORECASE,
)
_WORD = re.compile(r"[\w.+#-]+")
_TEXT_BEHIND = rf"(?![\w`])(?![ \t]*{_WORD.pattern}[ \t]*$).*"
"""Of a closing fence: no lone word, which would be the language of an opening one."""
_TAG = re.compile(r"[ \t]*+(?:<(?P<name>[A-Za-z][\w:.-]*+)(?:[\s=][^<>]*+)?>|\[(?P<word>[A-Z]+)\])++")
_TAG_END = re.compile(r"(?:</(?P<name>[A-Za-z][\w:.-]*+)>|\[/(?P<word>[A-Z]+)\])(?:</[A-Za-z][\w:.-]*+>){0,3}+[ \t]*\Z")
"""Of a few in a row the innermost."""
_OF_HTML = frozenset({"pre", "code"})
_VERBATIM = re.compile(r"\s*<!\[CDATA\[(?P<text>.*)\]\]>\s*", re.DOTALL)
_LANGUAGE = re.compile(r"[ \t]*(?:python3?|py)[ \t]*", re.IGNORECASE)
"""The label of a block that stands in its first line; no file begins so."""
IS_ESCAPED = re.compile(r"(?:[^<>&]++|&(?:lt|gt|amp|quot|apos|nbsp|#\d{1,6}|#x[0-9a-f]{1,5});)*+", re.IGNORECASE)
"""A text that was escaped for HTML as a whole."""
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
    return _fenced(lines) or _tagged(lines)


def _fenced(lines: Sequence[str]) -> list[Block]:
    found: list[Block] = []
    at, wrapped, around = 0, False, 0
    while at < len(lines):
        opening = _OPEN.fullmatch(lines[at]) or ("```" in lines[at] and _LATE_OPEN.fullmatch(lines[at]))
        if opening and _is_wrapper(lines, at, opening):
            wrapped = True
        elif opening and wrapped and not opening["label"].strip():  # where the wrapper ends
            wrapped = False
        elif opening:
            block = _block(lines, at, opening)
            if around < MOST_AROUND and _is_around_another(block):
                wrapped = True
                around += 1
            else:
                found.append(block)
                at = block.last
        at += 1
    return found


def _is_wrapper(lines: Sequence[str], at: int, opening: re.Match[str]) -> bool:
    """Whether a fence says that Markdown or text follows, and the next one is that of a block with a language; or
    whether such a one is the very next line, as where a fence is written twice."""
    following = next((lines[number] for number in range(at + 1, len(lines)) if lines[number].strip()), "")
    if _names_a_language(following):
        return True
    if opening["label"].strip().lower() not in ("markdown", "md", "text", "txt"):
        return False
    fence = next(filter(None, map(_OPEN.fullmatch, lines[at + 1 :])), None)
    return fence is not None and bool(fence["label"].strip())


def _is_around_another(block: Block) -> bool:
    """Whether the fence of a block without a language is one too many, or around a whole reply: what follows is no
    Python and holds the fence of a block with a language."""
    if block.label or not any(map(_names_a_language, block.text.split("\n"))):
        return False
    return bool(syntax_problem(block.text))


def _names_a_language(line: str) -> bool:
    """Whether a line is a fence with one word, so that it begins a block and ends none."""
    opening = _OPEN.fullmatch(line)
    return opening is not None and bool(_WORD.fullmatch(opening["label"].strip()))


def _block(lines: Sequence[str], at: int, opening: re.Match[str]) -> Block:
    texts = _texts(lines, at, opening)
    first = next(texts)
    whole = (text for text in itertools.chain([first], texts) if text.closed and not syntax_problem(text.text))
    text = next(whole, first)
    return Block(opening["label"].strip(), text.text, at, text.last, text.closed)


class _Text(NamedTuple):
    text: str
    last: int
    closed: bool


def _texts(lines: Sequence[str], at: int, opening: re.Match[str]) -> Iterator[_Text]:
    """What a block may hold: up to its first closing fence, up to its second, and so on; at last all that follows."""
    lead, mark = opening["lead"], opening["mark"]
    fence = rf"{re.escape(mark[0])}{{{len(mark)},}}"
    closing = re.compile(rf"[ \t]{{0,{SLACK}}}{fence}(?:[ \t]*|{_TEXT_BEHIND})")
    closes_file = re.compile(rf"(?P<code>[^#`~]*+){fence}[ \t]*")
    beside = _CODE_BESIDE.fullmatch(opening["label"].strip())
    inner = [f"{lead}{beside['code']}"] if beside else []
    ends = tried = 0
    begin = at + 1 + (at + 1 < len(lines) and _LANGUAGE.fullmatch(_without_lead(lines[at + 1], lead)) is not None)
    for number in range(begin, len(lines)):
        line = _without_lead(lines[number], lead)
        if closing.fullmatch(line):
            ends += 1
            yield _Text(_moved_left(inner, lead), number, closed=True)
        elif tried < MOST_ENDS and (file_end := closes_file.fullmatch(line)) and not _OPEN.fullmatch(line):
            tried += 1
            text = _moved_left([*inner, file_end["code"]], lead)
            if defines_model_new(text):
                yield _Text(text, number, closed=True)
        if ends == MOST_ENDS:
            return
        inner.append(lines[number])
    yield _Text(_moved_left(inner, lead), len(lines) - 1, closed=False)


def _tagged(lines: Sequence[str]) -> list[Block]:
    """The files that stand between tags, the opening one at the beginning of a line and the closing one at an end."""
    found: list[Block] = []
    begun: dict[str, int] = {}
    tried = 0
    for number, line in enumerate(lines):
        if opening := _TAG.match(line):
            begun[opening["name"] or opening["word"]] = number
        closing = _TAG_END.search(line)
        name = (closing["name"] or closing["word"]) if closing else ""
        at = begun.pop(name, None)
        if at is None or tried == MOST_ENDS:
            continue
        tried += 1
        inner = [*lines[at:number], _TAG_END.sub("", line)]
        inner[0] = _TAG.sub("", inner[0], count=1)
        text = _moved_left(inner, "")
        if verbatim := _VERBATIM.fullmatch(text):
            text = verbatim["text"]
        elif name.lower() in _OF_HTML and IS_ESCAPED.fullmatch(text):
            text = html.unescape(text)
        if defines_model_new(text):
            found.append(Block("", text, at, number, closed=True))
    return found


def _moved_left(lines: Sequence[str], lead: str) -> str:
    """Lines less the quotation marks of their block and the indentation that all of them have: that of the block, or
    less, where one stands further left than its block, as under the number of a list, or more."""
    own = [_without_lead(line, lead) for line in lines] if ">" in lead else lines
    room = min((_blank(line) for line in own if line.strip()), default=0)
    return "\n".join(line[min(_blank(line), room) :] for line in own)


def _without_lead(line: str, lead: str) -> str:
    """A line less the quotation marks and the indentation of the block that it stands in."""
    if ">" in lead:
        quoted = _QUOTE.match(line)
        return line[quoted.end() :] if quoted else line
    return line[min(_blank(line), len(lead)) :]


def _blank(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))
