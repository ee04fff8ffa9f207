"""The runner: holds one candidate (or one opponent), makes the calls that the judge asks for, and sends evidence.

It never says whether anything is right. Whatever it needs from torch or the standard library after the candidate is
loaded is bound here first, so that a patched attribute does not reach it. One candidate, then it dies.
"""

from __future__ import annotations

import math
import os
import re
import resource
import sys
import time
import traceback
from collections import deque
from typing import Any

import torch

from . import buffers, compat, failed_builds, profiling, state, vector_math
from .buffers import Buffer
from .channel import Channel, ChannelClosed
from .dirty_memory import DirtyMemory
from .glimpse import place_of
from .load import Seeds, construct, is_short_of_memory, load_module, set_mode
from .own_libraries import OwnLibraries
from .reference import structure_of
from .tensors import (
    arrangement,
    begin_as_earlier,
    extent,
    leaves,
    map_leaves,
    number_on,
    overlaps,
    plain_tensor_problem,
    settled,
    touch,
    unpack,
    view,
)
from .watched import Watched

_now = time.perf_counter_ns
_getrusage, _thread = resource.getrusage, resource.RUSAGE_THREAD
_copy = torch.Tensor.copy_
_clone = torch.Tensor.clone
_detach = torch.Tensor.detach
_fill = torch.Tensor.fill_
_no_grad = torch.no_grad
_inference_mode = torch.inference_mode
_exit = os._exit
_urandom = os.urandom
_as_strided = torch.as_strided
_format_exception = traceback.format_exception

_HELD_CALLS, _HELD_BYTES = 8, 64 << 20
"""Outputs of so many calls are held to see whether a later one overwrites them, while they take no more than this."""


_LOOKS, _LOOKS_NS = 3, 500_000_000
"""Looks at weights before others come, at most: so many, or what begins within so many nanoseconds."""

_PAGE, _PAGES = 4096, 1 << 16

_SCRIBBLED = 16
"""Places of an output that are written to where there is no time for all of it."""


def _keeps(output: torch.Tensor) -> bool:
    """Whether an output holds what is written to a place in each of its pages: memory that is mapped several times
    does not. What lies in its gaps may be another output's and is as it was afterwards."""
    step = max(1, _PAGE // output.element_size())
    flat = torch.as_strided(output, (extent(output),), (1,), output.storage_offset())[::step][:_PAGES]
    wanted = torch.arange(flat.numel(), device=flat.device)
    wanted = (wanted if flat.element_size() > 2 else wanted.remainder(127)).to(flat.dtype)
    before = _clone(flat)
    state.write(flat, wanted)
    keeps = state.same(_clone(flat), wanted)
    state.write(flat, before)
    return keeps


def _scribble(output: torch.Tensor) -> None:
    _fill(output, math.nan if output.is_floating_point() else 1)


def _lot(count: int) -> int:
    """One of the numbers below `count`, which nobody can foresee."""
    return int.from_bytes(_urandom(4), "little") % count


def _scribble_some(result: Any, places: list[int]) -> None:
    """Write to a few elements, that nobody can foresee, of the outputs at these places."""
    outputs = leaves(result)
    for place in places:
        if place < len(outputs):
            _scribble_elements(outputs[place])


def _scribble_elements(output: Any) -> None:
    if plain_tensor_problem(output) or not output.numel() or extent(output) != output.numel():
        return  # what lies in gaps is no part of it
    count = output.numel()
    step = max(1, count // _SCRIBBLED)
    places = _as_strided(_detach(output), (count // step,), (step,), output.storage_offset() + _lot(step))
    with _inference_mode():  # the output may have been made in it
        _scribble(places)


def _switches() -> int:
    """How often this thread had to let another one compute."""
    return _getrusage(_thread).ru_nivcsw


class Runner:
    """State of one runner process; each public method answers one operation of the judge's."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._device = "cpu"
        self._cuda: Any = None
        self._base: state.State = {}
        self._partners = state.Partners()
        self._args: list[Any] = []
        self._kept: deque[list[tuple[torch.Tensor, int]]] = deque(maxlen=_HELD_CALLS)
        self._watched = Watched()
        self._timed_form: set[str] = set()
        self._strides: list[Any] = []
        self._last: list[torch.Tensor] = []
        self._begins = False
        """Whether the next call is the first of a block."""
        self._stayed: dict[str, Any] = {}
        """What plain attributes held before the last call from the base state."""

    def warm(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Threads and, on a GPU, the context and the harness's own driver handle. Before any candidate exists."""
        vector_math.call_once()
        torch.set_num_threads(message["threads"])
        self._device = message["device"]
        self._number = number_on(self._device)
        if self._device != "cpu":
            from .cuda_timing import CudaHarness

            self._cuda = CudaHarness(self._device)
        self._seeds = Seeds()
        self._memory = DirtyMemory(self._device)
        return {"pid": os.getpid()}

    def buffers(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Map the judge's shared memory: inputs, outputs, state, and on a GPU the two control pages."""
        driver = self._cuda.driver if self._cuda else None
        sizes = message["bytes"]
        self._inputs, self._outputs, self._state = (
            buffers.attach(fd, size, driver) for fd, size in zip(fds[:3], sizes, strict=True)
        )
        if self._cuda:
            self._cuda.attach(fds[3], fds[4], message["gate"])
        return {}

    def load(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Execute the candidate's file and construct `ModelNew` under the public seed."""
        failed_builds.remember()
        self._libraries = OwnLibraries()
        module = load_module(message["path"], "candidate")
        if not hasattr(module, "ModelNew"):
            raise MissingModelNew("the candidate defines no `ModelNew`")
        init = map_leaves(unpack(message["init"], self._state), lambda t: t.clone())
        self._model = construct(module.ModelNew, init, self._device)
        if not isinstance(self._model, torch.nn.Module):
            raise MissingModelNew("`ModelNew` is not a torch.nn.Module")
        set_mode(self._model, message["mode"])
        return {}

    def match(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Find the partners of the reference's tensors, which lie in the state buffer as constructed."""
        self._partners = state.match(self._read_state(message), self._model)
        self._base = state.snapshot(self._model)
        found = self._partners
        guessed = [each for name in found.guessed for each in (name, found.partner[name])]
        unmapped = [] if found.by_method else found.unmapped
        return {"unmapped": unmapped, "by_method": found.unmapped, "guessed": guessed, "unlike": found.unlike}

    def weights(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Take over the reference's values; from now on calls start from them."""
        state.restore(self._model, self._restorable(self._partners.unmapped))
        state.load_reference_state(self._model, self._read_state(message), self._partners)
        self._base = state.snapshot(self._model)
        return {}

    def _read_state(self, message: dict[str, Any]) -> state.State:
        return {name: view(at, self._state) for name, at in message["state"].items()}

    def inputs(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Look at inputs that lie in the input buffer; the same views serve every call until the next `inputs`."""
        self._args = unpack(message["value"], self._inputs)
        return {}

    @property
    def inputs_shown(self) -> list[Any]:
        """What the judge has laid for the next call."""
        return self._args

    @property
    def outputs_buffer(self) -> Buffer:
        """Where the judge looks for outputs."""
        return self._outputs

    def call(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """One untimed call from the base state, or from what the call before has left: outputs to the output buffer,
        their description to the judge."""
        restored = self._restored_after_a_look if message.get("looks") else self._restored
        before = self._stayed if message.get("goes_on") else restored(message)
        shown = self._args
        if message.get("in_a_row") or message.get("stays"):
            self._args = map_leaves(shown, _clone)
        self.seed(message.get("seed"))
        arranged = arrangement(self._args)
        with self._memory.holding(message.get("dirt"), message["slots"]):
            start = _now()
            result = self._forward()
            if self._cuda:
                self._cuda.synchronize()
            elapsed = (_now() - start) / 1e3
        described = self._deliver(result, message)
        described["reused"] = self._reuses(result)
        described.update(self._sharing(result))
        described["us"] = elapsed
        described["rearranged"] = arrangement(self._args) != arranged
        self._args = shown
        described["overwritten"] = self._overwritten(message["changed_state"]) if message.get("compare_state") else []
        self._stayed = before
        if not message.get("stays"):
            self._reinstate(before, message)
        return described

    def _restored_after_a_look(self, message: dict[str, Any]) -> dict[str, Any]:
        """`_restored`, right after a call that nobody reads, with the weights that were there before: who looks at them
        now and then has just looked when others come. Again where this thread had to wait for another in between."""
        base, shown, start = dict(self._base), self._args, _now()
        for _ in range(_LOOKS):
            self._base = dict(base)
            before = self._restored({**message, "state": {}})
            if message["changed_args"]:
                self._args = map_leaves(shown, _clone)
            self.seed(message.get("seed"))
            begin = _switches()
            self._forward()
            if self._cuda:
                self._cuda.synchronize()
            self._args = shown
            self._reinstate(before, message)
            before = self._restored(message)
            if _switches() == begin or _now() - start > _LOOKS_NS:
                break
        return before

    def _overwritten(self, changed: list[str]) -> list[str]:
        """Of the reference's state what calls have left with other values, though the reference leaves it alone. Asked
        where nothing is timed: it reads all weights."""
        return state.overwritten(self._model, self._base, self._partners, changed)[:20]

    def seed(self, seed: int | None) -> None:
        """What the next call's random numbers follow from; nothing is set for tasks without any."""
        if seed is not None:
            self._seeds.set(seed)

    def _restored(self, message: dict[str, Any]) -> dict[str, Any]:
        """Start from the base state, with what the judge has laid of it; what plain attributes held before the call."""
        for name, at in message.get("state", {}).items():
            self._take(name, view(at, self._state))
        state.restore(self._model, self._restorable(message["changed_state"]))
        names = self._named(message["changed_state"])
        return state.attributes(self._model, names) if names else {}

    def _take(self, name: str, value: torch.Tensor) -> None:
        """Let the next call begin with another value of the reference's tensor `name`."""
        if (partner := self._partners.partner.get(name)) is not None:
            self._base[partner] = self._partners.as_held(name, value).clone()

    def _restorable(self, changed: list[str]) -> state.State:
        """The part of the base state that stands for the reference's. What else a candidate keeps (packed weights,
        tables) is its own: an older copy of it would contradict the version counters under which it is kept. Where
        something that the reference changes has no partner, it may be anywhere: then everything is put back."""
        if set(changed) & set(self._partners.unmapped):
            return self._base
        stands = set(self._partners.partner.values())
        return {name: value for name, value in self._base.items() if name in stands}

    def _reinstate(self, before: dict[str, Any], message: dict[str, Any]) -> None:
        """Undo what the call did to the attributes that stand for state of the reference's."""
        if names := self._named(message["changed_state"]):
            state.reinstate(self._model, before, names)

    def _named(self, changed: list[str]) -> list[str]:
        """What of the model stands for state that the reference changes."""
        return [self._partners.partner.get(name, name) for name in changed]

    def _forward(self) -> Any:
        """What every clock is held to: the call, and the way to each tensor that it returns."""
        with _no_grad():
            return settled(self._model(*self._args), number=self._number)

    def _delivered(self, result: Any, message: dict[str, Any]) -> list[Any]:
        """Outputs, changed arguments and changed state, in the order of their slots; None for state without partner."""
        if message.get("in_a_row"):
            return leaves(result)
        flat_args = leaves(self._args)
        names = self._named(message["changed_state"])
        live = state.collect(self._model, names) if names else {}
        changed = zip(message["changed_state"], names, strict=True)
        partners = [self._partners.as_own(name, live.get(partner)) for name, partner in changed]
        return [*leaves(result), *(flat_args[i] for i in message["changed_args"]), *partners]

    def _places(self, result: Any, message: dict[str, Any]) -> list[Any]:
        """Where the judge finds what a call has given."""
        return self._places_of(self._delivered(result, message))

    def _places_of(self, tensors: list[Any]) -> list[Any]:
        """None for what is no plain tensor."""
        return [None if t is None or plain_tensor_problem(t) else place_of(t) for t in tensors]

    def _deliver(self, result: Any, message: dict[str, Any], *, synchronize: bool = True) -> dict[str, Any]:
        """Copy outputs, changed arguments and changed state into their slots; describe what does not fit its slot."""
        flat_args, outputs, slots = leaves(self._args), leaves(result), message["slots"]
        tensors = self._delivered(result, message)
        described = [self._describe(t, flat_args) for t in tensors]
        if message["op"] == "block":
            self._note_form(outputs, described[: len(outputs)])
        else:
            self._strides = [entry.get("stride") for entry in described[: len(outputs)]]
        if len(tensors) == len(slots):
            for tensor, slot, entry in zip(tensors, slots, described, strict=True):
                if not entry.get("problem") and entry["dtype"] == slot["$tensor"] and entry["shape"] == slot["shape"]:
                    _copy(view(slot, self._outputs), tensor)
        if self._cuda and synchronize:
            self._cuda.synchronize()
        return {"structure": structure_of(result), "outputs": described}

    def _note_form(self, outputs: list[torch.Tensor], described: list[dict[str, Any]]) -> None:
        """Whose memory timed answers are: that of an input, of the module itself, of each other, or that of an earlier
        one which is held; and whether they are laid out as untimed ones."""
        for name in ("alias", "overlaps"):
            self._timed_form |= {f"{name} {place}" for place, entry in enumerate(described) if entry.get(name)}
        if [entry.get("stride") for entry in described] != self._strides:
            self._timed_form.add("relaid")
        plain = {place: t for place, t in enumerate(outputs) if not plain_tensor_problem(t)}
        self._timed_form |= {f"shared {place}" for place in begin_as_earlier(plain.items())}
        if self._begins:  # a block; going through the state of a large module in each call takes its time
            state_at = self._places_of_state()
            exposed = {place for place, t in plain.items() if t.untyped_storage().data_ptr() in state_at}
            self._timed_form |= {f"exposed {place}" for place in exposed}
            held = {t.data_ptr() for t in self._last if t.numel()}
            own = [t for place, t in plain.items() if place not in exposed and not described[place].get("alias")]
            if any(t.numel() and t.data_ptr() in held for t in own):
                self._timed_form.add("reused")
        self._begins = False
        self._last = []

    @property
    def timed_form(self) -> list[str]:
        """What was noted of the answers of timed calls."""
        return sorted(self._timed_form)

    def _sharing(self, result: Any) -> dict[str, list[int]]:
        """Places of outputs that are an earlier one, and of those that lie in the partners of the reference's own
        parameters and buffers."""
        outputs = {place: t for place, t in enumerate(leaves(result)) if not plain_tensor_problem(t)}
        partners = set(self._partners.partner.values())
        own = [t for n, t in state.collect(self._model).items() if n in partners and not plain_tensor_problem(t)]
        exposed = [place for place, t in outputs.items() if any(touch(t, o) for o in own)]
        return {"shared": begin_as_earlier(outputs.items()), "exposed": exposed}

    def _describe(self, tensor: Any, args: list[torch.Tensor]) -> dict[str, Any]:
        if tensor is None:
            return {"problem": "no partner", "dtype": "", "shape": []}
        if problem := plain_tensor_problem(tensor):
            return {"problem": problem, "dtype": "", "shape": []}
        return {
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "shape": list(tensor.shape),
            "stride": list(tensor.stride()),
            "device": tensor.device.type,
            "overlaps": overlaps(tensor),
            "alias": any(touch(tensor, a) for a in args),
        }

    def _reuses(self, result: Any) -> bool:
        """Whether this call's outputs lie in the storage of an earlier call's, which is still held."""
        # Addresses are taken at once: torch refuses to look at an output that a CUDA graph has overwritten.
        # Other tensors hold their memory: a view is all that a caller may have kept of them.
        found = [t for t in leaves(result) if not plain_tensor_problem(t)]
        current = [(_detach(t), t.untyped_storage().data_ptr()) for t in found]
        before = {address for call in self._kept for _, address in call} - {0}
        inputs = {t.untyped_storage().data_ptr() for t in leaves(self._args)}
        state_too = inputs | self._places_of_state()
        self._kept.append(current)
        while len(self._kept) > 1 and len(self._kept) * sum(t.nbytes for t, _ in current) > _HELD_BYTES:
            self._kept.popleft()
        return any(address in before - state_too for _, address in current)

    def _places_of_state(self) -> set[int]:
        """Where the tensors lie that stand for the reference's own: an output there is what the module returns of
        itself, as the reference does (else `_sharing` tells), and no memory that a later call takes again."""
        partners = set(self._partners.partner.values())
        own = [t for n, t in state.collect(self._model).items() if n in partners and not plain_tensor_problem(t)]
        return {t.untyped_storage().data_ptr() for t in own}

    def held(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """The outputs of the last call once more, after output `scribble` was overwritten (none when None); says
        whether that has changed state which stands for the reference's, and whether the output keeps what is written
        to it."""
        outputs = [tensor for tensor, _ in self._kept[-1]] if self._kept else []
        stands = set(self._partners.partner.values())
        before = {name: value for name, value in state.snapshot(self._model).items() if name in stands}
        keeps = True
        if (place := message["scribble"]) is not None and place < len(outputs):
            with _inference_mode():  # the output may have been made in it
                keeps = _keeps(outputs[place])
                _scribble(outputs[place])
        for slot, tensor in zip(message["slots"], outputs, strict=False):
            _copy(view(slot, self._outputs), tensor)
        if self._cuda:
            self._cuda.synchronize()
        live = state.collect(self._model)
        return {"state": any(n in live and not state.same(live[n], v) for n, v in before.items()), "keeps": keeps}

    def release(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Let go of kept outputs before timing; says how much device memory calls took at most."""
        self._kept.clear()
        self._timed_form.clear()
        return {"peak_bytes": self._cuda.peak_bytes() if self._cuda else None}

    def block(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """A block of driven calls. On a CPU each tells what it took and where its outputs lie, and delivers them when
        the judge has looked there; on a GPU the samples go back with the last reply."""
        self._begins = True
        if self._cuda:
            return dict(self._cuda.block(self, message))
        go = message
        for index in range(message["calls"]):
            before = {}
            if message["stateful"]:  # what this takes is no part of a call, and no inputs are there yet
                if index:
                    self._channel.receive(timeout=message["patience_s"])
                before = self._restored(message)
                self._channel.send({})
            if index or message["stateful"]:
                go, _ = self._channel.receive(timeout=message["patience_s"])
            self.seed(go.get("seed"))
            start = _now()
            result = self._forward()
            if message["clone"]:
                result = map_leaves(result, _clone)
            elapsed = _now() - start
            told = {"structure": structure_of(result), "places": self._places(result, message)}
            self._channel.send({"us": elapsed / 1e3, **told})
            self._channel.receive(timeout=message["patience_s"])
            self._deliver(result, message)
            if index + 1 == message["calls"]:  # held until a call of the next block has its own
                self._last = [_detach(t) for t in leaves(result) if not plain_tensor_problem(t)]
            if index in message["scribbled"]:
                self.scribble(result, message["writable"])
            result = None
            if index + 1 < message["calls"]:
                self._channel.send({})
            self._reinstate(before, message)
        return {"form": self.timed_form}

    def scribble(self, result: Any, places: list[int]) -> None:
        """Write to the outputs at these places, which the judge has, and no one holds any more."""
        outputs = leaves(result)
        with _inference_mode():  # an output may have been made in it
            for output in [outputs[place] for place in places if place < len(outputs)]:
                if not plain_tensor_problem(output) and not overlaps(output):
                    _scribble(output)

    def back_to_back(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """On a CPU: rows of calls, stretch after stretch, timed by the judge alone; one call of each row is delivered,
        of the stretch that the judge keeps. Where its outputs lie is told at the end of each."""
        patience_s, shown = message["patience_s"], self._args
        sets = unpack(message["value"], buffers.attach(fds[0], message["bytes"], None))
        self._channel.send({})
        for _ in range(message["rows"]):
            self._channel.receive(timeout=patience_s)
            before = self._restored(message) if message["stateful"] else {}
            self._channel.send({})
            go, _ = self._channel.receive(timeout=patience_s)
            made = best = (None, 0)
            while go["op"] == "go":
                made = self._stretch(sets, go, message)
                told = {"structure": structure_of(made[0]), "places": self._places_of(leaves(made[0]))}
                self._channel.send({"place": made[1], **told})
                go, _ = self._channel.receive(timeout=patience_s)
                best = made if go["keep"] else best
            place = best[1]
            self._args = sets[place]
            self._deliver(best[0], message)
            made = best = (None, 0)
            self._reinstate(before, message)
            self._channel.send({})
        self._args = shown
        return {}

    def _stretch(self, sets: list[Any], go: dict[str, Any], message: dict[str, Any]) -> tuple[Any, int]:
        """A call with each of some inputs; what one of them gives, and its place. Which one is drawn when a call has
        returned: before, a candidate could read it here."""
        kept, place = None, 0
        for number, seed in enumerate(go["seeds"]):
            self._args = sets[go["first"] + number]
            self.seed(seed)
            result = self._forward()
            if message["clone"]:
                result = map_leaves(result, _clone)
            if _lot(number + 1) == 0:
                if message["changed_state"]:  # which a later call may change where it is returned
                    kept, place = map_leaves(result, _clone), go["first"] + number
                else:
                    kept, result, place = result, kept, go["first"] + number
            _scribble_some(result, message["writable"])
            result = None
        return kept, place

    def slope(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Several calls behind one gate, timed by the judge alone."""
        return dict(self._cuda.slope(self, message))

    def empty(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """What a call costs that returns a ready output: median of `calls`, microseconds, host clock."""
        ready = torch.empty(1, device=self._device)
        model, self._model = self._model, _Ready(ready)
        samples = []
        for _ in range(message["calls"]):
            start = _now()
            self._forward()
            if self._cuda:
                self._cuda.synchronize()
            samples.append((_now() - start) / 1e3)
        self._model = model
        return {"us": sorted(samples)[len(samples) // 2]}

    def set_mode(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Train or eval mode."""
        set_mode(self._model, message["mode"])
        return {}

    def observe(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """What the candidate changed in modules that others rely on, and of its weights; what gave it no library of its
        own."""
        told = {"patched": self._watched.changed()[:20], "missing": self._libraries.missing()}
        return {**told, "overwritten": self._overwritten(message["changed_state"])}

    def profile(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Streams on which one untimed call works, and what it consists of."""
        state.restore(self._model, self._restorable([]))
        if self._cuda:
            return dict(self._cuda.profile(self))
        return {"streams": 1, "profile": profiling.operators_of(self._forward)}


class _Ready(torch.nn.Module):
    """Returns what it holds."""

    def __init__(self, value: torch.Tensor) -> None:
        super().__init__()
        self.value = value

    def forward(self, *args: Any) -> torch.Tensor:
        return self.value


class MissingModelNew(Exception):
    """The candidate's file has no usable `ModelNew`."""


_NO_NVCC = re.compile(r"nvcc: (not found|No such file)|CUDA_HOME environment variable is not set")
"""What is left of it in the words of a shell and of torch; what a compiler prints before would hide it."""


def describe_error(error: BaseException) -> dict[str, Any]:
    """An exception of the candidate's as data."""
    try:
        text, memory = str(error).strip(), is_short_of_memory(error)
    except BaseException as odd:  # noqa: BLE001  the text, too, is the candidate's code: it may even exit
        text, memory = f"its text cannot be read ({type(odd).__name__})", False
    if _NO_NVCC.search(text):
        text = f"nvcc was not found, `cuda-l1 doctor` says how to get it: {text}"
    trace = "".join(_format_exception(error))[-4000:]
    return {"type": type(error).__name__, "message": text[:600], "memory": memory, "trace": trace}


OPERATIONS = (
    *(
        "warm",
        "buffers",
        "load",
        "match",
        "weights",
        "inputs",
        "call",
        "held",
        "release",
        "block",
        "back_to_back",
        "slope",
    ),
    *("profile", "observe", "empty", "set_mode"),
)


def main(channel: Channel, spec: dict[str, Any]) -> None:
    """Serve the judge until it hangs up."""
    runner = Runner(channel)
    operations = {name: getattr(runner, name) for name in OPERATIONS}
    operations["compat"] = compat.Harness(runner).answer
    while True:
        try:
            message, fds = channel.receive(max_fds=8)
        except ChannelClosed:
            _exit(0)
        try:
            reply = operations[message["op"]](message, fds)
        except ChannelClosed:
            _exit(0)
        except BaseException as error:  # noqa: BLE001  the boundary to foreign code: SystemExit is a result too
            reply = {"error": describe_error(error)}
            sys.stderr.write(reply["error"]["trace"])
            sys.stderr.flush()
        channel.send(reply, [spec["memory"]] if message["op"] == "warm" else ())
