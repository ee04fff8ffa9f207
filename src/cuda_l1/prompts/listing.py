"""Files as a notebook's cell, a shell script, an interpreter's session or an editor with line numbers shows them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

_CELL = re.compile(r"%%(?:writefile|file)[ \t]+(?!-)\S.*")
_HERE_DOCUMENT = re.compile(
    r"(?P<before>[^#]*?)<<(?P<dash>-?)[ \t]*(?P<quote>['\"]?)(?P<end>\w+)(?P=quote)(?P<after>.*)"
)
_WRITES_A_FILE = re.compile(
    r"\s*(?:cat\s*>\s*|tee\s+)(?P<quote>['\"]?)[\w./~+-]+\.py(?P=quote)\s*(?:>\s*/dev/null\s*)?"
)
"""A command without its here-document whose text becomes a file, and goes to no program and to no end of one."""
_EXPANDED = frozenset("$`\\")
"""What a shell changes in a here-document whose end mark is not quoted."""
_PROMPT = re.compile(r"(?:>>>|\.\.\.)(?: (?P<code>.*)|)")
_NUMBERED = re.compile(r"[ \t]*(?P<number>\d+)(?P<code>[ \t|:.)│].*|)")
_MARKED = re.compile(r"[ \t]*(?P<mark>[|:.)│])(?P<code>.*)")


def unlisted(text: str) -> str | None:
    """The file that such a text shows, ending with a line end; None where it shows none, or one that is not certain."""
    lines = text.strip("\n").split("\n")
    shown: Sequence[Callable[[list[str]], list[str] | None]] = (_of_cell, _of_script, _of_session, _of_editor)
    found = next((made for made in (read(lines) for read in shown) if made), None)
    return "\n".join(found).strip("\n") + "\n" if found else None


def _of_cell(lines: list[str]) -> list[str] | None:
    return lines[1:] if _CELL.fullmatch(lines[0].strip()) else None


def _of_script(lines: list[str]) -> list[str] | None:
    """The only here-document of a script; what else the script does is left out."""
    begins = [(at, found) for at, line in enumerate(lines) if (found := _HERE_DOCUMENT.fullmatch(line))]
    if not begins:
        return None
    at, opening = begins[0]
    if not _WRITES_A_FILE.fullmatch(f"{opening['before']} {opening['after']}"):
        return None
    end = next(
        (n for n in range(at + 1, len(lines)) if lines[n].strip("\t" if opening["dash"] else "") == opening["end"]),
        None,
    )
    if end is None or any(later > end for later, _ in begins):
        return None
    inner = [line.lstrip("\t") if opening["dash"] else line for line in lines[at + 1 : end]]
    return inner if opening["quote"] or not _EXPANDED & set("\n".join(inner)) else None


def _of_session(lines: list[str]) -> list[str] | None:
    """Nothing that the interpreter answered may stand in it."""
    found = [_PROMPT.fullmatch(line.rstrip()) for line in lines if line.strip()]
    return [line["code"] or "" for line in found if line] if all(found) else None


def _of_editor(lines: list[str]) -> list[str] | None:
    """Each line with its number, none left out; the marks behind the numbers are the same for all."""
    found = [_NUMBERED.fullmatch(line) for line in lines]
    numbers = [int(line["number"]) for line in found if line]
    if len(numbers) < len(lines) or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return None
    codes = [line["code"] for line in found if line]
    marked = [_MARKED.fullmatch(code) for code in codes if code.strip()]
    if all(marked) and len({line["mark"] for line in marked if line}) == 1:
        codes = [line["code"] if (line := _MARKED.fullmatch(code)) else "" for code in codes]
    margin = min((len(code) - len(code.lstrip()) for code in codes if code.strip()), default=0)
    return [code[margin:] for code in codes]
