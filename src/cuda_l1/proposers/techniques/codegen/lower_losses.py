"""Rules for losses and distances."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_l1.proposers.techniques.codegen.ir import Unsupported, Value
from cuda_l1.proposers.techniques.codegen.lower_reduce import float_operand, mean_of
from cuda_l1.proposers.techniques.codegen.lowering import Lowering, rule
from cuda_l1.proposers.techniques.matching import argument, op_name, shape

if TYPE_CHECKING:
    from torch.fx import Node


def _reduced(low: Lowering, node: Node, loss: Value) -> Value:
    """Apply `reduction`: 0 none, 1 mean, 2 sum."""
    mode = int(argument(node, "reduction", 1))
    if mode == 0:
        return low.b.expand(loss, shape(node))
    dims = range(len(loss.shape))
    result = mean_of(low, loss, dims) if mode == 1 else low.b.reduce("sum", loss, dims)
    return low.b.reshape(result, ())


@rule("aten.mse_loss.default", "aten.l1_loss.default", "aten.smooth_l1_loss.default", "aten.huber_loss.default",
      heavy=True)  # fmt: skip
def difference_loss(low: Lowering, node: Node) -> Value:
    b, name = low.b, op_name(node).split(".")[1]
    gap = b.point("sub", float_operand(low, node), low.operand(node, 1))
    if name == "mse_loss":
        return _reduced(low, node, b.point("mul", gap, gap))
    size = b.point("abs", gap)
    if name == "l1_loss":
        return _reduced(low, node, size)
    edge = float(argument(node, "beta", argument(node, "delta", 1.0)))
    square = b.point("mul", b.point("mul", gap, gap), 0.5 / edge if name == "smooth_l1_loss" else 0.5)
    line = b.point("sub", size, 0.5 * edge)
    line = line if name == "smooth_l1_loss" else b.point("mul", line, edge)
    return _reduced(low, node, b.point("where", b.point("lt", size, edge), square, line, dtype=gap.dtype))


@rule("aten.cosine_similarity.default", heavy=True)
def cosine_similarity(low: Lowering, node: Node) -> Value:
    b, left, right = low.b, low.operand(node, 0), low.operand(node, 1)
    rank = max(len(left.shape), len(right.shape))
    if len(left.shape) != len(right.shape):
        raise Unsupported("vectors of different rank")
    dims = (int(argument(node, "dim", 1)) % rank,)
    eps = float(argument(node, "eps", 1e-8))
    norms = [b.point("sqrt", b.reduce("sum", b.point("mul", side, side), dims)) for side in (left, right)]
    dot = b.reduce("sum", b.point("mul", left, right), dims)
    small, large = (b.point("maximum", norm, eps) for norm in norms)
    return b.reshape(b.point("div", b.point("div", dot, small), large), shape(node))


@rule("aten.pairwise_distance.default", heavy=True)
def pairwise_distance(low: Lowering, node: Node) -> Value:
    if float(argument(node, "p", 2.0)) != 2.0:
        raise Unsupported("a distance of another order")
    gap = low.b.point("sub", low.operand(node, 0), low.operand(node, 1))
    gap = low.b.point("add", gap, float(argument(node, "eps", 1e-6)))
    total = low.b.reduce("sum", low.b.point("mul", gap, gap), (len(gap.shape) - 1,))
    return low.b.reshape(low.b.point("sqrt", total), shape(node))


@rule("aten.kl_div.default", heavy=True)
def kl_div(low: Lowering, node: Node) -> Value:
    b, value, target = low.b, float_operand(low, node), low.operand(node, 1)
    if argument(node, "log_target"):
        return _reduced(low, node, b.point("mul", b.point("exp", target), b.point("sub", target, value)))
    entropy = b.point("mul", target, b.point("log", target))
    zero = b.const(0.0, value.dtype)
    entropy = b.point("where", b.point("eq", target, 0), zero, entropy, dtype=value.dtype)
    return _reduced(low, node, b.point("sub", entropy, b.point("mul", target, value)))


@rule("aten.binary_cross_entropy_with_logits.default", heavy=True)
def bce_with_logits(low: Lowering, node: Node) -> Value:
    b, x, target = low.b, float_operand(low, node), low.operand(node, 1)
    if argument(node, "weight") is not None or argument(node, "pos_weight") is not None:
        raise Unsupported("weighted binary cross-entropy")
    tail = b.point("log1p", b.point("exp", b.point("neg", b.point("abs", x))))
    log_sigmoid = b.point("sub", b.point("minimum", x, 0), tail)
    rest = b.point("sub", b.const(1.0, x.dtype), target)
    return _reduced(low, node, b.point("sub", b.point("mul", rest, x), log_sigmoid))


@rule("aten.cross_entropy_loss.default", "aten.nll_loss_nd.default", "aten.nll_loss.default", heavy=True)
def cross_entropy(low: Lowering, node: Node) -> Value:
    """Class indices, (N, C, ...) scores, no class weights; rows of `ignore_index` count for nothing."""
    b, scores, target = low.b, float_operand(low, node), low.value(argument(node, "target"))
    if argument(node, "weight") is not None or target.dtype != "i64" or len(scores.shape) < 2:
        raise Unsupported("weighted cross-entropy, class probabilities or a single row")
    chosen = b.reshape(target, (target.shape[0], 1, *target.shape[1:]))
    ignored = b.point("eq", chosen, int(argument(node, "ignore_index", -100)))
    index = b.point("where", ignored, b.const(0, "i64"), chosen, dtype="i64")
    picked = b.make("at", (scores, index), chosen.shape, scores.dtype, dim=1)
    loss = _row_loss(low, node, scores, picked)
    zero = b.const(0.0, scores.dtype)
    loss = b.point("where", ignored, zero, loss, dtype=scores.dtype)
    return _mean_over_counted(low, node, loss, b.point("where", ignored, zero, 1.0, dtype=scores.dtype))


def _row_loss(low: Lowering, node: Node, scores: Value, picked: Value) -> Value:
    """-log softmax at the target, mixed with its mean over the classes where labels are smoothed."""
    b = low.b
    if "cross_entropy" not in op_name(node):
        return b.point("neg", picked)
    peak = b.reduce("max", scores, (1,))
    shifted = b.point("sub", scores, peak)
    log_total = b.point("log", b.reduce("sum", b.point("exp", shifted), (1,)))
    loss = b.point("sub", log_total, b.point("sub", picked, peak))
    smoothing = float(argument(node, "label_smoothing", 0.0))
    if smoothing == 0.0:
        return loss
    spread = b.point("sub", log_total, mean_of(low, shifted, (1,)))
    return b.point("add", b.point("mul", loss, 1.0 - smoothing), b.point("mul", spread, smoothing))


def _mean_over_counted(low: Lowering, node: Node, loss: Value, counted: Value) -> Value:
    mode, b = int(argument(node, "reduction", 1)), low.b
    if mode == 0:
        return b.reshape(loss, shape(node))
    dims = range(len(loss.shape))
    total = b.reduce("sum", loss, dims)
    return b.reshape(b.point("div", total, b.reduce("sum", counted, dims)) if mode == 1 else total, ())
