"""Calls back to back on a CPU: for what a candidate does between timed calls there is no time then.

Each call has inputs that nobody saw before the row, so that no answer can be remembered. Outputs are let go of at once,
as they are between timed calls: were all of them held, memory that a call takes would be another's each time, and cost
what it costs nobody else. A few places of them are written to before: what lies in that memory is no answer either.
One output of the stretch that counts is compared; its runner draws which when a call has returned. The judge looks
where it lies at the end of its stretch, as it does in a call alone (`glimpse`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from . import buffers
from .driving import KEPT_BYTES, QUICKEST, Kept, Supply, seed_of, structure_told
from .glimpse import Glimpse
from .session import RunnerFailure, Session, total_bytes
from .tensors import nbytes_needed, pack, rewrite, view

SETS, LEAST_SETS, BYTES = 8, 3, 1 << 30
"""A *stretch* is so many calls at the most, and none at all where the inputs of fewer than the second number fit into
these bytes together. Those of several stretches fit into half of that."""
STRETCHES, FEW_STRETCHES, ROWS, LEAST_ROWS = 8, 2, 5, 2
"""A *row* is so many stretches at the most, one right after the other, and so many at the least where inputs fit. A
stock of what was made before is used up in its first half, so only the second half counts. So many rows are made at the
most, and at the least."""
TOTAL_S, DRAWN_S = 1.0, 2.0
"""Seconds that all calls of one side may take together, and drawing their inputs, about."""

EARLIER_S = 0.1
"""The same of one row where something hangs on earlier calls: the reference makes all of them for one answer."""
WORD = torch.int32.itemsize
"""Inputs are read as so many bytes at once."""


class CallInARow(NamedTuple):
    """What a call takes of many in a row, with inputs that lay there before."""

    us: float
    """By the judge's clock, microseconds, of the quickest stretch, since other work on the machine only adds."""
    cold_us: float
    """Where that is more than one takes alone, by how much longer the judge itself reads the inputs of a row than those
    of one call, which have just been laid and are in a cache."""
    late: bool
    """An output was not yet there when its stretch was over."""


def back_to_back(session: Session, supply: Supply, *, call_us: float, patience_s: float) -> CallInARow | None:
    """Make rows of calls of which one alone takes about `call_us`. None where the inputs are too large for a row."""
    fit = BYTES // max(1, total_bytes(supply.first))
    count = min(SETS, fit, max(LEAST_SETS, int(1e6 * TOTAL_S / call_us)))
    if count < LEAST_SETS:
        return None
    total_s = LEAST_ROWS * EARLIER_S if session.request["changed_state"] else TOTAL_S
    affordable = min(total_s / call_us, DRAWN_S / max(supply.us, 1e-3)) * 1e6 / (count * LEAST_ROWS)
    stretches = max(1, min(STRETCHES, fit // 2 // count, max(FEW_STRETCHES, int(affordable))))
    spent_s = 1e-6 * stretches * count * max(call_us / TOTAL_S, supply.us / DRAWN_S)
    rows = max(LEAST_ROWS, min(ROWS, int(1 / max(spent_s, 1e-9))))
    made = _Rows(session, supply, (stretches, count), patience_s)
    session.ask("back_to_back", 60.0, "calls in a row", [made.buffer.fileno()], rows=rows, **made.described)
    quickest = min(made.run() for _ in range(rows))
    session.receive(patience_s, "calls in a row")
    us = quickest / count
    return CallInARow(us, made.cold_us() if us > call_us else 0.0, made.late)


class _Rows:
    """Rows of a session, each of so many stretches of so many calls (`shape`)."""

    def __init__(self, session: Session, supply: Supply, shape: tuple[int, int], patience_s: float) -> None:
        self._session, self._supply, self._patience_s = session, supply, patience_s
        self._stretches, self._count = shape
        self._sets = [supply.first] * (self._stretches * self._count)
        self.buffer = buffers.create(nbytes_needed(self._sets), None)
        self._places = pack(self._sets, self.buffer)
        self.late = False

    @property
    def described(self) -> dict[str, Any]:
        """What the runner has to know."""
        own = {"value": self._places, "bytes": self.buffer.nbytes, "patience_s": self._patience_s}
        return {**own, "writable": self._session.writable, **self._session.request}

    def run(self) -> float:
        """One row with new inputs: the quickest stretch of its second half, microseconds. An output of that stretch is
        kept; of one row only where something hangs on earlier calls, all of which have to be kept for that."""
        session, self._sets = self._session, []  # those of the last row are let go of first
        self._sets = [self._supply.draw(session) for _ in range(self._stretches * self._count)]
        seeds = [seed_of(session) for _ in self._sets]
        session.poison()
        session.send({"op": "ready"})
        session.receive(self._patience_s, "putting state back")
        rewrite(self._sets, self._places, self.buffer)  # last of all: a thread could begin with what lies there
        outputs = session.request["slots"][: self._output_count]
        quickest, place, is_best = math.inf, 0, False
        seen: list[Glimpse] = []
        structure = ""
        for first in range(0, len(self._sets), self._count):
            begin = time.perf_counter_ns()
            session.send({"op": "go", "first": first, "seeds": seeds[first : first + self._count], "keep": is_best})
            told = session.receive(self._count * self._patience_s, "calls in a row")
            took = (time.perf_counter_ns() - begin) / 1e3
            may_count = first // self._count >= self._stretches // 2 and took < quickest
            looked, held_up = session.look(told.get("places"), outputs, ()) if may_count else ([], 0.0)
            took += held_up
            is_best = may_count and took < quickest
            if is_best:
                seen, structure = looked, structure_told(told)
                quickest, place = took, self._place(told, first)
        session.send({"op": "deliver", "keep": is_best})
        session.receive(self._patience_s, "calls in a row")
        tensors = [view(slot, session.outputs).clone() for slot in session.request["slots"]]
        self.late = self.late or not all(each.arrived(tensors) for each in seen)
        earlier = self._sets[:place] if session.request["changed_state"] else None
        kept = Kept(self._sets[place], tensors, session.starts_from, seeds[place], structure, earlier)
        few = min(QUICKEST, KEPT_BYTES // max(1, total_bytes(tensors) + total_bytes(kept.inputs)))
        rows = sorted([*session.back_to_back, (quickest, kept)], key=lambda each: each[0])
        session.back_to_back = rows[: 1 if earlier is not None else max(1, few)]
        return quickest

    @property
    def _output_count(self) -> int:
        """Of what is delivered; the rest are arguments and state, which later calls change again."""
        request = self._session.request
        return len(request["slots"]) - len(request["changed_args"]) - len(request["changed_state"])

    def _place(self, told: dict[str, Any], first: int) -> int:
        """Which call of the stretch that begins with the `first` will be delivered."""
        place = told.get("place")
        if not isinstance(place, int) or not first <= place < first + self._count:
            raise RunnerFailure("CRASHED", "the runner kept a call of a row that it was not asked for", "timing")
        return place

    def cold_us(self) -> float:
        """What a call's inputs take longer to read when all of a row were laid than when they alone were, of the
        quickest stretch. A reduction: a copy waits for its writes."""
        rewrite(self._sets, self._places, self.buffer)
        each = self.buffer.nbytes // len(self._sets) // WORD * WORD
        if each == 0:
            return 0.0
        inputs = [self.buffer.bytes_at(number * each, each) for number in range(len(self._sets))]
        firsts = range(0, len(inputs), self._count)
        cold = min(_read_us(inputs[first : first + self._count]) for first in firsts)
        return max(0.0, cold / self._count - min(_laid_us(inputs[-1]) for _ in range(self._count)))


def _laid_us(tensor: torch.Tensor) -> float:
    tensor.copy_(tensor.clone())
    return _read_us([tensor])


def _read_us(tensors: Sequence[torch.Tensor]) -> float:
    begin = time.perf_counter_ns()
    for tensor in tensors:
        tensor.view(torch.int32).amax()
    return (time.perf_counter_ns() - begin) / 1e3
