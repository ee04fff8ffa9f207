"""Matrix products of float32 in TF32: inputs rounded to 10 bits, accumulated in float32."""

from __future__ import annotations

from typing import Literal

from cuda_l1.proposers.techniques.draft import Draft
from cuda_l1.proposers.techniques.precision import MATRIX_PRODUCTS, float32_products

# Convolutions are not touched: cuDNN's TF32 is on as PyTorch ships.
_WRAPPER = '''
def with_tf32_products(base):
    """The module class with TF32 allowed for matrix products inside its own forward only."""

    class ModelNew(base):
        def forward(self, *args, **kwargs):
            before = torch.get_float32_matmul_precision()
            torch.set_float32_matmul_precision("high")
            try:
                return super().forward(*args, **kwargs)
            finally:
                torch.set_float32_matmul_precision(before)

    return ModelNew
'''


class Tf32:
    """Tensor cores for float32 matrix products, by TF32."""

    name = "tf32"
    devices = frozenset({"cuda"})
    stage = 50
    precision: Literal["same", "tf32", "relaxed"] = "tf32"

    def applies(self, draft: Draft) -> bool:
        """Whether the graph holds a matrix product of float32."""
        if draft.graph_module is None or draft.wrap:
            return False
        return next(float32_products(draft.graph_module.graph, MATRIX_PRODUCTS), None) is not None

    def apply(self, draft: Draft) -> None:
        """Wrap the finished class."""
        draft.use(_WRAPPER)
        draft.wrap.append("with_tf32_products")


TECHNIQUE = Tf32()
