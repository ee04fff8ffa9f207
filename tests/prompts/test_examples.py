"""The worked examples of the one-shot prompt are what the parser takes, and are right where they can run."""

from __future__ import annotations

from importlib.resources import files

import pytest

from cuda_l1.prompts.reply import parse_reply
from cuda_l1.types import Candidate, Language, Task, detect_language


def text_of(name: str) -> str:
    return files("cuda_l1.prompts").joinpath(f"example_{name}.j2").read_text("utf-8")


def task() -> Task:
    source = text_of("reference").removeprefix("```python\n").rstrip().removesuffix("```")
    return Task(suite="file", name="example", source=source.replace("4096, 1024", "64, 1024"))


def candidate(language: Language) -> Candidate:
    found = parse_reply(text_of(language), kind="one-shot")
    assert found.source is not None, found.detail
    return Candidate(task_sha=task().sha, task_id=task().id, source=found.source, language=language)


@pytest.mark.parametrize("language", ["pytorch", "cpp", "triton", "cuda"])
def test_an_example_is_one_file_in_its_language(language: Language) -> None:
    assert detect_language(candidate(language).source) == language


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("language", "device"),
    [
        ("cpp", "cpu"),
        pytest.param("triton", "cuda", marks=pytest.mark.gpu),
        pytest.param("cuda", "cuda", marks=pytest.mark.gpu),
    ],
)
def test_an_example_is_right(language: Language, device: str) -> None:
    from cuda_l1.api.places import resolve_device
    from cuda_l1.config import EvaluatorSettings
    from cuda_l1.errors import InfrastructureError
    from cuda_l1.evaluator import Evaluator

    try:
        resolve_device(device)
    except InfrastructureError as error:
        pytest.skip(str(error))
    with Evaluator(EvaluatorSettings(device=device)) as evaluator:
        found = evaluator.verify(task(), candidate(language))
    assert (found.outcome, found.precision_class) == ("ACCEPTED", "fp32"), found.detail
