"""Where rewards are measured: on the devices that a recipe names, all of one kind."""

from __future__ import annotations

import os
import threading
from types import SimpleNamespace
from typing import Any, Self

import pytest

import cuda_l1.evaluator
from cuda_l1.api import lanes
from cuda_l1.api.training import evaluators_of, resolved
from cuda_l1.config import EvaluatorSettings
from cuda_l1.errors import InfrastructureError, UsageError
from cuda_l1.training.recipe import recipe_from
from cuda_l1.training.sections import EvaluationSection
from cuda_l1.types import Environment

NAMES = {"cuda:6": "H100", "cuda:7": "H100", "cuda:5": "A100"}


class FakeEvaluator:
    def __init__(self, settings: EvaluatorSettings) -> None:
        self.settings = settings
        kind: Any = "cuda" if settings.device in NAMES else "cpu"
        name = NAMES.get(settings.device, "test")
        lane = "1-core" if settings.interchangeable else "gpu"
        self.environment = Environment(device=kind, device_name=name, lane=lane, rung="R2", torch="2.13.0")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_l1.evaluator, "Evaluator", FakeEvaluator)


def opened(device: str, **more: Any) -> list[str]:
    with evaluators_of(EvaluationSection(device=device, **more)) as found:
        return [each.settings.device for each in found]


def test_they_take_turns_on_the_devices_that_are_named() -> None:
    assert opened("cuda:6, cuda:7", at_once=5) == ["cuda:6", "cuda:7", "cuda:6", "cuda:7", "cuda:6"]
    assert opened("cpu", at_once=3) == ["cpu"] * 3
    assert len(opened("cpu")) >= 1


def test_figures_of_two_kinds_are_never_compared() -> None:
    with pytest.raises(UsageError, match=r"evaluation.device cuda:5,cuda:6: these differ \(A100, H100\)"):
        opened("cuda:5,cuda:6", at_once=2)


def test_several_are_resolved_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(text: str, *, name: str) -> Any:
        if text not in NAMES:
            raise InfrastructureError(f"{name} {text}: this machine shows 8 NVIDIA GPUs")
        return SimpleNamespace(kind="cuda")

    monkeypatch.setattr("cuda_l1.evaluator.environment.find_device", found)

    def named(device: str) -> str:
        values = {"run_dir": "x", "evaluation": {"device": device}, "run": {"device": "cpu"}}
        return resolved(recipe_from(values, "test")).evaluation.device

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(NAMES, "cpu", "test")
        assert named("cuda:6, cuda:7") == "cuda:6,cuda:7"
        with pytest.raises(InfrastructureError, match=r"evaluation.device cuda:9"):
            named("cuda:6,cuda:9")


CPU = EvaluationSection(device="cpu", cores=2)


def lanes_opened(section: EvaluationSection, threads: int) -> list[tuple[int, ...] | None]:
    with evaluators_of(section, threads=threads) as found:
        assert all(each.settings.interchangeable for each in found)
        return [each.settings.lane for each in found]


def test_each_evaluator_has_a_lane_of_its_own_beside_the_policys_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "usable_cores", lambda: (0, 1, 2, 4, 5, 6, 7))
    monkeypatch.setattr(lanes, "_move", lambda cores: None)
    monkeypatch.setattr(lanes, "available_bytes", lambda: 1 << 50)
    assert lanes_opened(CPU, threads=1) == [(1, 2), (4, 5), (6, 7)]
    assert lanes_opened(CPU, threads=2) == [(2, 4), (5, 6)]
    assert lanes_opened(CPU, threads=0) == [(0, 1), (2, 4), (5, 6)]
    assert lanes_opened(CPU.model_copy(update={"at_once": 1}), threads=1) == [(1, 2)]
    assert lanes_opened(CPU.model_copy(update={"cores": 1, "at_once": 99}), threads=5) == [(6,), (7,)]
    monkeypatch.setattr(lanes, "available_bytes", lambda: 0)
    assert lanes_opened(CPU, threads=1) == [(1, 2)]
    with pytest.raises(UsageError, match=r"^evaluation.cores 2: this process may use 7 cores, and run.threads = 6 of"):
        lanes_opened(CPU, threads=6)


def test_meanwhile_this_process_keeps_off_the_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[set[int]] = []
    monkeypatch.setattr(lanes, "usable_cores", lambda: (0, 1, 2))
    monkeypatch.setattr(lanes, "_move", asked.append)
    with pytest.raises(RuntimeError), lanes.kept_off([(1,), (2,)]):
        raise RuntimeError
    assert asked == [{0}, {0, 1, 2}]
    with lanes.kept_off([(0, 1), (2,)]), lanes.kept_off([]):
        assert len(asked) == 2, "there is no other core, or no lane"


@pytest.mark.alone(cores=2)
def test_every_thread_is_moved_and_comes_back() -> None:
    first, *others = sorted(os.sched_getaffinity(0))
    leave, seen, is_ready = threading.Event(), [], threading.Event()

    def wait() -> None:
        is_ready.set()
        leave.wait(10.0)
        seen.append(os.sched_getaffinity(0))

    thread = threading.Thread(target=wait)
    thread.start()
    assert is_ready.wait(10.0)
    with lanes.kept_off([tuple(others)]):
        assert os.sched_getaffinity(0) == {first}
        leave.set()
        thread.join(10.0)
    assert seen == [{first}] and os.sched_getaffinity(0) == {first, *others}


def test_a_gpu_has_no_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuda_l1.evaluator.environment.find_device", lambda text, name: SimpleNamespace(kind="cuda"))
    values = {"run_dir": "x", "evaluation": {"device": "cuda", "cores": 1}, "run": {"device": "cpu"}}
    with pytest.raises(UsageError, match=r"^evaluation.cores 1: cuda has no lanes of cores; leave it out$"):
        resolved(recipe_from(values, "test"))
