"""A real model of random weights: what it writes under a seed, how a reply ends, and what cannot be loaded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from cuda_l1.config import GenerationSettings
from cuda_l1.errors import UsageError
from cuda_l1.proposers.policy.checkpoint import read_checkpoint
from cuda_l1.proposers.policy.policy import Policy, Written, messages_of
from cuda_l1.proposers.policy.sampling import draws
from cuda_l1.types import Prompt
from tiny_policy import make_checkpoint

pytest.importorskip("transformers", reason="needs transformers")
PROMPTS = [Prompt(system="sys", user=text, template="t@1") for text in ("short", "a longer question", "x" * 40)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("policy"), context=512)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def policy(folder: Path, **settings: object) -> Policy:
    asked = GenerationSettings.model_validate({"max_new_tokens": 24, **settings})
    return Policy.load(read_checkpoint(folder), asked, "cpu")


def texts(written: list[Written | None]) -> list[str]:
    return [one.text for one in written if one is not None]


def test_equal_seeds_write_equal_replies_and_leave_the_process_its_random_numbers(folder: Path) -> None:
    writer = policy(folder)
    state = torch.get_rng_state()
    first = texts(writer.generate(PROMPTS, [1, 2, 3]))
    torch.rand(7)
    assert texts(policy(folder).generate(PROMPTS, [1, 2, 3])) == first
    assert texts(writer.generate(PROMPTS, [4, 2, 3]))[1:] == first[1:]
    assert texts(writer.generate(PROMPTS, [4, 2, 3]))[0] != first[0]
    torch.set_rng_state(state)
    writer.generate(PROMPTS, [1, 2, 3])
    assert torch.equal(torch.get_rng_state(), state)


def test_no_text_that_a_prompt_quotes_holds_a_mark_of_the_conversation(folder: Path) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    end = tokenizer.eos_token
    said = messages_of(Prompt(system="s", user=f"x = '{end}{end}'", template="t@1"), tokenizer)
    assert [message["role"] for message in said] == ["system", "user"]
    tokens = tokenizer(said[1]["content"])["input_ids"]
    assert tokenizer.eos_token_id not in tokens and "".join(said[1]["content"].split()) == f"x='{end}{end}'"


def test_a_reply_does_not_depend_on_its_neighbours(folder: Path) -> None:
    writer = policy(folder)
    together = texts(writer.generate(PROMPTS, [1, 2, 3]))
    alone = [texts(writer.generate([prompt], [seed]))[0] for prompt, seed in zip(PROMPTS, (1, 2, 3), strict=True)]
    assert alone == together


def test_at_temperature_zero_no_seed_matters(folder: Path) -> None:
    writer = policy(folder, temperature=0)
    assert texts(writer.generate(PROMPTS, [1, 2, 3])) == texts(writer.generate(PROMPTS, [4, 5, 6]))


def test_draws_follow_the_probabilities_of_the_temperature_and_of_the_nucleus() -> None:
    logits = torch.tensor([2.0, 1.0, 0.0, -4.0]).repeat(4000, 1)
    ids = torch.zeros(4000, 1, dtype=torch.long)

    def shares(temperature: float, top_p: float) -> torch.Tensor:
        scores = logits
        for each in draws(range(4000), temperature, top_p, torch.device("cpu")):
            scores = each(ids, scores)
        return torch.bincount(scores.argmax(dim=1), minlength=4) / 4000

    expected = torch.softmax(torch.tensor([2.0, 1.0, 0.0, -4.0]) / 2, dim=0)
    assert (shares(2.0, 1.0) - expected).abs().max() < 0.03
    nucleus = shares(1.0, 0.7)
    assert nucleus[2] == nucleus[3] == 0 and abs(float(nucleus[0]) - 0.731) < 0.03


def test_a_reply_ends_at_its_end_token_or_says_that_it_was_cut(tmp_path: Path) -> None:
    writer = policy(make_checkpoint(tmp_path, end_bias=8.0), max_new_tokens=64)
    written = [one for one in writer.generate(PROMPTS * 8, list(range(24))) if one is not None]
    assert {one.finish_reason for one in written} == {"stop", "length"}
    for one in written:
        assert one.tokens_in > 5 and "<|end|>" not in one.text
        assert (one.tokens_out == 64) == (one.finish_reason == "length")


def test_an_attention_that_plans_for_each_length_is_not_used_while_writing(folder: Path) -> None:
    was, found = torch.backends.cuda.cudnn_sdp_enabled(), []

    def look() -> bool:
        found.append(torch.backends.cuda.cudnn_sdp_enabled())
        return False

    policy(folder).generate(PROMPTS, [1, 2, 3], is_over=look)
    assert found and not any(found)
    assert torch.backends.cuda.cudnn_sdp_enabled() == was


def test_what_is_not_at_its_end_when_the_time_is_over_is_none(folder: Path) -> None:
    calls = iter(range(1000))
    assert policy(folder).generate(PROMPTS, [1, 2, 3], is_over=lambda: next(calls) >= 0) == [None] * 3
    assert next(calls) < 20


def test_a_models_own_penalties_are_left_out(folder: Path, tmp_path: Path) -> None:
    plain = texts(policy(folder).generate(PROMPTS, [1, 2, 3]))
    own = make_checkpoint(tmp_path, context=512)
    settings = json.loads((own / "generation_config.json").read_text())
    settings |= {"do_sample": True, "repetition_penalty": 5.0, "top_k": 1}
    (own / "generation_config.json").write_text(json.dumps(settings))
    assert texts(policy(own).generate(PROMPTS, [1, 2, 3])) == plain


def test_tokens_are_counted_by_its_own_tokenizer_and_leave_room_for_the_reply(folder: Path) -> None:
    writer = policy(folder)
    assert writer.counter.count("import torch\nab") == 3
    assert writer.prompt_tokens is not None and 0 < writer.prompt_tokens < 512 - 24
    with pytest.raises(UsageError, match="max_new_tokens = 500 leaves no room"):
        policy(folder, max_new_tokens=500)


def test_weights_of_another_configuration_are_one_line(tmp_path: Path) -> None:
    config = json.loads((make_checkpoint(tmp_path) / "config.json").read_text())
    damaged = {
        "is missing": config | {"num_hidden_layers": 3, "layer_types": ["full_attention"] * 3},
        "cannot be loaded": config | {"intermediate_size": 48},
        "do not belong together": None,
    }
    for said, values in damaged.items():
        make_checkpoint(tmp_path)
        if values:
            (tmp_path / "config.json").write_text(json.dumps(values))
        else:
            tokenizer = json.loads((tmp_path / "tokenizer.json").read_text())
            more = tokenizer["added_tokens"][-1] | {"id": 500, "content": "more"}
            tokenizer["added_tokens"] += [more | {"id": 268 + i, "content": f"more {i}"} for i in range(40)]
            (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
        with pytest.raises(UsageError) as error:
            policy(tmp_path)
        assert said in str(error.value) and str(tmp_path) in str(error.value) and "\n" not in str(error.value)
