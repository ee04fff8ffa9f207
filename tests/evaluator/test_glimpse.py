"""An element that changes between two looks is seen; one that stays is not, whatever its dtype."""

from __future__ import annotations

import pytest
import torch

from cuda_l1.evaluator.guest.glimpse import Glimpse

DTYPES = [torch.float32, torch.bfloat16, torch.float64, torch.bool, torch.int64, torch.float8_e4m3fn, torch.complex64]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3, 5), (64, 1000)])
def test_the_same_outputs_are_the_same(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    glimpse, result = Glimpse(), [torch.randn(shape).to(dtype), {"t": torch.ones(4, 6).to(dtype).t()}]
    assert not glimpse.differ(glimpse.look(result), glimpse.look(result))


def test_nan_is_itself() -> None:
    glimpse, result = Glimpse(), torch.full((8,), float("nan"))
    assert not glimpse.differ(glimpse.look(result), glimpse.look(result))


@pytest.mark.parametrize("part", [slice(0, 1), slice(-1, None), slice(0, 500), slice(500, 1000)])
def test_a_part_that_is_written_later_is_seen(part: slice) -> None:
    glimpse, result = Glimpse(), torch.zeros(1000)
    before = glimpse.look(result)
    result[part] = 1.0
    assert glimpse.differ(before, glimpse.look(result))


def test_what_is_no_plain_tensor_is_left_to_others() -> None:
    assert Glimpse().look([torch.zeros(3).to_sparse(), torch.zeros(0), None]) == []
