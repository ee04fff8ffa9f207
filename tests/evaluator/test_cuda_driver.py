"""The driver by ctypes: against a stand-in library, against cuda.h where it lies, and on a GPU where there is one."""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import fake_libcuda
import pytest
import torch

from cuda_l1.evaluator.guest import cuda_calls, device_memory
from cuda_l1.evaluator.guest.cuda_driver import CudaError, Driver

MIB = 1 << 20


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    return fake_libcuda.build(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def driver(library: str) -> Iterator[Driver]:
    made = Driver(1, library=library)
    yield made
    made.synchronize()


def fake_int(library: str, name: str) -> int:
    return ctypes.c_int.in_dll(ctypes.CDLL(library), name).value


def access_of(address: int) -> str:
    """The permissions of the mapping that begins at `address`, as in /proc/self/maps."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return next(line.split()[1] for line in lines if int(line.partition("-")[0], 16) == address)


def test_without_a_driver_one_clear_error() -> None:
    with pytest.raises(CudaError, match=r"no-such-libcuda.so: no usable NVIDIA driver"):
        Driver(library="no-such-libcuda.so")


def test_a_library_that_lacks_functions_is_no_driver() -> None:
    with pytest.raises(CudaError, match="no usable NVIDIA driver"):
        Driver(library="libc.so.6")


def test_an_absent_device_names_the_call(library: str) -> None:
    with pytest.raises(CudaError) as caught:
        Driver(7, library=library)
    assert (caught.value.name, caught.value.code) == ("cuDeviceGet", 101)


def test_what_the_driver_says_of_the_device(driver: Driver) -> None:
    assert driver.driver_version() == (12, 8)
    attributes = driver.attributes
    assert attributes.compute_capability == (9, 0)
    assert (attributes.sm_count, attributes.l2_bytes, attributes.max_threads_per_sm) == (132, 50 * MIB, 2048)


def test_memory_crosses_as_a_descriptor(driver: Driver) -> None:
    memory = driver.allocate(3 * MIB)
    assert (memory.nbytes, memory.mapped_bytes) == (3 * MIB, 4 * MIB)
    fd = memory.export_fd()
    other = driver.import_memory(fd, 3 * MIB)
    readable = driver.import_memory(fd, 3 * MIB, read_only=True)
    os.close(fd)
    assert len({memory.address, other.address, readable.address}) == 3
    ctypes.memset(other.address, 0xAB, 16)
    assert ctypes.string_at(memory.address, 17) == b"\xab" * 16 + b"\0"
    assert ctypes.string_at(readable.address, 16) == b"\xab" * 16
    assert (access_of(other.address), access_of(readable.address)) == ("rw-s", "r--s")


def test_close_gives_everything_back_once(driver: Driver, library: str) -> None:
    before = len(os.listdir("/proc/self/fd"))
    unmapped, released = fake_int(library, "fake_calls_to_unmap"), fake_int(library, "fake_calls_to_release")
    memory = driver.allocate(1)
    memory.close()
    memory.close()
    assert fake_int(library, "fake_calls_to_unmap") == unmapped + 1
    assert fake_int(library, "fake_calls_to_release") == released + 1
    assert len(os.listdir("/proc/self/fd")) == before


def test_memory_lives_as_long_as_a_view_of_it(driver: Driver, library: str) -> None:
    unmapped = fake_int(library, "fake_calls_to_unmap")
    view = device_memory._View(driver.allocate(100))
    gc.collect()
    assert fake_int(library, "fake_calls_to_unmap") == unmapped
    address, _ = view.__cuda_array_interface__["data"]
    assert access_of(address) == "rw-s"
    assert view.__cuda_array_interface__["shape"] == (100,)
    del view
    gc.collect()
    assert fake_int(library, "fake_calls_to_unmap") == unmapped + 1


def test_memory_that_does_not_fit_or_is_empty(driver: Driver) -> None:
    with pytest.raises(CudaError, match=r"^cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY: out of memory \(2\)$"):
        driver.allocate(1 << 41)
    with pytest.raises(ValueError, match="0 bytes"):
        driver.allocate(0)


def test_a_wrong_size_is_refused_and_leaves_nothing_behind(driver: Driver) -> None:
    memory = driver.allocate(2 * MIB)
    fd = memory.export_fd()
    before = len(os.listdir("/proc/self/fd"))
    for wrong, error in ((8 * MIB, CudaError), (0, ValueError)):
        with pytest.raises(error):
            driver.import_memory(fd, wrong)
    assert len(os.listdir("/proc/self/fd")) == before
    os.close(fd)


def test_a_descriptor_that_is_no_memory(driver: Driver) -> None:
    with pytest.raises(CudaError, match="cuMemImportFromShareableHandle"):
        driver.import_memory(10_000, MIB)


def test_host_memory_is_registered_portable_mapped_and_read_only_on_demand(driver: Driver, library: str) -> None:
    page = mmap.mmap(-1, mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    assert driver.register_host(address, mmap.PAGESIZE) == address
    assert fake_int(library, "fake_last_register_flags") == 1 | 2
    driver.register_host(address, mmap.PAGESIZE, read_only=True)
    assert fake_int(library, "fake_last_register_flags") == 1 | 2 | 8
    driver.unregister_host(address)


def test_set_and_copy_go_to_the_stream_named(driver: Driver, library: str) -> None:
    source, target = driver.allocate(MIB), driver.allocate(MIB)
    driver.memset_async(source.address, 7, 5, 0x1234)
    driver.memcpy_async(target.address, source.address, 4, 0x5678)
    assert ctypes.string_at(target.address, 5) == b"\7\7\7\7\0"
    assert ctypes.c_void_p.in_dll(ctypes.CDLL(library), "fake_last_stream").value == 0x5678


def test_events_tell_microseconds(driver: Driver) -> None:
    start, end = driver.event(), driver.event()
    with pytest.raises(CudaError, match="cuEventElapsedTime"):
        end.elapsed_us(start)
    began = time.monotonic_ns()
    start.record(0)
    time.sleep(0.01)
    end.record(0)
    end.synchronize()
    took_us = (time.monotonic_ns() - began) / 1e3
    assert 10_000 <= end.elapsed_us(start) <= took_us + 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="this torch has streams")
def test_a_torch_without_cuda_says_so(driver: Driver) -> None:
    with pytest.raises(RuntimeError, match=r"built without CUDA: there is no stream of cuda:1"):
        driver.current_stream()


# --- against NVIDIA's own header


def cuda_include() -> Path:
    roots = [*Path("/usr/local").glob("cuda*/include"), *Path(torch.__file__).parent.parent.glob("nvidia/*/include")]
    found = next((root for root in roots if (root / "cuda.h").exists()), None)
    if found is None:
        pytest.skip("needs cuda.h")
    return found


def test_functions_have_the_names_and_argument_counts_of_cuda_h() -> None:
    header = (cuda_include() / "cuda.h").read_text()
    prototypes = dict(re.findall(r"^CUresult CUDAAPI\s+(cu\w+)\(([^)]*)\);", header, re.MULTILINE))
    for name, arguments in cuda_calls._SIGNATURES.items():
        declared = prototypes[name.removesuffix("_v2")].strip()
        assert len(arguments) == (0 if declared in ("", "void") else declared.count(",") + 1), name
    current = dict(re.findall(r"^#define (cu\w+)\s+(?:__CUDA_API_PTSZ\()?(cu\w+?)\)?$", header, re.MULTILINE))
    for name in cuda_calls._SIGNATURES.keys() - {
        "cuEventElapsedTime"
    }:  # its second version needs a driver of CUDA 12.8
        plain = name.removesuffix("_v2")
        assert current.get(plain, plain) == name


def test_structures_lie_as_in_cuda_h(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or pytest.skip("needs a C compiler")
    source = tmp_path / "layout.c"
    places = ["CUmemAllocationProp, type", "CUmemAllocationProp, requestedHandleTypes"]
    places += ["CUmemAllocationProp, location.type", "CUmemAllocationProp, location.id"]
    places += ["CUmemAllocationProp, win32HandleMetaData", "CUmemAllocationProp, allocFlags"]
    places += ["CUmemAccessDesc, location.type", "CUmemAccessDesc, location.id", "CUmemAccessDesc, flags"]
    prints = "".join(f'printf("%zu ", offsetof({place}));' for place in places)
    sizes = 'printf("%zu %zu", sizeof(CUmemAllocationProp), sizeof(CUmemAccessDesc));'
    text = f"#include <cuda.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {{ {prints} {sizes} }}\n"
    source.write_text(text)
    program = str(tmp_path / "layout")
    subprocess.run([compiler, f"-I{cuda_include()}", str(source), "-o", program], check=True)
    theirs = [int(word) for word in subprocess.check_output([program]).split()]
    ours = [
        getattr(structure, field[0]).offset
        for structure in (device_memory.AllocationProp, device_memory.AccessDesc)
        for field in structure._fields_
    ]
    ours += [ctypes.sizeof(device_memory.AllocationProp), ctypes.sizeof(device_memory.AccessDesc)]
    assert ours == theirs


# --- on a GPU

OTHER_PROCESS = """
import sys, torch
from cuda_l1.evaluator.guest.cuda_driver import Driver
torch.cuda.init()
driver = Driver()
memory = driver.import_memory(int(sys.argv[1]), 1 << 20)
values = memory.tensor().view(torch.float32)
assert values.sum().item() == 3 * values.numel(), values
values.mul_(2)
driver.synchronize()
"""


@pytest.mark.gpu
def test_a_tensor_in_another_process() -> None:
    torch.cuda.init()
    driver = Driver()
    memory = driver.allocate(MIB)
    values = memory.tensor().view(torch.float32)
    values.fill_(3)
    driver.synchronize()
    fd = memory.export_fd()
    subprocess.run([sys.executable, "-c", OTHER_PROCESS, str(fd)], pass_fds=[fd], check=True)
    os.close(fd)
    assert values.device == torch.device("cuda", 0)
    assert torch.equal(values, torch.full_like(values, 6))


@pytest.mark.gpu
def test_a_read_only_mapping_can_be_read_and_a_closed_one_frees_its_memory() -> None:
    torch.cuda.init()
    driver = Driver()
    free_before, _ = torch.cuda.mem_get_info()
    memory = driver.allocate(256 * MIB)
    fd = memory.export_fd()
    readable = driver.import_memory(fd, 256 * MIB, read_only=True)
    os.close(fd)
    memory.tensor().fill_(5)
    assert int(readable.tensor()[-1]) == 5
    assert torch.cuda.mem_get_info()[0] <= free_before - 256 * MIB
    readable.close()
    memory.close()
    assert torch.cuda.mem_get_info()[0] >= free_before - 64 * MIB


@pytest.mark.gpu
def test_events_and_sets_on_torchs_stream_agree_with_torch() -> None:
    torch.cuda.init()
    driver = Driver()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        assert driver.current_stream() == stream.cuda_stream
        memory = driver.allocate(256 * MIB)
        ours, theirs = (driver.event(), driver.event()), [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        theirs[0].record()
        ours[0].record(driver.current_stream())
        for _ in range(50):
            driver.memset_async(memory.address, 9, memory.nbytes, driver.current_stream())
        ours[1].record(driver.current_stream())
        theirs[1].record()
        driver.synchronize_stream(driver.current_stream())
    assert int(memory.tensor().min()) == 9
    assert ours[1].elapsed_us(ours[0]) == pytest.approx(theirs[0].elapsed_time(theirs[1]) * 1e3, rel=0.2)
