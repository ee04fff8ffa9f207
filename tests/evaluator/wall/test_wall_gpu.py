"""Guests on a GPU: what CUDA, Triton and compilers need works on every rung; a guest without a device sees none."""

from __future__ import annotations

import shutil

import pytest
from wall_support import LIMITS, ROLES

from cuda_l1.evaluator.environment import device_variables, find_device, guest_environment
from cuda_l1.evaluator.gpus import visible_gpus
from cuda_l1.evaluator.processes import Template

pytestmark = pytest.mark.gpu
ROOM = LIMITS.model_copy(update={"memory_bytes": 64 << 30, "work_bytes": 2 << 30, "processes": 1000})


@pytest.fixture(params=["R0", "R1", "R2"])
def gpu_template(request, templates):
    templates(request.param)  # skips where refused
    variables = guest_environment() | device_variables(find_device("cuda"))
    with Template.start(variables, rung=request.param, device="cuda", role_folder=ROLES) as template:
        yield template


def test_a_guest_computes_on_the_gpu(gpu_template, ask):
    answer = ask(
        gpu_template,
        """
        import time, torch
        start = time.perf_counter()
        x = torch.ones(256, 256, device="cuda")
        total = float((x @ x).sum())
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = x * 2
        graph.replay()
        free, _ = torch.cuda.mem_get_info()
        channel.send({"total": total, "y": float(y.sum()), "name": torch.cuda.get_device_name(), "free": free > 0})
        """,
        limits=ROOM,
    )
    assert answer == {"total": 256.0**3, "y": 2 * 256.0**2, "name": find_device("cuda").name, "free": True}


def test_torch_compile_uses_triton(gpu_template, ask):
    pytest.importorskip("triton")
    answer = ask(
        gpu_template,
        """
        import os, torch
        f = torch.compile(lambda x: torch.relu(x) * 2 + x.sin(), fullgraph=True)
        x = torch.randn(1000, device="cuda")
        right = torch.allclose(f(x), torch.relu(x) * 2 + x.sin(), atol=1e-5)
        channel.send({"right": right, "cached": os.listdir()})
        """,
        timeout_s=120,
        limits=ROOM,
    )
    assert answer["right"] and "inductor" in answer["cached"]


@pytest.mark.skipif(not shutil.which("nvcc"), reason="nvcc missing: install the CUDA toolkit")
def test_nvcc_compiles_and_the_result_runs(gpu_template, ask):
    answer = ask(
        gpu_template,
        """
        import ctypes, os, subprocess, torch
        open("k.cu", "w").write('''
        __global__ void fill(float* x) { x[threadIdx.x] = 7.0f; }
        extern "C" int run(float* x) { fill<<<1, 32>>>(x); return cudaDeviceSynchronize(); }
        ''')
        arch = "-arch=sm_%d%d" % torch.cuda.get_device_capability()
        command = ["nvcc", arch, "-shared", "-Xcompiler", "-fPIC", "k.cu", "-o", "k.so"]
        done = subprocess.run(command, capture_output=True, text=True)
        x = torch.zeros(32, device="cuda")
        code = ctypes.CDLL(os.path.abspath("k.so")).run(ctypes.c_void_p(x.data_ptr())) if done.returncode == 0 else -1
        channel.send({"stderr": done.stderr, "code": code, "sum": float(x.sum())})
        """,
        limits=ROOM,
    )
    assert answer == {"stderr": "", "code": 0, "sum": 224.0}


def test_a_guest_without_a_device_sees_none(gpu_template, ask):
    answer = ask(gpu_template, "import torch; channel.send({'seen': torch.cuda.is_available()})", device="cpu")
    assert answer == {"seen": False}
    if gpu_template.rung != "R0":
        source = """
        try:
            open("/dev/nvidiactl")
            channel.send({"opened": True})
        except OSError:
            channel.send({"opened": False})
        """
        assert ask(gpu_template, source, device="cpu") == {"opened": False}


def test_memory_of_the_device_is_no_host_memory(gpu_template, run):
    """The watcher must not count what the driver maps."""
    guest = run(
        gpu_template,
        """
        import torch
        held = torch.empty(4 << 30, dtype=torch.uint8, device="cuda")
        torch.cuda.synchronize()
        channel.send({})
        channel.receive()
        """,
        ROOM.model_copy(update={"memory_bytes": 3 << 30}),
    )
    guest.channel.receive(60)
    with pytest.raises(TimeoutError):
        guest.wait(0.5)


def test_the_driver_names_the_gpu_like_torch_does(gpu_template, ask):
    gpu = visible_gpus()[0]
    answer = ask(
        gpu_template,
        "import torch; p = torch.cuda.get_device_properties(0);"
        "channel.send({'name': p.name, 'major': p.major, 'minor': p.minor, 'uuid': str(p.uuid)})",
        limits=ROOM,
    )
    assert (answer["name"], answer["major"], answer["minor"]) == (gpu.name, *gpu.capability)
    assert gpu.uuid == f"GPU-{answer['uuid']}"
    assert gpu.driver.count(".") >= 1 and gpu.memory_bytes > 1 << 30
