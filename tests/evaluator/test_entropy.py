"""Chance is nobody's to foresee, and what depends on it can be looked at again under the same key."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from evaluator_support import LINEAR, QUICK, candidate_of, task_of

from cuda_l1.evaluator import Evaluator, client
from cuda_l1.evaluator.guest.case import Case
from cuda_l1.evaluator.guest.check import Checker
from cuda_l1.evaluator.guest.entropy import ENTROPY, Entropy

OWN_SECRET = client._secret  # before any fixture puts another there


def drawn(key: bytes, label: str = "") -> list[object]:
    entropy = Entropy()
    entropy.begin(key)
    if label:
        entropy.turn(label)
    return [entropy.getrandbits(63), entropy.random(), entropy.sample(range(100), 5), entropy.choice("abcdef")]


def test_equal_keys_draw_alike_and_others_do_not():
    assert drawn(b"one") == drawn(b"one") != drawn(b"other")
    assert drawn(b"") != drawn(b"")  # the operating system's


def test_a_turn_does_not_depend_on_what_was_drawn_before():
    entropy, first = Entropy(), drawn(b"one", "base")
    entropy.begin(b"one")
    for _ in range(7):
        entropy.random()
    entropy.turn("base")
    assert entropy.getrandbits(63) == first[0]
    entropy.turn("base")
    assert entropy.getrandbits(63) != first[0]  # nor is the second of a name the first
    assert drawn(b"one", "other")[0] != first[0]


def test_numbers_are_as_even_as_chance_makes_them():
    entropy = Entropy()
    entropy.begin(b"even")
    values = [entropy.random() for _ in range(20_000)]
    assert all(0 <= value < 1 for value in values)
    counts = [sum(n / 10 <= value < (n + 1) / 10 for value in values) for n in range(10)]
    assert all(abs(count - 2000) < 6 * (2000 * 0.9) ** 0.5 for count in counts)
    assert {entropy.randrange(5) for _ in range(200)} == set(range(5))


def test_each_operation_has_a_key_of_its_own():
    parent, other = Entropy(), Entropy()
    assert parent.key("check") != parent.key("check") and len(parent.key("check")) == 32  # the operating system's
    for each in (parent, other):
        each.begin(b"secret")
    first = [parent.key("check"), parent.key("check"), parent.key("load")]
    other.random()
    assert len(set(first)) == 3 and other.key("check") == first[0]
    assert drawn(b"secret") != drawn(first[0])  # what a judge draws is not what the parent does


def test_calls_in_a_row_do_not_depend_on_what_trials_before_them_drew(monkeypatch: pytest.MonkeyPatch):
    put: list[Any] = []
    monkeypatch.setattr(Case, "where_stood", lambda later, plan, inputs, *_: put.append([*later, inputs]))
    reference: Any = SimpleNamespace(changed_state=["cache"], public={}, draw=ENTROPY.random, after=list, jumpy=False)
    checker = Checker.__new__(Checker)
    checker.reference = checker.facts = reference
    for before in range(4):
        ENTROPY.begin(b"one")
        for _ in range(before):
            ENTROPY.random()
        checker._put_row()
    assert len(put) == 4 and put.count(put[0]) == 4 and len(put[0]) > 1


def test_a_client_draws_a_secret_for_each_request():
    assert len({OWN_SECRET() for _ in range(8)}) == 8 and len(OWN_SECRET()) == 32


@pytest.mark.e2e
def test_a_verdict_under_the_same_keys_shows_the_same_errors(evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch):
    task = task_of(LINEAR)
    candidate = candidate_of(
        task, LINEAR.replace("Model(", "ModelNew(").replace("torch.relu(self.linear(x))", "self.linear(x).clamp(min=0)")
    )

    def errors() -> list[tuple[str, float | None]]:
        found = evaluator.evaluate(task, candidate, protocol=QUICK)
        return [(trial.kind, trial.error) for trial in found.correctness.trials if trial.kind != "timed"]

    first = errors()
    assert len(first) > 10 and errors() != first  # another request, another secret
    monkeypatch.setattr(client, "_secret", lambda: bytes(32))
    assert errors() == errors()
