"""Folders that hold a policy, and what is said of those that do not. Nothing here loads a model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cuda_l1.config import PromptFormat, PromptSettings, SamplerSettings
from cuda_l1.errors import UsageError
from cuda_l1.proposers.policy.checkpoint import read_checkpoint, write_format


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "run" / "self" / "final"
    path.mkdir(parents=True)
    (path / "config.json").write_text(
        json.dumps({"architectures": ["Qwen3ForCausalLM"], "max_position_embeddings": 512})
    )
    (path / "model.safetensors").write_bytes(b"weights")
    (path / "tokenizer.json").write_text("{}")
    (path / "chat_template.jinja").write_text("{{ messages }}")
    return path


def test_what_was_saved_is_a_checkpoint(folder: Path) -> None:
    found = read_checkpoint(folder)
    assert found.context_tokens == 512 and found.format == PromptFormat()
    assert found.name == f"self/final@{found.sha[:8]}"
    (folder / "chat_template.jinja").unlink()
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages }}"}))
    assert read_checkpoint(folder).sha != found.sha


def test_other_weights_are_another_policy(folder: Path) -> None:
    before = read_checkpoint(folder)
    (folder / "README.md").write_text("a card says nothing about what it writes")
    assert read_checkpoint(folder) == before
    (folder / "model.safetensors").write_bytes(b"Weights")
    assert read_checkpoint(folder).sha != before.sha


def test_a_checkpoint_says_how_it_was_trained_to_be_asked(folder: Path) -> None:
    prompt = PromptSettings(kind="one-shot", template="short.j2", device_facts=False)
    write_format(folder, PromptFormat(prompt=prompt, sampler=SamplerSettings(kind="none"), max_new_tokens=99))
    found = read_checkpoint(folder).format
    assert (found.prompt.kind, found.sampler.kind, found.max_new_tokens) == ("one-shot", "none", 99)
    assert found.prompt.template == str(folder / "short.j2")


def test_a_policy_of_other_questions_is_refused(folder: Path) -> None:
    write_format(folder, PromptFormat(prompt=PromptSettings(kind="compact")))
    file = folder / "prompt_format.json"
    said = json.loads(file.read_text())
    assert said["questions"].startswith("compact@") and read_checkpoint(folder).format.questions == said["questions"]
    file.write_text(json.dumps({**said, "questions": "compact@0"}))
    with pytest.raises(UsageError, match=r"learned to read compact@0, and this version of cuda-l1 asks compact@"):
        read_checkpoint(folder)
    file.write_text(json.dumps({**said, "questions": None}))
    assert read_checkpoint(folder).format.questions is None


def without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def with_text(name: str, text: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_text(text) and None


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (without("config.json"), "holds no model (config.json); name a folder"),
        (without("model.safetensors"), "holds no weights"),
        (without("tokenizer.json"), "holds no tokenizer"),
        (without("chat_template.jinja"), "has no chat template"),
        (with_text("config.json", '{"architectures": ["BertModel"]}'), "a BertModel, which is no causal language"),
        (with_text("config.json", "{"), "config.json: cannot be read"),
        (with_text("config.json", "[]"), "config.json: holds no JSON object"),
        (with_text("prompt_format.json", '{"prompt": {"kind": "sonnet"}}'), "prompt_format.json: prompt.kind:"),
        (with_text("prompt_format.json", "[1]"), "prompt_format.json: must be a group of named values"),
    ],
)  # fmt: skip
def test_what_is_no_policy_is_one_line(folder: Path, damage: Callable[[Path], None], said: str) -> None:
    damage(folder)
    with pytest.raises(UsageError) as error:
        read_checkpoint(folder)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_a_folder_above_names_the_one_below(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"did you mean .*self/final\?"):
        read_checkpoint(folder.parent)
    with pytest.raises(UsageError, match="no such folder"):
        read_checkpoint(tmp_path / "nowhere")


def test_an_adapter_needs_its_base_on_this_disk(folder: Path) -> None:
    base = folder.parent / "base"
    base.mkdir()
    (folder / "config.json").rename(base / "config.json")
    (folder / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(base)}))
    assert read_checkpoint(folder).context_tokens == 512
    (folder / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "owner/name"}))
    with pytest.raises(UsageError, match="an adapter to owner/name, which is no folder"):
        read_checkpoint(folder)
