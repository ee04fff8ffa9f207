"""Which candidates start from the template that holds torch's compiler."""

from __future__ import annotations

import pytest

from cuda_l1.evaluator.templates import Templates


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
