"""Batches of replies whose rows leave when they have ended, against `generate` of transformers."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from cuda_l1.proposers.policy import captured, writing
from cuda_l1.proposers.policy.sampling import draws
from tiny_policy import make_checkpoint

transformers = pytest.importorskip("transformers", reason="needs transformers")

ROWS, TOKENS = 12, 40


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = make_checkpoint(tmp_path_factory.mktemp("policy"), end_bias=8.0)
    return transformers.AutoModelForCausalLM.from_pretrained(folder).eval()


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    monkeypatch.setattr(writing, "PART", 6)


def asked(model: Any) -> dict[str, Any]:
    """Rows of different lengths, padded on the left."""
    torch.manual_seed(0)
    ids = torch.randint(5, model.config.vocab_size, (ROWS, 9))
    mask = torch.ones_like(ids)
    for row in range(ROWS):
        mask[row, : row % 5] = 0
    config = transformers.GenerationConfig(
        do_sample=False, max_new_tokens=TOKENS, eos_token_id=[model.config.eos_token_id], pad_token_id=3
    )
    return {"input_ids": ids * mask, "attention_mask": mask, "generation_config": config}


def drawn() -> list[Any]:
    return draws(range(ROWS), 1.0, 1.0, torch.device("cpu"))


def test_what_is_written_is_what_generate_writes_and_few_rows_are_computed(model: Any) -> None:
    batches = []

    def generate(**inputs: Any) -> Any:
        batches.append(len(inputs["input_ids"]))
        return model.generate(**inputs)

    whole = model.generate(**asked(model), logits_processor=drawn())
    processors = drawn()
    found = writing.write(generate, **asked(model), on_left=processors[-1].keep, logits_processor=processors)
    assert torch.equal(found, whole)
    ends = (whole[:, 9:] == model.config.eos_token_id).any(dim=1)
    assert 0 < ends.sum() < ROWS  # some were ended, and some were not at the last token
    assert batches[0] == ROWS and batches == sorted(batches, reverse=True) and batches[-1] < ROWS


@pytest.mark.parametrize(("room", "is_autocast"), [(4, False), (16, False), (256, False), (16, True)])
def test_a_graphs_steps_write_what_generate_writes(
    model: Any, room: int, is_autocast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Launch by launch, on a CPU: its keys and values are given room while it writes, and rows leave."""
    monkeypatch.setattr(captured, "ROOM", room)
    monkeypatch.setattr(captured, "LOOK", 2)
    processors = drawn()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=is_autocast):
        whole = model.generate(**asked(model), logits_processor=drawn())
        found = writing.write(
            captured.Captured(model), **asked(model), on_left=processors[-1].keep, logits_processor=processors
        )
    assert torch.equal(found, whole)


@pytest.mark.parametrize("settings", [{}, {"temperature": 0.7}, {"temperature": 1.3, "top_p": 0.6}])
def test_a_graphs_steps_draw_as_often_as_generate_does(model: Any, settings: dict[str, float]) -> None:
    many = {name: value[:1].repeat(4000, 1) for name, value in asked(model).items() if name != "generation_config"}
    config = transformers.GenerationConfig(
        do_sample=True, top_k=0, max_new_tokens=1, eos_token_id=[model.config.eos_token_id], pad_token_id=3, **settings
    )
    with torch.no_grad():
        tokens = [
            generate(**many, generation_config=config).sequences[:, -1]
            for generate in (
                captured.Captured(model),
                lambda **inputs: SimpleNamespace(sequences=model.generate(**inputs)),
            )
        ]
    mine, theirs = (torch.bincount(each, minlength=model.config.vocab_size) / 4000 for each in tokens)
    assert (mine - theirs).abs().max() < 0.06 and ((mine > 0.03) == (theirs > 0.03)).float().mean() > 0.9
    assert mine.max() < 0.99


GPU = pytest.mark.gpu


@pytest.mark.parametrize(
    ("where", "is_autocast"),
    [("cpu", False), pytest.param("cuda", False, marks=GPU), pytest.param("cuda", True, marks=GPU)],
)
def test_keys_and_values_stay_in_place_and_on_a_gpu_a_graph_writes(model: Any, where: str, is_autocast: bool) -> None:
    """Its scores are those of one look at all that was written, whatever rounding makes of the choice."""
    moved = copy.deepcopy(model).to(where)
    assert captured.can_stay_in_place(moved)
    asks = {name: value.to(where) if torch.is_tensor(value) else value for name, value in asked(model).items()}
    seen: list[tuple[Any, Any]] = []
    captures = []

    def note(ids: Any, scores: Any) -> Any:
        seen.append((ids.clone(), scores.clone()))
        return scores

    processors = draws(range(ROWS), 1.0, 1.0, torch.device(where))
    with (
        torch.no_grad(),
        torch.autocast(where, torch.bfloat16, enabled=is_autocast),
        pytest.MonkeyPatch.context() as patch,
    ):
        own = captured._Step._capture
        patch.setattr(captured._Step, "_capture", lambda step: (captures.append(1), own(step)))
        writing.write(
            captured.generating(moved), **asks, on_left=processors[-1].keep, logits_processor=[note, *processors]
        )
        for ids, scores in seen:
            whole = moved(ids, attention_mask=(ids.cumsum(dim=1) > 0).long()).logits[:, -1]
            torch.testing.assert_close(scores.float(), whole.float(), rtol=0, atol=0.1 if is_autocast else 1e-3)
    assert len(seen) > 12 and len(seen[-1][0]) < ROWS
    assert bool(captures) is (where == "cuda")


def test_the_last_reply_ends_what_is_written(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also between two looks: all greedy replies of this model end at once."""
    monkeypatch.setattr(captured, "LOOK", 1000)
    with torch.no_grad():
        whole = model.generate(**asked(model))
        assert whole.shape[1] < 9 + writing.PART
        assert torch.equal(writing.write(captured.Captured(model), **asked(model)), whole)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("layer_types", ["full_attention", "sliding_attention"]),
        ("num_experts", 8),
        ("_attn_implementation", "flash_attention_2"),
    ],
)
def test_a_model_whose_kernels_differ_from_token_to_token_writes_as_it_does(model: Any, name: str, value: Any) -> None:
    other = copy.deepcopy(model)
    setattr(other.config, name, value)
    assert captured.has_one_form(model) and not captured.has_one_form(other)
    assert captured.generating(other) == other.generate


def test_a_model_that_keeps_no_cache_writes_the_same(model: Any) -> None:
    whole = model.generate(**asked(model), logits_processor=drawn())
    inputs, processors = asked(model), drawn()
    inputs["generation_config"].use_cache = False
    found = writing.write(model.generate, **inputs, on_left=processors[-1].keep, logits_processor=processors)
    assert torch.equal(found, whole)


def test_it_ends_with_the_last_row(model: Any) -> None:
    inputs = asked(model)
    inputs["generation_config"].eos_token_id = list(range(model.config.vocab_size))
    found = writing.write(model.generate, **inputs)
    assert found.shape == (ROWS, 10)


def test_nobody_goes_on_after_it_is_over(model: Any) -> None:
    over, processors = iter([False, False, True]), drawn()
    found = writing.write(
        model.generate, **asked(model), is_over=over.__next__, on_left=processors[-1].keep, logits_processor=processors
    )
    assert found.shape[1] == 9 + 2 * 6


def test_a_models_generate_is_its_own_again(model: Any) -> None:
    whole = model.generate(**asked(model))
    with captured.writing_in_parts(model):
        assert torch.equal(model.generate(**asked(model)), whole)
        assert "generate" in vars(model)
    assert "generate" not in vars(model)


def test_a_model_that_fails_has_its_own_generate_again(model: Any) -> None:
    with pytest.raises(ValueError, match="mine"), captured.writing_in_parts(model):
        raise ValueError("mine")
    assert "generate" not in vars(model)
