"""Findings from the text of a candidate: each with an honest twin that must not be seen."""

from __future__ import annotations

import pytest
from evaluator_support import text

from cuda_l1.api.judging import read_candidate
from cuda_l1.evaluator.findings.static import static_findings


def seen(body: str) -> dict[str, str]:
    return {f.check: f.severity for f in static_findings(text(body))}


FALLBACK = """
class ModelNew(nn.Module):
    def forward(self, x):
        try:
            return kernel(x)
        except RuntimeError:
            {handler}
"""

TWINS = {
    "clock": ("import time\nstart = time.perf_counter()", "from datetime import date"),
    "stream": ("s = torch.cuda.Stream()", "s = torch.cuda.current_stream()"),
    "thread": ("import threading", "torch.get_num_threads()"),
    "frame": ("import sys\nsys._getframe(1)", "frame = torch.ones(2)"),
    "gc": ("import gc\ngc.get_objects()", "gc_content = 1"),
    "monkey-patch": ("torch.matmul = fake", "self.matmul = torch.matmul"),
    "file-access": ("open('/etc/passwd')", "F.relu(x)"),
    "network": ("import urllib.request", "import math"),
    "backend-flag": ("torch.backends.cuda.matmul.allow_tf32 = True", "allow = torch.backends.cuda.matmul.allow_tf32"),
    "deferred-work": (
        "class A:\n    def __del__(self):\n        work()",
        "class A:\n    def delete(self):\n        work()",
    ),
    "exit": ("import os\nos._exit(0)", "import os\nos.path.join('a', 'b')"),
    "signal": ("import os\nos.kill(1, 9)", "skill(1, 9)"),
    "silent-fallback": (FALLBACK.format(handler="return super().forward(x)"), FALLBACK.format(handler="raise")),
}


@pytest.mark.parametrize("check", TWINS)
def test_each_check_sees_its_case_and_not_its_twin(check):
    case, twin = TWINS[check]
    assert seen(case)[check] == ("suspect" if check == "silent-fallback" else "note")
    assert seen(twin) == {}


@pytest.mark.parametrize(
    "handler",
    [
        "return torch.relu(x)",
        "return F.relu(x)",
        "return self.slow(x)",
        "out = self.reference(x)",
        "self.use_kernel = False",
        "return self.model.Model.forward(x)",
    ],
)
def test_an_exception_that_is_answered_is_a_silent_fallback(handler):
    assert seen(FALLBACK.format(handler=handler)) == {"silent-fallback": "suspect"}


@pytest.mark.parametrize(
    "body",
    [
        "try:\n    import triton\nexcept ImportError:\n    triton = None",
        FALLBACK.format(handler="raise RuntimeError(f'kernel failed on {x.shape}')"),
        FALLBACK.format(handler="message = str(x.shape)\n            raise"),
        "def build():\n    try:\n        return compile_it()\n    finally:\n        clean_up()",
    ],
    ids=["optional-import", "better-error", "message", "finally"],
)
def test_other_handlers_are_not(body):
    assert "silent-fallback" not in seen(body)


NAMED = """
class ModelNew(nn.Module):
    def forward(self, x):
        try:
            y = kernel(x)
        except RuntimeError:
            {handler}
        {after}
"""


@pytest.mark.parametrize(
    ("handler", "after"),
    [
        ("y = torch.relu(x)", "return y"),
        ("y = torch.relu(x)", "return y.view(2, -1)"),
        ("y = torch.relu(x)", "z = y + 1\n        return z"),
        ("y, kept = torch.max(x, dim=1)", "return y"),
        ("y: torch.Tensor = F.relu(x)", "return y"),
        ("flat = x.flatten()\n            y = torch.relu(flat)", "return y"),
        ("self.y = torch.relu(x)", "return self.y"),
        ("self.y = torch.relu(x)", "return self.last()\n\n    def last(self):\n        return self.y"),
        ("outputs[0] = self.slow(x)", "return outputs"),
    ],
)
def test_a_fallback_that_is_given_a_name_before_it_is_returned_is_silent_too(handler, after):
    assert seen(NAMED.format(handler=handler, after=after)) == {"silent-fallback": "suspect"}


@pytest.mark.parametrize(
    ("handler", "after"),
    [
        ("y = torch.empty_like(x)", "kernel_of_rows(x, y)\n        return y"),
        ("self.packed = torch.transpose(self.weight, 0, 1)", "return kernel_of(self.packed, x)"),
        ("message = torch.typename(x)", "raise RuntimeError(message)"),
        ("y = x.contiguous()", "return kernel(y)"),
    ],
    ids=["room", "weights", "message", "layout"],
)
def test_what_a_handler_sets_and_nobody_returns_as_torchs_answer_is_none(handler, after):
    assert "silent-fallback" not in seen(NAMED.format(handler=handler, after=after))


def test_the_line_is_named_and_each_check_is_reported_once():
    findings = static_findings("import torch\nimport gc\nimport gc\n")
    assert len(findings) == 1 and findings[0].evidence == "line 2: imports gc"


@pytest.mark.parametrize(
    "source",
    [
        "def broken(:",
        "x = '\0'",
        "",
        "x = " + "(" * 5000 + ")" * 5000,
        "x = " + "+".join(["1"] * 20000),
        "try:\n    pass\nexcept Exception:\n    y = " + "-" * 900 + "1",
        "a" + ".b" * 900 + " = 1",
        "torch" + ".b" * 900 + " = 1",
    ],
    ids=["syntax", "nul", "empty", "brackets", "sum", "minus", "attributes", "patched-attributes"],
)
def test_text_that_is_odd_or_deep_does_no_harm(source):
    assert isinstance(static_findings(source), list)


AUTOTUNER = """
import torch

class ModelNew(torch.nn.Module):
    def forward(self, x):
        best = float("inf")
        for variant in self.variants:
            try:
                took = self.clock(variant, x)
            except RuntimeError:
                continue
            if took < best:
                best, self.chosen = took, variant
        return torch.relu(self.chosen(x))
"""
MISSING = """
import contextlib, torch
kernel = None
with contextlib.suppress(Exception):
    kernel = build()

class ModelNew(torch.nn.Module):
    def forward(self, x):
        if kernel is None:
            return torch.relu(x)
        return kernel(x)
"""
DEAD = """
import ctypes, torch
kernel = ctypes.CDLL("k.so").relu

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
"""


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (AUTOTUNER, set()),
        (MISSING, {"silent-fallback"}),
        (DEAD, {"dead-kernel"}),
        (DEAD.replace("torch.relu(x)", "kernel(x)"), set()),
        (
            DEAD.replace("torch.relu(x)", "start(x)").replace(
                "\n\nclass", "\nstart = Launcher(kernel, grid=4)\n\nclass"
            ),
            set(),
        ),
    ],
    ids=["autotuner", "missing", "dead", "used", "used-through-a-launcher"],
)
def test_kernels_that_are_missing_or_never_used(source: str, expected: set[str]) -> None:
    assert {f.check for f in static_findings(source) if f.severity == "suspect"} == expected


HANDED_ON = DEAD.replace("torch.relu(x)", "KERNELS['relu'](x)")
OPERATOR = DEAD.replace("torch.relu(x)", "torch.ops.mine.relu(x)")


@pytest.mark.parametrize(
    ("source", "dead"),
    [
        (HANDED_ON.replace("\n\nclass", "\nKERNELS = {}\nKERNELS['relu'] = kernel\n\nclass"), False),
        (HANDED_ON.replace("\n\nclass", "\nregister('relu', kernel)\n\nclass"), False),
        (OPERATOR, False),
        (OPERATOR.replace("mine", "aten"), True),
        (DEAD.replace("\n\nclass", "\nkernel.argtypes = [ctypes.c_void_p]\n\nclass"), True),
        ("import ctypes\nlibc = ctypes.CDLL(None)\n", False),
        ("import ctypes\nlibc = ctypes.CDLL(name=None)\n", False),
        ("import ctypes\ngetcpu = ctypes.CDLL(None, use_errno=True).getcpu\n", False),
        (DEAD.replace("\n\nclass", "\nlibc = ctypes.CDLL(None)\n\nclass"), True),
        (DEAD.replace("\n\nclass", "\nkernel = ctypes.CDLL(None)\n\nclass"), True),
        (HANDED_ON.replace("KERNELS['relu']", "everything.relu").replace(
            "\n\nclass", "\neverything = ctypes.CDLL(None)\n\nclass"), False),
    ],
    ids=["in-a-dict", "registered", "operator", "operator-of-torch", "types-alone", "c-library", "c-library-by-keyword",
         "of-the-c-library", "beside-the-c-library", "called-like-the-c-library", "through-this-process"],
)  # fmt: skip
def test_a_kernel_that_is_handed_on_is_not_dead(source: str, dead: bool) -> None:
    assert ("dead-kernel" in suspects(source)) == dead


SWALLOWED = """
import contextlib, ctypes, os, torch
kernel = ctypes.CDLL("./k.so").relu

class ModelNew(torch.nn.Module):
    def forward(self, x):
        {guard}
            return kernel(x)
        {after}
        return torch.relu(x)
"""


@pytest.mark.parametrize(
    ("guard", "after", "fallback"),
    [
        ("try:", "except Exception:\n            pass", True),
        ("with contextlib.suppress(Exception):", "", True),
        ("if os.path.exists('./k.so'):", "", True),
        ("try:", "except Exception:\n            raise", False),
        ("if x.numel() > 1000:", "", False),
        ("with torch.no_grad():", "", False),
    ],
)
def test_a_kernel_that_may_fail_in_silence_before_torch_answers(guard: str, after: str, fallback: bool) -> None:
    assert set(suspects(SWALLOWED.format(guard=guard, after=after))) == ({"silent-fallback"} if fallback else set())


LOOKED_FOR = """
try:
    {tried}
    there = True
except {caught}:
    there = False


class ModelNew(nn.Module):
    def forward(self, x):
        if there:
            return F.relu(x)
        try:
            return self.buffers_by_size[x.numel()]
        except KeyError:
            return torch.empty_like(x)
"""


@pytest.mark.parametrize(
    ("tried", "caught", "fallback"),
    [
        ("from torch.nn.attention import sdpa_kernel", "ImportError", False),
        ("threads = int(os.environ['OMP_NUM_THREADS'])", "(KeyError, ValueError)", False),
        ("cores = len(os.sched_getaffinity(0))", "AttributeError", False),
        ("table = tables.pop()", "IndexError", False),
        ("import triton.language as tl", "ImportError", True),
        ("kernel = build()", "Exception", True),
    ],
)
def test_what_is_looked_for_is_no_kernel_that_failed(tried: str, caught: str, fallback: bool) -> None:
    found = suspects(text(LOOKED_FOR.format(tried=tried, caught=caught)))
    assert set(found) == ({"silent-fallback"} if fallback else set())


ASKED = """
import ctypes, importlib.util, shutil, torch
import kernels
{above}


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if {test}:
            return kernel(x)
        return torch.relu(x)
"""


@pytest.mark.parametrize(
    ("above", "test", "fallback"),
    [
        ("HAVE = importlib.util.find_spec('triton') is not None", "HAVE", True),
        ("HAVE = shutil.which('nvcc')", "HAVE", True),
        ("", "importlib.util.find_spec('triton') is not None", True),
        ("", "shutil.which('g++') and x.is_cuda", True),
        ("fused = getattr(kernels, 'fused', None)", "fused is not None", True),
        ("library = load_inline('k')", "hasattr(library, 'fused')", True),
        ("", "(fused := getattr(torch.ops.mine, 'fused', None))", True),
        ("HAVE = shutil.which('numactl')", "HAVE", False),
        ("HAVE = importlib.util.find_spec('numpy')", "HAVE", False),
        ("fast = getattr(torch, '_foreach_add', None)", "fast is not None", False),
        ("", "hasattr(torch.ops.aten, 'relu')", False),
        ("", "getattr(self, 'cache', None) is None", False),
        ("", "getattr(x, 'is_quantized', None)", False),
        ("", "x.is_cuda", False),
    ],
)
def test_a_kernel_that_is_asked_for_before_torch_answers(above: str, test: str, fallback: bool) -> None:
    found = suspects(ASKED.format(above=above, test=test))
    assert ("silent-fallback" in found) is fallback, found


def test_a_function_that_is_defined_where_no_compiler_is_found() -> None:
    branches = "if which('nvcc'):\n    relu = build()\nelse:\n    def relu(x):\n        return torch.relu(x)\n"
    assert "silent-fallback" in suspects("import torch\nfrom shutil import which\n" + branches)
    assert "silent-fallback" not in suspects("import torch\n" + branches.replace("which('nvcc')", "fast"))


FALLBACK = """
class ModelNew(torch.nn.Module):
    def forward(self, x):
        try:
            return kernel(x)
        except Exception:
            return torch.relu(x)
"""


def test_text_is_read_as_python_reads_the_file():
    hidden = "# coding: utf-7\nimport torch\n# +AAo-import gc\n"
    assert {f.check for f in static_findings(hidden)} == {"gc"}
    assert "silent-fallback" in {f.check for f in static_findings("\ufeffimport torch\n" + FALLBACK)}


def test_code_that_is_too_long_to_read_is_suspect_and_long_constants_are_not():
    (found,) = static_findings("x = 1\n" * 200_000)
    assert (found.check, found.severity) == ("unread", "suspect")
    lines = "\n".join(f"    {'A1!' * 33!r}" for _ in range(20_000))
    assert static_findings(f"text = (\n{lines}\n)\nimport gc\n")[0].check == "gc"


OPTIONAL = """
try:
    from flash_attn import flash_attn_func
except ImportError:
    flash_attn_func = None


def attend(q):
    if flash_attn_func is not None:
        return flash_attn_func(q, q, q)
    return F.scaled_dot_product_attention(q, q, q)


class Model(nn.Module):
    def forward(self, x):
        try:
            return kernel(x)
        except RuntimeError:
            return torch.relu(x)
"""


def suspects(source: str, reference: str = "") -> dict[str, int]:
    """check -> line."""
    found = static_findings(source, reference)
    return {f.check: int(f.evidence.split()[1].rstrip(":")) for f in found if f.severity == "suspect"}


def test_what_the_reference_does_itself_hides_no_kernel():
    """A text of our own techniques holds the reference's, with its optional libraries."""
    reference = text(OPTIONAL)
    honest = reference + "\n\nclass ModelNew(Model):\n    def forward(self, x):\n        return attend(x) + 1\n"
    assert set(suspects(honest)) == {"silent-fallback"}
    assert suspects(honest, reference) == {}
    hidden = reference + "\n\nclass ModelNew(Model):\n    def forward(self, x):\n        {}\n"
    for body in ("return F.relu(x) if flash_attn_func is None else flash_attn_func(x)", "return kernel_of_mine(x)"):
        cheat = hidden.format(body) + "\n\n@triton.jit\ndef kernel_of_nobody(x):\n    pass\n"
        assert suspects(cheat, reference), body
    assert suspects(text(FALLBACK.format(handler="return F.relu(x)")), reference)


def test_modules_that_a_candidate_holds_are_read_too(tmp_path):
    (tmp_path / "beside_it.py").write_text("import gc\n" + OPTIONAL)
    (tmp_path / "candidate.py").write_text("from beside_it import Model\n\n\nclass ModelNew(Model):\n    pass\n")
    source = read_candidate(tmp_path / "candidate.py")
    seen = {f.check: f.evidence for f in static_findings(source)}
    assert set(seen) == {"gc", "silent-fallback"}
    line = int(seen["gc"].split()[1].rstrip(":"))
    assert source.split("\n")[line - 1] == "import gc"
    broken = source.replace("def attend(q):", "def attend(q:") + "import gc\n"
    assert {f.check for f in static_findings(broken)} == {"gc"}
    huge = source.replace("import gc", "import gc" + "; x = 1" * 200_000)
    assert [f.check for f in static_findings(huge)] == ["unread"]


def test_the_kernel_of_a_module_is_used_where_the_candidate_uses_it(tmp_path):
    (tmp_path / "kernels_beside.py").write_text("@triton.jit\ndef kernel(x):\n    pass\n")
    use = "from kernels_beside import kernel\n\n\nclass ModelNew(nn.Module):\n    def forward(self, x):\n        {}\n"
    for body, expected in (("return kernel[1](x)", set()), ("return x", {"dead-kernel"})):
        (tmp_path / "candidate.py").write_text(use.format(body))
        assert set(suspects(read_candidate(tmp_path / "candidate.py"))) == expected
