"""The plain spelling of an ATen call computes what the ATen call does, for every form of arguments that graphs hold."""

from __future__ import annotations

import pytest
import torch

from cuda_l1.proposers.techniques.spelling import plain

CALLS = """
add.Tensor(x, y); add.Tensor(x, y, alpha=2); add.Tensor(x, 2); add.Scalar(x, 2, 3); rsub.Scalar(x, 1.0)
mul.Tensor(x, 0.5); div.Tensor(x, y); div.Tensor_mode(x, y, rounding_mode='floor'); pow.Tensor_Scalar(x, 2)
pow.Scalar(2, x); sum.default(x); sum.dim_IntList(x, [-1]); sum.dim_IntList(x, [0], True); mean.dim(x, [1], True)
max.dim(x, 1, True); max.default(x); max.other(x, y); amax.default(x, [-1], True); argmax.default(x, 1)
var.correction(x, [1], correction=0, keepdim=True); std.dim(x, [1]); softmax.int(x, -1)
softmax.int(x, -1, torch.float64); log_softmax.int(x, 1); view.default(x, [2, 12]); view.dtype(x, torch.int32)
reshape.default(x, [-1]); flatten.using_ints(x, 0, 1); transpose.int(x, 0, 1); permute.default(x, [1, 0])
t.default(x); unsqueeze.default(x, -1); squeeze.dim(x, 0); expand.default(x[:1], [3, 6]); contiguous.default(x)
clone.default(x); to.dtype(x, torch.float64); type_as.default(x, y)
to.dtype_layout(x, dtype=torch.float64, layout=torch.strided); where.self(x > 0, x, y)
where.ScalarOther(x > 0, x, 0.0); masked_fill.Scalar(x, x > 0, 1.0); clamp.default(x, -1, 1)
clamp.default(x, None, 1); clamp_min.default(x, 0); cat.default([x, y], 1); stack.default([x, y], -1)
split.Tensor(x, 2, 1); chunk.default(x, 2, 1); unbind.int(x, 1); select.int(x, 1, 0); slice.Tensor(x, 1, 0, 3)
index.Tensor(x, [torch.tensor([1, 0])]); gather.default(x, 1, i); linear.default(x, w); linear.default(x, w, b)
matmul.default(x, w); mm.default(x, w); addmm.default(b, x, w); gelu.default(x); gelu.default(x, approximate='tanh')
silu.default(x); relu.default(x); leaky_relu.default(x, 0.1); elu.default(x, 1.0); hardtanh.default(x, -1, 1)
softplus.default(x); sigmoid.default(x); tanh.default(x); layer_norm.default(x, [6], b, b, 1e-05)
group_norm.default(x, 2, b, b); rms_norm.default(x, [6], b, 1e-05)
batch_norm.default(x, b, b, z, o, False, 0.1, 1e-05, False); embedding.default(w, i); cumsum.default(x, 1)
topk.default(x, 2); conv1d.default(x[None], w[:, :4, None], b, [1], [0])
conv1d.padding(x[None], w[:, :4, None], b, [1], 'same'); arange.default(4, device=x.device); arange.start(1, 4)
full.default([2], 0.5, device=x.device); zeros.default([2], dtype=torch.int64); ones_like.default(x)
tril.default(x); triu.default(x, 1); diag.default(b); eq.Scalar(x, 0); bitwise_not.default(x > 0)
logsumexp.default(x, [1]); scaled_dot_product_attention.default(x[None], x[None], x[None], None, 0.0, True)
pad.default(x, [1, 1]); one_hot.default(i, 6); outer.default(b, b); einsum.default('ij,kj->ik', [x, y])
repeat.default(x, [2, 1]); mse_loss.default(x, y); mse_loss.default(x, y, 2); l1_loss.default(x, y)
smooth_l1_loss.default(x, y); huber_loss.default(x, y); soft_margin_loss.default(x, y.sign()); kl_div.default(x, y)
binary_cross_entropy.default(x.sigmoid(), y.sigmoid()); cosine_embedding_loss.default(x, y, o[:4])
cross_entropy_loss.default(x, i[:, 0]); nll_loss.default(x, i[:, 0]); margin_ranking_loss.default(x, y, x)
"""


@pytest.mark.parametrize("call", [c.strip() for line in CALLS.strip().splitlines() for c in line.split(";")])
def test_same_value(call: str) -> None:
    torch.manual_seed(0)
    scope = {"torch": torch, "x": torch.randn(4, 6), "y": torch.randn(4, 6), "w": torch.randn(6, 6)}
    scope |= {"b": torch.randn(6), "z": torch.zeros(6), "o": torch.ones(6), "i": torch.randint(0, 6, (4, 3))}
    text = f"torch.ops.aten.{call}"
    expected, got = eval(text, dict(scope)), eval(plain(text), dict(scope))
    torch.testing.assert_close(got, expected, rtol=0, atol=0, equal_nan=True)


def test_functions_of_the_prelude_are_called_by_name() -> None:
    assert plain("a = operator.call(self.prelude.kernel, x, 1)") == "a = kernel(x, 1)"
    assert plain("a = operator.call(self.prelude.kernel)") == "a = kernel()"
    assert plain("a = operator.call(self.derived, self.fc.weight)") == "a = self.derived(self.fc.weight)"
