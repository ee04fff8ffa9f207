"""From a model's reply to one complete Python file, or to the reason why there is none.

Nothing that a model thought aloud is ever taken for its answer, and nothing is guessed: where two files could be meant
there is none. What a fence says of its language decides nothing; what counts is that the text is complete Python and
defines `ModelNew`.
"""

from __future__ import annotations

import html
import itertools
import json
import re
import string
from collections.abc import Iterator, Sequence
from textwrap import dedent
from typing import Any, Literal, NamedTuple

from cuda_l1.endpoint import one_line
from cuda_l1.prompts.continuation import whole_file
from cuda_l1.prompts.fences import IS_ESCAPED, Block, blocks_of
from cuda_l1.prompts.listing import unlisted
from cuda_l1.prompts.python_text import (
    bound_names,
    defines_model_new,
    formless,
    literal,
    needs_no_other,
    syntax_problem,
)
from cuda_l1.prompts.sections import ANALYSIS, CODE, DESIGN, NAMES, Section, sections_of
from cuda_l1.prompts.thinking import GAP, THINKS, THOUGHT, without_thinking
from cuda_l1.types import ReplyProblem

ReplyKind = Literal["contrastive", "one-shot", "compact", "repair"]
SECTIONED = frozenset({"contrastive", "compact"})
"""Kinds of prompts that ask for sections."""
CUT_OFF = frozenset({"length", "max_tokens", "model_length"})
"""What a server calls an answer that met its limit."""
REFUSED = frozenset({"content_filter", "refusal"})
DETAIL_CHARACTERS = 300
NOT_CLOSED = "the last code block is not closed"


class ParsedReply(NamedTuple):
    """What a reply holds. Either `source` or `problem` is None, never both."""

    analysis: str
    """The section *Performance Analysis*; empty where there is none."""
    design: str
    """The section *Algorithm Design*."""
    source: str | None
    """One complete Python file."""
    problem: ReplyProblem | None
    detail: str
    """The problem in one line; empty without one."""
    missing: tuple[str, ...] = ()
    """Sections that were asked for and are not there, or are empty; a reply may be used without them."""


def parse_reply(
    text: str,
    *,
    kind: ReplyKind = "contrastive",
    finish_reason: str = "",
    reference: str = "",
    must_end: bool = False,
) -> ParsedReply:
    """What a reply to a prompt of this kind holds. Never raises for what a model wrote.

    `finish_reason` is the server's word on why the text ends; empty where it says nothing. `reference` is the task's
    text, which the answer to a compact prompt continues: the source is both, as one file. `must_end`: a reply that met
    its token limit holds nothing, as for a policy that is to learn when to end.
    """
    visible, thinking = without_thinking(_normal(text))
    visible = _out_of_json(visible)
    lines = visible.split("\n")
    blocks = blocks_of(lines)
    sections = sections_of(lines, blocks) if kind in SECTIONED else []
    is_cut = must_end and finish_reason in CUT_OFF
    given = reference if kind == "compact" else ""
    found = (None, *MET_LIMIT) if is_cut else _answer(visible, blocks, sections, finish_reason, thinking, given)
    texts = {name: "\n\n".join(s.text for s in sections if s.name == name).replace(GAP, "") for name in NAMES}
    asked = NAMES if kind in SECTIONED else ()
    source, problem, detail = found
    if kind == "compact" and source is not None:
        source = whole_file(reference, source)
        if late := syntax_problem(source):  # a `from __future__` of the answer is late behind the reference
            source, problem, detail = None, "syntax-error", one_line(late, DETAIL_CHARACTERS)
    return ParsedReply(
        texts[ANALYSIS],
        texts[DESIGN],
        source,
        problem,
        detail,
        tuple(name for name in asked if not texts[name].strip()),
    )


def spoken(text: str) -> str:
    """A reply without what the model thought aloud. Where it did so in the midst of it, or never stopped, the marks
    stay, without what they held: what remains is read as the whole reply is."""
    visible, thinking = without_thinking(_normal(text))
    said = visible.strip(f"{GAP}{string.whitespace}").replace(GAP, THOUGHT)
    return f"{said}\n{THINKS}".strip() if thinking else said


Found = tuple[str | None, ReplyProblem | None, str]
MET_LIMIT: tuple[ReplyProblem, str] = ("cut-off", "the reply met its token limit")


def _answer(
    visible: str, blocks: Sequence[Block], sections: Sequence[Section], finish_reason: str, thinking: bool, given: str
) -> Found:
    here = _in_code(blocks, sections)
    if any(_is_cut(block) for block in here):
        return None, "cut-off", NOT_CLOSED
    files = _different([_as_file(block.text) for block in here if _is_file(block)])
    if files and finish_reason in CUT_OFF and not sections:
        return None, "cut-off", "the reply met its token limit, and what it holds may be a thought"
    if len(files) > 1:  # a passage that is shown by itself is none of them
        names = bound_names(given)
        files = [file for file in files if needs_no_other(file, names)] or files
    if len(files) == 1:
        return files[0], None, ""
    if len(files) > 1:
        return None, "several-blocks", f"{len(files)} different code blocks are complete files with ModelNew"
    if bare := _unfenced(visible, blocks, sections, finish_reason):
        return bare, None, ""
    return None, *_reason(visible, blocks, here, sections, finish_reason, thinking)


def _different(files: Sequence[str]) -> list[str]:
    """The first of those that are the same but for comments and formatting."""
    found: dict[str, str] = {}
    for file in files if len(files) > 1 else ():
        found.setdefault(formless(file), file)
    return list(found.values() or files)


def _in_code(blocks: Sequence[Block], sections: Sequence[Section]) -> list[Block]:
    """The blocks that may be the answer: those of the section for code; all of a reply without any sections."""
    if not sections:
        return list(blocks)
    spans = [(s.first, s.last) for s in sections if s.name == CODE]
    return [block for block in blocks if any(first <= block.first <= last for first, last in spans)]


def _is_file(block: Block) -> bool:
    return block.closed and GAP not in block.text and defines_model_new(_as_file(block.text))


def _is_cut(block: Block) -> bool:
    """Whether a block goes on to the end of the reply; one that holds nothing is a fence too many."""
    return not block.closed and bool(block.text.replace(GAP, "").strip())


def _as_file(text: str) -> str:
    plain = text.strip("\n") + "\n"
    return (unlisted(plain) or plain) if syntax_problem(plain) else plain


def _unfenced(visible: str, blocks: Sequence[Block], sections: Sequence[Section], finish_reason: str) -> str | None:
    """A file that stands there without a fence, behind prose or not. It has no end mark, so the server must say that
    the model ended it."""
    if blocks or finish_reason != "stop":
        return None
    codes = [section.text for section in sections if section.name == CODE] if sections else [visible]
    if len(codes) != 1 or GAP in codes[0].strip(f"\n{GAP}"):
        return None
    lines = codes[0].strip(f"\n{GAP}").split("\n")
    first = next((at for at, line in enumerate(lines) if _NAMES_CLASS.match(line)), 0)  # of two files neither
    begins = (at for at, line in enumerate(lines[: first + 1]) if at == 0 or _BEGINS_CODE.match(line))
    files = (_as_file(dedent("\n".join(lines[at:]))) for at in itertools.islice(begins, MOST_BEGINNINGS))
    return next(filter(defines_model_new, files), None)


MOST_BEGINNINGS = 8
_NAMES_CLASS = re.compile(r"[ \t]*(?:class[ \t]+ModelNew\b|ModelNew[ \t]*[:=])")
_BEGINS_CODE = re.compile(r"""[ \t]*(?:(?:import|from|class|def|if|try)\b|[@%]|[bru]*["']{3}|\w+[ \t]*=)""")
"""No comment does: a heading of Markdown looks like one."""


def _reason(
    visible: str,
    blocks: Sequence[Block],
    here: Sequence[Block],
    sections: Sequence[Section],
    finish_reason: str,
    thinking: bool,
) -> tuple[ReplyProblem, str]:
    """Why a reply holds no file."""
    if finish_reason in REFUSED:
        return "refusal", f"the server ended it: {finish_reason}"
    if finish_reason in CUT_OFF:
        return MET_LIMIT
    if not visible.replace(GAP, "").strip():
        return ("cut-off", "it ends while the model still thinks") if thinking else ("empty", "there is no text")
    if any(_is_cut(block) for block in blocks):
        return "cut-off", NOT_CLOSED
    used = {block.first for block in here}
    if elsewhere := next((block for block in blocks if block.first not in used and _is_file(block)), None):
        section = next((s.name for s in reversed(sections) if s.first < elsewhere.first), None)
        return (
            "wrong-sections",
            f"the file stands {f'in {section}' if section else 'before the sections'}, not in {CODE}",
        )
    if sections and not any(section.name == CODE for section in sections):
        return "wrong-sections", f"there is no section {CODE}"
    if thinking:
        return "cut-off", "it ends while the model still thinks"
    if here:
        return _no_file(here)
    if not sections and (refusal := _REFUSAL.search(visible[:REFUSAL_CHARACTERS])):
        return "refusal", one_line(visible[refusal.start() :], DETAIL_CHARACTERS)
    return "no-code", "there is no code block"


def _no_file(blocks: Sequence[Block]) -> tuple[ReplyProblem, str]:
    """Why none of some blocks is a file: the fault of the one that is most like one."""
    block = max(blocks, key=lambda b: ("ModelNew" in b.text, b.label.lower().startswith("py"), len(b.text)))
    if GAP in block.text:
        return "no-code", "the model thought aloud in the midst of its code"
    if not block.text.strip():
        return "no-code", "the code block is empty"
    if block.label.lower() in ("diff", "patch"):
        return "no-code", "it is a diff, and not the whole file"
    problem = syntax_problem(_as_file(block.text))
    if problem and ("ModelNew" in block.text or block.label.lower().startswith("py")):
        return "syntax-error", one_line(problem, DETAIL_CHARACTERS)
    return "no-model-new", f"none of the code blocks ({len(blocks)}) is a Python file that defines ModelNew"


def _out_of_json(visible: str) -> str:
    """The strings that a reply holds that is JSON, perhaps between tags, or whose only block is, its files in fences;
    any other reply as it is."""
    if "ModelNew" not in visible:
        return visible
    blocks = blocks_of(visible.split("\n"))
    text = blocks[0].text if len(blocks) == 1 else visible
    text = text.strip(f"{GAP}{string.whitespace}")
    value = _loaded(text)
    if value is None:
        return visible if blocks else _without_documents(visible)
    return _as_text(value) or visible


def _without_documents(visible: str) -> str:
    """A text with the strings of each JSON document in it that holds a candidate, in place of the document. What a
    server writes around the call of a function, or a model before and after, stays."""
    kept: list[str] = []
    at = tried = 0
    while tried < MOST_DOCUMENTS and (begin := _DOCUMENT.search(visible, at)):
        tried += 1
        try:
            value, end = _DECODER.raw_decode(visible, begin.start())
        except (ValueError, RecursionError):
            value, end = None, begin.end()
        held = _as_text(value)
        is_answer = blocks_of(held.split("\n"))  # code without a fence may hold lists and objects of its own
        kept += [visible[at : begin.start()], held if is_answer else visible[begin.start() : end]]
        at = end
    return "".join([*kept, visible[at:]])


MOST_DOCUMENTS = 16
_DOCUMENT = re.compile(r"[{\[]\s*[{\[\"]")
_DECODER = json.JSONDecoder(strict=False)


def _as_text(value: Any) -> str:
    """The strings of a document, its files in fences; empty where none of them speaks of a candidate."""
    texts = [_normal(text) for text in _strings(value)]
    if not any("ModelNew" in text for text in texts):
        return ""
    fenced = (f"```python\n{text}\n```" if defines_model_new(text) else text for text in texts)
    return "\n{}\n".format("\n\n".join(fenced))


def _strings(value: Any) -> Iterator[str]:
    """The strings of a JSON document in their order, those of a document in a string among them, as the arguments of a
    function are. Lines in a list are one text, and a section's name is a heading."""
    left = [value]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            for name, part in reversed(value.items()):
                left += [part, f"## {name}"] if name in NAMES else [part]
        elif isinstance(value, list) and all(isinstance(line, str) and "\n" not in line[:-1] for line in value):
            yield "\n".join(line.removesuffix("\n") for line in value)
        elif isinstance(value, list):
            left.extend(reversed(value))
        elif isinstance(value, str):
            inner = _loaded(value) if value.lstrip().startswith("{") else None
            if inner is None:
                yield value
            else:
                left.append(inner)


def _loaded(text: str) -> Any:
    """The value of a JSON document, whose strings may hold line ends, or of one as Python writes it; None where it is
    none."""
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return literal(text) if text[:1] in "{[" else None


def _normal(text: str) -> str:
    """Line ends and blanks as Python has them, nothing that cannot be written as UTF-8, no GAP, no escapes of a whole
    text."""
    if "&" in text and IS_ESCAPED.fullmatch(text):
        text = html.unescape(text)
    if "\\n" in text and "\n" not in (bare := text.strip()) and bare[:1] not in "{[":
        escaped = _loaded(f'"{bare}"')  # for JSON as a whole, without its quotes
        text = escaped if isinstance(escaped, str) else text
    text = text.encode("utf-8", "replace").decode().replace("\r\n", "\n").replace("\r", "\n")
    return _without_stops(text.translate(_BLANKS))


_BLANKS = str.maketrans("\u00a0\u2007\u202f\u3000", "    ", f"{GAP}\u200b\u2060\ufeff")
"""Characters that look like a blank, and some that cannot be seen: no Python has them but in its strings."""


def _without_stops(text: str) -> str:
    """A text without the tokens that end a message, which some servers leave in it."""
    while stop := _STOP.search(text := text.rstrip(), max(0, len(text) - 60)):
        text = text[: stop.start()]
    return text


_STOP = re.compile(r"(?:<[|｜][\w▁]{1,40}[|｜]>|</s>|<eos>|<end_of_turn>|<turn\|>)\Z")
REFUSAL_CHARACTERS = 400
"""A refusal stands at the beginning, and has no sections."""
_REFUSAL = re.compile(
    r"\bI(?: am|['’]m)? (?:really |very |so )?sorry\b"
    r"|\b(?:I|we)(?: can(?:not|['’]t| not)| won['’]t| will not| must decline)\b"
    r"|\b(?:I|we)(?: am| are|['’]m|['’]re) (?:unable|not able)\b"
    r"|\bas an AI\b|\bagainst (?:my|our) (?:policy|policies|guidelines)\b",
    re.IGNORECASE,
)
