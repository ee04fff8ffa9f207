"""What the judge computes of a task on a GPU is in one place, and seldom waited for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from evaluator_support import LINEAR, text
from second_device import OnDevice, second_device, waits

from cuda_l1.evaluator.guest import check, oracle, plans, random_tasks, tensors, timed_outputs, uncounted
from cuda_l1.evaluator.guest.audit import audit
from cuda_l1.evaluator.guest.driving import Kept
from cuda_l1.evaluator.guest.entropy import ENTROPY
from cuda_l1.evaluator.guest.form import Form
from cuda_l1.evaluator.guest.random_tasks import EvalMode, check_random
from cuda_l1.evaluator.guest.reference import Answer, Reference
from cuda_l1.tasks import builtin
from shares import in_turn, slow_unless_due

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

PATTERNED = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(24, 24)
            self.register_buffer("mask", (torch.rand(24, 24) < 0.5).float())
            self.register_buffer("bias", torch.zeros(16, 16).masked_fill(torch.rand(16, 16) < 0.3, -torch.inf))

        def forward(self, x, keep, scores, rectified, spectra, table, series):
            y = F.linear(x * keep, self.linear.weight * self.mask, self.linear.bias)
            shares = torch.softmax(scores.clamp(min=-1e4) + self.bias.clamp(min=-1e4), -1)
            flagged = torch.where(table[:, 3:] > 0.5, -table[:, :3], table[:, :3])
            return y, shares, rectified.sum(-1), spectra.abs(), flagged, series.cumsum(0)

    def get_inputs():
        table = torch.randn(64, 4)
        table[:, 3] = (torch.rand(64) < 0.1).float()
        return [
            torch.randn(8, 24),
            (torch.rand(8, 24) < 0.5).float(),
            torch.randn(16, 16).masked_fill(torch.rand(16, 16) < 0.3, -torch.inf),
            torch.relu(torch.randn(8, 64)),
            torch.randn(8, 64, dtype=torch.complex64),
            table,
            (torch.rand(64) < 0.5).float(),
        ]
"""
"""Masks and flags in all that they may be written in."""

RELU = """
    class Model(nn.Module):
        def forward(self, x):
            return F.relu(x)

    def get_inputs():
        return [torch.rand(128, 1024)]
"""
SUMS = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(64, 64)

        def forward(self, x, y):
            return self.linear(x) + y.sum(0), x.argmax(-1)

    def get_inputs():
        return [torch.randn(64, 64), torch.randn(64, 64)]
"""
"""Several small inputs, and answers of two dtypes."""

BUILTIN = (
    "causal_attention",
    "embedding_bag",
    "int8_weight_linear",
    "moe_routing",
    "quantize_dequantize",
    "token_cross_entropy",
)


DROPPED = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(32, 32)

        def forward(self, x):
            return F.dropout(self.linear(x), 0.5, self.training), CHOICE

    def get_inputs():
        return [torch.randn(16, 32)]
"""


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    was = tensors.plain_tensor_problem
    monkeypatch.setattr(tensors, "plain_tensor_problem", lambda t: None if isinstance(t, OnDevice) else was(t))
    monkeypatch.setattr(Reference, "_note_sharing", lambda self, result, args: None)  # it compares addresses
    with torch.no_grad(), second_device(monkeypatch):
        yield


@pytest.fixture
def judged(device: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], check.Checker]:
    """A checker for a task's text."""
    monkeypatch.setattr(check, "compare_held", lambda *args: None)
    monkeypatch.setattr(check.Checker, "_put_row", lambda self: None)
    monkeypatch.setattr(Form, "compare", lambda *args: None)

    def made(source: str) -> check.Checker:
        path = tmp_path / "task.py"
        path.write_text(source)
        reference = Reference(str(path), "cuda")
        return check.Checker(reference, audit(reference), Echo(reference))

    return made


class Echo:
    """A session with a candidate that answers as the reference does."""

    def __init__(self, reference: Reference) -> None:
        self.reference, self.weights, self.inputs = reference, reference.public, reference.draw()
        self.mapped, self.guessed = True, False
        self.moving: dict[str, Any] = {}
        self.fixed, self.unpartnered, self.compared = frozenset[str](), set[int](), set[plans.Plan]()
        self.kept: list[Kept] = []
        self.quickest: dict[str, Any] = {}
        self.exchanged, self.back_to_back, self.changed_input = [], [], None
        self.strange: dict[Any, Any] = {}
        self.timed_form, self.reused, self.kept_seen = [], False, 1

    def show(self, inputs: list[Any], **how: Any) -> None:
        self.inputs = inputs

    refill = show

    def fits(self, inputs: list[Any]) -> bool:
        return True

    def slots(self, tensors: list[torch.Tensor]) -> list[Any]:
        return []

    def seen_inputs(self) -> list[Any]:
        return self.inputs

    def set_weights(self, weights: Any) -> None:
        self.now = weights

    lay_weights = set_weights

    def ask(self, op: str, timeout_s: float, stage: str, **request: Any) -> None:
        pass

    def call(self, request: dict[str, Any]) -> SimpleNamespace:
        self.set_weights(getattr(self, "now", self.weights))
        self.answered = self.reference.call(self.inputs, self.now, "shipped", request["seed"])
        return SimpleNamespace(unpartnered=set())

    def answer(self, reply: Any, slots: Any) -> Answer:
        return self.answered


def source_of(name: str) -> str:
    bodies = {"linear": LINEAR, "normalised": NORMALISED, "patterned": PATTERNED, "relu": RELU, "sums": SUMS}
    return text(bodies[name]) if name in bodies else Path(builtin.__path__[0], f"{name}.py").read_text("utf-8")


def test_tensors_of_two_places_do_not_meet(device):
    here, there = torch.ones(3), torch.ones(3, device="cuda")
    assert there.is_cuda and (there * 2.0).device.type == "cuda" and there.sum().item() == 3.0
    assert (there.cpu() + here).tolist() == [2.0, 2.0, 2.0] and there[here > 0].is_cuda
    for meet in (lambda: here + there, lambda: torch.where(here > 0, there, 0.0), lambda: here[there > 0]):
        with pytest.raises(RuntimeError, match="same device"):
            meet()


@pytest.mark.parametrize(
    "name",
    [
        *["linear", "normalised", "patterned"],
        *[pytest.param(name, marks=slow_unless_due(n, 3, in_turn(3))) for n, name in enumerate(BUILTIN)],
    ],
)
def test_all_trials_of_a_task_are_made_and_judged_where_it_is(judged, name):
    checker = judged(source_of(name))
    found = checker.run(mapped=True, aligned=True)
    assert found.failure is None and found.precision_class in ("fp32", "exact")
    assert {"base", plans.HELD.kind} <= {trial["kind"] for trial in found.trials}
    uncounted.prepare(checker.reference, checker.session, checker.reference.draw())
    again = checker.again(found.precision_class, found.precision_class)
    assert again.failure is None and "timed" in {trial["kind"] for trial in again.trials}


@pytest.mark.parametrize(("name", "of_task", "of_trial"), [("relu", 160, 8), ("sums", 170, 11)])
def test_few_waits(judged, name, of_task, of_trial):
    """Whatever has to be known of several tensors, or of one in several ways, is computed on the device and read at
    once (`reading.read`)."""
    ENTROPY.begin(bytes(32))
    with waits() as known:
        checker = judged(source_of(name))
    with waits() as asked:
        found = checker.run(mapped=True, aligned=True)
    assert found.failure is None and found.precision_class == "fp32"
    assert 0 < len(known) <= of_task, Counter(known).most_common(20)
    assert 0 < len(asked) <= of_trial * len(found.trials), Counter(asked).most_common(20)


def test_what_is_waited_for(device):
    there, here = torch.arange(4.0, device="cuda"), torch.tensor([1])
    for ask in (
        there.tolist,
        there.cpu,
        there.nonzero,
        lambda: there[there > 1],
        lambda: there[here],
        lambda: there[there.argmin()],
    ):
        with waits() as found:
            ask()
        assert len(found) == 1
    for stays in (there.sum, lambda: there[1:], lambda: there[here.to("cuda", non_blocking=True)], lambda: there * 2):
        with waits() as found:
            stays()
        assert not found


@pytest.mark.parametrize("choice", ["x.argmax(-1)", "torch.randperm(16)"])
def test_answers_to_seeds_are_compared_where_they_are(judged, monkeypatch, choice):
    monkeypatch.setattr(random_tasks, "FORMS_S", 0.0)
    checker = judged(text(DROPPED.replace("CHOICE", choice)))
    mode = EvalMode.learn(checker.reference)
    found = check_random(checker, mode, {"mapped": True, "aligned": True})
    assert checker.facts.random and found.failure is None and (mode is None) == ("rand" in choice)
    assert {trial["kind"] for trial in found.trials} >= {"seeds", *["base"] * (mode is not None)}


@pytest.mark.parametrize("wrong", [False, True])
def test_outputs_of_timed_calls_are_judged_where_they_are(judged, wrong):
    checker = judged(text(LINEAR))
    reference, session = checker.reference, checker.session
    inputs = reference.draw()
    answer = reference.call(inputs, reference.public, "shipped").tensors
    kept = Kept(inputs, [t + 1.0 for t in answer] if wrong else answer, {}, structure="T")
    session.kept, session.exchanged, session.strange = [kept], [kept], {plans.ROW: kept}
    found = timed_outputs.verify_timed(reference, checker.facts, session, "fp32")
    assert found["compared"] == (1 if wrong else 3) and bool(found["wrong"]) == wrong


@pytest.mark.usefixtures("device")
def test_a_large_answer_is_held_against_truth_in_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle, "WHOLE", 500)
    truth = torch.randn(40, 50, device="cuda")
    assert oracle.are_dealt_alike(truth.flip(0), truth, 1e-6) and not oracle.are_dealt_alike(-truth.abs(), truth, 1e-6)
