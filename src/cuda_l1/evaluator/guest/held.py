"""Outputs that are kept: nothing that happens later may change them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from . import state
from .evidence import Wrong
from .reference import Reference
from .session import Reply, Session


def compare_held(session: Session, reference: Reference, expected: list[torch.Tensor]) -> None:
    """What becomes of outputs that are kept: neither other inputs nor writing to one of them changes another, save
    those that lie in memory of others in the reference's answer, too.

    `expected`: the outputs of the candidate's last call, as they were. Raises Wrong.
    """
    own = [place for place in range(len(expected)) if reference.owns(place)]
    if not own:
        return
    slots = session.slots(expected)
    session.refill(reference.draw())
    text = "changes when the inputs are overwritten after the call: it lies in them"
    _held(session, slots, expected, own, None, text)
    for number, place in enumerate(own):
        text = f"changes when output {place} is written to: they share memory"
        _held(session, slots, expected, own[number + 1 :], place, text)


def _held(
    session: Session, slots: Any, expected: list[torch.Tensor], stay: Sequence[int], scribble: int | None, text: str
) -> None:
    reply = session.ask("held", session.deadlines.call_s, "a call", slots=slots, scribble=scribble)
    for place in stay:
        slot, want = slots[place], expected[place]
        if not state.same(session.answer(Reply("", [], False, 0.0), [slot]).tensors[0], want):
            raise Wrong("WRONG_VALUES", f"output {place} {text}")
    if scribble is not None and reply.get("keeps") is False:
        raise Wrong("WRONG_VALUES", f"output {scribble} does not keep what is written to it: parts of it share memory")
    if scribble is not None and reply.get("state"):
        raise Wrong("WRONG_VALUES", f"output {scribble} lies in the weights: writing to it changes them")
