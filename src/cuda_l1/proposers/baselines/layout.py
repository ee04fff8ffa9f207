"""Convolutions in channels-last memory format."""

from __future__ import annotations

import ast

_CONVOLUTIONS = {
    f"{spelling}{rank}d" for rank in (2, 3) for spelling in ("Conv", "conv", "ConvTranspose", "conv_transpose")
}

_SUFFIX = '''
import torch
from torch.nn.modules.conv import _ConvNd

_CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def _channels_last(value):
    if isinstance(value, torch.Tensor) and value.dim() in _CHANNELS_LAST:
        return value.contiguous(memory_format=_CHANNELS_LAST[value.dim()])
    return value


class ModelNew(Model):
    """Model with the weights of its convolutions, and its 4-D and 5-D inputs, in channels-last format."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        for module in self.modules():
            if isinstance(module, _ConvNd):
                module.weight.data = _channels_last(module.weight.data)

    def forward(self, *args, **kwargs):
        kwargs = {name: _channels_last(value) for name, value in kwargs.items()}
        return super().forward(*map(_channels_last, args), **kwargs)
'''


def channels_last(source: str) -> str | None:
    """The suffix where the source names a 2-D or 3-D convolution, else None."""
    return _SUFFIX if _names(source) & _CONVOLUTIONS else None


def _names(source: str) -> set[str]:
    """Every name, attribute and import that the source mentions; none where it is not Python."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:
        return set()
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    imported = {node.name for node in nodes if isinstance(node, ast.alias)}
    return attributes | imported | {node.id for node in nodes if isinstance(node, ast.Name)}
