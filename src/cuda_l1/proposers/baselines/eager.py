"""PyTorch without any compiler: as shipped, and with every use of TF32 off."""

from __future__ import annotations


def as_shipped(source: str) -> str:
    """The denominator of every speed-up: the task's own module."""
    return "ModelNew = Model"


def without_tf32(source: str) -> str:
    """Eager with cuDNN's TF32 off too (it is on as shipped): the baseline of the class fp32."""
    # Process-wide and at import, as a user sets it: a context manager in forward would cost microseconds a call.
    return """
import torch

torch.backends.cudnn.allow_tf32 = False
torch.backends.cuda.matmul.allow_tf32 = False


class ModelNew(Model):
    pass
"""
