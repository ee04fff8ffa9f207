"""Calls back to back on a CPU: for what a candidate does between timed calls there is no time then.

Outputs are let go of at once, as they are between timed calls: were all of them held, memory that a call takes would be
another's each time, and cost what it costs nobody else. One of each run, which the judge chooses, is compared.
"""

from __future__ import annotations

import time
from random import SystemRandom
from typing import Any

from . import buffers
from .driving import Kept, Supply, seed_of
from .session import Session, total_bytes
from .tensors import nbytes_needed, pack, rewrite, view

CALLS, LEAST_CALLS, RUNS, LEAST_RUNS = 8, 3, 5, 2
TOTAL_S, BYTES = 1.0, 1 << 30
"""What all runs may take, drawing inputs included, and what the inputs of one may."""
_random = SystemRandom()


def back_to_back_us(session: Session, supply: Supply, *, call_us: float, patience_s: float) -> float | None:
    """What a call takes of several in a row, each with inputs of its own that lay there before: by the judge's clock,
    microseconds, of the quickest run. `call_us`: about what one takes. None where the inputs are too large for that."""
    each_us = supply.us + call_us
    calls = min(CALLS, BYTES // max(1, total_bytes(supply.first)), int(1e6 * TOTAL_S / LEAST_RUNS / each_us))
    calls = max(calls, LEAST_CALLS)
    if calls * total_bytes(supply.first) > BYTES:
        return None
    runs = max(LEAST_RUNS, min(RUNS, int(1e6 * TOTAL_S / (calls * each_us))))
    sets = [supply.draw(session) for _ in range(calls)]
    buffer = buffers.create(nbytes_needed(sets), None)
    places = pack(sets, buffer)
    fields = {"value": places, "bytes": buffer.nbytes, "runs": runs, "patience_s": patience_s, **session.request}
    session.ask("back_to_back", 60.0, "calls in a row", [buffer.fileno()], **fields)
    quickest = min(_run(session, supply, sets, places, buffer, patience_s) for _ in range(runs))
    session.receive(patience_s, "calls in a row")
    return quickest / calls


def _run(
    session: Session, supply: Supply, sets: list[Any], places: Any, buffer: buffers.Buffer, patience_s: float
) -> float:
    """One run; microseconds."""
    sets[:] = [supply.draw(session) for _ in sets]
    rewrite(sets, places, buffer)
    session.poison()
    session.send({"op": "ready"})
    session.receive(patience_s, "putting state back")
    seeds, chosen = [seed_of(session) for _ in sets], _random.randrange(len(sets))
    begin = time.perf_counter_ns()
    session.send({"op": "go", "seeds": seeds, "chosen": chosen})
    session.receive(len(sets) * patience_s, "calls in a row")
    us = (time.perf_counter_ns() - begin) / 1e3
    session.send({"op": "deliver"})
    session.receive(patience_s, "calls in a row")
    if not session.request["stateful"]:  # there each call begins with what the one before has left
        outputs = [view(slot, session.outputs).clone() for slot in session.request["slots"]]
        session.back_to_back = [Kept(sets[chosen], outputs, {}, seeds[chosen])]
    return us
