"""What the judge computes of a task on a GPU is in one place: no tensor of the host meets one of the device's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from evaluator_support import LINEAR, text
from second_device import OnDevice, second_device

from cuda_l1.evaluator.guest import check, plans, randomness, tensors, timed_outputs
from cuda_l1.evaluator.guest.audit import audit
from cuda_l1.evaluator.guest.driving import Kept
from cuda_l1.evaluator.guest.reference import Answer, Reference
from cuda_l1.tasks import builtin

pytestmark = pytest.mark.filterwarnings("ignore:CUDA is not available or torch_xla")
"""Autocast to a GPU is none here."""

NORMALISED = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(4, 8, 3)
            self.norm = nn.BatchNorm2d(8)

        def forward(self, x):
            return F.relu(self.norm(self.conv(x))), x.argmax(1)

    def get_inputs():
        return [torch.randn(2, 4, 10, 10)]
"""
"""State that a call changes, and an answer of integers."""

BUILTIN = (
    "causal_attention",
    "embedding_bag",
    "int8_weight_linear",
    "moe_routing",
    "quantize_dequantize",
    "token_cross_entropy",
)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    was = tensors.plain_tensor_problem
    monkeypatch.setattr(tensors, "plain_tensor_problem", lambda t: None if isinstance(t, OnDevice) else was(t))
    monkeypatch.setattr(Reference, "_note_sharing", lambda self, result, args: None)  # it compares addresses
    with torch.no_grad(), second_device(monkeypatch):
        yield


class Echo(check.Checker):
    """Puts all trials to a candidate that answers as the reference does."""

    def _call(self, case: Any, exchanged: Any = None, **succession: bool) -> Answer:
        return self.reference.call(case.inputs, case.weights, "shipped", case.seed)

    def _compare_inputs(self, case: Any) -> None:
        pass

    def _put_row(self) -> None:
        pass


def session_of(reference: Reference) -> SimpleNamespace:
    found = SimpleNamespace(weights=reference.public, mapped=True, moving={}, fixed=frozenset(), unpartnered=set())
    found.show = found.refill = found.set_weights = found.lay_weights = lambda *args, **options: {}
    found.fits, found.guessed, found.seen_inputs = lambda inputs: True, False, list
    return found


def source_of(name: str) -> str:
    bodies = {"linear": LINEAR, "normalised": NORMALISED}
    return text(bodies[name]) if name in bodies else Path(builtin.__path__[0], f"{name}.py").read_text("utf-8")


def test_tensors_of_two_places_do_not_meet(device):
    here, there = torch.ones(3), torch.ones(3, device="cuda")
    assert there.is_cuda and (there * 2.0).device.type == "cuda" and there.sum().item() == 3.0
    assert (there.cpu() + here).tolist() == [2.0, 2.0, 2.0] and there[here > 0].is_cuda
    for meet in (lambda: here + there, lambda: torch.where(here > 0, there, 0.0), lambda: here[there > 0]):
        with pytest.raises(RuntimeError, match="same device"):
            meet()


@pytest.mark.parametrize("name", ["linear", "normalised", *BUILTIN])
def test_all_trials_of_a_task_are_made_and_judged_where_it_is(device, monkeypatch, tmp_path, name):
    monkeypatch.setattr(check, "compare_held", lambda *args: None)
    path = tmp_path / "task.py"
    path.write_text(source_of(name))
    reference = Reference(str(path), "cuda")
    facts = audit(reference)
    found = Echo(reference, facts, session_of(reference)).run(mapped=True, aligned=True)
    assert found.failure is None and found.precision_class in ("fp32", "exact")
    assert {"base", plans.HELD.kind} <= {trial["kind"] for trial in found.trials}


def test_outputs_of_timed_calls_are_judged_where_they_are(device, tmp_path):
    path = tmp_path / "task.py"
    path.write_text(text(LINEAR))
    reference = Reference(str(path), "cuda")
    facts = audit(reference)
    inputs = reference.draw()
    answer = reference.call(inputs, reference.public, "shipped").tensors
    for given, wrong in ((answer, False), ([t + 1.0 for t in answer], True)):
        kept = [Kept(inputs, given, {})]
        session = SimpleNamespace(kept=kept, quickest={}, exchanged=[], back_to_back=[], strange={}, changed_input=None)
        session.weights, session.timed_form, session.reused, session.kept_seen = reference.public, [], False, 1
        session.compared, session.unpartnered = set(), set()
        found = timed_outputs.verify_timed(reference, facts, session, "fp32")
        assert found["compared"] == 1 and bool(found["wrong"]) == wrong


def test_draws_of_random_tasks_are_compared_where_they_are(device):
    drawn = torch.randn(randomness.SEEDS, 8, 64, device="cuda")
    repeats = [randomness.repeats(value) for value in drawn]
    randomness.compare_repeats("output 0", torch.stack(repeats), torch.stack(repeats))
    randomness.compare_sums("output 0", drawn, drawn)
