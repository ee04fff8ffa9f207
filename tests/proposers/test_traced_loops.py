"""traced_loops: functions that are traced, over all shapes and strides, and the regions that are written as such."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from graphs import Twins, applies, candidate, check, make_task

from cuda_l1.config import SCREEN, EvaluatorSettings
from cuda_l1.evaluator import Evaluator
from cuda_l1.evaluator.findings.static import static_findings
from cuda_l1.prelude.traced import TRACED
from cuda_l1.prompts.continuation import continuation
from cuda_l1.proposers.techniques import build
from cuda_l1.types import Outcome

UNARY = {
    "exp": torch.exp, "exp2": torch.exp2, "expm1": torch.expm1, "log": torch.log, "log1p": torch.log1p,
    "tanh": torch.tanh, "sigmoid": torch.sigmoid, "erf": torch.erf, "erfc": torch.erfc, "sin": torch.sin,
    "cos": torch.cos, "tan": torch.tan, "atan": torch.atan, "asin": torch.asin, "acos": torch.acos,
    "sinh": torch.sinh, "cosh": torch.cosh, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "abs": torch.abs,
    "reciprocal": torch.reciprocal, "floor": torch.floor, "ceil": torch.ceil, "trunc": torch.trunc,
    "round": torch.round, "sign": torch.sign,
}  # fmt: skip

FUNCTIONS = """
def soft(x, y):
    v1 = x * y
    v2 = amax(v1)
    v3 = v1 - v2
    v4 = exp(v3)
    v5 = sum(v4)
    return v4 / v5

def two_heavy_passes(x, y):
    v1 = erf(x)
    v2 = v1 * y
    v3 = amin(v2)
    v4 = v2 - v3
    v5 = exp(v4)
    v6 = mean(v5)
    v7 = v5 / v6
    return v7 + v2

def norm(x, y):
    v1 = mean(x)
    v2 = x - v1
    v3 = v2 * v2
    v4 = mean(v3)
    v5 = v4 + 1e-05
    v6 = rsqrt(v5)
    v7 = v2 * v6
    v8 = v7 * y
    return v8, squeeze(v1), v4

def numbers(x, y):
    v1 = x > 0.0
    v2 = y <= 0.5
    v3 = v1 & v2
    v4 = ~v3
    v5 = maximum(x, -0.25)
    v6 = 1.0 - v5
    v7 = where(v4, v6, float("inf"))
    v8 = minimum(v7, y)
    v9 = pow(2.0, v8)
    v10 = 3.0 / v9
    return -v10 - abs(x) / 2
"""

TRUTH: dict[str, Callable[..., Any]] = {
    "soft": lambda x, y: (x * y).softmax(-1),
    "two_heavy_passes": lambda x, y: _heavy(x.erf() * y),
    "norm": lambda x, y: (
        (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, correction=0) + 1e-5).sqrt() * y,
        x.mean(-1),
        x.var(-1, keepdim=True, correction=0),
    ),
    "numbers": lambda x, y: -3.0 / 2.0 ** torch.minimum(
        torch.where(~((x > 0) & (y <= 0.5)), 1 - x.clamp_min(-0.25), torch.inf), y) - x.abs() / 2,
}  # fmt: skip

SHAPES = [
    ((4, 5), (5,)), ((4, 33), (33,)), ((3, 17), (3, 1)), ((2, 3, 7), (3, 1)), ((2, 1, 4, 19), (3, 1, 19)),
    ((2, 9000), (9000,)), ((1,), (1,)), ((3, 40), ()), ((6, 16, 1), (16, 1)), ((70000,), (1,)), ((0, 3), (3,)),
]  # fmt: skip


def _heavy(v: torch.Tensor) -> torch.Tensor:
    e = (v - v.amin(-1, keepdim=True)).exp()
    return e / e.mean(-1, keepdim=True) + v


@pytest.fixture(scope="module")
def scope(tmp_path_factory: pytest.TempPathFactory):
    found: dict[str, Any] = {"torch": torch}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path_factory.mktemp("traced")))
        exec(TRACED + FUNCTIONS, found)
        for name in TRUTH:
            found[name] = found["traced"](found[name])
        yield found


def _close(got: Any, truth: Any) -> None:
    for mine, right in zip(*((v if isinstance(v, tuple) else (v,)) for v in (got, truth)), strict=True):
        assert mine.dtype == torch.float32 and mine.is_contiguous()
        torch.testing.assert_close(mine, right.float(), rtol=3e-6, atol=3e-6, equal_nan=True)


def _layouts(x: torch.Tensor) -> list[torch.Tensor]:
    """The same numbers as they may come: dense, at an odd place, with a step, transposed."""
    odd = torch.empty(x.numel() + 3)[3:].view(x.shape).copy_(x)
    stepped = torch.empty(*x.shape, 2)[..., 0].copy_(x)
    transposed = x.mT.contiguous().mT if x.dim() > 1 else x
    return [x, odd, stepped, transposed]


def _returns_what_torch_does(name: str, shapes: Any) -> bool:
    """All but those whose rows are repeated beside a longer argument: a row's result has a place for each of them."""
    return name != "norm" or torch.broadcast_shapes(*shapes) == shapes[0]


@pytest.mark.parametrize(
    ("name", "shapes"),
    [(name, shapes) for name in TRUTH for shapes in SHAPES if _returns_what_torch_does(name, shapes)],
)
def test_a_function_is_right_for_all_shapes(scope: dict[str, Any], name: str, shapes: Any) -> None:
    torch.manual_seed(0)
    x, y = torch.randn(shapes[0]), torch.randn(shapes[1])
    for one in _layouts(x):
        _close(scope[name](one, y), TRUTH[name](x.double(), y.double()))
    _close(scope[name](x.expand(shapes[0]), y), TRUTH[name](x.double(), y.double()))


def test_every_function_of_one_argument(scope: dict[str, Any]) -> None:
    lines = [f"    v{number} = {name}(x)\n" for number, name in enumerate(UNARY)]
    results = ", ".join(f"v{number}" for number in range(len(UNARY)))
    exec(f"@traced\ndef every(x):\n{''.join(lines)}    return {results}\n", scope)
    torch.manual_seed(0)
    x = torch.cat([torch.randn(41), torch.tensor([0.0, torch.inf, -torch.inf, torch.nan, 1e-42, 88.0, 0.5])])
    for name, got in zip(UNARY, scope["every"](x), strict=True):
        torch.testing.assert_close(got, UNARY[name](x.double()).float(), rtol=1e-6, atol=1e-6, equal_nan=True, msg=name)


def test_reductions_over_several_dimensions(scope: dict[str, Any]) -> None:
    exec(
        "@traced\ndef spread(x, y):\n    v1 = x * y\n    return amax(v1, 2), squeeze(mean(v1, 2, correction=1))\n",
        scope,
    )
    for other in (torch.randn(4, 7), torch.randn(4, 1), torch.randn(3, 1, 1), torch.randn(7, 4).mT, torch.randn(1)):
        x = torch.randn(3, 4, 7)
        for one in _layouts(x):
            v = x.double() * other.double()
            _close(scope["spread"](one, other), (v.amax((1, 2), keepdim=True), v.sum((1, 2)) / 27))


def test_a_long_row_is_added_up_in_double_precision(scope: dict[str, Any]) -> None:
    exec("@traced\ndef average(x):\n    v1 = x * 1.0\n    return squeeze(mean(v1))\n", scope)
    x = torch.rand(2, 1 << 20) + 1000
    truth = x.double().mean(-1)
    assert ((scope["average"](x).double() - truth).abs() / truth).max() <= torch.finfo(torch.float32).eps


def test_nan_goes_through_extremes(scope: dict[str, Any]) -> None:
    x = torch.randn(3, 37)
    x[0, 5] = x[1, 36] = torch.nan
    exec("@traced\ndef extremes(x):\n    return amax(x), amin(x)\n", scope)
    for got, truth in zip(scope["extremes"](x), (x.amax(-1, keepdim=True), x.amin(-1, keepdim=True)), strict=True):
        torch.testing.assert_close(got, truth, equal_nan=True)


def test_no_product_exceeds_its_maximum(scope: dict[str, Any]) -> None:
    """As it would unrounded: by hundreds where it is large, of which exp() is infinite."""
    x, y = torch.randn(3, 64) + 1e5, torch.randn(64) + 1e5
    _close(scope["soft"](x, y), (x * y).double().softmax(-1))


def test_another_dtype_is_refused(scope: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="float32"):
        scope["soft"](torch.randn(3, 4).double(), torch.randn(4))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("max(x, 0.0)", "in place of max"), ("x if x > 0 else -x", "in place of"), ("where(0 < x < 1, x, 0.0)", "&"),
        ("x, 2.0", "computes from its arguments"), ("x, exp(2.0)", "computes from its arguments"),
        ("[x, x * 2]", "computes from its arguments"), ("x > 0", "numbers"), ("sum(x, -1)", "last dimensions"),
        ("sum(x, 0)", "last dimensions"), ("amax(x) + amax(x, 2)", "same number"), ("x ** 2", "unsupported operand"),
        ("clamp(x)", "'clamp' is not defined"),
    ],
)  # fmt: skip
def test_what_it_cannot_say_is_said_at_once(scope: dict[str, Any], body: str, message: str) -> None:
    with pytest.raises((TypeError, ValueError, NameError), match=message):
        exec(f"@traced\ndef wrong(x):\n    return {body}\n", scope)


def test_as_many_tensors_as_it_has_arguments(scope: dict[str, Any]) -> None:
    """The next one would be written to."""
    for count in (1, 3):
        with pytest.raises(TypeError, match=f"takes 2 tensors, not {count}"):
            scope["soft"](*[torch.randn(3)] * count)


def test_names_that_the_task_gives_stay_its_own(scope: dict[str, Any]) -> None:
    """A function may call `sum`; the file around it still has Python's."""
    assert not {"sum", "exp", "round", "pow"} & scope.keys()


CHAINS = [
    ("F.gelu(x * 1.5 + 0.5) * y", "torch.randn(33, 77), torch.randn(77)"),
    ("F.gelu(x + y, approximate='tanh')", "torch.randn(5, 64), torch.randn(5, 1)"),
    ("torch.where(x > 0, F.softplus(y), F.elu(x))", "torch.randn(7, 3, 19), torch.randn(3, 1)"),
    ("(x + y.t()).tanh()", "torch.randn(40, 24), torch.randn(24, 40)"),
    ("F.mish(x).clamp_min(y) - torch.sigmoid(x)", "torch.randn(1, 1), torch.randn(1, 1)"),
    ("F.silu(x @ y) * (x @ y).relu().square(), (x > 0).float() * x", "torch.randn(8, 8), torch.randn(8, 8)"),
    ("F.softmax(x * y, -1)", "torch.randn(33, 77), torch.randn(77)"),
    ("F.log_softmax(x + y, -1) * 2", "torch.randn(4, 33, 21), torch.randn(21)"),
    ("x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * y", "torch.randn(20, 129), torch.randn(129)"),
    ("F.layer_norm(x + y, (9,))", "torch.randn(5, 8, 9), torch.randn(9)"),
    ("x.std(-1), x - x.mean(-1, keepdim=True), (x * y).amax(-1)", "torch.randn(12, 64), torch.randn(64)"),
    ("torch.logsumexp(x * y, -1) + 1", "torch.randn(9, 20), torch.randn(20)"),
    ("F.layer_norm(x, (8, 9)) * y", "torch.randn(5, 8, 9), torch.randn(9)"),
    ("(x + y).relu().mean((2, 3))", "torch.randn(3, 4, 5, 6), torch.randn(4, 1, 1)"),
    ("(x - y).square().mean() + (x - y).abs().amax()", "torch.randn(3, 4000), torch.randn(3, 1)"),
    ("(x - x.mean((1, 2), keepdim=True)) / x.std((1, 2), keepdim=True) * y", "torch.randn(3, 1, 9), torch.randn(9)"),
    ("(x.mT * y).exp().sum((1, 2))", "torch.randn(3, 5, 9), torch.randn(9, 1)"),
    ("(x * y).sum(-1, keepdim=True) + (x * y).mean()", "torch.randn(3, 5), torch.randn(5)"),
    ("F.normalize(x * y, dim=-1)", "torch.randn(9, 20), torch.randn(20)"),
    ("(x * y).mean(-1).mul(3).exp().unsqueeze(-1) * x", "torch.randn(9, 20), torch.randn(20)"),
    ("F.softmax(x[:, ::2] * y.chunk(2)[1] + 1, -1).transpose(0, 1)", "torch.randn(6, 30), torch.randn(30)"),
    ("(x * y).exp().view(5, 6).softmax(-1) + 1", "torch.randn(6, 5), torch.randn(5)"),
]  # fmt: skip

NEAR_MISSES = [
    ("x + y", "torch.randn(4, 4), torch.randn(4, 4)"),
    ("F.relu(x @ y)", "torch.randn(4, 4), torch.randn(4, 4)"),
    ("x.sum(-1) * y.flip(0)", "torch.randn(4, 4), torch.randn(4)"),
    ("F.silu(x) * y", "torch.randn(31, 48).bfloat16(), torch.randn(31, 48).bfloat16()"),
    ("torch.cumsum(x * y, -1)", "torch.randn(6, 3), torch.randn(3)"),
    ("F.softmax(x, 0) * y.flip(-1)", "torch.randn(6, 3), torch.randn(3)"),
    ("(x + y) * 3 // 2", "torch.randint(0, 9, (4, 4)), torch.randint(0, 9, (4, 4))"),
    ("(x * 2 + 1).relu() + y", "torch.randn(4, 5).t(), torch.randn(5, 4).t().contiguous().t()"),
    ("torch.lerp(x, y, 0.25)", "torch.randn(4, 5), torch.randn(5)"),
    ("F.group_norm(x, 2, y)", "torch.randn(3, 4, 5), torch.randn(4)"),
]  # fmt: skip


def _task(body: str, inputs: str):
    return make_task(f"return {body}", inputs, args="x, y" if "y" in body else "x")


@pytest.mark.parametrize(("body", "inputs"), CHAINS)
def test_matches_float64(body: str, inputs: str) -> None:
    check(_task(body, inputs), "traced_loops")


@pytest.mark.parametrize(("body", "inputs"), NEAR_MISSES)
def test_leaves_alone(body: str, inputs: str) -> None:
    assert not applies("traced_loops", _task(body, inputs))


def test_the_text_is_short_and_holds_no_shape() -> None:
    task = make_task(
        "return F.softmax((x @ y) * self.weight, -1) * 2", "torch.randn(24, 56), torch.randn(56, 72)",
        "self.weight = nn.Parameter(torch.randn(72))", args="x, y",
    )  # fmt: skip
    assert continuation(task.source, candidate(task, "traced_loops").source).split("\n\n\n", 2)[2] == (
        """@traced
def fused_0(matmul, weight):
    v1 = matmul * weight
    v2 = amax(v1)
    v3 = v1 - v2
    v4 = exp(v3)
    v5 = sum(v4)
    v6 = reciprocal(v5)
    v7 = v4 * v6
    return v7 * 2.0


class ModelNew(Model):
    def forward(self, x, y):
        matmul = torch.matmul(x, y)
        call = fused_0(matmul, self.weight)
        del matmul
        return call
"""
    )


def test_arguments_keep_clear_of_what_functions_call() -> None:
    task = make_task("return torch.exp(exp * v1) + sum", "torch.randn(3), torch.randn(3), torch.randn(3)",
                     args="exp, v1, sum")  # fmt: skip
    assert "def fused_0(exp_, v1_, sum_):" in check(task, "traced_loops").source


def test_weights_per_channel_are_viewed_beside_a_batch() -> None:
    init = "self.norm = nn.BatchNorm2d(5).eval()\nself.act = nn.PReLU(5)"
    task = make_task("return self.act(self.norm(x * 2)) + 1", "torch.randn(3, 5, 7, 9)", init)
    assert check(task, "traced_loops").source.count("[-1, 1, 1]") == 4


def test_a_long_unrolled_loop_is_left_alone() -> None:
    forward = "s = x\nfor i in range({}):\n    s = (s * 0.5 + y).abs() - x\nreturn s"
    inputs = "torch.randn(4, 5), torch.randn(5)"
    assert applies("traced_loops", make_task(forward.format(20), inputs, args="x, y"))
    assert not applies("traced_loops", make_task(forward.format(100), inputs, args="x, y"))


@pytest.mark.parametrize("body", ["F.softmax(y, -1) * x + 1", "y.exp() * x + 1", "(y - y.mean()) * x + 1"])
def test_what_rows_share_is_computed_once(body: str) -> None:
    source = check(_task(body, "torch.randn(12, 20), torch.randn(20)"), "traced_loops").source
    own = source[source.index("@traced\n") :].partition("class ModelNew")[0]
    assert "exp(" not in own and "mean(" not in own


def test_what_is_alike_is_written_once() -> None:
    forward = "for _ in range(3):\n    x = ((x - y).relu() * 0.5 + y) @ y.T\nreturn (x - 2).relu() * 0.5 + x"
    source = check(make_task(forward, "torch.randn(5, 5), torch.randn(5, 5)", args="x, y"), "traced_loops").source
    assert source.count("@traced") == 2 and source.count(" = fused_0(") == 3 and " = fused_1(" in source


def test_a_weight_in_a_list_has_a_name() -> None:
    init = "self.weights = nn.ParameterList([torch.randn(5), torch.randn(5)])"
    check(make_task("return (x * self.weights[0] + self.weights[1]).tanh()", "torch.randn(4, 5)", init), "traced_loops")


def test_beside_fusion_it_leaves_what_is_taken() -> None:
    task = _task("F.gelu(x) * y @ y.t() * 2 + 1", "torch.randn(4, 5), torch.randn(5)")
    assert build(task, ["fusion", "traced_loops"], "cpu") is None, "nothing is left"
    check(task, "straight_line", "traced_loops")


def test_two_threads_share_the_work() -> None:
    task = _task("F.gelu(x).softmax(-1) + 1", "torch.randn(64, 4096)")
    one, two = Twins(task, candidate(task, "traced_loops").source).by_threads()
    torch.testing.assert_close(one, two, rtol=0, atol=0)


def test_a_reader_of_its_text_finds_nothing_suspect() -> None:
    source = candidate(_task("F.gelu(x) * 2", "torch.randn(4, 5)"), "traced_loops").source
    assert not [found for found in static_findings(source) if found.severity == "suspect"]


@pytest.mark.e2e
@pytest.mark.parametrize("body", ["F.softmax(x * 2 + y, -1) * y", "F.gelu(x @ y.view(-1, 1) * x, approximate='tanh')"])
def test_accepted_in_single_precision(body: str) -> None:
    """Right under secret inputs, odd offsets and stressed inputs."""
    task = _task(body, "torch.randn(256, 512), torch.randn(512)")
    with Evaluator(EvaluatorSettings(device="cpu")) as evaluator:
        found = evaluator.evaluate(
            task, candidate(task, "traced_loops"), protocol=SCREEN, baselines=[], best_of=[], best_so_far=None
        )
    assert found.outcome is Outcome.ACCEPTED, found.detail
    assert found.precision_class == "fp32"
