"""Long texts lose whole lines of their middle, and say how many."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from cuda_l1.prompts.shortening import left_out, shortened_lines
from cuda_l1.prompts.tokens import ESTIMATE, TokenCounter

WORDS = TokenCounter("words", lambda text: len(text.split()))
LINES = st.lists(st.text(alphabet="ab 12(é\f\u2028", max_size=12), min_size=1, max_size=60)


@given(LINES, st.integers(1, 200), st.sampled_from([ESTIMATE, WORDS]))
def test_lines_are_kept_whole_in_order_and_within_the_limit(
    lines: list[str], tokens: int, counter: TokenCounter
) -> None:
    text = "\n".join(lines)
    short = shortened_lines(text, tokens, counter)
    if counter.count(text) <= tokens:
        assert short == text
        return
    kept = short.split("\n")
    marks = [n for n, line in enumerate(kept) if re.fullmatch(r"# \[\.\.\. \d+ lines? left out here \.\.\.\]", line)]
    assert len(marks) == 1
    head, tail = kept[: marks[0]], kept[marks[0] + 1 :]
    shown = text.split("\n")
    missing = len(shown) - len(head) - len(tail)
    assert missing >= 1 and kept[marks[0]] == left_out(missing)
    assert head == shown[: len(head)] and tail == shown[len(shown) - len(tail) :]
    assert counter.count(short) <= max(tokens, counter.count(left_out(missing)))


def test_head_and_tail_share_what_there_is() -> None:
    text = "\n".join(f"line {number}" for number in range(100))
    kept = shortened_lines(text, 40, WORDS).split("\n")
    middle = next(n for n, line in enumerate(kept) if line.startswith("#"))
    assert kept[0] == "line 0" and kept[-1] == "line 99" and abs(2 * middle + 1 - len(kept)) <= 1


def test_one_line_that_is_too_long_leaves_the_message_alone() -> None:
    assert shortened_lines("x" * 1000, 50) == "# [... 1 line left out here ...]"
