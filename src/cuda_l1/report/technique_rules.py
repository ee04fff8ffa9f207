"""Which techniques a kernel that somebody wrote uses, by rule from its text: a table of patterns, and two comparisons.

Comments, docstrings and messages say what a writer meant, so they decide nothing: rules read the Python code and the
native code (C++, CUDA) in its strings. A rule that is not sure gives no tag.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple


class Rule(NamedTuple):
    """A technique, and what its use looks like; a pattern that never matches where there is none."""

    name: str
    python: str | None
    native: str | None


RULES = (
    Rule("shared-memory", None, r"\b__shared__\b"),
    Rule("vectorised-loads", None, r"\b(?:float|double|int|uint|half|__half|__nv_bfloat16|nv_bfloat16)[24]\b"),
    Rule("warp-shuffles", None, r"\b__shfl_\w*sync\b|\b__reduce_(?:add|min|max|and|or|xor)_sync\b|\bcub::WarpReduce\b"),
    Rule("tensor-cores", r"\btl\.dot\(", r"\bwmma::|\bmma\.sync\b|\bwgmma\b|\bcutlass::"),
    Rule("unrolled-loops", r"\btl\.static_range\(", r"#pragma\s+unroll\b"),
    Rule("vendor-library", None, r"\bcu(?:blas|blasLt|dnn)[A-Z]\w*\s*\("),
    Rule("cuda-graph", r"\bcuda\.(?:CUDAGraph|graph|make_graphed_callables)\(", r"\bcudaGraphLaunch\s*\("),
    Rule("streams", r"\bcuda\.Stream\(", r"\bcudaStreamCreate\w*\s*\(|\bgetStreamFromPool\s*\("),
    Rule("torch-compile", r"\btorch\.compile\(|@torch\.compile\b", None),
    Rule("torchscript", r"\bjit\.(?:script|trace)\b", None),
    Rule("fused-attention", r"\bscaled_dot_product_attention\(|\bflash_attn\w*\(", None),
    Rule("half-precision", r"\.half\(\)|\.bfloat16\(\)|\b(?:torch|tl)\.b?float16\b|\btorch\.half\b|\bautocast\(",
         r"\b__half2?\b|\b__nv_bfloat162?\b|\bat::(?:Half|BFloat16)\b|\bc10::(?:Half|BFloat16)\b"),
    Rule("tf32", r"\ballow_tf32\s*=\s*True|set_float32_matmul_precision\(['\"](?:high|medium)['\"]",
         r"\bsetAllowTF32\w*\(\s*true|\bCUBLAS_TF32_\w+|\bCUBLAS_COMPUTE_32F_FAST_TF32\b"),
    Rule("pre-allocation", r"\bself\.\w+\s*=\s*torch\.(?:empty|zeros)\w*\(|\bout\s*=\s*self\.", None),
    Rule("layout", r"\bmemory_format\s*=\s*torch\.channels_last", r"\bMemoryFormat::ChannelsLast"),
)  # fmt: skip
FUSION, REWRITE = "fusion", "algebraic-rewrite"
"""Told by comparing with the reference, see `_compared`."""

_NATIVE = re.compile(r"__global__|#\s*include\b|extern\s+\"C\"|\btorch::Tensor\b|\bat::\w")
_KERNEL = re.compile(r"\b__global__\b|\bextern\s+\"C\"|@triton\.jit\b|\btorch::Tensor\s+\w+\s*\(")
_FUSED = re.compile(
    r"(?:\bvoid|\btorch::Tensor)\s+(?:\w*_)?fus(?:e|ed|ion)(?:_\w*)?\s*\("
    r"|@(?:triton\.jit|traced)\b[^\n]*\s*def (?:\w*_)?fused?_"
)
_C_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_SETTING = re.compile(r"[\w.:/-]{0,24}")
"""Short words in strings are arguments (`"high"`, `"cuda"`); everything longer is talk."""
_FAMILIES = {
    "matmul": r"matmul|mm|bmm|addmm|baddbmm|einsum|linear|bilinear",
    "convolution": r"conv(?:transpose|_transpose)?[123]d",
    "recurrent": r"lstm|gru|rnn",
    "diagonal": r"diag(?:_embed|flat|onal)?",
    "triangle": r"tril|triu",
    "norm": r"(?:batch|layer|group|instance|rms)_?norm(?:[123]d)?",
    "pool": r"(?:adaptive)?_?(?:avg|max)_?pool[123]d",
    "softmax": r"(?:log_?)?softmax",
    "scan": r"cumsum|cumprod|flip",
    "pairwise": r"cdist|pairwise_?distance|cosine_?similarity",
}
_HEAVY = frozenset({"matmul", "convolution", "recurrent", "diagonal", "triangle"})
_POINTWISE = re.compile(
    r"relu|gelu|silu|sigmoid|tanh|softplus|mish|elu|selu|hardtanh|hardswish|hardsigmoid|leaky_?relu|clamp|exp|log|sqrt|"
    r"abs|dropout|sum|mean|logsumexp|max|min"
)
_FAMILY = {name: re.compile(pattern) for name, pattern in _FAMILIES.items()}


@lru_cache(maxsize=4096)
def tags(source: str, reference: str) -> tuple[str, ...]:
    """The techniques that a text shows, in the order of the table; `reference` is the task's own text.

    Nothing is executed. A text that is no Python is looked at as it is.
    """
    python, native = _code(source)
    found = (rule.name for rule in RULES if _matches(rule.python, python) or _matches(rule.native, native))
    return (*found, *_compared(python, native, reference))


def _matches(pattern: str | None, code: str) -> bool:
    return pattern is not None and re.search(pattern, code) is not None


def _compared(python: str, native: str, reference: str) -> Iterator[str]:
    """`fusion`: a kernel of the writer's own in place of two or more kinds of operations, or one that is called fused.
    `algebraic-rewrite`: a kind of heavy operation is gone, and no kernel or library call could have taken it in."""
    has_kernel = bool(_KERNEL.search(native) or _KERNEL.search(python))
    kept = _operations(python) if "ModelNew" in python else None
    gone = set() if kept is None else (_operations(_code(reference)[0]) or set()) - kept
    if has_kernel and (len(gone) > 1 or _FUSED.search(native) or _FUSED.search(python)):
        yield FUSION
    if not has_kernel and not native and gone & _HEAVY:
        yield REWRITE


def _operations(python: str) -> set[str] | None:
    """Kinds of operations that are called, as functions, methods or modules; None of a text that is no Python."""
    try:
        tree = ast.parse(python)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    called = {_name(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    kinds = {family for family, pattern in _FAMILY.items() for name in called if pattern.fullmatch(name)}
    if any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult) for node in ast.walk(tree)):
        kinds.add("matmul")
    return kinds | {name for name in called if _POINTWISE.fullmatch(name)}


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr.lower()
    return function.id.lower() if isinstance(function, ast.Name) else ""


@lru_cache(maxsize=512)
def _code(source: str) -> tuple[str, str]:
    """A text's Python without comments, docstrings and messages, and the native code in its strings."""
    try:
        tree = _Undocumented().visit(ast.parse(source))
        texts = (
            node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        )
        native = "\n".join(text for text in texts if _NATIVE.search(text))
        return ast.unparse(ast.fix_missing_locations(_Silenced().visit(tree))), _C_COMMENT.sub(" ", native)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return re.sub(r"#[^\n]*", "", source), _C_COMMENT.sub(" ", source)


class _Undocumented(ast.NodeTransformer):
    """Without docstrings and other strings that nothing is done with."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        return ast.Pass() if isinstance(node.value, ast.Constant) else self.generic_visit(node)


class _Silenced(ast.NodeTransformer):
    """Without the contents of strings that are no arguments."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        talks = isinstance(node.value, str) and not _SETTING.fullmatch(node.value)
        return ast.Constant("") if talks else node
