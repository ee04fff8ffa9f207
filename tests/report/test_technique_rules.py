"""Which techniques a text shows: what each rule sees, and what only looks like it."""

from __future__ import annotations

import pytest

from cuda_l1.prelude.traced import TRACED
from cuda_l1.report.technique_rules import RULES, tags

REFERENCE = """
class Model(nn.Module):
    def forward(self, x, w):
        return torch.softmax(torch.relu(x @ w), dim=-1)
"""


def cuda(body: str) -> str:
    return f'SOURCE = r"""\n#include <torch/extension.h>\n__global__ void k(float* x) {{ {body} }}\n"""\n'


def python(body: str) -> str:
    return f"import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x, w):\n        {body}\n"


SEEN = {
    "shared-memory": cuda("__shared__ float tile[32][33];"),
    "vectorised-loads": cuda("float4 v = reinterpret_cast<const float4*>(x)[0];"),
    "warp-shuffles": cuda("v += __shfl_down_sync(0xffffffff, v, 16);"),
    "tensor-cores": cuda("wmma::fragment<wmma::matrix_a, 16, 16, 16, half> a;"),
    "unrolled-loops": cuda("#pragma unroll\nfor (int i = 0; i < 4; ++i) {}"),
    "vendor-library": cuda("}\nvoid f() { cublasSgemm(handle, 0); "),
    "cuda-graph": python("graph = torch.cuda.CUDAGraph()"),
    "streams": python("side = torch.cuda.Stream()"),
    "torch-compile": python("return torch.compile(self.inner, mode='reduce-overhead')(x)"),
    "torchscript": "@torch.jit.script\ndef f(x):\n    return x\n",
    "fused-attention": python("return F.scaled_dot_product_attention(x, x, x)"),
    "half-precision": python("return (x.half() @ w.to(torch.float16)).float()"),
    "tf32": "import torch\ntorch.set_float32_matmul_precision('high')\n",
    "pre-allocation": python("torch.matmul(x, w, out=self.buffer)"),
    "layout": python("return x.to(memory_format=torch.channels_last)"),
}

NEAR_MISSES = {
    "shared-memory": [cuda("// __shared__ float tile[32];"), python("'a __shared__ tile, __global__ void'")],
    "vectorised-loads": [cuda("int float4_count = 4; /* float4 */"), "float4 = 1\n"],
    "warp-shuffles": [cuda("shuffle(x);"), python("x = torch.randperm(4)  # __shfl_sync")],
    "tensor-cores": [cuda("// wmma::load"), python("return tl.dots(x)")],
    "unrolled-loops": [cuda("// #pragma unroll"), python("# tl.static_range(4)\n        pass")],
    "vendor-library": [cuda("cublasHandle_t handle;"), python("torch.backends.cudnn.benchmark = True")],
    "cuda-graph": [python("graph = build_graph(x)"), python("raise RuntimeError('torch.cuda.CUDAGraph() failed')")],
    "streams": [python("s = torch.cuda.current_stream()"), cuda("getCurrentCUDAStream();")],
    "torch-compile": [python("torch.compiler.disable(f)"), "import re\nP = re.compile('x')\n"],
    "torchscript": [python("return self.jitter.scripted(x)")],
    "fused-attention": [python("return self.attention(x)")],
    "half-precision": [python("return x[: self.half]"), python("half = x.shape[0] // 2"), cuda("int half_width;")],
    "tf32": [python("torch.backends.cuda.matmul.allow_tf32 = False"), "torch.set_float32_matmul_precision('highest')"],
    "pre-allocation": [python("self.weight = torch.nn.Parameter(torch.empty(4))"), python("y = torch.empty(4)")],
    "layout": [python("return x.contiguous()"), python("return x.to(memory_format=torch.contiguous_format)")],
}


def test_every_rule_has_both() -> None:
    assert {rule.name for rule in RULES} == SEEN.keys() == NEAR_MISSES.keys()


@pytest.mark.parametrize("name", SEEN)
def test_a_technique_is_seen(name: str) -> None:
    assert name in tags(SEEN[name], REFERENCE)


@pytest.mark.parametrize(("name", "source"), [(name, text) for name, texts in NEAR_MISSES.items() for text in texts])
def test_what_only_looks_like_it_is_not(name: str, source: str) -> None:
    assert name not in tags(source, REFERENCE)


def test_a_kernel_in_place_of_two_kinds_of_operations_is_a_fusion() -> None:
    kernel = cuda("x[0] = 0;")
    assert "fusion" in tags(kernel + python("return torch.mm(k(x), w)"), REFERENCE)
    assert "fusion" not in tags(kernel + python("return k(torch.relu(x @ w))"), REFERENCE), "one kind is gone"
    assert "fusion" in tags(kernel.replace("void k", "void fused_softmax") + python("return x"), python("return x"))
    assert "fusion" not in tags(kernel.replace("void k", "void refuse") + python("return x"), python("return x"))
    traced = f"{TRACED}\n\n@traced\ndef fused_0(x):\n    v1 = tanh(x)\n    return v1 * v1\n\n"
    assert "fusion" in tags(traced + python("return fused_0(x)"), python("return torch.tanh(x).square()"))


def test_a_heavy_operation_that_is_gone_without_a_kernel_is_a_rewrite() -> None:
    diagonal = python("return torch.diag(x) @ w")
    assert "algebraic-rewrite" in tags(python("return x.unsqueeze(1) * w"), diagonal)
    assert "algebraic-rewrite" not in tags(python("return torch.mm(torch.diag(x), w)"), diagonal), "another spelling"
    assert "algebraic-rewrite" not in tags(cuda("x[0] = 0;") + python("return k(x, w)"), diagonal), (
        "a kernel may hold it"
    )


@pytest.mark.parametrize(
    "source", ["", "def (", "\0", "x = " + "(" * 500, "class Model:\n    def f(self): 'torch.compile('"]
)
def test_any_text_is_looked_at(source: str) -> None:
    assert tags(source, REFERENCE) == ()
