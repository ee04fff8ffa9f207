"""What the gate does to figures, honest and not, and what each primitive costs the host. Needs a GPU; under 60 s.

    PYTHONPATH=src python3 benchmarks/gate_check.py [--calls 150] [--rounds 2] [--device 0] [--unsealed]

A runner process makes the calls, a judge process (this one) writes their inputs and opens the gate, as in an
evaluation. Each workload is timed behind a flush of the L2 cache alone and behind flush and gate. The `side_` workloads
start on a stream of their own: without the gate they run while the flush does, and join in time.
"""

from __future__ import annotations

import argparse
import array
import json
import os
import socket
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cuda_l1.evaluator.guest.cuda_driver import DeviceMemory, Driver
from cuda_l1.evaluator.guest.gate import Control, Gate, assemble_gate, open_gate
from cuda_l1.evaluator.guest.nvrtc import NvrtcError, compile_cubin

BUFFER_BYTES = 16 << 20
PATIENCE_S = 0.02  # how long the judge leaves a gate shut for a call that does not return
DEADLINE_S = 20.0
SMALL, LARGE = 1 << 18, 1 << 22  # float32 elements: 1 MiB and 16 MiB
# name -> elements of its input; `ready` returns its input and does nothing
WORKLOADS = {
    "ready 1 MB": SMALL,
    "relu 1 MB": SMALL,
    "chain of 4": SMALL,
    "chain of 12": SMALL,
    "ready 16 MB": LARGE,
    "softmax": LARGE,
    "mm 2048": LARGE,
    "side relu": SMALL,
    "side softmax": LARGE,
    "side mm 2048": LARGE,
}


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


# --- messages: JSON, with descriptors beside it


def send(channel: socket.socket, message: Any, fds: tuple[int, ...] = ()) -> None:
    beside = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    channel.sendmsg([json.dumps(message).encode()], beside)


def receive(channel: socket.socket) -> tuple[Any, list[int]]:
    data, beside, _, _ = channel.recvmsg(1 << 16, socket.CMSG_SPACE(64))
    fds = array.array("i")
    for _, _, words in beside:
        fds.frombytes(words[: len(words) // 4 * 4])
    if not data:
        raise SystemExit("the other process ended")
    return json.loads(data), list(fds)


# --- the runner


def workloads() -> dict[str, Callable[[torch.Tensor], torch.Tensor]]:
    weight = torch.randn(2048, 2048, device="cuda")
    side = torch.cuda.Stream()

    def on_side(work: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
        def run(x: torch.Tensor) -> torch.Tensor:
            with torch.cuda.stream(side):
                y = work(x)
            torch.cuda.current_stream().wait_stream(side)
            return y

        return run

    def chain(x: torch.Tensor, links: int) -> torch.Tensor:
        y = x
        for _ in range(links):
            y = torch.tanh(torch.relu(y) * 2 + 1)
        return y

    def softmax(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x.view(1024, 4096), -1)

    def product(x: torch.Tensor) -> torch.Tensor:
        return x.view(2048, 2048) @ weight

    return {
        "ready 1 MB": lambda x: x,
        "ready 16 MB": lambda x: x,
        "relu 1 MB": torch.relu,
        "chain of 4": lambda x: chain(x, 1),
        "chain of 12": lambda x: chain(x, 3),
        "softmax": softmax,
        "mm 2048": product,
        "side relu": on_side(torch.relu),
        "side softmax": on_side(softmax),
        "side mm 2048": on_side(product),
    }


@dataclass
class Bench:
    """What a runner holds while it is driven."""

    driver: Driver
    control: Control
    gate: Gate
    inputs: DeviceMemory
    outputs: DeviceMemory
    flush: DeviceMemory

    def drive(self, work: Callable[[torch.Tensor], torch.Tensor], command: dict[str, Any]) -> dict[str, Any]:
        """The calls of one command; medians in microseconds."""
        driver, control, gate = self.driver, self.control, self.gate
        x = self.inputs.tensor().view(torch.float32)[: command["elements"]]
        start, end = driver.event(), driver.event()
        for _ in range(5):
            work(x)
        driver.synchronize()
        by_events, by_timer, expired = [], [], 0
        for call in range(command["first"], command["first"] + command["calls"]):
            if not control.wait(Control.GO, call, DEADLINE_S):
                raise SystemExit("no call came")
            stream = driver.current_stream()
            driver.memset_async(self.flush.address, 0, self.flush.nbytes, stream)
            if command["gate"]:
                gate.shut(call, stream)
                control.wait(Control.GATE_RESIDENT, call, DEADLINE_S)
            start.record(stream)
            y = work(x)
            end.record(stream)
            gate.finish(call, stream)
            driver.memcpy_async(self.outputs.address, y.data_ptr(), y.numel() * 4, stream)
            control.put(Control.ENQUEUED, call)
            driver.synchronize_stream(stream)
            control.put(Control.DONE, call)
            by_events.append(end.elapsed_us(start))
            if command["gate"]:
                by_timer.append(gate.device_us())
                expired += gate.expired(call)
        spread = statistics.pstdev(by_events)
        timer = statistics.median(by_timer) if by_timer else 0.0
        return {"events": statistics.median(by_events), "spread": spread, "timer": timer, "expired": expired}


def start_cuda(device: int) -> None:
    if not torch.cuda.is_available():
        raise SystemExit("gate_check: torch sees no NVIDIA GPU here")
    torch.cuda.set_device(device)
    torch.cuda.init()


def runner(channel: socket.socket, device: int) -> None:
    start_cuda(device)
    _, (judge_fd, runner_fd, inputs_fd, outputs_fd) = receive(channel)
    began = time.perf_counter()
    driver = Driver(device)
    once = {"Driver()": time.perf_counter() - began}
    control = Control.attach(judge_fd, runner_fd)
    began = time.perf_counter()
    image = assemble_gate(driver)
    once["assemble_gate"] = time.perf_counter() - began
    began = time.perf_counter()
    gate = Gate(driver, control, image=image)
    once["Gate() from that"] = time.perf_counter() - began
    began = time.perf_counter()
    inputs = driver.import_memory(inputs_fd, BUFFER_BYTES, read_only=True)
    once["import_memory 16 MiB"] = time.perf_counter() - began
    outputs = driver.import_memory(outputs_fd, BUFFER_BYTES)
    flush = driver.allocate(4 * driver.attributes.l2_bytes)
    bench = Bench(driver, control, gate, inputs, outputs, flush)
    works = workloads()
    facts = {"timer_step_ns": gate.timer_step_ns(0), "grid": gate.grid, "block": gate.block, "sealed": control.sealed}
    send(channel, facts)
    with torch.no_grad():
        while (command := receive(channel)[0]) is not None:
            if "name" in command:
                send(channel, bench.drive(works[command["name"]], command))
            else:
                hot = host_costs(driver, control, gate, flush)
                send(channel, {"once_ms": {name: s * 1e3 for name, s in once.items()} | one_off(driver), "hot_us": hot})


# --- host costs


def one_off(driver: Driver) -> dict[str, float]:
    """Milliseconds of what is done once or rarely."""
    costs = {}
    began = time.perf_counter()
    memory = driver.allocate(256 << 20)
    costs["allocate 256 MiB"] = time.perf_counter() - began
    began = time.perf_counter()
    os.close(memory.export_fd())
    costs["export_fd"] = time.perf_counter() - began
    began = time.perf_counter()
    memory.tensor()
    costs["tensor"] = time.perf_counter() - began
    began = time.perf_counter()
    memory.close()
    costs["close 256 MiB"] = time.perf_counter() - began
    source = Path(sys.modules[Gate.__module__].__file__ or "").with_name("gate.cu").read_text()
    began = time.perf_counter()
    try:
        compile_cubin(source, driver.attributes.compute_capability)
        costs["compile_cubin by NVRTC"] = time.perf_counter() - began
    except NvrtcError as missing:
        say(f"NVRTC: {missing}")
    return {name: seconds * 1e3 for name, seconds in costs.items()}


def host_costs(driver: Driver, control: Control, gate: Gate, memory: DeviceMemory) -> dict[str, float]:
    """Microseconds of host time that one call of each primitive takes, the queue never full."""
    start, end, torch_event = driver.event(), driver.event(), torch.cuda.Event(enable_timing=True)
    start.record(0)
    end.record(0)
    torch_event.record()
    driver.synchronize()
    half = memory.address + memory.nbytes // 2
    primitives: dict[str, Callable[[], object]] = {
        "nothing (the loop)": lambda: None,
        "current_stream": driver.current_stream,
        "event.record": lambda: start.record(0),
        "torch.cuda.Event.record": torch_event.record,
        "event.elapsed_us": lambda: end.elapsed_us(start),
        "memset_async 1 KB": lambda: driver.memset_async(memory.address, 0, 1024, 0),
        "memcpy_async 1 KB": lambda: driver.memcpy_async(memory.address, half, 1024, 0),
        "gate.finish": lambda: gate.finish(1, 0),
        "gate.resident": lambda: gate.resident(1),
        "control.get": lambda: control.get(Control.GO),
        "control.put": lambda: control.put(Control.ENQUEUED, 1),
        "synchronize, idle": driver.synchronize,
        "synchronize_stream, idle": lambda: driver.synchronize_stream(0),
    }
    return {name: cost_us(driver, primitive) for name, primitive in primitives.items()}


def cost_us(driver: Driver, primitive: Callable[[], object], batches: int = 15, batch: int = 200) -> float:
    costs = []
    for _ in range(batches):
        driver.synchronize()
        began = time.perf_counter()
        for _ in range(batch):
            primitive()
        costs.append((time.perf_counter() - began) / batch * 1e6)
    return statistics.median(costs)


# --- the judge


class Judge:
    """Writes inputs, opens gates and keeps its own clock."""

    def __init__(self, channel: socket.socket, device: int, *, seal: bool) -> None:
        start_cuda(device)
        self.channel = channel
        self.driver = Driver(device)
        self.control = Control.create(seal=seal and bool(self.driver.attributes.read_only_host_register))
        self.inputs, self.outputs = (self.driver.allocate(BUFFER_BYTES) for _ in range(2))
        exported = (self.inputs.export_fd(), self.outputs.export_fd())
        send(channel, "begin", (*self.control.fds, *exported))
        self.facts, _ = receive(channel)
        self.calls_made = 0

    def drive(self, name: str, *, gate: bool, calls: int) -> dict[str, Any]:
        """One block of driven calls: the runner's medians, the judge's own clock, and the cost of a call all in."""
        elements = WORKLOADS[name]
        first = self.calls_made + 1
        self.calls_made += calls
        command = {"name": name, "gate": gate, "calls": calls, "first": first, "elements": elements}
        send(self.channel, command)
        x = self.inputs.tensor().view(torch.float32)[:elements]
        y = self.outputs.tensor().view(torch.float32)[:elements]
        by_device: list[float] = []
        by_runner: list[float] = []
        began = time.perf_counter()
        for call in range(first, first + calls):
            x.normal_()
            self.driver.synchronize()
            self.control.put(Control.GO, call)
            self.control.wait(Control.ENQUEUED, call, PATIENCE_S)
            opened = time.perf_counter()
            open_gate(self.control, call)
            for word, clock in ((Control.FINISHED, by_device), (Control.DONE, by_runner)):
                if not self.control.wait(word, call, DEADLINE_S):
                    raise SystemExit(f"{name}: call {call} was never done")
                clock.append((time.perf_counter() - opened) * 1e6)
            y.clone()
        all_in = (time.perf_counter() - began) / calls * 1e6
        figures, _ = receive(self.channel)
        for name, clock in (("judge", by_device), ("via", by_runner)):
            low, median, high = statistics.quantiles(clock, n=4)
            figures |= {name: median, f"{name}_quartiles": high - low}
        return {**figures, "all_in": all_in}

    def costs(self) -> dict[str, dict[str, float]]:
        send(self.channel, {})
        costs: dict[str, dict[str, float]] = receive(self.channel)[0]
        send(self.channel, None)
        return costs


HEAD = ("us", "flush only", "gate", "sd", "judge", "quartiles", "via runner", "quartiles", "timer", "all in", "expired")


def table(judge: Judge, calls: int) -> None:
    """One line per workload: medians by the runner's events behind the flush alone and behind the gate, and their
    spread there; the judge's clock up to the GPU's word and up to the runner's, each with the distance of its
    quartiles; the device's timer; the cost of a gated call, inputs and copies included; gates that left at their limit.
    The judge's and the timer's figures are less those of a ready output of the same size.
    """
    say(f"{HEAD[0]:13}" + "".join(f"{title:>11}" for title in HEAD[1:]))
    ready: dict[int, dict[str, Any]] = {}
    for name, elements in WORKLOADS.items():
        flush, gate = (judge.drive(name, gate=shut, calls=calls) for shut in (False, True))
        zero = ready.setdefault(elements, gate)
        own, via, timer = (gate[clock] - zero[clock] for clock in ("judge", "via", "timer"))
        figures = [flush["events"], gate["events"], gate["spread"], own, gate["judge_quartiles"], via]
        figures += [gate["via_quartiles"], timer, gate["all_in"]]
        say(f"{name:13}" + "".join(f"{figure:11.2f}" for figure in figures) + f"{gate['expired']:11d}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", type=int, default=150, help="calls per workload and mode in a round")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--unsealed", action="store_true", help="let the runner write the judge's words")
    options = parser.parse_args()
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    child = os.fork()  # before CUDA: a context does not survive a fork
    if child == 0:
        mine.close()
        runner(theirs, options.device)
        os._exit(0)
    theirs.close()
    judge = Judge(mine, options.device, seal=not options.unsealed)
    say(f"{torch.cuda.get_device_name()}, driver for CUDA {judge.driver.driver_version()}, {judge.facts}")
    for _ in range(options.rounds):
        table(judge, options.calls)
    costs = judge.costs()
    for unit, title in (("once_ms", "once, ms"), ("hot_us", "host time of one call, us")):
        say(f"{title}: " + "; ".join(f"{name} {cost:.2f}" for name, cost in costs[unit].items()))
    os.waitpid(child, 0)


if __name__ == "__main__":
    main()
