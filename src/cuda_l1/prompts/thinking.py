"""Taking out of a reply what a reasoning model thought aloud, where the server has not done so."""

from __future__ import annotations

import re

GAP = "\0"
"""Stands alone on a line where something was taken out, so that a text with a hole is never taken for a whole one."""
THINKS, THOUGHT = "<think>", "<think></think>"
"""The marks of a thought that was never closed, and of one that was."""

_NAMES = "think|thinking|thought|thoughts|reasoning|reasoning_content|reflection|scratchpad"
_TAG = re.compile(
    rf"<\s*+(?P<close>/?)\s*+(?:[a-z]+:)?(?:{_NAMES})(?:\s[^<>\n]{{0,80}})?>"
    r"|\[(?P<bracket>/?)THINK\]"
    r"|◁(?P<triangle>/?)think▷"
    r"|<\|(?P<edge>begin|end|start)_?(?:of)?_?(?:thinking|thought|think)\|>"
    r"|<\|channel\|>\s*(?P<channel>\w+)(?:\s*<\|message\|>)?"
    r"|<\|channel>|(?P<left><channel\|>)",
    re.IGNORECASE,
)
"""How the families of reasoning models mark their thoughts; of channels, all but `final` are thoughts."""
_BARE = re.compile(r"analysis(?=[A-Z])")
"""Begins a reply in channels of which a server left out the marks, and nothing else that anybody writes."""
_BARE_CHANNEL = re.compile(r"assistant(?P<channel>final|analysis|commentary)(?=\W|[A-Z])")


def without_thinking(text: str) -> tuple[str, bool]:
    """What remains outside of all thoughts, and whether the last one was never closed.

    Thoughts nest. An end without a beginning ends one that began before the reply did, in the prompt's own last line,
    so all before it is thought. A mark between backticks is spoken of and marks nothing. `text` holds no GAP.
    """
    if begun := _BARE.match(text):
        text = "<|channel|>analysis " + _BARE_CHANNEL.sub(r"<|channel|>\g<channel> ", text[begun.end() :])
    kept: list[str] = []
    depth = at = 0
    for tag in _TAG.finditer(text):
        if text[tag.start() - 1 : tag.start()] == "`" and text.startswith("`", tag.end()):
            continue
        if depth == 0:
            kept.append(text[at : tag.start()])
        if _opens(tag):
            depth += 1
        elif depth == 0:
            kept.clear()
        else:
            depth = 0 if tag["channel"] else depth - 1
        at = tag.end()
    if depth == 0:
        kept.append(text[at:])
    return f"\n{GAP}\n".join(kept), depth > 0


def _opens(tag: re.Match[str]) -> bool:
    if tag["channel"]:
        return tag["channel"].lower() != "final"
    if tag["edge"]:
        return tag["edge"].lower() != "end"
    return not tag["left"] and "/" not in (tag["close"] or tag["bracket"] or tag["triangle"] or "")
