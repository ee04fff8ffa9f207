"""The gate: a kernel that fills the GPU until the judge opens it, so that launch cost and early starts are not timed.

The runner shuts the gate on the stream it will call on, waits until it is resident, lets the candidate enqueue its work
and says so; the judge opens it with one store and all blocks leave at one device time. See gate.cu for the kernel.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

from .control import Control
from .cuda_calls import CudaError
from .cuda_driver import Driver
from .nvrtc import compile_cubin

__all__ = ["Control", "Gate", "GateError", "assemble_gate", "open_gate"]

_HERE = Path(__file__).parent
LIMIT_NS = 50_000_000
"""A gate that nobody opens leaves by itself after this long, well after the judge's own patience of 20 ms."""
MARGIN_NS = 6_000
"""From seeing the gate open to leaving it: long enough for every block to learn the leaving time."""
_TIMER_STEPS = 64

# The shipped PTX is newer than this driver, or older than this GPU can be served from it (cuda.h).
_PTX_REFUSED = {200, 209, 218, 221, 222, 300}


def open_gate(control: Control, sequence: int) -> None:
    """Let gates up to `sequence` leave: one store, no CUDA. For the judge's end of the control pages."""
    control.put(Control.GATE_OPEN, sequence)


def assemble_gate(driver: Driver) -> bytes:
    """The kernels as a cubin for this device: 20-150 ms, so do it once and hand the bytes to every `Gate`.

    The driver compiles the shipped PTX; where it is older than that PTX, NVRTC compiles the source. Raises CudaError,
    and NvrtcError when there is no NVRTC either.
    """
    try:
        return driver.assemble((_HERE / "gate.ptx").read_bytes())
    except CudaError as refusal:
        if refusal.code not in _PTX_REFUSED:
            raise
    return compile_cubin((_HERE / "gate.cu").read_text(), driver.attributes.compute_capability)


class Gate:
    """The runner's side: shut, ask whether it is resident, finish, read the device time in between.

    Registers the control pages with the device and loads the kernels from `image`, what `assemble_gate` made on the
    same GPU model (made here when None). Raises CudaError, and GateError when the device cannot be filled.
    """

    def __init__(self, driver: Driver, control: Control, *, image: bytes | None = None) -> None:
        self._driver = driver
        self._control = control
        self._last_sequence = 0
        judge, runner = self._register()
        module = driver.load_module(assemble_gate(driver) if image is None else image)
        self._sequence = ctypes.c_int()
        self._limit_ns = ctypes.c_longlong()
        self._finish_sequence = ctypes.c_int()
        words = (
            judge + Control.GATE_OPEN.offset,
            runner + Control.GATE_RESIDENT.offset,
            runner + Control.GATE_EXPIRED.offset,
            runner + Control.RELEASE_NS.offset,
        )
        arguments = [ctypes.c_uint64(word) for word in words]
        margin = ctypes.c_longlong(MARGIN_NS)
        self._gate = driver.kernel(module, "gate", [*arguments, self._sequence, self._limit_ns, margin])
        time_word = ctypes.c_uint64(runner + Control.FINISH_NS.offset)
        finished_word = ctypes.c_uint64(runner + Control.FINISHED.offset)
        self._finish = driver.kernel(module, "finish", [time_word, finished_word, self._finish_sequence])
        self._timer = driver.kernel(module, "timer_step", [time_word, ctypes.c_int(_TIMER_STEPS)])
        self.block, self.grid = self._shape()

    def _register(self) -> tuple[int, int]:
        """Device pointers to the judge's and the runner's page."""
        register, nbytes = self._driver.register_host, Control.PAGE_BYTES
        judge = register(self._control.address("judge"), nbytes, read_only=self._control.sealed)
        return judge, register(self._control.address("runner"), nbytes)

    def _shape(self) -> tuple[int, int]:
        """Threads in a block and blocks in the grid that together take every thread slot of every SM."""
        attributes = self._driver.attributes
        slots = attributes.max_threads_per_sm
        per_sm = -(-slots // attributes.max_threads_per_block)
        block = slots // per_sm
        resident = self._gate.blocks_per_sm(block)
        if resident != per_sm or block * per_sm != slots:
            raise GateError(f"the gate cannot fill an SM: {resident} blocks of {block} threads in {slots} slots")
        return block, per_sm * attributes.sm_count

    def shut(self, sequence: int, stream: int, *, limit_ns: int = LIMIT_NS) -> None:
        """Enqueue gate `sequence` on `stream`; it leaves when opened, or `limit_ns` after it began to run.

        One gate at a time. ValueError when `sequence` is not above the last one: such a gate would stand open.
        """
        if sequence <= self._last_sequence:
            raise ValueError(f"gate {sequence} after gate {self._last_sequence}: sequences only go up")
        self._last_sequence = sequence
        self._sequence.value = sequence
        self._limit_ns.value = limit_ns
        self._gate.launch(self.grid, self.block, stream)

    def resident(self, sequence: int) -> bool:
        """Whether every block of that gate runs, so that no thread slot is left for anything else."""
        return self._control.get(Control.GATE_RESIDENT) >= sequence

    def expired(self, sequence: int) -> bool:
        """Whether that gate, the last one shut, left at its limit. Ask after the stream was synchronised."""
        return self._control.get(Control.GATE_EXPIRED) == sequence

    def finish(self, sequence: int, stream: int) -> None:
        """Enqueue a note of the device's time and the store of `sequence` to FINISHED, behind the work to be timed.

        The judge so sees the end of the work by itself, without this process, whose host time would be noise on its
        clock. Put it before the copy of the outputs: a copy is faster where the work has just written them than for
        an empty candidate, and that difference would be taken for time of the work.
        """
        self._finish_sequence.value = sequence
        self._finish.launch(1, 1, stream)

    def device_us(self) -> float:
        """Microseconds from the last gate's release to the last `finish`. Ask after the stream was synchronised."""
        return (self._control.get_ns(Control.FINISH_NS) - self._control.get_ns(Control.RELEASE_NS)) / 1e3

    def timer_step_ns(self, stream: int) -> int:
        """Smallest step of the clock behind `device_us`: 32 ns on an H100, about 1 us on some GPUs.

        Waits for `stream` and overwrites the time of the last `finish`.
        """
        self._timer.launch(1, 1, stream)
        self._driver.synchronize_stream(stream)
        return self._control.get_ns(Control.FINISH_NS)

    def close(self) -> None:
        """Wait for the device and let go of the control pages, which may be closed after this."""
        self._driver.synchronize()
        for writer in ("judge", "runner"):
            self._driver.unregister_host(self._control.address(writer))


class GateError(RuntimeError):
    """This device cannot be filled by the gate, so timings behind it would not mean what they say."""
