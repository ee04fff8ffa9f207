"""What generated candidates begin with is a line in a compact prompt and in its answer."""

from __future__ import annotations

import pytest

from cuda_l1.prelude import PRELUDES, contracted, expanded
from cuda_l1.prompts.continuation import continuation, whole_file

REFERENCE = "class Model:\n    pass\n"
OWN = "static void fused(float* out) { *out = 1; }"


def candidate() -> str:
    vectors = PRELUDES["// prelude: vectors of 4 bytes"]
    compiled = f'_library = compile_cpp(r"""{vectors}\n\n{OWN}\n""")'
    return (
        f"{REFERENCE}\n\n{PRELUDES['# prelude: compile_cpp']}\n\n\n{compiled}\n\n\nclass ModelNew(Model):\n    pass\n"
    )


def test_a_candidate_comes_back_from_the_lines_that_stand_for_its_preludes() -> None:
    short = continuation(REFERENCE, candidate())
    assert OWN in short and len(short) < 300 < 20_000 < len(candidate())
    assert whole_file(REFERENCE, short).strip() == candidate().strip()


@pytest.mark.parametrize("line", PRELUDES)
def test_each_line_stands_for_its_text_once(line: str) -> None:
    assert contracted(f"a\n{PRELUDES[line]}\nb\n") == f"a\n{line}\nb\n"
    assert expanded(f"a\n{line}\n{line}\n") == f"a\n{PRELUDES[line]}\n{line}\n", "a reply does not grow without end"


def test_a_candidate_that_quotes_such_a_line_is_left_as_it_is() -> None:
    source = f"{candidate()}# prelude: Launcher\n"
    assert contracted(source) == source


@pytest.mark.e2e
def test_a_generated_candidate_holds_the_preludes_as_they_are() -> None:
    pytest.importorskip("torch")
    from cuda_l1.proposers.techniques import build
    from cuda_l1.types import Task

    forward = "    def forward(self, x):\n        return torch.tanh(x * 2.0 + 1.0).relu()\n"
    source = (
        f"import torch\nimport torch.nn as nn\n\n\nclass Model(nn.Module):\n{forward}\n\n"
        "def get_inputs():\n    return [torch.randn(64, 64)]\n\n\ndef get_init_inputs():\n    return []\n"
    )
    made = build(Task(suite="s", name="t", source=source), ["fusion"], "cpu")
    assert made is not None
    traced = build(Task(suite="s", name="t", source=source), ["traced_loops"], "cpu")
    assert traced is not None
    assert {line for line in PRELUDES if line in continuation(source, traced.source)} == {"# prelude: traced"}
    assert whole_file(source, continuation(source, traced.source)).strip() == traced.source.strip()
    short = continuation(source, made.source)
    assert len(short) < 3000 and {line for line in PRELUDES if line in short} == {
        "# prelude: compile_cpp", "// prelude: vectors of 4 bytes",
    }  # fmt: skip
    assert whole_file(source, short).strip() == made.source.strip()
