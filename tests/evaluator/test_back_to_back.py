"""Calls in a row, as the judge asks for them: a session that answers by itself stands in for the runner."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest
import torch

from cuda_l1.evaluator.guest import back_to_back, buffers, glimpse
from cuda_l1.evaluator.guest.glimpse import place_of
from cuda_l1.evaluator.guest.session import RunnerFailure
from cuda_l1.evaluator.guest.tensors import nbytes_needed, pack, unpack, view

QUICK = 5
"""The stretch that is answered at once."""


class Supply:
    def __init__(self, us: float = 1.0) -> None:
        self.drawn: list[list[torch.Tensor]] = []
        self.us, self.first = us, [torch.zeros(4)]

    def draw(self, session: Any) -> list[torch.Tensor]:
        self.drawn.append([torch.full((4,), float(len(self.drawn)))])
        return self.drawn[-1]


class Session:
    """Doubles its inputs, and delivers the second call of the stretch that is kept; with `late` not before then."""

    def __init__(self, *, changed_state: bool = False, lies: bool = False, late: bool = False) -> None:
        self.seeded, self.writable, self.starts_from, self.lies = False, [0], {"level": torch.ones(())}, lies
        self.outputs = buffers.create(nbytes_needed([torch.zeros(4)] * 2), None)
        slots = pack([torch.zeros(4)] * (1 + changed_state), self.outputs)["$list"]
        names = ["level"] * changed_state
        self.request = {"slots": slots, "stateful": changed_state, "changed_args": [], "changed_state": names}
        self.memory, self._late = os.open("/proc/self/mem", os.O_RDONLY), late
        self.back_to_back: list[Any] = []
        self.firsts: list[list[int]] = []
        self.seen: list[float] = []
        self._last, self._kept, self._reply = 0, -1, {}

    def ask(self, op: str, timeout: float, stage: str, fds: Any, **fields: Any) -> None:
        self.bytes = fields["bytes"]
        self._sets = unpack(fields["value"], buffers.attach(fds[0], fields["bytes"], None))

    def poison(self) -> None:
        self.outputs.bytes_at(0, self.outputs.nbytes).fill_(255)

    def send(self, message: dict[str, Any]) -> None:
        self._reply = {}
        if message.get("keep"):
            self._kept = self._last
        if message["op"] == "ready":
            self.firsts.append([])
        elif message["op"] == "go":
            self._last = message["first"]
            self.firsts[-1].append(self._last)
            count = len(message["seeds"])
            self.seen += [float(self._sets[self._last + number][0][0]) for number in range(count)]
            if len(self.firsts[-1]) != QUICK + 1:
                time.sleep(0.002)
            place = self._last + 1
            self.found = torch.zeros(4) if self._late else 2 * self._sets[place][0]
            self._reply = {"place": 0 if self.lies else place, "places": [place_of(self.found)]}
        else:
            view(self.request["slots"][0], self.outputs).copy_(2 * self._sets[self._kept + 1][0])

    def receive(self, timeout: float, stage: str) -> dict[str, Any]:
        return self._reply

    def look(self, told: Any, slots: Any, absent: Any) -> tuple[list[glimpse.Glimpse], float]:
        return glimpse.look(self.memory, told, slots, absent), 0.0


def test_no_inputs_come_twice_and_the_quickest_stretch_that_counts_is_compared():
    session, supply = Session(), Supply()
    us, cold_us, late = back_to_back.back_to_back(session, supply, call_us=2000.0, patience_s=1.0)
    assert us < 2000 / back_to_back.SETS and cold_us == 0.0 and not late, "no more than a call alone"
    assert len(session.seen) == len(set(session.seen)) and len(session.firsts) >= back_to_back.LEAST_ROWS
    assert all(len(firsts) == back_to_back.STRETCHES for firsts in session.firsts)
    times = [took for took, _ in session.back_to_back]
    assert times == sorted(times) and times[0] == pytest.approx(us * back_to_back.SETS)
    for _, kept in session.back_to_back:
        assert torch.equal(kept.tensors[0], 2 * kept.inputs[0]) and kept.earlier is None
        assert session.seen.index(float(kept.inputs[0][0])) % 64 == QUICK * back_to_back.SETS + 1


@pytest.mark.parametrize(("laid_us", "cold_us"), [(40.0, 60.0), (140.0, 0.0)])
def test_what_inputs_take_to_come_from_memory_is_told_of_a_row_that_takes_longer(monkeypatch, laid_us, cold_us):
    read: list[list[torch.Tensor]] = []

    def read_us(tensors: list[torch.Tensor]) -> float:
        read.append(tensors)
        return 100.0 * len(tensors) if len(tensors) > 1 else laid_us

    monkeypatch.setattr(back_to_back, "_read_us", read_us)
    session = Session()
    assert back_to_back.back_to_back(session, Supply(), call_us=1.0, patience_s=1.0).cold_us == cold_us
    row = torch.cat([tensor for tensors in read if len(tensors) > 1 for tensor in tensors])
    assert row.numel() == session.bytes, "all of it is read, in stretches"


def test_what_hangs_on_earlier_calls_is_kept_with_their_inputs():
    session = Session(changed_state=True)
    back_to_back.back_to_back(session, Supply(), call_us=100.0, patience_s=1.0)
    ((_, kept),) = session.back_to_back
    earlier = [float(inputs[0][0]) for inputs in kept.earlier]
    place = session.seen.index(float(kept.inputs[0][0]))
    assert earlier == session.seen[place - place % 64 : place] and "level" in kept.state


@pytest.mark.parametrize(("call_us", "draw_us", "stretches"), [(50_000.0, 1.0, 2), (1.0, 1e5, 2), (1.0, 30_000.0, 4)])
def test_rows_are_short_where_calls_or_draws_are_slow(call_us, draw_us, stretches):
    session = Session()
    back_to_back.back_to_back(session, Supply(draw_us), call_us=call_us, patience_s=1.0)
    assert {len(firsts) for firsts in session.firsts} == {stretches} and len(session.firsts) == back_to_back.LEAST_ROWS


def test_a_call_of_another_stretch_is_not_taken():
    with pytest.raises(RunnerFailure, match="not asked for"):
        back_to_back.back_to_back(Session(lies=True), Supply(), call_us=100.0, patience_s=1.0)


def test_what_was_not_there_at_the_end_of_its_stretch_is_late():
    assert back_to_back.back_to_back(Session(late=True), Supply(), call_us=100.0, patience_s=1.0).late
