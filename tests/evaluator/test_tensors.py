"""Nested values cross a shared buffer unchanged: strides, offsets and dtypes kept, malformed text refused."""

from __future__ import annotations

import os
from collections import OrderedDict, namedtuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_l1.evaluator.guest import buffers, tensors

Point = namedtuple("Point", "x y")
DTYPES = [
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.complex64),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
]


def there_and_back(value: object, *, offset: int = 0) -> object:
    """Through one buffer that two ends see, as judge and runner do."""
    near = buffers.create(tensors.nbytes_needed(value), None)
    described = tensors.pack(value, near, offset=offset)
    far = buffers.attach(os.dup(near.fileno()), near.nbytes, None)
    return tensors.unpack(described, far)


def some(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    return torch.randint(0, 2, shape).to(dtype) if dtype is torch.bool else (9 * torch.randn(shape)).to(dtype)


@pytest.mark.parametrize("offset", [0, 1, 16])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_crosses_with_its_values(dtype, offset):
    value = some(dtype, 3, 5)
    back = there_and_back([value], offset=offset)[0]
    assert back.dtype is dtype and torch.equal(back, value)


@pytest.mark.parametrize("offset", [0, 1, 16])
@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.randn(4, 6).t(),
        lambda: torch.randn(4, 6)[:, ::2],
        lambda: torch.randn(1, 6).expand(5, 6),
        lambda: torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
        lambda: torch.arange(10.0).unfold(0, 4, 1),
        lambda: torch.randn(7)[3:],
        lambda: torch.tensor(2.5),
        lambda: torch.empty(0, 4),
        lambda: torch.empty(3, 0),
    ],
    ids=["transposed", "strided", "expanded", "channels-last", "overlapping", "offset", "scalar", "empty", "empty-2"],
)
def test_strides_and_values_cross(make, offset):
    value = make()
    back = there_and_back([value], offset=offset)[0]
    assert back.shape == value.shape and torch.equal(back, value)
    assert back.numel() == 0 or back.stride() == value.stride()


def test_an_odd_offset_starts_one_element_off_the_alignment():
    back = there_and_back([torch.randn(8), torch.randn(8).half()], offset=1)
    assert [t.storage_offset() for t in back] == [1, 1]
    assert back[0].data_ptr() % buffers.ALIGNMENT == 4 and back[1].data_ptr() % buffers.ALIGNMENT == 2


def test_each_tensor_owns_its_storage():
    first, second = there_and_back([torch.randn(8), torch.randn(8)])
    assert first.untyped_storage().data_ptr() != second.untyped_storage().data_ptr()
    assert first.untyped_storage().nbytes() == 32


def test_everything_else_is_tagged():
    value = [1, -2.5, True, None, "text", (1, [2]), {"a": 1, 2: (3,)}, 1 + 2j, slice(1, None, 2)]
    value += [torch.float16, torch.device("cpu"), torch.Size([2, 3])]
    assert there_and_back(value) == value


def test_a_named_tuple_becomes_a_tuple():
    x, y = there_and_back(Point(torch.ones(2), 3))
    assert torch.equal(x, torch.ones(2)) and y == 3


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=60)
@given(JSON)
def test_plain_values_survive(value):
    assert there_and_back([value]) == [value]


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.integers(0, 4), max_size=4), min_size=1, max_size=4), st.sampled_from([0, 1, 16]), st.randoms()
)
def test_any_shapes_in_any_order_of_strides_survive(shapes, offset, random):
    value = []
    for shape in shapes:
        order = random.sample(range(len(shape)), len(shape))
        value.append(torch.randn(shape).permute(order))
    back = there_and_back(value, offset=offset)
    assert all(torch.equal(a, b) for a, b in zip(back, value, strict=True))


def test_rewriting_puts_other_contents_in_the_same_places():
    value = {"a": torch.zeros(4, 3).t(), "b": [torch.zeros(5)]}
    buffer = buffers.create(tensors.nbytes_needed(value), None)
    described = tensors.pack(value, buffer)
    seen = tensors.unpack(described, buffer)
    tensors.rewrite({"a": torch.ones(4, 3).t(), "b": [torch.full((5,), 2.0)]}, described, buffer)
    assert torch.equal(seen["a"], torch.ones(3, 4)) and torch.equal(seen["b"][0], torch.full((5,), 2.0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64])
@pytest.mark.parametrize("shape", [(), (0,), (1023,), (1024,), (5, 1000), (3, 2048)], ids=str)
def test_every_element_is_rewritten(dtype, shape):
    old, new = torch.zeros(shape, dtype=dtype), torch.ones(shape, dtype=dtype)
    value = [old, old.expand(2, *shape), old.t() if len(shape) == 2 else old]
    buffer = buffers.create(tensors.nbytes_needed(value), None)
    described = tensors.pack(value, buffer, offset=1)
    tensors.rewrite([new, new.expand(2, *shape), new.t() if len(shape) == 2 else new], described, buffer)
    assert all(bool((seen == 1).all()) for seen in tensors.unpack(described, buffer))


def test_no_input_is_complete_while_another_is_being_written(monkeypatch):
    value = [torch.zeros(40_000), torch.zeros(3), torch.zeros(300, 100)]
    buffer = buffers.create(tensors.nbytes_needed(value), None)
    described = tensors.pack(value, buffer)
    seen, states = tensors.unpack(described, buffer), []
    copy = tensors._copy

    def copying(target, source):
        copy(target, source)
        states.append((target.numel(), [bool((t == 1).all()) for t in seen]))

    monkeypatch.setattr(tensors, "_copy", copying)
    tensors.rewrite([torch.ones_like(t) for t in value], described, buffer)
    large = [complete for count, complete in states if count > 1024]
    assert len(large) >= 2 and not any(any(complete) for complete in large) and all(states[-1][1])


def test_equal_layouts_take_the_same_places():
    value = [torch.zeros(4, 3), 5]
    assert tensors.layout(value) == tensors.layout([torch.ones(4, 3), 5])
    for other in ([torch.zeros(3, 4).t(), 5], [torch.zeros(4, 3), 6], [torch.zeros(4, 3).double(), 5], [5]):
        assert tensors.layout(value) != tensors.layout(other)


@pytest.mark.parametrize(
    "value",
    [
        object(),
        {1, 2},
        torch.randn(3, 3).to_sparse(),
        torch.empty(3, device="meta"),
        torch.randn(3, dtype=torch.complex64).conj(),
        torch.nn.Linear(2, 2),
        torch.nn.Buffer(torch.ones(2)).as_subclass(type("Odd", (torch.Tensor,), {})),
    ],
    ids=["object", "set", "sparse", "meta", "lazy-conj", "module", "subclass"],
)
def test_what_cannot_cross_is_named(value):
    with pytest.raises(tensors.Unsupported):
        tensors.require_supported([value])


def test_deep_nesting_is_refused_on_both_ends():
    deep: list = []
    for _ in range(100):
        deep = [deep]
    with pytest.raises(tensors.Unsupported, match="deeply"):
        tensors.pack(deep, buffers.create(0, None))
    described: object = 1
    for _ in range(100):
        described = {"$list": [described]}
    with pytest.raises(tensors.Unsupported, match="deeply"):
        tensors.unpack(described, buffers.create(0, None))


@pytest.mark.parametrize(
    "described",
    [
        {"$tensor": "float33", "shape": [1], "stride": [1], "at": 0, "skip": 0},
        {"$tensor": "__class__", "shape": [1], "stride": [1], "at": 0, "skip": 0},
        {"$tensor": ["float32"], "shape": [1], "stride": [1], "at": 0, "skip": 0},
        {"$tensor": "float32", "shape": [1 << 20], "stride": [1], "at": 0, "skip": 0},
        {"$tensor": "float32", "shape": [2], "stride": [1 << 40], "at": 0, "skip": 0},
        {"$tensor": "float32", "shape": [1], "stride": [1], "at": -4096, "skip": 0},
        {"$tensor": "float32", "shape": [1], "stride": [1], "at": 1 << 40, "skip": 0},
        {"$dtype": "nothing"},
        {"$unknown": []},
        {},
    ],
)
def test_a_description_reaches_nothing_outside_its_buffer(described):
    with pytest.raises(ValueError):
        tensors.unpack(described, buffers.create(4096, None))


def test_a_buffer_gives_its_descriptor_back():
    open_before = len(os.listdir("/proc/self/fd"))
    kept = [buffers.create(1 << 12, None).bytes_at(0, 16) for _ in range(20)]
    held = len(os.listdir("/proc/self/fd")) - open_before
    del kept
    assert held <= 20  # the mapping keeps one of its own while a tensor lies in it
    assert len(os.listdir("/proc/self/fd")) == open_before


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (torch.zeros(3, 4), False),
        (torch.zeros(3, 4).t(), False),
        (torch.zeros(3, 4)[:, :2], False),
        (torch.zeros(1, 4).expand(1, 4), False),
        (torch.zeros(1, 4).expand(3, 4), True),
        (torch.zeros(()).expand(5), True),
        (torch.zeros(6).unfold(0, 3, 1), True),
        (torch.zeros(6).unfold(0, 3, 3), False),
        (torch.zeros(0, 4).expand(0, 4), False),
    ],
)
def test_elements_that_share_memory_are_seen(tensor: torch.Tensor, expected: bool) -> None:
    assert tensors.overlaps(tensor) is expected


_BLOCK = torch.zeros(4, 6)
_PAIRS = torch.zeros(4, dtype=torch.complex64)


@pytest.mark.parametrize(
    ("outputs", "expected", "beginning"),
    [
        (_BLOCK.chunk(3, dim=1), [], []),
        ([_BLOCK, _BLOCK[:, -1]], [1], []),
        ([_BLOCK[:, -1], _BLOCK[1:], _BLOCK[:, 5:]], [1, 2], [2]),
        ([_BLOCK[:, :4], _BLOCK[:, 3:], _BLOCK.t()], [1, 2], [2]),
        ([_PAIRS.real, _PAIRS.imag], [], []),
        ([_PAIRS.imag, _PAIRS], [1], []),
        ([_BLOCK[:0], _BLOCK[:0], torch.zeros(2)], [], []),
        ([_BLOCK.clone(), _BLOCK], [], []),
    ],
)
def test_outputs_with_elements_in_common(
    outputs: list[torch.Tensor], expected: list[int], beginning: list[int]
) -> None:
    assert tensors.share_with_earlier(outputs) == expected
    assert tensors.begin_as_earlier(enumerate(outputs)) == beginning


def test_many_outputs_are_looked_at_together() -> None:
    before, block = tensors._meet_earlier.cache_info().misses, torch.zeros(4, 200, 6)
    for _ in range(3):
        assert tensors.share_with_earlier([*block.unbind(1), block[:, -1], torch.zeros(3)]) == [200]
    assert tensors._meet_earlier.cache_info().misses <= before + 2


class _Boast:
    """Says that it is a tensor, and does something whenever somebody asks."""

    asked = 0

    @property
    def __class__(self):
        _Boast.asked += 1
        return torch.Tensor

    def __repr__(self) -> str:
        _Boast.asked += 1
        return "None"


def _lazy(base: type, *names: str) -> type:
    def fails(self, *args):
        raise AssertionError("somebody asked a method of the candidate's")

    return type("Lazy", (base,), dict.fromkeys(names, fails))


def test_a_foreign_answer_is_read_without_its_own_methods():
    a, b = torch.ones(1), torch.zeros(1)
    methods = ("__iter__", "__len__", "__getitem__")
    kept = tensors.settled(_lazy(tuple, *methods)((a, b)))
    assert type(kept) is tuple and kept[0] is a and kept[1] is b
    assert tensors.settled(_lazy(list, *methods)([a])) == [a]
    assert tensors.settled(_lazy(dict, *methods, "items", "values", "keys")(x=a)) == {"x": a}
    ordered = _lazy(OrderedDict, "__iter__", "items", "values", "keys", "__getitem__")(x=a, y=b)
    ordered.move_to_end("x")
    assert [*tensors.settled(ordered)] == [*tensors.settled({"y": b, "x": a})] == ["x", "y"]
    assert tensors.settled([Point(a, {"k": (b, None, 3)})]) == [(a, {"k": (b, None, 3)})]


def test_what_is_neither_tensor_nor_container_of_an_answer_becomes_a_text():
    (read,) = tensors.settled((_Boast(),))
    assert isinstance(read, str) and read.endswith("_Boast>") and not _Boast.asked
    assert isinstance(tensors.settled(torch.nn.Linear(1, 1)), str)


def test_an_answer_that_holds_itself_is_refused():
    endless: list = []
    endless.append(endless)
    with pytest.raises(tensors.Unsupported, match="deeply"):
        tensors.settled(endless)
