"""The judge's end of one runner: buffers that both see, operations with deadlines, and replies that are not believed.

A reply is evidence from a process that may be hostile: anything malformed, late or missing becomes a `RunnerFailure`.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from . import buffers, glimpse, tensors
from .channel import Channel, ChannelClosed, ProtocolError
from .glimpse import Glimpse
from .reference import Answer
from .resting import SLICE_S
from .tensors import layout, leaves, map_leaves, nbytes_needed, pack, places, rewrite, view, with_leaves, write
from .weight_forms import varied

NO_PARTNER = "no partner"


@dataclass
class RunnerFailure(Exception):
    """Why a runner gave no usable answer. `DIED` is refined by the parent, which knows the exit status."""

    outcome: str
    detail: str
    stage: str

    def as_json(self) -> dict[str, str]:
        return {"outcome": self.outcome, "detail": self.detail, "stage": self.stage}


@dataclass(frozen=True)
class Deadlines:
    """Seconds that an operation may take."""

    load_s: float
    first_call_s: float
    """For the first call in a mode and with inputs of a form: compilers run in it."""
    call_s: float


@dataclass
class Reply:
    """What a runner said about one call, checked for shape but not believed."""

    structure: str
    outputs: list[dict[str, Any]]
    reused: bool
    us: float
    shared: frozenset[int] = frozenset()
    """Places of outputs that begin at the address of an earlier one."""
    exposed: frozenset[int] = frozenset()
    """Places of outputs that lie in the module's own parameters or buffers."""
    overwritten: Sequence[str] = ()
    """State of the reference's that the call has left with other values, where that was asked."""
    rearranged: bool = False
    """The call has left its arguments in another shape or layout, or a list of them in another length."""

    @property
    def unpartnered(self) -> set[int]:
        """Places of changed state that the candidate has no tensor for."""
        return {index for index, output in enumerate(self.outputs) if output.get("problem") == NO_PARTNER}


class Session:
    """One runner as the judge sees it."""

    def __init__(self, name: str, channel: Channel, device: str, driver: Any, deadlines: Deadlines) -> None:
        self.name = name
        self.device = device
        self._channel = channel
        self._driver = driver
        self.deadlines = deadlines
        self.rest: Callable[[], None] | None = None
        """Where given, others may work on the device while its runner is in the middle of something."""
        self.control: Any = None
        self.reused = False
        self.called = False
        self._mode = ""
        self._layout: Any = None
        self._like: Any = None
        """What is shown, with tensors of no elements."""
        self._reading_us: dict[tuple[int, ...], float] = {}
        self._offset = 0
        self._met: list[Any] = []
        """In which mode, and with inputs of which layout and offset, it has answered a call."""
        self.seeded = False
        """Whether each timed call has a seed of its own, since the task's answers differ with it."""
        self.pid = 0
        self.memory = -1
        """A descriptor of the runner's memory, which it has given before its candidate was known."""
        self.writable: list[int] = []
        """Places of the outputs of a timed call that a caller may write to: they are memory of their own."""
        self.kept: list[Any] = []
        """A few timed calls (`driving.Kept`)."""
        self.quickest: dict[str, list[tuple[float, Any]]] = {}
        """Those of the quickest timed calls by clock, with what these took; some may be among `kept` too."""
        self.kept_seen = 0
        self.may_exchange = False
        """Whether inputs of some driven calls may be exchanged: on a GPU behind the shut gate, on a CPU once the call
        has returned."""
        self.exchanged: list[Any] = []
        """The last such call."""
        self.back_to_back: list[tuple[float, Any]] = []
        """One call of each row, those of the quickest first, with what its stretch took."""
        self.strange: dict[Any, Any] = {}
        """The same of driven calls that are no samples, by the form of their inputs (`plans.Plan`), as many as fit."""
        self.compared: set[Any] = set()
        """Forms of which a driven call was compared."""
        self.factors: tuple[float, ...] = ()
        """By which their inputs are multiplied; none where the reference stands none."""
        self.forms: list[Any] = []
        """Those that have not had their turn yet."""
        self.timed_form: list[Any] = []
        """What its runner says of whose memory the answers of timed calls are."""
        self.may_change: Sequence[int] = ()
        """Arguments that the reference changes."""
        self.changed_input: int | None = None
        """An input that a timed call has changed although the reference leaves it alone."""
        self.unpartnered: set[int] = set()
        """Places of the answer that hold state which the candidate does not have."""
        self.weights: Mapping[str, torch.Tensor] = {}
        """What timed calls are made with just now."""
        self.mapped = False
        """Whether it can be given other weights."""
        self.weights_vary = False
        """Whether some of them become others between blocks of timed calls."""
        self.blocks_alike = 0
        """Blocks that have begun since they last did."""
        self.varying_s = 0.0
        """Seconds that this has taken."""
        self.moving: dict[str, torch.Tensor] = {}
        """State that a timed call changes, as it is where it is not varied."""
        self.fixed: set[str] = set()
        """State of the reference's that the candidate has no tensor for, or that only its own method can set."""
        self.guessed: list[str] = []
        """State of the reference's whose partner was one of several as good ones, and that partner."""
        self.unlike: list[str] = []
        """State of the reference's that the candidate's constructor has given other values; none once any are laid."""
        self.laid_state: dict[str, torch.Tensor] = {}
        """What it was before the call that is being made, where it is varied."""
        self.sequence = 0
        self.request: dict[str, Any] = {}

    # ── operations ────────────────────────────────────────────────────────────────────────────────

    def ask(self, op: str, timeout: float, stage: str, fds: Sequence[int] = (), **fields: Any) -> dict[str, Any]:
        """Send an operation and wait for its reply. Raises RunnerFailure."""
        self._mode = str(fields.get("mode", self._mode))
        try:
            self._channel.send({"op": op, **fields}, fds)
        except (ChannelClosed, TimeoutError) as error:
            raise RunnerFailure("DIED", f"the runner is gone before `{op}`", stage) from error
        return self.receive(timeout, stage)

    def receive(self, timeout: float, stage: str) -> dict[str, Any]:
        """The next message of the runner's; an error reply becomes a RunnerFailure."""
        return self._receive(timeout, stage)[0]

    def _receive(self, timeout: float, stage: str, max_fds: int = 0) -> tuple[dict[str, Any], list[int]]:
        try:
            reply, fds = self._awaited(timeout, max_fds)
        except ChannelClosed as error:
            raise RunnerFailure("DIED", f"the process ended during {stage}", stage) from error
        except TimeoutError as error:
            raise RunnerFailure("TIMED_OUT", f"{stage} took longer than {timeout:.1f} s", stage) from error
        except ProtocolError as error:
            raise RunnerFailure("CRASHED", f"the runner sent bytes that are no message: {error}", stage) from error
        if "error" in reply:
            for fd in fds:
                os.close(fd)
            raise self._failure(reply["error"], stage)
        return reply, fds

    def _awaited(self, timeout: float, max_fds: int) -> tuple[dict[str, Any], list[int]]:
        """The next message, within `timeout` seconds of its runner's own."""
        while self.rest is not None and timeout > SLICE_S:
            try:
                return self._channel.receive(timeout=SLICE_S, max_fds=max_fds)
            except TimeoutError:
                timeout -= SLICE_S
                self.rest()
        return self._channel.receive(timeout=timeout, max_fds=max_fds)

    def has_message(self) -> bool:
        """Whether the runner has sent something that was not read yet."""
        return bool(select.select([self._channel.fileno()], [], [], 0)[0])

    def send(self, message: dict[str, Any]) -> None:
        """Send without waiting (driven calls)."""
        try:
            self._channel.send(message)
        except (ChannelClosed, TimeoutError) as error:
            raise RunnerFailure("DIED", "the runner is gone", "timing") from error

    @staticmethod
    def _failure(error: Any, stage: str) -> RunnerFailure:
        if not isinstance(error, dict):
            return RunnerFailure("CRASHED", "the runner sent a malformed error", stage)
        kind, message = str(error.get("type", ""))[:80], str(error.get("message", ""))
        detail = f"{kind}: {' '.join(message.split())[:400]}"
        if error.get("memory"):
            return RunnerFailure("OUT_OF_MEMORY", detail, stage)
        return RunnerFailure("BUILD_FAILED" if stage == "loading" else "CRASHED", detail, stage)

    def close(self) -> None:
        """Hang up and let go of the buffers."""
        self._channel.close()
        if self.memory >= 0:
            os.close(self.memory)
            self.memory = -1
        self.kept, self.quickest, self.exchanged, self.back_to_back, self.strange = [], {}, [], [], {}
        if self.control is not None:
            self.control.close()
            self.control = None
        for name in ("inputs", "outputs", "state"):
            if hasattr(self, name):
                delattr(self, name)

    # ── set-up ────────────────────────────────────────────────────────────────────────────────────

    def meet(self) -> None:
        """Wait until the runner is up: its threads, and on a GPU its context. It hands over a view of its memory."""
        reply, fds = self._receive(120.0, "starting", max_fds=1)
        self.memory = fds[0] if fds else -1
        pid = reply.get("pid")
        self.pid = pid if isinstance(pid, int) else 0

    def share(
        self, inputs: Any, slots_like: Sequence[torch.Tensor], state: Any, control: Any, gate: str | None
    ) -> None:
        """Create the shared buffers and hand them over. `slots_like`: one answer of the reference; `gate`: the gate
        kernel's image, base64, on a GPU."""
        self.inputs = buffers.create(nbytes_needed(inputs), self._driver)
        self.outputs = buffers.create(nbytes_needed(list(slots_like)), self._driver)
        self.state = buffers.create(nbytes_needed(state), self._driver)
        self.control = control
        shared = (self.inputs, self.outputs, self.state)
        fds = [b.fileno() for b in shared] + (list(control.fds) if control is not None else [])
        self.ask("buffers", 60.0, "starting", fds, bytes=[b.nbytes for b in shared], gate=gate)

    def slots(self, like: Sequence[torch.Tensor]) -> list[dict[str, Any]]:
        """Places in the output buffer for tensors of these shapes, contiguous, poisoned."""
        described = places([torch.empty(t.shape, dtype=t.dtype, device=self.device) for t in like])
        self.poison()
        return described

    def poison(self) -> None:
        """Overwrite all outputs, so that nothing left from an earlier call can pass (0xFF bytes are NaN)."""
        self.outputs.bytes_at(0, self.outputs.nbytes).fill_(255)
        self._settle()

    def _settle(self) -> None:
        if self.device != "cpu":
            torch.cuda.synchronize()

    def load(self, path: str, init: Any, mode: str) -> None:
        """Construct the candidate."""
        described = pack(init, self.state)
        self._settle()
        self.ask("load", self.deadlines.load_s, "loading", path=path, init=described, mode=mode)

    def match(self, constructed: Mapping[str, torch.Tensor]) -> list[str]:
        """Names of reference tensors that found no partner."""
        reply = self.ask("match", 60.0, "loading", state=self._write_state(constructed))
        unmapped, by_method = reply.get("unmapped"), reply.get("by_method")
        self.fixed = {str(name) for name in by_method} if isinstance(by_method, list) else set()
        self.guessed, self.unlike = names_of(reply.get("guessed")), names_of(reply.get("unlike"))
        return [str(n)[:200] for n in unmapped] if isinstance(unmapped, list) else list(constructed)

    def set_weights(self, values: Mapping[str, torch.Tensor]) -> None:
        """Give the candidate other weights."""
        self.ask("weights", 60.0 + self.deadlines.call_s, "loading weights", state=self._write_state(values))

    def lay_weights(self, values: Mapping[str, torch.Tensor]) -> dict[str, Any]:
        """Lay other weights for the next call; where they lie, for the runner."""
        return self._write_state(values)

    def vary_state(self, names: Sequence[str]) -> dict[str, Any]:
        """From now on `lay_state` varies what is behind these names; where their values lie, for the runner."""
        self.moving = {name: self.weights[name] for name in names if name in self._state_places.keys() - self.fixed}
        return {name: self._state_places[name] for name in self.moving}

    def lay_state(self) -> None:
        """Write other state for the next call: its floating numbers times others for each, between 0.8 and 1.25."""
        self.laid_state = {name: varied(value) for name, value in self.moving.items()}
        for name, value in self.laid_state.items():
            write(value, self._state_places[name], self.state)

    @property
    def starts_from(self) -> dict[str, torch.Tensor]:
        """Weights and state that the call which is being made begins from."""
        return {**self.weights, **self.laid_state}

    def _write_state(self, values: Mapping[str, torch.Tensor]) -> dict[str, Any]:
        self.unlike = []
        described = pack(list(values.values()), self.state)["$list"]
        self._settle()
        self._state_places = dict(zip(values, described, strict=True))
        return self._state_places

    # ── calls ─────────────────────────────────────────────────────────────────────────────────────

    def show(self, inputs: Any, *, offset: int = 0) -> None:
        """Lay inputs into the shared buffer, `offset` bytes into their storages, and have the runner look at them."""
        self.shown = pack(inputs, self.inputs, offset=offset)
        self._layout, self._offset = layout(inputs), offset
        self._like = map_leaves(inputs, lambda tensor: tensor.new_empty(0))
        self._settle()
        self.ask("inputs", 60.0, "starting", value=self.shown)

    def refill(self, inputs: Any, *, before_slots: bool = False) -> None:
        """Other contents in the same places, under the tensors that the runner already looks at. `before_slots`: which
        are made for the call, so that the device is waited for there."""
        rewrite(inputs, self.shown, self.inputs)
        if not before_slots:
            self._settle()

    def fits(self, inputs: Any) -> bool:
        """Whether `refill` can take these: nothing but the contents of tensors differs from what is shown."""
        return bool(layout(inputs) == self._layout)

    def fitted(self, inputs: Any) -> Any | None:
        """These where they fit, else their tensors beside what is shown of numbers; None where these do not fit."""
        if self.fits(inputs):
            return inputs
        tensors = leaves(inputs)
        if len(tensors) != len(leaves(self._like)):
            return None
        mixed = with_leaves(self._like, tensors)
        return mixed if self.fits(mixed) else None

    def look(self, told: Any, slots: Sequence[dict[str, Any]], absent: Collection[int]) -> tuple[list[Glimpse], float]:
        """What lies where outputs are said to lie (`glimpse.look`), and by how much the look was held up,
        microseconds."""
        begin = time.perf_counter_ns()
        seen = glimpse.look(self.memory, told, slots, absent)
        took_us = (time.perf_counter_ns() - begin) / 1e3
        return seen, glimpse.held_up_us(took_us, seen, self.outputs, self._reading_us)

    def seen_inputs(self) -> list[torch.Tensor]:
        """The input tensors as they lie in the shared buffer now."""
        return [view(d, self.inputs) for d in tensors.tensor_descriptions(self.shown)]

    def call(self, request: dict[str, Any]) -> Reply:
        """One untimed call; `request` names the slots and what else counts as an answer."""
        if self._form in self._met:
            timeout, stage = self.deadlines.call_s, "a call"
        else:
            stage = "the first call in another mode or layout" if self.called else "the first call"
            timeout = self.deadlines.first_call_s
        if request.get("looks"):
            timeout *= 2
        reply = self.ask("call", timeout, stage, **request)
        self.note_call()
        parsed = parse_reply(reply)
        self.reused = self.reused or parsed.reused
        return parsed

    @property
    def _form(self) -> Any:
        """What a compiler may ask of a call: another one is compiled anew."""
        return self._mode, self._layout, self._offset

    def note_call(self) -> None:
        """It has answered a call: the next one in this mode, with inputs laid like these, has nothing to compile."""
        self.called = True
        if self._form not in self._met:
            self._met.append(self._form)

    def output(self, slot: dict[str, Any]) -> torch.Tensor:
        """One output as it lies in the shared buffer, copied."""
        return view(slot, self.outputs).clone()

    def answer(self, reply: Reply, slots: Sequence[dict[str, Any]]) -> Answer:
        """The outputs as they lie in the shared buffer, copied."""
        return Answer(reply.structure, [self.output(s) for s in slots])


def parse_reply(reply: dict[str, Any]) -> Reply:
    """Check the form of a reply to `call`. Raises RunnerFailure."""
    outputs = reply.get("outputs")
    us = reply.get("us")
    if not isinstance(outputs, list) or not all(isinstance(o, dict) for o in outputs):
        raise RunnerFailure("CRASHED", "the runner sent a malformed reply", "a call")
    if not isinstance(us, int | float) or not -1e12 < us < 1e12:
        raise RunnerFailure("CRASHED", "the runner sent a malformed time", "a call")
    shared, exposed = _places(reply.get("shared")), _places(reply.get("exposed"))
    reused, structure = bool(reply.get("reused")), str(reply.get("structure"))
    overwritten, rearranged = names_of(reply.get("overwritten")), bool(reply.get("rearranged"))
    return Reply(structure, outputs, reused, float(us), shared, exposed, overwritten, rearranged)


def _places(told: Any) -> frozenset[int]:
    return frozenset(place for place in told if isinstance(place, int)) if isinstance(told, list) else frozenset()


def names_of(told: Any) -> list[str]:
    """Names in a reply; none where it is malformed."""
    return [str(name)[:100] for name in told[:20]] if isinstance(told, list) else []


def total_bytes(value: Any) -> int:
    """Bytes of all tensors in a nested value."""
    return sum(t.numel() * t.element_size() for t in leaves(value))
