"""Files as a notebook's cell, a shell script, an interpreter's session or an editor with line numbers shows them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

_CELL = re.compile(r"%%(?:writefile|file)[ \t]+(?!-a\b)\S.*")
_HERE_DOCUMENT = re.compile(
    r"(?=.*\btee\b|.*[^>]>[ \t]*\S)[^#]*<<(?P<dash>-?)[ \t]*(?P<quote>['\"]?)(?P<end>\w+)(?P=quote).*"
)
"""Its text goes to a file, and not to a program."""
_EXPANDED = frozenset("$`\\")
"""What a shell changes in a here-document whose end mark is not quoted."""
_PROMPT = re.compile(r"(?:>>>|\.\.\.)(?: (?P<code>.*)|)")
_MARKS = "|:.)│"
_NUMBERED = re.compile(rf"[ \t]*(?P<number>\d+)(?P<code>[ \t{_MARKS}].*|)")


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
    if all(code[0] in _MARKS for code in codes if code.strip()):
        codes = [code[1:] for code in codes]
    margin = min((len(code) - len(code.lstrip()) for code in codes if code.strip()), default=0)
    return [code[margin:] for code in codes]
