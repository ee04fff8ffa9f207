"""Products of matrices, many of them with work in them that algebra can take out."""

from __future__ import annotations

from functools import partial

from cuda_l1.tasks.synth.sketch import Dim, Sketch
from cuda_l1.tasks.synth.stages.stage import DENSE, FLAT, Stage

_WIDE = frozenset({"wide", "tokens"})


def _kind(s: Sketch) -> str:
    return "tokens" if s.kind == "tokens" else "wide"


def _linear_to(s: Sketch, out: Dim, *, bias: bool = True, name: str = "linear") -> str:
    flops = 2.0 * s.numel * out.value
    return s.layer(name, f"nn.Linear({{}}, {{}}{'' if bias else ', bias=False'})", s.width, out, flops=flops)


def _linear(s: Sketch) -> None:
    out = s.size("width") if s.draw.chance(0.6) else s.width
    s.set(f"{_linear_to(s, out, bias=s.draw.chance(0.75))}({{x}})")
    s.become(_kind(s), *s.shape[:-1], out)


def _head(s: Sketch) -> None:
    """To any number of features, odd ones too."""
    out = s.size("out")
    s.set(f"{_linear_to(s, out)}({{x}})")
    s.become("rows" if s.kind != "tokens" else "column", *s.shape[:-1], out)


def _two_linears(s: Sketch) -> None:
    """One after the other with nothing between: they are one."""
    middle, out = (s.width.times(2) if s.draw.chance(0.5) else s.size("width")), s.width
    first = _linear_to(s, middle, bias=False, name="first")
    s.flops += 2.0 * s.numel / s.width.value * middle.value * out.value
    second = s.layer("second", "nn.Linear({}, {})", middle, out)
    s.set(f"{second}({first}({{x}}))", cost=3)


def _low_rank(s: Sketch) -> None:
    rank = s.draw.choice((4, 8, 16))
    down = s.layer("down", f"nn.Linear({{}}, {rank}, bias=False)", s.width)
    up = s.layer("up", f"nn.Linear({rank}, {{}}, bias=False)", s.width)
    base = _linear_to(s, s.width, name="base")
    s.set(f"{base}({{x}}) + 0.5 * {up}({down}({{x}}))", cost=3)


def _mlp(s: Sketch, act: str) -> None:
    hidden = s.width.times(s.draw.choice((2, 3, 4)))
    s.flops += 4.0 * s.numel * hidden.value
    up, down = (
        s.layer("up", "nn.Linear({}, {})", s.width, hidden),
        s.layer("down", "nn.Linear({}, {})", hidden, s.width),
    )
    s.set(f"{down}({act.replace('{h}', f'{up}({{x}})')})", cost=8)


def _gated_mlp(s: Sketch, act: str) -> None:
    hidden = s.width.times(2)
    s.flops += 6.0 * s.numel * hidden.value
    gate, up = (s.layer(name, "nn.Linear({}, {}, bias=False)", s.width, hidden) for name in ("gate", "up"))
    down = s.layer("down", "nn.Linear({}, {}, bias=False)", hidden, s.width)
    s.set(f"{down}({act}({gate}({{x}})) * {up}({{x}}))", cost=8)


def _parallel(s: Sketch) -> None:
    """Several projections of one tensor: one product would do."""
    names = [_linear_to(s, s.width, bias=False, name=name) for name in ("query", "key", "value")]
    joined = s.draw.choice(("{a} + {b} * {c}", "torch.tanh({a}) * {b} + {c}", "torch.maximum({a}, {b}) - {c}"))
    calls = {key: f"{name}({{x}})" for key, name in zip("abc", names, strict=True)}
    text = joined
    for key, call in calls.items():
        text = text.replace("{" + key + "}", call)
    s.set(text, cost=5)


def _linear_then_reduced(s: Sketch, how: str) -> None:
    """The sum of a linear layer's outputs needs one vector, not a matrix."""
    out = s.size("out")
    s.set(f"{_linear_to(s, out)}({{x}}).{how}(dim=-1)", cost=2)
    s.become("column", *s.shape[:-1])


def _linear_then_mean(s: Sketch) -> None:
    """A linear layer on every token, then the mean over them: the mean can come first."""
    out = s.size("width")
    s.set(f"{_linear_to(s, out)}({{x}}).{s.draw.choice(('mean', 'sum'))}(dim=1)", cost=2)
    s.become("wide", s.shape[0], out)


def _scaled_linear(s: Sketch) -> None:
    """A scale and a shift that the weights could hold."""
    out = s.width
    scale = s.layer("scale", "nn.Parameter(1.0 + 0.2 * torch.randn({}))", out)
    shift = s.layer("shift", "nn.Parameter(0.2 * torch.randn({}))", out)
    s.set(f"{_linear_to(s, out, bias=False)}({{x}}) * {scale} + {shift}", cost=3)


def _normed_linear(s: Sketch) -> None:
    s.set(f"{_linear_to(s, s.width)}({s.layer('norm', 'nn.LayerNorm({})', s.width)}({{x}}))", cost=3)


def _diagonal(s: Sketch) -> None:
    """Times a diagonal matrix, written out."""
    diagonal = s.layer("diagonal", "nn.Parameter(1.0 + 0.3 * torch.randn({}))", s.width)
    s.flops += 2.0 * s.numel * s.width.value
    s.set(f"{{x}} @ torch.diag({diagonal})", cost=2)


def _triangular(s: Sketch) -> None:
    weight = s.layer("weight", "nn.Parameter(torch.randn({}, {}) / {} ** 0.5)", s.width, s.width, s.width)
    s.flops += 2.0 * s.numel * s.width.value
    s.set(f"{{x}} @ torch.{s.draw.choice(('tril', 'triu'))}({weight})", cost=2)


def _symmetric(s: Sketch) -> None:
    weight = s.layer("weight", "nn.Parameter(torch.randn({}, {}) / {} ** 0.5)", s.width, s.width, s.width)
    s.flops += 2.0 * s.numel * s.width.value
    s.set(f"{{x}} @ (0.5 * ({weight} + {weight}.T))", cost=2)


def _chain_of_products(s: Sketch) -> None:
    """(x a) b against x (a b), or a vector at the end: the order decides what it costs."""
    rank = s.draw.choice((2, 4, 8))
    left = s.layer("left", f"nn.Parameter(torch.randn({{}}, {rank}) / {{}} ** 0.5)", s.width, s.width)
    right = s.layer("right", f"nn.Parameter(torch.randn({rank}, {{}}))", s.width)
    s.flops += 2.0 * s.numel * s.width.value
    s.set(f"{{x}} @ ({left} @ {right})", cost=2)


def _gram(s: Sketch) -> None:
    time = s.shape[1]
    s.flops += 2.0 * s.numel * time.value
    s.set("{x} @ {x}.transpose(-2, -1)")
    s.become("column", s.shape[0], time, time)


def _covariance(s: Sketch) -> None:
    s.flops += 2.0 * s.numel * s.width.value
    s.line("centred = x - x.mean(dim=1, keepdim=True)")
    s.set("centred.transpose(-2, -1) @ centred / {x}.shape[1]", cost=2)
    s.become("column", s.shape[0], s.width, s.width)


def _product_with_input(s: Sketch) -> None:
    out = s.size("width")
    other = s.input("weight", (s.width, out), "0.1 * torch.randn({shape})")
    s.flops += 2.0 * s.numel * out.value
    s.set(f"{{x}} @ {other}")
    s.become(_kind(s), *s.shape[:-1], out)


def _distances(s: Sketch) -> None:
    """Squared distances to centres, by differences: the product of matrices is cheaper."""
    centres = s.layer("centres", f"nn.Parameter(torch.randn({(count := s.draw.choice((8, 16, 32)))}, {{}}))", s.width)
    s.bytes += 4 * s.numel * count
    s.set(f"(({{x}}.unsqueeze(-2) - {centres}) ** 2).sum(dim=-1)")
    s.become("column", *s.shape[:-1], Dim(str(count), count))


def _dot(s: Sketch) -> None:
    other = s.input("other", s.shape)
    s.set(f'torch.einsum("...d,...d->...", {{x}}, {other})')
    s.become("column", *s.shape[:-1])


def _outer(s: Sketch) -> None:
    other = s.input("other", s.shape)
    s.bytes += 4 * s.numel * s.width.value
    s.set(f"(x.unsqueeze(-1) * {other}.unsqueeze(-2)).sum(dim=-1)")


def _experts(s: Sketch) -> None:
    """A dense mixture: every expert is computed, and weighted."""
    count = s.draw.choice((2, 4))
    names = f"nn.ModuleList(nn.Linear({{}}, {{}}) for _ in range({count}))"
    experts = s.layer("experts", names, s.width, s.width, flops=2.0 * count * s.numel * s.width.value)
    router = s.layer("router", f"nn.Linear({{}}, {count})", s.width)
    s.line(f"weights = F.softmax({router}(x), dim=-1)")
    s.line(f"outputs = torch.stack([expert(x) for expert in {experts}], dim=-1)")
    s.set("(outputs * weights.unsqueeze(-2)).sum(dim=-1)", cost=2 * count)


def _heads_product(s: Sketch) -> None:
    other = s.input("other", s.shape)
    s.flops += 2.0 * s.numel * s.shape[2].value
    s.set(f"{{x}} @ {other}.transpose(-2, -1)")
    s.become("column", *s.shape[:3], s.shape[2])


STAGES = (
    Stage("linear", "matmul", _WIDE, _linear, 16, 2),
    Stage("linear", "matmul", frozenset({"rows"}), _head, 8, 2),
    Stage("head", "matmul", FLAT, _head, 5, 2),
    Stage("two-linears", "matmul", _WIDE, _two_linears, 5, 2),
    Stage("low-rank", "matmul", _WIDE, _low_rank, 4, 3),
    Stage("mlp-relu", "matmul", _WIDE, partial(_mlp, act="F.relu({h})"), 3, 3),
    Stage("mlp-gelu", "matmul", _WIDE, partial(_mlp, act="F.gelu({h})"), 4, 3),
    Stage("mlp-square", "matmul", _WIDE, partial(_mlp, act="F.relu({h}).square()"), 2, 3),
    Stage("gated-mlp", "matmul", _WIDE, partial(_gated_mlp, act="F.silu"), 4, 4),
    Stage("gelu-gated-mlp", "matmul", _WIDE, partial(_gated_mlp, act="F.gelu"), 2, 4),
    Stage("parallel-projections", "matmul", _WIDE, _parallel, 5, 3),
    Stage("linear-sum", "matmul", FLAT, partial(_linear_then_reduced, how="sum"), 4, 2),
    Stage("linear-mean", "matmul", FLAT, partial(_linear_then_reduced, how="mean"), 3, 2),
    Stage("linear-max", "matmul", FLAT, partial(_linear_then_reduced, how="amax"), 3, 2),
    Stage("linear-mean-tokens", "matmul", frozenset({"tokens"}), _linear_then_mean, 5, 2),
    Stage("scaled-linear", "matmul", _WIDE, _scaled_linear, 5, 2),
    Stage("normed-linear", "matmul", _WIDE, _normed_linear, 5, 3),
    Stage("diagonal-product", "matmul", _WIDE, _diagonal, 4, 2),
    Stage("triangular-product", "matmul", _WIDE, _triangular, 4, 2),
    Stage("symmetric-product", "matmul", _WIDE, _symmetric, 3, 2),
    Stage("product-chain", "matmul", _WIDE, _chain_of_products, 4, 2),
    Stage("gram", "matmul", frozenset({"tokens"}), _gram, 3, 2),
    Stage("covariance", "matmul", frozenset({"tokens"}), _covariance, 3, 3),
    Stage("product", "matmul", _WIDE, _product_with_input, 4, 2),
    Stage("distances", "matmul", _WIDE, _distances, 4, 2),
    Stage("dot", "matmul", DENSE - {"signal", "image"}, _dot, 3, 1),
    Stage("outer", "matmul", frozenset({"wide"}), _outer, 2, 2),
    Stage("experts", "matmul", _WIDE, _experts, 3, 4),
    Stage("head-scores", "matmul", frozenset({"heads"}), _heads_product, 8, 2),
)
