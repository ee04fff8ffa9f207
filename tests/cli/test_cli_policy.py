"""`optimize` and `bench` with a checkpoint as proposer: a real one that writes nonsense, and one that can write."""

from __future__ import annotations

import importlib.util
import itertools
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from cli_fakes import REFERENCE, FakeEvaluator, lines
from typer.testing import Result

from cuda_l1.archive import Archive
from cuda_l1.config import PromptFormat, PromptSettings
from cuda_l1.proposers.policy.checkpoint import write_format
from cuda_l1.proposers.policy.policy import Policy, Written
from cuda_l1.types import Prompt
from tiny_policy import make_checkpoint

pytest.importorskip("transformers", reason="needs transformers")
Run = Callable[..., Result]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("run") / "final", context=16384)


@pytest.fixture
def briefly(tmp_path: Path) -> list[str]:
    """Options for a short question and short replies: the tokenizer has a token for each byte."""
    (tmp_path / "brief.j2").write_text("Make it faster: {{ task }}")
    return ["--generation", "max_new_tokens=12,batch=10", "--prompt", f"one-shot,template={tmp_path / 'brief.j2'}"]


@pytest.fixture
def optimize(run: Run, reference: Path, checkpoint: Path) -> Run:
    """Runs `optimize` with the checkpoint, or with another proposer."""

    def asked(*words: str, proposer: str = f"policy:{checkpoint}") -> Result:
        return run("optimize", reference, "--device", "cpu", "--proposer", proposer, "--json", *words)

    return asked


def test_nonsense_is_stored_with_its_reason_and_ends_in_nothing(
    optimize: Run, briefly: list[str], tmp_path: Path
) -> None:
    result = optimize(*briefly, "--budget", "5")
    assert result.exit_code == 1, result.stderr
    summary = lines(result)[-1]
    (use,) = summary["models"]
    assert "/final@" in use["model"]
    assert use["endpoint"] == "this machine" and use["replies"] == 20 and use["candidates"] == 0
    assert use["tokens_in"] > 1000 and use["tokens_out"] <= 20 * 12
    assert "20 replies in a row held nothing new" in str(summary["failures"])
    with Archive.open(tmp_path / "data" / "archive.sqlite") as archive:
        texts = [reply.text for reply in archive.replies.all()]
    assert len(set(texts)) > 10, "the replies are no draws"


def test_the_same_seed_writes_the_same_replies(optimize: Run, briefly: list[str], tmp_path: Path) -> None:
    found = []
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        archive = tmp_path / f"{name}.sqlite"
        assert optimize(*briefly, "--seed", seed, "--archive", str(archive)).exit_code == 1
        with Archive.open(archive) as opened:
            found.append([(reply.prompt_sha, reply.text) for reply in opened.replies.all()])
    assert found[0] == found[1] and found[0] != found[2]


def test_a_policy_that_can_write_wins(optimize: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Policy, "generate", writes("# speedup 2.0", "# speedup 3.0"))
    result = optimize("--budget", "6")
    assert result.exit_code == 0, result.stderr
    *records, summary = lines(result)
    assert summary["result"] == "beats-best-baseline" and "# speedup 3.0" in Path(summary["path"]).read_text()
    assert "policy" in {record["candidate"]["origins"][0]["proposer"] for record in records}
    assert "final@" in summary["technique"] and summary["models"][0]["gains"] == 2


def test_a_reply_that_met_its_limit_is_no_candidate(
    optimize: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Policy, "generate", writes("# speedup 2.0", ending="length"))
    assert optimize("--budget", "5").exit_code == 1
    with Archive.open(tmp_path / "data" / "archive.sqlite") as archive:
        assert {reply.problem for reply in archive.replies.all()} == {"cut-off"}


def test_a_suite_is_searched_with_one_loading(
    run: Run, reference: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, loaded = Policy.load, []
    monkeypatch.setattr(Policy, "load", lambda *asked: loaded.append(asked) or load(*asked))
    monkeypatch.setattr(Policy, "generate", writes("# speedup 2.0"))
    monkeypatch.setattr(FakeEvaluator, "footprint", lambda self, task: 1 << 20, raising=False)
    (reference.parent / "tasks").mkdir()
    for name in ("a", "b"):
        (reference.parent / "tasks" / f"{name}.py").write_text(f"# {name}\n{REFERENCE}")
    words = ("--device", "cpu", "--optimize", "--budget", "4", "--generation", "max_new_tokens=13", "--json")
    result = run("bench", reference.parent / "tasks", *words, "--proposer", f"policy:{checkpoint}")
    assert result.exit_code == 0, result.stderr
    assert len(loaded) == 1 and len(lines(result)) >= 3


@pytest.mark.parametrize(
    ("proposer", "more", "said"),
    [
        ("policy", (), "name one checkpoint, policy:FOLDER"),
        ("policy:nowhere", (), "checkpoint nowhere: no such folder"),
        ("policy:a,policy:b", (), "name one checkpoint"),
        ("techniques", ("--generation", "batch=2"), "only --proposer policy:FOLDER generates"),
        ("policy:{}", ("--generation", "heat=2"), "`heat=2` is no setting; give NAME=VALUE with temperature, top_p"),
        ("policy:{}", ("--generation", "temperature=-1"), "temperature: must be at least 0"),
        ("policy:{}", ("--generation", "seed=3"), "`seed=3` is no setting"),
        ("policy:{}", ("--generation", "max_new_tokens=16380"), "leaves no room for a prompt"),
        ("policy:{}", ("--prompt", "sonnet"), "--prompt sonnet: kind"),
        ("policy:{}", ("--generation", "max_new_tokens=16000"), "the prompt has"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(
    optimize: Run, checkpoint: Path, proposer: str, more: tuple[str, ...], said: str
) -> None:
    result = optimize(*more, proposer=proposer.format(checkpoint))
    assert result.exit_code == 2, result.stdout
    last = result.stderr.splitlines()[-1]
    assert said in last and "Traceback" not in result.stderr


def test_without_transformers_the_line_says_what_to_install(optimize: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "transformers" else find(name))
    result = optimize()
    assert result.exit_code == 2 and "pip install 'cuda-l1[train]'" in result.stderr.splitlines()[-1]


def test_another_gpu_that_is_not_there_is_said_at_once(optimize: Run) -> None:
    result = optimize("--generation", "device=cuda:5")
    assert result.exit_code == 3 and "Traceback" not in result.stderr


def test_how_it_was_trained_to_be_asked_is_how_it_is_asked(
    run: Run, reference: Path, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Path(shutil.copytree(checkpoint, tmp_path / "own"))
    (own / "mine.j2").write_text("faster: {{ task }}")
    prompt = PromptSettings(kind="one-shot", template="mine.j2", device_facts=False)
    write_format(own, PromptFormat(prompt=prompt, max_new_tokens=99, temperature=0.7, top_p=0.9))
    asked: list[Prompt] = []
    lengths: list[int] = []
    drawn: list[tuple[float, float]] = []

    def generate(self: Policy, prompts: Sequence[Prompt], seeds: Sequence[int], **more: Any) -> list[Written | None]:
        asked.extend(prompts)
        lengths.append(self.max_new_tokens)
        drawn.append((self.settings.temperature, self.settings.top_p))
        return [Written("hm", "stop", 1, 1) for _ in prompts]

    monkeypatch.setattr(Policy, "generate", generate)
    run("optimize", reference, "--device", "cpu", "--proposer", f"policy:{own}")
    assert {prompt.template.split("@")[0] for prompt in asked} == {"mine"} and set(lengths) == {99}
    assert set(drawn) == {(0.7, 0.9)}
    drawn.clear()
    run("optimize", reference, "--device", "cpu", "--proposer", f"policy:{own}", "--generation", "temperature=0.1")
    assert set(drawn) == {(0.1, 0.9)}


def writes(*heads: str, ending: str = "stop") -> Callable[..., list[Written | None]]:
    """In place of `Policy.generate`: candidates by their heads, then others without a gain."""
    numbers = itertools.count()

    def generate(self: Policy, prompts: Sequence[Prompt], seeds: Sequence[int], **more: Any) -> list[Written | None]:
        said = []
        for prompt in prompts:
            number = next(numbers)
            head = heads[number] if number < len(heads) else f"# speedup 0.5 {number}"
            code = f"{REFERENCE}\n{head}\nclass ModelNew(Model):\n    pass\n"
            text = (
                "## Performance Analysis\nSlow.\n\n## Algorithm Design\nFuse.\n\n## Code Implementation\n"
                f"```python\n{code}```\n"
            )
            said.append(Written(text, ending, self.counter.count(prompt.user), 9))
        return said

    return generate
