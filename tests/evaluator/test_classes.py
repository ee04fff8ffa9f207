"""Precision classes: which arithmetic passes as what, on the reference's own trials."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch
from evaluator_support import LINEAR, reference_of

from cuda_l1.evaluator.guest import arithmetic, classes, drawing, input_forms, oracle, perturbations, plans
from cuda_l1.evaluator.guest.audit import audit
from cuda_l1.evaluator.guest.case import AS_MANY, REACH, Case
from cuda_l1.evaluator.guest.check import Checker
from cuda_l1.evaluator.guest.elements import MORE_JUMPS
from cuda_l1.evaluator.guest.reference import Answer, BadTask

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
    inputs, _ = input_forms.stress(reference.draw(), factor)
    reference.learn_changes(inputs)
    plan = plans.Plan("base", factor=factor)
    return Case(reference, plan, inputs, reference.public, drawing.secret_seed(), jumpy)


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


DOUBLE = """
    class Model(nn.Module):
        def forward(self, a, b):
            return (a @ b).sum(0)

    def get_inputs():
        return [torch.randn(64, 256, dtype=torch.float64), torch.randn(256, 128, dtype=torch.float64)]
"""


def test_in_float64_other_orders_of_summation_are_as_right_as_the_reference_and_float32_is_not(tmp_path):
    """Truth is computed as the reference is, so that its error says nothing of what rounding does."""
    case = case_of(tmp_path, DOUBLE)
    a, b = case.inputs
    assert class_of(case, a.sum(0) @ b) == "fp32"
    assert class_of(case, (a.float().sum(0) @ b.float()).double()) != "fp32"
    assert class_of(case, (a.sum(0) @ b) * (1 + 1e-12)) != "fp32"


def test_reduced_precision_is_told_apart(wide):
    assert class_of(wide, product(wide, arithmetic.round_to_tf32)) == "tf32"
    assert class_of(wide, product(wide, torch.Tensor.bfloat16).float()) == "relaxed"
    assert class_of(wide, product(wide, torch.Tensor.bfloat16).float(), relaxed=False) is None


def test_what_is_forgotten_leaves_inputs_and_weights(wide):
    inputs, weights = wide.inputs, wide.weights
    wide.forget()
    assert wide.truth.tensors == wide.noise.tensors == [] and wide.inputs is inputs and wide.weights is weights


@pytest.mark.parametrize("refused", [False, True])
def test_where_a_gpus_library_computes_in_float32_all_the_same_tf32_is_what_rounding_operands_gives(
    tmp_path, monkeypatch, refused
):
    """cuDNN chooses by layout: the reference's convolution may stay in float32, a candidate's not."""
    case = case_of(tmp_path, WIDE.replace(".DTYPE()", ""))
    call, asked = case.reference.call, []

    def on_a_gpu(inputs, weights, how="plain", seed=None):
        asked.append(how)
        if how == "tf32-rounded" and refused:
            raise torch.OutOfMemoryError("full")
        with monkeypatch.context() as patch:
            patch.setattr(case.reference, "device", "cpu")
            return call(inputs, weights, {"tf32": "plain", "tf32-rounded": "tf32"}.get(how, how), seed)

    monkeypatch.setattr(case.reference, "call", on_a_gpu)
    monkeypatch.setattr(case.reference, "device", "cuda:0")
    monkeypatch.setattr(case, "_learn_from_rounding", lambda errors, name: False)
    assert class_of(case, product(case, arithmetic.round_to_tf32)) == ("relaxed" if refused else "tf32")
    assert (
        class_of(case, product(case, torch.Tensor.bfloat16).float()) == "relaxed" and asked.count("tf32-rounded") == 1
    )


SCORES = """
    class Model(nn.Module):
        def forward(self, query, keys):
            return torch.softmax(torch.einsum("bd,bld->bl", query, keys) / 32 ** 0.5, dim=-1)

    def get_inputs():
        return [64 * torch.randn(256, 32), 64 * torch.randn(256, 41, 32)]
"""


def test_a_lucky_draw_of_the_reference_makes_no_other_class(tmp_path):
    """Eight draws more are no proof: one of twenty may be called coarser by chance."""
    cases = [case_of(tmp_path, SCORES) for _ in range(20)]
    needed, found = 0, []
    for case in cases:
        query, keys = case.inputs
        answer = torch.softmax(torch.bmm(keys, (query * 32**-0.5).unsqueeze(-1)).squeeze(-1), dim=-1)
        errors = case.errors(dataclasses.replace(case.noise, tensors=[answer]))
        own = case._own["fp32"]
        case._own["fp32"] = classes.Errors([e / 20 for e in errors.worst], own.bulk, own.slices)
        needed += errors.worst[0] > case.bounds("fp32")[0]
        found.append(class_of(case, answer))
    assert needed > 5 and found.count("fp32") >= 19, found


@pytest.mark.parametrize("learned", ["fp32", "tf32"])
def test_more_draws_of_the_reference_let_no_coarser_arithmetic_through(wide, learned):
    before = wide.bounds(learned)[0]
    assert wide._learn_from_rounding(wide.errors(wide.noise), learned)
    assert before <= wide.bounds(learned)[0] <= 4 * before
    assert class_of(wide, product(wide, arithmetic.round_to_tf32)) == "tf32"
    assert class_of(wide, product(wide, torch.Tensor.bfloat16).float()) == "relaxed"


@pytest.mark.parametrize("refusal", [BadTask("no shares"), torch.OutOfMemoryError("full")])
@pytest.mark.parametrize("name", ["fp32", "tf32"])
def test_where_no_other_draw_can_be_had_the_first_one_stands(wide, monkeypatch, name, refusal):
    before = wide.bounds(name)

    def refuse(*_: object) -> None:
        raise refusal

    monkeypatch.setattr(wide.reference, "call", refuse)
    assert not wide._learn_from_rounding(wide.errors(wide.noise), name) and wide.bounds(name) == before


def test_what_jumps_is_not_drawn_again(tmp_path):
    case = case_of(tmp_path, QUANTISE, jumpy=True)
    before, answer = case.bounds("fp32"), case.noise.tensors[0] + 3e-6
    assert class_of(case, answer, relaxed=False) != "fp32" and case.bounds("fp32") == before


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
    assert class_of(case, (right * 1.2).to(right_dtype)) is None


def test_one_full_precision_output_makes_the_task_fp32():
    half, full, whole = torch.float16, torch.float32, torch.int32
    assert classes.own_class([half, full]) == "fp32" and classes.own_class([half, whole]) == "fp16"
    assert classes.own_class([whole]) == "exact"
    assert classes.own_class([torch.complex64]) == "fp32"


DEVIATIONS = """
    class Model(nn.Module):
        def forward(self, x):
            return torch.tanh((x - x.sum(1, keepdim=True) / x.shape[1]) * 1e9)

    def get_inputs():
        return [torch.randn(16, 64)]
"""
"""Of constant rows of few bits nothing, since their sums are exact; any other rounding is one."""


@pytest.mark.parametrize("plan", [plans.BLANK, plans.Plan("base"), plans.LARGE_CHANNELS])
@pytest.mark.parametrize(("value", "is_excused"), [(1.0, True), (0.0, False), (math.nan, False), (1e3, False)])
def test_where_rounding_decides_an_answer_may_be_as_far_from_truth_as_the_reference(tmp_path, plan, value, is_excused):
    reference = reference_of(tmp_path, DEVIATIONS)
    case = Case(reference, plan, [torch.full((16, 64), 1 + 2.0**-10)], {}, 1, False)
    answer = Answer("T", [torch.full((16, 64), value)])
    assert not bool(case.truth.tensors[0].any()) and case.reference_error == 0.0
    assert case.counts(answer, case.errors(answer), None, "fp32") == (not is_excused or plan.kind != "blank")
    assert case.counts(answer, case.errors(answer), "fp32", "fp32"), "nothing is asked of a right one"


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
    reference = reference_of(tmp_path, QUANTISE)
    (x,) = reference.draw()
    x.view(-1)[:300] = (x.view(-1)[:300] * 50).floor().add(0.5) / 50  # they lie on an edge
    case = Case(reference, plans.Plan("base"), [x], reference.public, drawing.secret_seed(), jumpy=True)
    answer, sides = case.noise.tensors[0].clone(), (x * 50).floor() / 50
    allowed = 16 * max(case.jumps[0].count, *case._most_jumps()) + 3
    upper = (answer - sides).abs() < 0.01
    flat, other = answer.view(-1), torch.where(upper, sides + 1 / 50, sides).view(-1)
    flat[: min(allowed, 300)] = other[: min(allowed, 300)]
    assert class_of(case, answer) == "fp32"
    flat[5000 : 5000 + allowed] += 1 / 50
    assert class_of(case, answer, relaxed=False) is None


@pytest.mark.parametrize("far", [400, 5000])
def test_no_element_is_forgiven_a_jump_that_lies_far_from_an_edge(tmp_path, far):
    case = case_of(tmp_path, QUANTISE, jumpy=True)
    answer = case.noise.tensors[0].clone()
    (x,) = case.inputs
    inside = ((x * 50 - (x * 50).floor()) - 0.5).abs() > 0.1
    place = int(inside.view(-1).nonzero()[far // 2])
    answer.view(-1)[place] += 1 / 50
    assert class_of(case, answer, relaxed=False) is None


COUNTED = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(64, 4096)

        def forward(self, x):
            scores = self.linear(x)
            return (scores * 20).round(), scores.argmax(-1), (scores > 0).sum()

    def get_inputs():
        return [torch.randn(3, 64)]
"""


def test_a_few_whole_numbers_are_right_or_as_the_reference_counts_near_an_edge(tmp_path):
    case = case_of(tmp_path, COUNTED, jumpy=True)
    codes, tokens, count = case.noise.tensors
    assert class_of(case, codes, tokens, count) == "fp32"
    assert class_of(case, codes, torch.zeros_like(tokens), count, relaxed=False) is None
    assert class_of(case, codes, tokens, count + 200, relaxed=False) is None


def test_honest_orders_of_summation_jump_where_the_reference_is_moved_to(tmp_path):
    for _ in range(5):
        case = case_of(tmp_path, COUNTED, jumpy=True)
        (x,), weight, bias = case.inputs, case.weights["linear.weight"], case.weights["linear.bias"]
        scores = (x.flip(-1)[:, None, :] * weight.flip(-1)).cumsum(-1)[..., -1] + bias
        assert class_of(case, (scores * 20).round(), scores.argmax(-1), (scores > 0).sum()) == "fp32"


LARGEST = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(64, 4096, bias=False, dtype=torch.bfloat16)

        def forward(self, x):
            return (self.linear(x) + 4).max(-1)

    def get_inputs():
        return [torch.randn(256, 64, dtype=torch.bfloat16)]
"""


def test_integers_of_which_the_reference_gets_many_wrong_may_be_others_near_an_edge_alone(tmp_path):
    case = case_of(tmp_path, LARGEST, jumpy=True)
    values, places = case.noise.tensors
    few, others = oracle.most_isolated(len(places)), places
    while int(((others != places) & (others != case.truth.tensors[1])).sum()) <= few:
        moved = case.reference.call([perturbations.nudged(case.inputs[0], 1.0)], case.weights).tensors[1]
        others = torch.where(others == places, moved, others)
    assert int((places != case.truth.tensors[1]).sum()) * AS_MANY > few
    assert class_of(case, values, others) == "bf16"
    some = torch.where(torch.arange(256) % 16 == 0, places + 1, places)
    assert class_of(case, values, some) is None and class_of(case, values, places + 1) is None


CHOSEN_IN_HALF = LARGEST.replace("4096", "32").replace("self.linear(x) + 4", "self.linear(x)")


def test_an_index_in_half_precision_may_be_another_near_an_edge_though_no_jumps_are_known(tmp_path):
    near = []
    for _ in range(16):
        case = case_of(tmp_path, CHOSEN_IN_HALF)
        (x,), weight = case.inputs, case.weights["linear.weight"].float()
        values, places = case.noise.tensors
        scores = (x.float() @ weight.t()).topk(2)
        gaps = scores.values[:, 0] - scores.values[:, 1]
        if not torch.equal(places, case.truth.tensors[1]):
            continue
        narrow, wide = (
            class_of(case, values, places.index_put((row,), scores.indices[row].sum() - places[row]))
            for row in (gaps.argmin(), gaps.argmax())
        )
        near.append(narrow == "bf16")
        assert wide is None
    assert near and sum(near) > len(near) / 2, "few moves may miss an edge"


NEAREST = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("bank", torch.randn(300, 12))

        def forward(self, x):
            return (x[:, None] - self.bank).pow(2).sum(-1).sqrt().topk(7, largest=False)

    def get_inputs():
        return [torch.randn(64, 12)]
"""


@pytest.mark.parametrize(("factor", "counts"), [(1e5, False), (2.0, True)])
def test_a_trial_in_which_the_reference_gets_many_integers_wrong_does_not_count(tmp_path, factor, counts):
    reference = reference_of(tmp_path, NEAREST)
    plan = plans.Plan("scaled", factor=factor)
    inputs, _ = input_forms.stress(reference.draw(), factor)
    case = Case.where_stood(reference, plan, inputs, reference.public, jumpy=False)
    assert case is not None and case.sound is counts


ROUTED = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.router = nn.Linear(256, 64, bias=False)

        def forward(self, tokens):
            shares = F.softmax(self.router(tokens), dim=-1)
            weights, experts = torch.topk(shares, 2, dim=-1)
            return torch.zeros_like(shares).scatter(-1, experts, weights / weights.sum(-1, keepdim=True))

    def get_inputs():
        return [torch.randn(4096, 256)]
"""


def test_equal_shares_of_logits_near_zero_may_be_told_apart_in_any_order(tmp_path):
    reference = reference_of(tmp_path, ROUTED)
    (tokens,) = reference.draw()
    small = {name: value * 2.0**-8 for name, value in reference.public.items()}
    case = Case(reference, plans.SMALL_WEIGHTS, [tokens * 2.0**-8], small, drawing.secret_seed(), jumpy=True)
    assert case.jumps[0].count > MORE_JUMPS, "float32 cannot tell all shares apart"
    shares = torch.softmax(case.inputs[0] @ small["router.weight"].t(), -1)
    last = (shares.flip(-1) - torch.linspace(0.0, 1e-9, 64)).flip(
        -1
    )  # of equal ones the last, where topk gives the first
    for order, class_ in ((last, "fp32"), (shares.roll(1, -1), None)):
        weights, experts = torch.topk(order, 2, dim=-1)
        answer = torch.zeros_like(shares).scatter(-1, experts, weights / weights.sum(-1, keepdim=True))
        assert class_of(case, answer, relaxed=False) == class_


PHASES = """
    class Model(nn.Module):
        def forward(self, signals):
            return ANSWER

    def get_inputs():
        return [torch.randn(8, 32, dtype=torch.complex64)]
"""


@pytest.mark.parametrize(
    ("answer", "counts"),
    [
        ("torch.fft.fft(signals).angle()", False),
        ("signals.angle()", False),
        ("signals.sqrt()", False),
        ("torch.fft.fft(signals).abs()", True),
        ("signals * (1 + (signals.imag == 0).all(-1, keepdim=True))", True),
        ("torch.where(signals.imag == 0, signals * 2, signals)", True),
    ],
)
def test_signals_that_are_real_are_put_where_no_cut_runs_through_them(tmp_path, answer, counts):
    reference = reference_of(tmp_path, PHASES.replace("ANSWER", answer))
    signals = reference.draw()[0]
    signals.imag[:4] = 0
    inputs = [signals]
    formed, drawn = (
        Case(reference, plan, inputs, reference.public, drawing.secret_seed(), jumpy=False)
        for plan in (plans.Plan("uneven", in_forms=True), plans.Plan("base"))
    )
    assert formed.sound is counts and drawn.sound


CHOOSING = """
    class Model(nn.Module):
        def forward(self, q, k, v):
            return F.softmax(q @ k.t(), dim=-1) @ v

    def get_inputs():
        return [torch.randn(256, 64), torch.randn(256, 64), torch.randn(256, 32)]
"""


def chosen_between_two(folder) -> tuple[Case, torch.Tensor]:
    """Attention by scores of 1e10, of which two of the first row are equal as far as float32 tells; its answer, with
    the other of these two in that row."""
    plan = next(plan for plan in plans.RANGE_PLANS if plan.factor > 1)
    reference = reference_of(folder, CHOOSING)
    while True:
        (q, k, v), _ = input_forms.stress(reference.draw(), plan.factor)
        first, second = (q[0] @ k.t()).topk(2).indices
        k[second] = k[first]
        k[second, 0] += k[first, 0] * 2.0**-21
        case = Case(reference, plan, [q, k, v], reference.public, drawing.secret_seed(), jumpy=False)
        if case.sound:
            break
    answer = case.noise.tensors[0].clone()
    answer[0] = v[first] + v[second] - answer[0]
    return case, answer


def test_a_softmax_of_huge_scores_may_choose_otherwise_where_rounding_decides(tmp_path):
    case, answer = chosen_between_two(tmp_path)

    def class_far(tensor: torch.Tensor) -> str | None:
        return case.class_in_range(
            case.errors(dataclasses.replace(case.noise, tensors=[tensor])), "fp32", relaxed=False
        )

    assert class_far(answer) == "fp32"
    q, k, v = case.inputs
    least = (q[0] @ k.t()).argmin()
    assert class_far(torch.cat([v[least][None], answer[1:]])) is None, "no rounding makes the least the largest"
    assert class_far(torch.cat([answer[:1], v[least][None], answer[2:]])) is None, "nothing is near in other rows"


GATED = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.router = nn.Linear(64, 16, bias=False)

        def forward(self, tokens):
            shares = F.softmax(self.router(tokens), dim=-1)
            return F.one_hot(shares.argmax(-1), 16) * shares.amax(-1, keepdim=True)

    def get_inputs():
        return [torch.randn(64, 64)]
"""


def with_empty_rows(folder, count: int, body: str = GATED) -> Case:
    """A router's trial with so many rows of zeros, which no expert is nearer to than another, in a task that does not
    jump."""
    reference = reference_of(folder, body)
    audit(reference)
    (tokens,) = reference.draw()
    tokens[:count] = 0
    plan = next(plan for plan in plans.UNDRAWN_PLANS if plan.kind == "rows")
    return Case(reference, plan, [tokens], reference.public, drawing.secret_seed(), jumpy=False)


@pytest.mark.parametrize(("empty", "counts"), [(0, True), (1, False), (8, False)])
def test_ties_of_a_task_that_chooses_are_no_trial(tmp_path, empty, counts):
    assert with_empty_rows(tmp_path, empty).sound is counts


def test_what_ties_leave_open_is_not_compared_and_the_rest_of_the_answer_is(tmp_path):
    body = GATED.replace(
        "return F.one_hot(shares.argmax(-1), 16) * shares.amax(-1, keepdim=True)", "return shares, shares.argmax(-1)"
    )
    case = with_empty_rows(tmp_path, 8, body)
    assert case.sound and case.undecided == {1}
    shares, places = case.noise.tensors
    assert class_of(case, shares, (places + 1) % 16) == "fp32"
    assert class_of(case, shares.clone().index_fill_(0, torch.arange(8), 0.0), places) is None
    drawn = with_empty_rows(tmp_path, 0, body)
    assert drawn.sound and not drawn.undecided and class_of(drawn, shares, places) is None


def test_ties_change_nothing_where_nothing_is_chosen(tmp_path):
    body = GATED.replace("F.one_hot(shares.argmax(-1), 16) * shares.amax(-1, keepdim=True)", "shares")
    assert with_empty_rows(tmp_path, 8, body).sound


OTHERWISE = """
    class Model(nn.Module):
        def forward(self, x):
            y = x.mean((2, 3))
            return y if x.is_contiguous() else y * (1 + 3e-6)

    def get_inputs():
        return [torch.rand(8, 16, 6, 6)LAST]
"""


@pytest.mark.parametrize(
    ("factor", "last", "passes"), [(3e-6, "", True), (3e-5, "", True), (3e-4, "", False), (3e-6, ".flatten(2)", False)]
)
def test_what_the_reference_errs_channels_last_an_answer_may_err(tmp_path, factor, last, passes):
    """As a kernel of the library's does that adds up in another order; of images alone."""
    body = OTHERWISE.replace("LAST", last).replace("(2, 3)", "(2, 3)" if not last else "2")
    reference = reference_of(tmp_path, body)
    audit(reference)
    case = Case(reference, plans.Plan("base"), reference.draw(), reference.public, drawing.secret_seed(), jumpy=False)
    answer = Answer(case.truth.structure, [t.double().mul(1 + factor).float() for t in case.truth.tensors])
    assert case.passes(case.errors(answer), "fp32") is passes


@pytest.mark.parametrize(("factor", "well_posed"), [("1e18", False), ("1.0", True)])
def test_a_task_in_float64_is_ill_posed_once_answers_to_inputs_a_roundoff_off_are_known(tmp_path, factor, well_posed):
    body = OTHERWISE.replace("LAST", "").replace("x.mean((2, 3))", f"torch.sin(x.double() * {factor})")
    reference = reference_of(tmp_path, body.replace("if x.is_contiguous() else y * (1 + 3e-6)", ""))
    case = Case(reference, plans.Plan("rows", in_forms=True), reference.draw(), reference.public, 0, jumpy=False)
    assert case.sound
    case.passes(case.errors(Answer("", [case.truth.tensors[0] + 2])), "fp32")
    assert case.is_well_posed is well_posed


SMALL_PART = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(64, 80, dtype=torch.DTYPE)

        def forward(self, x):
            y = self.linear(x)
            return torch.cat([torch.sigmoid(y[:, :16]) * 4096, torch.softmax(y[:, 16:], -1)], -1)FLAT, y.argmax(-1)

    def get_inputs():
        return [torch.randn(512, 64, dtype=torch.DTYPE)]
"""


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("flat", ["", ".t().flatten()"])
def test_a_small_part_is_seen_where_the_task_jumps_in_half_precision_and_in_a_flat_answer(tmp_path, dtype, flat):
    case = case_of(tmp_path, SMALL_PART.replace("DTYPE", dtype).replace("FLAT", flat), jumpy=True)
    out, best = case.noise.tensors
    right = case.reference.call(case.inputs, case.weights, "fp32").tensors[0].to(out.dtype)
    assert class_of(case, right, best, relaxed=False) == case.own
    zeros = torch.where(out < 1.0, 0.0, out)
    assert class_of(case, zeros, best, relaxed=False) is None


def test_integers_of_the_references_own_are_right_however_often_it_chooses_otherwise(tmp_path):
    body = """
        class Model(nn.Module):
            def forward(self, x):
                return (x @ x[:64].t() + 300).argmax(-1)

        get_inputs = lambda: [torch.randn(512, 64, dtype=torch.bfloat16)]
    """
    case = case_of(tmp_path, body, jumpy=True)
    (best,) = case.noise.tensors
    assert int((best != case.truth.tensors[0]).sum()) > oracle.most_isolated(512)  # by rounding to bfloat16
    assert class_of(case, best) == case.own
    assert class_of(case, torch.where(torch.arange(512) < 40, (best + 1) % 64, best)) is None


@pytest.mark.parametrize(("roundoffs", "found"), [(4.0, "fp32"), (2000.0, None)])
def test_what_errs_a_little_more_before_it_rounds_falls_more_often_to_the_other_side(tmp_path, roundoffs, found):
    body = QUANTISE.replace("(x * 50)", "(x / 0.013)").replace("/ 50", "* 0.013").replace("200, 100", "1500, 1000")
    case = case_of(tmp_path, body, jumpy=True)
    (x,) = case.inputs
    divided = x / 0.013
    noise = (2 * torch.rand_like(x) - 1) * roundoffs * 2.0**-24
    answer = (divided + divided * noise).round() * 0.013
    assert class_of(case, answer, relaxed=False) == found


def test_a_draw_in_which_the_reference_happens_not_to_jump_forbids_none(tmp_path):
    body = QUANTISE.replace("(x * 50)", "(x / 0.013)").replace("/ 50", "* 0.013").replace("200, 100", "1500, 1000")
    case = case_of(tmp_path, body, jumpy=True)
    case.jumps = [oracle.Jumps(torch.zeros_like(case.jumps[0].mask), 0)]
    assert case._may_jump(0, 0, MORE_JUMPS + 1) and not case._may_jump(0, 0, REACH * MORE_JUMPS + 1)


OF_QUANTISED = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2048, 64, bias=False)

        def forward(self, x):
            x, w = self.quantised(x), self.quantised(self.linear.weight)
            return F.linear(x, w)

        def quantised(self, x):
            scale = x.abs().amax(-1, keepdim=True) / 127
            return torch.floor(x / scale + 0.5) * scale

    def get_inputs():
        return [torch.randn(32, 2048)]
"""


def quantised(x: torch.Tensor, roundoffs: float = 0.0) -> torch.Tensor:
    scale = x.abs().amax(-1, keepdim=True) / 127
    noise = 1 + roundoffs * 2.0**-24 * torch.randn_like(x)
    return torch.floor(x * noise * (1 / scale) + 0.5) * scale


@pytest.mark.parametrize("of", ["activations", "weights"])
def test_one_quantised_number_beyond_an_edge_moves_a_row_of_products(tmp_path, of):
    reference = reference_of(tmp_path, OF_QUANTISED)
    facts = audit(reference)
    assert facts.jumpy and reference.has_edges and "ill-conditioned" not in facts.flags
    found = 0
    for _ in range(50):
        case = Case(reference, plans.Plan("base"), reference.draw(), reference.public, 1, facts.jumpy)
        x, w = case.inputs[0], case.weights["linear.weight"]
        near, far = (
            (
                quantised(x, n) if of == "activations" else quantised(x),
                quantised(w, n) if of == "weights" else quantised(w),
            )
            for n in (4.0, 4000.0)
        )
        answer = torch.nn.functional.linear(*near)
        found += oracle.find_inner_jumps(answer, case.truth.tensors[0]).count > 16 * case.jumps[0].count + MORE_JUMPS
        assert class_of(case, answer) == "fp32"
        assert class_of(case, torch.nn.functional.linear(*far)) != "fp32"
        half = torch.nn.functional.linear(arithmetic.round_to_tf32(near[0]), arithmetic.round_to_tf32(near[1]))
        assert class_of(case, half) == "tf32"
        spoilt = answer.clone()
        spoilt[:4] = half[:4]
        assert class_of(case, spoilt) != "fp32"
        if found:
            return
    raise AssertionError("no row was moved")


def test_where_a_move_crosses_too_many_edges_a_step_is_no_rounding(tmp_path):
    """Of 64 rows of 4,096 numbers a move by 16 roundoffs moves half: most elements differ by steps then."""
    reference = reference_of(tmp_path, OF_QUANTISED.replace("2048", "4096").replace("32, ", "64, "))
    facts = audit(reference)
    case = Case(reference, plans.Plan("base"), reference.draw(), reference.public, 1, facts.jumpy)
    operands = quantised(case.inputs[0]), quantised(case.weights["linear.weight"])
    answer = torch.nn.functional.linear(*operands)
    assert facts.jumpy and class_of(case, answer) == "fp32"
    answer[:4] = torch.nn.functional.linear(*map(arithmetic.round_to_tf32, operands))[:4]
    assert class_of(case, answer) == "tf32"


@pytest.mark.parametrize(("factor", "counts"), [(1e-6, False), (1.0, True), (10.0, True)])
def test_a_trial_in_which_rounding_chooses_nearly_everywhere_does_not_count(tmp_path, factor, counts):
    body = """
        class Model(nn.Module):
            def forward(self, x):
                shares = torch.softmax(x, dim=-1)
                weights, chosen = shares.topk(2, dim=-1)
                return torch.zeros_like(shares).scatter(-1, chosen, weights / weights.sum(-1, keepdim=True))

        get_inputs = lambda: [torch.randn(1024, 16)]
    """
    case = case_of(tmp_path, body, factor=factor, jumpy=True)
    assert case.sound is counts
    swapped = torch.zeros_like(case.noise.tensors[0]).scatter(-1, case.inputs[0].topk(2).indices[:, :1], 1.0)
    assert class_of(case, swapped, relaxed=False) is None


@pytest.mark.parametrize(("below", "counts"), [(0.05, True), (0.5, False)])
def test_an_expected_infinity_must_be_matched_and_a_trial_with_many_does_not_count(tmp_path, below, counts):
    body = f"""
        class Model(nn.Module):
            forward = lambda self, x: torch.log(torch.where(x < {below}, 0.0, x))

        get_inputs = lambda: [torch.rand(400)]
    """
    case = case_of(tmp_path, body)
    assert case.sound is counts and class_of(case, *case.noise.tensors) == "fp32"
    assert class_of(case, case.noise.tensors[0].clamp(min=-1e30)) is None


@pytest.mark.parametrize("forward", ["x.exp().log()", "x.exp()"])
def test_a_trial_in_which_numbers_are_beyond_the_range_of_their_dtype_does_not_count(tmp_path, forward):
    body = f"""
        class Model(nn.Module):
            forward = lambda self, x: {forward}

        get_inputs = lambda: [torch.cat([torch.randn(390), torch.full((10,), 100.0)])]
    """
    assert not case_of(tmp_path, body).sound


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


@pytest.mark.parametrize(
    ("forward", "inputs", "factor", "counts"),
    [
        ("x.topk(4).indices", "torch.relu(torch.randn(32, 64))", -1.0, False),
        ("x.topk(4)", "torch.relu(torch.randn(32, 64))", -1.0, True),
        ("x.topk(4)", "torch.relu(torch.randn(32, 64))", 2.0, True),
        ("x.topk(4)", "torch.randn(32, 64)", -1.0, True),
        ("x.topk(4).values", "torch.relu(torch.randn(32, 64))", -1.0, True),
        ("(x.argmax(-1), x > 0)", "torch.randn(32, 64)", -1.0, True),
    ],
)
def test_a_trial_in_which_ties_decide_about_integers_does_not_count(tmp_path, forward, inputs, factor, counts):
    body = f"class Model(nn.Module):\n    forward = lambda self, x: {forward}\n\nget_inputs = lambda: [{inputs}]"
    reference = reference_of(tmp_path, body)
    plan = plans.Plan("negated", factor=factor)
    case = Case.where_stood(
        reference, plan, input_forms.stress(reference.draw(), factor)[0], reference.public, jumpy=False
    )
    assert case is not None and case.sound is counts


@pytest.mark.parametrize(
    ("forward", "factor", "counts"),
    [
        ("x.softmax(-1).topk(2).indices", 1e5, False),
        ("x.softmax(-1).topk(2)", 1e5, True),
        ("x.topk(2)", 1e5, True),
        ("x.softmax(-1).argmax(-1)", 1e5, True),
        ("x.sigmoid().argmax(-1)", 1e5, False),
        ("(x > 0).int().argmax(-1)", 1e5, True),
        ("(x > 0).float().max(-1).indices", 1e5, True),
        ("(x > 0).int().topk(2).indices", 1e5, False),
        ("x.sigmoid().sort(-1, descending=True).indices", 1e5, False),
        ("x.softmax(-1).topk(2)", 2.0, True),
        ("x.argsort(-1)", 0.0, False),
        ("x.argsort(dim=-1, stable=True)", 0.0, True),
        ("x.topk(2).values", 0.0, True),
        ("F.one_hot(x.softmax(-1).topk(2).indices, 16).sum(1) > 0", 1e5, False),
        ("F.one_hot(x.argmin(-1), 16) > 0", 0.0, False),
        ("F.one_hot(x.argmin(-1), 16) > 0", 2.0, True),
    ],
)
def test_a_choice_among_what_was_made_equal_is_no_trial(tmp_path, forward, factor, counts):
    body = (
        f"class Model(nn.Module):\n    forward = lambda self, x: {forward}\n\nget_inputs = lambda: [torch.randn(8, 16)]"
    )
    reference = reference_of(tmp_path, body)
    audit(reference)
    plan = plans.Plan("scaled", factor=factor) if factor else plans.BLANK
    case = Case(reference, plan, [reference.draw()[0] * factor], reference.public, drawing.secret_seed(), jumpy=False)
    assert case.sound is counts


LOGARITHM_OF_NOTHING = """
    class Model(nn.Module):
        def forward(self, x):
            return (x @ x.t()).abs().log(), (x * 64).round()

    get_inputs = lambda: [torch.randn(128, 256)]
"""


def test_what_is_ill_conditioned_in_a_task_that_jumps_has_not_jumped(tmp_path):
    reference = reference_of(tmp_path, LOGARITHM_OF_NOTHING)
    assert audit(reference).jumpy
    for _ in range(4):
        case = Case(
            reference, plans.Plan("base"), reference.draw(), reference.public, drawing.secret_seed(), jumpy=True
        )
        (x,) = case.inputs
        other, rounded = ((3 * x) @ x.t()).div(3).abs().log(), (x * 64).round()
        assert case.passes(case.errors(Answer("", [other, rounded])), "fp32")
        other[::8] += 5e-4 * other[::8].abs()
        assert not case.passes(case.errors(Answer("", [other, rounded])), "fp32")


CHOICE_BY_WEIGHTS = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(64, 8, bias=False)

        def forward(self, x):
            return FORWARD

    def get_inputs():
        return [torch.randn(256, 64)]
"""


@pytest.mark.parametrize(
    ("forward", "jumpy", "rows", "counts"),
    [
        ("self.linear(x).topk(2).indices", False, True, False),
        ("self.linear(x).topk(2)", False, True, True),
        ("self.linear(x).topk(2).indices.sum(-1)[:, None] * x", True, True, False),
        ("self.linear(x).topk(2).indices.sum(-1)[:, None] * x", False, True, False),
        ("self.linear(x).topk(2)", False, False, True),
        ("self.linear(x).topk(2).values", False, True, True),
        ("F.linear(x, self.linear.weight.sign()).sum(1)", True, True, True),
        ("F.linear(x, F.normalize(self.linear.weight, dim=1))", False, True, True),
    ],
    ids=[
        "places",
        "beside-places",
        "what-they-choose",
        "no-jumps-known",
        "no-rows",
        "values",
        "compared-with-zero",
        "sizes",
    ],
)
def test_a_trial_in_which_equal_rows_of_weights_decide_does_not_count(tmp_path, forward, jumpy, rows, counts):
    reference = reference_of(tmp_path, CHOICE_BY_WEIGHTS.replace("FORWARD", forward))
    value = reference.public["linear.weight"].clone()
    value.view(-1)[::9] = 0
    if rows:
        value[[2, 5]] = 0
    case = Case.where_stood(reference, plans.PRUNED, reference.draw(), {"linear.weight": value}, jumpy=jumpy)
    assert case is not None and case.sound is counts


# ── no part of a tensor covers another ────────────────────────────────────────────────────────────

NOISY = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(256, 64)

        def forward(self, x):
            out, large = self.linear(x), 1024 * x[:, :1]
            return torch.cat([(out[:, :1] + large) - large, out[:, 1:]], 1)

    def get_inputs():
        return [torch.randn(64, 256)]
"""


@pytest.mark.parametrize("cast", [torch.Tensor.half, torch.Tensor.bfloat16])
def test_one_noisy_element_excuses_only_itself(tmp_path, cast):
    case = case_of(tmp_path, NOISY)
    low = product(case, cast).float()
    assert case.errors(dataclasses.replace(case.noise, tensors=[low])).worst[0] < 200 * case.noise_errors[0]
    assert class_of(case, low) not in ("fp32", None) and class_of(case, low, relaxed=False) in ("tf32", None)
    assert class_of(case, product(case)) == "fp32" or class_of(case, case.noise.tensors[0]) == "fp32"


DROWNED = """
    class Model(nn.Module):
        def forward(self, x):
            return torch.cat([1e10 * x.abs().sum(1, keepdim=True), torch.softmax(x, 1)], 1)SHAPE

    def get_inputs():
        return [torch.randn(64, 31)]
"""


@pytest.mark.parametrize("shape", ["", ".t()", ".view(8, 8, 32).transpose(1, 2)"])
def test_small_slices_are_not_lost_beside_large_ones(tmp_path, shape):
    case = case_of(tmp_path, DROWNED.replace("SHAPE", shape))
    right = case.noise.tensors[0]
    drowned = torch.where(right > 1e3, right, 0.0)
    assert class_of(case, right) == "fp32" and class_of(case, right * (1 + 3e-7)) == "fp32"
    assert max(case.errors(dataclasses.replace(case.noise, tensors=[drowned])).worst) < 5e-7
    assert class_of(case, drowned) == "relaxed" and class_of(case, drowned, relaxed=False) is None


COLUMN = """
    class Model(nn.Module):
        def forward(self, x):
            return torch.sigmoid(x)

    def get_inputs():
        return [8 * torch.randn(4096, 1)]
"""


def test_the_rows_of_a_column_are_elements_and_many_of_them_a_slice(tmp_path):
    case = case_of(tmp_path, COLUMN)
    (x,) = case.inputs
    assert class_of(case, torch.tanh(x / 2) / 2 + 0.5) == "fp32"
    small = case_of(tmp_path, COLUMN.replace("torch.sigmoid(x)", "torch.cat([x[:2048], x[2048:] * 1e-9])"))
    drowned = small.noise.tensors[0].clone()
    drowned[3000:3064] = 0
    assert class_of(small, drowned) == "relaxed"


def test_what_overflows_in_the_answers_dtype_must_overflow(tmp_path):
    body = """
    class Model(nn.Module):
        def forward(self, x):
            return torch.cat([torch.exp(500 + x[:, :1]), torch.tanh(x)], 1)

    def get_inputs():
        return [torch.randn(16, 32)]
    """
    case = case_of(tmp_path, body)
    right = case.noise.tensors[0]
    assert class_of(case, right) == "fp32" and case.bounds("fp32")[0] < 1e-5
    assert class_of(case, torch.where(torch.isinf(right), right, 0.0)) is None
    assert class_of(case, right.clamp(max=1e38)) is None


def test_elements_that_overflow_on_the_way_do_not_widen_the_bound(tmp_path):
    body = """
    class Model(nn.Module):
        def forward(self, x):
            return torch.cat([torch.exp(100 + x[:1]) * 1e-30 * 1e-13, torch.tanh(x)], 0).sum(1)

    def get_inputs():
        return [torch.randn(100, 32)]
    """
    case = case_of(tmp_path, body)
    right = case.noise.tensors[0]
    assert torch.isinf(right[0]) and class_of(case, right) == "fp32" and case.bounds("fp32")[0] < 1e-4
    assert class_of(case, torch.where(torch.isinf(right), right, 0.0)) is None


# ── exact tasks ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("forward", ["torch.relu(x)", "x.t().contiguous()", "x.amax(1)", "x * 0.5"])
def test_what_the_reference_does_without_error_is_equal(tmp_path, forward):
    body = f"""
    class Model(nn.Module):
        def forward(self, x):
            return {forward}

    def get_inputs():
        return [torch.randn(16, 32)]
    """
    reference = reference_of(tmp_path, body)
    audit(reference)
    assert reference.lifted == [0]
    case = Case(reference, plans.Plan("base"), reference.draw(), reference.public, 1, False)
    right = case.noise.tensors[0]
    off = right.clone().flatten()
    off[off.abs().argmax()] *= 1 + 2.0**-22
    assert case.bounds("fp32") == [0.0] and class_of(case, right) == "fp32"
    assert class_of(case, off.view(right.shape)) == "relaxed"


def test_a_truth_that_is_rounded_itself_demands_no_equality(tmp_path):
    body = """
    class Model(nn.Module):
        def forward(self, x):
            return torch.from_numpy(x.numpy().astype("float32") * 3).to(x.dtype)

    def get_inputs():
        return [torch.randn(16, 32)]
    """
    reference = reference_of(tmp_path, body)
    audit(reference)
    assert reference.lifted == []
    case = Case(reference, plans.Plan("base"), reference.draw(), reference.public, 1, False)
    assert class_of(case, case.noise.tensors[0] * (1 + 1e-7)) == "fp32"


# ── far from ordinary inputs ──────────────────────────────────────────────────────────────────────


def test_range_trials_ask_for_relaxed_and_of_tf32_for_its_own_bound(wide):
    noise, bf16 = (wide.errors(dataclasses.replace(wide.noise, tensors=[t])) for t in (
        wide.noise.tensors[0], product(wide, torch.Tensor.bfloat16).float(),
    ))  # fmt: skip
    zeros = wide.errors(dataclasses.replace(wide.noise, tensors=[torch.zeros_like(wide.noise.tensors[0])]))
    assert wide.class_in_range(noise, "fp32", relaxed=True) == "fp32"
    assert wide.class_in_range(bf16, "fp32", relaxed=False) == "fp32"
    assert wide.class_in_range(zeros, "fp32", relaxed=True) is None
    assert wide.class_in_range(noise, "tf32", relaxed=True) in ("fp32", "tf32")
    assert wide.class_in_range(bf16, "tf32", relaxed=True) == "relaxed"
    assert wide.class_in_range(bf16, "tf32", relaxed=False) is None


@pytest.mark.parametrize(
    ("error", "said"), [(3e-6, "up to 50 times the float32 noise"), (1e-7, "slices that are small")]
)
@pytest.mark.parametrize("blank", [0.5, None])
def test_what_precision_is_said_to_be_is_that_of_answers_to_numbers(wide, error, said, blank):
    checker = Checker(wide.reference, None, None, _last=wide)
    checker.evidence.precision_class = "relaxed"
    for kind, found in (("base", error), (plans.BLANK.kind, blank)):
        checker.evidence.trials.append(
            {"kind": kind, "error": found, "reference_error": 6e-8, "bound": 1e-6, "passed_class": "relaxed"}
        )
    checker._say_precision()
    (finding,) = checker.evidence.findings
    assert finding["check"] == "precision" and said in finding["evidence"] and "blank" not in finding["evidence"]


@pytest.mark.parametrize("before", ["fp32", "tf32"])
def test_a_timed_answer_never_makes_the_class_a_better_one(wide, before):
    def after(tensor: torch.Tensor, *, relaxed: bool = True) -> str | None:
        errors = wide.errors(dataclasses.replace(wide.noise, tensors=[tensor]))
        return wide.class_when_timed(errors, before, relaxed=relaxed)

    bf16 = product(wide, torch.Tensor.bfloat16).float()
    assert after(wide.noise.tensors[0]) == before
    assert after(product(wide, arithmetic.round_to_tf32)) == "tf32"
    assert after(bf16) == "relaxed" and after(bf16, relaxed=False) is None
    assert after(torch.zeros_like(bf16)) is None


def test_half_precision_is_told_from_tf32_by_timed_calls_far_from_ordinary_inputs(tmp_path):
    reference, plan = reference_of(tmp_path, WIDE.replace(".DTYPE()", "")), plans.NEAR_PLANS[0]
    inputs, _ = input_forms.stress(reference.draw(), plan.factor)
    far = Case(reference, plan, inputs, reference.public, 1, False)

    def after(before: str, tensor: torch.Tensor, *, relaxed: bool = True) -> str | None:
        return far.class_when_timed(
            far.errors(dataclasses.replace(far.noise, tensors=[tensor])), before, relaxed=relaxed
        )

    fp16, bf16 = (product(far, kind).float() for kind in (torch.Tensor.half, torch.Tensor.bfloat16))
    assert after("tf32", far.noise.tensors[0]) == "tf32" and after("fp32", fp16) is None
    assert after("tf32", fp16) == "relaxed" and after("tf32", fp16, relaxed=False) is None
    assert after("tf32", bf16) == "tf32", "not for a little: each call has its luck"


def test_the_class_of_a_candidate_is_that_of_its_worst_trial():
    assert classes.least_exact(["fp32", "tf32", "fp32"]) == "tf32"
    assert classes.least_exact(["fp32", None]) is None and classes.least_exact([]) is None


ELU = """
    class Model(nn.Module):
        def forward(self, x):
            return F.elu(x)

    def get_inputs():
        return [torch.randn(64, 64)]
"""


def small_case(folder, plan: plans.Plan, *, ordinary: bool) -> Case:
    reference = reference_of(folder, ELU)
    inputs, _ = input_forms.stress(reference.draw(), plan.factor)
    base = Case(reference, plans.Plan("base"), reference.draw(), reference.public, 1, False)
    sizes = [float(oracle.rms_of(t)) for t in base.truth.tensors] if ordinary else []
    return Case(reference, plan, inputs, reference.public, 1, False, sizes)


def by_exponential(case: Case) -> torch.Tensor:
    x = case.inputs[0]
    return torch.where(x > 0, x, torch.exp(x) - 1.0)


def test_what_cancellation_leaves_of_a_small_answer_is_float32(tmp_path):
    shrunk = small_case(tmp_path, plans.Plan("shrunk", factor=2.0**-6), ordinary=True)
    assert class_of(shrunk, by_exponential(shrunk)) == "fp32"
    for kept in (torch.float16, torch.bfloat16):
        assert class_of(shrunk, shrunk.noise.tensors[0].to(kept).float()) == "relaxed"
    # Smaller still: at 2^-6 it is the luck of the draw whether so much is more than other orders of rounding leave.
    strict = small_case(tmp_path, plans.Plan("shrunk", factor=2.0**-9), ordinary=False)
    assert class_of(strict, by_exponential(strict)) == "relaxed"


def test_far_below_ordinary_inputs_zeros_are_wrong_and_cancellation_is_not(tmp_path):
    near = small_case(tmp_path, plans.RANGE_PLANS[1], ordinary=True)

    def after(before: str, tensor: torch.Tensor) -> str | None:
        return near.class_in_range(near.errors(dataclasses.replace(near.noise, tensors=[tensor])), before, relaxed=True)

    assert after("fp32", by_exponential(near)) == "fp32"
    assert after("tf32", by_exponential(near)) == "relaxed", "fp16 rounds to nothing here, and must be seen to"
    assert after("fp32", torch.zeros_like(near.noise.tensors[0])) is None


FIRST = """
    class Model(nn.Module):
        def forward(self, shares):
            return shares.argmax(1)

    def get_inputs():
        return [torch.rand(16, 64)]
"""


def test_a_trial_in_which_one_of_two_equal_ones_is_chosen_does_not_count(tmp_path):
    """Told apart once upwards and once downwards by the same steps, each is first in one of them."""
    reference = reference_of(tmp_path, FIRST)
    reference.chooses = True
    determined = 0
    for _ in range(40):
        (shares,) = reference.draw()
        shares[0, 3] = shares[0, 40] = 1.0
        case = Case(reference, plans.UNDRAWN_PLANS[0], [shares], reference.public, drawing.secret_seed(), False)
        determined += case.sound
    assert determined <= 1  # the steps of both may be rounded to the same
