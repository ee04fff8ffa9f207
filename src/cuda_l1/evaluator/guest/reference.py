"""The reference as the judge holds it: the model as shipped, its float64 twin, and what a call of it changes.

Everything that a call may leave behind counts as an answer: the outputs, the arguments and the buffers that it changes.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from . import arithmetic, drawing, input_forms, oracle, plans, stand_ins, state, weight_forms
from .classes import Halved
from .device_asserts import DeviceAsserts
from .entropy import ENTROPY
from .load import construct, is_short_of_memory, load_module, read_safetensors, seed_everything, set_mode
from .resting import Rests
from .tensors import (
    Unsupported,
    arrangement,
    begin_as_earlier,
    layout,
    leaves,
    map_leaves,
    number_on,
    overlaps,
    require_supported,
    settled,
    share_with_earlier,
    touch,
)


class BadTask(Exception):
    """The task itself is at fault; the text is one line for the user."""


@dataclass
class Answer:
    """What one call left behind, in a fixed order: outputs, changed arguments, changed state."""

    structure: str
    tensors: list[torch.Tensor]


def structure_of(value: Any, depth: int = 0) -> str:
    """The nesting of an output as text; lists and tuples are alike, keys of dicts and leaves that are no tensors stand
    as their repr, a long one by its digest."""
    if isinstance(value, torch.Tensor):
        return "T"
    if depth > 8:
        return "..."
    if isinstance(value, dict):
        return "{" + ",".join(f"{_text_of(k)}:{structure_of(v, depth + 1)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(structure_of(v, depth + 1) for v in value) + "]"
    return _text_of(value)


def _text_of(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:40]}...{hashlib.sha256(text.encode(errors='replace')).hexdigest()}"


def _require_supported(what: str, value: Any) -> None:
    try:
        require_supported(value)
    except Unsupported as error:
        raise BadTask(f"{what} gives what cannot cross to a candidate: {error}") from error


ACCURATE = 1e-2
"""The largest error of an element with which the reference itself still counts as right."""


DRAWS_THAT_TELL = 2
"""Inputs by which it is told whether answers depend on a weight."""

CALLS_THAT_TELL = 8
"""Calls by which it is told whether any runs a kernel that may end in an assertion."""

AGED_CALLS, AGED_S = 32, 0.5
"""How many calls in a row age a state at the most, and for how many seconds they go on."""


def _is_floating(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def first_line(error: BaseException) -> str:
    """`Type: message` of an exception, one line, cut to a readable length."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


@dataclass
class Reference:
    """A task's `Model`, constructed under the public seed on the judge's device."""

    path: str
    device: str
    weights: str | None = None
    mode: str = "train"
    rests: Rests | None = field(default=None, kw_only=True)
    """Asked where others may work on the device for a while."""
    model: torch.nn.Module = field(init=False)
    get_inputs: Callable[[], Any] = field(init=False)
    init: Any = field(init=False)
    constructed: state.State = field(init=False)
    """As the constructor left it under the public seed."""
    public: state.State = field(init=False)
    """With the task's weights loaded, where it has some."""
    changed_args: list[int] = field(init=False, default_factory=list)
    changed_state: list[str] = field(init=False, default_factory=list)
    _tables: dict[str, torch.Tensor] = field(init=False, default_factory=dict)
    """What a call makes where nothing was, and makes alike of other inputs: whoever needs none keeps none."""
    _without_tables: dict[str, Callable[[], Any]] = field(init=False, default_factory=dict)
    _earlier: list[drawing.Inputs] = field(init=False, default_factory=list)
    """What it has been called with before each call, and what of its state is put back then, see `after`."""
    _restored: list[str] = field(init=False, default_factory=list)
    aliases: set[int] = field(init=False, default_factory=set)
    """Outputs of the reference's that are views of an argument, by their places."""
    shares: set[int] = field(init=False, default_factory=set)
    """Outputs of the reference's that have memory in common with an earlier one."""
    exposes: set[int] = field(init=False, default_factory=set)
    """Outputs of the reference's that are a parameter or a buffer of its own."""
    rearranges: bool = field(init=False, default=False)
    """A call of the reference's leaves its arguments in another shape or layout."""
    overlaps: set[int] = field(init=False, default_factory=set)
    """Outputs of the reference's that are expanded: elements share memory."""
    chooses: bool = field(init=False, default=False)
    """Whether a call chooses elements by their places, so that among equal ones any may be right."""
    has_edges: bool = field(init=False, default=False)
    """Whether a call chooses, rounds or compares, so that numbers a roundoff apart may have answers far apart."""
    half: torch.dtype | None = field(init=False, default=None)
    """Which half precision a call computes anything in, if any."""
    halved: dict[int, Halved] = field(init=False, default_factory=dict)
    """Places of the answer that are computed in it, and have a wider dtype."""
    lifted: list[int] = field(init=False, default_factory=list)
    """Places of the answer at which truth has bits that the answer's dtype has not: there float64 arrives."""
    stands: dict[float, bool] = field(init=False, default_factory=dict)
    """Whether it keeps its accuracy for its inputs times a factor, where that was asked."""
    forms: dict[plans.Plan, input_forms.Make] = field(init=False, default_factory=dict)
    """What makes inputs of the forms that trials have, as it stood them."""
    oracle_place: str = field(init=False, default="float64")
    _class: Callable[..., Any] = field(init=False)
    _may_assert: bool = field(init=False, default=False)
    _calls: int = field(init=False, default=0)
    """Those that were watched for kernels that may end in an assertion."""
    _matter: dict[tuple[str, frozenset[str]], bool] = field(init=False, default_factory=dict)
    """Whether answers may depend on these names of its state, in a mode, where that was asked."""
    _twin: torch.nn.Module | None = field(init=False, default=None)
    _layout: Any = field(init=False, default=None)
    _shapes: list[tuple[int, ...]] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        # Everything below runs the task's own code: whatever it raises is the task's fault.
        module = self._stage("cannot be imported", lambda: load_module(self.path, "reference_task"))
        for name in ("Model", "get_inputs"):
            if not callable(getattr(module, name, None)):
                raise BadTask(f"task defines no `{name}`")
        self.get_inputs = module.get_inputs
        get_init = getattr(module, "get_init_inputs", list)
        self.init = self._stage("get_init_inputs() raised", get_init)
        _require_supported("get_init_inputs()", self.init)
        if not isinstance(self.init, list | tuple | dict):  # a text would be taken apart into its letters
            raise BadTask(f"get_init_inputs() gives a {type(self.init).__name__}, and no list of arguments")
        self._class = module.Model
        self.model = self._stage(
            "the constructor of Model raised", lambda: construct(self._class, self.init, self.device)
        )
        if not isinstance(self.model, torch.nn.Module):
            raise BadTask("`Model` is not a torch.nn.Module")
        if any(torch.nn.parameter.is_lazy(p) for p in (*self.model.parameters(), *self.model.buffers())):
            text = "has lazy modules (LazyLinear and the like), whose weights its first call makes"
            raise BadTask(f"{text}: give them their sizes, or call the model once in the constructor")
        self.constructed = state.snapshot(self.model)
        if self.weights:
            self._load_weights(self.weights)
        self.mode = "train" if self.model.training else "eval"
        self.public = state.snapshot(self.model)

    @staticmethod
    def _stage(what: str, run: Callable[[], Any]) -> Any:
        try:
            return run()
        except (Exception, SystemExit) as error:
            if is_short_of_memory(error):
                raise BadTask(f"out of device memory: {what}: {first_line(error)}") from error
            raise BadTask(f"{what}: {first_line(error)}") from error

    def _load_weights(self, path: str) -> None:
        values = self._stage("the weights cannot be read", lambda: read_safetensors(path))
        live = state.collect(self.model)
        unknown, missing = sorted(set(values) - set(live)), sorted(set(self.model.state_dict()) - set(values))
        if unknown or missing:
            raise BadTask(f"the weights do not fit: unknown {unknown[:3]}, missing {missing[:3]}")
        with torch.no_grad():
            for name, value in values.items():
                live[name].copy_(value)

    def draw(self, seed: int | None = None) -> drawing.Inputs:
        """The task's own inputs under a seed (secret by default).

        Raises BadTask when they cannot be made, cannot cross the wall, or change their shapes between calls.
        """
        drawn: drawing.Inputs = self._stage(
            "get_inputs() raised", lambda: drawing.draw_inputs(self.get_inputs, self.device, seed)
        )
        _require_supported("get_inputs()", drawn)
        found = layout(leaves(drawn))
        if self._layout is None:
            self._layout = found
        elif found != self._layout:
            raise BadTask("get_inputs() gives other shapes, strides or dtypes from call to call")
        return drawn

    def other_weights(self) -> state.State:
        """Other values for the same state, drawn anew from the public ones; these where the reference refuses others.

        State that a call changes is as a call leaves it: from zeros alone nobody sees whether it is used.
        """
        state.restore(self.model, self.public)
        known = weight_forms.other_state(self.model).items()
        other = {name: value for name, value in known if name in self.public}  # a table is made, not given
        inputs = self.draw()
        try:
            answer = self.call(inputs, other)
        except BadTask:
            return self.public
        if self.changed_state:
            left = answer.tensors[-len(self.changed_state) :]
            other.update(
                (name, value)
                for name, value in zip(self.changed_state, left, strict=True)
                if name in other and value.shape == other[name].shape and bool(torch.isfinite(value).all())
            )
        return other

    @functools.cached_property
    def data(self) -> frozenset[str]:
        """Buffers of a checkpoint, and parameters that hold no floating numbers, that are no formula of the
        constructor's arguments, as a table of sines is: with weights of the task's own all but masks that the
        constructor makes as they are under any seed, else those that are others under another one."""
        parameters = {n for n, p in self.model.named_parameters() if not (p.is_floating_point() or p.is_complex())}
        saved = state.saved_buffers(self.model) | parameters
        names = [n for n in saved if n in self.public and weight_forms.may_be_data(n, self.public[n])]
        if self.weights:
            return frozenset(n for n in names if not (weight_forms.chooses(self.public[n]) and self._is_made(n)))
        return frozenset(n for n in names if n in self._reseeded and not self._is_alike(n))

    def needed(self, unmapped: Sequence[str]) -> list[str]:
        """Those of names without a partner that a candidate has to hold: no formulas, no further names of one tensor
        (tied weights, a layer in several places), whose values its partner under another name is given, and nothing at
        all where the rest is not read (a layer that is constructed and never used)."""
        if not unmapped:
            return []
        live = state.collect(self.model)
        given = {id(tensor) for name, tensor in live.items() if name not in unmapped}
        spare = {name for name, tensor in live.items() if id(tensor) in given and name not in self.changed_state}
        rest = [name for name in unmapped if name not in spare and name not in self.formulas]
        key = self.mode, frozenset(rest)
        if key not in self._matter:
            self._matter[key] = bool(rest) and self._matters(rest)
        return rest if self._matter[key] else []

    def _matters(self, names: Sequence[str]) -> bool:
        """Whether an answer may depend on what these hold: whether it is another one where they are nothing but nan,
        which no factor of zero hides. So it is where that cannot be told: they hold no floating numbers, something that
        is saved may switch on what they do, or the reference stands no nan, or has no room for it."""
        try:
            weights = self.other_weights()
            saved = [n for n in state.saved_buffers(self.model) if n in weights]
            if any(n in self.changed_state or n not in weights or not _may_be_nan(weights[n]) for n in names):
                return True
            if any(_may_switch(n, weights[n]) for n in saved):
                return True
            changed = {**weights, **{name: torch.full_like(weights[name], math.nan) for name in names}}
            for _ in range(DRAWS_THAT_TELL):
                inputs, seed = self.draw(), drawing.secret_seed()
                one, other = (self.call(inputs, held, seed=seed).tensors for held in (weights, changed))
                if not all(oracle.are_finite(one)) or not all(state.same_each(list(zip(one, other, strict=True)))):
                    return True
        except (BadTask, torch.OutOfMemoryError):
            return True
        return False

    @functools.cached_property
    def formulas(self) -> frozenset[str]:
        """What no checkpoint holds, no call changes, and no trial varies, since the constructor makes it alike under
        every seed: buffers that are not saved and plain attributes. Who writes the formula down needs no tensor."""
        kinds, saved = state.kinds(self.model), state.saved_buffers(self.model)
        names = [n for n in self.constructed if kinds.get(n) in ("buffer", "attribute") and n not in saved]
        fixed = [n for n in names if n not in self.changed_state and not weight_forms.is_varied(n, self.constructed[n])]
        return frozenset(n for n in fixed if n in self._reseeded and self._is_alike(n))

    @functools.cached_property
    def _reseeded(self) -> state.State:
        """As the constructor leaves it under another seed."""
        return state.collect(
            self._stage(
                "the constructor of Model raised when it was called again",
                lambda: construct(self._class, self.init, self.device, drawing.secret_seed()),
            )
        )

    def _is_made(self, name: str) -> bool:
        """Whether the constructor makes it as it is under any seed."""
        given = state.same(self.public[name], self.constructed[name])
        return given and name in self._reseeded and self._is_alike(name)

    def _is_alike(self, name: str) -> bool:
        return state.same(self._reseeded[name], self.constructed[name])

    @functools.cached_property
    def timed_weights(self) -> state.State:
        """What timed calls are made with: those of the task where it has some, else other ones than the constructor's,
        whose zeros and ones would spare work that trained weights do not, and whose one sign can be relied on. The same
        for both sides of a pair."""
        if self.weights:
            return self.public
        other = self.other_weights()
        signed = {} if other is self.public else weight_forms.of_both_signs(self.model, other, None)
        return signed if signed and self._is_accurate(signed) else other

    def _is_accurate(self, weights: state.State) -> bool:
        """Whether it stands these weights for inputs as they are drawn: finite, and near truth."""
        inputs, seed = self.draw(), drawing.secret_seed()
        try:
            answer, truth = self.call(inputs, weights, seed=seed), self.truth(inputs, weights, seed)
        except BadTask:
            return False
        pairs = zip(answer.tensors, truth.tensors, strict=True)
        return all(oracle.all_finite(t) and oracle.max_error(a, t) <= ACCURATE for a, t in pairs if _is_floating(t))

    def set_mode(self, mode: str) -> None:
        """`train` or `eval`, for the model and its twin."""
        self.mode = mode
        self._shapes = None
        set_mode(self.model, mode)
        if self._twin is not None:
            set_mode(self._twin, mode)

    def call(
        self, inputs: Sequence[Any], weights: Mapping[str, torch.Tensor], how: str = "plain", seed: int | None = None
    ) -> Answer:
        """One call from the given state. `how`: `shipped`, `plain` (no TF32), `tf32`, `tf32-rounded`, `tf32-by-chance`,
        `sums-by-chance`, `autocast`, `fp32` (cast up). `inputs` may lie in the host's memory."""
        self._rest()
        model, inputs = self.model, self._here(inputs)
        if how == "fp32":
            model, inputs = arithmetic.cast_model(model, torch.float32), arithmetic.cast(inputs, torch.float32)
            weights = {k: v.float() if v.is_floating_point() else v for k, v in weights.items()}
        runs: dict[str, Callable[[Any, Any], Any]] = {
            "shipped": _no_grad_call,
            "plain": arithmetic.run_plain,
            "fp32": lambda m, a: arithmetic.run_lifted(m, a, torch.float32),
            "tf32": lambda m, a: arithmetic.run_tf32(m, a, self.device),
            "tf32-rounded": arithmetic.run_tf32_rounded,
            "tf32-by-chance": arithmetic.run_tf32_by_chance,
            "sums-by-chance": arithmetic.run_sums_by_chance,
            "autocast": lambda m, a: arithmetic.run_autocast(m, a, self.device),
        }
        return self._answer(model, inputs, weights, runs[how], seed)

    def truth(self, inputs: Sequence[Any], weights: Mapping[str, torch.Tensor], seed: int | None = None) -> Answer:
        """The answer in float64; on the CPU where the device has too little memory for it. `inputs` as for `call`."""
        self._rest()
        try:
            return self._truth_on_device(inputs, weights, seed)
        except torch.OutOfMemoryError:
            if self.device == "cpu":
                raise BadTask("out of memory: the reference in float64 does not fit") from None
            torch.cuda.empty_cache()
            return self._truth_on_cpu(inputs, weights, seed)

    def beyond_all(self, inputs: Sequence[Any], weights: Mapping[str, torch.Tensor], seed: int) -> Answer | None:
        """Truth where the large numbers that stand for infinity, in its text, its state or its inputs, are beyond all;
        None where there is none, or it refuses them."""
        held = {name: stand_ins.grown(value) for name, value in weights.items()}
        given = map_leaves(list(inputs), stand_ins.grown)
        pairs = [
            *zip(held.values(), weights.values(), strict=True),
            *zip(leaves(given), leaves(list(inputs)), strict=True),
        ]
        with contextlib.suppress(BadTask, stand_ins.Bounds), stand_ins.BeyondAll() as beyond:
            answer = self.truth(given, held, seed)
            return answer if beyond.found or any(new is not old for new, old in pairs) else None
        return None

    def _rest(self) -> None:
        if self.rests is not None:
            self.rests()

    @property
    def rested_s(self) -> float:
        """Seconds in which others had the device, in the middle of what is done here."""
        return self.rests.rested_s if self.rests is not None else 0.0

    def _here(self, inputs: Sequence[Any]) -> drawing.Inputs:
        return list(map_leaves(list(inputs), lambda t: t.to(self.device)))

    def _truth_on_device(self, inputs: Any, weights: Mapping[str, torch.Tensor], seed: int | None) -> Answer:
        if self._twin is None:
            widened = functools.partial(arithmetic.cast_model, self.model, torch.float64)
            self._twin = self._stage("cannot be cast to float64", widened)
        wide = arithmetic.cast(dict(weights), torch.float64)
        own = arithmetic.cast(self._here(inputs), torch.float64)
        return self._answer(self._twin, own, wide, arithmetic.run_float64, seed, may_change=True)

    def _truth_on_cpu(self, inputs: Any, weights: Mapping[str, torch.Tensor], seed: int | None) -> Answer:
        self.oracle_place = "float64 on the CPU"
        self._twin = None
        twin = arithmetic.cast_model(self.model.cpu(), torch.float64)
        self.model.to(self.device)
        wide, host = (
            arithmetic.cast(map_leaves(value, lambda t: t.cpu()), torch.float64) for value in (dict(weights), inputs)
        )
        answer = self._answer(twin, host, wide, arithmetic.run_float64, seed)
        return Answer(answer.structure, [t.to(self.device) for t in answer.tensors])

    def _answer(
        self,
        model: torch.nn.Module,
        inputs: Sequence[Any],
        weights: Mapping[str, torch.Tensor],
        run: Callable[[Any, Any], Any],
        seed: int | None,
        *,
        may_change: bool = False,
    ) -> Answer:
        """One call. `may_change`: `inputs` are a copy already, and large ones should not lie in memory twice."""
        before = state.attributes(model)
        state.restore(model, weights)
        if self._earlier:
            self._call_earlier(model, run)
        args = list(inputs)
        if not may_change:
            args = map_leaves(args, lambda t: t.clone(memory_format=torch.preserve_format))
        seed_everything(drawing.secret_seed() if seed is None else seed)
        place, wide = args_device(args, self.device), torch.float64 if run is arithmetic.run_float64 else torch.float32
        # On a CPU the default needs no saying, and while it is said attention takes no fast path.
        bare = run is _no_grad_call and torch.device(place).type == "cpu"
        try:
            with contextlib.nullcontext() if bare else torch.device(place):
                result = settled(self._run(run, model, args), number=number_on(place, wide))
        except torch.OutOfMemoryError:
            raise
        except (Exception, SystemExit) as error:
            if self.device != "cpu" and is_short_of_memory(error):
                raise torch.OutOfMemoryError(first_line(error)) from error
            told = (
                "Model.forward raised" if wide is torch.float32 else "Model.forward in float64, which is truth, raised"
            )
            raise BadTask(f"{told} {first_line(error)}") from error
        else:
            self._require_shapes(leaves(result))
            if run is arithmetic.run_plain:
                self._note_sharing(result, args)
            flat = leaves(args)
            live = state.collect(model) if self.changed_state else {}
            tensors = [*leaves(result), *(flat[i] for i in self.changed_args), *(live[n] for n in self.changed_state)]
            return Answer(structure_of(result), [t.detach().clone() for t in tensors])
        finally:
            state.reinstate(model, before, self._restored or self.changed_state)

    def _run(self, run: Callable[[Any, Any], Any], model: torch.nn.Module, args: Any) -> Any:
        """A call; on a GPU what its kernels take for granted is asked first, so that inputs that it does not stand are
        refused there as on a CPU, and the judge lives on."""
        if self.device == "cpu" or (not self._may_assert and self._calls >= CALLS_THAT_TELL):
            return run(model, args)
        with DeviceAsserts() as asked:
            result = run(model, args)
        self._may_assert, self._calls = self._may_assert or asked.any, self._calls + 1
        return result

    def after(self, earlier: Sequence[drawing.Inputs]) -> Reference:
        """This reference as it answers when it has been called with all of these, one after the other. What such a call
        leaves behind is no part of its answer."""
        later = copy.copy(self)
        later._earlier, later.changed_args, later.changed_state = list(earlier), [], []
        later._restored = self.changed_state
        return later

    def _call_earlier(self, model: torch.nn.Module, run: Callable[[Any, Any], Any]) -> None:
        wide = run is arithmetic.run_float64
        for inputs in self._earlier:
            args = arithmetic.cast(inputs, torch.float64) if wide else map_leaves(list(inputs), torch.clone)
            seed_everything(drawing.secret_seed())
            self._stage("Model.forward raised", functools.partial(self._run, run, model, args))

    def _require_shapes(self, outputs: list[torch.Tensor]) -> None:
        """Raises BadTask where outputs have other shapes than those of the first call: nothing could be compared."""
        found = [tuple(t.shape) for t in outputs]
        self._shapes = self._shapes or found
        if found != self._shapes:
            text = f"shapes of outputs depend on what is computed ({self._shapes} in one call, {found} in another)"
            raise BadTask(f"{text}: such tasks are not supported")

    def learn_changes(self, inputs: drawing.Inputs) -> None:
        """Find out which arguments and which parts of the state a call changes."""
        self.changed_state = []
        args = map_leaves(list(inputs), torch.clone)
        before, arranged = state.attributes(self.model), arrangement(args)
        state.restore(self.model, self.public)
        result = self._stage("Model.forward raised", lambda: self._run(_no_grad_call, self.model, args))
        _require_supported("Model.forward", result)
        self.rearranges = arrangement(args) != arranged
        self._note_sharing(result, args)
        if len(leaves(inputs)) != len(leaves(args)):
            raise BadTask("Model.forward adds to a list or dict among its arguments: give back what is to be compared")
        self.changed_args = _unlike(inputs, args)
        after = state.snapshot(self.model)
        changed = weight_forms.changed(self.public, after)
        self._tables = {name: after[name] for name in changed if name not in self.public}
        if self._tables:
            self._stage("Model.forward raised", lambda: _no_grad_call(self.model, self.draw()))
            self._forget_tables(state.collect(self.model))  # a count goes on in the same module
            state.reinstate(self.model, before, changed)
            state.restore(self.model, self.public)
            self._stage("Model.forward raised", lambda: _no_grad_call(self.model, self.draw()))
            self._forget_tables(state.collect(self.model))
        self._without_tables = before
        self._add_changed([name for name in changed if name not in self._tables])
        self._add_changed(n for n in self.public if weight_forms.is_tracked(n, self.changed_state))
        state.reinstate(self.model, before, self.changed_state)
        state.restore(self.model, self.public)

    def _note_sharing(self, result: Any, args: Any) -> None:
        """Whose memory answers are, of one call more: some inputs are given back as they came."""
        tensors = leaves(result)
        held = {t.untyped_storage().data_ptr() for t in leaves(args)} - {0}
        own = state.collect(self.model).values()
        self.aliases |= {n for n, t in enumerate(tensors) if t.untyped_storage().data_ptr() in held}
        self.overlaps |= {n for n, t in enumerate(tensors) if overlaps(t)}
        self.shares |= {*begin_as_earlier(enumerate(tensors)), *share_with_earlier(tensors)}
        self.exposes |= {n for n, t in enumerate(tensors) if any(touch(t, o) for o in own)}

    def owns(self, place: int) -> bool:
        """Whether an output has memory of its own, which no input, no weight and no earlier output lies in."""
        return place not in self.aliases | self.shares | self.exposes

    def _forget_tables(self, live: Mapping[str, torch.Tensor]) -> None:
        """What is another one now is no table but state."""
        others = [name for name, table in self._tables.items() if name in live and not state.same(live[name], table)]
        for name in others:
            del self._tables[name]
            self._twin = None  # it may hold one
        self._add_changed(others)

    def _add_changed(self, names: Iterable[str]) -> None:
        """State, with what lies beside it in the same list, dict or object: of a window that moves on one call shows
        the last place alone."""
        for name in names:
            whole = state.attribute_of(self.model, name)
            beside = [other for other in self.public if whole and other.startswith(f"{whole}.")]
            self.changed_state += [each for each in (name, *beside) if each not in self.changed_state]

    def learn_more_changes(self, inputs: drawing.Inputs, weights: Mapping[str, torch.Tensor]) -> None:
        """Add what a call changes of these, which no draw shows: a count of what is clipped stands still where nothing
        is, and a mask may be made of the first inputs. Nothing where it refuses them."""
        before = state.attributes(self.model)
        args = map_leaves(list(inputs), torch.clone)
        state.restore(self.model, weights)
        state.reinstate(self.model, self._without_tables, self._tables)
        marks = state.marks(self.model)
        try:
            self._stage("Model.forward raised", lambda: self._run(_no_grad_call, self.model, args))
        except BadTask:
            return
        else:
            self.changed_args = sorted({*self.changed_args, *_unlike(inputs, args)})
            self._learn_from(marks, weights)
            self._forget_tables(state.collect(self.model))
        finally:
            state.reinstate(self.model, before, state.collect(self.model))
            made = [name for name in self.changed_state if name not in self.public]
            state.reinstate(self.model, self._without_tables, made)
            state.restore(self.model, self.public)

    def _learn_from(self, marks: Mapping[str, Any], began: Mapping[str, torch.Tensor]) -> None:
        """Add what is another one than it `began` as, when the state had these `marks`."""
        live = state.collect(self.model)
        written = [n for n, mark in state.marks(self.model).items() if mark is None or mark != marks.get(n)]
        kept = [n for n in written if n in self.public and live[n].shape == self.public[n].shape]
        self._add_changed(weight_forms.changed({n: began[n] for n in kept}, {n: live[n] for n in kept}))

    def aged(self, make: input_forms.Make | None = None, *, learn: bool = False) -> state.State:
        """Its public weights with the state that some calls in a row leave, each with inputs of its own, of which
        `make` makes others: what is done about an entry that was not met for long, no single call shows. Empty where
        calls change nothing, or leave what cannot take the place of the first state. `learn`: add what they change."""
        if not self.changed_state:
            return {}
        before, number = state.attributes(self.model), ENTROPY.randrange(AGED_CALLS // 2, AGED_CALLS + 1)
        state.restore(self.model, self.public)
        marks, left, begin = state.marks(self.model), state.State(), time.monotonic()
        try:
            for _ in range(number):
                inputs = map_leaves(make(self.draw())[0] if make else self.draw(), torch.clone)
                self._stage("Model.forward raised", functools.partial(self._run, _no_grad_call, self.model, inputs))
                if learn:
                    self._learn_from(marks, self.public)
                live = state.collect(self.model)
                now = {name: live[name].detach().clone() for name in self.changed_state if name in live}
                if not all(self._can_begin_with(name, value) for name, value in now.items()):
                    break
                left = now
                if time.monotonic() - begin > AGED_S:
                    break
        except BadTask:
            pass
        finally:
            state.reinstate(self.model, before, state.collect(self.model))
            state.restore(self.model, self.public)
        return {**self.public, **left} if left else {}

    def _can_begin_with(self, name: str, value: torch.Tensor) -> bool:
        return value.shape == self.public[name].shape and oracle.all_finite(value) if name in self.public else False

    def rough_us(self, inputs: drawing.Inputs) -> float:
        """Host time of a call from idle to completion, microseconds: the least of three after a warm-up."""
        best = float("inf")
        before = state.attributes(self.model)
        for _ in range(4):
            args = map_leaves(list(inputs), torch.clone)
            synchronize(self.device)
            start = time.perf_counter()
            _no_grad_call(self.model, args)
            synchronize(self.device)
            best = min(best, (time.perf_counter() - start) * 1e6)
        state.reinstate(self.model, before, self.changed_state)
        state.restore(self.model, self.public)
        return best


def _may_be_nan(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _may_switch(name: str, buffer: torch.Tensor) -> bool:
    """Whether a saved buffer may say what is computed at all: it is one number, and no batch normalisation's count."""
    return buffer.numel() == 1 and not name.endswith("num_batches_tracked")


def _unlike(inputs: Sequence[Any], args: Sequence[Any]) -> list[int]:
    """Places of the tensors that hold other values than those of `inputs`."""
    pairs = list(zip(leaves(inputs), leaves(args), strict=True))
    return [index for index, is_same in enumerate(state.same_each(pairs)) if not is_same]


def args_device(args: Any, default: str) -> str:
    """The device of the first tensor argument, else the default: a tensor that forward makes belongs there."""
    first = next(iter(leaves(args)), None)
    return str(first.device) if first is not None else default


def _no_grad_call(model: torch.nn.Module, args: Sequence[Any]) -> Any:
    with torch.no_grad():
        return model(*args)


def synchronize(device: str) -> None:
    """Wait for the device's work; nothing to wait for on a CPU."""
    if device != "cpu":
        torch.cuda.synchronize()
