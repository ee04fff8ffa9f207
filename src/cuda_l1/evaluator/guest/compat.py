"""The runner's part in a compatibility protocol: reference and candidate as a published harness holds and times them.

Such a harness has both in one interpreter and believes its own clock; so does this process, which is confined as every
runner is. What it returns for comparison goes to the judge. Models are made on the CPU and moved, as there.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from . import failed_builds
from .copying import timing_events
from .load import load_module, made_on, seed_everything
from .tensors import map_leaves, view

SEED = 42
FLUSH_SHAPE = (32, 1024, 1024)
"""Of int64: 256 MB."""
_now = time.perf_counter_ns
_copy = torch.Tensor.copy_
_no_grad = torch.no_grad
_same_tensor_names = ("Tensor", "Parameter")


class Unusable(Exception):
    """What the candidate defines, or gives back, is nothing that the harness can go on with."""


def moved(value: Any, device: str, *, to_fp32: bool) -> Any:
    """Nested inputs or arguments with every tensor on the device, in fp32 where the harness casts."""
    return map_leaves(value, lambda t: t.to(device=device, dtype=torch.float32 if to_fp32 else t.dtype))


def made(cls: Any, init: Any, device: str, *, to_fp32: bool, seed: int = SEED) -> Any:
    """`cls(*init)` under a seed, made where its constructor makes it and then moved."""
    seed_everything(seed)
    with _no_grad():
        model = cls(**init) if isinstance(init, dict) else cls(*init)
    return model.to(device=device, dtype=torch.float32) if to_fp32 else model.to(device)


class Harness:
    """State of one runner under a compatibility protocol; `answer` serves the judge's operation `compat`."""

    def __init__(self, runner: Any) -> None:
        self._runner = runner
        self._count = 0
        self._steps: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "load": self._load,
            "lazy": self._lazy,
            "call": self._call,
            "round": self._round,
            "alone": self._alone,
        }

    def answer(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """One step, named in the message."""
        return self._steps[message["step"]](message)

    # ── what is loaded ────────────────────────────────────────────────────────────────────────────

    def _load(self, message: dict[str, Any]) -> dict[str, Any]:
        """Execute both texts and construct the candidate."""
        self._protocol, self._paths = message["protocol"], (message["reference"], message["path"])
        self._device = message["device"]
        self._reference_module = load_module(self._paths[0], "reference_task")
        failed_builds.remember()
        self._candidate = self._made(self._candidate_class())
        return {}

    def _candidate_class(self) -> Any:
        """`ModelNew` of the text, executed anew, as each part of a harness does."""
        self._count += 1
        names = vars(self._reference_module) if self._protocol["shares_names"] else {}
        cls = getattr(load_module(self._paths[1], f"candidate_{self._count}", names), "ModelNew", None)
        if not isinstance(cls, type):
            raise Unusable("the candidate defines no class `ModelNew`")
        return cls

    def _made(self, cls: Any, seed: int = SEED) -> Any:
        to_fp32 = self._protocol["cast_to_fp32"]
        seed_everything(seed)
        init: Any = getattr(self._reference_module, "get_init_inputs", list)()
        return made(cls, moved(init, self._device, to_fp32=to_fp32), self._device, to_fp32=to_fp32, seed=seed)

    def _drawn(self) -> Any:
        """Inputs of the reference's, made on the device where its text allows that."""
        drawn = made_on(self._device, self._reference_module.get_inputs)
        inputs = list(drawn) if isinstance(drawn, list | tuple) else [drawn]
        return moved(inputs, self._device, to_fp32=self._protocol["cast_to_fp32"])

    # ── what is compared ──────────────────────────────────────────────────────────────────────────

    def _lazy(self, message: dict[str, Any]) -> dict[str, Any]:
        """What is wrong with one output of a model of its own, or None: not a plain tensor with storage."""
        model = self._made(self._candidate_class())
        seed_everything(SEED)
        with _no_grad():
            output = model(*self._drawn())
        self._wait()
        outputs = output if isinstance(output, tuple | list) else [output]
        return {"problem": next(filter(None, (self._not_real(each) for each in outputs)), None)}

    def _not_real(self, output: Any) -> str | None:
        kind = type(output).__name__
        if not isinstance(output, torch.Tensor):
            return f"the output is not a tensor: {kind}"
        if kind not in _same_tensor_names:
            return f"the output is a {kind}, not a plain torch.Tensor"
        if output.device != torch.device(self._device):
            return f"the output is on {output.device}"
        if output.untyped_storage().size() == 0 or output.data_ptr() == 0:
            return "the output has no storage"
        return None

    def _call(self, message: dict[str, Any]) -> dict[str, Any]:
        """One call on the inputs that the runner looks at; the output goes to its slot if it fits there."""
        if self._protocol["eval_mode"]:
            self._candidate.eval()
        seed_everything(message["seed"])
        with _no_grad():
            output = self._candidate(*self._runner.inputs_shown)
        self._wait()
        return self._deliver(output, message["slot"])

    def _deliver(self, output: Any, slot: dict[str, Any]) -> dict[str, Any]:
        try:
            described = {"shape": list(output.shape), "dtype": str(output.dtype).removeprefix("torch.")}
            described["device"] = output.device.type
        except AttributeError as error:
            raise Unusable(f"the output has no shape, dtype or device: {type(output).__name__}") from error
        if described["shape"] == slot["shape"] and described["dtype"] == slot["$tensor"]:
            _copy(view(slot, self._runner.outputs_buffer), output)  # one that is lazy is made here, as by a comparison
            self._wait()
        return described

    # ── what is timed ─────────────────────────────────────────────────────────────────────────────

    def _round(self, message: dict[str, Any]) -> dict[str, Any]:
        """Fresh models; each sample has new inputs, given to both in random order. Microseconds."""
        models = {"reference": self._made(self._reference_module.Model, message["seed"])}
        models["candidate"] = self._made(self._candidate_class(), message["seed"])
        times: dict[str, list[float]] = {side: [] for side in models}
        with _no_grad():
            self._warm_up([*models.values()], self._drawn(), message["warm_ups"])
            for _ in range(self._protocol["samples"]):
                inputs = self._drawn()
                for side in random.sample([*models], 2):
                    times[side].append(self._timed(models[side], inputs))
        return times

    def _warm_up(self, models: Sequence[Any], inputs: Any, count: int) -> None:
        """Both sides in turn. What it raises ends it and no more, as in these harnesses."""
        try:
            for _ in range(count):
                for model in models:
                    model(*inputs)
                self._wait()
        except Exception:  # noqa: BLE001  whatever the candidate raises
            return

    def _alone(self, message: dict[str, Any]) -> dict[str, Any]:
        """One side on one set of inputs: warm-up, then every sample. Microseconds."""
        side = message["side"]
        model = self._candidate if side == "candidate" else self._made(self._reference_module.Model)
        seed_everything(SEED)
        inputs = self._drawn()
        with _no_grad():
            for _ in range(message["warm_ups"]):
                model(*inputs)
                self._wait()
            if self._protocol["flushes"] and self._device != "cpu":
                torch.cuda.empty_cache()
            count = self._protocol["samples"] + self._protocol["discard"]
            times = [self._timed(model, inputs) for _ in range(count)]
        return {side: times[self._protocol["discard"] :]}

    def _timed(self, model: Any, inputs: Any) -> float:
        if self._device == "cpu":
            start = _now()
            model(*inputs)
            return (_now() - start) / 1e3
        return self._timed_by_events(model, inputs)

    def _timed_by_events(self, model: Any, inputs: Any) -> float:
        """Two events of the current stream around the call, on an idle device or behind a flush."""
        self._wait()
        begin, end = timing_events()
        if self._protocol["flushes"]:
            torch.empty(FLUSH_SHAPE, dtype=torch.int64, device=self._device).fill_(SEED)
        streams = _streams_of(model) if self._protocol["alternates"] else []
        begin.record()
        model(*inputs)
        for stream in streams:
            torch.cuda.current_stream().wait_stream(stream)
        end.record()
        self._wait()
        return float(begin.elapsed_time(end)) * 1e3

    def _wait(self) -> None:
        if self._device != "cpu":
            torch.cuda.synchronize()


def _streams_of(model: Any) -> list[Any]:
    """Streams among a model's attributes, or in their lists, tuples and dicts: those that the release waits for."""
    found = []
    for value in vars(model).values():
        inside = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else [value]
        found += [item for item in inside if isinstance(item, torch.cuda.Stream)]
    return found
