"""Inductor's code stands alone for graphs whose results are their own memory, and is refused for all others."""

from __future__ import annotations

import ast
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from captures import hold_to_reference
from graphs import FRESH_PROCESS, applies, candidate, make_task

from cuda_l1.proposers.techniques import build, inductor
from cuda_l1.proposers.techniques.draft import open_draft
from cuda_l1.proposers.techniques.inductor import Inductor
from cuda_l1.proposers.techniques.lifted_code import Generated, LiftError, self_contained
from cuda_l1.types import Task

ROW = "torch.randn(4, 16)"
LIFTED = {
    "softmax": make_task("return (x * 2).softmax(-1)", ROW),
    "rms_norm": make_task(
        "return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.w",
        ROW,
        "self.w = nn.Parameter(torch.ones(16))",
    ),
    "layer_norm": make_task("return self.n(x) + x", ROW, "self.n = nn.LayerNorm(16)"),
    "linear": make_task("return F.gelu(self.l(x))", ROW, "self.l = nn.Linear(16, 8)"),
    "batch_norm_train": make_task("return F.relu(self.n(x)), x.sum()", ROW, "self.n = nn.BatchNorm1d(16)"),
    "batch_norm_eval": make_task("return self.n(x)", ROW, "self.n = nn.BatchNorm1d(16).eval()"),
    "convolution": make_task("return self.c(x).relu()", "torch.randn(1, 2, 6, 6)", "self.c = nn.Conv2d(2, 3, 3)"),
    "attention": make_task(
        "return F.scaled_dot_product_attention(*self.l(x).chunk(3, -1), is_causal=True)",
        "torch.randn(2, 5, 8)",
        "self.l = nn.Linear(8, 24)",
    ),
    "embedding": make_task("return self.e(x).sum(1)", "torch.randint(0, 9, (4, 3))", "self.e = nn.Embedding(9, 5)"),
    "structure": make_task("return x.sum(-1), {'a': x.sigmoid(), 'b': [x.argmax(-1), None]}", ROW),
    "literal": make_task("return x * torch.tensor([1.0, 2.0, 3.0])", "torch.randn(4, 3)"),
    "arange": make_task("return x + torch.arange(16, device=x.device)", ROW),
    "mask": make_task(
        "return x.masked_fill(torch.ones(5, 5, device=x.device).triu(1).bool(), -1e9).softmax(-1)",
        "torch.randn(4, 5, 5)",
    ),
    "pooling": make_task("return F.max_pool2d(x, 2).mean((2, 3))", "torch.randn(2, 3, 8, 8)"),
    "scan": make_task("return x.cumsum(-1)", ROW),
    "bf16": make_task("return F.silu(x) * x", "torch.randn(3, 16, dtype=torch.bfloat16)"),
    "loss": make_task("return F.cross_entropy(x, x.argmax(-1))", ROW),
    "group_norm": make_task("return self.g(x).relu()", "torch.randn(2, 8, 5)", "self.g = nn.GroupNorm(2, 8)"),
    "integers": make_task("return (x // 2) % 3, x.float().std()", "torch.randint(1, 9, (7,))"),
    "counter": make_task("self.n.add_(1)\nreturn x * self.n", ROW, "self.register_buffer('n', torch.zeros(1))"),
    "tied": make_task(
        "return F.linear(F.linear(x, self.w), self.w)", ROW, "self.w = nn.Parameter(torch.randn(16, 16))"
    ),
    "written_argument": make_task("x.mul_(2)\nreturn x.sum()", ROW),
    "argument_too": make_task("return x, x + 1", ROW),
    "transposed": make_task("return x.t() @ self.w", ROW, "self.w = nn.Parameter(torch.randn(4, 4))"),
    "unused_weights": make_task("return x.relu()", ROW, "self.l = nn.Linear(2, 2)"),
}

REFUSED = {
    "identity": make_task("return x", ROW),
    "view": make_task("return x.view(-1)", ROW),
    "transpose": make_task("return x.t()", ROW),
    "expand": make_task("return x.expand(3, 4, 16)", ROW),
    "chunks": make_task("return x.chunk(2, -1)", ROW),
    "slice": make_task("return x[:, :3], x + 1", ROW),
    "diagonal_view": make_task("return x.diagonal()", ROW),
    "returns_written_argument": make_task("return x.add_(1)", ROW),
    "weight": make_task("return self.w", ROW, "self.w = nn.Parameter(torch.ones(2))"),
    "view_of_weight": make_task("return self.w.t(), x + 1", ROW, "self.w = nn.Parameter(torch.ones(2, 3))"),
    "buffer": make_task("self.n.add_(1)\nreturn self.n", ROW, "self.register_buffer('n', torch.zeros(1))"),
    "dropout": make_task("return F.dropout(x)", ROW),
    "dropout_module": make_task("return self.d(x)", ROW, "self.d = nn.Dropout(0.5)"),
    "attention_dropout": make_task("return F.scaled_dot_product_attention(x, x, x, None, 0.1)", "torch.randn(1, 4, 8)"),
    "rand_like": make_task("return x + torch.rand_like(x)", ROW),
    "randn": make_task("return x + torch.randn(16)", ROW),
    "randint": make_task("return x + torch.randint(0, 3, (16,))", ROW),
    "bernoulli": make_task("return torch.bernoulli(x.sigmoid())", ROW),
    "multinomial": make_task("return torch.multinomial(x.sigmoid(), 2)", ROW),
    "rrelu": make_task("return F.rrelu(x, training=True)", ROW),
    "list_argument": make_task("return x[0] + x[1]", f"[{ROW}, {ROW}]"),
}  # fmt: skip


@pytest.mark.parametrize("name", LIFTED)
def test_code_is_lifted_into_a_file_of_its_own(name: str) -> None:
    source = candidate(LIFTED[name], "inductor").source
    ast.parse(source)
    assert "inductor_forward(" in source.split("class ModelNew")[1]
    for foreign in ("benchmark_compiled_module", "AOT ID", "globals()", "assert_size_stride(buf"):
        assert foreign not in source


@pytest.mark.parametrize("name", REFUSED)
def test_graphs_that_need_more_than_a_call_are_refused(name: str) -> None:
    assert not applies("inductor", REFUSED[name])


def test_the_same_draft_gives_the_same_text() -> None:
    sources = []
    for _ in range(2):
        draft = open_draft(LIFTED["batch_norm_train"], "cpu")
        technique = Inductor()  # one that remembers nothing
        assert technique.applies(draft)
        technique.apply(draft)
        sources.append(draft.prelude)
    assert sources[0] == sources[1]


def test_without_a_gpu_nothing_is_generated_for_one(caplog: pytest.LogCaptureFixture) -> None:
    if torch.cuda.is_available():
        pytest.skip("here there is one")
    with caplog.at_level(logging.INFO):
        assert build(LIFTED["softmax"], ["inductor"], "cuda") is None
    assert "needs the GPU" in caplog.text


def test_a_changed_internal_of_torch_is_a_logged_refusal(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def removed(*_: Any, **__: Any) -> None:
        raise AttributeError("module has no attribute")

    monkeypatch.setattr("torch._inductor.compile_fx.compile_fx", removed)
    with caplog.at_level(logging.INFO):
        assert not Inductor().applies(open_draft(LIFTED["softmax"], "cpu"))
    assert "AttributeError: module has no attribute" in caplog.text


def test_text_is_indented_around_strings_and_cut_to_what_runs() -> None:
    code = (
        "# AOT ID: ['0_inference']\nasync_compile = AsyncCompile()\n"
        "k = async_compile.triton('k', '''\nimport triton\n# kernel path: kept inside a string\n''')\n"
        "# kernel path: /somewhere\nasync_compile.wait(globals())\n\ndef call(args):\n    arg0_1, = args\n"
        "    assert_size_stride(arg0_1, (1,), (1,), 'input')\n    assert_size_stride(buf0, (1,), (1,))\n"
        '    return (k(arg0_1), )\n\ndef get_args():\n    pass\n\nif __name__ == "__main__":\n    get_args()\n'
    )
    text = self_contained(Generated(code, mutated=(1,), isa=""), aligned=(0,), version="2.9.0")
    ast.parse(text)
    assert "\nimport triton\n# kernel path: kept inside a string\n''')" in text
    assert "/somewhere" not in text and "get_args" not in text and "assert_size_stride(buf0" not in text
    assert "    async_compile.wait(locals())" in text and "assert_size_stride(arg0_1" in text
    assert "increment_version((args[1],))" in text and "data_ptr() % 16" in text


def test_an_output_that_aliases_is_named_in_the_reason() -> None:
    draft = open_draft(REFUSED["view"], "cpu")
    assert draft.graph_module is not None
    with pytest.raises(LiftError, match="shares memory"):
        inductor._lift(draft.graph_module, "cpu")


# ── Values: a fresh process with another cache directory ──────────────────────────────────────────

_RUN = (
    FRESH_PROCESS
    + """
import json, sys, torch
from torch.utils._pytree import tree_leaves
worst = {}
for name, source in json.load(sys.stdin).items():
    scope = {"__name__": "candidate"}
    exec(compile(source, "candidate", "exec"), scope)
    reference, new = scope["Model"](), scope["ModelNew"]()
    new.load_state_dict(reference.state_dict())
    worst[name] = 0.0
    with torch.no_grad():
        for trial in range(3):
            given = scope["get_inputs"]()
            if trial == 1:
                for old, changed in zip(reference.parameters(), new.parameters()):
                    old.mul_(1.5).add_(0.1)
                    changed.copy_(old)
                given = [torch.empty(x.numel() + 1, dtype=x.dtype)[1:].view_as(x).copy_(x) for x in given]
            mine = [torch.empty(x.numel() + 1, dtype=x.dtype)[1:].view_as(x).copy_(x) for x in given]
            versions = [buffer._version for buffer in new.buffers()]
            left = reference(*given), given, list(reference.buffers())
            right = new(*mine), mine, list(new.buffers())[:len(left[2])]
            for a, b in zip(tree_leaves(left), tree_leaves(right), strict=True):
                if a is not None:
                    assert a.dtype == b.dtype and a.stride() == b.stride(), (name, a.dtype, b.dtype)
                    worst[name] = max(worst[name], ((a - b).abs().max() / a.abs().max()).item())
            if name == "batch_norm_train":
                assert all(b._version > v for b, v in zip(new.buffers(), versions, strict=True))
print(json.dumps(worst))
"""
)

KEPT = make_task(
    "return F.linear(x, self.w * self.m).sigmoid()",
    ROW,
    "self.w = nn.Parameter(torch.randn(16, 16))\nself.register_buffer('m', torch.ones(16, 16).tril())",
)


def run_in_fresh_process(sources: dict[str, str], cache: Path) -> dict[str, float]:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OWN_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", _RUN], input=json.dumps(sources), env=environment, capture_output=True, text=True,
        timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    errors: dict[str, float] = json.loads(done.stdout)
    return errors


def lifted_source(task: Task, *techniques: str) -> str:
    return candidate(task, *techniques).source


def test_lifted_code_computes_what_the_reference_does(tmp_path: Path) -> None:
    sources = {name: lifted_source(LIFTED[name], "inductor") for name in ("batch_norm_train", "structure")}
    sources["kept"] = lifted_source(KEPT, "kept_weights", "inductor")
    errors = run_in_fresh_process(sources, tmp_path)
    assert all(error < 1e-5 for error in errors.values()), errors


@pytest.mark.gpu
# `literal` makes a tensor on the CPU: its reference runs there only.
@pytest.mark.parametrize("name", [name for name in LIFTED if name not in ("written_argument", "literal")])
def test_lifted_triton_computes_what_the_reference_does(name: str) -> None:
    built = build(LIFTED[name], ["inductor"], "cuda")
    assert built is not None
    hold_to_reference(built.source)


@pytest.mark.gpu
def test_lifted_triton_follows_kept_weights_and_refuses_written_arguments() -> None:
    built = build(KEPT, ["kept_weights", "inductor"], "cuda")
    assert built is not None
    hold_to_reference(built.source)
    assert build(LIFTED["written_argument"], ["inductor"], "cuda") is None


def test_kernels_for_other_vector_instructions_refuse_to_load() -> None:
    text = self_contained(Generated("def call(args):\n    return ()\n", mutated=(), isa="of another CPU"), (), "2.9.0")
    with pytest.raises(RuntimeError, match="written for of another CPU vectors"):
        exec(text, {})
