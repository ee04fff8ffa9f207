"""What is read of tensors on a GPU: right, with one wait, and asked once."""

from __future__ import annotations

import pytest
import torch
from second_device import second_device, waits

from cuda_l1.evaluator.guest import reading

DTYPES = (torch.bool, torch.uint8, torch.bfloat16, torch.int64, torch.float32, torch.complex128)


def test_small_tensors_of_all_dtypes_are_handed_over_at_once(monkeypatch):
    own = [(torch.randn(shape) * 4).to(dtype) for dtype in DTYPES for shape in ((), (3,), (2, 5), (0, 2))]
    large = torch.randn(reading.SMALL + 1)
    with second_device(monkeypatch):
        there = [tensor.to("cuda") for tensor in (*own, large, own[-2].t())]
        with waits() as found:
            *hosted, still_there, turned = reading.hosted(there)
            assert len(found) == 1
        assert still_there is there[-2] and torch.equal(turned, own[-2].t())
    for made, was in zip(hosted, own, strict=True):
        assert not made.is_cuda and made.dtype is was.dtype and torch.equal(made, was)


def test_what_lies_in_the_host_is_not_copied():
    tensors = [torch.ones(3), torch.ones(2, dtype=torch.int64)]
    assert all(made is was for made, was in zip(reading.hosted(tensors), tensors, strict=True))


def test_lazily_conjugated_numbers_are_read_as_what_they_are(monkeypatch):
    numbers = torch.randn(4, dtype=torch.complex64)
    with second_device(monkeypatch):
        (made,) = reading.hosted([numbers.to("cuda").conj()])
    assert torch.equal(made, numbers.conj())


def test_numbers_of_several_groups_are_read_at_once(monkeypatch):
    with second_device(monkeypatch):
        there = torch.arange(6.0).to("cuda")
        with waits() as found:
            read = reading.read_each([[there.sum(), (there > 9).any()], [], [there.argmax()]])
        assert read == [[15.0, 0.0], [], [5.0]] and len(found) == 1


def test_a_question_is_put_again_once_something_is_written():
    asked = list[torch.Tensor]()

    @reading.once
    def largest(tensor: torch.Tensor) -> float:
        asked.append(tensor)
        return float(tensor.max())

    tensor, other = torch.arange(3.0), torch.arange(5.0)
    assert largest(tensor) == largest(tensor) == 2.0 and len(asked) == 1
    assert largest.of_each([tensor, other, other]) == [2.0, 4.0, 4.0] and len(asked) <= 3
    tensor[:2][0] = 7.0  # through a view
    assert largest(tensor) == 7.0 and largest(other) == 4.0


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
def test_a_tensor_without_versions_is_asked_each_time(mode):
    largest = reading.once(lambda tensor: float(tensor.max()))
    with mode():
        tensor = torch.zeros(3)
        assert largest(tensor) == 0.0
        tensor[1] = 1.0
        assert largest(tensor) == 1.0
