"""A server that writes stage 3's replies and dies: it is waited for, given the weights again, and asked again."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs transformers and trl: pip install 'cuda-l1[train]'")

import test_contrastive
from server_fakes import OWN, Client, StandIn
from test_contrastive import Bench
from transformers import AutoTokenizer

from cuda_l1.errors import InfrastructureError
from cuda_l1.training import grpo, server
from cuda_l1.training.server import Server
from small_policy import REPLIES, save_policy


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_policy(tmp_path_factory.mktemp("policy"))


@pytest.fixture
def writes(policy: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """A server that a stage is told of, asked by the client in TRL's place."""
    tokenizer: Any = AutoTokenizer.from_pretrained(policy)
    made = StandIn([[tokenizer(reply)["input_ids"][0], tokenizer.eos_token_id] for reply in REPLIES])
    monkeypatch.setattr("trl.generation.vllm_generation.is_vllm_available", lambda: True)
    monkeypatch.setattr("trl.generation.vllm_generation.VLLMClient", Client)
    monkeypatch.setattr(server, "POLL_S", 0.05)
    yield made
    made.end()


class Served(Bench):
    """A stage whose replies a server writes."""

    def __init__(self, folder: Path, policy: Path, url: str) -> None:
        super().__init__(folder, policy)
        self.url = url

    def serve(self, **section: Any) -> None:
        asked = {"engine": "vllm-server", "server": self.url, "max_new_tokens": 3}
        with pytest.MonkeyPatch.context() as patch:
            recipe_from = test_contrastive.recipe_from
            patch.setattr(
                test_contrastive, "recipe_from", lambda values, name: recipe_from({**values, "generation": asked}, name)
            )
            self.train(**section)

    @property
    def said(self) -> list[str]:
        return [event.text for event in self.events if "server" in event.text]


@pytest.fixture
def bench(tmp_path: Path, policy: Path, writes: StandIn) -> Served:
    return Served(tmp_path, policy, writes.url)


@pytest.mark.parametrize(
    ("way", "fates"),
    [
        ("/v1/completions", ["", "dies"]),
        ("/v1/completions", ["", "500"]),
        ("/update_weights", ["", "dies"]),
        ("/v1/completions", ["", "500", "500", "dies"]),
    ],
)
def test_a_server_that_dies_in_a_step_is_waited_for_and_given_the_weights_again(
    bench: Served, writes: StandIn, way: str, fates: list[str]
) -> None:
    writes.fates[way] = fates
    bench.serve(rounds=3, warmup=0.0)
    assert bench.stage.is_done and len(bench.rows("samples")) == 3 * 8
    assert len(writes.wrote_with) == 3 and OWN not in writes.wrote_with
    assert len(set(writes.wrote_with)) == 3, "each round by the policy as it is"
    assert any("has failed" in text for text in bench.said) and "is back" in bench.said[-1]


def test_each_token_is_weighted_by_how_likely_it_is_here_and_there_and_no_reply_is_dropped(bench: Served) -> None:
    bench.serve(rounds=2, warmup=0.0)
    rounds = [row for row in bench.rows("metrics") if "reward" in row]
    least, most = ([row[f"sampling/importance_sampling_ratio/{end}"] for row in rounds] for end in ("min", "max"))
    assert len(rounds) == 2 and most == [grpo.TRUNCATED_AT] * 2, "of the last token, which the server made nothing of"
    assert all(0 < ratio < 1 for ratio in least), "of the first one; 0 for a reply that is dropped"
    assert all(row["sampling/sampling_logp_difference/max"] > math.log(grpo.TRUNCATED_AT) for row in rounds)
    assert all(row["grad_norm"] > 0 for row in rounds)


def test_one_that_stays_away_ends_the_stage_in_one_line_and_it_goes_on_from_there(
    bench: Served, writes: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "PATIENCE_S", 0.3)
    writes.fates["/v1/completions"] = ["", "", "stays away"]
    with pytest.raises(
        InfrastructureError, match=r"has failed for 0 minutes \(.*\); start it again, and go on with --res"
    ):
        bench.serve(rounds=4)
    checkpoint = bench.stage.checkpoint()
    assert checkpoint is not None and checkpoint.name == "checkpoint-2"
    writes.start()
    bench.serve(rounds=4)
    assert bench.stage.is_done and len(writes.wrote_with) == 4 and OWN not in writes.wrote_with


def test_one_that_is_not_there_yet_is_waited_for(bench: Served, writes: StandIn) -> None:
    writes.end()
    threading.Timer(0.3, writes.start).start()
    bench.serve(rounds=1)
    assert bench.stage.is_done and bench.said[0].startswith(f"waits for the server {writes.url}, for 30 minutes")


class Failing:
    """A client whose calls fail."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def update_named_params(self, metadata: Any, named_params: Iterator[Any]) -> None:
        next(named_params)
        raise self.error

    generate = reset_prefix_cache = init_communicator = close_communicator = lambda self, **_: None


def test_weights_are_taken_to_the_last_though_the_server_is_gone() -> None:
    told = Server("http://127.0.0.1:9", lambda text: None)
    told.client = Failing(ConnectionError("gone"))
    rest = iter(range(5))
    told.update_named_params(None, rest)
    assert list(rest) == [], "the other processes would wait for this one"
    assert told.generate(prompts=[])["completion_ids"] == [], "nothing is asked after a failure"


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (Exception("Request failed: 400, too long"), InfrastructureError, "refuses: Request failed: 400, too long"),
        (KeyError("choices"), KeyError, "choices"),
    ],
)
def test_what_waiting_does_not_help_is_raised(error: Exception, kind: type[Exception], said: str) -> None:
    told = Server("http://127.0.0.1:9", lambda text: None)
    told.client = Failing(error)
    told.update_named_params(None, iter(range(2)))
    with pytest.raises(kind, match=said):
        told.is_back("cpu")


def test_a_wait_can_be_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", pressed)
    with pytest.raises(KeyboardInterrupt):
        Server("http://127.0.0.1:9", lambda text: None).wait()
