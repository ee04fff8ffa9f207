"""The runner's side of timing on a GPU: flush, gate, events, on the harness's own way to the driver."""

from __future__ import annotations

import base64
import time
from typing import Any

import torch

from . import profiling
from .control import Control
from .cuda_driver import Driver
from .gate import Gate
from .reference import structure_of
from .tensors import map_leaves

_now = time.perf_counter_ns
_clone = torch.Tensor.clone
_CUDA = torch._C._autograd.DeviceType.CUDA
FLUSH_FACTOR = 2
"""The flush writes this many times the size of the L2 cache."""


class CudaHarness:
    """Made before the candidate is loaded; holds the context, the flush buffer and the gate."""

    def __init__(self, device: str) -> None:
        index = int(device.split(":")[1]) if ":" in device else 0
        torch.cuda.set_device(index)
        torch.cuda.init()  # type: ignore[no-untyped-call]
        torch.zeros(1, device=device)
        self.driver = Driver(index)
        self.synchronize = self.driver.synchronize
        self._flush_bytes = FLUSH_FACTOR * max(self.driver.attributes.l2_bytes, 32 << 20)
        self._flush = self.driver.allocate(self._flush_bytes)
        self._begin, self._end = self.driver.event(), self.driver.event()
        self._profile = torch.profiler.profile

    def attach(self, judge_fd: int, runner_fd: int, image: str) -> None:
        """Map the control pages and load the gate from the image that the judge assembled (base64)."""
        self._control = Control.attach(judge_fd, runner_fd)
        self._gate = Gate(self.driver, self._control, image=base64.b64decode(image))

    def _flush_cache(self, stream: int) -> None:
        self.driver.memset_async(self._flush.address, 0, self._flush_bytes, stream)

    def block(self, runner: Any, message: dict[str, Any]) -> dict[str, Any]:
        """A block of driven calls on one clock."""
        one = self._device_call if message["clock"] == "device" else self._host_call
        samples, structures = [], []
        for number in range(message["calls"]):
            sequence = message["first"] + number
            before = {}
            if message["stateful"]:  # before the inputs are there
                before = runner._restored(message)
                self.synchronize()
            if not self._control.wait(Control.GO, sequence, message["patience_s"]):
                raise TimeoutError("the judge did not start the call")
            if message["seeded"]:
                runner.seed(self._control.get(Control.SEED))
            elapsed, result = one(runner, message, sequence)
            samples.append(elapsed)
            structures.append(structure_of(result))
            if number in message["scribbled"]:
                runner.scribble(result, message["writable"])
            del result
            runner._reinstate(before, message)
        return {"samples": samples, "structures": structures, "form": runner.timed_form}

    def _device_call(self, runner: Any, message: dict[str, Any], sequence: int) -> tuple[float, Any]:
        """Device time behind the gate, microseconds, launch cost hidden, cache cold; and what the call gave."""
        stream = self.driver.current_stream()
        self._flush_cache(stream)
        self._gate.shut(sequence, stream)
        while not self._gate.resident(sequence):
            pass
        self._begin.record(stream)
        result = runner._forward()
        if message["clone"]:
            result = map_leaves(result, _clone)
        self._end.record(stream)
        self._gate.finish(sequence, stream)
        runner._deliver(result, message, synchronize=False)
        self._control.put(Control.ENQUEUED, sequence)
        self.synchronize()
        elapsed = self._end.elapsed_us(self._begin)
        self._control.put(Control.DELIVERED, sequence)
        return elapsed, result

    def slope(self, runner: Any, message: dict[str, Any]) -> dict[str, Any]:
        """Several calls behind one gate, for the judge's clock alone; the cache is warm from the second on."""
        for number, count in enumerate(message["counts"]):
            sequence = message["first"] + number
            if not self._control.wait(Control.GO, sequence, message["patience_s"]):
                raise TimeoutError("the judge did not start the calls")
            stream = self.driver.current_stream()
            self._gate.shut(sequence, stream)
            while not self._gate.resident(sequence):
                pass
            for _ in range(count):
                runner._forward()
            self._gate.finish(sequence, stream)
            self._control.put(Control.ENQUEUED, sequence)
            self.synchronize()
            self._control.put(Control.DELIVERED, sequence)
        return {}

    def _host_call(self, runner: Any, message: dict[str, Any], sequence: int) -> tuple[float, Any]:
        """Host time from call to completion, microseconds, device idle before, cache cold; and what the call gave."""
        self._flush_cache(self.driver.current_stream())
        self.synchronize()
        self._control.put(Control.ENQUEUED, sequence)
        self._control.wait(Control.GATE_OPEN, sequence, message["patience_s"])
        start = _now()
        result = runner._forward()
        if message["clone"]:
            result = map_leaves(result, _clone)
        self.synchronize()
        elapsed = (_now() - start) / 1e3
        self._control.put(Control.DONE, sequence)
        runner._deliver(result, message)
        self._control.put(Control.DELIVERED, sequence)
        return elapsed, result

    def peak_bytes(self) -> int:
        """Most device memory that this process's allocator has handed out."""
        return int(torch.cuda.max_memory_allocated())

    def profile(self, runner: Any) -> dict[str, Any]:
        """Streams on which one untimed call works, the main one included, and its kernels."""
        with self._profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
            self._flush_cache(self.driver.current_stream())  # so that the main stream is among those seen
            runner._forward()
            self.synchronize()
        results = profiler.profiler.kineto_results
        events = [e for e in (results.events() if results else []) if e.device_type() == _CUDA]
        streams = max(1, len({event.device_resource_id() for event in events}))
        return {"streams": streams, "profile": profiling.kernels_of(events)}
