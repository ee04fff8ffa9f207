"""Two hundred replies with what is right for each, put together from parts written by hand.

A label follows from how a reply was made, never from the parser.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reply_parts import DECOYS, FENCES, FILES, HEADS, PLAIN, PROSE, TAILS, THOUGHTS, Piece, fenced

from cuda_l1.prompts.reply import ReplyKind
from cuda_l1.types import ReplyProblem

USUAL = FENCES[0]


@dataclass(frozen=True)
class Labelled:
    """A reply, and what must be made of it."""

    name: str
    pieces: tuple[Piece, ...]
    source: str | None
    problem: ReplyProblem | None
    kind: ReplyKind = "contrastive"
    finish_reason: str = "stop"
    line_end: str = "\n"

    @property
    def text(self) -> str:
        return "\n".join(piece.text for piece in self.pieces).replace("\n", self.line_end) + self.line_end


def labelled_replies() -> list[Labelled]:
    """All of them; names are unique."""
    return [*_answers(), *_bad()]


def _sections(number: int, *, decoy: Sequence[Piece] = (), design: Sequence[Piece] = ()) -> list[Piece]:
    """Analysis, design, and the heading of the third section."""
    first, second, third = HEADS[number % len(HEADS)]
    return [
        *(Piece("head", first), Piece("prose", PROSE[number % len(PROSE)]), *decoy, Piece("prose", "")),
        *(Piece("head", second), Piece("prose", PROSE[(number + 1) % len(PROSE)]), *design, Piece("prose", "")),
        Piece("head", third),
    ]


def _answers() -> Iterator[Labelled]:
    """Replies with one answer. The numbers of ways have no common divisor, so that all ways meet."""
    for number in range(100):
        file = FILES[number % len(FILES)]
        body = [
            *THOUGHTS[number % len(THOUGHTS)],
            *_sections(number, decoy=DECOYS[number // 2 % len(DECOYS)]),
            Piece("prose", "The file:" if number % 3 else ""),
            *fenced(file, FENCES[number % len(FENCES)]),
            *TAILS[number // 3 % len(TAILS)],
        ]
        end = "\r\n" if number % 10 == 9 else "\n"
        reason = ("stop", "", "length")[number % 3]
        yield Labelled(f"answer-{number}", tuple(body), file, None, finish_reason=reason, line_end=end)
    for number, fence in enumerate(FENCES):
        file = FILES[(number + 3) % len(FILES)]
        body = [*THOUGHTS[(number + 1) % len(THOUGHTS)], Piece("prose", PROSE[0]), *fenced(file, fence)]
        yield Labelled(f"one-shot-{number}", tuple(body), file, None, kind="one-shot")
        yield Labelled(f"without-sections-{number}", tuple(body[-4:]), file, None)
    for number in range(4):
        twice = [
            *_sections(number),
            *fenced(PLAIN, USUAL),
            Piece("prose", "Again:"),
            *fenced(PLAIN, FENCES[number + 1]),
        ]
        yield Labelled(f"the-same-twice-{number}", tuple(twice), PLAIN, None)
    for number, file in enumerate((FILES[0], FILES[1], FILES[3], FILES[4])):
        bare = (*_sections(number), Piece("file", file))
        yield Labelled(f"no-fence-{number}", bare, file, None)


def _bad() -> Iterator[Labelled]:
    """Replies without one."""
    for family in (_cut, _thought_only, _several, _misplaced, _not_a_file, _broken, _refused, _talk):
        yield from family()


def _cut() -> Iterator[Labelled]:
    for number, file in enumerate(FILES):
        lines = file.split("\n")
        part = "\n".join(lines[: len(lines) * (number % 2 + 1) // 3 + 1])
        body = (*_sections(number), *fenced(part, FENCES[number])[:2])
        yield Labelled(f"cut-in-file-{number}", body, None, "cut-off", finish_reason=("length", "")[number % 2])
    whole = (*_sections(0), *fenced(PLAIN, USUAL)[:2])
    yield Labelled("cut-before-the-closing-fence", whole, None, "cut-off", finish_reason="")
    for number in range(3):
        early = tuple(_sections(number)[: 2 + 2 * number])
        yield Labelled(f"cut-early-{number}", early, None, "cut-off", finish_reason="length")
    for number in (1, 5, 6, 8):
        unclosed = (*THOUGHTS[number][:-1], *_sections(number), *fenced(PLAIN, USUAL))
        yield Labelled(f"thought-unclosed-{number}", unclosed, None, "cut-off", finish_reason="")
    nested = (Piece("tag", "<think>"), Piece("tag", "<think>"), Piece("tag", "</think>"), *fenced(PLAIN, USUAL))
    yield Labelled("thought-unclosed-nested", nested, None, "cut-off")
    second = (*_sections(0), *fenced(PLAIN, USUAL), Piece("prose", "Better:"), *fenced(FILES[1], USUAL)[:2])
    yield Labelled("second-file-cut", second, None, "cut-off", finish_reason="length")


def _thought_only() -> Iterator[Labelled]:
    for number in (1, 2, 3, 6, 7):
        kind: ReplyKind = "one-shot" if number % 2 else "contrastive"
        yield Labelled(f"only-a-thought-{number}", THOUGHTS[number], None, "empty", kind=kind)
    for number, text in enumerate(("", " \n\t\n")):
        yield Labelled(f"empty-{number}", (Piece("prose", text),), None, "empty")
    for number in (1, 2, 4, 7):
        body = (*THOUGHTS[number], *_sections(number), Piece("prose", "As I said above."))
        yield Labelled(f"file-only-in-thought-{number}", body, None, "no-code")
    head, tail = PLAIN.split("\n\n\n")
    for number, tags in enumerate((("<think>", "</think>"), ("[THINK]", "[/THINK]"))):
        middle = f"{head}\n{tags[0]}\nshould it be relu?\n{tags[1]}\n{tail}"
        body = (*_sections(number), *fenced(middle, USUAL, "other"))
        yield Labelled(f"thought-within-file-{number}", body, None, "no-code")


def _several() -> Iterator[Labelled]:
    for number in range(5):
        one, other = FILES[number], FILES[number + 1]
        body = (*_sections(number), *fenced(one, USUAL), Piece("prose", "Or:"), *fenced(other, FENCES[number]))
        yield Labelled(f"two-files-{number}", body, None, "several-blocks")
    changed = PLAIN.replace("relu", "gelu")
    body = (Piece("prose", "Two ways."), *fenced(PLAIN, USUAL), *fenced(changed, FENCES[1]))
    yield Labelled("two-files-one-shot", body, None, "several-blocks", kind="one-shot")
    yield Labelled("two-files-without-sections", body, None, "several-blocks")
    again = (*_sections(0), *fenced(PLAIN, USUAL), *_sections(1), *fenced(changed, USUAL))
    yield Labelled("the-whole-answer-twice", again, None, "several-blocks")


def _misplaced() -> Iterator[Labelled]:
    block = fenced(PLAIN, USUAL, "decoy")
    for number in range(4):
        analysis = (*_sections(number, decoy=block), Piece("prose", "See above."))
        yield Labelled(f"file-in-analysis-{number}", analysis, None, "wrong-sections")
        design = (*_sections(number, design=block), Piece("prose", "See above."))
        yield Labelled(f"file-in-design-{number}", design, None, "wrong-sections")
        yield Labelled(
            f"no-third-section-{number}", tuple(_sections(number, design=block)[:-1]), None, "wrong-sections"
        )
    first = (*block, Piece("prose", "Now the reasons."), *_sections(2))
    yield Labelled("file-before-the-sections", first, None, "wrong-sections")
    yield Labelled("only-analysis", tuple(_sections(0)[:3]), None, "wrong-sections")
    order = (*_sections(0)[-1:], Piece("prose", "Later."), *_sections(0)[:2], *block)
    yield Labelled("sections-turned-round", order, None, "wrong-sections")


def _not_a_file() -> Iterator[Labelled]:
    texts = (
        PLAIN.replace("ModelNew", "Model"),
        PLAIN.replace("class ModelNew", "class Model  :").replace("(torch.nn.Module):", "\n    name = 'ModelNew'"),
        "__global__ void f(float* x) { x[0] = 1; }",
        "from fast import ModelNew",
        "def build():\n    class ModelNew:\n        pass",
        "# class ModelNew: see above\nx = 1",
        "{}",
    )
    for number, text in enumerate(texts):
        label = FENCES[6] if text.startswith("__global__") else USUAL
        body = (*_sections(number), *fenced(text, label, "other"))
        yield Labelled(f"no-model-new-{number}", body, None, "no-model-new")


def _broken() -> Iterator[Labelled]:
    texts = (
        PLAIN.replace("relu(x)", "relu(x"),
        PLAIN.replace("    def", "  \t def").replace("        return", "\treturn"),
        PLAIN.replace("import torch", "import torch as"),
        CUT_STRING,
        PLAIN.replace("return torch", "return = torch"),
        "+" + PLAIN.replace("\n", "\n+"),
        PLAIN + "...and the rest as before\n",
        PLAIN.replace("forward(self, x)", "forward(self, x"),
    )
    for number, text in enumerate(texts):
        body = (*_sections(number), *fenced(text, (USUAL, FENCES[3])[number % 2], "other"))
        yield Labelled(f"syntax-error-{number}", body, None, "syntax-error")


CUT_STRING = PLAIN.replace("import torch\n", 'import torch\n\nSOURCE = """\nvoid f();\n')


def _refused() -> Iterator[Labelled]:
    said = (
        "I'm sorry, but I can't help with that.",
        "I cannot write this kernel.",
        "I am unable to assist with this request.",
        "As an AI language model, I do not write native code.",
        "Sorry. I can’t do this, it is against my guidelines.",
    )
    for number, text in enumerate(said):
        yield Labelled(f"refusal-{number}", (*THOUGHTS[number], Piece("prose", text)), None, "refusal")
    yield Labelled("refusal-by-the-server", (Piece("prose", "Well,"),), None, "refusal", finish_reason="content_filter")


def _talk() -> Iterator[Labelled]:
    for number, prose in enumerate(PROSE[:3]):
        kind: ReplyKind = "one-shot" if number % 2 else "contrastive"
        yield Labelled(f"talk-{number}", (*THOUGHTS[number], Piece("prose", prose)), None, "no-code", kind=kind)
    yield Labelled("empty-block", (*_sections(0), Piece("fence", "```python"), Piece("fence", "```")), None, "no-code")
    yield Labelled("sections-without-code", (*_sections(1), Piece("prose", "Use `torch.relu`.")), None, "no-code")
