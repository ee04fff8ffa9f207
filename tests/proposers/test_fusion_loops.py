"""Index spaces, nests and passes of the code generator, without a compiler; the Triton text without a GPU."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from graphs import make_task

from cuda_l1.evaluator.findings.static import static_findings
from cuda_l1.proposers.techniques import fusion
from cuda_l1.proposers.techniques.codegen.axes import Atom, Axes, resolve, unify
from cuda_l1.proposers.techniques.codegen.ir import Builder, Unsupported, Value
from cuda_l1.proposers.techniques.codegen.schedule import schedule
from cuda_l1.proposers.techniques.draft import open_draft, render
from cuda_l1.proposers.techniques.fusion import TECHNIQUE


def _sizes(atoms: list[Atom]) -> list[int]:
    return [atom.size for atom in resolve(atoms)]


def test_unify_splits_to_common_loops() -> None:
    left, right = [Atom(6), Atom(35)], [Atom(2), Atom(15), Atom(7)]
    unify(left, right, [])
    assert _sizes(left) == _sizes(right) == [2, 3, 5, 7]


def test_unify_refuses_sizes_without_common_loops() -> None:
    with pytest.raises(Unsupported):
        unify([Atom(6), Atom(4)], [Atom(4), Atom(6)], [])


def _load(b: Builder, name: str, *shape: int):
    strides = tuple(int(size > 1) for size in shape)
    return b.make("load", (), shape, "f32", source=name, strides=strides, offset=0)


def test_softmax_is_one_nest() -> None:
    b = Builder()
    x = _load(b, "x", 4, 8)
    e = b.point("exp", b.point("sub", x, b.reduce("max", x, (1,))))
    nests = schedule([b.point("div", e, b.reduce("sum", e, (1,)))])
    assert len(nests) == 1


def test_reductions_over_different_dimensions_are_two_nests() -> None:
    b = Builder()
    rows = b.reduce("sum", b.point("exp", _load(b, "x", 4, 8)), (1,))
    nests = schedule([b.reduce("max", rows, (0,))])
    assert [len(nest.stored) for nest in nests] == [1, 1]


def test_each_value_of_an_unrolled_recurrence_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Value] = []
    add = Axes._add
    monkeypatch.setattr(Axes, "_add", lambda self, value, leaf: (looked.append(value), add(self, value, leaf))[1])
    b = Builder()
    state = rows = _load(b, "x", 64, 8)
    for _ in range(200):
        state = b.point("tanh", b.point("add", b.point("mul", state, 0.5), rows))
    assert [len(nest.values) for nest in schedule([state])] == [600]
    assert len(looked) < 5 * 600


UNROLLED = """x = torch.stack((x, torch.tanh(x)), dim=0).sum(dim=0)
x = x + x
state = torch.zeros_like(x[:, 0])
states = []
for step in x.unbind(dim=1):
    state = 0.5 * state + step / (1.0 + step.abs())
    states.append(state)
return torch.stack(states, dim=1)"""


def test_a_long_region_that_cannot_be_written_is_shortened_by_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unrolled loop behind what cannot be computed with it: the same kernels in far fewer tries."""
    tried = 0
    own = fusion._written

    def counted(*args: Any) -> Any:
        nonlocal tried
        tried += 1
        return own(*args)

    monkeypatch.setattr(fusion, "_written", counted)
    draft = open_draft(make_task(UNROLLED, "torch.randn(2, 32, 8)"), "cpu")
    assert draft.graph_module is not None
    assert [len(region.nodes) for region, _ in fusion._kernels(draft.graph_module.graph, "cpu")] == [7]
    assert tried < 100


def test_loops_that_cannot_be_extended_are_as_before() -> None:
    b = Builder()
    x = _load(b, "x", 4, 6)
    root = b.point("sqrt", x)
    axes = Axes([x, root], {root})
    before, splits = axes.atoms(root), axes.splits
    flat = b.make("reshape", (root,), (24,), "f32")
    turned = b.make("permute", (root,), (6, 4), "f32", order=(1, 0))
    other = b.make("reshape", (turned,), (24,), "f32")
    added = [flat, turned, other, b.point("add", flat, other)]
    with pytest.raises(Unsupported):
        axes.extend(added, set(added))
    assert axes.atoms(root) == before and axes.splits == splits and list(axes.dims) == [x, root]


def test_a_cheap_value_is_computed_twice_rather_than_stored() -> None:
    b = Builder()
    doubled = b.point("mul", _load(b, "x", 4, 8), 2.0)
    nests = schedule([b.reduce("sum", doubled, (1,)), b.reduce("sum", doubled, (0,))])
    assert all(doubled not in nest.stored for nest in nests)


def test_equal_requests_are_one_value_and_signed_zeros_are_two() -> None:
    b = Builder()
    x = _load(b, "x", 4)
    assert b.point("add", x, 1.0) is b.point("add", x, 1.0)
    assert b.const(0.0, "f32") is not b.const(-0.0, "f32")


def _kernels(body: str, inputs: str, args: str = "x, y") -> list[str]:
    tree = ast.parse(_text(body, inputs, args))
    return [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("fused")]


def _text(body: str, inputs: str, args: str = "x, y") -> str:
    draft = open_draft(make_task(f"return {body}", inputs, args=args), "cuda")
    assert TECHNIQUE.applies(draft)
    TECHNIQUE.apply(draft)
    text = render(draft)
    assert not [finding for finding in static_findings(text) if finding.severity != "note"]
    return text


@pytest.mark.parametrize(
    ("body", "inputs", "names"),
    [
        ("F.gelu(x * 2) + y", "torch.randn(8, 64), torch.randn(64)", ["fused_0_nest0", "fused_0"]),
        ("F.softmax(x + y, -1)", "torch.randn(8, 64), torch.randn(64)", ["fused_0_nest0", "fused_0"]),
        ("F.mse_loss(x, y)", "torch.randn(99, 999), torch.randn(99, 999)",
         ["fused_0_nest0_0", "fused_0_nest0_end", "fused_0"]),
        ("F.softmax(x * y, -1)", "torch.randn(4, 99999), torch.randn(99999)",
         ["fused_0_nest0_0", "fused_0_nest0_1", "fused_0"]),
    ],
)  # fmt: skip
def test_triton_kernels(body: str, inputs: str, names: list[str]) -> None:
    """One kernel where rows fit a program, one per pass where several programs share a row."""
    assert _kernels(body, inputs) == names


@pytest.mark.parametrize(
    ("body", "passes"),
    [
        ("F.log_softmax(x, -1) * y", 2),
        ("x * (x - x.amax(-1, keepdim=True) * 0.5).exp().sum(-1, keepdim=True) * y", 3),
        ("x * (x - x.amin(-1, keepdim=True)).exp().sum(-1, keepdim=True) * y", 3),
    ],
)
def test_long_rows_are_read_once_for_what_belongs_together(body: str, passes: int) -> None:
    """And once for the result; a sum about something else needs a pass of its own."""
    text = _text(body, "torch.randn(512, 40000), torch.randn(40000)")
    assert text.count("for start in range(") == passes
