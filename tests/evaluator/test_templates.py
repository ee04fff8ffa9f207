"""Which candidates start from the template that holds torch's compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cuda_l1.evaluator.processes import Template
from cuda_l1.evaluator.templates import ALL_OF_INDUCTOR, COMPILER_MODULES, TRITON, Templates


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f = torch.compile(f)", True),
        ("import torch._inductor.config", True),
        ("from torch._dynamo import reset", True),
        ("from torch import _inductor", True),
        ("torch._inductor.aoti_load_package(p)", True),
        ("from torch.compiler import is_compiling", False),
        ("from torch._C._dynamo.guards import TensorGuards", False),
        ("def recompiled(): pass", False),
    ],
)
def test_only_users_of_the_compiler_get_its_template(text: str, expected: bool) -> None:
    assert Templates.uses_compiler(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import torch\nimport triton\n", True),
        ("    from triton import language as tl", True),
        ("import triton.language as tl", True),
        ("import tritonclient", False),
        ('"""As Triton would: import triton"""', False),
    ],
)
def test_only_who_imports_triton_uses_it(text: str, expected: bool) -> None:
    assert Templates.uses_triton(text) is expected


class Started(Templates):
    """Templates of which none is a process: each is what it was asked to load."""

    def __init__(self, device: str, threads: int = 1) -> None:
        self._device = cast(Any, device)
        self.threads = threads
        self.started: list[Sequence[str]] = []
        self.closed: list[Sequence[str]] = []
        self._compiler = self._triton = None
        self.plain = self._start(())

    def _start(self, preload: Sequence[str], **more: str) -> Template:
        self.started.append(tuple(preload))
        threads = self.threads if preload else 1
        made = SimpleNamespace(preload=preload, facts=SimpleNamespace(threads=threads))
        made.close = lambda: self.closed.append(made.preload)
        return cast(Template, made)


def preloaded(template: Template) -> Sequence[str]:
    return cast(Sequence[str], cast(Any, template).preload)


KERNEL = "import triton\n\n@triton.jit\ndef kernel(): pass\n"


def test_a_triton_kernel_starts_from_triton_on_a_gpu_alone() -> None:
    gpu = Started("cuda")
    template = gpu.for_source(KERNEL)
    assert gpu.started == [(), (TRITON,)] and template is not gpu.plain
    assert gpu.for_source(KERNEL + "# again") is template and gpu.for_source("import torch") is gpu.plain
    assert TRITON not in preloaded(gpu.for_source(KERNEL + "torch.compile(f)")), "the compiler's holds Triton, too"
    gpu.close()
    assert len(gpu.closed) == 3
    cpu = Started("cpu")
    assert cpu.for_source(KERNEL) is cpu.plain


def test_a_triton_that_starts_the_driver_is_not_loaded_before_the_fork() -> None:
    gpu = Started("cuda", threads=2)
    assert preloaded(gpu.for_source(KERNEL)) == () and gpu.closed == [(TRITON,)]


def test_inductor_is_imported_whole_without_a_thread_or_a_question_left() -> None:
    # In a process of its own: what is imported here stays imported. Triton's parts exist only where there is a GPU.
    program = (
        "import importlib, os, sys, torch\n"
        "from cuda_l1.evaluator.guest import inductor\n"
        "asked = torch.cuda.is_available\n"
        "inductor.for_cpu()\n"
        "assert torch.cuda.is_available is asked\n"
        "for part in inductor._PARTS:\n"
        "    module, _, function = part.partition(':')\n"
        "    if 'triton' not in part:\n"
        "        assert module in sys.modules, part\n"
        "        assert not function or callable(getattr(sys.modules[module], function)), part\n"
        "print(len(os.listdir('/proc/self/task')))\n"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout.strip(), done.returncode) == ("1", 0), done.stderr


@pytest.mark.gpu
def test_what_triton_hashes_is_known_before_the_fork() -> None:
    program = (
        "import torch, triton.runtime.cache as cache, triton.compiler.compiler as compiler\n"
        "from cuda_l1.evaluator.guest import inductor\n"
        "inductor.triton()\n"
        "key = getattr(cache, 'triton_key', None) or compiler.triton_key\n"
        "print(key.cache_info().currsize, torch.cuda.is_initialized())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout.strip(), done.returncode) == ("1 False", 0), done.stderr


@pytest.mark.gpu
@pytest.mark.parametrize(
    "preload", [(*COMPILER_MODULES, ALL_OF_INDUCTOR["cuda"]), (TRITON,)], ids=["inductor", "triton"]
)
def test_a_compiler_as_a_whole_starts_no_driver(preload: Sequence[str]) -> None:
    template = Template.start({**os.environ, "OMP_NUM_THREADS": "1"}, device="cuda", preload=preload)
    try:
        assert template.facts.threads == 1
    finally:
        template.close()
