"""Replies of models that repeat themselves without end, and of servers that wish us ill, are read in moments."""

from __future__ import annotations

import pytest

from cuda_l1.prompts.reply import parse_reply

MANY = 200_000
FENCE = "```"
ENDLESS = {
    "blanks": " " * MANY,
    "a tag that never ends": "<" + " " * MANY,
    "two halves of a tag": "<" + " " * (MANY // 2) + "/" + " " * (MANY // 2),
    "tags": "<think>" * (MANY // 7),
    "ends of thoughts": "</think>" * (MANY // 8),
    "marks of a heading": "#" * MANY,
    "blanks before a heading": " " * MANY + "## Code Implementation",
    "blanks in a heading": "## Code Implementation" + " " * MANY + "x",
    "headings": "## Code Implementation\n" * (MANY // 23),
    "quotations": "> " * (MANY // 2),
    "line ends": "\n" * MANY,
    "blocks": f"{FENCE}\nx\n{FENCE}\n" * (MANY // 10),
    "fences": f"{FENCE}\n" * (MANY // 4),
    "blocks of no Python": f"{FENCE}python\nx = (\n{FENCE}\n" * (MANY // 20),
    "a file of many megabytes": f"{FENCE}python\n" + "x = 1\n" * 500_000 + f"class ModelNew: pass\n{FENCE}",
    "a block without an end": f"{FENCE}python\n" + "x = 1\n" * (MANY // 6),
    "lines that end in a fence": f"{FENCE}python\n" + f"x = 1{FENCE}\n" * (MANY // 9),
    "text behind fences": f"{FENCE}python\n" + f"{FENCE} a b\n" * (MANY // 8),
    "tags that are not closed": "<code>\n" * (MANY // 7),
    "tags within tags": "<code>\n" * (MANY // 14) + "</code>\n" * (MANY // 14),
    "a tag of blanks": "<code" + " " * MANY,
    "documents": '{"ModelNew": 1}' * (MANY // 15),
    "lines of a list": '["ModelNew",' + '"x",' * (MANY // 4) + "1]",
    "beginnings of code without a fence": "import x y\n" * (MANY // 11),
    "fences written twice": f"{FENCE}\n{FENCE}python\n" * (MANY // 14),
    "an object without an end": '{"ModelNew": ' * (MANY // 13),
    "branches": f"{FENCE}python\nif a: pass\n" + "elif a: pass\n" * (MANY // 13) + FENCE,
    "brackets": f"{FENCE}python\n" + "(" * MANY + f"\n{FENCE}",
    "signs": f"{FENCE}python\nx = " + "-" * MANY + f"1\n{FENCE}",
    "attributes": f"{FENCE}python\nx = a" + ".a" * (MANY // 2) + f"\n{FENCE}",
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", ["contrastive", "one-shot"])
@pytest.mark.parametrize("name", ENDLESS)
def test_a_reply_that_repeats_itself_is_read_at_once(name: str, kind: str) -> None:
    found = parse_reply(ENDLESS[name], kind=kind, finish_reason="stop")  # type: ignore[arg-type]
    assert found.source is None and found.problem is not None
    assert len(found.detail) < 400
