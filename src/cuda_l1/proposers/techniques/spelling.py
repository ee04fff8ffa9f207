"""Print ATen calls as the plain PyTorch functions they are: easier to read, and about 1 us cheaper to call each.

`torch.ops.aten.relu.default(x)` goes through a dispatcher object written in Python; `torch.relu(x)` is a C function.
Both are generated from one declaration, so arguments keep their places and names. Defaults are the same but for one
kind: the C functions read the default of `reduction`, which is declared by name (`Mean`), as 0, which is no reduction.
"""

from __future__ import annotations

import functools
import re
import types

_CALL = re.compile(r"torch\.ops\.aten\.(\w+)\.(\w+)\(")
_GENERATED_CALL = re.compile(r"\boperator\.call\(self\.(prelude\.)?([\w.]+)(?:, |(?=\)))")
_OTHER_ARGUMENTS = frozenset({("to", "dtype_layout")})
"""Overloads that the plain function does not take in the operation's order."""


def plain(line: str) -> str:
    """The statement with each ATen call that has a plain spelling written so, and prelude functions called by name."""
    line = _GENERATED_CALL.sub(lambda match: f"{match[2]}(" if match[1] else f"self.{match[2]}(", line)
    return _CALL.sub(lambda match: f"{_spelling(match[1], match[2])}(", line)


@functools.cache
def _spelling(name: str, overload: str) -> str:
    """The C function behind an ATen operation, where PyTorch has one under the same name."""
    import torch

    if (name, overload) not in _OTHER_ARGUMENTS and not _takes_reduction(name, overload):
        if isinstance(getattr(torch, name, None), types.BuiltinFunctionType):
            return f"torch.{name}"
        if isinstance(getattr(torch.nn.functional, name, None), types.BuiltinFunctionType):
            return f"torch.nn.functional.{name}"
        if isinstance(getattr(torch._C._nn, name, None), types.BuiltinFunctionType):
            return f"torch._C._nn.{name}"
        if isinstance(getattr(torch.Tensor, name, None), types.MethodDescriptorType):
            return f"torch.Tensor.{name}"
    return f"torch.ops.aten.{name}.{overload}"


def _takes_reduction(name: str, overload: str) -> bool:
    """Whether an ATen operation has an argument called `reduction`; False for one that does not exist here."""
    import torch

    schema = getattr(getattr(getattr(torch.ops.aten, name, None), overload, None), "_schema", None)
    return schema is not None and any(argument.name == "reduction" for argument in schema.arguments)
