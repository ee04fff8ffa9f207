"""Which candidates start from the template that holds torch's compiler."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from cuda_l1.evaluator.processes import Template
from cuda_l1.evaluator.templates import ALL_OF_INDUCTOR, COMPILER_MODULES, Templates


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
def test_inductor_as_a_whole_starts_no_driver() -> None:
    template = Template.start(
        {**os.environ, "OMP_NUM_THREADS": "1"}, device="cuda", preload=(*COMPILER_MODULES, ALL_OF_INDUCTOR["cuda"])
    )
    try:
        assert template.facts.threads == 1
    finally:
        template.close()
