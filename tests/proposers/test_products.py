"""matmul_chain, pairwise_distance, pooled_embedding: cheaper equal forms are found; different ones stay."""

from __future__ import annotations

import itertools

import pytest
from graphs import applies, check, make_task

INIT = """self.a = nn.Parameter(torch.randn(4, 30))
self.b = nn.Parameter(torch.randn(30, 5))
self.v = nn.Parameter(torch.randn(30))"""
CHAINS = [
    ("(x @ y) @ z", (20, 3, 20, 1)),
    ("x @ (y @ z)", (1, 20, 3, 20)),
    ("(x @ y) @ z @ w", (30, 2, 30, 30, 1)),
    ("x @ (y @ (z @ w))", (1, 30, 30, 2, 30)),
    ("torch.mm(torch.mm(x, y), z)", (20, 2, 20, 2)),
    ("torch.matmul(x, torch.matmul(y, z))", (2, 20, 2, 20)),
    ("((x @ y) @ (z @ w)).relu()", (1, 20, 20, 20, 20)),
    ("(x @ y) @ z + 1", (12, 1, 12, 3)),
]


@pytest.mark.parametrize(("text", "sizes"), CHAINS)
def test_chains(text: str, sizes: tuple[int, ...]) -> None:
    inputs = ", ".join(f"torch.randn({a}, {b})" for a, b in itertools.pairwise(sizes))
    names = ["x", "y", "z", "w"][: len(sizes) - 1]
    check(make_task(f"return {text}", inputs, args=", ".join(names)), "matmul_chain", tolerance=32)


WITH_VECTORS = ["(x @ y) @ z", "(y.mT @ x.mT).mT @ z", "torch.mv(torch.mm(x, y), z)"]


@pytest.mark.parametrize("text", WITH_VECTORS)
def test_chains_with_vectors(text: str) -> None:
    inputs = "torch.randn(9, 7), torch.randn(7, 8), torch.randn(8)"
    task = make_task(f"return {text}", inputs, args="x, y, z")
    if ".mT @" in text:
        assert not applies("matmul_chain", task), "a transposed product is no link of the chain"
    else:
        check(task, "matmul_chain", tolerance=32)


KEPT = [
    "(x @ self.a) @ self.b",
    "x @ self.a @ self.b @ self.b[:3].mT",
    "x @ (self.a @ self.b)",
    "(x @ self.a) @ self.v",
    "x @ self.a @ self.b + 1",
    "(x * 2) @ self.a @ self.b",
    "(x @ self.a @ self.b).relu() @ self.b.mT @ self.v",
    "torch.mm(x @ self.a, self.b)",
    "x[0] @ self.a @ self.b",
]


@pytest.mark.parametrize("text", KEPT)
def test_products_of_weights_are_kept(text: str) -> None:
    built = check(make_task(f"return {text}", "torch.randn(8, 4)", INIT), "matmul_chain", tolerance=32)
    assert "DerivedTensors" in built.source


UNCHAINED = [
    ("(x @ y) @ z", (4, 4, 4, 4)),
    ("x @ (y @ z)", (4, 4, 4, 5)),
    ("x @ y", (20, 3, 20)),
    ("(x @ y).relu() @ z", (20, 3, 20, 1)),
    ("(x @ y + 1) @ z", (20, 3, 20, 1)),
    ("(x @ y * 2) @ z", (20, 3, 20, 1)),
    ("x @ (y @ z)", (20, 3, 20, 1)),
    ("(x @ y) @ z", (1, 20, 3, 20)),
    ("(x @ y).mT.mT.exp() @ z", (20, 3, 20, 1)),
    ("(x[None] @ y[None]) @ z[None]", (20, 3, 20, 1)),
    ("(x @ y).sum() * z", (20, 3, 20, 1)),
    ("torch.relu(x) @ (y @ z)", (8, 8, 8, 8)),
]


@pytest.mark.parametrize(("text", "sizes"), UNCHAINED)
def test_chains_that_stay(text: str, sizes: tuple[int, ...]) -> None:
    inputs = ", ".join(f"torch.randn({a}, {b})" for a, b in itertools.pairwise(sizes))
    names = ["x", "y", "z", "w"][: len(sizes) - 1]
    assert not applies("matmul_chain", make_task(f"return {text}", inputs, args=", ".join(names)))


SHARED = [
    "p = x @ y\nreturn p @ z, p",
    "p = x @ y\nreturn p @ z + p.sum()",
    "p = x @ y\nreturn p @ z + p @ z * 2",
    "p = x @ y\np[0] = 1\nreturn p @ z",
    "return (x @ y[:, :3]) @ y",
    "return torch.outer(x[:, 0], y[0]) @ z",
    "return (x @ y[:, 0]) @ torch.outer(x[:, 0], y[0])",
    "return torch.einsum('ij,jk->ik', x, y) @ z",
]


@pytest.mark.parametrize("forward", SHARED)
def test_shared_products_stay(forward: str) -> None:
    task = make_task(forward, "torch.randn(20, 3), torch.randn(3, 20), torch.randn(20, 1)", args="x, y, z")
    assert not applies("matmul_chain", task)


PAIRS = [
    "((x[:, None] - y[None]) ** 2).sum(-1)",
    "((x.unsqueeze(1) - y.unsqueeze(0)) ** 2).sum(2)",
    "((y[None] - x[:, None]) ** 2).sum(-1)",
    "((x[:, None, :] - y) ** 2).sum(dim=-1)",
    "torch.sqrt(((x[:, None] - y[None]) ** 2).sum(-1) + 1e-6)",
    "(x[:, None] - y[None]).square().sum(-1)",
    "(x[:, None] - y[None]).pow(2).sum(-1).neg().exp()",
    "torch.norm(x[:, None] - y[None], dim=-1)",
    "torch.linalg.vector_norm(x[:, None] - y[None], dim=-1)",
    "(x[:, None] - y[None]).norm(dim=2) * 2",
    "(x[:, None] - y[None]).abs().sum(-1)",
    "(y[None] - x[:, None]).abs().sum(-1)",
    "torch.exp(-0.5 * ((x[:, None] - y[None]) ** 2).sum(-1))",
    "((x[:, None] - y[None]) * (x[:, None] - y[None])).sum(-1)",
    "torch.softmax(-((x[:, None] - y[None]) ** 2).sum(-1), -1)",
    "((x[:, None] - x[None]) ** 2).sum(-1)",
    "((x[:, None] - self.c[None]) ** 2).sum(-1).argmin(-1)",
    "((x[None, :, None] - y[None, None]) ** 2).sum(-1)",
    "(((x * 2)[:, None] - y[None]) ** 2).sum(-1).sqrt()",
    "((x[:, None] - y[None]) ** 2).sum(-1).amin(1)",
]


@pytest.mark.parametrize("text", PAIRS)
def test_pairs(text: str) -> None:
    forward = f"return {text}"
    if "* (x" in text:
        forward = "d = x[:, None] - y[None]\nreturn (d * d).sum(-1)"
    task = make_task(
        forward, "torch.randn(5, 4), torch.randn(6, 4)", "self.c = nn.Parameter(torch.randn(3, 4))", args="x, y"
    )
    assert "cdist" in check(task, "pairwise_distance", tolerance=32).source


NO_PAIRS = [
    "((x[:, None] - y[None]) ** 2).mean(-1)",
    "((x[:, None] - y[None]) ** 2).sum(0)",
    "((x[:, None] - y[None]) ** 2).sum(-1, keepdim=True)",
    "((x[:, None] - y[None]) ** 2).sum()",
    "((x[:, None] - y[None]) ** 2).sum((1, 2))",
    "((x[:, None] + y[None]) ** 2).sum(-1)",
    "((x[:, None] - y[None]) ** 3).sum(-1)",
    "((x[:, None] - y[None]) ** 2).amax(-1)",
    "((x[:, None] - 2 * y[None]) ** 2 + 1).sum(-1)",
    "((x - y[0]) ** 2).sum(-1)",
    "((x[:5] - y[:5]) ** 2).sum(-1)",
    "(x[:, None] * y[None]).sum(-1)",
    "(x[:, None] - y[None]).sum(-1)",
    "(x[:, None] - y[None]).norm(p=1, dim=-1)",
    "(x[:, None] - y[None]).norm(p=3, dim=-1)",
    "(x[:, None] - y[None]).norm(dim=1)",
    "(x[:, None] - y[None]).norm()",
    "((x[:, None] - y[None]).double() ** 2).half().float().sum(-1)",
    "((x[:, None] - y[None]) ** 2).sum(-1, dtype=torch.float64)",
    "((x[:1, None] - y[None]) ** 2).sum(-1)",
    "((x.t()[:, None, :5] - y.t()[None, :, :5]) ** 2).sum(1)",
]


@pytest.mark.parametrize("text", NO_PAIRS)
def test_no_pairs(text: str) -> None:
    task = make_task(f"return {text}", "torch.randn(5, 4), torch.randn(6, 4)", args="x, y")
    assert not applies("pairwise_distance", task)


def test_differences_that_are_read_again_stay() -> None:
    forward = "d = x[:, None] - y[None]\nreturn (d ** 2).sum(-1), d.amax()"
    assert not applies("pairwise_distance", make_task(forward, "torch.randn(5, 4), torch.randn(6, 4)", args="x, y"))


BAGS = ["e.mean(1)", "e.sum(1)", "e.amax(1)", "e.mean(-2)", "e.sum(dim=1, keepdim=True)", "e.mean(1).relu() * 2"]


@pytest.mark.parametrize("text", BAGS)
@pytest.mark.parametrize(
    "lookup",
    [
        "self.e(i)",
        "F.embedding(i, self.e.weight)",
        "F.embedding(i, self.w * 2)",
        "F.embedding(i, self.w, padding_idx=0)",
    ],
)
def test_bags(text: str, lookup: str) -> None:
    init = "self.e = nn.Embedding(10, 4)\nself.w = nn.Parameter(torch.randn(10, 4))"
    built = check(
        make_task(f"e = {lookup}\nreturn {text}", "torch.randint(0, 10, (3, 5))", init, args="i"), "pooled_embedding"
    )
    assert "embedding_bag(" in built.source


NO_BAGS = [
    "e.mean(0)",
    "e.mean(2)",
    "e.mean((1, 2))",
    "e.mean()",
    "e.sum()",
    "e.prod(1)",
    "e.amin(1)",
    "e.std(1)",
    "e.sum(1, dtype=torch.float64)",
    "e.relu().mean(1)",
    "(e * 2).sum(1)",
    "e.mean(1) + e.sum()",
    "(e.mean(1), e)",
    "e.max(1).values",
    "e.logsumexp(1)",
    "e.median(1).values",
    "e[:, :3].mean(1)",
    "e.cumsum(1)",
    "torch.norm(e, dim=1)",
    "e.flatten(1).mean(1)",
    "e.transpose(0, 1).mean(1)",
]


@pytest.mark.parametrize("text", NO_BAGS)
def test_no_bags(text: str) -> None:
    task = make_task(
        f"e = self.e(i)\nreturn {text}", "torch.randint(0, 10, (3, 5))", "self.e = nn.Embedding(10, 4)", args="i"
    )
    assert not applies("pooled_embedding", task)


def test_indices_of_other_rank_stay() -> None:
    for size in ("(5,)", "(2, 3, 5)"):
        dim = 0 if size == "(5,)" else 2
        task = make_task(
            f"return self.e(i).mean({dim})", f"torch.randint(0, 10, {size})", "self.e = nn.Embedding(10, 4)", args="i"
        )
        assert not applies("pooled_embedding", task)
