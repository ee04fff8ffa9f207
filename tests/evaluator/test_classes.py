"""Precision classes: which arithmetic passes as what, on the reference's own trials."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch
from evaluator_support import LINEAR, reference_of

from cuda_l1.evaluator.guest import classes, oracle, trials
from cuda_l1.evaluator.guest.classes import Case

WIDE = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(512, 64)

        def forward(self, x):
            return self.linear(x).DTYPE()

    def get_inputs():
        return [torch.randn(16, 512)]
"""


def case_of(folder, body, factor=1.0, jumpy=False) -> Case:
    reference = reference_of(folder, body)
    inputs, _ = trials.stress(reference.draw(), factor)
    reference.learn_changes(inputs)
    plan = trials.Plan("base", factor=factor)
    return Case(reference, plan, inputs, reference.public, trials.secret_seed(), jumpy)


def class_of(case: Case, *tensors: torch.Tensor, relaxed: bool = True) -> str | None:
    answer = dataclasses.replace(case.noise, tensors=list(tensors))
    return case.best_class(case.errors(answer), relaxed=relaxed)


@pytest.fixture
def wide(tmp_path) -> Case:
    return case_of(tmp_path, WIDE.replace(".DTYPE()", ""))


def product(case: Case, cast=lambda t: t) -> torch.Tensor:
    weight, bias = case.weights["linear.weight"], case.weights["linear.bias"]
    return cast(case.inputs[0]) @ cast(weight).t() + cast(bias)


def test_the_reference_itself_is_of_its_own_class(wide):
    assert wide.own == "fp32" and class_of(wide, *wide.noise.tensors) == "fp32"


def test_other_orders_of_summation_are_fp32(wide):
    x, weight, bias = wide.inputs[0], wide.weights["linear.weight"], wide.weights["linear.bias"]
    products = x[:, None, :] * weight
    lanes = products.reshape(16, 64, 32, 16).sum(2).sum(-1) + bias
    backwards = products.flip(-1).sum(-1) + bias
    split = x[:, :256] @ weight[:, :256].t() + x[:, 256:] @ weight[:, 256:].t() + bias
    for answer in (lanes, backwards, split):
        assert class_of(wide, answer) == "fp32"


def test_reduced_precision_is_told_apart(wide):
    assert class_of(wide, product(wide, oracle.round_to_tf32)) == "tf32"
    assert class_of(wide, product(wide, torch.Tensor.bfloat16).float()) == "relaxed"
    assert class_of(wide, product(wide, torch.Tensor.bfloat16).float(), relaxed=False) is None


def test_wrong_answers_are_of_no_class(wide):
    right = wide.noise.tensors[0]
    off = right.clone()
    off[3, 5] += 1.0
    for answer in (torch.zeros_like(right), right * 1.5, off, right.new_full(right.shape, math.nan)):
        assert class_of(wide, answer) is None


def test_bounds_are_multiples_of_the_noise_and_never_below_the_roundoff(wide, tmp_path):
    assert wide.bounds("fp32") == [16 * max(wide.noise_errors[0], 2.0**-24)]
    assert wide.bounds("fp32") < wide.bounds("tf32") < wide.bounds("relaxed") <= [0.1]
    exact = case_of(
        tmp_path, "class Model(nn.Module):\n    forward = lambda self, x: x\n\nget_inputs = lambda: [torch.ones(4)]"
    )
    assert exact.noise_errors == [0.0] and exact.bounds("fp32") == [16 * 2.0**-24]


@pytest.mark.parametrize(("dtype", "name"), [("bfloat16", "bf16"), ("half", "fp16")])
def test_half_precision_outputs_have_a_class_of_their_own(tmp_path, dtype, name):
    case = case_of(tmp_path, WIDE.replace("DTYPE", dtype))
    right, right_dtype = case.truth.tensors[0].float(), case.noise.tensors[0].dtype
    assert case.own == name and class_of(case, right.to(right_dtype)) == name
    assert case.bounds(name)[0] <= 4 * 2.0**-7
    assert class_of(case, (right * 1.05).to(right_dtype)) is None


def test_one_full_precision_output_makes_the_task_fp32():
    half, full, whole = torch.ones(1).half(), torch.ones(1), torch.ones(1).int()
    assert classes.own_class([half, full]) == "fp32" and classes.own_class([half, whole]) == "fp16"
    assert classes.own_class([whole]) == "exact"
    assert classes.own_class([torch.ones(1, dtype=torch.complex64)]) == "fp32"


INTEGERS = """
    class Model(nn.Module):
        def forward(self, x):
            return x.cumsum(0), (x % 3 == 0)

    def get_inputs():
        return [torch.randint(0, 9, (50,))]
"""


def test_integer_outputs_are_equal(tmp_path):
    case = case_of(tmp_path, INTEGERS)
    sums, flags = case.noise.tensors
    assert case.own == "exact" and class_of(case, sums, flags) == "exact"
    off = sums.clone()
    off[7] += 1
    assert class_of(case, off, flags) is None and class_of(case, sums, ~flags) is None


QUANTISE = """
    class Model(nn.Module):
        def forward(self, x):
            return (x * 50).round() / 50

    def get_inputs():
        return [torch.randn(200, 100)]
"""


def test_isolated_jumps_are_forgiven_up_to_a_number(tmp_path):
    case = case_of(tmp_path, QUANTISE, jumpy=True)
    answer = case.noise.tensors[0].clone()
    allowed = 2 * case.jumps[0].count + 3
    flat = answer.view(-1)
    flat[:allowed] += 1 / 50
    assert class_of(case, answer) == "fp32"
    flat[allowed : allowed + 30] += 1 / 50
    assert class_of(case, answer, relaxed=False) is None


def test_an_expected_infinity_must_be_matched(tmp_path):
    case = case_of(
        tmp_path,
        "class Model(nn.Module):\n    forward = lambda self, x: torch.log(x.clamp(min=0).round())\n\n"
        "get_inputs = lambda: [torch.randn(40)]",
    )
    assert not case.sound and class_of(case, *case.noise.tensors) == "fp32"
    assert class_of(case, case.noise.tensors[0].clamp(min=-1e30)) is None


def test_a_task_that_cannot_run_under_autocast_keeps_the_floor_of_relaxed(tmp_path):
    case = case_of(
        tmp_path,
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.randn(8, 8))
            def forward(self, x):
                out = torch.zeros(8, 8)
                return out.index_put((torch.arange(8),), x @ self.weight)

        def get_inputs():
            return [torch.randn(8, 8)]
        """,
    )
    assert case.bounds("relaxed") == [classes.RELAXED_FLOOR]


def test_stressed_trials_count_only_where_truth_is_finite(tmp_path):
    body = LINEAR.replace("torch.relu(self.linear(x))", "torch.log(x + 0 * self.linear(x))").replace("randn", "rand")
    assert case_of(tmp_path, body).sound and not case_of(tmp_path, body, factor=-1.0).sound
