"""diagonal_matmul: products with a diagonal matrix on either side, and products that only look like one."""

from __future__ import annotations

import pytest
from graphs import applies, check, make_task

LEFT = [
    "torch.diag(x) @ y",
    "torch.matmul(torch.diag(x), y)",
    "torch.mm(x.diag(), y)",
    "torch.diagflat(x) @ y",
    "torch.diag_embed(x) @ y",
    "torch.diag_embed(x, dim1=1, dim2=0) @ y",
]
RIGHT = ["y @ torch.diag(x)", "torch.mm(y, torch.diag(x))", "y @ torch.diag_embed(x)", "y @ torch.diagflat(x)"]
SIZES = [(4, 7), (1, 3), (16, 16)]


@pytest.mark.parametrize(("n", "m"), SIZES)
@pytest.mark.parametrize("text", LEFT)
def test_left(text: str, n: int, m: int) -> None:
    built = check(
        make_task(f"return {text}", f"torch.randn({n}), torch.randn({n}, {m})", args="x, y"), "diagonal_matmul"
    )
    assert "matmul" not in built.source.split("class ModelNew")[1]


@pytest.mark.parametrize(("n", "m"), SIZES)
@pytest.mark.parametrize("text", RIGHT)
def test_right(text: str, n: int, m: int) -> None:
    check(make_task(f"return {text}", f"torch.randn({n}), torch.randn({m}, {n})", args="x, y"), "diagonal_matmul")


def test_batched_and_parameters() -> None:
    check(
        make_task("return torch.diag_embed(x) @ y", "torch.randn(3, 4), torch.randn(3, 4, 5)", args="x, y"),
        "diagonal_matmul",
    )
    check(
        make_task("return torch.diag(self.w) @ x", "torch.randn(4, 5)", "self.w = nn.Parameter(torch.randn(4))"),
        "diagonal_matmul",
    )
    check(
        make_task("d = torch.diag(x)\nreturn d @ y, d", "torch.randn(4), torch.randn(4, 5)", args="x, y"),
        "diagonal_matmul",
    )


NEAR = [
    "torch.diag(x, 1) @ y",
    "torch.diag(x, -1) @ y",
    "torch.diag_embed(x, offset=1) @ y",
    "y @ torch.diag(x, 1)",
    "y @ torch.diag_embed(x, offset=-1)",
    "torch.diagflat(x, 1) @ y",
    "(torch.diag(x) + 1) @ y",
    "torch.diag(x).triu(1) @ y",
    "torch.diag(x) * y",
    "torch.diag(x) + y",
]


@pytest.mark.parametrize("text", NEAR)
@pytest.mark.parametrize("n", [4, 6])
def test_near_misses(text: str, n: int) -> None:
    m = n + 1 if "1)" in text and "triu" not in text and "+ 1" not in text else n
    task = make_task(f"return {text}", f"torch.randn({n}), torch.randn({m}, {m})", args="x, y")
    assert not applies("diagonal_matmul", task)


def test_product_of_the_diagonal_of_a_matrix_with_a_vector_is_left_alone() -> None:
    assert not applies(
        "diagonal_matmul", make_task("return torch.diag(x) @ y", "torch.randn(4, 4), torch.randn(4)", args="x, y")
    )
    assert not applies(
        "diagonal_matmul", make_task("return x @ torch.diag(y)", "torch.randn(4), torch.randn(4)", args="x, y")
    )


def test_in_place_write_between_diag_and_product() -> None:
    task = make_task("d = torch.diag(x)\nd[0, 1] = 5\nreturn d @ y", "torch.randn(4), torch.randn(4, 5)", args="x, y")
    assert not applies("diagonal_matmul", task)
