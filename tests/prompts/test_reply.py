"""What is taken for the answer of a reply, and the reasons where nothing is."""

from __future__ import annotations

import pytest

from cuda_l1.prompts.reply import parse_reply

FILE = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
SECTIONS = "## Performance Analysis\nThe second is faster.\n\n## Algorithm Design\nFuse.\n\n## Code Implementation\n"


def fenced(text: str, label: str = "python", mark: str = "```") -> str:
    return f"{mark}{label}\n{text}{mark}\n"


def test_the_three_sections() -> None:
    found = parse_reply(SECTIONS + fenced(FILE))
    assert found == ("The second is faster.", "Fuse.", FILE, None, "", ())


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("", "empty"),
        ("<think>what now</think>\n", "empty"),
        ("<think>" + SECTIONS + fenced(FILE), "cut-off"),
        ("<think>" + fenced(FILE) + "</think>I cannot help with that.", "refusal"),
        (SECTIONS + "```python\n" + FILE, "cut-off"),
        (SECTIONS + "Use a faster kernel.", "no-code"),
        (SECTIONS + fenced(FILE) + fenced(FILE.replace("return x", "return x + 0")), "several-blocks"),
        (SECTIONS.replace("Fuse.", fenced(FILE)) + "See above.", "wrong-sections"),
        ("## Performance Analysis\n" + fenced(FILE), "wrong-sections"),
        (SECTIONS + fenced(FILE.replace("ModelNew", "Model")), "no-model-new"),
        (SECTIONS + fenced(FILE.replace("return x", "return (x")), "syntax-error"),
    ],
)
def test_a_reply_without_a_file_has_a_reason(reply: str, problem: str) -> None:
    found = parse_reply(reply)
    assert (found.source, found.problem) == (None, problem)
    assert found.detail and "\n" not in found.detail


@pytest.mark.parametrize(
    "reply",
    [
        SECTIONS.replace("\n", "\r\n") + fenced(FILE).replace("\n", "\r\n"),
        SECTIONS + fenced(FILE, mark="~~~"),
        SECTIONS + fenced(FILE, mark="````"),
        SECTIONS + fenced(FILE, label="cuda"),
        SECTIONS + fenced(FILE, label=""),
        SECTIONS + "".join(f"   {line}\n" for line in fenced(FILE).splitlines()),
        SECTIONS + fenced(FILE) + fenced(FILE) + fenced("void f() {}\n", "cuda") + fenced("pip x\n", ""),
        SECTIONS.replace("Fuse.", fenced(FILE.replace("return x", "return 2 * x"))) + fenced(FILE),
        SECTIONS.replace("## ", "### 1. ").replace("Design\n", "Design:**\n") + fenced(FILE),
        "<think>" + fenced("x = 1\n") + "<think></think></think>" + SECTIONS + fenced(FILE),
        "no opening tag\n</think>\n" + SECTIONS + fenced(FILE),
        fenced(FILE),
    ],
)  # fmt: skip
def test_the_one_file_is_found(reply: str) -> None:
    assert parse_reply(reply)[2:5] == (FILE, None, "")


def test_fences_inside_the_file_do_not_end_it() -> None:
    file = 'CUDA = """\n```cuda\n__global__ void f() {}\n```\n"""\n' + FILE
    assert parse_reply(SECTIONS + fenced(file)).source == file
