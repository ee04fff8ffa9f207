"""fusion on a CPU: generated graphs where it applies, held to the float64 truth, and near misses it leaves alone."""

from __future__ import annotations

import random

import pytest
import torch
from graphs import Twins, applies, candidate, check, make_task

from cuda_l1.prelude.cpp_vectors import header
from cuda_l1.proposers.techniques.draft import open_draft, render
from cuda_l1.proposers.techniques.fusion import TECHNIQUE

CHAINS = [
    ("F.gelu(x * 1.5 + 0.5) * y", "torch.randn(33, 77), torch.randn(77)"),
    ("F.gelu(x + y, approximate='tanh')", "torch.randn(5, 64), torch.randn(5, 1)"),
    ("F.silu(x) * y", "torch.randn(31, 48).bfloat16(), torch.randn(31, 48).bfloat16()"),
    ("torch.where(x > 0, F.softplus(y), F.elu(x))", "torch.randn(7, 3, 19), torch.randn(3, 1)"),
    ("(x + y.t()).tanh()", "torch.randn(40, 24), torch.randn(24, 40)"),
    ("(x / 0.1).round().clamp(-128, 127) * 0.1 + y", "torch.randn(50, 33), torch.randn(33)"),
    ("(x.to(torch.float32) * y).to(torch.bfloat16)", "torch.randn(9, 20).half(), torch.randn(9, 20).half()"),
    ("x.masked_fill(torch.ones(17, 17, device=x.device).triu(1).bool(), float('-inf')).exp() * y",
     "torch.randn(3, 17, 17), torch.randn(17)"),
    ("F.mish(x).clamp_min(y) - torch.sigmoid(x)", "torch.randn(1, 1), torch.randn(1, 1)"),
    ("torch.sin(x) * torch.cos(y) + torch.erf(x) * torch.log1p(y.abs())", "100 * torch.randn(300), torch.randn(300)"),
    ("torch.maximum(x, y).expm1() + torch.lerp(x, y, 0.3)", "torch.randn(65, 2), torch.randn(2)"),
    ("x.to(torch.float32) * y + 1, (y > 0) & (y < 1), (y * 10).clamp(-9, 9).to(torch.int8)",
     "torch.randint(-127, 128, (40, 19), dtype=torch.int8), torch.randn(19)"),
    ("torch.where(x, y, -y) * 2, x.float() + y, (y * 3).to(torch.int64) + 1", "torch.randn(33, 7) > 0, torch.randn(7)"),
    ("(x[:, ::2] - y[:, 1::2]).square() + 1", "torch.randn(6, 30), torch.randn(6, 30)"),
]  # fmt: skip

ROWS = [
    ("F.softmax(x * y, -1)", "torch.randn(33, 77), torch.randn(77)"),
    ("F.log_softmax(x + y, 1)", "torch.randn(4, 33, 21), torch.randn(21)"),
    ("x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * y", "torch.randn(20, 129), torch.randn(129)"),
    ("F.layer_norm(x + y, (8, 9))", "torch.randn(5, 8, 9), torch.randn(9)"),
    ("F.group_norm(x, 4).relu() + y", "torch.randn(3, 8, 5, 7), torch.randn(8, 1, 1)"),
    ("F.instance_norm(x) * y", "torch.randn(2, 3, 40), torch.randn(40)"),
    ("x.std(-1), x - x.mean(-1, keepdim=True), (x * y).amax(-1)", "torch.randn(12, 64), torch.randn(64)"),
    ("F.cross_entropy(x * y, torch.arange(30, device=x.device) % 11)", "torch.randn(30, 11), torch.randn(11)"),
    ("F.cross_entropy(x, (y > 0).long() * 3 - 100 * (y < -1), label_smoothing=0.1)",
     "torch.randn(30, 5), torch.randn(30)"),
    ("F.mse_loss(x, y), F.huber_loss(x, y), F.l1_loss(x, y)", "torch.randn(70, 80), torch.randn(70, 80)"),
    ("F.kl_div(F.log_softmax(x, -1), F.softmax(y, -1), reduction='batchmean')",
     "torch.randn(8, 50), torch.randn(8, 50)"),
    ("torch.cumsum(x * y, -1)", "torch.randn(6, 300), torch.randn(300)"),
    ("torch.cumsum(x + y, 0)", "torch.randn(70, 13), torch.randn(13)"),
    ("F.normalize(x + y, dim=1)", "torch.randn(3, 16, 10), torch.randn(10)"),
    ("(x * y).sum((0, 2)) * 0.1", "torch.randn(7, 8, 33), torch.randn(33)"),
    ("F.softmax(x.float() * y.float(), -1).to(x.dtype)", "torch.randn(9, 40).bfloat16(), torch.randn(40).bfloat16()"),
    ("F.cosine_similarity(x, y)", "torch.randn(9, 40), torch.randn(9, 40)"),
    ("torch.logsumexp(x + y, -1)", "torch.randn(9, 1), torch.randn(9, 1)"),
    ("(x - y).square().mean() + x.abs().max()", "torch.randn(3, 40000), torch.randn(3, 1)"),
    ("F.softmax(x, -1) + y", "torch.randn(3, 40001), torch.randn(3, 1)"),
]  # fmt: skip

MOVES = [
    ("a, b = x.chunk(2, -1)\nreturn torch.cat([-b, a], -1) * y + x * y.flip(0)",
     "torch.randn(3, 5, 16), torch.randn(5, 16)"),
    ("n = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)\na, b = n.chunk(2, -1)\n"
     "return torch.cat([-b, a], -1) * y + n", "torch.randn(3, 5, 16), torch.randn(5, 16)"),
    ("return F.glu(x + y)", "torch.randn(3, 5, 16), torch.randn(16)"),
    ("return (x * y).transpose(0, 1).reshape(5, 48).softmax(-1)", "torch.randn(3, 5, 16), torch.randn(16)"),
    ("q, k = (x + y).unbind(0)\nreturn q * k, q - k", "torch.randn(2, 5, 16), torch.randn(16)"),
    ("h = F.linear(x, y).relu_()\nh += 1\nreturn h * 2", "torch.randn(6, 8), torch.randn(5, 8)"),
    ("return torch.cumsum((x * y).flip(1), 1).flip(1)", "torch.randn(6, 37), torch.randn(6, 37)"),
    ("return torch.stack([x + y, x * y, x - y, x, y * 2], 1)", "torch.randn(6, 7), torch.randn(6, 7)"),
    ("return torch.cat([F.relu(x), y * 2, x[:, :2]], 1), torch.cat([x * 3, y])",
     "torch.randn(6, 7), torch.randn(6, 7)"),
    ("i = torch.arange(9, device=x.device)\nkeep = i[:, None] >= i\nreturn torch.where(keep, x, -1e9).softmax(-1) * y",
     "torch.randn(2, 9, 9), torch.randn(9)"),
    ("h = x * 2 + 1\nz = h @ y\nreturn F.silu(z) * h + z.exp()", "torch.randn(6, 6), torch.randn(6, 6)"),
]  # fmt: skip

NEAR_MISSES = [
    ("return x @ y", "torch.randn(4, 4), torch.randn(4, 4)"),
    ("return x + y", "torch.randn(4, 4), torch.randn(4, 4)"),
    ("return F.relu(x @ y)", "torch.randn(4, 4), torch.randn(4, 4)"),
    ("return x.t().reshape(2, 8).contiguous()", "torch.randn(4, 4)"),
    ("return x.sum(-1)", "torch.randn(4, 4)"),
    ("return x.transpose(0, 1), x[1:]", "torch.randn(4, 4)"),
    ("x.add_(1)\nx.mul_(2)\nreturn x", "torch.randn(4, 4)"),
    ("return torch.fft.fft(x).abs()", "torch.randn(4, 4)"),
    ("return x.to(torch.complex64) * 2 + 1", "torch.randn(4, 4)"),
    ("return x.sort(-1)[0]", "torch.randn(4, 4)"),
    ("return x.topk(2)[0] * 2", "torch.randn(4, 4)"),
    ("return F.dropout(x, 0.5, True) * 2", "torch.randn(4, 4)"),
    ("return torch.randn_like(x) + x", "torch.randn(4, 4)"),
    ("return x.argmax(-1) + 1", "torch.randn(4, 4)"),
    ("return x[y]", "torch.randn(4, 4), torch.tensor([1, 2])"),
    ("return (x + y) // 3", "torch.randint(0, 9, (4, 4)), torch.randint(0, 9, (4, 4))"),
    ("return F.conv1d(x, y)", "torch.randn(2, 3, 9), torch.randn(4, 3, 3)"),
    ("return x.to(torch.uint8) * 200 + 100", "torch.randn(4, 4).abs()"),
    ("return torch.linalg.inv(x)", "torch.eye(4) + 0.1 * torch.randn(4, 4)"),
    ("return x.median(-1)[0]", "torch.randn(4, 5)"),
    ("v = x.view(-1)\nv.add_(1)\nreturn x * v.sum()", "torch.randn(4, 4)"),
    ("return F.embedding(y, x)", "torch.randn(4, 4), torch.tensor([1, 2])"),
]  # fmt: skip


def _task(body: str, inputs: str, **kwargs: str):
    text = body if "return" in body else f"return {body}"
    names = ["x", "y"][: 1 + ("y" in body)] if "y" in body else ["x"]
    return make_task(text, inputs, args=", ".join(names), **kwargs)


@pytest.mark.parametrize(("body", "inputs"), CHAINS + ROWS + MOVES)
def test_matches_float64(body: str, inputs: str) -> None:
    half = "bfloat16" in inputs or "half" in inputs
    check(_task(body, inputs), "fusion", tolerance=4.0 if half else 16.0)


NORMS = [
    ("return F.relu(self.norm(x)) + 1", "torch.randn(8, 5, 9, 7)", "self.norm = nn.BatchNorm2d(5)"),
    ("return self.norm(x)", "torch.randn(16, 5)", "self.norm = nn.BatchNorm1d(5, affine=False)"),
    ("return self.norm(x) * 2", "torch.randn(6, 5, 7)", "self.norm = nn.BatchNorm1d(5)\nself.eval()"),
    ("return self.norm(x).relu_()", "torch.randn(6, 5, 7)",
     "self.norm = nn.BatchNorm1d(5, track_running_stats=False)"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "inputs", "init"), NORMS)
def test_batch_statistics(body: str, inputs: str, init: str) -> None:
    """Running statistics are updated as the reference updates them (the helper compares buffers)."""
    check(make_task(body, inputs, init), "fusion")


@pytest.mark.parametrize(("body", "inputs"), NEAR_MISSES)
def test_leaves_alone(body: str, inputs: str) -> None:
    assert not applies("fusion", _task(body, inputs))


def _random_body(rng: random.Random) -> str:
    steps = ["F.gelu({0})", "F.silu({0}) + y", "{0} * y", "F.softmax({0}, -1)", "{0} - {0}.mean(-1, keepdim=True)",
             "F.relu({0}) * x", "torch.tanh({0})", "{0} / ({0}.std(0, keepdim=True) + 0.5)", "{0} + x",
             "torch.cumsum({0}, -1)", "F.normalize({0}, dim=0)", "{0}.clamp(-2, 2)"]  # fmt: skip
    lines, last = [], "x"
    for index in range(rng.randint(3, 7)):
        lines.append(f"v{index} = {rng.choice(steps).format(last)}")
        last = f"v{index}"
    return "\n".join([*lines, f"return {last}, v0.sum(-1)"])


@pytest.mark.parametrize("seed", range(12))
def test_random_chains(seed: int) -> None:
    """Chains over a table of operations, with odd sizes, one row, transposed inputs and several results."""
    rng = random.Random(seed)
    rows, columns = rng.choice([(1, 1), (1, 37), (17, 1), (33, 65), (128, 64), (5, 4099)])
    first = f"torch.randn({columns}, {rows}).t()" if rng.random() < 0.3 else f"torch.randn({rows}, {columns})"
    second = rng.choice([f"torch.randn({columns})", f"torch.randn({rows}, 1)", f"torch.randn({rows}, {columns})"])
    body = _random_body(rng)
    if rows == 1:
        body = body.replace(".std(0, keepdim=True)", ".abs()")
    check(make_task(body, f"{first}, {second}", args="x, y"), "fusion")


SPECIAL = [float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1e5, -1e5, 1e-6, -1e-6, 1e18, 1e-42, 88.0, -104.0]


@pytest.mark.parametrize(
    "body",
    ["F.gelu(x) + 0", "F.silu(x) + 0", "torch.tanh(x) * 1", "F.softplus(x) + 0", "F.relu(x) * 2", "x.exp() * 1",
     "torch.log(x) + 0", "x.abs().rsqrt() * 1", "F.softmax(x, -1)", "x.amax(-1) * 2", "x.mean(-1) + 1", "x.erf() * 2",
     "x.clamp(-1, 1) + 0", "torch.sin(x) + 0", "F.log_softmax(x, -1)", "torch.logsumexp(x, -1)", "F.elu(x) * 1",
     "x.round() + x.floor() - x.ceil()", "torch.expm1(x) + 0", "torch.log1p(x) + 0", "F.layer_norm(x, (16,))"],
)  # fmt: skip
def test_special_values(body: str) -> None:
    """inf, nan and zeros come out as in double precision, in kind and sign."""
    task = make_task(f"return {body}", "torch.randn(16, 16)")
    twins = Twins(task, candidate(task, "fusion").source)
    torch.manual_seed(0)
    x = torch.randn(len(SPECIAL) + 3, 16)
    for row, value in enumerate(SPECIAL):
        x[row, row] = value
    with torch.no_grad():
        truth, got = twins.model(x.double()).float(), twins.model_new(x)
    torch.testing.assert_close(got, truth, rtol=1e-5, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("offset", [1, 3])
def test_odd_storage_offset_and_other_strides(offset: int) -> None:
    """Inputs that start anywhere, and inputs laid out otherwise than at capture, give the same answer."""
    task = make_task("return F.softmax(x * 2, -1) + y", "torch.randn(33, 40), torch.randn(40)", args="x, y")
    twins = Twins(task, candidate(task, "fusion").source)
    base, bias = torch.randn(33 * 40 + 8), torch.randn(48)
    x, y = base[offset : offset + 33 * 40].view(33, 40), bias[offset : offset + 40]
    transposed = x.t().contiguous().t()
    with torch.no_grad():
        expected = twins.model(x, y)
        torch.testing.assert_close(twins.model_new(x, y), expected)
        torch.testing.assert_close(twins.model_new(transposed, y.clone()), expected)


def test_results_keep_pytorchs_strides() -> None:
    task = make_task("return (x * 2 + 1).relu()", "torch.randn(6, 7).t(), ")
    twins = Twins(task, candidate(task, "fusion").source)
    x = twins.make_inputs()[0]
    with torch.no_grad():
        assert twins.model_new(x).stride() == twins.model(x).stride()


def test_a_second_import_compiles_nothing(tmp_path, monkeypatch) -> None:
    """The shared library is found by the content of its source, the flags and the machine."""
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    task = make_task("return F.gelu(x) * 2 + 0.125", "torch.randn(4, 5)")
    source = candidate(task, "fusion").source
    Twins(task, source)
    first = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.so")}
    Twins(task, source)
    assert len(first) == 1 and first == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.so")}


def test_two_threads_share_the_work() -> None:
    """The number of threads is PyTorch's at the time of the call; the answer does not depend on it."""
    task = make_task("return F.gelu(x).softmax(-1), (x * x).mean()", "torch.randn(64, 4096)")
    torch.testing.assert_close(*Twins(task, candidate(task, "fusion").source).by_threads())


def test_one_call_in_place_of_many() -> None:
    draft = open_draft(make_task("return F.gelu(x * 2 + 1).softmax(-1) * 3", "torch.randn(8, 64)"), "cpu")
    TECHNIQUE.apply(draft)
    calls = [node for node in draft.graph_module.graph.nodes if node.op == "call_function"]
    assert len(calls) == 1
    assert 'extern "C" void fused_0' in render(draft)


def test_generated_cpp_needs_no_header() -> None:
    assert "#include" not in header(4)
