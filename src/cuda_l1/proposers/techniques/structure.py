"""Which matrices of a graph are triangular or symmetric whatever the arguments, and the blocks that follow from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from cuda_l1.proposers.techniques.literals import literal_value
from cuda_l1.proposers.techniques.matching import TRANSPOSES, argument, is_op, operands, shape, val
from cuda_l1.proposers.techniques.pattern import is_number

if TYPE_CHECKING:
    from torch.fx import Node

Triangle = Literal["lower", "upper", ""]

PRODUCTS = ("aten.matmul.default", "aten.mm.default")
FLIPPED: dict[Triangle, Triangle] = {"lower": "upper", "upper": "lower", "": ""}


LEAST_ROWS = 256
"""Below this a product in blocks costs more calls than it saves work."""

BLOCK_SIZE = '''
def block_size(matrix):
    """Rows of a block: small enough to skip much, large enough that one product keeps the device busy."""
    rows = matrix.shape[0]
    return max(64, min(256, rows // 8)) if matrix.device.type == "cpu" else max(512, rows // 4)
'''


def triangle(node: Any) -> Triangle:
    """`lower` or `upper` for a matrix whose elements on the other side of the diagonal are zero; "" otherwise."""
    if val(node) is None or len(shape(node)) != 2 or node.op != "call_function":
        return ""
    if is_op(node, "aten.tril.default"):
        return "lower" if argument(node, "diagonal") <= 0 else triangle(operands(node)[0])
    if is_op(node, "aten.triu.default"):
        return "upper" if argument(node, "diagonal") >= 0 else triangle(operands(node)[0])
    if transposed(node) is not None:
        return FLIPPED[triangle(transposed(node))]
    if is_op(node, *PRODUCTS):
        left, right = (triangle(operand) for operand in operands(node)[:2])
        return left if left == right else ""
    if is_op(node, "aten.mul.Tensor", "aten.div.Tensor") and is_number(operands(node)[1]):
        return triangle(operands(node)[0])
    if is_op(node, "aten.mul.Tensor"):
        left, right = operands(node)[:2]
        return _masked(node, left) or _masked(node, right)
    return ""


def _masked(node: Node, factor: Any) -> Triangle:
    """The triangle that a factor of an element-wise product leaves, a literal mask of zeros and ones say."""
    if val(factor) is None or shape(factor) != shape(node):
        return ""
    value = literal_value(factor)
    if value is None:
        return triangle(factor)
    if not value.triu(1).any():
        return "lower"
    return "" if value.tril(-1).any() else "upper"


def transposed(node: Any) -> Any:
    """What a matrix is the transpose of, or None."""
    if not is_op(node, *TRANSPOSES) or len(shape(node)) != 2:
        return None
    if is_op(node, "aten.permute.default"):
        return operands(node)[0] if [dim % 2 for dim in argument(node, "dims")] == [1, 0] else None
    if is_op(node, "aten.transpose.int") and argument(node, "dim0") % 2 == argument(node, "dim1") % 2:
        return None
    return operands(node)[0]


def are_transposes(left: Any, right: Any) -> bool:
    """Whether one matrix is the transpose of the other: visibly, or both are one symmetric matrix."""
    if val(left) is None or val(right) is None:
        return False
    return transposed(left) is right or transposed(right) is left or (left is right and symmetric(left))


def symmetric(node: Any) -> bool:
    """Whether a matrix equals its transpose whatever the arguments: `x + x^T`, `x @ x^T`, and scalings of these."""
    if getattr(node, "op", "") != "call_function" or val(node) is None or len(shape(node)) != 2:
        return False
    if is_op(node, "aten.mul.Tensor", "aten.div.Tensor") and is_number(operands(node)[1]):
        return symmetric(operands(node)[0])
    if is_op(node, "aten.add.Tensor"):
        return argument(node, "alpha") == 1 and are_transposes(*operands(node)[:2])
    return is_op(node, *PRODUCTS) and are_transposes(*operands(node)[:2])
