"""Labelled replies, damaged at random, with what may be made of them; nothing here asks the parser.

Each kind of damage knows what it leaves right: prose that is rewritten changes nothing, a reply that ends early holds
its file or none, a file whose lines are changed is that other file or none, and of two replies joined at most one.
"""

from __future__ import annotations

import ast
import random
import string
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from labelled_replies import Labelled
from reply_parts import DECOY, THOUGHT, Piece

from cuda_l1.prompts.reply import ParsedReply, ReplyKind

LETTERS = string.ascii_letters + string.digits + " .,;()=+'\"éß→中\t"
"""Letters for rewriting: none of a fence, a heading or a tag."""
SIGNS = ("```", "```python", "~~~", "````", "<think>", "</think>", "[THINK]", "## Code Implementation",
         "## Performance Analysis", "<|channel|>final<|message|>", "> ", "\0", "\ud800", "1. ```")  # fmt: skip
MARKED = ("ModelNew:  # a thought", "ModelNew:  # an earlier variant")
"""What stands in the first lines of THOUGHT and DECOY."""
assert MARKED[0] in THOUGHT and MARKED[1] in DECOY


@dataclass(frozen=True)
class Damaged:
    """A damaged reply."""

    of: str
    damage: str
    text: str
    kind: ReplyKind
    finish_reason: str
    allowed: frozenset[str | None] | None
    """The sources that may be found; None: any that stands in the text, see `wrong`."""

    def wrong(self, found: ParsedReply) -> str | None:
        """What is wrong with what was found; None where nothing is."""
        if (found.source is None) == (found.problem is None):
            return "neither or both of source and problem"
        if self.allowed is not None:
            return None if found.source in self.allowed else "another source than may be found"
        return None if found.source is None else _strange(found.source, self.text)


def damaged(replies: Sequence[Labelled], count: int, seed: int) -> list[Damaged]:
    """So many, every reply and every kind of damage in turn; the same for the same seed."""
    rng = random.Random(seed)
    kinds = list(DAMAGES.items())
    made = []
    for number in range(count):
        reply = replies[number % len(replies)]
        name, damage = kinds[number // len(replies) % len(kinds)]
        pieces, allowed = damage(reply, replies, rng)
        text = replace(reply, pieces=tuple(pieces)).text
        reason = "length" if damage is _cut else reply.finish_reason
        made.append(Damaged(reply.name, name, text, reply.kind, reason, allowed))
    return made


Made = tuple[list[Piece], frozenset[str | None] | None]


def _prose(reply: Labelled, others: Sequence[Labelled], rng: random.Random) -> Made:
    """Words are rewritten, where nothing but words stands."""
    pieces = [
        piece._replace(text=_rewritten(piece.text, rng)) if piece.role == "prose" and piece.text else piece
        for piece in reply.pieces
    ]
    return pieces, frozenset({reply.source})


def _rewritten(text: str, rng: random.Random) -> str:
    words = ["word " + "".join(rng.choices(LETTERS, k=rng.randrange(40))) for _ in range(rng.randrange(1, 4))]
    return "\n".join([text, *words])


def _cut(reply: Labelled, others: Sequence[Labelled], rng: random.Random) -> Made:
    """The reply ends somewhere; before the end of its file's closing line there is no answer."""
    text = reply.text[: rng.randrange(len(reply.text))].replace("\r\n", "\n").replace("\r", "\n")
    pieces = [Piece("other", text)]
    ends = [n for n, piece in enumerate(reply.pieces) if piece.role == "file"]
    if reply.source is None or len(ends) > 1:
        return pieces, frozenset({None, *_files(reply)})
    if len(reply.pieces) == ends[0] + 1:
        return pieces, None  # without a fence a part of the file may be one, too
    before = "\n".join(piece.text for piece in reply.pieces[: ends[0] + 2])
    return pieces, frozenset({None, reply.source} if len(text) >= len(before.rstrip(" ~`")) else {None})


def _lines(reply: Labelled, others: Sequence[Labelled], rng: random.Random) -> Made:
    """Lines of the file are lost, doubled, exchanged or rewritten."""
    at = next((n for n, piece in enumerate(reply.pieces) if piece.role == "file"), None)
    if at is None or reply.source is None or sum(piece.role == "file" for piece in reply.pieces) > 1:
        return _prose(reply, others, rng)
    lines = reply.source.rstrip("\n").split("\n")
    changed = _changed(lines, rng)
    written = reply.pieces[at].text.split("\n")
    lead = written[0].removesuffix(lines[0])
    pieces = list(reply.pieces)
    pieces[at] = Piece("file", "\n".join(f"{lead}{line}" if line else lead.rstrip() for line in changed))
    source = "\n".join(changed).strip("\n") + "\n"
    if any(line.lstrip().startswith(("```", "~~~")) for line in lines) or len(reply.pieces) == at + 1:
        return pieces, None  # a file with fences of its own, or without any around it
    return pieces, frozenset({source if _is_file(source) else None})


def _changed(lines: list[str], rng: random.Random) -> list[str]:
    changed = list(lines)
    for _ in range(rng.randrange(1, 4)):
        at, other = rng.randrange(len(changed)), rng.randrange(len(changed))
        way = rng.randrange(4)
        if way == 0 and len(changed) > 1:
            del changed[at]
        elif way == 1:
            changed.insert(at, changed[other])
        elif way == 2:
            changed[at], changed[other] = changed[other], changed[at]
        elif changed[at]:
            place = rng.randrange(len(changed[at]))
            changed[at] = changed[at][:place] + rng.choice(LETTERS.strip()) + changed[at][place + 1 :]
    return changed


def _signs(reply: Labelled, others: Sequence[Labelled], rng: random.Random) -> Made:
    """Fences, headings and tags appear anywhere, or lines vanish."""
    lines = "\n".join(piece.text for piece in reply.pieces).split("\n")
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(lines))
        if rng.random() < 0.3 and len(lines) > 1:
            del lines[at]
        else:
            lines.insert(at, rng.choice(SIGNS))
    return [Piece("other", "\n".join(lines))], None


def _joined(reply: Labelled, others: Sequence[Labelled], rng: random.Random) -> Made:
    """Another reply follows."""
    other = rng.choice(others)
    return [*reply.pieces, *other.pieces], frozenset({None, *_files(reply), *_files(other)})


def _files(reply: Labelled) -> set[str]:
    """The texts that are answers in a reply, also of one that has several, and so none."""
    return {
        _bare(piece.text) for piece in reply.pieces if piece.role in ("file", "decoy") and _is_file(_bare(piece.text))
    }


def _bare(text: str) -> str:
    """A text without what stands before each of its lines."""
    text = text.rstrip("\n")
    first = text.split("\n", 1)[0]
    lead = next((lead for lead in ("> ", "   ") if first.startswith(lead)), "")
    return (
        "\n".join(line.removeprefix(lead.rstrip() if not line.strip("> ") else lead) for line in text.split("\n"))
        + "\n"
    )


DAMAGES: dict[str, Callable[[Labelled, Sequence[Labelled], random.Random], Made]] = {
    "prose rewritten": _prose,
    "ends early": _cut,
    "file's lines changed": _lines,
    "signs inserted, lines lost": _signs,
    "two joined": _joined,
}


def _strange(source: str, text: str) -> str | None:
    """What a source must not be wherever the signs stand: no file, not in the text, half a thought."""
    if not _is_file(source):
        return "no complete file"
    written = text.encode("utf-8", "replace").decode().replace("\0", "")
    shown = {line.strip(" \t>") for line in written.splitlines()}
    if any(line.strip(" \t>") not in shown for line in source.splitlines()):
        return "lines that do not stand in the reply"
    return "the tags of a thought" if any(sign in source for sign in ("<think>", "</think>", "\0")) else None


def _is_file(source: str) -> bool:
    """Whether a text is Python that defines ModelNew on its own level, by executing nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(source)
            compile(source, "<file>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            return False
    names = {node.name for body in _bodies(tree) for node in body if isinstance(node, ast.ClassDef)}
    for body in _bodies(tree):
        for node in body:
            if isinstance(node, ast.Assign):
                names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return "ModelNew" in names


def _bodies(tree: ast.Module) -> list[list[ast.stmt]]:
    ifs = [node for node in tree.body if isinstance(node, ast.If)]
    return [tree.body, *(node.body for node in ifs), *(node.orelse for node in ifs)]
