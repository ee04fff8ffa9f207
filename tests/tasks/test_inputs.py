"""The language of `--inputs` and `--init`."""

from __future__ import annotations

import ast

import pytest
import torch

from cuda_l1.errors import TaskError
from cuda_l1.tasks.init_args import parse_init, render_init
from cuda_l1.tasks.input_function import is_function, render_function
from cuda_l1.tasks.input_spec import described_floats, render_inputs


def drawn(text, **options):
    namespace = {"torch": torch}
    exec(render_inputs(text, **options), namespace)
    return namespace["get_inputs"]()


@pytest.mark.parametrize(
    ("text", "shape", "dtype"),
    [
        ("randn(8,128):bf16", (8, 128), torch.bfloat16),
        ("rand(4)", (4,), torch.float32),
        ("torch.randint(0, 9, (3,), dtype=torch.int32)", (3,), torch.int32),
        ("randn((2, 3))", (2, 3), torch.float32),
        ("randn()", (), torch.float32),
        ("zeros(3):bool", (3,), torch.bool),
        ("ones(2, 2):i32", (2, 2), torch.int32),
        ("full(-1e9, 2, 2):bf16", (2, 2), torch.bfloat16),
        ("randint(-5, 5, 8, 128)", (8, 128), torch.int64),
        ("randint(0, 200, 7):u8", (7,), torch.uint8),
        ("arange(128)", (128,), torch.int64),
        ("arange(0, 1, 0.25):fp32", (4,), torch.float32),
        ("randperm(9)", (9,), torch.int64),
        ("mask(5, 5)", (5, 5), torch.bool),
        ("positive(5):fp64", (5,), torch.float64),
        ("randn(2, dtype=bfloat16)", (2,), torch.bfloat16),
        ("randn(2, 3, 4).transpose(1, 2)", (2, 4, 3), torch.float32),
        ("randn(2, 1).expand(2, 5):bf16", (2, 5), torch.bfloat16),
    ],
)
def test_one_tensor(text, shape, dtype):
    (tensor,) = drawn(text)
    assert tuple(tensor.shape) == shape and tensor.dtype == dtype


def test_several_arguments_of_all_kinds():
    values = drawn("randn(2, 3), randint(0, 9, 4); 3 -0.5 True none 'a b' [randn(2), (ones(1), 2)]")
    assert [type(value).__name__ for value in values] == [
        "Tensor", "Tensor", "int", "float", "bool", "NoneType", "str", "list",
    ]  # fmt: skip
    assert values[6] == "a b" and values[7][1][1] == 2


def test_a_dict_is_one_argument():
    (given, other) = drawn("{'x': randn(2, 3), 'xs': [ones(2)], 'of': {}}:bf16 {'y': none, 'k': 4}")
    assert list(given) == ["x", "xs", "of"] and given["x"].dtype == given["xs"][0].dtype == torch.bfloat16
    assert given["of"] == {} and other == {"y": None, "k": 4}
    assert described_floats("{'x': randn(2)}") == {"fp32"}


def test_values_lie_where_they_should():
    low, positive, permuted = drawn("randint(3, 5, 1000) positive(1000) randperm(10)")
    assert set(low.tolist()) == {3, 4}
    assert positive.min() > 0
    assert sorted(permuted.tolist()) == list(range(10))


def test_strides_of_a_transposed_tensor():
    assert drawn("randn(4, 6).t()")[0].stride() == (1, 6)


def test_dtype_of_the_call_is_for_what_names_none():
    one, two, three = drawn("randn(2) randn(2):fp32 randint(0, 2, 2)", dtype="bf16")
    assert (one.dtype, two.dtype, three.dtype) == (torch.bfloat16, torch.float32, torch.int64)
    assert described_floats("randn(2) randn(2):bf16 randint(0, 2, 2)") == {"fp32", "bf16"}


def test_inputs_are_drawn_on_the_default_device():
    with torch.device("meta"):
        values = drawn("randn(2) randint(0, 2, 2) arange(3) mask(2) zeros(2) full(1.0, 2) positive(2) randperm(3)")
    assert {value.device.type for value in values} == {"meta"}


def test_a_number_with_a_dtype_is_no_function_of_a_module():
    assert not any(map(is_function, ("0.5:bf16", "3:i64", "-2:fp32", "True:bool", "randn(3):bf16")))
    assert all(map(is_function, ("inputs:make", "a.b:make", "inputs.py:make", "../x-y/inputs.py:make", "x-y:make")))
    with pytest.raises(TaskError, match="`x-y` is not the name of a module"):
        render_function("x-y:make")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("randn(8", "not closed"),
        ("foo(3)", "`foo` is unknown; choose one of randn"),
        ("randn(-1)", "`-1` is not a size"),
        ("randn(2.5)", "`2.5` is not a size"),
        ("randn(x)", "neither a literal nor a tensor"),
        ("randn(3):i64", "randn cannot be i64"),
        ("randint(0, 5, 3):bf16", "randint cannot be bf16"),
        ("mask(3):fp32", "mask cannot be fp32"),
        ("randn(3):bf17", "unknown dtype `bf17`"),
        ("3:i64", "only tensors have a dtype"),
        ("randint(5, 2, 3)", "low < high"),
        ("randint(0.5, 2, 3)", "low < high"),
        ("randint(1)", "at least 2 arguments"),
        ("full()", "at least 1 argument"),
        ("randn(3).sum()", "`.sum` is not understood"),
        ("os.system('x')", "`.system` is not understood"),
        ("randn(3, device='cuda')", "`device` is not understood"),
        ("1 +", "is not understood"),
        ("{'a': randn(2), **{}}", "neither a literal nor a tensor"),
        ("{a: randn(2)}", "`a` is neither a literal nor a tensor"),
        ("{'a': randn(2)", "not closed"),
        ("__import__('os')", "`__import__` is unknown"),
    ],
)
def test_mistakes_are_one_clear_line(text, says):
    with pytest.raises(TaskError) as caught:
        render_inputs(text)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def constructed(text: str, signature: str):
    """What a class with this constructor receives."""
    source = f"class Model:\n    def __init__(self, {signature}):\n        self.got = dict(locals())\n"
    constructor = ast.parse(source).body[0].body[0].args
    namespace = {}
    exec(source + render_init(*parse_init(text), constructor), namespace)
    got = namespace["Model"](*namespace["get_init_inputs"]()).got
    return {key: value for key, value in got.items() if key != "self"}


@pytest.mark.parametrize(
    ("text", "signature", "wanted"),
    [
        ("[64, 8]", "a, b", {"a": 64, "b": 8}),
        ("(64, 8)", "a, b", {"a": 64, "b": 8}),
        ("64, 8", "a, b", {"a": 64, "b": 8}),
        ("[[1, 2]]", "a", {"a": [1, 2]}),
        ("a=1, c=(3, 4)", "a, b=2, c=3", {"a": 1, "b": 2, "c": (3, 4)}),
        ("1, c=None", "a, b='x', c=3", {"a": 1, "b": "x", "c": None}),
        ("1, flag=True", "a, *, flag=False", {"a": 1, "flag": True}),
        ("a=1, z=2", "**named", {"named": {"a": 1, "z": 2}}),
        ("", "a=1", {"a": 1}),
        ("[]", "a=1", {"a": 1}),
    ],
)
def test_constructor_arguments(text, signature, wanted):
    assert constructed(text, signature) == wanted


def test_dtypes_of_torch_are_arguments_too():
    assert parse_init("dtype=torch.bfloat16") == ([], {"dtype": "torch.bfloat16"})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a b", "is not Python"),
        ("**{}", "`**` is not understood"),
        ("open('x')", "is not a literal"),
        ("1) + f(2", "not a list of arguments"),
        ("x.y", "is not a literal"),
    ],
)
def test_wrong_constructor_arguments_are_one_clear_line(text, says):
    with pytest.raises(TaskError) as caught:
        parse_init(text)
    assert says in str(caught.value) and "\n" not in str(caught.value)
