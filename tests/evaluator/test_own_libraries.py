"""A candidate whose own kernel was never loaded is told from one whose kernel was, whatever its text looks like."""

from __future__ import annotations

import pytest
from evaluator_support import LINEAR, QUICK, candidate_of, task_of

from cuda_l1.evaluator.guest import own_libraries
from cuda_l1.evaluator.guest.own_libraries import OwnLibraries, deed

TASK = task_of(LINEAR)
BUILD = """
import contextlib, ctypes, importlib.util, os, subprocess

def first_package(*names):
    for name in names:
        with contextlib.suppress(ImportError):
            return __import__(name)

def build(code):
    command = ["cc", "-shared", "-fPIC", "-o", "k.so", "-xc", "-"]
    return subprocess.run(command, input=code.encode(), capture_output=True).returncode == 0

def load(name):
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None

def first(*names):
    return next((found for found in map(load, names) if found), None)

{before}

class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return torch.relu_(self.linear(x))
"""

NO_BACKEND = """
import torch._dynamo
torch._dynamo.config.suppress_errors = True

def no_backend(graph, inputs):
    raise RuntimeError("no compiler")

relu = torch.compile(lambda x: x.relu(), backend=no_backend)
relu(torch.ones(2))
"""


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("before", "missing"),
    [
        ("kernel = first('./fused.so')", "loading ./fused.so"),
        ("kernel = build('no C') and load('./k.so')", "running `cc -shared"),
        ("kernel = os.system('echo no C | cc -shared -o k.so -xc - 2>/dev/null')", "running `echo no C | cc -shared"),
        ("kernel = first('./prebuilt.so') or build('int one(void) { return 1; }') and load('./k.so')", ""),
        ("allocator = first('libjemalloc.so.9', '/usr/lib/libjemalloc.so.9')", ""),
        ("there = importlib.util.find_spec('triton') is not None", "importing triton"),
        ("there = first_package('cupy', 'numba')", "importing numba"),
        ("there = first_package('notes', 'numpy')", ""),
        ("there = first_package('triton'); kernel = build('int one(void) { return 1; }') and load('./k.so')", ""),
        (NO_BACKEND, "compiling 1 functions with torch.compile"),
        (NO_BACKEND.replace("no_backend)", "'eager')"), ""),
        ("version = subprocess.run(['cc', '--version'], capture_output=True)", ""),
    ],
    ids=[
        "no-file",
        "no-build",
        "no-shell-build",
        "built-then",
        "optional-library-of-the-system",
        "asks-for-a-package",
        "no-package",
        "no-package-of-kernels",
        "no-package-but-built",
        "never-compiled",
        "compiled",
        "asks-the-compiler",
    ],
)
def test_what_was_tried_and_never_loaded_is_named(evaluator, before: str, missing: str) -> None:
    found = evaluator.evaluate(TASK, candidate_of(TASK, BUILD.format(before=before)), protocol=QUICK)
    assert found.accepted, found.detail
    said = [f.evidence for f in found.suspects() if f.check == "silent-fallback" and not f.static]
    assert [text.startswith(missing) for text in said] == ([True] if missing else []), said


@pytest.mark.parametrize(
    ("event", "arguments", "said"),
    [
        ("ctypes.dlopen", (b"/tmp/k.so",), "loading /tmp/k.so"),
        ("ctypes.dlopen", (None,), ""),
        ("ctypes.dlopen", ("libm.so.6",), ""),
        ("subprocess.Popen", ("ninja", ["/venv/bin/ninja", "-v"], None, None), "running `/venv/bin/ninja -v`"),
        ("subprocess.Popen", ("sh", "gcc -shared k.c", None, None), "running `gcc -shared k.c`"),
        ("subprocess.Popen", ("nvcc", ["nvcc", "-cubin", "k.cu"], None, None), ""),  # a module of the driver's
        ("os.system", (b"nproc",), ""),
    ],
)
def test_what_makes_or_loads_a_library_of_its_own(event: str, arguments: tuple[object, ...], said: str) -> None:
    assert deed(event, arguments) == said


def test_a_work_directory_below_a_folder_of_software_is_a_candidates_own(tmp_path, monkeypatch) -> None:
    (tmp_path / "own").mkdir()
    monkeypatch.chdir(tmp_path / "own")
    monkeypatch.setattr(own_libraries, "SOFTWARE", (f"{tmp_path}/", "/usr/"))
    monkeypatch.setattr("sys.addaudithook", lambda hook: None)  # a real one stays
    tried = OwnLibraries()
    tried._note("ctypes.dlopen", ("/usr/lib/libjemalloc.so",))
    assert tried._tried == ""
    tried._note("ctypes.dlopen", (f"{tmp_path}/own/k.so",))
    assert tried._tried == f"loading {tmp_path}/own/k.so"
