"""triangular_matmul and symmetric_matmul: zero or mirrored blocks are left out; other structures stay."""

from __future__ import annotations

import pytest
from graphs import applies, check, make_task

N = 260
SQUARE = f"torch.randn({N}, {N}), torch.randn({N}, {N})"
MASK = f"torch.tril(torch.ones({N}, {N}))"
TRIANGLES = [
    "torch.tril(x) @ y",
    "torch.triu(x) @ y",
    "x @ torch.tril(y)",
    "x @ torch.triu(y)",
    "torch.tril(x) @ torch.tril(y)",
    "torch.triu(x) @ torch.triu(y)",
    "torch.tril(x) @ torch.triu(y)",
    "torch.triu(x) @ torch.tril(y)",
    "torch.tril(x @ y)",
    "torch.triu(x @ y)",
    "torch.tril(torch.tril(x) @ torch.tril(y))",
    "torch.triu(torch.tril(x) @ torch.triu(y))",
    "torch.tril(x).t() @ y",
    "x @ torch.triu(y).mT",
    "torch.tril(x, -1) @ y",
    "torch.triu(x, 2) @ y",
    f"(x * {MASK}) @ y",
    f"x @ ({MASK}.t() * y)",
    "(torch.tril(x) * 0.5) @ y",
    "torch.mm(torch.tril(x), torch.tril(y)) @ torch.tril(x)",
    "torch.matmul(torch.tril(x), y).relu()",
]


@pytest.mark.parametrize("text", TRIANGLES)
def test_triangles(text: str) -> None:
    built = check(make_task(f"return {text}", SQUARE, args="x, y"), "triangular_matmul", tolerance=32)
    assert "triangular_matmul(" in built.source.split("class ModelNew")[1]


@pytest.mark.parametrize(
    ("rows", "inner", "columns"), [(300, 260, 256), (256, 300, 270), (256, 280, 520), (512, 256, 256)]
)
@pytest.mark.parametrize(
    "text",
    ["x.tril() @ y", "x.triu() @ y", "x @ y.tril()", "x.triu() @ y.tril()", "x.tril() @ y.tril()", "(x @ y).triu()"],
)
def test_rectangles(text: str, rows: int, inner: int, columns: int) -> None:
    inputs = f"torch.randn({rows}, {inner}), torch.randn({inner}, {columns})"
    check(make_task(f"return {text}", inputs, args="x, y"), "triangular_matmul", tolerance=32)


NO_TRIANGLES = [
    "x @ y",
    "torch.tril(x, 1) @ y",
    "torch.triu(x, -1) @ y",
    "x @ torch.tril(y, 3)",
    "torch.tril(x @ y, 1)",
    "torch.tril(x @ y, -1)",
    "(torch.tril(x) + 1) @ y",
    "torch.tril(x).exp() @ y",
    "torch.tril(x).flip(0) @ y",
    "(torch.tril(x) + torch.triu(y)) @ y",
    "torch.tril(x) + x @ y",
    "torch.tril(x) * y",
    "torch.tril(x.relu() + y)",
    f"(x + {MASK}) @ y",
    f"(x * torch.ones({N}, {N})) @ y",
    f"(x * torch.tril(torch.ones({N}, {N}), 1)) @ y",
    "(x * (y > 0)) @ y",
    "torch.tril(x)[:8, :8] @ y[:8]",
    "torch.tril(x)[None] @ y[None]",
    "torch.tril(x)[0] @ y",
    "(torch.tril(x) @ y[:, :1])",
    "torch.tril(x).softmax(-1) @ y",
    "torch.tril((x @ y) * 2)",
]


@pytest.mark.parametrize("text", NO_TRIANGLES)
def test_no_triangles(text: str) -> None:
    assert not applies("triangular_matmul", make_task(f"return {text}", SQUARE, args="x, y"))


def test_a_product_that_is_read_whole_is_computed_whole() -> None:
    assert not applies("triangular_matmul", make_task("p = x @ y\nreturn torch.tril(p), p.sum()", SQUARE, args="x, y"))


def test_a_triangle_that_is_written_to_is_none() -> None:
    forward = "t = torch.tril(x)\nt[0, 5] = 1\nreturn t @ y"
    assert not applies("triangular_matmul", make_task(forward, SQUARE, args="x, y"))


SYMMETRIC = [
    "x @ x.t()",
    "x.t() @ x",
    "x @ x.mT",
    "torch.mm(x, x.transpose(0, 1))",
    "torch.matmul(x, x.permute(1, 0))",
    "z = x.relu()\nreturn z @ z.t()",
    "s = x + x.t()\nreturn s @ s",
    "s = (x + x.mT) / 2\nreturn s @ s",
    "g = x @ x.t()\nreturn g @ g",
    "z = torch.softmax(x, -1)\nreturn z.t() @ z",
    "x @ x.T",
    "z = x * 2 + y\nreturn z @ z.t() + 1",
    "(x @ x.t()).exp() * 1e-3",
    "self.w @ self.w.t()",
    "self.w.t() @ self.w @ x",
    "z = x[:, :40]\nreturn z @ z.t()",
    "z = x - x.mean(0)\nreturn z.t() @ z / 259",
    "z = F.normalize(x, dim=1)\nreturn z @ z.t()",
    "torch.sigmoid(x @ x.t() / 16)",
    "s = 0.5 * (x.t() + x)\nreturn torch.mm(s, s)",
]


@pytest.mark.parametrize("text", SYMMETRIC)
def test_symmetric(text: str) -> None:
    forward = text if "return" in text else f"return {text}"
    init = f"self.w = nn.Parameter(torch.randn({N}, {N}))"
    built = check(make_task(forward, SQUARE, init, args="x, y"), "symmetric_matmul", tolerance=32)
    assert "symmetric_matmul(" in built.source.split("class ModelNew")[1]


NOT_SYMMETRIC = [
    "x @ y",
    "x @ y.t()",
    "x @ x",
    "x @ x.flip(0).t()",
    "x @ (x * 2).t()",
    "x @ x.relu().t()",
    "x @ x.t().t()",
    "x[:8] @ x[:8].t()",
    "x[:, :30] @ x[:, 30:60].t()",
    "s = x - x.t()\nreturn s @ s",
    "s = x + y.t()\nreturn s @ s",
    "s = x + 2 * x.t()\nreturn s @ s",
    "s = torch.add(x, x.t(), alpha=2)\nreturn s @ s",
    "s = (x + x.t()) * y\nreturn s @ s",
    "x[None] @ x[None].mT",
    "x[0] @ x[0]",
    "(x @ x) * x.t()",
    "torch.outer(x[0], x[0])",
    "torch.einsum('ij,kj->ik', x, y)",
    "x.to(torch.int64) @ x.to(torch.int64).t()",
    "z = x.clone()\nt = z.t()\nz[0] = 1\nreturn z @ t",
]


@pytest.mark.parametrize("text", NOT_SYMMETRIC)
def test_not_symmetric(text: str) -> None:
    forward = text if "return" in text else f"return {text}"
    assert not applies("symmetric_matmul", make_task(forward, SQUARE, args="x, y"))
