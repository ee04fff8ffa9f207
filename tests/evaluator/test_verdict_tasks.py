"""Kinds of tasks, through all processes, on a CPU: each with an honest twin and with one that cuts a corner."""

from __future__ import annotations

import hashlib

import pytest
import torch
from evaluator_support import LINEAR, QUICK, candidate_of, checks, task_of
from safetensors.torch import save_file

from cuda_l1.config import SCREEN, Protocol
from cuda_l1.evaluator import eager_candidate
from cuda_l1.types import Evaluation, Origin, Outcome, Weights

pytestmark = pytest.mark.e2e


@pytest.fixture
def judged(evaluator):
    """The verdict on a candidate that is the task's own text with `Model` renamed and a replacement made."""

    def judge(task_text: str, old: str = "", new: str = "") -> Evaluation:
        task = task_of(task_text)
        if old:
            assert old in task_text
        body = task_text.replace(old, new) if old else task_text
        return evaluator.evaluate(
            task, candidate_of(task, body.replace("class Model(", "class ModelNew(")), protocol=QUICK
        )

    return judge


DROPOUT = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(32, 64)
            self.dropout = nn.Dropout(0.3)

        def forward(self, x):
            return self.dropout(torch.relu(self.linear(x)))

    def get_inputs():
        return [torch.randn(16, 32)]
"""


def test_dropout(judged):
    honest = judged(
        DROPOUT,
        "self.dropout(torch.relu(self.linear(x)))",
        "F.dropout(self.linear(x).clamp(min=0), 0.3, self.training)",
    )
    assert honest.accepted, honest.detail
    assert "random" in honest.task_flags and honest.precision_class == "fp32"
    assert {"base", "weights", "seeds"} <= {t.kind for t in honest.correctness.trials}


@pytest.mark.parametrize(
    ("new", "detail"),
    [
        ("torch.relu(self.linear(x))", "over"),
        ("F.dropout(torch.relu(self.linear(x)), 0.5, self.training)", "over"),
        ("F.dropout(torch.relu(self.linear(x)), 0.3)", ""),  # in eval mode too
        ("self.dropout(self.linear(x))", ""),
        ("self.dropout(torch.relu(self.linear(x)))[:1] if self.training else torch.relu(self.linear(x))", "shape"),
        (
            "torch.relu(self.linear(x)) * (0.0 if self.training else 1.0)",
            "over",
        ),
    ],
    ids=["removed", "other-rate", "always", "no-relu", "one-row", "zeros-in-training"],
)
def test_dropout_forged(judged, new, detail):
    forged = judged(DROPOUT, "self.dropout(torch.relu(self.linear(x)))", new)
    assert not forged.accepted and detail in forged.detail, forged.detail


def test_dropout_beside_batch_norm(judged):
    text = DROPOUT.replace("torch.relu(self.linear(x))", "self.norm(self.linear(x))").replace(
        "self.dropout = ", "self.norm = nn.BatchNorm1d(64)\n            self.dropout = "
    )
    assert judged(text).accepted


@pytest.mark.parametrize("momentum", [0.1, 0.12])
def test_what_batch_norm_keeps_under_dropout(judged, momentum):
    """In the mode that is timed alone: in eval mode it keeps nothing."""
    layers = "F.batch_norm(self.linear(x), self.norm.running_mean, self.norm.running_var, self.norm.weight, "
    layers += f"self.norm.bias, self.training, {momentum})"
    text = DROPOUT.replace("torch.relu(self.linear(x))", "self.norm(self.linear(x))").replace(
        "self.dropout = ", "self.norm = nn.BatchNorm1d(64)\n            self.dropout = "
    )
    counted = f"(self.norm.num_batches_tracked.add_(int(self.training)), {layers})[1]"
    found = judged(text, "self.norm(self.linear(x))", counted)
    assert found.accepted == (momentum == 0.1), found.detail
    assert found.accepted or "`norm.running_" in found.detail


KEPT_MASK = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mask", torch.ones(16, 32))

        def forward(self, x):
            mask = (torch.rand_like(x) > 0.4).float()
            self.mask.copy_(mask)
            return x * mask / 0.6

    def get_inputs():
        return [torch.randn(16, 32)]
"""


def test_what_is_kept_of_random_numbers_belongs_to_the_answer(judged):
    assert judged(KEPT_MASK, "(torch.rand_like(x) > 0.4).float()", "torch.empty_like(x).bernoulli_(0.6)").accepted
    for other, part in (
        ("(torch.rand_like(x) > 0.4).float()", "output 0 times `mask` after the call"),
        ("mask[:1]", "`mask` after the call"),
        ("torch.ones_like(x)", "`mask` after the call"),
    ):
        found = judged(KEPT_MASK, "self.mask.copy_(mask)", f"self.mask.copy_({other})")
        assert found.outcome is Outcome.WRONG_VALUES and part in found.detail, found.detail


SAMPLING = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(32, 64)

        def forward(self, x):
            scores = torch.log_softmax(self.head(x), -1)
            noise = -torch.log(torch.empty_like(scores).exponential_())
            tokens = (scores + noise).argmax(-1, keepdim=True)
            return {"token": tokens[:, 0], "score": scores.gather(-1, tokens)[:, 0]}

    def get_inputs():
        return [torch.randn(16, 32)]
"""


def test_the_score_of_a_token_is_that_of_the_one_that_was_drawn(judged):
    old = "(scores + noise).argmax(-1, keepdim=True)"
    assert judged(SAMPLING, old, "torch.multinomial(scores.exp(), 1)").accepted
    two = SAMPLING.replace("scores.gather(-1, tokens)[:, 0]", "scores.gather(-1, tokens)[:, -1]")
    other = judged(two, old, "torch.multinomial(scores.exp(), 2, replacement=True)")
    assert other.outcome is Outcome.WRONG_VALUES and "calls choose alike" in other.detail, other.detail


ALWAYS_RANDOM = """
    class Model(nn.Module):
        def forward(self, x):
            return x * 2 + torch.randn_like(x)

    def get_inputs():
        return [torch.randn(16, 32)]
"""


def test_a_task_that_is_random_in_both_modes(judged):
    assert judged(ALWAYS_RANDOM, "torch.randn_like(x)", "torch.empty_like(x).normal_()").accepted
    assert judged(ALWAYS_RANDOM, "+ torch.randn_like(x)", "").outcome is Outcome.WRONG_VALUES
    assert (
        judged(ALWAYS_RANDOM, "torch.randn_like(x)", "torch.randn(1, 32)[:1] * x[:1] * 0").outcome
        is Outcome.WRONG_VALUES
    )
    assert judged(ALWAYS_RANDOM, "return x * 2 +", "return x[:1] * 2 + 0 *").outcome is Outcome.WRONG_VALUES
    assert judged(ALWAYS_RANDOM, "torch.randn_like(x)", "torch.randn(1, 16, 32)").outcome is Outcome.WRONG_SHAPE


SLOW_NOISE = """
    import random

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(32)
            self.own = torch.Generator().manual_seed(1)

        def forward(self, x):
            for _ in range(200):
                x = x + 0.0
            return self.norm(x) * random.random() + torch.randn_like(x)

    def get_inputs():
        return [torch.randn(16, 32)]
"""


@pytest.mark.parametrize(
    ("noise", "drawn_ahead"),
    [
        ("torch.randn_like(x)", False),
        ("torch.empty_like(x).normal_()", False),
        ("torch.randn(x.shape, generator=torch.Generator().manual_seed(int(torch.randint(2**60, ()))))", False),
        ("torch.randn(x.shape, generator=self.own)", True),
    ],
)
def test_random_numbers_follow_from_the_seed_or_may_have_been_drawn_ahead(evaluator, noise, drawn_ahead):
    task = task_of(SLOW_NOISE)
    body = SLOW_NOISE.replace("range(200)", "range(1)").replace("torch.randn_like(x)", noise)
    result = evaluator.evaluate(
        task, candidate_of(task, body.replace("class Model(", "class ModelNew(")), protocol=QUICK
    )
    assert result.accepted, result.detail
    assert ("drawn-ahead" in checks(result)) is drawn_ahead


def test_a_task_that_no_seed_decides_asks_none_of_its_candidates(judged):
    text = SLOW_NOISE.replace("torch.randn_like(x)", "torch.randn(x.shape, generator=self.own)")
    found = judged(text, "range(200)", "range(1)")
    assert found.accepted and "drawn-ahead" not in checks(found), found.detail


CHANNELS = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = nn.Dropout2d(0.4)

        def forward(self, x):
            y = self.drop(F.rrelu(x, training=self.training))
            return y, torch.bernoulli(torch.sigmoid(x)) if self.training else x

    def get_inputs():
        return [torch.randn(16, 8, 4, 4)]
"""


def test_what_moves_together_in_a_random_task(judged):
    activation = "F.rrelu(x, training=self.training)"
    assert judged(CHANNELS, f"self.drop({activation})", f"F.dropout2d({activation}, 0.4, self.training)").accepted
    single = judged(CHANNELS, f"self.drop({activation})", f"F.dropout({activation}, 0.4, self.training)")
    assert single.outcome is Outcome.WRONG_VALUES and "independent random numbers" in single.detail
    mean = judged(CHANNELS, "torch.bernoulli(torch.sigmoid(x))", "torch.sigmoid(x)")
    assert mean.outcome is Outcome.WRONG_VALUES and "output 1" in mean.detail


HALF = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(64, 32).bfloat16()

        def forward(self, x):
            return F.gelu(self.linear(x))

    def get_inputs():
        return [torch.randn(16, 64).bfloat16()]
"""


def test_half_precision(judged):
    honest = judged(
        HALF,
        "F.gelu(self.linear(x))",
        "F.gelu(F.linear(x.float(), self.linear.weight.float(), self.linear.bias.float())).bfloat16()",
    )
    assert honest.accepted and honest.precision_class == honest.correctness.task_class == "bf16"
    assert judged(HALF, "F.gelu(self.linear(x))", "F.gelu(self.linear(x)).float()").outcome is Outcome.WRONG_DTYPE
    assert judged(HALF, "F.gelu(self.linear(x))", "torch.relu(self.linear(x))").outcome is Outcome.WRONG_VALUES


INTEGERS = """
    class Model(nn.Module):
        def forward(self, x, n):
            return x.cumsum(0), x.argsort(stable=True), x > n

    def get_inputs():
        return [torch.randint(0, 9, (16, 32)), 3]
"""


def test_integer_and_boolean_outputs(judged):
    honest = judged(INTEGERS, "x.cumsum(0)", "torch.cumsum(x, 0)")
    assert honest.accepted and honest.precision_class == "exact"
    assert judged(INTEGERS, "x > n", "x >= n").outcome is Outcome.WRONG_VALUES
    assert judged(INTEGERS, "x.cumsum(0)", "x.cumsum(0).int()").outcome is Outcome.WRONG_DTYPE


RECURRENT = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.Linear(40, 8)
            self.hidden = INITIAL

        def forward(self, x):
            if self.hidden is None:
                self.hidden = torch.zeros(4, 8)
            self.hidden = torch.tanh(self.cell(torch.cat([x, self.hidden], 1)))
            return self.hidden * 2

    def get_inputs():
        return [torch.randn(4, 32)]
"""


@pytest.mark.parametrize("initial", ["torch.randn(4, 8)", "None"], ids=["tensor", "none"])
def test_hidden_state_in_plain_attributes(judged, initial):
    text = RECURRENT.replace("INITIAL", initial)
    honest = judged(text, "return self.hidden * 2", "return self.hidden + self.hidden")
    assert honest.accepted, honest.detail
    assert "stateful" in honest.task_flags and "weights-unmapped" not in checks(honest)
    forgetful = judged(
        text, "return self.hidden * 2", "self.hidden, h = self.hidden * 0, self.hidden\n            return h * 2"
    )
    assert forgetful.outcome is Outcome.WRONG_VALUES and "`hidden` after the call" in forgetful.detail


IN_CONTAINER = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.cache = CONTAINER

        def forward(self, x):
            self.cache[KEY] = torch.tanh(x + self.cache[KEY])
            return self.cache[KEY] * 2

    def get_inputs():
        return [torch.randn(4, 8)]
"""


@pytest.mark.parametrize(("container", "key"), [('{"h": torch.zeros(4, 8)}', '"h"'), ("[torch.zeros(4, 8)]", "0")])
def test_hidden_state_in_lists_and_dicts(judged, container, key):
    text = IN_CONTAINER.replace("CONTAINER", container).replace("KEY", key)
    honest = judged(text, f"self.cache[{key}] * 2", f"self.cache[{key}] + self.cache[{key}]")
    assert honest.accepted and "stateful" in honest.task_flags, honest.detail
    assert judged(text, f"torch.tanh(x + self.cache[{key}])", "torch.tanh(x)").outcome is Outcome.WRONG_VALUES


MOVING_AVERAGE = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("average", torch.zeros(8))
            self.register_buffer("steps", torch.zeros((), dtype=torch.long))

        def forward(self, x):
            self.steps += 1
            self.average.mul_(0.9).add_(x.mean(0), alpha=0.1)
            return x - self.average

    def get_inputs():
        return [torch.randn(64, 8)]
"""


def test_buffers_that_a_call_changes(judged):
    update = "self.average.mul_(0.9).add_(x.mean(0), alpha=0.1)"
    assert judged(MOVING_AVERAGE, update, "self.average.lerp_(x.mean(0), 0.1)").accepted
    uncounted = judged(MOVING_AVERAGE, "self.steps += 1", "pass")
    assert uncounted.outcome is Outcome.WRONG_VALUES and "`steps` after the call" in uncounted.detail
    assert judged(MOVING_AVERAGE, update, "pass").outcome is Outcome.WRONG_VALUES


DELTA = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = torch.zeros(4, 8)

        def forward(self, x):
            change = x - 0.5 * self.last
            self.last = x
            return change

    def get_inputs():
        return [torch.randn(4, 8)]
"""


@pytest.mark.parametrize("begin", ["self.last = torch.zeros(4, 8)", 'self.register_buffer("last", torch.zeros(4, 8))'])
def test_a_model_that_keeps_its_input(judged, begin):
    task = DELTA.replace("self.last = torch.zeros(4, 8)", begin)
    assert judged(task, "x - 0.5 * self.last", "torch.sub(x, self.last, alpha=0.5)").accepted
    blind = judged(task, "x - 0.5 * self.last", "x * 1")  # right from zeros, where every verdict starts
    assert blind.outcome is Outcome.WRONG_VALUES and "trial" in blind.detail, blind.detail


MIXTURE = """
    class Model(nn.Module):
        def forward(self, x, weights, mask):
            return torch.einsum("ebd,e->bd", x * mask, weights)

    def get_inputs():
        return [torch.randn(12, 32, 8), torch.full((12,), 1 / 12), torch.tensor([1.0, 0, 0, 1, 0, 0, 0, 1])]
"""


def test_arguments_that_are_the_same_in_every_draw_are_read_all_the_same(judged):
    read = 'torch.einsum("ebd,e->bd", x * mask, weights)'
    assert judged(MIXTURE, read, "(weights @ x.flatten(1)).view(32, 8) * mask").accepted
    own_mask = "torch.tensor([1.0, 0, 0, 1, 0, 0, 0, 1])"
    for unread, trial in (("x.mean(0) * mask", "choices"), (f"weights @ x.flatten(1) * {own_mask}.repeat(32)", "rows")):
        known = judged(MIXTURE, read, f"({unread}).view(32, 8)")
        assert known.outcome is Outcome.WRONG_VALUES and f"trial `{trial}`" in known.detail, unread


ELMAN = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.out = nn.RNN(16, 16, batch_first=True), nn.Linear(16, 8)

        def forward(self, x):
            return self.out(self.rnn(x)[0][:, -1])

    def get_inputs():
        return [torch.randn(4, 128, 16)]
"""


def test_what_a_recurrence_forgets_under_its_first_weights_is_read_all_the_same(judged):
    honest = judged(ELMAN, "self.rnn(x)[0][:, -1]", "self.rnn(x)[1][0]")
    assert honest.accepted and honest.precision_class == "fp32"
    cut = judged(ELMAN, "self.rnn(x)", "self.rnn(x[:, -64:])")
    assert cut.outcome is Outcome.WRONG_VALUES
    assert any(f"trial `{kind}`" in cut.detail for kind in ("history", "large-weights")), cut.detail  # as biases fall


SLOPED = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(64, 64)

        def forward(self, x):
            return F.leaky_relu(self.linear(x), 0.01)

    def get_inputs():
        return [torch.randn(32, 64)]
"""


def test_a_slope_that_is_one_percent_off_is_no_matter_of_tf32(judged):
    honest = judged(SLOPED, "F.leaky_relu(self.linear(x), 0.01)", "F.prelu(self.linear(x), torch.tensor([0.01]))")
    assert honest.accepted and honest.precision_class == "fp32"
    assert judged(SLOPED, "0.01", "0.0101").precision_class == "relaxed"


NORM = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(32)

        def forward(self, x):
            return self.norm(x)

    def get_inputs():
        return [torch.randn(64, 32)]
"""


def test_batch_norm_in_training_mode(judged):
    formula = (
        "F.batch_norm(x, self.norm.running_mean, self.norm.running_var, self.norm.weight, self.norm.bias, {}, 0.1)"
    )
    honest = judged(NORM, "self.norm(x)", "(self.norm.num_batches_tracked.add_(1), " + formula.format("True") + ")[1]")
    assert honest.accepted, honest.detail
    assert "stateful" in honest.task_flags
    assert judged(NORM, "self.norm(x)", formula.format("False")).outcome is Outcome.WRONG_VALUES
    silent = judged(NORM, "self.norm(x)", "F.batch_norm(x, None, None, self.norm.weight, self.norm.bias, True)")
    assert silent.outcome is Outcome.WRONG_VALUES  # the running statistics are outputs too


NORM_OF_CONV = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(4, 64, 3)
            self.norm = nn.BatchNorm2d(64)

        def forward(self, x):
            return self.norm(self.conv(x))

    def get_inputs():
        return [torch.randn(4, 4, 12, 12)]
"""


def test_the_mean_of_a_constant_channel_may_be_rounded(judged):
    """Without its weights a channel is a bias. PyTorch sums channels-last statistics in float32, others in float64."""
    last = "self.conv(x).contiguous(memory_format=torch.channels_last)"
    honest = judged(NORM_OF_CONV, "self.norm(self.conv(x))", f"self.norm({last}).contiguous()")
    assert honest.accepted and honest.precision_class == "fp32", honest.correctness
    pruned = next(trial for trial in honest.correctness.trials if trial.kind == "pruned")
    assert pruned.error > pruned.bound, "nothing was rounded"


IN_PLACE = """
    class Model(nn.Module):
        def forward(self, x, y):
            x.add_(y)
            return x.sum(-1)

    def get_inputs():
        return [torch.randn(16, 32), torch.randn(16, 32)]
"""


def test_an_argument_that_the_reference_changes_is_an_output(judged):
    assert judged(IN_PLACE, "x.add_(y)", "x += y").accepted
    assert judged(IN_PLACE, "x.add_(y)", "x = x + y").outcome is Outcome.WRONG_VALUES


NESTED = """
    class Model(nn.Module):
        def __init__(self, scale, shift, options):
            super().__init__()
            self.scale, self.rate = nn.Parameter(scale), options["rate"]
            self.register_buffer("shift", shift)

        def forward(self, batch, *, n=2):
            x, (y, flag) = batch["x"], batch["more"]
            return {"sum": x * self.scale + self.shift, "pair": (y * self.rate, [x.mean(), flag])}

    def get_inputs():
        return [{"x": torch.randn(16, 32), "more": (torch.randn(8), True)}]

    def get_init_inputs():
        return [torch.randn(32), torch.linspace(0, 1, 32), {"rate": 0.5}]
"""


def test_nested_inputs_outputs_and_tensors_as_constructor_arguments(judged):
    assert judged(NESTED, "x * self.scale + self.shift", "torch.addcmul(self.shift, x, self.scale)").accepted
    assert judged(NESTED, '"pair": (y', '"other": (y').outcome is Outcome.WRONG_SHAPE
    assert judged(NESTED, "y * self.rate", "y").outcome is Outcome.WRONG_VALUES


SELECTION = """
    class Model(nn.Module):
        def forward(self, x):
            values, places = x.topk(4, dim=-1)
            return {"values": values, "places": places, "mask": x > 0, "more": (x.sum(-1), [x.argmax(-1)])}

    def get_inputs():
        return [torch.randn(64, 32)]
"""


@pytest.mark.parametrize(
    ("old", "new", "outcome"),
    [
        ("x > 0", "x.gt(0)", Outcome.ACCEPTED),
        ("x > 0", "x > 0.01", Outcome.WRONG_VALUES),
        ("x > 0", "(x > 0).float()", Outcome.WRONG_DTYPE),
        ("places,", "places.flip(-1),", Outcome.WRONG_VALUES),
        ("places,", "places.int(),", Outcome.WRONG_DTYPE),
        ("[x.argmax(-1)]", "x.argmax(-1)", Outcome.WRONG_SHAPE),
        ('return {"values": values,', 'return {"mask": None, "values": values,', Outcome.ACCEPTED),
    ],
    ids=["honest", "mask", "float-mask", "places", "int32", "nesting", "other-order"],
)
def test_a_dict_of_numbers_indices_and_masks(judged, old, new, outcome):
    result = judged(
        SELECTION, f'"places": {old}' if old == "places," else old, f'"places": {new}' if old == "places," else new
    )
    assert result.outcome is outcome, result.detail


QUANTISE = """
    class Model(nn.Module):
        def forward(self, x):
            scale = x.abs().amax(-1, keepdim=True) / 127
            return torch.round(x / scale) * scale

    def get_inputs():
        return [torch.randn(64, 512)]
"""


def test_rounding_forgives_isolated_jumps_and_nothing_else(judged):
    honest = judged(QUANTISE, "torch.round(x / scale)", "torch.round(x * (1 / scale))")
    assert honest.accepted and honest.precision_class == "fp32", honest.detail
    assert judged(QUANTISE, "torch.round(x / scale)", "torch.floor(x / scale)").outcome is Outcome.WRONG_VALUES
    assert judged(QUANTISE, "torch.round(x / scale) * scale", "x.clone()").outcome is Outcome.WRONG_VALUES


FLOAT = """
    class Model(nn.Module):
        def forward(self, x):
            return float(x.pow(2).mean()), torch.tanh(x), x.shape[0]

    def get_inputs():
        return [torch.randn(64, 32)]
"""


@pytest.mark.parametrize(
    ("new", "outcome"),
    [
        ("float(torch.dot(x.view(-1), x.view(-1))) / x.numel(), torch.tanh(x), 64", Outcome.ACCEPTED),
        ("1.0, torch.tanh(x), 64", Outcome.WRONG_VALUES),
        ("x.pow(2).mean(), torch.tanh(x), 64", Outcome.WRONG_SHAPE),
        ("float(x.pow(2).mean()), torch.tanh(x), 64.0", Outcome.WRONG_SHAPE),
    ],
)
def test_a_python_float_is_as_exact_as_a_tensor_and_an_integer_is_equal(judged, new, outcome):
    result = judged(FLOAT, "float(x.pow(2).mean()), torch.tanh(x), x.shape[0]", new)
    assert result.outcome is outcome, result.detail
    assert outcome is not Outcome.ACCEPTED or (result.precision_class == "fp32" and not checks(result, "suspect"))


DROWNED = """
    class Model(nn.Module):
        def forward(self, x):
            return torch.cat([1e10 * x.abs().sum(1, keepdim=True), torch.softmax(x, 1)], 1)

    def get_inputs():
        return [torch.randn(64, 31)]
"""


def test_what_is_wrong_in_small_parts_only_is_said_to_be_so(judged):
    result = judged(DROWNED, "torch.softmax(x, 1)", "0 * x")
    (found,) = [f.evidence for f in result.findings if f.check == "precision"]
    assert result.precision_class == "relaxed" and "slices that are small" in found and "looks like" not in found


COUNTED = """
    class Model(nn.Module):
        def forward(self, x, context):
            counts = (x.unsqueeze(1) > context).sum(-1)
            return torch.where(context.any() | ~x.any(), counts, -1)

    def get_inputs():
        return [torch.randn(8, 64), torch.randn(16, 64)]
"""


def test_integers_are_compared_beside_nothing_too(judged):
    assert judged(COUNTED).accepted
    found = judged(COUNTED, "torch.where(context.any() | ~x.any(), counts, -1)", "counts")
    assert found.outcome is Outcome.WRONG_VALUES and "`vacant" in found.detail, found.detail


PLACED = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(64, 128)
            self.place = nn.Parameter(torch.zeros(16, 128))
            nn.init.normal_(self.place, std=0.005)

        def forward(self, x):
            return self.linear(x) + self.place

    def get_inputs():
        return [torch.randn(8, 16, 64)]
"""


@pytest.mark.parametrize(
    ("new", "outcome"), [("std=0.0", Outcome.ACCEPTED), ("mean=1.0", Outcome.WRONG_VALUES)], ids=["little", "much"]
)
def test_a_constructor_that_sets_other_weights_is_told_so(judged, new, outcome):
    result = judged(PLACED, "std=0.005", new)
    told = [f.evidence for f in result.suspects()] if result.accepted else [result.detail]
    assert result.outcome is outcome and (not result.accepted or result.precision_class == "relaxed")
    assert len(told) == 1 and "`place` of `ModelNew` differs" in told[0] and "looks like" not in told[0]
    assert judged(PLACED).precision_class == "fp32"


HALF_INSIDE = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = nn.Linear(64, 128).bfloat16(), nn.Linear(128, 32).bfloat16()

        def forward(self, x):
            return self.down(F.gelu(self.up(x))).float()

    def get_inputs():
        return [torch.randn(32, 64).bfloat16()]
"""
"""In half precision, with answers that are cast."""


@pytest.mark.parametrize(
    ("new", "name"),
    [
        ("self.down(F.gelu(F.linear(x.float(), self.up.weight.float(), self.up.bias.float())).bfloat16())", "bf16"),
        ("F.linear(F.gelu(self.up(x)).float(), self.down.weight.float(), self.down.bias.float())", "bf16"),
        ("(self.down(F.gelu(self.up(x))) * 1.3)", None),
    ],
    ids=["wider-inside", "wider-outside", "wrong"],
)
def test_what_is_computed_in_half_precision_and_cast_is_judged_as_that(judged, new, name):
    found = judged(HALF_INSIDE, "self.down(F.gelu(self.up(x)))", new)
    assert found.precision_class == name and not found.task_flags, (found.detail, found.task_flags)
    assert found.accepted or found.outcome is Outcome.WRONG_VALUES


MASKED_BY_NUMBERS = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(32, 96)

        def forward(self, x):
            q, k, v = self.qkv(x).chunk(3, -1)
            scores = q @ k.transpose(-1, -2) / 32 ** 0.5
            later = torch.ones(16, 16, dtype=torch.bool).triu(1)
            return MASKED.softmax(-1) @ v

    def get_inputs():
        return [torch.randn(8, 16, 32)]
"""
"""Scores of inputs times 1e5 outgrow such numbers."""


@pytest.mark.parametrize(
    "masked",
    ["scores.masked_fill(later, -1e9)", "torch.where(later, -1e4, scores)", "(scores + later.float() * -1e4)"],
    ids=["filled", "where", "added"],
)
def test_what_stands_for_infinity_may_be_infinite_where_scores_outgrow_it(judged, masked):
    task, old = MASKED_BY_NUMBERS.replace("MASKED", masked), f"{masked}.softmax(-1) @ v"
    fused = "F.scaled_dot_product_attention(q, k, v, is_causal=True)"
    honest = judged(task, old, fused)
    assert honest.accepted and honest.precision_class == "fp32", honest.detail
    wrong = judged(task, old, f"{fused} if x.abs().max() < 1e4 else v")
    assert wrong.outcome is Outcome.WRONG_VALUES and "near-1e5" in wrong.detail, wrong.detail


LIKELIHOOD = """
    class Model(nn.Module):
        def forward(self, x, mean, scale):
            return torch.distributions.Normal(mean, scale).log_prob(x).sum(-1)

    def get_inputs():
        return [torch.randn(64, 32), torch.randn(64, 32), torch.rand(64, 32) + 0.5]
"""


def test_inputs_that_the_reference_refuses_are_put_to_nobody(judged):
    own = "torch.distributions.Normal(mean, scale).log_prob(x)"
    honest = judged(LIKELIHOOD, own, "-0.5 * (((x - mean) / scale) ** 2 + (6.283185307179586 * scale * scale).log())")
    assert honest.accepted and honest.precision_class == "fp32", honest.detail
    assert judged(LIKELIHOOD, own, f"0.8 * {own}").outcome is Outcome.WRONG_VALUES


OVERLAPPING = """
    class Model(nn.Module):
        def forward(self, x, mask, table):
            return (x + mask) * table

    def get_inputs():
        return [torch.randn(16, 32).t(), torch.randn(1, 16).expand(32, 16), torch.randn(64)[::4]]
"""


def test_strided_and_expanded_inputs_arrive_as_they_are(judged):
    strides = "assert (x.stride(), mask.stride(), table.stride()) == ((1, 32), (0, 1), (4,))\n            return"
    assert judged(OVERLAPPING, "return (x", strides + " (x").accepted


# ── weights ───────────────────────────────────────────────────────────────────────────────────────


def test_renamed_parameters_are_found_by_their_values(judged):
    honest = judged(LINEAR, "self.linear", "self.layer")
    assert honest.accepted and not checks(honest, "suspect") - {"clock-mismatch"}


PACKED = """
    class ModelNew(nn.Module):
        def __init__(self, width):
            super().__init__()
            linear = nn.Linear(width, width)
            self.packed = nn.Parameter(torch.cat([linear.weight, linear.bias[:, None]], 1).detach())

        def forward(self, x):
            return torch.relu(x @ self.packed[:, :-1].t() + self.packed[:, -1])
"""
LOADER = """
        def load_reference(self, state):
            with torch.no_grad():
                self.packed.copy_(torch.cat([state["linear.weight"], state["linear.bias"][:, None]], 1))
"""


def test_packed_parameters_keep_a_result_out_of_headlines(evaluator):
    task = task_of(LINEAR)
    result = evaluator.evaluate(task, candidate_of(task, PACKED), protocol=QUICK)
    assert result.accepted and "weights-unmapped" in checks(result, "suspect")
    assert "weights" not in {t.kind for t in result.correctness.trials}


def test_a_loader_of_the_candidates_takes_packed_parameters(evaluator):
    task = task_of(LINEAR)
    result = evaluator.evaluate(task, candidate_of(task, PACKED.rstrip() + "\n" + LOADER), protocol=QUICK)
    assert result.accepted and "weights-unmapped" not in checks(result)
    assert "weights" in {t.kind for t in result.correctness.trials}


def test_who_has_a_loader_and_draws_other_weights_is_told_where_to_call_it(evaluator):
    own = PACKED.replace(
        "torch.cat([linear.weight, linear.bias[:, None]], 1).detach()", "torch.randn(width, width + 1)"
    )
    task = task_of(LINEAR)
    result = evaluator.evaluate(task, candidate_of(task, own.rstrip() + "\n" + LOADER), protocol=QUICK)
    assert result.outcome is Outcome.WRONG_VALUES and own != PACKED
    assert "end the constructor of `ModelNew` with load_reference" in result.detail


COSINES = """
    class Model(nn.Module):
        def __init__(self, width):
            super().__init__()
            place = torch.arange(width) + 0.0
            self.register_buffer("basis", torch.outer(place, place).mul(0.1).cos() / width, persistent=False)
            self.gain = nn.Parameter(torch.ones(width))

        def forward(self, x):
            return x @ self.basis * self.gain

    def get_inputs():
        return [torch.randn(16, 32)]

    def get_init_inputs():
        return [32]
"""


@pytest.mark.parametrize("kept", [True, False], ids=["saved", "not-saved"])
def test_who_writes_down_a_formula_that_no_checkpoint_holds_needs_no_tensor(evaluator, kept):
    source = COSINES.replace("persistent=False", f"persistent={kept}")
    task = task_of(source)
    other = COSINES.replace('self.register_buffer("basis", ', "self.table = lambda: (").replace(
        ", persistent=False", ""
    )
    other = other.replace("self.basis", "self.table()")
    result = evaluator.evaluate(
        task, candidate_of(task, other.replace("class Model(", "class ModelNew(")), protocol=QUICK
    )
    assert result.accepted and ("weights-unmapped" in checks(result, "suspect")) == kept
    assert ("weights" in {t.kind for t in result.correctness.trials}) != kept


SPARE = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(32, 32)
            self.gain = nn.Parameter(torch.zeros(1))
            self.branch, self.spare = nn.Linear(32, 32), nn.Linear(32, 32)

        def forward(self, x):
            y = torch.tanh(self.linear(x))
            unread = self.spare(y)
            return y + self.gain * self.branch(x)

    def get_inputs():
        return [torch.randn(16, 32)]
"""


@pytest.mark.parametrize(
    ("gain", "init", "branch", "is_spare"),
    [
        ("nn.Parameter(torch.zeros(1))", "self.branch = nn.Linear(32, 32)", "self.branch(x)", True),
        ("nn.Parameter(torch.zeros(1))", "pass", "x", False),
        ("0.0", "pass", "x", False),
    ],
    ids=["never-used", "behind-a-gain-of-zero", "behind-a-number"],
)
def test_a_layer_that_no_answer_depends_on_needs_no_partner(evaluator, gain, init, branch, is_spare):
    source = SPARE.replace("nn.Parameter(torch.zeros(1))", gain)
    task = task_of(source)
    text = source.replace("self.branch, self.spare = nn.Linear(32, 32), nn.Linear(32, 32)", init)
    text = text.replace("unread = self.spare(y)", "").replace("self.branch(x)", branch)
    result = evaluator.evaluate(
        task, candidate_of(task, text.replace("class Model(", "class ModelNew(")), protocol=QUICK
    )
    assert result.accepted and ("weights-unmapped" in checks(result, "suspect")) != is_spare, result.findings
    assert ("weights" in {t.kind for t in result.correctness.trials}) == is_spare


TIED = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(40, 16)
            self.layers = nn.ModuleList([nn.Linear(16, 16)] * 3)
            self.head = nn.Linear(16, 40, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, ids):
            x = self.embed(ids)
            for layer in self.layers:
                x = torch.tanh(layer(x))
            return self.head(x)

    def get_inputs():
        return [torch.randint(0, 40, (4, 10))]
"""
ONE_NAME = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(40, 16)
            self.layer = nn.Linear(16, 16)
            self.half = self.embed.weight.detach().t() / 2

        def forward(self, ids):
            x = self.embed(ids)
            for _ in range(3):
                x = torch.tanh(self.layer(x))
            return x @ (TURNED)
"""


@pytest.mark.parametrize(("turned", "right"), [("self.embed.weight.t()", True), ("self.half * 2", False)])
def test_one_tensor_needs_one_partner(judged, turned, right):
    """Of tied weights, and of a layer that stands in three places, the candidate keeps one name. They are varied."""
    result = judged(TIED, TIED, ONE_NAME.replace("TURNED", turned))
    if right:
        assert result.accepted and not checks(result), (result.detail, result.findings)
        assert "weights" in {t.kind for t in result.correctness.trials}
    else:
        assert result.outcome is Outcome.WRONG_VALUES, result.findings


def test_equal_tensors_need_a_partner_each(judged):
    text = TIED.replace("= self.embed.weight", "= nn.Parameter(self.embed.weight.detach().clone())")
    result = judged(text, text, ONE_NAME.replace("TURNED", "self.embed.weight.t()"))
    assert result.accepted and "weights-unmapped" in checks(result, "suspect")


# ── precision ─────────────────────────────────────────────────────────────────────────────────────

WIDE = LINEAR.replace("[32]", "[512]").replace("16, 32", "16, 512")
CAST = "torch.relu(F.linear(cast(x), cast(self.linear.weight), cast(self.linear.bias)).float())"
TO_TF32 = """
    def cast(t):
        bits = t.detach().contiguous().view(torch.int32)
        return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)

    class Model("""


@pytest.mark.parametrize(
    ("cast", "name"),
    [
        ("cast = torch.Tensor.bfloat16\n\n    class Model(", "relaxed"),
        ("cast = torch.Tensor.half\n\n    class Model(", "relaxed"),
        (TO_TF32.strip(), "tf32"),
    ],
    ids=["bf16", "fp16", "tf32"],
)
def test_reduced_precision_is_named(evaluator, cast, name):
    task = task_of(WIDE)
    body = (
        WIDE.replace("torch.relu(self.linear(x))", CAST)
        .replace("class Model(", cast)
        .replace("class Model(", "class ModelNew(")
    )
    result = evaluator.evaluate(task, candidate_of(task, body), protocol=QUICK)
    assert result.accepted and result.precision_class == name, (result.detail, result.correctness)
    assert ("precision" in checks(result, "suspect")) == (name == "relaxed")


@pytest.mark.parametrize(
    "new",
    [
        "torch.relu(sum(a @ b.t() for a, b in zip(x.split(64, 1), W.split(64, 1))) + self.linear.bias)",
        "torch.relu((x.flip(1) @ W.flip(1).t()) + self.linear.bias)",
        "torch.relu((x[:, None] * W).sum(-1) + self.linear.bias)",
        "torch.relu((W @ x.t()).t() + self.linear.bias)",
    ],
    ids=["split", "backwards", "products", "transposed"],
)
def test_another_order_of_summation_is_full_precision(judged, new):
    result = judged(WIDE, "torch.relu(self.linear(x))", new.replace("W", "self.linear.weight"))
    assert result.accepted and result.precision_class == "fp32", result.correctness


# ── timing ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("buffers", [1, 2, 7])
def test_outputs_that_a_later_call_overwrites_are_noted(judged, buffers):
    made = f"self.__dict__.setdefault('ring', [torch.empty(16, 32) for _ in range({buffers})])"
    turned = "self.ring.insert(0, self.ring.pop())"
    static = f"({made}, {turned}, self.ring[0].copy_(torch.relu(self.linear(x))))[-1]"
    result = judged(LINEAR, "torch.relu(self.linear(x))", static)
    assert result.accepted and "reused-output" in checks(result, "note")


BY_WEAK_REFERENCE = """(
    pool := self.__dict__.setdefault('pool', []),
    block := next((b for b in pool if b[1]() is None), None) or (pool.append([torch.empty(16, 32), None]), pool[-1])[1],
    out := block[0].view(16, 32),
    block.__setitem__(1, __import__('weakref').ref(out)),
    out.copy_(torch.relu(self.linear(x))),
)[-1]"""


def test_memory_that_is_taken_again_once_the_tensor_is_gone_is_noted(judged):
    """A caller may have kept a view of it."""
    result = judged(LINEAR, "torch.relu(self.linear(x))", " ".join(BY_WEAK_REFERENCE.split()))
    assert result.accepted and "reused-output" in checks(result, "note")


OWN_BUFFER = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", torch.randn(64, 32))

        def forward(self, x):
            return x * self.table[:16], self.table[:16], self.table

    def get_inputs():
        return [torch.randn(16, 32)]
"""


def test_what_a_module_returns_of_itself_is_no_memory_that_is_used_again(judged):
    assert checks(judged(OWN_BUFFER, "x * self.table[:16]", "self.table[:16] * x")) == set()
    kept = "self.__dict__.setdefault('kept', torch.empty(16, 32)).copy_(x * self.table[:16])"
    result = judged(OWN_BUFFER, "x * self.table[:16]", kept)
    assert result.accepted and "reused-output" in checks(result, "note")


def test_outputs_in_memory_of_their_own_are_not_noted(judged):
    assert "reused-output" not in checks(judged(LINEAR))


def test_a_record_is_measured_again_at_once(evaluator):
    task = task_of(LINEAR)
    once = evaluator.evaluate(task, eager_candidate(task), protocol=QUICK, best_so_far=1e6)
    twice = evaluator.evaluate(task, eager_candidate(task), protocol=QUICK, best_so_far=1e-6)
    # One pair, or three or five where a doubt of the clock had to be decided; and one more.
    assert len(once.timing().pairs) in (1, 3, 5)
    assert len(twice.timing().pairs) in (2, 4, 6) or "unstable" in checks(twice, "suspect")


def test_a_final_times_candidate_and_baseline_in_fresh_pairs(evaluator):
    task = task_of(LINEAR)
    body = LINEAR.replace("class Model(", "class ModelNew(")
    baseline = candidate_of(task, body).model_copy(
        update={"origins": (Origin(proposer="baselines", techniques=("plain",)),)}
    )
    lost = candidate_of(task, "raise OSError('no compiler')").model_copy(
        update={"origins": (Origin(proposer="baselines", techniques=("lost",)),)}
    )
    short = Protocol(name="final", first_pairs=2, max_pairs=2, pair_s=0.05, max_samples=12)
    candidate = candidate_of(task, body + "\n    # another text")
    result = evaluator.evaluate(task, candidate, protocol=short, baselines=[lost, baseline], best_of=("eager", "plain"))
    assert result.accepted and result.protocol == "final"
    assert {t.opponent for t in result.timings} == {"eager", "plain"}
    assert result.best_baseline_timing().opponent == "plain"
    assert any(f.check == "baseline-failed" and f.evidence.startswith("lost: OSError") for f in result.findings)
    for timing in result.timings:
        assert timing.speedup_low <= timing.speedup <= timing.speedup_high
        pids = [p for pair in timing.pairs for p in (pair.candidate_pid, pair.opponent_pid)]
        assert len(set(pids)) == len(pids) >= 4


FORGETS = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.GRU(16, 16, batch_first=True)
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return self.cell(x)[0][:, -1]

    def get_inputs():
        return [torch.randn(2, 240, 16)]
"""


@pytest.mark.parametrize(("read", "is_honest"), [("x", True), ("x if self.calls <= 50 else x[:, 40:]", False)])
def test_weights_of_a_tasks_own_are_others_once_more_after_timed_calls(evaluator, tmp_path, read, is_honest):
    """What the recurrence has forgotten of 40 steps under the weights of timed calls it remembers under those."""
    plain = FORGETS.replace("            self.calls = 0\n", "").replace("            self.calls += 1\n", "")
    path = tmp_path / "weights.safetensors"
    cell = torch.nn.GRU(16, 16, batch_first=True)
    save_file({f"cell.{name}": value for name, value in cell.state_dict().items()}, path)
    weights = Weights(path=str(path), sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    task = task_of(plain).model_copy(update={"weights": weights})
    body = FORGETS.replace("class Model(", "class ModelNew(").replace("self.cell(x)", f"self.cell({read})")
    found = evaluator.evaluate(task, candidate_of(task, body), protocol=SCREEN)
    is_exact = found.accepted and found.precision_class == "fp32" and not checks(found, "suspect")
    assert is_exact is is_honest, (found.outcome, found.precision_class, found.detail)


ROTARY = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            KEPT

        def forward(self, x):
            if self.cos is None:
                angles = torch.arange(x.shape[1]).float().unsqueeze(1) * torch.tensor([1.0, 0.1, 0.01, 0.001])
                self.cos, self.sin = angles.cos(), angles.sin()
            a, b = x.chunk(2, -1)
            return torch.cat([a * self.cos - b * self.sin, a * self.sin + b * self.cos], -1)

    def get_inputs():
        return [torch.randn(4, 10, 8)]
"""
NORMALISED = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.utils.spectral_norm(nn.Linear(16, 16))

        def forward(self, x):
            return self.linear(x)

    def get_inputs():
        return [torch.randn(8, 16)]
"""
HALVED = """
    class Model(nn.Module):
        def forward(self, x):
            for _ in range(20):
                if not bool((x.abs() > 1).any()):
                    break
                x = x * 0.5
            return x

    def get_inputs():
        return [torch.randn(8, 16)]
"""


@pytest.mark.parametrize(
    "task",
    [
        ROTARY.replace("KEPT", "self.cos = self.sin = None"),
        ROTARY.replace("KEPT", "self.register_buffer('cos', None); self.register_buffer('sin', None)"),
        NORMALISED,
        HALVED,
    ],
    ids=["tables-made-when-needed", "buffers-made-when-needed", "weight-in-two-places", "sometimes-its-input"],
)
def test_a_task_against_its_own_text(judged, task):
    for _ in range(3):
        found = judged(task)
        assert found.accepted, found.detail


LENGTHS = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(16, 16)

        def forward(self, x, lengths):
            valid = torch.arange(x.shape[1]) < lengths.unsqueeze(1)
            pooled = (x * valid.unsqueeze(-1)).sum(1) / lengths.unsqueeze(1)
            return F.dropout(self.out(pooled), 0.2, TRAINING)

    def get_inputs():
        return [torch.randn(16, 64, 16), torch.full((16,), 64)]
"""
SUM = "pooled = (x * valid.unsqueeze(-1)).sum(1) / lengths.unsqueeze(1)"


@pytest.mark.parametrize("training", ["self.training", "True"])
def test_forms_of_inputs_are_put_in_the_mode_that_noise_blurs(judged, training):
    task = LENGTHS.replace("TRAINING", training)
    honest = "pooled = torch.bmm((valid / lengths.unsqueeze(1)).unsqueeze(1), x).squeeze(1)"
    assert judged(task, SUM, honest).accepted
    wrong = judged(task, SUM, f"{SUM}\n            pooled = x.mean(1) if self.training else pooled")
    assert wrong.outcome is Outcome.WRONG_VALUES and "stressed" in wrong.detail


def test_who_asks_whether_calls_are_seeded_is_found_out(judged):
    half = """seed, before = torch.initial_seed(), getattr(self, "seed", None)
            self.seed = seed
            y = torch.relu(self.linear(x))
            return self.dropout(y * (2 * (torch.arange(64) % 2)) if before not in (None, seed) else y)"""
    wrong = judged(DROPOUT, "return self.dropout(torch.relu(self.linear(x)))", half)
    assert wrong.outcome is Outcome.WRONG_VALUES and "mean over 64 seeds" in wrong.detail


def test_who_waits_for_a_row_of_seeded_calls_is_found_after_timed_ones(judged):
    late = """seed, before = torch.initial_seed(), getattr(self, "seed", None)
            self.seed, self.row = seed, getattr(self, "row", 0) + 1 if seed != before else 0
            y = torch.relu(self.linear(x))
            return self.dropout(y * 0.8 if self.row > 18 else y)"""
    wrong = judged(DROPOUT, "return self.dropout(torch.relu(self.linear(x)))", late)
    is_found = "after timed calls" in wrong.detail or "a timed call gave" in wrong.detail  # whichever comes upon it
    assert wrong.outcome is Outcome.WRONG_VALUES and is_found, wrong.detail


COUNTED_DROPOUT = """
    class Model(nn.Module):
        def forward(self, x, mask):
            return {"kept": F.dropout(x, 0.3, self.training), "count": int(mask.sum())}

    def get_inputs():
        return [torch.randn(64, 32), torch.rand(64) > 0.5]
"""


def test_numbers_beside_random_tensors_are_compared_when_timed(judged):
    honest = judged(COUNTED_DROPOUT, "int(mask.sum())", "mask.count_nonzero().item()")
    assert honest.accepted, honest.detail
    late = """self.row = getattr(self, "row", 0) + 1 if torch.initial_seed() != getattr(self, "seed", 0) else 0
            self.seed = torch.initial_seed()
            return {"kept": F.dropout(x, 0.3, self.training), "count": int(mask.sum()) if self.row < 18 else 0}"""
    wrong = judged(COUNTED_DROPOUT, 'return {"kept": F.dropout(x, 0.3, self.training), "count": int(mask.sum())}', late)
    assert wrong.outcome is Outcome.WRONG_VALUES and "a timed call are nested" in wrong.detail, wrong.detail


SLOW_MEANS = """
    import time

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, x):
            time.sleep(0.02)
            there = (x != 0).to(x.dtype)
            return (x * there).sum(1) / there.sum(1).clamp(min=1)

    def get_inputs():
        return [torch.rand(16, 64) + 0.5]
"""


def test_forms_that_no_timed_call_had_are_put_after_them(judged):
    """Of slow calls few are timed, and fewer have inputs of another form."""
    honest = judged(SLOW_MEANS, "there = (x != 0).to(x.dtype)", "there = x.bool().to(x.dtype)")
    assert honest.accepted, honest.detail
    late = """import sys
            frame = sys._getframe()
            while frame is not None and not self.calls:
                self.calls, frame = int(frame.f_code.co_name == "block"), frame.f_back
            there = torch.ones_like(x) if self.calls else (x != 0).to(x.dtype)"""
    wrong = judged(SLOW_MEANS, "there = (x != 0).to(x.dtype)", late)
    assert wrong.outcome is Outcome.WRONG_VALUES and "timed call" in wrong.detail, wrong.detail


LAZY_STATE = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.Linear(32, 32)
            self.h = None

        def forward(self, x):
            past = torch.zeros_like(x) if self.h is None else self.h
            self.h = torch.tanh(x + self.cell(past))
            return self.h * 2

    def get_inputs():
        return [torch.randn(8, 32)]
"""
GROWING = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(32, 32)
            self.cache = []

        def forward(self, x):
            self.cache.append((x, self.out(x)))
            keys, values = (torch.stack([each[n] for each in self.cache], 1) for n in (0, 1))
            share = torch.softmax((keys * x.unsqueeze(1)).sum(-1) / 32, -1)
            return torch.einsum("bn,bnd->bd", share, values)

    def get_inputs():
        return [torch.randn(8, 32)]
"""
IN_AN_OBJECT = """
    from dataclasses import dataclass

    @dataclass(slots=True)
    class Ring:
        held: torch.Tensor
        place: int = 0

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.ring = Ring(torch.zeros(16, 8, 32))

        def forward(self, x):
            self.ring.held[self.ring.place % 16] = x
            self.ring.place += 1
            return self.ring.held[: self.ring.place].sum(0) * x

    def get_inputs():
        return [torch.randn(8, 32)]
"""
ROWS = {
    "begins as nothing": (LAZY_STATE, "x + self.cell(past)", "self.cell(past).add_(x)", "x + self.cell.bias"),
    "grows": (
        GROWING,
        'torch.einsum("bn,bnd->bd", share, values)',
        "torch.bmm(share.unsqueeze(1), values).squeeze(1)",
        "values[:, -1]",
    ),
    "has a place in an object": (
        IN_AN_OBJECT,
        "self.ring.held[: self.ring.place].sum(0) * x",
        "x * self.ring.held[: self.ring.place].sum(dim=0)",
        "x * x",
    ),
}


@pytest.mark.parametrize("kind", ROWS)
def test_what_shows_in_the_next_call_alone(judged, kind):
    task, old, honest, wrong = ROWS[kind]
    found = judged(task, old, honest)
    assert found.accepted and not checks(found, "suspect"), found.detail
    refused = judged(task, old, wrong)
    assert refused.outcome is Outcome.WRONG_VALUES and "`row`" in refused.detail, refused.detail


SHARED = """
    class Norm(nn.Module):
        def __init__(self, stats):
            super().__init__()
            self.stats = stats

        def forward(self, x):
            self.stats["mean"].lerp_(x.mean(0), 0.1)
            return x - self.stats["mean"]

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            stats = {"mean": torch.zeros(16)}
            self.first, self.second = Norm(stats), Norm(stats)
            self.linear = nn.Linear(16, 16)

        def forward(self, x):
            return self.second(self.linear(self.first(x)))

    def get_inputs():
        return [torch.randn(32, 16) + 1]
"""
WINDOW = """
    from collections import deque

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(40, 16))
            self.window = deque([torch.zeros(8, 16) for _ in range(40)], maxlen=40)

        def forward(self, x):
            self.window.append(x.clone())
            return (torch.stack(list(self.window), 1) * self.weight).sum(1)

    def get_inputs():
        return [torch.randn(8, 16)]
"""


def test_a_container_that_two_modules_hold_stays_one(judged):
    honest = judged(SHARED, 'x - self.stats["mean"]', 'x.sub(self.stats["mean"])')
    assert honest.accepted and "ill-conditioned" not in honest.task_flags, honest.detail
    parted = 'Norm(stats), Norm({"mean": torch.zeros(16)})'
    assert judged(SHARED, "Norm(stats), Norm(stats)", parted).outcome is Outcome.WRONG_VALUES


def test_a_long_window_moves_on_as_a_whole(judged):
    product = 'torch.einsum("nbd,nd->bd", torch.stack(list(self.window)), self.weight)'
    honest = judged(WINDOW, "(torch.stack(list(self.window), 1) * self.weight).sum(1)", product)
    assert honest.accepted and not checks(honest, "suspect"), honest.detail
    assert (
        judged(WINDOW, "self.window.append(x.clone())", "self.window[-1] = x.clone()").outcome is Outcome.WRONG_VALUES
    )


LAZY_MASK = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.outlying = None

        def forward(self, x):
            if self.outlying is None:
                self.outlying = x.abs().amax(-1, keepdim=True) > 20
            return torch.softmax(x, -1).masked_fill(self.outlying, 0.5)

    def get_inputs():
        return [torch.randn(64, 16)]
"""


def test_what_is_made_of_the_first_inputs_is_made_of_them(judged):
    honest = judged(LAZY_MASK, "x.abs().amax(-1, keepdim=True) > 20", "(x.abs() > 20).any(-1, keepdim=True)")
    assert honest.accepted and not checks(honest, "suspect"), honest.detail
    none = "torch.zeros(len(x), 1, dtype=torch.bool)"
    assert judged(LAZY_MASK, "x.abs().amax(-1, keepdim=True) > 20", none).outcome is Outcome.WRONG_VALUES
