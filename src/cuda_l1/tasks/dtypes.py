"""Short names of dtypes, and the text that puts a whole task into one."""

from __future__ import annotations

from cuda_l1.errors import TaskError

TORCH_DTYPES = {
    "fp64": "float64",
    "fp32": "float32",
    "bf16": "bfloat16",
    "fp16": "float16",
    "i8": "int8",
    "u8": "uint8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "bool": "bool",
}
"""Short names to torch's; torch's own names are understood too."""

FLOATS = ("fp64", "fp32", "bf16", "fp16")

_ALIASES = {"f64": "fp64", "f32": "fp32", "f16": "fp16", "half": "fp16", "float": "fp32", "double": "fp64"}
_ALIASES |= {"int": "i64", "long": "i64"}


def short_dtype(name: str) -> str:
    """`bf16` for `bf16`, `bfloat16` or `torch.bfloat16`; raises TaskError listing the choices."""
    text = name.removeprefix("torch.")
    text = _ALIASES.get(text, text)
    for short, full in TORCH_DTYPES.items():
        if text in (short, full):
            return short
    raise TaskError(f"unknown dtype `{name}`; choose one of {', '.join(TORCH_DTYPES)}")


def float_dtype(name: str) -> str:
    """The same for a dtype that parameters can have."""
    short = short_dtype(name)
    if short not in FLOATS:
        raise TaskError(f"parameters cannot be {short}; choose one of {', '.join(FLOATS)}")
    return short


# `Model.__init__` is wrapped, not subclassed: a file's `super(Model, self).__init__()` must go on meaning its class.
_CAST_MODEL = """
_construct = Model.__init__


def _construct_in_dtype(self, *args, **kwargs):
    _construct(self, *args, **kwargs)
    self.to({dtype})
    for module in self.modules():
        for name, value in list(vars(module).items()):
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                setattr(module, name, value.to({dtype}))


Model.__init__ = _construct_in_dtype
"""

_CAST_INPUTS = """
def _in_dtype(value):
    if isinstance(value, (list, tuple)):
        return type(value)(_in_dtype(item) for item in value)
    if isinstance(value, dict):
        return {{key: _in_dtype(item) for key, item in value.items()}}
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.to({dtype})
    return value


_draw_inputs = get_inputs


def get_inputs():
    return [_in_dtype(value) for value in _draw_inputs()]
"""


def cast_model(short: str) -> str:
    """Text after which `Model` has its floating parameters, buffers and plain tensor attributes in this dtype."""
    return _CAST_MODEL.format(dtype=f"torch.{TORCH_DTYPES[short]}")


def cast_inputs(short: str) -> str:
    """Text after which `get_inputs` draws its floating tensors in this dtype."""
    return _CAST_INPUTS.format(dtype=f"torch.{TORCH_DTYPES[short]}")
