"""Driven calls: the judge writes each call's inputs, starts it, waits, takes the outputs, and keeps a clock of its own.

No later call's inputs exist in the runner's reach, and the runner cannot know which outputs will be compared: the judge
draws that after each copy has arrived (a reservoir of at most 8 within 1 GiB). Those of the quickest calls always are:
a wrong answer pays only where it is quick. A call on the device clock is quicker than one on the call clock.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from . import drawing, plans, state, uncounted
from .control import Control
from .entropy import ENTROPY
from .gate import open_gate
from .reference import Reference, synchronize
from .session import RunnerFailure, Session, total_bytes
from .tensors import leaves, view

KEPT, KEPT_BYTES = 8, 1 << 30
"""Timed calls of a runner whose outputs are kept to be compared, at the most, and bytes for them."""
QUICKEST = 3
"""The quickest calls on each clock, whose outputs are kept besides."""
GATE_PATIENCE_S, SHORT_PATIENCE_S = 0.02, 0.002
"""A call that has not returned behind the closed gate by then waits for the device itself; its gate is opened. After
`OPENED` such calls in a block no other one is waited for as long."""
OPENED = 3
SCRIBBLED = 1 / 2
"""The share of timed calls whose outputs are written to afterwards."""
SLOPE_COUNTS, SLOPE_REPEATS = (16, 64), 5
"""Numbers of calls behind one gate between which the slope is taken, and how often each is timed."""
FLUSH_S = 0.002
"""Flushing the cache and filling the device with the gate, before the call."""
EXCHANGED, EXCHANGED_S = 3 / 4, 0.04
"""The share of blocks on the device clock with a call whose inputs are exchanged behind the shut gate, and within how
long that must be over to be compared: a gate leaves by itself after 0.05 s."""


@dataclass
class Block:
    """What one block of driven calls gave: the runner's samples and the judge's, microseconds."""

    samples: list[float]
    judge: list[float]
    outside: list[float]
    """What a cycle takes beside the judge's window, where inputs or outputs are in reach; on a CPU the window is all of
    it: empty."""
    late: bool = False
    """An output was not yet there when its call had returned."""
    opened: int = 0
    """Calls that had not returned behind the gate when it was opened: the host's part stands in their figures."""


class Supply:
    """Inputs for timed calls, drawn anew for each however long that takes: an answer that is remembered from an earlier
    call is a wrong one, and a scaled one is drawn from an earlier call, too, where a task is linear."""

    def __init__(self, reference: Reference) -> None:
        self._reference = reference
        self.first = reference.draw()
        begin = time.perf_counter()
        self._last = reference.draw()
        synchronize(reference.device)
        self.us = (time.perf_counter() - begin) * 1e6
        """What one set takes to draw, microseconds."""

    def take(self, session: Session, count: int) -> list[tuple[plans.Plan, drawing.Inputs]]:
        """Inputs of other forms for calls that are no samples."""
        return uncounted.take(self._reference, session, count)

    def lay(self, session: Session, *, instead: drawing.Inputs | None = None, again: bool = False) -> drawing.Inputs:
        """Put inputs of a next call under the tensors that the runner looks at; what they are. `again`: those of the
        call before will do, since it is no sample. `instead`: these, after as long as drawing others takes."""
        inputs = self._last = self._last if again else self._reference.draw()
        if instead is not None:
            inputs = instead
        inputs = self._fitting(session, inputs)
        session.refill(inputs)
        return inputs

    def draw(self, session: Session) -> drawing.Inputs:
        """Inputs for a call that lie elsewhere."""
        return self._fitting(session, self._reference.draw())

    def _fitting(self, session: Session, inputs: drawing.Inputs) -> drawing.Inputs:
        """These, with numbers of the first ones where theirs are others; the first ones only where the reference stands
        no such mixture."""
        fitted = session.fitted(inputs)
        if fitted is inputs or (fitted is not None and uncounted.answers(self._reference, fitted, session.weights)):
            return fitted
        return self.first


@dataclass
class Kept:
    """A timed call that can be compared: what it was given and what it gave."""

    inputs: drawing.Inputs
    tensors: list[torch.Tensor]
    """Copies of the outputs, then of arguments and state that the reference changes."""
    state: state.State
    """Of the module before the call: weights, which change between blocks, and state, which is another one in each."""
    seed: int | None = None
    """What its random numbers follow from, in a task that has some."""
    structure: str = ""
    """How its outputs are nested, with those that are no tensors, as its runner told."""
    earlier: Sequence[drawing.Inputs] | None = None
    """What calls of the same row were given before, where something hangs on them: only its outputs are known then."""


def keep_some(
    session: Session,
    inputs: drawing.Inputs,
    slots: Sequence[dict[str, Any]],
    *,
    us: float,
    clock: str = "call",
    form: plans.Plan | None = None,
    seed: int | None = None,
    structure: str = "",
) -> Kept | None:
    """Keep this call's inputs and outputs, or not (None): reservoir sampling over all timed calls of this runner, and
    those of the quickest on each clock (`us`: by whoever measures it), or on all of them where there is room for one.
    `form`: of one that is no sample, and kept while there is room, the last of each form."""
    outputs = [view(s, session.outputs) for s in slots]
    fit = KEPT_BYTES // max(1, total_bytes(outputs) + total_bytes(inputs))
    if form is not None:
        if len(session.strange) >= max(1, fit):
            session.strange.pop(ENTROPY.choice(list(session.strange)))
        kept = session.strange[form] = Kept(inputs, [t.clone() for t in outputs], session.starts_from, None, structure)
        _look_at_inputs(session, inputs)
        return kept
    session.kept_seen += 1
    room = max(1, min(KEPT, fit))
    place = len(session.kept) if len(session.kept) < room else ENTROPY.randrange(session.kept_seen)
    few = min(QUICKEST, room)
    clock = clock if room > 1 else ""
    quickest = session.quickest.get(clock, [])
    is_quick = len(quickest) < few or us < quickest[-1][0]
    if not (is_quick or place < room):
        return None
    kept = Kept(inputs, [t.clone() for t in outputs], session.starts_from, seed, structure)
    if place < room:
        session.kept[place : place + 1] = [kept]
    if is_quick:
        session.quickest[clock] = sorted([*quickest, (us, kept)], key=lambda each: each[0])[:few]
    _look_at_inputs(session, inputs)
    return kept


def _look_at_inputs(session: Session, inputs: drawing.Inputs) -> None:
    for index, (seen, own) in enumerate(zip(session.seen_inputs(), leaves(inputs), strict=True)):
        if index not in session.may_change and not state.same(seen, own):
            session.changed_input = index


@dataclass(frozen=True)
class _Course:
    """How many calls a block has, and which of them are no samples since their inputs are of another form.

    A candidate that is right in the trials only is wrong there, and cannot know which calls these are.
    """

    total: int
    odd: dict[int, tuple[plans.Plan, drawing.Inputs]]
    scribbled: list[int]
    """Calls whose outputs are written to before they are let go of, as a caller may: what is found in that memory by
    the next call is nothing to rely on."""
    exchanged: dict[int, drawing.Inputs]
    """Calls that are no samples either: on a GPU they find these inputs once their gate opens, and others before."""

    @classmethod
    def of(
        cls, session: Session, supply: Supply, calls: int, warm: int, strange: int, *, exchanges: int = 0
    ) -> _Course:
        taken = supply.take(session, strange) if strange else []
        others = [supply.draw(session) for _ in range(exchanges)]
        total = warm + calls + len(taken) + len(others)
        places = ENTROPY.sample(range(warm, total), len(taken) + len(others))
        odd = dict(zip(places, taken, strict=False))
        scribbled = [n for n in range(total) if session.writable and ENTROPY.random() < SCRIBBLED]
        return cls(total, odd, scribbled, dict(zip(places[len(taken) :], others, strict=True)))

    @property
    def uncounted(self) -> Collection[int]:
        return self.odd.keys() | self.exchanged.keys()

    def form(self, number: int) -> plans.Plan | None:
        return self.odd[number][0] if number in self.odd else None

    def inputs(self, number: int) -> drawing.Inputs | None:
        return self.odd[number][1] if number in self.odd else None


def block_on_cpu(
    session: Session,
    supply: Supply,
    request: dict[str, Any],
    calls: int,
    *,
    warm: int,
    patience_s: float,
    strange: int = 0,
) -> Block:
    """`calls` driven calls after `warm` that are not counted. The judge's figure is the round trip until the runner
    says that the call has returned; it delivers the outputs when the judge has had a glimpse of them where they lie.
    `strange`: so many calls more are among them, which are no samples.

    Where a call changes state, each begins from another one: were it always the same, what follows from it could be
    remembered. Inputs are laid when that is in its place: a runner still at it would be slower to begin.
    """
    course = _Course.of(session, supply, calls, warm, strange)
    block = {
        "op": "block",
        "calls": course.total,
        "scribbled": course.scribbled,
        "writable": session.writable,
        "patience_s": patience_s,
        **request,
    }
    samples, judge, late = [], [], False
    exchanged = _exchanged_on_cpu(session, course)
    for number in range(course.total):
        start = {"op": "go"} if number else block
        if request["stateful"]:
            session.lay_state()
            session.send({"op": "state"} if number else block)
            session.receive(patience_s, "putting state back")
            start = {"op": "go"}
        inputs = supply.lay(session, instead=course.inputs(number), again=number < warm)
        seed = seed_of(session)
        begin = time.perf_counter_ns()
        session.send({**start, "seed": seed})
        reply = session.receive(patience_s, "a timed call")
        judge.append((time.perf_counter_ns() - begin) / 1e3)
        samples.append(_number(reply.get("us")))
        if is_exchanged := number == exchanged and inputs is not supply.first:
            session.refill(supply.first)
        seen, held_up = session.look(reply.get("places"), request["slots"], session.unpartnered)
        judge[-1] += held_up
        session.send({"op": "deliver"})
        delivered = session.receive(patience_s, "a timed call")
        structure = structure_told(reply)
        kept: Kept | None
        if is_exchanged:
            kept = Kept(inputs, [session.output(s) for s in request["slots"]], session.starts_from, seed, structure)
            session.exchanged = [kept]
        else:
            us, form = samples[-1] + judge[-1], course.form(number)
            kept = keep_some(session, inputs, request["slots"], us=us, form=form, seed=seed, structure=structure)
        there = kept.tensors if kept else [view(slot, session.outputs) for slot in request["slots"]]
        late = late or not all(each.arrived(there) for each in seen)
    session.timed_form = _form(delivered)
    samples, judge = (_without(times, course.uncounted)[warm:] for times in (samples, judge))
    return Block(samples, judge, [], late)


def _exchanged_on_cpu(session: Session, course: _Course) -> int | None:
    """A call of a block whose inputs become others when it has returned, before anybody looks at its answer: what still
    follows from them is a view, or work that is late. Some that is a sample."""
    places = [number for number in range(course.total) if number not in course.uncounted]
    return ENTROPY.choice(places) if session.may_exchange and places else None


def structure_told(reply: dict[str, Any]) -> str:
    """How a runner says that the outputs of a call are nested."""
    return str(reply.get("structure"))


def seed_of(session: Session) -> int | None:
    """A secret one for the next call, known to nobody before; 31 bits, as a word of the control pages holds."""
    return drawing.secret_seed() & 0x7FFFFFFF if session.seeded else None


def _without(samples: Sequence[Any], places: Collection[int]) -> list[Any]:
    return [sample for number, sample in enumerate(samples) if number not in places]


def _number(value: Any) -> float:
    if isinstance(value, int | float) and 0 <= value < 1e12:
        return float(value)
    raise RunnerFailure("CRASHED", "the runner sent a malformed time", "timing")


def _form(reply: dict[str, Any]) -> list[Any]:
    told = reply.get("form")
    return told if isinstance(told, list) else []


def _samples(reply: dict[str, Any], count: int) -> list[float]:
    samples = reply.get("samples")
    if not isinstance(samples, list) or len(samples) != count:
        raise RunnerFailure("CRASHED", "the runner sent a malformed list of times", "timing")
    return [_number(s) for s in samples]


def block_on_cuda(
    session: Session,
    supply: Supply,
    request: dict[str, Any],
    calls: int,
    *,
    clock: str,
    warm: int,
    patience_s: float,
    strange: int = 0,
) -> Block:
    """The same on a GPU, driven by words in shared pages instead of messages.

    `device`: the judge's figure runs from opening the gate to done. `call`: from the start signal to completion.
    The word that opens the gate is the start signal too. Beside that window lie, on either clock, what the runner
    does between the judge's word that the inputs are there and the gate's standing on the device (or its own word that
    the device is idle), and the copy of the outputs. What the runner does behind the shut gate is launching, and in
    neither: no kernel of its context can run then, unless its process has undone the gate. In a call of some blocks
    inputs are exchanged before the gate opens, as if they were made on the caller's stream just then: who has read them
    by other ways than that stream answers for inputs that are gone.
    """
    control: Control = session.control
    course = _Course.of(session, supply, calls, warm, strange, exchanges=_exchanges(session, clock))
    first = session.sequence + 1
    session.send(
        {
            "op": "block",
            "clock": clock,
            "calls": course.total,
            "scribbled": course.scribbled,
            "writable": session.writable,
            "first": first,
            "patience_s": patience_s,
            "seeded": session.seeded,
            **request,
        }
    )
    judge, outside, opened = [], [], 0
    kept: dict[int, Kept | None] = {}
    for number in range(course.total):
        sequence = first + number
        patience = GATE_PATIENCE_S if opened < OPENED else SHORT_PATIENCE_S
        inputs = supply.lay(session, instead=course.inputs(number), again=number < warm)
        seed = seed_of(session)
        control.put(Control.SEED, seed or 0)
        go = time.perf_counter_ns()
        control.put(Control.GO, sequence)
        if clock == "device":  # enqueued: the call has returned behind the closed gate
            control.wait(Control.GATE_RESIDENT, sequence, GATE_PATIENCE_S)
            ready = time.perf_counter_ns()
            returned = control.wait(Control.ENQUEUED, sequence, patience + FLUSH_S - (ready - go) / 1e9)
            opened += not returned
        else:  # enqueued: the cache is flushed and the device idle
            _await(session, Control.ENQUEUED, sequence, patience_s)
            ready = time.perf_counter_ns()
        if (other := course.exchanged.get(number)) is not None:
            inputs = other
            session.refill(inputs)
        begin = time.perf_counter_ns()
        open_gate(control, sequence)
        _await(session, Control.FINISHED if clock == "device" else Control.DONE, sequence, patience_s)
        end = time.perf_counter_ns()
        judge.append((end - begin) / 1e3)
        _await(session, Control.DELIVERED, sequence, patience_s)
        outside.append((ready - go + time.perf_counter_ns() - end) / 1e3)
        if other is not None:
            if begin - go < 1e9 * EXCHANGED_S:
                outputs = [view(slot, session.outputs).clone() for slot in request["slots"]]
                kept[number] = Kept(inputs, outputs, session.starts_from)
                session.exchanged = [kept[number]]
            continue
        form = course.form(number)
        kept[number] = keep_some(session, inputs, request["slots"], us=judge[-1], clock=clock, form=form, seed=seed)
    session.sequence = first + course.total - 1
    reply = session.receive(patience_s, "a timed call")
    session.timed_form, samples = _form(reply), _samples(reply, course.total)
    structures = reply.get("structures")
    for number, call in kept.items():
        if call is not None and isinstance(structures, list) and len(structures) == course.total:
            call.structure = str(structures[number])
    samples, judge, outside = (_without(times, course.uncounted)[warm:] for times in (samples, judge, outside))
    return Block(samples, judge, outside, opened=opened)


def _exchanges(session: Session, clock: str) -> int:
    """How many calls of a block have their inputs exchanged behind the gate: none in the first, by which others are
    planned, since writing to a device that a gate holds takes longer."""
    fits = 2 * (session.inputs.nbytes + session.outputs.nbytes) <= KEPT_BYTES
    may = clock == "device" and session.may_exchange and session.sequence > 0 and fits
    return int(may and ENTROPY.random() < EXCHANGED)


def slope_on_cuda(session: Session, supply: Supply, *, patience_s: float) -> float | None:
    """Device time of one call as the slope over 16 and 64 calls behind one gate, by the judge's clock; microseconds.

    A lower bound of the cold call, since the cache is warm. None when a gate had to be opened before all calls were
    enqueued: the host would be part of the figure.
    """
    control: Control = session.control
    counts = SLOPE_COUNTS * SLOPE_REPEATS
    first = session.sequence + 1
    supply.lay(session)
    session.send({"op": "slope", "counts": list(counts), "first": first, "patience_s": patience_s})
    times: dict[int, list[float]] = {}
    hidden = True
    for number, count in enumerate(counts):
        sequence = first + number
        control.put(Control.GO, sequence)
        hidden = control.wait(Control.ENQUEUED, sequence, GATE_PATIENCE_S + FLUSH_S) and hidden
        begin = time.perf_counter_ns()
        open_gate(control, sequence)
        _await(session, Control.FINISHED, sequence, patience_s)
        times.setdefault(count, []).append((time.perf_counter_ns() - begin) / 1e3)
        _await(session, Control.DELIVERED, sequence, patience_s)
    session.sequence = first + len(counts) - 1
    session.receive(patience_s, "timed calls")
    few, many = SLOPE_COUNTS
    return (statistics.median(times[many]) - statistics.median(times[few])) / (many - few) if hidden else None


def _await(session: Session, word: Any, sequence: int, seconds: float) -> None:
    """Spin on a word of the runner's; a reply that comes instead is an error of the candidate's."""
    control: Control = session.control
    deadline = time.perf_counter() + seconds
    while not control.wait(word, sequence, min(0.25, seconds)):
        if session.has_message():
            session.receive(0.0, "a timed call")
            raise RunnerFailure("CRASHED", "the runner ended its block early", "timing")
        if time.perf_counter() > deadline:
            raise RunnerFailure("TIMED_OUT", f"a timed call took longer than {seconds:.1f} s", "timing")
