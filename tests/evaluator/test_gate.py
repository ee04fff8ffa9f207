"""Control pages, the gate's protocol on a stand-in driver, its PTX, and what it holds back on a GPU."""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import fake_libcuda
import pytest
import torch

from cuda_l1.evaluator.guest import gate as gate_module
from cuda_l1.evaluator.guest.control import Control, Word
from cuda_l1.evaluator.guest.cuda_calls import CudaError
from cuda_l1.evaluator.guest.cuda_driver import Driver
from cuda_l1.evaluator.guest.gate import Gate, GateError, assemble_gate, open_gate
from cuda_l1.evaluator.guest.nvrtc import NvrtcError, compile_cubin

GUEST = Path(gate_module.__file__).parent


@pytest.fixture
def ends() -> Iterator[tuple[Control, Control]]:
    """(judge's end, runner's end) of the same pages."""
    judge = Control.create()
    runner = Control.attach(*(os.dup(fd) for fd in judge.fds))
    yield judge, runner
    runner.close()
    judge.close()


# --- control pages


def test_both_ends_see_each_others_words(ends: tuple[Control, Control]) -> None:
    judge, runner = ends
    assert runner.get(Control.GO) == 0
    judge.put(Control.GO, 7)
    runner.put(Control.DONE, 2**31 - 1)
    assert (runner.get(Control.GO), judge.get(Control.DONE)) == (7, 2**31 - 1)


def test_a_runner_cannot_write_the_judges_words(ends: tuple[Control, Control]) -> None:
    _, runner = ends
    with pytest.raises(TypeError):
        runner.put(Control.GATE_OPEN, 1)
    with pytest.raises(OSError):
        mmap.mmap(runner.fds[0], Control.PAGE_BYTES, access=mmap.ACCESS_WRITE)
    with pytest.raises(OSError):
        os.write(runner.fds[0], b"1")
    libc = ctypes.CDLL(None, use_errno=True)
    page = ctypes.c_void_p(runner.address("judge"))
    assert libc.mprotect(page, ctypes.c_size_t(Control.PAGE_BYTES), mmap.PROT_READ | mmap.PROT_WRITE) == -1


def test_unsealed_pages_are_writable_on_both_ends() -> None:
    judge = Control.create(seal=False)
    runner = Control.attach(*(os.dup(fd) for fd in judge.fds))
    runner.put(Control.GATE_OPEN, 3)
    assert judge.get(Control.GATE_OPEN) == 3
    runner.close()
    judge.close()


def test_words_are_apart_and_inside_the_page() -> None:
    words = [word for word in vars(Control).values() if isinstance(word, Word)]
    assert len(words) == len(set(words)) >= 10
    for word in words:
        assert word.offset % 128 == 0
        assert word.offset + 8 <= Control.PAGE_BYTES


def test_the_address_is_where_the_words_lie(ends: tuple[Control, Control]) -> None:
    judge, runner = ends
    judge.put(Control.ABORT, 5)
    for end in ends:
        assert ctypes.c_int.from_address(end.address("judge") + Control.ABORT.offset).value == 5
    ctypes.c_longlong.from_address(runner.address("runner") + Control.FINISH_NS.offset).value = 1 << 40
    assert judge.get_ns(Control.FINISH_NS) == 1 << 40


def test_waiting_ends_with_the_value_the_deadline_or_abort(ends: tuple[Control, Control]) -> None:
    judge, runner = ends
    assert not runner.wait(Control.GO, 1, 0.01)
    judge.put(Control.GO, 2)
    assert runner.wait(Control.GO, 1, 0.0)
    judge.put(Control.ABORT, 1)
    began = time.monotonic()
    assert not runner.wait(Control.GO, 3, 60.0)
    assert time.monotonic() - began < 30
    assert runner.wait(Control.GO, 2, 60.0)


def test_the_barrier_of_weaker_machines_lets_values_through(
    ends: tuple[Control, Control], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cuda_l1.evaluator.guest.control._ORDERED", False)
    judge, runner = ends
    for value in range(1, 4):
        judge.put(Control.GO, value)
        assert runner.get(Control.GO) == value


OTHER_PROCESS = """
import sys
from cuda_l1.evaluator.guest.control import Control
control = Control.attach(int(sys.argv[1]), int(sys.argv[2]))
for call in range(1, 101):
    assert control.wait(Control.GO, call, 30)
    control.put(Control.DONE, call)
"""


def test_a_hundred_calls_between_two_processes() -> None:
    """Both spin: on one core each waits for the other's share of it to end."""
    judge = Control.create()
    command = [sys.executable, "-c", OTHER_PROCESS, *map(str, judge.fds)]
    with subprocess.Popen(command, pass_fds=judge.fds) as runner:
        for call in range(1, 101):
            judge.put(Control.GO, call)
            assert judge.wait(Control.DONE, call, 30)
        assert runner.wait(30) == 0
    judge.close()


# --- the gate's protocol, on the stand-in driver


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    return fake_libcuda.build(tmp_path_factory.mktemp("gate"))


@pytest.fixture
def driver(library: str) -> Iterator[Driver]:
    made = Driver(library=library)
    yield made
    made.synchronize()


def fake_int(library: str, name: str) -> ctypes.c_int:
    return ctypes.c_int.in_dll(ctypes.CDLL(library), name)


def test_a_gate_holds_until_the_judge_opens_it(driver: Driver, ends: tuple[Control, Control]) -> None:
    judge, runner = ends
    gate = Gate(driver, runner)
    gate.shut(5, 0, limit_ns=60_000_000_000)
    gate.finish(5, 0)
    assert judge.wait(Control.GATE_RESIDENT, 5, 30)
    assert gate.resident(5) and not gate.resident(6)
    finished = threading.Event()

    def wait() -> None:
        driver.synchronize()
        finished.set()

    waiter = threading.Thread(target=wait)
    waiter.start()
    assert not finished.wait(0.05)
    assert judge.get(Control.FINISHED) == 0
    open_gate(judge, 5)
    assert judge.wait(Control.FINISHED, 5, 30)
    waiter.join(30)
    assert finished.is_set()
    assert not gate.expired(5)
    assert gate.device_us() >= 0
    gate.close()


def test_a_gate_that_nobody_opens_expires(driver: Driver, ends: tuple[Control, Control]) -> None:
    _, runner = ends
    gate = Gate(driver, runner)
    gate.shut(1, 0, limit_ns=1_000_000)
    driver.synchronize()
    assert gate.expired(1)
    gate.close()


def test_the_grid_fills_every_thread_slot(driver: Driver, ends: tuple[Control, Control], library: str) -> None:
    judge, runner = ends
    gate = Gate(driver, runner)
    open_gate(judge, 1)
    gate.shut(1, 0xBEEF)
    driver.synchronize()
    assert fake_int(library, "fake_last_grid").value * fake_int(library, "fake_last_block").value == 132 * 2048
    assert ctypes.c_void_p.in_dll(ctypes.CDLL(library), "fake_last_stream").value == 0xBEEF
    gate.close()


def test_a_device_that_cannot_be_filled_is_an_error(
    driver: Driver, ends: tuple[Control, Control], library: str
) -> None:
    blocks = fake_int(library, "fake_blocks_per_sm")
    blocks.value = 1
    try:
        with pytest.raises(GateError, match="1 blocks of 1024 threads in 2048 slots"):
            Gate(driver, ends[1])
    finally:
        blocks.value = 2


def test_sequences_only_go_up(driver: Driver, ends: tuple[Control, Control]) -> None:
    judge, runner = ends
    open_gate(judge, 9)
    gate = Gate(driver, runner)
    gate.shut(9, 0)
    driver.synchronize()
    for stale in (9, 3):
        with pytest.raises(ValueError, match="only go up"):
            gate.shut(stale, 0)
    gate.close()


def test_the_judges_page_is_registered_for_reading_only_when_sealed(
    driver: Driver, ends: tuple[Control, Control], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, bool]] = []
    register = driver.register_host

    def spy(address: int, nbytes: int, *, read_only: bool = False) -> int:
        asked.append((address, read_only))
        return register(address, nbytes, read_only=read_only)

    monkeypatch.setattr(driver, "register_host", spy)
    judge, runner = ends
    for end, sealed in ((runner, True), (judge, False)):
        asked.clear()
        Gate(driver, end).close()
        assert asked == [(end.address("judge"), sealed), (end.address("runner"), False)]


def test_the_timer_step_is_read_back(driver: Driver, ends: tuple[Control, Control]) -> None:
    gate = Gate(driver, ends[1])
    assert gate.timer_step_ns(0) == 32
    gate.close()


def test_the_driver_assembles_the_shipped_ptx(driver: Driver, ends: tuple[Control, Control], library: str) -> None:
    destroyed = fake_int(library, "fake_links_destroyed").value
    image = assemble_gate(driver)
    assert image == b"\x7fELF linked\0here\0"
    assert fake_int(library, "fake_links_destroyed").value == destroyed + 1
    Gate(driver, ends[1], image=image).close()
    with pytest.raises(CudaError, match=r"cuModuleLoadData.*\(200\)"):
        Gate(driver, ends[1], image=b"no cubin")


def test_where_the_driver_refuses_the_ptx_nvrtc_compiles_the_source(
    driver: Driver, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[tuple[str, tuple[int, int]]] = []

    def compile_instead(source: str, capability: tuple[int, int]) -> bytes:
        compiled.append((source, capability))
        return b"\x7fELF by NVRTC"

    monkeypatch.setattr(gate_module, "compile_cubin", compile_instead)
    refuse = fake_int(library, "fake_refuse_ptx")
    refuse.value = 1
    try:
        assert assemble_gate(driver) == b"\x7fELF by NVRTC"
    finally:
        refuse.value = 0
    assert compiled == [((GUEST / "gate.cu").read_text(), (9, 0))]


def test_without_nvrtc_one_clear_error() -> None:
    with pytest.raises(NvrtcError, match="no libnvrtc found"):
        compile_cubin("", (9, 0), libraries=["/nonexistent/libnvrtc.so"])


# --- the shipped PTX


def without_comments(ptx: str) -> list[str]:
    return [line for line in ptx.splitlines() if not line.startswith("//")]


def release(text: str) -> str | None:
    found = re.search(r"release (\d+\.\d+)", text)
    return found and found[1]


def test_the_ptx_is_what_nvcc_makes_of_the_source(tmp_path: Path) -> None:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("needs nvcc")
    shipped = (GUEST / "gate.ptx").read_text()
    installed = release(subprocess.check_output([nvcc, "--version"], text=True))
    if installed != release(shipped):
        pytest.skip(f"gate.ptx was made by nvcc {release(shipped)}; {installed} may write it differently")
    made = tmp_path / "gate.ptx"
    subprocess.run([nvcc, "-ptx", "-arch=compute_75", str(GUEST / "gate.cu"), "-o", str(made)], check=True)
    assert without_comments(made.read_text()) == without_comments(shipped)


def test_the_ptx_asks_for_no_more_than_turing() -> None:
    shipped = (GUEST / "gate.ptx").read_text()
    assert ".target sm_75" in shipped
    assert re.findall(r"\.visible \.entry (\w+)\(", shipped) == ["gate", "finish", "timer_step"]


# --- on a GPU


@pytest.fixture
def real(ends: tuple[Control, Control]) -> Iterator[tuple[Driver, Control, Gate]]:
    torch.cuda.init()
    made = Driver()
    judge, runner = ends
    gate = Gate(made, runner)
    yield made, judge, gate
    gate.close()


@pytest.mark.gpu
def test_nothing_runs_behind_or_beside_a_shut_gate(real: tuple[Driver, Control, Gate]) -> None:
    driver, judge, gate = real
    values = torch.randn(1 << 20, device="cuda")
    side = torch.cuda.Stream()
    torch.relu(values)  # loads the kernel: loading may wait for the device
    torch.cuda.synchronize()
    gate.shut(1, driver.current_stream(), limit_ns=10_000_000_000)
    assert judge.wait(Control.GATE_RESIDENT, 1, 5)
    behind, beside = torch.cuda.Event(), torch.cuda.Event()
    torch.relu(values)
    behind.record()
    with torch.cuda.stream(side):
        torch.relu(values)
        beside.record()
    time.sleep(0.02)
    assert not behind.query()
    assert not beside.query()
    open_gate(judge, 1)
    driver.synchronize()
    assert behind.query() and beside.query()
    assert not gate.expired(1)


FORGER = """
import ctypes, sys, torch
from cuda_l1.evaluator.guest.control import Control
from cuda_l1.evaluator.guest.cuda_driver import CudaError, Driver
from cuda_l1.evaluator.guest.gate import assemble_gate
torch.cuda.init()
driver = Driver()
control = Control.attach(int(sys.argv[1]), int(sys.argv[2]))
for page in ("runner", "judge"):
    try:
        pointer = driver.register_host(control.address(page), Control.PAGE_BYTES, read_only=page == "judge")
        words = [ctypes.c_uint64(pointer + 8 * place) for place in range(2)]
        driver.kernel(driver.load_module(assemble_gate(driver)), "finish", [*words, ctypes.c_int(1)]).launch(1, 1, 0)
        driver.synchronize()
        print(page, "written")
    except CudaError as refused:
        print(page, refused)
"""


@pytest.mark.gpu
def test_a_kernel_in_the_runner_cannot_write_the_judges_page() -> None:
    judge = Control.create()
    command = [sys.executable, "-c", FORGER, *map(str, judge.fds)]
    said = subprocess.run(command, pass_fds=judge.fds, capture_output=True, text=True, timeout=120)
    assert "runner written\njudge cu" in said.stdout, said
    written = {side: ctypes.string_at(judge.address(side), 64).strip(b"\0") for side in ("judge", "runner")}
    assert written["runner"] and not written["judge"]
    judge.close()


@pytest.mark.gpu
def test_device_time_from_release_to_finish_is_that_of_events(real: tuple[Driver, Control, Gate]) -> None:
    driver, judge, gate = real
    left, right = (torch.randn(4096, 4096, device="cuda") for _ in range(2))
    start, end = driver.event(), driver.event()
    stream = driver.current_stream()
    for sequence in range(1, 4):
        gate.shut(sequence, stream)
        start.record(stream)
        left @ right
        end.record(stream)
        gate.finish(sequence, stream)
        assert judge.wait(Control.GATE_RESIDENT, sequence, 5)
        assert judge.get(Control.FINISHED) == sequence - 1
        open_gate(judge, sequence)
        assert judge.wait(Control.FINISHED, sequence, 5)
        driver.synchronize_stream(stream)
    assert gate.device_us() == pytest.approx(end.elapsed_us(start), rel=0.1, abs=20)


@pytest.mark.gpu
def test_an_unopened_gate_leaves_at_its_limit(real: tuple[Driver, Control, Gate]) -> None:
    driver, _, gate = real
    gate.shut(1, 0, limit_ns=2_000_000)
    driver.synchronize()
    assert gate.expired(1) and gate.resident(1)


@pytest.mark.gpu
def test_the_devices_clock_ticks_in_known_steps(real: tuple[Driver, Control, Gate]) -> None:
    _, _, gate = real
    assert 1 <= gate.timer_step_ns(0) <= 2_000


@pytest.mark.gpu
def test_an_image_from_nvrtc_works_as_well(ends: tuple[Control, Control]) -> None:
    torch.cuda.init()
    driver = Driver()
    judge, runner = ends
    cubin = compile_cubin((GUEST / "gate.cu").read_text(), driver.attributes.compute_capability)
    gate = Gate(driver, runner, image=cubin)
    gate.shut(1, 0)
    assert judge.wait(Control.GATE_RESIDENT, 1, 5)
    open_gate(judge, 1)
    driver.synchronize()
    assert not gate.expired(1)
    gate.close()
