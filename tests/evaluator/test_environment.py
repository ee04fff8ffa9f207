"""Facts of the machine without torch, and what of our environment a guest may see."""

from __future__ import annotations

import os

import pytest
from pydantic import ValidationError

from cuda_l1.config import EvaluatorSettings
from cuda_l1.errors import CudaL1Error, InfrastructureError, UsageError
from cuda_l1.evaluator import environment, gpus
from cuda_l1.evaluator.environment import (
    Device,
    cache_folder,
    cpu_name,
    device_environment,
    device_variables,
    find_device,
    guest_environment,
    lane_text,
    stay_on,
    usable_cores,
    work_environment,
)
from cuda_l1.evaluator.gpus import Gpu, visible_gpus

H100 = Gpu(0, "NVIDIA H100", "GPU-aaaa", (9, 0), 80 << 30, "580.1")
A100 = Gpu(1, "NVIDIA A100", "GPU-bbbb", (8, 0), 40 << 30, "580.1")


@pytest.fixture
def two_gpus(monkeypatch):
    monkeypatch.setattr(gpus, "_all_gpus", lambda: [H100, A100])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(gpus, "_all_gpus", list)


@pytest.mark.parametrize(
    ("cores", "text"), [((), ""), ((3,), "3"), ((0, 1), "0-1"), ((5, 0, 2, 1, 7, 8), "0-2,5,7-8"), ((1, 1), "1")]
)
def test_lane_text(cores, text):
    assert lane_text(cores) == text


def test_only_the_allow_list_passes():
    source = {"PATH": "/bin", "OPENAI_API_KEY": "sk", "HF_TOKEN": "t", "HOME": "/home/me", "LD_PRELOAD": "x.so"}
    allowed = guest_environment(source, TORCH_CUDA_ARCH_LIST="9.0")
    assert allowed == {
        "PATH": "/bin",
        "LANG": "C.UTF-8",
        "OPENBLAS_NUM_THREADS": "1",
        "TORCH_CUDA_ARCH_LIST": "9.0",
    }
    assert guest_environment({"OPENBLAS_NUM_THREADS": "8"})["OPENBLAS_NUM_THREADS"] == "1"
    assert guest_environment({})["PATH"]


def test_every_place_that_tools_write_to_is_below_the_work_directory():
    places = work_environment("/w")
    assert all(value.startswith("/w") for name, value in places.items() if name != "USER")
    assert {"HOME", "TMPDIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR"} <= places.keys()


@pytest.mark.parametrize("text", ["", "gpu", "cpu:0", "cuda:x", "cuda:-1", "auto:1"])
def test_a_device_that_is_none_is_a_usage_error(text, two_gpus):
    with pytest.raises(UsageError, match="expected auto, cpu, cuda or cuda:N"):
        find_device(text)


def test_devices_by_name(two_gpus):
    assert find_device("auto").gpu == find_device("cuda").gpu == find_device("cuda:0").gpu == H100
    assert find_device("cuda:1") == Device("cuda", "NVIDIA A100", A100)
    assert find_device("cpu") == Device("cpu", cpu_name())
    with pytest.raises(CudaL1Error, match="--device cuda:2: this machine shows 2 NVIDIA GPUs"):
        find_device("cuda:2")


def test_a_machine_without_a_gpu(no_gpu):
    assert find_device("auto").kind == "cpu"
    with pytest.raises(InfrastructureError, match="no NVIDIA GPU"):
        find_device("cuda")


@pytest.mark.parametrize(
    ("variable", "names"),
    [
        ("1,0", ["NVIDIA A100", "NVIDIA H100"]),
        ("GPU-bb", ["NVIDIA A100"]),
        ("0,7,1", ["NVIDIA H100"]),
        ("", []),
        ("-1", []),
    ],
)
def test_cuda_visible_devices(two_gpus, variable, names):
    seen = visible_gpus({"CUDA_VISIBLE_DEVICES": variable})
    assert [gpu.name for gpu in seen] == names
    assert [gpu.index for gpu in seen] == list(range(len(names)))


def test_guests_see_one_gpu_or_none():
    assert device_variables(Device("cuda", A100.name, A100)) == {
        "CUDA_VISIBLE_DEVICES": "GPU-bbbb",
        "TORCH_CUDA_ARCH_LIST": "8.0",
    }
    assert device_variables(Device("cpu", "x")) == {"CUDA_VISIBLE_DEVICES": ""}


def test_the_environment_of_an_evaluation():
    versions = {"torch_version": "2.13.0", "cuda_version": "13.0", "python": "3.12.1"}
    on_cpu = device_environment(Device("cpu", "x"), (0, 1), rung="R1", **versions)
    assert (on_cpu.lane, on_cpu.cuda, on_cpu.driver) == ("0-1", None, None)
    on_gpu = device_environment(Device("cuda", "y", H100), (0, 1), rung="R2", **versions)
    assert (on_gpu.lane, on_gpu.cuda, on_gpu.driver) == ("gpu", "13.0", "580.1")
    other_lane = device_environment(Device("cpu", "x"), (0,), rung="R1", **versions)
    assert other_lane.key != on_cpu.key


def test_lanes_that_stand_for_each_other_are_one_place():
    versions = {"torch_version": "2.13.0", "cuda_version": None, "python": "3.12.1", "rung": "R1"}
    places = [device_environment(Device("cpu", "x"), lane, interchangeable=True, **versions) for lane in [(0,), (1,)]]
    assert places[0].lane == "1-core" and places[0].key == places[1].key
    two = device_environment(Device("cpu", "x"), (0, 1), interchangeable=True, **versions)
    by_number = [device_environment(Device("cpu", "x"), lane, **versions) for lane in [(0,), (1,), (0, 1)]]
    assert len({each.key for each in (places[0], two, *by_number)}) == 5
    with pytest.raises(ValidationError, match="name its cores"):
        EvaluatorSettings(interchangeable=True)


def test_a_core_that_is_not_there_is_one_clear_line():
    before = os.sched_getaffinity(0)
    with pytest.raises(UsageError, match=r"lane 100000-100001: some of these cores are not there"):
        stay_on((100000, 100001))
    assert os.sched_getaffinity(0) == before
    stay_on(before)


def test_this_machine():
    assert cpu_name()
    assert set(usable_cores()) == os.sched_getaffinity(0)


def test_the_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "cuda-l1"
    assert cache_folder("/elsewhere").as_posix() == "/elsewhere"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(environment.Path, "home", lambda: tmp_path / "me")
    assert cache_folder() == tmp_path / "me" / ".cache" / "cuda-l1"
