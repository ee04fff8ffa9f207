"""What is taken for the answer of a reply, and the reasons where nothing is."""

from __future__ import annotations

import html
import itertools
import json
import time
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labelled_replies import Labelled, labelled_replies
from reply_mutations import DAMAGES, SIGNS, damaged

from cuda_l1.prompts.reply import ReplyKind, parse_reply, spoken
from cuda_l1.types import ReplyProblem

FILE = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
SECTIONS = "## Performance Analysis\nThe second is faster.\n\n## Algorithm Design\nFuse.\n\n## Code Implementation\n"


def fenced(text: str, label: str = "python", mark: str = "```") -> str:
    return f"{mark}{label}\n{text}{mark}\n"


def as_session(text: str) -> str:
    return "".join(f"{'...' if line[:1] in ' ' else '>>>'} {line}".rstrip() + "\n" for line in text.splitlines())


def numbered(text: str, form: str = "{number} {line}") -> str:
    return "".join(form.format(number=n, line=line) + "\n" for n, line in enumerate(text.splitlines(), 1))


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
        (SECTIONS + fenced(FILE + "return ModelNew\n"), "syntax-error"),
        (SECTIONS + fenced(FILE + "from __future__ import annotations\n"), "syntax-error"),
        (SECTIONS + fenced(f"cat > model.py << EOF\n# $1\n{FILE}EOF\n", "python"), "syntax-error"),
        (SECTIONS + fenced(f"cat > a.py << 'EOF'\n{FILE}EOF\ncat > b.py << 'END'\n{FILE}END\n", "sh"), "syntax-error"),
        *[
            (SECTIONS + fenced(f"{command}\n{FILE}EOF\n", "python"), "syntax-error")
            for command in (
                *("python - << 'EOF'", "python - << 'EOF' > log.py", "python - <<'EOF' | tee log.py"),
                *("cat <<'EOF' | python - > log.py", "cat >> model.py <<'EOF'", "cat > model.cu <<'EOF'"),
            )
        ],
        (SECTIONS + fenced("1:" + numbered(FILE, "{number}| {line}")[2:]), "syntax-error"),
        (SECTIONS + fenced(f"%%writefile -a model.py\n{FILE}"), "syntax-error"),
        (SECTIONS + fenced(as_session(FILE) + "'done'\n"), "syntax-error"),
        (SECTIONS + fenced(numbered(FILE).replace("\n3", "\n4")), "syntax-error"),
        (SECTIONS + fenced(FILE + "ModelNew = None\n"), "no-model-new"),
        (SECTIONS + fenced(FILE + "ModelNew: type = 0\n"), "no-model-new"),
        (SECTIONS + fenced(FILE + "del ModelNew\n"), "no-model-new"),
        (SECTIONS + fenced("ModelNew = None\n"), "no-model-new"),
        ("```python\n" + FILE + fenced(FILE.replace("return x", "return -x")), "syntax-error"),
        ("<code>" + FILE + "</code>\n<code>" + FILE.replace("return x", "return -x") + "</code>", "several-blocks"),
        ("```python\n" + FILE + "1. ```\nx = 1\n```\n", "syntax-error"),
        ("<code>\n" + FILE, "no-code"),
        (json.dumps({"a": FILE, "b": FILE.replace("return x", "return -x")}), "several-blocks"),
        (json.dumps({"code": FILE})[:-9], "no-code"),
        (json.dumps({"call": [{"code": FILE}, {"code": FILE.replace("return x", "return -x")}]}), "several-blocks"),
        (json.dumps({"why": {"ModelNew": ["fuses"]}}), "no-code"),
        (json.dumps([FILE, FILE.replace("return x", "return -x")]), "several-blocks"),
        (
            json.dumps({"code": FILE}) + "\n" + json.dumps({"code": FILE.replace("return x", "return -x")}),
            "several-blocks",
        ),
        ("analysisA draft:\n" + fenced(FILE), "cut-off"),
        (SECTIONS + fenced("analysis = 1\nassistantfinal = 2\n"), "no-model-new"),
        ("```\nvoid f();\n```\n" + fenced(FILE) + fenced(FILE.replace("return x", "return -x")), "several-blocks"),
        (SECTIONS + fenced("-x\n+class ModelNew:\n+    pass\n", "diff"), "no-code"),
        (html.escape(SECTIONS) + "<br>" + fenced(html.escape(FILE.replace("x)", "x) -> int"))), "syntax-error"),
        (SECTIONS + fenced(FILE.replace("(self, x)", "（self，x）")), "syntax-error"),
        ("So:\n" + fenced("# TODO\n" + FILE) + fenced(FILE.replace("return x", "return -x")), "several-blocks"),
        ("<|channel>thought\n" + fenced(FILE) + "<channel|>I cannot help.", "refusal"),
        ("<scratchpad>" + fenced(FILE) + "</scratchpad>", "empty"),
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
        SECTIONS + fenced(FILE) + fenced(FILE.replace("\n", "  \n")),
        fenced(FILE).rstrip() + " It fuses `x`.\nDone.\n" + fenced("pip x\n", ""),
        fenced(FILE).rstrip() + "<|im_end|>\n<|im_start|>user\nthanks<|im_end|>",
        fenced("void f();\n", "cpp").rstrip() + " (the kernel)\n\n" + fenced(FILE),
        "```python\n" + FILE.rstrip() + "```\n\nDone.",
        "```python\n" + "".join(f"    {line}\n" if line else "\n" for line in FILE.splitlines()) + "```",
        fenced(fenced(FILE), label="text"),
        fenced(FILE) + "<｜end▁of▁sentence｜>",
        "I use no `<think>` here.\n" + fenced(FILE),
        "<think>no `</think>` yet " + fenced("ModelNew = 1\n") + "</think>" + fenced(FILE),
        "<answer>\n<code>\n" + FILE + "</code>\n</answer>",
        '<file path="a.py">' + FILE.rstrip() + "</file>\nDone.",
        "<code>\n" + fenced(FILE) + "</code>",
        json.dumps({"reason": "fuses", "code": FILE}),
        "So:\n" + fenced(json.dumps({"why": "ModelNew fuses", "code": FILE}, indent=1) + "\n", "json"),
        json.dumps({"n": 1, "answer": fenced(FILE)}),
        json.dumps([FILE]),
        json.dumps(fenced(FILE)),
        json.dumps({"answer": {"files": [{"path": "model.py", "text": FILE}]}}),
        json.dumps({"name": "write", "arguments": json.dumps({"path": "model.py", "content": FILE})}),
        "<tool_call>\n" + json.dumps({"name": "submit", "arguments": {"code": FILE}}) + "\n</tool_call>",
        "<tool_call>\n<function=submit>\n<parameter=code>\n" + FILE + "</parameter>\n</function>\n</tool_call>",
        '<pre><code class="language-python">' + FILE + "</code></pre>",
        (SECTIONS + fenced(FILE)).replace("    ", "\u00a0\u00a0\u00a0 ").replace("## ", "##\u00a0"),
        SECTIONS + "\u200b" + fenced(FILE),
        "```python " + FILE + "```",
        "```" + FILE.rstrip() + "```",
        "```python from the answer before\n" + FILE + "```",
        SECTIONS + fenced(FILE) + "In full, with a comment:\n" + fenced("# fused\n" + FILE),
        "The change:\n" + fenced("class ModelNew(nn.Module):\n    pass\n") + "The file:\n" + fenced(FILE),
        "<|channel>thought\n" + fenced(FILE.replace("x)", "y)")) + "<channel|>" + fenced(FILE) + "<turn|>",
        "<scratchpad>" + fenced(FILE.replace("x)", "y)")) + "</scratchpad>" + fenced(FILE),
        "```\n\n" + SECTIONS + fenced(FILE),
        SECTIONS + "```\n" + fenced(FILE) + "```\n",
        SECTIONS + "```python\n" + fenced(FILE),
        SECTIONS + fenced("python\n" + FILE, label=""),
        SECTIONS + fenced(FILE, mark="'''"),
        "完整代码如下：" + fenced(FILE),
        "The file: " + fenced(FILE, label=""),
        "<answer>" + fenced(FILE, label="").rstrip() + "</answer>",
        "<pre><code>" + html.escape(FILE) + "</code></pre>",
        "<code><![CDATA[\n" + FILE + "]]></code>",
        "[PYTHON]\n" + FILE + "[/PYTHON]\n",
        '<ns:final-code id="1">\n' + FILE + "</ns:final-code>",
        "analysisA draft:\n" + fenced(FILE.replace("x)", "y)")) + "assistantfinal" + SECTIONS + fenced(FILE),
        "Sure:\n" + json.dumps({"code": FILE}) + "\nIt fuses.",
        "[TOOL_CALLS] " + json.dumps([{"name": "submit", "arguments": {"code": FILE}}]),
        json.dumps({"ModelNew": 1}) + json.dumps({"code": FILE}),
        json.dumps({"code": FILE.splitlines()}),
        json.dumps({"cells": [{"source": FILE.splitlines(keepends=True)}]}),
        json.dumps({"Performance Analysis": fenced(FILE.replace("x)", "y)")), "Code Implementation": FILE}),
        str({"code": FILE}),
        '{"code": """\n' + FILE + '"""}',
        json.dumps(SECTIONS + fenced(FILE))[1:-1],
    ],
)  # fmt: skip
def test_the_one_file_is_found(reply: str) -> None:
    assert parse_reply(reply)[2:5] == (FILE, None, "")


@pytest.mark.parametrize(
    ("reply", "missing"),
    [
        ("The file: " + fenced(FILE), 3),
        (SECTIONS.rstrip() + ": " + fenced(FILE), 0),
        (SECTIONS.replace("## Code Implementation", "**3. Final Code**") + fenced(FILE), 0),
        (SECTIONS.replace("Code Implementation", "Implementation") + fenced(FILE), 0),
        (SECTIONS.replace("Code Implementation", "Final Optimized CUDA Code Implementation") + fenced(FILE), 0),
        (SECTIONS.replace("## Code Implementation", "**Solution:**") + fenced(FILE), 0),
        ("## Algorithm Design\nFuse.\n## Optimized Triton Kernel\n" + fenced(FILE), 1),
        ("Sure!\n" + fenced(SECTIONS + fenced(FILE), label="markdown") + "Tell me how it went.", 0),
        (fenced(SECTIONS + fenced(FILE), label="md", mark="````"), 0),
        ("<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>" + fenced(FILE), 3),
        (fenced("Notes.\n", label="markdown") + fenced(FILE), 3),
    ],
)
def test_the_file_is_found_however_it_is_announced(reply: str, missing: int) -> None:
    found = parse_reply(reply)
    assert (found.source, len(found.missing)) == (FILE, missing)


@pytest.mark.parametrize(
    "heads",
    [
        ("## 🔍 Performance Analysis", "## 🧠 Algorithm Design", "## 💻 Code Implementation"),
        ("1️⃣ Performance Analysis", "2️⃣ Algorithm Design", "3️⃣ Code Implementation"),
        ("**Performance Analysis**：", "**Algorithm Design**：", "**Code Implementation**："),
        ("## 1．Performance Analysis", "## 2．Algorithm Design", "## 3．Code Implementation"),
        ("【Performance Analysis】", "【Algorithm Design】", "【Code Implementation】"),
        ("🚀 **Performance Analysis** 🚀", "🧠 **Algorithm Design**", "💻 **Code**"),
        ("<h2>Performance Analysis</h2>", "<h2>Algorithm Design</h2>", "<h2>Code Implementation</h2>"),
        ("### A. Performance Analysis", "### B. Algorithm Design", "### C. Code Implementation"),
        ("Phase 1: Performance Analysis", "Phase 2: Algorithm Design", "Phase 3: Code Implementation"),
    ],
)
def test_headings_with_pictures_and_other_alphabets_signs(heads: tuple[str, str, str]) -> None:
    analysis, design, code = heads
    quoted = fenced(FILE.replace("return x", "return -x"))
    found = parse_reply(f"{analysis}\nFast.\n{quoted}\n{design}\nFuse.\n{code}\n{fenced(FILE)}")
    assert (found.source, found.design, found.missing) == (FILE, "Fuse.", ())


def test_a_reply_that_was_escaped_for_html_as_a_whole() -> None:
    file = FILE.replace("return x", "return x if x < 1 and \"a\" > 'b' else x & 1")
    assert parse_reply(html.escape(SECTIONS + fenced(file))).source == file
    thought = "<think>" + fenced(FILE) + "</think>"
    assert parse_reply(html.escape(thought + fenced(file))).source == file
    entities = FILE.replace("return x", 'return "&lt;"')
    assert parse_reply(SECTIONS + "a < b & c\n" + fenced(entities)).source == entities


def test_a_passage_that_derives_from_what_the_reference_has_is_a_file_behind_it() -> None:
    first, second = ("class ModelNew(Model):\n    x = 1\n", "class ModelNew(Model):\n    x = 2\n")
    text = SECTIONS + fenced(first) + fenced(second)
    assert parse_reply(text, kind="compact", reference="class Model: ...\n").problem == "several-blocks"
    text = SECTIONS + fenced(first) + fenced(second.replace("Model)", "nn.Module)"))
    source = parse_reply(text, kind="compact", reference="class Model: ...\n").source
    assert source is not None and source.endswith(first)


@pytest.mark.parametrize(
    "listing",
    [
        fenced(f"cat > model.py <<'EOF'\n# $1\n{FILE}EOF\n", "bash").replace("# $1\n", ""),
        fenced(f"mkdir -p out\ncat > model.py << EOF\n{FILE}EOF\npython model.py\n", "python"),
        fenced("tee model.py <<-'END' >/dev/null\n\t" + FILE.replace("\n", "\n\t") + "END\n", ""),
        fenced("%%writefile model.py\n" + FILE),
        fenced("%%file src/model.py\n\n" + FILE, ""),
        fenced(as_session(FILE)),
        as_session(FILE),
        fenced(numbered(FILE)),
        fenced(numbered(FILE * 3, "{number:>4}  {line}")),
        fenced(numbered(FILE, "{number:02d}| {line}").replace("| \n", "|\n")),
        fenced(numbered(FILE, "{number}:{line}"), "text"),
        fenced(numbered(FILE, "{number:4d}   │ {line}"), "text"),
        fenced(numbered(FILE, "{number:>3} | {line}"), ""),
        fenced(numbered(FILE, "{number:6d}\t{line}")),
    ],
)
def test_a_file_as_something_else_shows_it(listing: str) -> None:
    source = parse_reply(SECTIONS + listing, finish_reason="stop").source
    assert source is not None and source.startswith(FILE[:12]) and source.endswith(FILE)


@pytest.mark.parametrize(
    "file",
    [
        "ModelNew = None\n" + FILE,
        "import torch\n\ntry:\n    import triton\n    class ModelNew: ...\nexcept ImportError:\n    ModelNew = None\n",
        FILE + "if not torch.cuda.is_available():\n    ModelNew = None\n",
        "EOF = 1 << 3\n1 << EOF\n" + FILE,
        "from __future__ import annotations\n" + FILE,
        "import torch\n\nFAST, ModelNew = True, torch.nn.ReLU\n",
        "import torch\n\ntry:\n    import triton\nexcept ImportError:\n    class ModelNew: ...\n",
        "import torch\n\nmatch torch.version.cuda:\n    case None:\n        class ModelNew: ...\n",
    ],
)
def test_a_class_that_may_be_there_at_the_end_is_one(file: str) -> None:
    assert parse_reply(SECTIONS + fenced(file)).source == file


def test_an_answer_that_is_no_python_behind_its_reference_is_none() -> None:
    late = fenced("from __future__ import annotations\n" + FILE)
    found = parse_reply(SECTIONS + late, kind="compact", reference="class Model: ...\n")
    assert (found.source, found.problem) == (None, "syntax-error") and "beginning" in found.detail


def test_a_heading_for_short_counts_only_where_the_whole_one_is_missing() -> None:
    other = "### Implementation\nof before:\n" + fenced(FILE.replace("return x", "return -x"))
    assert parse_reply(SECTIONS.replace("Fuse.", other) + fenced(FILE)).source == FILE
    analysis = "## Performance Analysis\n" + other + "## Algorithm Design\nFuse.\n"
    assert parse_reply(analysis + "## Code\n" + fenced(FILE)).source == FILE
    assert parse_reply(analysis).problem == "wrong-sections"


@pytest.mark.parametrize(
    "notes",
    [
        'CUDA = """\n```cuda\n__global__ void f() {}\n```\n"""\n',
        '"""\n``` is a fence\n```"""\n',
        "# a = 1 # ```\n#```\n",
    ],
)
def test_fences_inside_the_file_do_not_end_it(notes: str) -> None:
    file = notes + FILE
    assert parse_reply(SECTIONS + fenced(file)).source == file


@pytest.mark.parametrize("prose", ["The file:\n\n", "# The file\n\nFrom the top.\n", "Import it as `m`:\n"])
def test_a_file_without_a_fence_stands_behind_prose_where_the_model_ended_it(prose: str) -> None:
    indented = "".join(f"    {line}" for line in FILE.splitlines(keepends=True))
    for reply in (prose + FILE, prose + indented, SECTIONS + prose + FILE):
        assert parse_reply(reply, finish_reason="stop").source == FILE
        assert parse_reply(reply).problem == parse_reply(reply + "It fuses.", finish_reason="stop").problem == "no-code"
    two = f"It was:\n\n{FILE}\nIt is:\n\n{FILE}"
    assert parse_reply(two, finish_reason="stop").problem == "no-code"
    named = FILE + '\nprint(["ModelNew"], {"ModelNew": 1})\n'
    assert parse_reply(prose + named, finish_reason="stop").source == named


LABELLED = labelled_replies()


@pytest.mark.parametrize("reply", LABELLED, ids=lambda reply: reply.name)
def test_labelled_replies(reply: Labelled) -> None:
    found = parse_reply(reply.text, kind=reply.kind, finish_reason=reply.finish_reason)
    assert (found.source, found.problem) == (reply.source, reply.problem), found.detail


def test_there_are_two_hundred() -> None:
    assert len({reply.text + reply.finish_reason + reply.kind for reply in LABELLED}) == len(LABELLED) >= 200
    assert {reply.problem for reply in LABELLED} == {None, *get_args(ReplyProblem)}


def test_damaged_replies_are_never_mistaken() -> None:
    """A few hundred; benchmarks/damaged_replies.py has ten thousand."""
    for each in damaged(LABELLED, 3 * len(LABELLED) * len(DAMAGES) // 5, seed=1):
        found = parse_reply(each.text, kind=each.kind, finish_reason=each.finish_reason)
        assert each.wrong(found) is None, (each.of, each.damage, each.wrong(found), each.text, found)


@pytest.mark.parametrize("kind", get_args(ReplyKind))
def test_a_reply_that_must_end_holds_nothing_where_it_met_its_limit(kind: ReplyKind) -> None:
    babble = SECTIONS + fenced(FILE) + "and then " * 200
    for reason in ("length", "max_tokens", "model_length"):
        found = parse_reply(babble, kind=kind, finish_reason=reason, must_end=True)
        assert (found.source, found.problem, found.detail) == (None, "cut-off", "the reply met its token limit")
    assert parse_reply(SECTIONS + fenced(FILE), finish_reason="length").source == FILE, (
        "some servers say so of a whole one"
    )
    assert parse_reply(SECTIONS + fenced(FILE), finish_reason="stop", must_end=True).source == FILE


@settings(max_examples=150)
@given(st.text(), st.sampled_from(get_args(ReplyKind)), st.sampled_from(["", "stop", "length", "content_filter"]))
def test_any_text_has_a_file_or_a_reason(text: str, kind: ReplyKind, finish_reason: str) -> None:
    found = parse_reply(text, kind=kind, finish_reason=finish_reason)
    assert (found.source is None) != (found.problem is None) and "\n" not in found.detail


@settings(max_examples=150)
@given(st.lists(st.sampled_from([*SIGNS, FILE, "x = 1", "</think>", "<thinking>", ""]), max_size=12))
def test_any_order_of_signs_has_a_file_or_a_reason(parts: list[str]) -> None:
    found = parse_reply("\n".join(parts))
    assert (found.source is None) != (found.problem is None)
    # What stands in one block with the file is part of it where it is Python: an assignment, a heading as a comment.
    assert found.source is None or (FILE in found.source and "```" not in found.source and "think" not in found.source)


@pytest.mark.parametrize("lead", ["1. ", "10) ", "- ", "   ", "\t"])
def test_a_file_under_the_number_of_a_list_keeps_its_indentation(lead: str) -> None:
    for indent in ("", " " * len(lead), lead if not lead.strip() else ""):
        lines = [indent + line if line else "" for line in FILE.splitlines()]
        found = parse_reply("\n".join([f"{lead}```python", *lines, f"{indent}```"]), kind="one-shot")
        assert found.source == FILE, (lead, indent)


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        ("<think>a</think>\nb", "b"),
        ("a\n</think>\nb\n<think>c</think>", "b"),
        ("<think>a", "<think>"),
        ("a<think>b", "a\n<think>"),
        ("a<think>b</think>c", "a\n<think></think>\nc"),
    ],
)
def test_what_is_kept_of_a_reply_holds_no_thought(reply: str, kept: str) -> None:
    assert spoken(reply) == kept


def test_what_is_kept_of_a_reply_is_read_as_the_whole_is() -> None:
    whole = [
        "```python\nimport torch\n<think>a loop?</think>\n" + FILE + "```\n",
        "Well.\n" + fenced(FILE) + "<think>or rather\n" + fenced(FILE.replace("return x", "return -x")),
        *(reply.text for reply in LABELLED),
        *(each.text for each in damaged(LABELLED, len(LABELLED), seed=2)),
    ]
    for text, reason in itertools.product(whole, ("", "stop", "length")):
        assert parse_reply(spoken(text), finish_reason=reason)[2:] == parse_reply(text, finish_reason=reason)[2:], text


@settings(max_examples=60)
@given(st.text(alphabet=st.characters(exclude_characters="`~<>[]◁▷|", exclude_categories=["Cs"])), st.booleans())
def test_what_is_thought_is_never_taken(words: str, closed: bool) -> None:
    thought = f"<think>\n{words}\n{fenced(FILE)}{words}\n" + ("</think>\n" if closed else "")
    assert parse_reply(thought + words.replace("\r", ""), kind="one-shot").source is None
    answer = parse_reply(thought + SECTIONS + fenced(FILE.replace("return x", "return 3")))
    assert (answer.source is not None) == closed and "return x" not in (answer.source or "")


@pytest.mark.parametrize(
    "text", ["```python\n" + "(" * 50_000, "`" * 100_000, "> " * 50_000 + "```", "<think>" * 20_000, "```\n" * 20_000,
             "```python\n" + "-" * 100_000 + "1\nModelNew\n```", "```python\nModelNew = " + "9" * 20_000 + "\n```",
             " " * 200_000 + "#", "#" * 100_000 + " Performance", "I " * 100_000, "</s>" * 30_000, "&amp;" * 50_000,
             '{"ModelNew":' * 20_000, "<a>" * 50_000, "<a" * 50_000, "</a>" * 50_000 + "x", "ModelNew" + "&" * 50_000]
)  # fmt: skip
def test_monstrous_replies_take_no_time(text: str) -> None:
    before = time.process_time()
    assert parse_reply(text).source is None
    assert time.process_time() - before < 10
