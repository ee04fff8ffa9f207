"""`optimize --proposer llm` against servers and models that wish us ill, and against interruptions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_fakes import REFERENCE, lines
from typer.testing import Result

from cuda_l1.archive import Archive
from cuda_l1.config import ModelSettings
from cuda_l1.types import Reply
from llm_server import NEVER, Answer, LlmServer, Request, serving

Run = Callable[..., Result]
KEY = "sk-of-a-test-0123456789"
HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def code(head: str) -> str:
    return f"```python\n{REFERENCE}\n{head}\nclass ModelNew(Model):\n    pass\n```\n"


def reply(head: str, *, design: str = "Fuse it.") -> str:
    return f"## Performance Analysis\nSlow.\n## Algorithm Design\n{design}\n## Code Implementation\n{code(head)}"


def ask(run: Run, reference: Path, server: LlmServer, *words: str) -> Result:
    model = "m,concurrency=2,timeout_s=5,retries=0,key_env=OPENAI_API_KEY"
    to = ("--proposer", "llm", "--model", model, "--base-url", server.url)
    return run("optimize", reference, "--device", "cpu", "--json", *to, *words)


def kept(folder: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_key_that_a_reply_repeats_is_not_kept(run: Run, reference: Path, tmp_path: Path) -> None:
    said = reply(f"# speedup 0.5\nKEY = '{KEY}'", design=f"Your key is {KEY}.")
    with serving(said, f"Your key is {KEY}.", Answer(text=None, refusal=KEY), Answer(text="x", finish=KEY)) as server:
        result = ask(run, reference, server, "--budget", "2")
    assert result.exit_code == 1 and lines(result)[-1]["models"][0]["accepted"] == 1
    assert KEY.encode() not in kept(tmp_path) and KEY not in result.stdout + result.stderr


THOUGHTS = [
    Answer(text=f"{reply('# speedup 9.0')}</think>Done."),
    Answer(text=f"<think>{reply('# speedup 9.0')}"),
    Answer(text=None, reasoning=reply("# speedup 9.0"), finish="length"),
]


@pytest.mark.parametrize("thought", THOUGHTS)
def test_what_a_model_thinks_aloud_is_never_judged(run: Run, reference: Path, thought: Answer) -> None:
    with serving(thought) as server:
        result = ask(run, reference, server, "--budget", "2")
    assert result.exit_code == 1
    (use,) = lines(result)[-1]["models"]
    # Those in flight when it gives up are answered, and count: at most as many as are asked at a time.
    assert use["candidates"] == 0 and 20 <= use["replies"] < 20 + ModelSettings.model_fields["concurrency"].default


def test_no_word_of_a_model_steers_the_terminal(run: Run, reference: Path) -> None:
    ugly = "\x1b[2J\x1b]0;owned\x07\u202e\r\n" * 3
    script = [reply(f"# speedup 0.5\nX = {ugly!r}", design=ugly), ugly, Answer(text="x", finish=ugly), (500, ugly)]
    with serving(*script) as server:
        result = run(
            *("optimize", reference, "--device", "cpu", "--proposer", "llm", "--model", "m,retries=0"),
            *("--base-url", server.url, "--budget", "2"),
        )
    assert result.exit_code == 1, result.stderr
    assert all(c.isprintable() or c == "\n" for c in result.stdout + result.stderr)


HOSTILE = [
    Answer(text="x" * (20 << 20)),
    Answer(fault="flood"),
    Answer(status=500, fault="flood"),
    Answer(body=b'{"choices": [{"message": {"content": ["a", {"text": 1}]}}]}'),
    Answer(body=b"[" * 100_000),
    Answer(text="y", usage={"prompt_tokens": 10**30, "completion_tokens": -5}),
    Answer(text=reply("# speedup 1.0") * 50),
    Answer(text="```\n" * (1 << 13)),
]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("answer", HOSTILE)
def test_hostile_answers_end_in_a_line(run: Run, reference: Path, answer: Answer) -> None:
    with serving(answer) as server:
        result = ask(run, reference, server, "--budget", "2")
    assert result.exit_code in (1, 3), result.stderr
    assert "Traceback" not in result.stderr and all(len(line) < 1000 for line in result.stderr.splitlines())


DRIVER = """
import sys
sys.path[:0] = [{here!r}]
import cuda_l1.evaluator
from cli_fakes import FakeEvaluator
cuda_l1.evaluator.Evaluator = FakeEvaluator
from cuda_l1.cli import main
sys.argv = ["cuda-l1", *sys.argv[1:]]
main()
"""


def start(reference: Path, server: LlmServer, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", DRIVER.format(here=str(HERE)), "optimize", reference, "--device", "cpu", "--json"]
    to = ["--proposer", "llm", "--model", "m,concurrency=1", "--base-url", server.url]
    environment = {**os.environ, "CUDA_L1_ARCHIVE": str(reference.parent / "a.sqlite"), "NO_PROXY": "127.0.0.1"}
    return subprocess.Popen(
        [*command, *to, *words],
        cwd=reference.parent,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def wait_for(server: LlmServer, questions: int) -> None:
    end = time.monotonic() + 60
    while len(server.asked) < questions and time.monotonic() < end:
        time.sleep(0.02)
    assert len(server.asked) >= questions


def test_an_interruption_waits_for_no_server(reference: Path) -> None:
    with serving(Answer(text=reply("# speedup 2.0")), Answer(fault="never")) as server:
        process = start(reference, server, "--budget", "5")
        wait_for(server, 2)
        time.sleep(0.3)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 130, said
        assert time.monotonic() - began < 20 and "Traceback" not in said


def test_what_was_paid_for_survives_a_kill(reference: Path) -> None:
    first = iter([reply(f"# speedup 0.{n}") for n in range(1, 6)])
    later: list[str] = []

    def answer(_: Request) -> Answer:
        return Answer(text=later[0]) if later else Answer(text=text) if (text := next(first, "")) else NEVER

    with serving(answer, models=("m",)) as server:
        process = start(reference, server, "--budget", "60")
        wait_for(server, 6)
        process.kill()
        process.communicate(timeout=60)
        paid = stored(reference)
        later.append("nothing new")
        resumed = start(reference, server, "--budget", "60")
        out, said = resumed.communicate(timeout=100)
    assert resumed.returncode == 1, said
    assert len(paid) == 5 and stored(reference)[:5] == paid
    (use,) = json.loads(out.splitlines()[-1])["models"]
    assert use["candidates"] == use["accepted"] == 5


def stored(reference: Path) -> list[Reply]:
    with Archive.open(str(reference.parent / "a.sqlite")) as archive:
        return list(archive.replies.all())
