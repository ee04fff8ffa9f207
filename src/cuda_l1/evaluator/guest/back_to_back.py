"""Calls back to back on a CPU: for what a candidate does between timed calls there is no time then.

Outputs are let go of at once, as they are between timed calls: were all of them held, memory that a call takes would be
another's each time, and cost what it costs nobody else. One of each row, which the judge chooses, is compared.
"""

from __future__ import annotations

import time
from typing import Any

from . import buffers
from .driving import Kept, Supply, seed_of
from .entropy import ENTROPY
from .session import Session, total_bytes
from .tensors import nbytes_needed, pack, rewrite, view

SETS, LEAST_SETS, BYTES = 8, 3, 1 << 30
"""A *stretch* is one call with each of several inputs: so many at the most, and none at all where fewer than the second
number fit into these bytes together."""
STRETCHES, ROWS, LEAST_ROWS = 8, 5, 2
"""A *row* is so many stretches at the most, one right after the other. A stock of what was made before is used up in
its first half, so only the second half counts. So many rows are made at the most, and at the least."""
TOTAL_S = 1.0
"""Seconds that all calls of one side may take together, about."""


def back_to_back_us(session: Session, supply: Supply, *, call_us: float, patience_s: float) -> float | None:
    """What a call takes of many in a row, with inputs that lay there before: by the judge's clock, microseconds, of the
    quickest stretch, since other work on the machine only adds. `call_us`: about what one takes. None where the inputs
    are too large for that."""
    count = min(SETS, BYTES // max(1, total_bytes(supply.first)), max(LEAST_SETS, int(1e6 * TOTAL_S / call_us)))
    if count < LEAST_SETS:
        return None
    stretches = max(1, min(STRETCHES, int(1e6 * TOTAL_S / LEAST_ROWS / (count * call_us))))
    rows = max(LEAST_ROWS, min(ROWS, int(1e6 * TOTAL_S / (count * (stretches * call_us + supply.us)))))
    made = _Rows(session, supply, count, patience_s)
    session.ask("back_to_back", 60.0, "calls in a row", [made.buffer.fileno()], rows=rows, **made.described)
    quickest = min(made.run(stretches) for _ in range(rows))
    session.receive(patience_s, "calls in a row")
    return quickest / count


class _Rows:
    """Calls of a session with `count` inputs, again and again."""

    def __init__(self, session: Session, supply: Supply, count: int, patience_s: float) -> None:
        self._session, self._supply, self._patience_s = session, supply, patience_s
        self._sets = [supply.draw(session) for _ in range(count)]
        self.buffer = buffers.create(nbytes_needed(self._sets), None)
        self._places = pack(self._sets, self.buffer)

    @property
    def described(self) -> dict[str, Any]:
        """What the runner has to know."""
        own = {"value": self._places, "bytes": self.buffer.nbytes, "patience_s": self._patience_s}
        return {**own, **self._session.request}

    def run(self, stretches: int) -> float:
        """One row with new inputs: the quickest stretch of its second half, microseconds. An output of the last one is
        kept where nothing hangs on the call before."""
        session = self._session
        self._sets = [self._supply.draw(session) for _ in self._sets]
        rewrite(self._sets, self._places, self.buffer)
        session.poison()
        session.send({"op": "ready"})
        session.receive(self._patience_s, "putting state back")
        took = []
        for _ in range(stretches):
            seeds, chosen = [seed_of(session) for _ in self._sets], ENTROPY.randrange(len(self._sets))
            begin = time.perf_counter_ns()
            session.send({"op": "go", "seeds": seeds, "chosen": chosen})
            session.receive(len(seeds) * self._patience_s, "calls in a row")
            took.append((time.perf_counter_ns() - begin) / 1e3)
        session.send({"op": "deliver"})
        session.receive(self._patience_s, "calls in a row")
        if not session.request["stateful"]:
            outputs = [view(slot, session.outputs).clone() for slot in session.request["slots"]]
            session.back_to_back = [Kept(self._sets[chosen], outputs, {}, seeds[chosen])]
        return min(took[stretches // 2 :])
