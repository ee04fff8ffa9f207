"""One name for every way to write an operator, and one order for its settings."""

from __future__ import annotations

import ast
from functools import cache
from typing import Any

from cuda_l1.tasks.dataflow.graph import SIZE, Node

_ALIASES = {
    "mm": "matmul", "bmm": "matmul", "multiply": "mul", "subtract": "sub", "divide": "div", "truedivide": "div",
    "negative": "neg", "absolute": "abs", "view": "reshape", "swapaxes": "transpose", "concat": "cat",
    "concatenate": "cat", "clip": "clamp", "silu": "silu", "swish": "silu", "logsigmoid": "logsigmoid",
    "float": "to.float32", "half": "to.float16", "bfloat16": "to.bfloat16", "double": "to.float64", "long": "to.int64",
    "sigmoid": "sigmoid", "arctan": "atan", "greater": "gt", "less": "lt", "greaterequal": "ge", "lessequal": "le",
    "iden": "identity", "masked_fill": "maskedfill", "clamp_min": "clampmin", "hardswish": "hardswish",
}  # fmt: skip

IDENTITIES = frozenset({"contiguous", "clone", "detach", "identity", "requiresgrad"})

_NO_SETTING = frozenset({"inplace", "device", "out", "memory_format", "stacklevel", "_stacklevel", "requires_grad"})
_RENAMED = {"axis": "dim", "keepdims": "keepdim", "negative_slope": "negative_slope", "other": "other"}

_SIZES = frozenset(
    {"in_features", "out_features", "in_channels", "out_channels", "num_features", "num_channels", "normalized_shape"}
    | {"num_embeddings", "embedding_dim", "input_size", "hidden_size", "embed_dim", "d_model", "dim_feedforward"}
    | {"in1_features", "in2_features", "kdim", "vdim", "num_classes", "n_classes"}
)
_POOL = "kernel_size stride=None padding=0"
_CONV = "in_channels out_channels kernel_size stride=1 padding=0"
_NORM = "num_features eps=1e-05 momentum=0.1"
_RNN = "input_size hidden_size num_layers=1 bias=True batch_first=False dropout=0 bidirectional=False"
_REDUCTION = "dim=None keepdim=False"
_LOSS = "reduction='mean'"

_SIGNATURES = {
    "linear": "in_features out_features bias=True",
    "bilinear": "in1_features in2_features out_features bias=True",
    "embedding": "num_embeddings embedding_dim padding_idx=None",
    "embeddingbag": "num_embeddings embedding_dim",
    "layernorm": "normalized_shape eps=1e-05 elementwise_affine=True bias=True",
    "rmsnorm": "normalized_shape eps=None elementwise_affine=True",
    "groupnorm": "num_groups num_channels eps=1e-05 affine=True",
    "multiheadattention": "embed_dim num_heads dropout=0 bias=True",
    "grucell": "input_size hidden_size bias=True",
    "lstmcell": "input_size hidden_size bias=True",
    "rnncell": "input_size hidden_size bias=True nonlinearity='tanh'",
    "softmax": "dim=None",
    "logsoftmax": "dim=None",
    "softmin": "dim=None",
    "gelu": "approximate='none'",
    "leakyrelu": "negative_slope=0.01",
    "elu": "alpha=1.0",
    "celu": "alpha=1.0",
    "hardtanh": "min_val=-1.0 max_val=1.0",
    "softplus": "beta=1 threshold=20",
    "hardshrink": "lambd=0.5",
    "softshrink": "lambd=0.5",
    "threshold": "threshold value",
    "glu": "dim=-1",
    "prelu": "num_parameters=1 init=0.25",
    "dropout": "p=0.5 training=True",
    "clamp": "min=None max=None",
    "cumsum": "dim",
    "cumprod": "dim",
    "flip": "dims",
    "cat": "dim=0",
    "stack": "dim=0",
    "chunk": "chunks dim=0",
    "split": "split_size dim=0",
    "unbind": "dim=0",
    "unsqueeze": "dim",
    "squeeze": "dim=None",
    "transpose": "dim0 dim1",
    "flatten": "start_dim=0 end_dim=-1",
    "topk": "k dim=-1 largest=True sorted=True",
    "sort": "dim=-1 descending=False",
    "normalize": "p=2.0 dim=1 eps=1e-12",
    "norm": "p=2 dim=None keepdim=False",
    "cosinesimilarity": "dim=1 eps=1e-08",
    "pairwisedistance": "p=2.0 eps=1e-06 keepdim=False",
    "scaleddotproductattention": "attn_mask=None dropout_p=0.0 is_causal=False scale=None",
    "triu": "diagonal=0",
    "tril": "diagonal=0",
    "pixelshuffle": "upscale_factor",
    "pad": "pad mode='constant' value=None",
    "adaptiveavgpool1d": "output_size",
    "adaptiveavgpool2d": "output_size",
    "adaptiveavgpool3d": "output_size",
    "adaptivemaxpool1d": "output_size",
    "adaptivemaxpool2d": "output_size",
    "kldiv": "size_average=None reduce=None reduction='mean' log_target=False",
    "smoothl1": "size_average=None reduce=None reduction='mean' beta=1.0",
    "huber": "reduction='mean' delta=1.0",
    "crossentropy": "weight=None size_average=None ignore_index=-100 reduce=None reduction='mean' label_smoothing=0.0",
    **{f"{name}": _REDUCTION for name in ("sum", "mean", "prod", "any", "all", "argmax", "argmin", "max", "min")},
    **{f"{name}": _REDUCTION for name in ("amax", "amin", "logsumexp", "median")},
    **{f"{name}": _LOSS for name in ("mse", "l1", "hingeembedding", "softmargin", "bcewithlogits", "bce")},
    **{f"conv{n}d": f"{_CONV} dilation=1 groups=1 bias=True padding_mode='zeros'" for n in (1, 2, 3)},
    **{
        f"convtranspose{n}d": f"{_CONV} output_padding=0 groups=1 bias=True dilation=1 padding_mode='zeros'"
        for n in (1, 2, 3)
    },
    **{f"maxpool{n}d": f"{_POOL} dilation=1 return_indices=False ceil_mode=False" for n in (1, 2, 3)},
    **{f"avgpool{n}d": f"{_POOL} ceil_mode=False count_include_pad=True divisor_override=None" for n in (1, 2, 3)},
    **{f"batchnorm{n}d": f"{_NORM} affine=True track_running_stats=True" for n in (1, 2, 3)},
    **{f"instancenorm{n}d": f"{_NORM} affine=False track_running_stats=False" for n in (1, 2, 3)},
    **dict.fromkeys(("lstm", "gru"), _RNN),
    "rnn": _RNN.replace("num_layers=1", "num_layers=1 nonlinearity='tanh'"),
}

WEIGHTED = frozenset(
    {"linear", "bilinear", "embedding", "embeddingbag", "layernorm", "rmsnorm", "groupnorm", "multiheadattention"}
    | {"grucell", "lstmcell", "rnncell", "lstm", "gru", "rnn", "prelu", "transformerencoderlayer"}
    | {f"{kind}{n}d" for kind in ("conv", "convtranspose", "batchnorm", "instancenorm") for n in (1, 2, 3)}
)
"""Layers with tensors of their own."""

DRAWN = frozenset({"zeros", "ones", "rand", "randn", "empty", "full", "randint", "arange", "eye", "linspace"})
"""Functions whose whole numbers are sizes."""


@cache
def operator_name(name: str) -> str:
    """`leaky_relu`, `LeakyReLU`, `leaky_relu_` -> `leakyrelu`; `mse_loss`, `MSELoss` -> `mse`."""
    plain = name.rstrip("_").replace("_", "").lower()
    if plain.endswith("loss") and plain != "loss":
        plain = plain[: -len("loss")]
    return _ALIASES.get(plain, plain)


def call(name: str, operands: list[Any], settings: list[Any], keywords: dict[str, Any]) -> Any:
    """The node of one operator: `operands` are tensors, `settings` what was given by position behind them."""
    op = operator_name(name)
    if op in IDENTITIES:
        return operands[0]
    if op.startswith("to."):
        op, settings = "to", [Node("dtype", (op.partition(".")[2],))]
    options = _options(op, settings, keywords)
    if op == "dropout" and (options.get("p") == 0 or options.get("training") is False):
        return operands[0]
    if op == "square":
        op, operands = "pow", [operands[0], 2]
    if op == "reshape":
        return reshape(operands[0], [*operands[1:], *settings])
    if op == "t":
        op, options = "transpose", {}
    if op == "transpose" and {options.get("dim0"), options.get("dim1")} == {-2, -1}:
        options = {}
    if op in ("expand", "repeat", *DRAWN):
        options = {key: _sizes(value) if isinstance(key, int) else value for key, value in options.items()}
    return Node(op, tuple(operands), tuple((str(key), options[key]) for key in sorted(options, key=str)))


def reshape(tensor: Any, sizes: list[Any]) -> Node:
    """Only how many sizes there are, and where one is left open; `view(len(x), -1)` is `flatten(1)`."""
    flat = list(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    kept = tuple(-1 if size == -1 else SIZE for size in flat)
    if kept == (SIZE, -1):
        return Node("flatten", (tensor,), (("start_dim", 1),))
    return Node("reshape", (tensor, kept))


def layer_options(op: str, args: list[Any], keywords: dict[str, Any]) -> dict[Any, Any]:
    """The settings of a layer, without its sizes and without what is the default."""
    if op == "flatten":
        keywords = {"start_dim": 1, **keywords} if not args else keywords
    return _options(op, args, keywords)


def _options(op: str, settings: list[Any], keywords: dict[str, Any]) -> dict[Any, Any]:
    names, defaults = _signature(op)
    bound: dict[Any, Any] = {names[i] if i < len(names) else i: value for i, value in enumerate(settings)}
    bound |= {_RENAMED.get(key, key): value for key, value in keywords.items()}
    bound = {key: _one(value) for key, value in bound.items() if key not in _NO_SETTING}
    if "groups" in bound and bound["groups"] not in (1, SIZE):
        bound["groups"] = SIZE if bound["groups"] == bound.get("in_channels") else bound["groups"]
    if "stride" in bound and "pool" in op and bound["stride"] == bound.get("kernel_size"):
        del bound["stride"]
    return {
        key: SIZE if op == "groupnorm" and key == "num_groups" and value == bound.get("num_channels") else value
        for key, value in bound.items()
        if key not in _SIZES and not (key in defaults and _same(value, defaults[key]))
    }


def _same(value: Any, default: Any) -> bool:
    return isinstance(value, bool) is isinstance(default, bool) and bool(value == default)


def _one(value: Any) -> Any:
    """(3, 3) -> 3."""
    if isinstance(value, (tuple, list)) and len(value) > 1 and all(type(v) is int for v in value):
        return value[0] if len(set(value)) == 1 else tuple(value)
    return value


def _sizes(value: Any) -> Any:
    if type(value) is int and value != -1:
        return SIZE
    return tuple(_sizes(item) for item in value) if isinstance(value, (tuple, list)) else value


@cache
def _signature(op: str) -> tuple[tuple[str, ...], dict[str, Any]]:
    words = [word.partition("=") for word in _SIGNATURES.get(op, "").split()]
    return tuple(word[0] for word in words), {name: ast.literal_eval(text) for name, sign, text in words if sign}
