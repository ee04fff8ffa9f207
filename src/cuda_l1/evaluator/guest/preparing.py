"""A runner is made ready to be timed: inputs laid, warmed up, and looked at for remembered answers."""

from __future__ import annotations

import time
from typing import Any

import torch

from . import drawing, plans, uncounted, weight_forms
from .audit import Facts
from .copying import layout_us
from .driving import Supply
from .entropy import ENTROPY
from .form import Form
from .reference import Reference
from .session import RunnerFailure, Session

CACHING_ROUNDS, CACHING_S = 24, 2.0
"""Pairs of calls, with new inputs and with the same again, that are made at the most, and seconds for them."""
CACHING_FACTOR, CACHING_US = 3.0, 20.0
"""The second is answered from memory where the first takes so many times as long, and so many microseconds more."""
VARIED = (0.0, 1 / 2, 1.0)
"""How likely weights change before the first, second and third block since they last did."""
VARYING_S = 1.0
"""Seconds after which a process's weights stay: where they are gigabytes, each change takes as long."""


def first_calls(reference: Reference, sessions: list[Session]) -> dict[str, dict[str, str]]:
    """The first calls of several runners at the same time, since compilers run in them; failures by name.

    Nothing is timed meanwhile, and nothing of what they return is believed or kept.
    """
    inputs = reference.draw()
    sample = reference.call(inputs, reference.public, "plain")
    failures: dict[str, dict[str, str]] = {}
    waiting = []
    for session in sessions:
        try:
            session.show(inputs)
            session.send({"op": "call", **Form(reference).request(session.slots(sample.tensors))})
            waiting.append(session)
        except RunnerFailure as failure:
            failures[session.name] = failure.as_json()
    for session in waiting:
        try:
            session.receive(session.deadlines.first_call_s, "the first call")
            session.note_call()
        except RunnerFailure as failure:
            failures[session.name] = failure.as_json()
    return failures


def prepare(
    reference: Reference, facts: Facts, session: Session, supply: Supply, *, warm_s: float, look_for_caching: bool
) -> dict[str, Any]:
    """Make a runner ready for driven calls: input sets, slots, warm-up calls; says how long a call takes."""
    form = Form(reference)
    if session.mapped:
        session.weights = reference.timed_weights
        session.set_weights(session.weights)
    sample = reference.call(supply.first, session.weights, "plain")
    torch.set_num_threads(1)  # from here on nothing of the judge's may spin on the lane
    session.show(supply.first)
    session.request = {
        **form.request(session.slots(sample.tensors)),
        "stateful": bool(reference.changed_state or reference.changed_args),
        "state": session.vary_state(reference.changed_state) if session.mapped and session.device == "cpu" else {},
    }
    session.seeded = facts.seeded
    session.weights_vary = look_for_caching and session.mapped and not facts.random
    places = range(form.output_count(sample))
    session.writable = [n for n in places if reference.owns(n) and n not in reference.overlaps]
    if not facts.random:
        uncounted.prepare(reference, session, supply.first)
    changes = reference.changed_args or reference.changed_state
    follows = session.device == "cpu" and (changes or reference.aliases)
    session.may_exchange = not (facts.random or follows)
    session.may_change = reference.changed_args
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < 4 or (len(times) < 20 and time.perf_counter() - begin < warm_s):
        reply = session.call(session.request)
        times.append(reply.us)
        supply.lay(session)
    session.unpartnered = reply.unpartnered & form.places_of_state(sample)
    session.request["clone"] = session.reused
    caching = _caching(reference, session) if look_for_caching and not facts.random else None
    told = session.ask("release", 60.0, "a call")
    empty = session.ask("empty", 60.0, "a call", calls=50)
    return {
        "us": min(times[2:]),
        "supply_us": supply.us,
        "reused": session.reused,
        "peak_bytes": told.get("peak_bytes") if isinstance(told.get("peak_bytes"), int) else None,
        "empty_us": _finite(empty.get("us")),
        "caching": caching,
        "layout_us": layout_us(reply.outputs, sample.tensors) if session.device != "cpu" else 0.0,
    }


def _caching(reference: Reference, session: Session) -> str | None:
    """Whether inputs that were just seen are answered faster than new ones: what a cache of answers does, under
    whatever key. Both are written anew before their call, and both come after a draw, so that as much lies in the
    processor's caches and others had as long a turn. Minima: a busy machine only adds."""
    fresh, again = [], []
    begin = time.perf_counter()
    following = reference.draw()
    for number in range(CACHING_ROUNDS):
        inputs = session.fitted(following)
        if inputs is None or (inputs is not following and not uncounted.answers(reference, inputs, session.weights)):
            return None
        session.refill(inputs)
        fresh.append(session.call(session.request).us)
        following = reference.draw()
        session.refill(inputs)
        again.append(session.call(session.request).us)
        beyond = min(fresh) > CACHING_FACTOR * min(again) and min(fresh) - min(again) > CACHING_US
        if number >= 3 and (not beyond or time.perf_counter() - begin > CACHING_S):
            break
    if not beyond:
        return None
    return f"inputs seen just before are answered in {min(again):.0f} us, new ones in {min(fresh):.0f} us"


def _finite(value: Any) -> float | None:
    """A number of the runner's, or None."""
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e12 else None


def vary_weights(reference: Reference, session: Session, inputs: drawing.Inputs) -> bool:
    """Before a block of timed calls, touch some of the weights, at secret times: whether that was done. Who derives
    from them what timed calls need, and looks at a few of them or at nothing to see whether they changed, is wrong in
    the calls that follow. Not where the reference refuses such weights."""
    session.blocks_alike += 1
    likely = VARIED[min(session.blocks_alike, len(VARIED)) - 1]
    if not session.weights_vary or session.varying_s > VARYING_S or ENTROPY.random() >= likely:
        return False
    begin, session.blocks_alike = time.monotonic(), 0
    is_varied = _vary(reference, session, inputs)
    session.varying_s += time.monotonic() - begin
    return is_varied


def _vary(reference: Reference, session: Session, inputs: drawing.Inputs) -> bool:
    parts = weight_forms.parts(reference.model, reference.data, reference.changed_state)
    if not parts:
        return False
    plan = ENTROPY.choice(plans.touched_plans(parts))
    values = weight_forms.with_touched(session.weights, plan.touches, any_sign=False, exchanged=plan.exchanged)
    if not uncounted.answers(reference, inputs, values):
        return False
    session.weights = values
    session.set_weights(values)
    return True
