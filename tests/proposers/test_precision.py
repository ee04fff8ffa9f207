"""bf16 and TF32 touch products of float32 and nothing else, and are proposed only where precision may be lowered."""

from __future__ import annotations

import pytest
import torch
from captures import hold_to_reference
from graphs import Twins, check, make_task, namespace

from cuda_l1.proposers.techniques import bf16, build, load, usable
from cuda_l1.proposers.techniques.draft import open_draft
from cuda_l1.types import Task

ROW = "torch.randn(4, 8)"
BATCH = "torch.randn(2, 4, 8)"
SQUARE = "self.w = nn.Parameter(torch.randn(8, 8))"
MATRIX = {
    "linear": make_task("return self.l(x)", ROW, "self.l = nn.Linear(8, 3)"),
    "linear_without_bias": make_task("return self.l(x)", BATCH, "self.l = nn.Linear(8, 3, bias=False)"),
    "mlp": make_task("return self.b(self.a(x).relu())", ROW, "self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 2)"),
    "matmul": make_task("return x @ self.w", ROW, SQUARE),
    "matmul_of_arguments": make_task("return x @ y", f"{ROW}, torch.randn(8, 3)", args="x, y"),
    "mm": make_task("return torch.mm(x, self.w)", ROW, SQUARE),
    "bmm": make_task("return torch.bmm(x, x.transpose(1, 2))", BATCH),
    "addmm": make_task("return torch.addmm(x, x, self.w)", ROW, SQUARE),
    "baddbmm": make_task("return torch.baddbmm(x @ x.mT, x, x.mT)", BATCH),
    "gram": make_task("return x @ x.t()", ROW),
    "vector": make_task("return torch.mv(self.w, x[0])", ROW, SQUARE),
    "batched_by_broadcast": make_task("return x @ self.w", BATCH, SQUARE),
    "einsum": make_task("return torch.einsum('bij,jk->bik', x, self.w)", BATCH, SQUARE),
    "attention": make_task("return F.scaled_dot_product_attention(x, x, x)", BATCH),
    "causal": make_task("return F.scaled_dot_product_attention(x, x, x, is_causal=True)", BATCH),
    "by_hand": make_task("return (x @ x.mT / 8).softmax(-1) @ x", BATCH),
    "functional_linear": make_task("return F.linear(x, self.w).sigmoid()", ROW, SQUARE),
    "weights_first": make_task("return self.w @ x.t()", ROW, SQUARE),
    "chain": make_task("return x @ self.w @ self.w", ROW, SQUARE),
    "one_of_two": make_task("return (x.cumsum(-1) @ self.w) + x.double().sum().float()", ROW, SQUARE),
}
CONVOLVED = {
    "conv1d": make_task("return self.c(x)", "torch.randn(1, 2, 9)", "self.c = nn.Conv1d(2, 3, 3)"),
    "conv2d": make_task("return self.c(x).relu()", "torch.randn(1, 2, 6, 6)", "self.c = nn.Conv2d(2, 3, 3)"),
    "conv3d": make_task("return self.c(x)", "torch.randn(1, 2, 4, 4, 4)", "self.c = nn.Conv3d(2, 3, 3)"),
    "same": make_task("return self.c(x)", "torch.randn(1, 2, 6, 6)", "self.c = nn.Conv2d(2, 3, 3, padding='same')"),
    "transposed": make_task("return self.c(x)", "torch.randn(1, 2, 6, 6)", "self.c = nn.ConvTranspose2d(2, 3, 3)"),
    "depthwise": make_task("return self.c(x)", "torch.randn(1, 2, 6, 6)", "self.c = nn.Conv2d(2, 2, 3, groups=2)"),
}
NEITHER = {
    "add": make_task("return x + 1", ROW),
    "product_of_elements": make_task("return x * x", ROW),
    "softmax": make_task("return x.softmax(-1)", ROW),
    "layer_norm": make_task("return self.n(x)", ROW, "self.n = nn.LayerNorm(8)"),
    "batch_norm": make_task("return self.n(x)", ROW, "self.n = nn.BatchNorm1d(8)"),
    "sum": make_task("return x.sum(-1)", ROW),
    "scan": make_task("return x.cumsum(-1)", ROW),
    "pooling": make_task("return F.avg_pool2d(x, 2)", "torch.randn(1, 2, 6, 6)"),
    "embedding": make_task("return self.e(x)", "torch.randint(0, 9, (4,))", "self.e = nn.Embedding(9, 5)"),
    "loss": make_task("return F.mse_loss(x, x.sigmoid())", ROW),
    "double": make_task("return x @ x.t()", "torch.randn(4, 8, dtype=torch.float64)"),
    "half_already": make_task("return x @ x.t()", "torch.randn(4, 8, dtype=torch.bfloat16)"),
    "half_linear": make_task("return self.l(x)", "torch.randn(4, 8).half()", "self.l = nn.Linear(8, 3).half()"),
    "double_conv": make_task(
        "return self.c(x)", "torch.randn(1, 2, 9).double()", "self.c = nn.Conv1d(2, 3, 3, dtype=torch.double)"
    ),
    "cast_down": make_task("return (x.bfloat16() @ x.bfloat16().t()).float()", ROW),
    "integers": make_task("return x @ x.t()", "torch.randint(0, 9, (4, 8))"),
    "complex": make_task("return x @ x.t()", "torch.randn(4, 8, dtype=torch.complex64)"),
    "written_in_between": make_task("y = x + 0\nz = y @ self.w\ny.t().add_(1)\nreturn z + y", ROW, SQUARE),
    "identity": make_task("return x", ROW),
    "outer_by_broadcast": make_task("return x[:, :, None] * x[:, None, :]", ROW),
    "norm": make_task("return F.normalize(x)", ROW),
    "distance": make_task("return (x[:, None] - x[None]).square().sum(-1)", ROW),
}  # fmt: skip


@pytest.fixture(autouse=True)
def with_bf16_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bf16, "_has_bf16_units", lambda device: True)


def offered(name: str, task: Task, device: str = "cuda") -> bool:
    return usable(load(name), open_draft(task, device))


@pytest.mark.parametrize("task", [*MATRIX.values(), *CONVOLVED.values()], ids=[*MATRIX, *CONVOLVED])
def test_products_of_float32_go_through_bfloat16(task: Task) -> None:
    source = check(task, "bf16", tolerance=2**17).source  # 2^-7 in place of 2^-24
    assert "torch.bfloat16" in source.split("get_init_inputs")[1]


@pytest.mark.parametrize("task", NEITHER.values(), ids=NEITHER)
def test_everything_else_stays(task: Task) -> None:
    assert not offered("bf16", task)
    assert not offered("tf32", task)


@pytest.mark.parametrize("task", MATRIX.values(), ids=MATRIX)
def test_tf32_is_for_matrix_products_on_a_gpu(task: Task) -> None:
    assert offered("tf32", task)
    assert not offered("tf32", task, "cpu")


@pytest.mark.parametrize("task", CONVOLVED.values(), ids=CONVOLVED)
def test_convolutions_have_tf32_as_shipped(task: Task) -> None:
    assert not offered("tf32", task)


def test_without_bfloat16_units_nothing_is_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bf16, "_has_bf16_units", lambda device: device == "cuda")
    assert not offered("bf16", MATRIX["linear"], "cpu")
    assert offered("bf16", MATRIX["linear"], "cuda")


def test_both_say_how_exact_they_are() -> None:
    assert (load("tf32").precision, load("bf16").precision) == ("tf32", "relaxed")


def test_products_in_a_row_share_casts_and_weights_are_rounded_once() -> None:
    task = make_task(
        "q = self.a(x) @ self.b(x).t()\nreturn q @ x", ROW, "self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)"
    )
    built = build(task, ["bf16"], "cpu")
    assert built is not None
    forward = built.source.split("def forward(self, x):")[-1]
    assert forward.count("torch.Tensor.to(x, torch.bfloat16)") == 1
    assert "self.derived_0(" in forward and "to(p_" not in forward
    assert forward.count("torch.float32)") == 2  # before the transposition and at the end


def test_tf32_is_on_in_forward_only(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    built = build(MATRIX["matmul"], ["tf32"], "cuda")
    assert built is not None
    twins = Twins(MATRIX["matmul"], built.source)
    original = torch.matmul

    def matmul(*args: torch.Tensor) -> torch.Tensor:
        seen.append(torch.get_float32_matmul_precision())
        return original(*args)

    monkeypatch.setattr(torch, "matmul", matmul)
    twins.model_new(torch.randn(4, 8))
    with pytest.raises(RuntimeError):
        twins.model_new(torch.randn(4, 5))
    assert seen == ["high", "high"] and torch.get_float32_matmul_precision() == "highest"


def test_tf32_lies_inside_a_cuda_graph() -> None:
    built = build(MATRIX["matmul"], ["cuda_graph", "tf32"], "cuda")
    assert built is not None
    wraps = [line for line in built.source.splitlines() if line.startswith("ModelNew = ")]
    assert wraps == ["ModelNew = with_tf32_products(ModelNew)", "ModelNew = replayed_as_cuda_graph(ModelNew)"]


@pytest.mark.gpu
@pytest.mark.parametrize(
    "techniques",
    [("bf16",), ("tf32",), ("bf16", "inductor"), ("tf32", "cuda_graph"), ("bf16", "inductor", "cuda_graph")],
)
def test_on_a_gpu_lowered_products_are_near_the_reference(techniques: tuple[str, ...]) -> None:
    built = build(MATRIX["mlp"], techniques, "cuda")
    assert built is not None
    hold_to_reference(built.source, tolerance=5e-2)


# ── torch.compile over rewrites ───────────────────────────────────────────────────────────────────

DIAGONAL = make_task("return torch.diag(self.d) @ x", ROW, "self.d = nn.Parameter(torch.randn(4))")


def test_torch_compile_is_offered_over_rewrites_alone() -> None:
    assert build(DIAGONAL, ["compile"], "cpu") is None  # that is a baseline
    assert build(MATRIX["linear"], ["bf16", "compile"], "cpu") is None  # kept weights are no part of one graph
    assert build(DIAGONAL, ["diagonal_matmul", "compile", "cuda_graph"], "cuda") is None
    assert build(DIAGONAL, ["diagonal_matmul", "compile", "tf32"], "cuda") is None


def test_torch_compile_sees_the_rewritten_forward(monkeypatch: pytest.MonkeyPatch) -> None:
    built = build(DIAGONAL, ["diagonal_matmul", "compile"], "cpu")
    assert built is not None
    monkeypatch.setattr(torch, "compile", lambda forward, **options: _counted(forward, options))
    scope = namespace(built.source)
    reference, new = scope["Model"](), scope["ModelNew"]()
    new.load_state_dict(reference.state_dict())
    x = torch.randn(4, 8)
    for _ in range(2):
        torch.testing.assert_close(new(x), reference(x))
    assert COMPILED == [{"fullgraph": True, "dynamic": False}]
    assert "forward" not in new.__getstate__()


COMPILED: list[dict[str, bool]] = []


def _counted(forward: object, options: dict[str, bool]) -> object:
    COMPILED.append(options)
    return forward
