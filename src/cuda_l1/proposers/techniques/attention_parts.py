"""Recognise written-out attention: which nodes are queries, keys, values and masks, and what scales the scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from cuda_l1.proposers.techniques.identities import unchanged
from cuda_l1.proposers.techniques.matching import argument, is_op, only_user, operands, shape, tensor, val
from cuda_l1.proposers.techniques.pattern import factorings, is_number

if TYPE_CHECKING:
    from torch.fx import Node

MOST_NEGATIVE_FILL = -1e4
"""A fill at or below this leaves nothing of a score behind the softmax."""


@dataclass(frozen=True)
class Mask:
    """One change of the scores before the softmax."""

    kind: Literal["add", "fill", "keep"]
    """Add the tensor; fill where it is true; keep where it is true and fill elsewhere."""
    node: Any
    fill: float = 0.0


@dataclass(frozen=True)
class Product:
    """`left @ right`, or `left @ right^T` over the last two dimensions."""

    left: Any
    right: Any
    transposed: bool


@dataclass(frozen=True)
class AttentionParts:
    """`softmax(query @ key^T * scale, masked) @ value`."""

    query: Any
    key: Any
    key_has_rows: bool
    """Whether `key` is (..., keys, features), as against (..., features, keys)."""
    value: Any
    scale: float
    masks: tuple[Mask, ...]
    """Innermost first."""


def attention_parts(node: Node) -> AttentionParts | None:
    """The parts of the attention whose result `node` is, or None; changes nothing."""
    outer = product_of(node)
    if outer is None or outer.transposed or not 2 <= len(shape(node)) <= 4:
        return None
    weights = _behind_idle(outer.left)
    if not is_op(weights, "aten.softmax.int") or only_user(outer.left) is None or not _over_keys(weights):
        return None
    scores, masks = unmasked(operands(weights)[0])
    if only_user(scores) is None:
        return None
    for scale, factors in factorings(scores, 1):
        inner = product_of(factors[0]) if factors and only_user(factors[0]) is not None else None
        if inner is not None:
            query, factor = _unscaled(inner.left)
            key, rows = _rows(inner)
            parts = AttentionParts(query, key, rows, outer.right, scale * factor, masks)
            return parts if _fits(parts, node) else None
    return None


def product_of(node: Any) -> Product | None:
    """The operands of a batched matrix product, also where it is written as an einsum."""
    if is_op(node, "aten.matmul.default", "aten.bmm.default"):
        return Product(operands(node)[0], operands(node)[1], False)
    if is_op(node, "aten.einsum.default") and len(operands(node)[1]) == 2:
        left, right = operands(node)[1]
        transposed = _einsum_kind(operands(node)[0].replace(" ", ""))
        return None if transposed is None else Product(left, right, transposed)
    return None


def _einsum_kind(equation: str) -> bool | None:
    """Whether `equation` is a product with the right operand transposed; None where it is no plain product."""
    terms = equation.replace("->", ",").split(",")
    if len(terms) != 3 or "." in equation or any(len(set(term)) != len(term) or len(term) < 2 for term in terms):
        return None
    one, two, out = terms
    batch, row, inner = one[:-2], one[-2], one[-1]
    if two == batch + inner + two[-1] and out == batch + row + two[-1]:
        return False
    if two == batch + two[-2] + inner and out == batch + row + two[-2]:
        return True
    return None


def unmasked(node: Any) -> tuple[Any, tuple[Mask, ...]]:
    """(scores below additive masks and fills, the masks innermost first)."""
    masks: list[Mask] = []
    while only_user(node) is not None:
        if is_op(node, "aten.masked_fill.Scalar") and _hides(operands(node)[2]):
            masks.append(Mask("fill", operands(node)[1], float(operands(node)[2])))
            node = operands(node)[0]
        elif is_op(node, "aten.where.ScalarOther") and _hides(operands(node)[2]):
            masks.append(Mask("keep", operands(node)[0], float(operands(node)[2])))
            node = operands(node)[1]
        elif (sides := _mask_sides(node)) is not None:
            masks.append(Mask("add", sides[1]))
            node = sides[0]
        else:
            break
    return node, tuple(masks[::-1])


def _hides(fill: Any) -> bool:
    return is_number(fill) and fill <= MOST_NEGATIVE_FILL


def _mask_sides(node: Node) -> tuple[Any, Any] | None:
    """(scores, mask) of a sum: the scores are the side that leads to a product and has the shape of the sum."""
    if not is_op(node, "aten.add.Tensor") or argument(node, "alpha") != 1:
        return None
    for one, two in (operands(node)[:2], operands(node)[1::-1]):
        tensors = val(one) is not None and val(two) is not None
        if tensors and shape(one) == shape(node) and tensor(two).dtype == tensor(one).dtype and _leads_to_product(one):
            return one, two
    return None


def _leads_to_product(node: Any) -> bool:
    scores, _ = unmasked(node)
    return any(len(factors) == 1 and product_of(factors[0]) for _, factors in factorings(scores, 1))


def _behind_idle(node: Any) -> Any:
    """The value behind switched-off dropout and casts that change nothing."""
    while getattr(node, "op", "") == "call_function" and only_user(node) is not None:
        same = unchanged(node)
        if same is None or shape(same) != shape(node):
            break
        node = same
    return node


def _over_keys(softmax: Node) -> bool:
    rank = len(shape(softmax))
    plain = argument(softmax, "dtype") in (None, tensor(operands(softmax)[0]).dtype)
    return plain and argument(softmax, "dim") % rank == rank - 1 and only_user(softmax) is not None


def _unscaled(query: Any) -> tuple[Any, float]:
    """The query before it was multiplied with a number, and the number."""
    options = [(factors[0], scale) for scale, factors in factorings(query, 1) if len(factors) == 1]
    return options[-1] if only_user(query) is not None else options[0]


def _rows(inner: Product) -> tuple[Any, bool]:
    """(keys, whether their rows are keys): behind a transpose where there is one."""
    right = inner.right
    if inner.transposed:
        return right, True
    if is_op(right, "aten.mT.default") or (is_op(right, "aten.t.default") and len(shape(right)) == 2):
        return operands(right)[0], True
    if is_op(right, "aten.transpose.int"):
        rank = len(shape(right))
        if {argument(right, "dim0") % rank, argument(right, "dim1") % rank} == {rank - 2, rank - 1}:
            return operands(right)[0], True
    return right, False


def _fits(parts: AttentionParts, site: Node) -> bool:
    """Equal batch dimensions and dtypes, and masks of no higher rank than the scores."""
    nodes = (parts.query, parts.key, parts.value)
    if any(val(node) is None for node in nodes):
        return False
    same_batch = len({shape(node)[:-2] for node in nodes}) == 1 and min(len(shape(node)) for node in nodes) >= 2
    same_dtype = len({tensor(node).dtype for node in nodes}) == 1 and tensor(parts.query).dtype.is_floating_point
    return same_batch and same_dtype and all(len(shape(mask.node)) <= len(shape(site)) for mask in parts.masks)
