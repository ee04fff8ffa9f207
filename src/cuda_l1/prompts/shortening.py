"""Texts that are too long lose their middle, whole lines at a time."""

from __future__ import annotations

from cuda_l1.prompts.tokens import ESTIMATE, TokenCounter
from cuda_l1.texts import many


def shortened_lines(text: str, tokens: int, counter: TokenCounter = ESTIMATE) -> str:
    """The text where it has at most so many tokens; else lines of its head and tail, as many of both as fit.

    One line between them says how many are left out. A line is kept whole or not at all; a text of a single line that
    is too long leaves only that message.
    """
    if counter.count(text) <= tokens:
        return text
    lines = text.split("\n")  # at no other sign: a form feed or U+2028 may stand within a string
    left = tokens - counter.count(left_out(len(lines)) + "\n")
    head, tail = _fitting(lines, [counter.count(f"{line}\n") for line in lines], left)
    return "\n".join([*lines[:head], left_out(len(lines) - head - tail), *lines[len(lines) - tail :]])


def left_out(count: int) -> str:
    """What stands for lines that are not shown; a comment, since most texts are Python."""
    return f"# [... {many(count, 'line')} left out here ...]"


def _fitting(lines: list[str], costs: list[int], left: int) -> tuple[int, int]:
    """How many lines from the head and from the tail cost at most `left`, growing both evenly; never all of them."""
    head = tail = head_cost = tail_cost = 0
    while head + tail < len(lines) - 1:
        from_head = head_cost <= tail_cost
        cost = costs[head] if from_head else costs[len(lines) - 1 - tail]
        if cost > left:
            break
        left -= cost
        if from_head:
            head, head_cost = head + 1, head_cost + cost
        else:
            tail, tail_cost = tail + 1, tail_cost + cost
    return head, tail
