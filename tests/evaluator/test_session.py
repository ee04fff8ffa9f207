"""The judge's end of a runner believes nothing: whatever bytes come back are an answer in form, or a failure."""

from __future__ import annotations

import itertools
import json
import os
import socket
import threading
import time
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch
from evaluator_support import LINEAR, reference_of

from cuda_l1.evaluator.guest import copying, driving, preparing, timed_outputs, uncounted
from cuda_l1.evaluator.guest.audit import Facts
from cuda_l1.evaluator.guest.channel import Channel
from cuda_l1.evaluator.guest.control import Control
from cuda_l1.evaluator.guest.glimpse import Glimpse, place_of
from cuda_l1.evaluator.guest.plans import Plan
from cuda_l1.evaluator.guest.reference import BadTask
from cuda_l1.evaluator.guest.session import Deadlines, RunnerFailure, Session, parse_reply, total_bytes
from cuda_l1.evaluator.guest.tensors import view

INPUTS = [torch.randn(4, 3), 5]
OUTPUT = torch.randn(4, 3)
GOOD = {
    "structure": "T",
    "outputs": [{"dtype": "float32", "shape": [4, 3], "stride": [3, 1], "device": "cpu", "alias": False}],
    "reused": False,
    "us": 12.5,
}


class Far:
    """The runner's end of the socket, with raw packets."""

    def __init__(self, fd: int) -> None:
        self.socket = socket.socket(fileno=fd)

    def packet(self, data: bytes) -> None:
        self.socket.send(data)

    def says(self, message: object) -> None:
        self.packet(b"J" + json.dumps(message).encode())

    def hears(self) -> dict:
        packet, fds, _, _ = socket.recv_fds(self.socket, 1 << 20, 8)
        for fd in fds:
            os.close(fd)
        return json.loads(packet[1:])


@pytest.fixture
def far_and_session():
    ours, theirs = Channel.pair()
    far = Far(os.dup(theirs.fileno()))
    theirs.close()
    session = Session("r", ours, "cpu", None, Deadlines(1.0, 0.3, 0.2))
    far.says({})
    session.share(INPUTS, [OUTPUT], [], None, None)
    far.hears()
    yield far, session
    session.close()


def called(session: Session):
    slots = session.slots([OUTPUT])
    reply = session.call({"slots": slots, "changed_args": [], "changed_state": [], "seed": None})
    return session.answer(reply, slots)


def test_an_answer_that_nobody_wrote_is_not_a_number(far_and_session):
    far, session = far_and_session
    far.says(GOOD)
    assert called(session).tensors[0].isnan().all()


@pytest.mark.parametrize(
    "packet",
    [
        bytes(range(96, 160)),
        b"J",
        b"J[1, 2]",
        b"J{",
        b"J" + b"[" * 2000,
        b"M",
        b"X{}",
        b"J\xff\xfe",
        b'J{"us": 1e999}',
        b'J{"error": 5}',
        b'J{"error": {"type": [1], "message": {"a": 2}}}',
        b'J{"error": {"memory": "yes"}}',
    ],
)
def test_bytes_that_are_no_reply(far_and_session, packet):
    far, session = far_and_session
    far.packet(packet)
    with pytest.raises(RunnerFailure) as caught:
        called(session)
    assert caught.value.outcome in ("CRASHED", "OUT_OF_MEMORY") and caught.value.detail


@pytest.mark.parametrize(
    "change",
    [
        {"outputs": None},
        {"outputs": "T"},
        {"outputs": [1]},
        {"outputs": {"0": {}}},
        {"us": None},
        {"us": "12"},
        {"us": float("nan")},
        {"us": float("inf")},
    ],
)
def test_malformed_replies_to_a_call(change):
    with pytest.raises(RunnerFailure, match="malformed") as caught:
        parse_reply(GOOD | change)
    assert caught.value.outcome == "CRASHED"


@pytest.mark.parametrize("told", [None, 1, "01", {"0": 1}, [None, [0], {}, "0"]])
def test_places_that_are_none_say_nothing(told):
    reply = parse_reply(GOOD | {"shared": told, "exposed": told})
    assert reply.shared == reply.exposed == frozenset()


def test_the_nesting_of_many_outputs_is_heard_to_its_end():
    many = "[" + ",".join("T" * 5000) + "]"
    assert parse_reply(GOOD | {"structure": many}).structure == many


def test_silence_and_hanging_up(far_and_session):
    far, session = far_and_session
    with pytest.raises(RunnerFailure, match=r"first call took longer than 0\.3 s") as caught:
        called(session)
    assert caught.value.outcome == "TIMED_OUT"
    far.socket.close()
    with pytest.raises(RunnerFailure) as caught:
        called(session)
    assert caught.value.outcome == "DIED"


def test_what_may_compile_anew_has_the_time_of_a_first_call(far_and_session):
    far, session = far_and_session
    session.deadlines = Deadlines(1.0, first_call_s=0.3, call_s=0.1)

    def late() -> str:
        with pytest.raises(RunnerFailure) as caught:
            called(session)
        return caught.value.detail

    def show(inputs: object, offset: int = 0) -> None:
        far.says({})
        session.show(inputs, offset=offset)

    show(INPUTS)
    far.says(GOOD)
    called(session)
    assert late() == "a call took longer than 0.1 s"
    far.says({})
    session.ask("set_mode", 1.0, "a call", mode="eval")
    other = "the first call in another mode or layout took longer than 0.3 s"
    assert late() == other
    far.says(GOOD)
    called(session)
    assert late() == "a call took longer than 0.1 s"
    for inputs, offset in [([torch.randn(3, 4).t(), 5], 0), ([torch.randn(4, 3), 6], 0), (INPUTS, 4)]:
        show(inputs, offset)
        assert late() == other
    show([torch.randn(4, 3), 5])
    assert late() == "a call took longer than 0.1 s", "other values are nothing new"


def test_descriptors_that_nobody_asked_for_are_closed(far_and_session):
    far, session = far_and_session
    before = set(os.listdir("/proc/self/fd"))
    socket.send_fds(far.socket, [b"J{}"], [0, 1, 2])
    with pytest.raises(RunnerFailure, match="descriptors"):
        called(session)
    # Fewer are no fault: what an earlier test has left is closed when its owner is collected.
    assert set(os.listdir("/proc/self/fd")) <= before


@pytest.mark.parametrize("us", [None, "x", [1.0], -5.0, "2", float("nan"), 1e13])
def test_malformed_times(far_and_session, us):
    far, session = far_and_session
    far.says({})
    session.show(INPUTS)
    slots = session.slots([OUTPUT])
    sets = SimpleNamespace(lay=lambda session, instead, again: INPUTS)
    far.says({"us": us})
    with pytest.raises(RunnerFailure, match="malformed"):
        driving.block_on_cpu(session, sets, {"slots": slots, "stateful": False}, 2, warm=0, patience_s=0.3)


def test_replies_sent_ahead_find_outputs_that_nobody_wrote(far_and_session):
    far, session = far_and_session
    for reply in ({}, *[{"us": 0.1, "places": [place_of(OUTPUT)]}, {}] * 3):
        far.says(reply)
    session.show(INPUTS)
    slots = session.slots([OUTPUT])
    sets = SimpleNamespace(lay=lambda session, instead, again: INPUTS)
    block = driving.block_on_cpu(session, sets, {"slots": slots, "stateful": False}, 3, warm=0, patience_s=0.3)
    assert block.late and session.kept_seen == 3 and all(t.isnan().all() for call in session.kept for t in call.tensors)


def test_what_is_compared_is_what_was_looked_at(far_and_session, monkeypatch):
    """Memory that a runner shares may hold another answer as soon as the judge has looked into it."""
    far, session = far_and_session
    session.memory = os.open("/proc/self/mem", os.O_RDONLY)
    far.says({})
    session.show(INPUTS)
    slots = session.slots([OUTPUT])
    lies_there = session.output(slots[0])
    arrived = Glimpse.arrived

    def then_changed(seen, there):
        told = arrived(seen, there)
        session.outputs.bytes_at(0, session.outputs.nbytes).fill_(0)
        return told

    monkeypatch.setattr(Glimpse, "arrived", then_changed)
    for reply in ({"us": 1.0, "places": [place_of(lies_there)]}, {}):
        far.says(reply)
    sets = SimpleNamespace(lay=lambda session, instead, again: INPUTS)
    block = driving.block_on_cpu(session, sets, {"slots": slots, "stateful": False}, 1, warm=0, patience_s=0.3)
    (kept,) = session.kept
    assert not block.late and kept.tensors[0].isnan().all() and (session.output(slots[0]) == 0).all()


def test_inputs_of_a_call_become_others_before_its_answer_is_looked_at(far_and_session):
    far, session = far_and_session
    far.says({})
    session.show(INPUTS)
    session.may_exchange = True
    others = [torch.full_like(each, 7.0) if isinstance(each, torch.Tensor) else each for each in INPUTS]
    sets = SimpleNamespace(lay=lambda session, instead, again: INPUTS, first=others)
    for reply in ({"us": 1.0, "structure": "T"}, {}):
        far.says(reply)
    request = {"slots": session.slots([OUTPUT]), "stateful": False}
    driving.block_on_cpu(session, sets, request, 1, warm=0, patience_s=0.3)
    (call,) = session.exchanged
    assert call.inputs is INPUTS and call.structure == "T" and not session.kept
    assert (session.seen_inputs()[0] == 7.0).all()


def test_an_answer_that_is_no_tensor_is_compared_in_timed_calls_too(far_and_session, tmp_path):
    _, session = far_and_session
    reference = reference_of(tmp_path, LINEAR)
    facts = Facts("fp32", "train", jumpy=False, random=False, relaxed_allowed=False)
    session.weights, inputs = reference.public, reference.draw()
    tensors = reference.call(inputs, reference.public, "plain").tensors
    session.kept = [driving.Kept(inputs, tensors, {}, structure="[T,3]")]
    wrong = timed_outputs.verify_timed(reference, facts, session, "fp32")["wrong"]
    assert wrong == "the outputs of a timed call are nested as [T,3], not T"


def test_numbers_of_a_draw_become_those_that_are_shown(far_and_session):
    far, session = far_and_session
    far.says({})
    session.show([torch.zeros(2, 3), 5, {"scale": 2}])
    drawn = [torch.ones(2, 3), 6, {"scale": 4}]
    tensor, number, others = session.fitted(drawn)
    assert tensor is drawn[0] and (number, others) == (5, {"scale": 2})
    assert session.fitted([torch.ones(3, 2), 5, {"scale": 2}]) is None
    assert session.fitted([torch.ones(2, 3), torch.ones(1), {"scale": 2}]) is None


def test_inputs_are_laid_when_state_is_put_back(far_and_session):
    far, session = far_and_session
    for reply in ({}, {}, {"us": 1.0}, {}):
        far.says(reply)
    session.show(INPUTS)
    laid = []
    sets = SimpleNamespace(lay=lambda session, instead, again: laid.append(instead) or INPUTS)
    request = {"slots": session.slots([OUTPUT]), "stateful": True}
    with pytest.raises(RunnerFailure, match="putting state back took longer"):
        driving.block_on_cpu(session, sets, request, 3, warm=0, patience_s=0.3)
    assert len(laid) == 1


def test_partners_are_names_whatever_is_sent(far_and_session):
    far, session = far_and_session
    for unmapped, expected in ((["a", 5, None], ["a", "5", "None"]), ("abc", []), (None, []), ([["x" * 999]], None)):
        far.says({"unmapped": unmapped})
        got = session.match({})
        assert got == expected or (expected is None and len(got[0]) <= 200)


def test_what_fits_can_be_laid_under_the_same_tensors(far_and_session):
    far, session = far_and_session
    far.says({})
    session.show(INPUTS)
    assert session.fits([torch.zeros(4, 3), 5]) and not session.fits([torch.zeros(4, 3), 6])
    assert not session.fits([torch.zeros(3, 4).t(), 5])
    other = torch.randn(4, 3)
    session.refill([other, 5])
    assert torch.equal(session.seen_inputs()[0], other)


def test_a_reservoir_keeps_a_few_of_all_calls(far_and_session):
    far, session = far_and_session
    far.says({})
    session.show([1])
    slots = session.slots([OUTPUT])
    for index in range(200):
        driving.keep_some(session, [index], slots, us=1.0 + index)
    kept = [call.inputs[0] for call in session.kept]
    assert len(kept) == driving.KEPT and session.kept_seen == 200 and max(kept) > 20


def test_the_outputs_of_the_quickest_calls_are_kept_whenever_they_come(far_and_session):
    far, session = far_and_session
    far.says({})
    session.show([1])
    slots = session.slots([OUTPUT])
    for index in range(200):
        driving.keep_some(session, [index], slots, us=5.0 if index in (30, 70, 190) else 40.0 + index % 7)
    assert {call.inputs[0] for _, call in session.quickest["call"]} == {30, 70, 190}
    assert len(session.kept) == driving.KEPT


def test_the_quickest_call_of_either_clock_is_kept_and_comes_first(far_and_session, monkeypatch):
    far, session = far_and_session
    far.says({})
    session.show([1])
    slots = session.slots([OUTPUT])
    for index in range(40):
        driving.keep_some(session, [index], slots, us=10.0 + index, clock="device")
    for index in range(40, 80):
        driving.keep_some(session, [index], slots, us=200.0 - index, clock="call")
    first = [call.inputs[0] for call in timed_outputs.kept_calls(session)]
    assert first[:6] == [0, 79, 1, 78, 2, 77] and len(first) == len(set(first)) <= 6 + driving.KEPT

    session.kept, session.quickest, session.kept_seen = [], {}, 0
    monkeypatch.setattr(driving, "KEPT_BYTES", 1)
    for index, clock in enumerate(["device", "call"] * 20):
        driving.keep_some(session, [index], slots, us=100.0 - index, clock=clock)
    assert timed_outputs.kept_calls(session)[0].inputs == [39] and len(session.kept) == 1
    assert sum(map(len, session.quickest.values())) == 1, "where calls are large no more of them are held"


def test_times_of_earlier_calls_cannot_be_told_anew_at_the_end(far_and_session):
    far, session = far_and_session
    for reply in ({}, {"us": 7.0}, {}, {"us": 8.0}, {}, {"us": 9.0}, {"samples": [0.1, 0.1, 0.1]}):
        far.says(reply)
    session.show(INPUTS)
    sets = SimpleNamespace(lay=lambda session, instead, again: INPUTS)
    request = {"slots": session.slots([OUTPUT]), "stateful": False}
    block = driving.block_on_cpu(session, sets, request, 3, warm=0, patience_s=0.3)
    assert block.samples == [7.0, 8.0, 9.0]


def test_state_is_another_before_each_call(far_and_session):
    far, session = far_and_session
    far.says({})
    session.share(INPUTS, [OUTPUT], [torch.zeros(50, 3), torch.zeros(())], None, None)
    far.says({})
    session.weights = {"hidden": torch.randn(50, 3), "count": torch.tensor(5), "other": torch.randn(2)}
    session.set_weights({name: session.weights[name] for name in ("hidden", "count")})
    places = session.vary_state(["hidden", "count", "unknown"])
    laid = []
    for _ in range(2):
        session.lay_state()
        assert torch.equal(view(places["hidden"], session.state), session.laid_state["hidden"])
        ratio = session.laid_state["hidden"] / session.weights["hidden"]
        assert 0.79 < ratio.min() < 0.9 and 1.1 < ratio.max() < 1.26 and session.laid_state["count"] == 5
        laid.append(session.laid_state["hidden"])
    assert not torch.equal(*laid) and set(places) == {"hidden", "count"}


def test_some_weights_are_others_in_later_blocks(far_and_session):
    far, session = far_and_session
    far.says({})
    model = torch.nn.Linear(50, 50)
    session.share(INPUTS, [OUTPUT], [torch.zeros(50, 50), torch.zeros(50)], None, None)
    reference: Any = SimpleNamespace(model=model, data=(), changed_state=[], call=lambda *_: None)
    session.weights, before = {name: value.detach().clone() for name, value in model.state_dict().items()}, {}
    assert not any(preparing.vary_weights(reference, session, INPUTS) for _ in range(6)), "not of every runner"
    session.weights_vary, session.blocks_alike, varied = True, 0, []
    for _ in range(6):
        far.says({})
        before = session.weights
        varied.append(preparing.vary_weights(reference, session, INPUTS))
        changed = sum(int((session.weights[name] != before[name]).sum()) for name in before)
        assert (0 < changed <= 8) == varied[-1] and session.starts_from == session.weights
    assert not varied[0] and 2 <= sum(varied) <= 3 and any(varied[1:3])
    session.varying_s = 2 * preparing.VARYING_S
    assert not any(preparing.vary_weights(reference, session, INPUTS) for _ in range(6)), "they take too long"


class Drawn:
    """A reference whose inputs take as long to draw as is said."""

    device = "cpu"

    def __init__(self, seconds: float) -> None:
        self.seconds, self.count = seconds, 0

    def draw(self) -> list[torch.Tensor]:
        time.sleep(self.seconds)
        self.count += 1
        return [torch.full((4, 3), float(self.count))]


def test_every_sample_has_new_inputs_however_long_they_take_to_draw(far_and_session, monkeypatch):
    _, session = far_and_session
    monkeypatch.setattr(session, "fits", lambda inputs: True)
    monkeypatch.setattr(session, "refill", lambda inputs: None)
    supply = driving.Supply(Drawn(0.004))
    laid = [float(supply.lay(session, again=again)[0][0, 0]) for again in (False, True, False, False, True)]
    assert laid == [3.0, 3.0, 4.0, 5.0, 5.0] and supply.us >= 4000
    drawn, other = supply._reference.count, [torch.full((4, 3), -24.0)]
    assert supply.lay(session, instead=other) is other
    assert supply._reference.count == drawn + 1, "laying others takes as long"


def test_an_input_that_a_timed_call_changes_is_noted(far_and_session):
    far, session = far_and_session
    far.says({})
    session.show(INPUTS)
    slots = session.slots([OUTPUT])
    driving.keep_some(session, INPUTS, slots, us=1.0)
    assert session.changed_input is None
    session.seen_inputs()[0][0, 0] += 1
    session.may_change = [0]
    driving.keep_some(session, INPUTS, slots, us=1.0)
    assert session.changed_input is None
    session.may_change = []
    driving.keep_some(session, INPUTS, slots, us=1.0)
    assert session.changed_input == 0


@pytest.mark.parametrize("count", [1, 3])
def test_calls_of_a_block_with_other_inputs_are_no_samples(far_and_session, count):
    far, session = far_and_session
    for reply in ({}, *(reply for n in range(9 + count) for reply in ({"us": float(n)}, {}))):
        far.says(reply)
    session.show(INPUTS)
    slots, laid = session.slots([OUTPUT]), []
    others = [(Plan("timed", factor=-4.0), INPUTS), (Plan("mixed", in_forms=True), INPUTS), (Plan("rows"), INPUTS)]
    sets = SimpleNamespace(
        lay=lambda session, instead, again: laid.append(instead is not None) or INPUTS,
        take=lambda session, count: others[:count],
    )
    request = {"slots": slots, "stateful": False}
    block = driving.block_on_cpu(session, sets, request, 8, warm=1, patience_s=0.3, strange=count)
    assert not laid[0] and laid.count(True) == count and laid.count(False) == 9
    assert session.strange.keys() == {plan for plan, _ in others[:count]}
    assert block.samples == [n for n in range(1, 9 + count) if not laid[n]] and len(block.judge) == 8


class Held(threading.Thread):
    """A runner on a GPU: what lies in its inputs when each call has returned behind the gate, and once that is open."""

    def __init__(self, session: Session, calls: int) -> None:
        super().__init__(daemon=True)
        self.control = Control.attach(*(os.dup(fd) for fd in session.control.fds))
        self.session, self.calls = session, calls
        self.seen: list[tuple[float, float]] = []

    def run(self) -> None:
        first = self.session.sequence + 1
        for sequence in range(first, first + self.calls):
            assert self.control.wait(Control.GO, sequence, 30)
            behind = float(self.session.seen_inputs()[0][0, 0])
            for word in (Control.GATE_RESIDENT, Control.ENQUEUED):
                self.control.put(word, sequence)
            assert self.control.wait(Control.GATE_OPEN, sequence, 30)
            self.seen.append((behind, float(self.session.seen_inputs()[0][0, 0])))
            for word in (Control.FINISHED, Control.DONE, Control.DELIVERED):
                self.control.put(word, sequence)


@pytest.mark.parametrize(
    ("clock", "sequence", "in_time_s", "held"),
    [("device", 9, 30.0, 1), ("device", 9, -1.0, 0), ("device", 0, 30.0, None), ("call", 9, 30.0, None)],
)
def test_inputs_of_a_call_on_a_gpu_change_behind_its_gate(
    far_and_session, monkeypatch, clock, sequence, in_time_s, held
):
    far, session = far_and_session
    far.says({})
    session.show(INPUTS)
    slots, calls = session.slots([OUTPUT]), 6 if held is None else 7
    session.control, session.sequence, session.may_exchange = Control.create(), sequence, True
    monkeypatch.setattr(driving, "EXCHANGED", 1.0)
    monkeypatch.setattr(driving, "EXCHANGED_S", in_time_s)
    drawn = itertools.count(1.0)
    sets = SimpleNamespace(draw=lambda session: [torch.full((4, 3), -1.0), 5])

    def lay(session, instead, again):
        inputs = [torch.full((4, 3), next(drawn)), 5]
        session.refill(inputs)
        return inputs

    sets.lay = lay
    runner = Held(session, calls)
    far.says({"samples": [float(n) for n in range(calls)], "form": []})
    runner.start()
    block = driving.block_on_cuda(session, sets, {"slots": slots}, 5, clock=clock, warm=1, patience_s=30.0)
    runner.join(30)
    changed = [n for n, (behind, after) in enumerate(runner.seen) if behind != after]
    assert len(changed) == (held is not None) and len(block.samples) == len(block.judge) == len(block.outside) == 5
    assert not changed or (changed[0] > 0 and runner.seen[changed[0]][1] == -1.0)
    assert not set(changed) & set(block.samples), "it is no sample"
    assert [float(call.inputs[0][0, 0]) for call in session.exchanged] == [-1.0] * (held or 0)
    assert session.kept_seen == 6
    runner.control.close()


def test_an_answer_to_inputs_that_are_gone_when_the_gate_opens_is_wrong(far_and_session, tmp_path):
    _, session = far_and_session
    reference = reference_of(tmp_path, LINEAR)
    before, behind = reference.draw(), reference.draw()
    facts = Facts("fp32", "train", jumpy=False, random=False, relaxed_allowed=False)
    session.weights = reference.public
    for inputs, wrong in ((behind, None), (before, "a timed call whose inputs were exchanged for others errs by")):
        tensors = reference.call(inputs, reference.public, "plain").tensors
        session.exchanged = [driving.Kept(behind, tensors, {}, structure="T")]
        found = timed_outputs.verify_timed(reference, facts, session, "fp32")
        assert found["compared"] == 1 and session.exchanged == []
        assert found["wrong"] is None if wrong is None else found["wrong"].startswith(wrong)


def test_kept_calls_of_other_forms_fit_into_their_room(far_and_session, monkeypatch):
    far, session = far_and_session
    far.says({})
    session.show(INPUTS)
    slots = session.slots([OUTPUT])
    monkeypatch.setattr(driving, "KEPT_BYTES", 2 * (total_bytes(INPUTS) + total_bytes([OUTPUT])))
    for number in range(5):
        driving.keep_some(session, INPUTS, slots, us=1.0, form=Plan(f"form {number}"))
    assert len(session.strange) == 2 and Plan("form 4") in session.strange and session.kept_seen == 0
    session.seen_inputs()[0][0, 0] += 1
    driving.keep_some(session, INPUTS, slots, us=1.0, form=Plan("mixed"))
    assert session.changed_input == 0


class Draws:
    """A reference that stands no signs but four times its inputs, and refuses what holds a 7."""

    public: ClassVar = {}

    def __init__(self) -> None:
        self.stands = {-1.0: False, -4.0: False, 4.0: True}
        self.forms = {
            Plan("mixed", in_forms=True): lambda drawn: ([drawn[0] * 0], True),
            Plan("rows", in_forms=True): lambda drawn: ([drawn[0] * 0 + 7], True),
            Plan("choices", in_forms=True): lambda drawn: (drawn, False),
        }

    def draw(self):
        return [torch.rand(2, 2)]

    def call(self, inputs, weights, how):
        if 7.0 in inputs[0]:
            raise BadTask("seven")


def test_uncounted_calls_have_the_forms_that_the_reference_stands(far_and_session, monkeypatch):
    _, session = far_and_session
    monkeypatch.setattr(session, "fits", lambda inputs: True)
    reference = Draws()
    uncounted.prepare(reference, session, reference.draw())
    assert session.factors == (4.0,)
    taken = [plan.kind for _ in range(4) for plan, _ in uncounted.take(reference, session, 2)]
    assert len(taken) == 8 and min(taken.count("mixed"), taken.count("timed")) >= 3, (
        "all have their turn, again and again"
    )
    session.factors, session.forms, reference.forms = (), [], {}
    assert uncounted.take(reference, session, 5) == [], "nothing but ordinary inputs"


def test_closing_gives_the_shared_memory_back():
    before = len(os.listdir("/proc/self/fd"))
    ours, theirs = Channel.pair()
    far = Far(os.dup(theirs.fileno()))
    theirs.close()
    session = Session("r", ours, "cpu", None, Deadlines(1.0, 1.0, 1.0))
    far.says({})
    session.share(INPUTS, [OUTPUT], [], None, None)
    session.close()
    far.socket.close()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    "told", [None, "x", [1], [1, "2"], [1, -4], [10**9, 1], [True, 1], [4, 1]], ids=lambda told: str(told)
)
def test_strides_that_mean_nothing_cost_nothing(told):
    assert copying.layout_us([{"stride": told}], [torch.ones(4, 4)]) == 0.0


def test_what_another_layout_costs_to_copy_is_measured():
    like = torch.ones(2048, 2048)
    assert copying.layout_us([{"stride": [1, 2048]}], [like]) > 0.0
    assert copying.layout_us([{}], [torch.ones(0)]) == copying.layout_us([], [like]) == 0.0
