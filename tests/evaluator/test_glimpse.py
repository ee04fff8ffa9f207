"""Elements that are read out of a process's memory: the same when they arrive, missed where they were not there yet."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator

import pytest
import torch

from cuda_l1.evaluator.guest import buffers, glimpse
from cuda_l1.evaluator.guest.glimpse import look, place_of
from cuda_l1.evaluator.guest.tensors import nbytes_needed, pack, view

DTYPES = [torch.float32, torch.bfloat16, torch.float64, torch.bool, torch.int64, torch.float8_e4m3fn, torch.complex64]


@pytest.fixture
def memory() -> Iterator[int]:
    fd = os.open("/proc/self/mem", os.O_RDONLY)
    yield fd
    os.close(fd)


def slots_for(*tensors: torch.Tensor) -> tuple[list[dict], buffers.Buffer]:
    """Slots of an output buffer for tensors like these, as the judge describes them."""
    empty = [torch.empty(t.shape, dtype=t.dtype) for t in tensors]
    buffer = buffers.create(nbytes_needed(empty), None)
    return pack(empty, buffer)["$list"], buffer


def deliver(tensors: list[torch.Tensor], slots: list[dict], buffer: buffers.Buffer) -> None:
    for tensor, slot in zip(tensors, slots, strict=True):
        view(slot, buffer).copy_(tensor)


def delivered(slots: list[dict], buffer: buffers.Buffer) -> list[torch.Tensor]:
    return [view(slot, buffer) for slot in slots]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3, 5), (64, 1000), (0, 4)])
def test_what_is_there_arrives_in_any_layout(memory: int, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    plain = torch.randn(shape).to(dtype)
    tensors = [
        plain,
        torch.ones(6, 4).to(dtype).t(),
        torch.arange(40).to(dtype)[5::3],
        plain[..., None].expand(*shape, 2),
    ]
    slots, buffer = slots_for(*tensors)
    seen = look(memory, [place_of(t) for t in tensors], slots, ())
    deliver(tensors, slots, buffer)
    assert all(each.arrived(delivered(slots, buffer)) for each in seen)


def test_nan_is_itself(memory: int) -> None:
    (slot,), buffer = slots_for(nan := torch.full((8,), float("nan")))
    seen = look(memory, [place_of(nan)], [slot], ())
    deliver([nan], [slot], buffer)
    assert seen[0].arrived(delivered([slot], buffer))


@pytest.mark.parametrize("part", [slice(0, 1), slice(-1, None), slice(321, 322), slice(500, 1000)])
def test_what_is_computed_after_the_call_did_not_arrive(memory: int, part: slice) -> None:
    (slot,), buffer = slots_for(result := torch.zeros(1000))
    seen = look(memory, [place_of(result)], [slot], ())
    result[part] = 1.0
    deliver([result], [slot], buffer)
    assert not seen[0].arrived(delivered([slot], buffer))


@pytest.mark.parametrize("layout", ["rows", "columns", "padded", "far-apart", "expanded"])
def test_of_a_large_output_parts_are_read_in_any_layout(memory: int, layout: str) -> None:
    """A column of it, computed late, lies in all of them; a sixteenth of its rows in nearly all calls."""
    made = {
        "rows": lambda: torch.zeros(4096, 512),
        "columns": lambda: torch.zeros(512, 4096).t(),
        "padded": lambda: torch.zeros(4096, 1200)[:, 100:612],
        "far-apart": lambda: torch.zeros(4096, 1 << 14)[:, 100:612],
        "expanded": lambda: torch.zeros(4096, 1).expand(4096, 512),
    }
    result = made[layout]()
    (slot,), buffer = slots_for(torch.empty(4096, 512))
    seen = look(memory, [place_of(result)], [slot], ())
    deliver([result], [slot], buffer)
    assert seen[0].arrived(delivered([slot], buffer))
    most = (glimpse.LEAST_BOXES + 2) * glimpse.BOX
    assert sum(len(box.memory) for box in seen[0].boxes) <= (3 if layout == "padded" else 1) * most
    assert most // 3 <= sum(math.prod(box.sizes) * result.itemsize for box in seen[0].boxes)
    late = [view(slot, buffer).clone() for _ in range(2)]
    late[0][:, 77] = 1.0
    late[1][2000:2256] = 1.0
    misses = []
    for answer in late:
        deliver([answer], [slot], buffer)
        misses.append(sum(look(memory, [place_of(result)], [slot], ())[0].arrived([answer]) for _ in range(20)))
    assert misses[1] <= 18, "each box lies in these rows with 1 in 16"
    assert misses[0] == 0 or layout == "columns", "there a box is a part of a column"


@pytest.mark.parametrize(("stride", "is_there"), [(2**62, True), (2**200, True), (True, False), (-1, False)])
def test_a_stride_along_which_there_is_one_element_is_as_good_as_any(memory: int, stride: int, is_there: bool) -> None:
    (slot,), buffer = slots_for(result := torch.ones(1, 10))
    seen = look(memory, [[result.data_ptr(), [stride, 1]]], [slot], ())
    deliver([result], [slot], buffer)
    assert seen[0].arrived(delivered([slot], buffer)) == is_there


@pytest.mark.parametrize(
    "told",
    [None, [], "text", [None], [[0, [1]]], [[-8, [1]]], [[2**70, [1]]], [["x", [1]]], [[4096, "ab"]], [[1, [1, 1]]]],
)
def test_what_is_no_place_holds_nothing(memory: int, told: object) -> None:
    (slot,), buffer = slots_for(result := torch.ones(10))
    seen = look(memory, told, [slot], ())
    deliver([result], [slot], buffer)
    assert not seen[0].arrived(delivered([slot], buffer))


def test_state_that_a_candidate_need_not_have_is_not_looked_for(memory: int) -> None:
    tensors = [torch.ones(3), torch.ones(4)]
    slots, _ = slots_for(*tensors)
    assert len(look(memory, [place_of(tensors[0]), None], slots, {1})) == 1


def test_a_look_that_is_held_up_is_known(memory: int) -> None:
    """What takes as long as reading memory of the judge's own does is none."""
    (slot,), buffer = slots_for(result := torch.ones(1 << 16))
    seen, known = look(memory, [place_of(result)], [slot], ()), {}
    assert glimpse.held_up_us(0.0, seen, buffer, known) == 0.0
    (own_us,) = known.values()
    assert glimpse.held_up_us(1.6 * own_us, seen, buffer, known) == 0.0
    assert glimpse.held_up_us(own_us + 5000.0, seen, buffer, known) > 4000.0 - 2 * own_us


def test_a_look_at_elements_that_lie_apart_is_not_held_against_memory_that_lies_together(memory: int) -> None:
    result = torch.zeros(64, 1200)[:, 100:612]
    (slot,), buffer = slots_for(torch.empty(64, 512))
    seen = look(memory, [place_of(result)], [slot], ())
    assert buffer.nbytes < sum(len(box.memory) for box in seen[0].boxes)
    assert glimpse.held_up_us(1e6, seen, buffer, {}) == 0.0
