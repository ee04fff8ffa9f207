"""Where rewards are measured: on the devices that a recipe names, all of one kind."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Self

import pytest

import cuda_l1.evaluator
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
        self.environment = Environment(device=kind, device_name=name, lane="gpu", rung="R2", torch="2.13.0")

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
