"""What counts of a trial in which the reference itself is right by luck."""

from __future__ import annotations

import torch

from cuda_l1.evaluator.guest.elements import FARTHER, is_as_far

TRUTH = torch.ones(4, 8, dtype=torch.float64)
BOUND = 1e-6


def _off(rows: slice, by: float) -> torch.Tensor:
    made = TRUTH.clone()
    made[rows] += by
    return made


def test_an_answer_may_err_where_the_reference_might() -> None:
    others = [_off(slice(0, 1), 0.5), _off(slice(1, 2), 0.25)]
    assert is_as_far(_off(slice(0, 2), 0.4), others, TRUTH, BOUND)
    assert is_as_far(_off(slice(0, 1), 0.5 * FARTHER), others, TRUTH, BOUND)


def test_and_nowhere_else_nor_by_much_more() -> None:
    others = [_off(slice(0, 1), 0.5)]
    assert not is_as_far(_off(slice(0, 2), 1e-3), others, TRUTH, BOUND)
    assert not is_as_far(_off(slice(0, 1), 0.6 * FARTHER), others, TRUTH, BOUND)
    assert not is_as_far(_off(slice(0, 1), torch.nan), others, TRUTH, BOUND)
    assert not is_as_far(_off(slice(0, 1), 0.1), [TRUTH, TRUTH], TRUTH, BOUND)
