"""A task's own text is never turned away or suspected."""

from __future__ import annotations

import pytest
from evaluator_support import QUICK, candidate_of, checks, task_of
from own_texts import OWN_TEXTS

from shares import in_turn, slow_unless_due

pytestmark = pytest.mark.e2e
SHARES = 16
SHARE = in_turn(SHARES)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=slow_unless_due(n, SHARES, SHARE)) for n, name in enumerate(OWN_TEXTS)]
)
def test_a_task_against_its_own_text(evaluator, name):
    task = task_of(OWN_TEXTS[name])
    candidate = candidate_of(task, OWN_TEXTS[name].replace("class Model(", "class ModelNew("))
    found = evaluator.evaluate(task, candidate, protocol=QUICK)
    assert found.accepted and not checks(found, "suspect"), (found.detail, found.findings)
