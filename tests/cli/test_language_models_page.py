"""The worked example of docs/language-models.md runs as it is printed, with a stand-in for the evaluator."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from llm_server import load, serving

PAGE = Path(__file__).parents[2] / "docs" / "language-models.md"
BLOCK = re.compile(r"<!-- \w+(?:: (\S+))? -->\n(`{3,})\w+\n(.*?)\n\2\n", re.DOTALL)
PORT = "127.0.0.1:8765"


def test_the_worked_example(run: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (file, _, script), (_, _, server), (_, _, commands) = BLOCK.findall(PAGE.read_text())
    (tmp_path / file).write_text(script)
    assert shlex.split(server) == ["python", "tests/llm_server", "--script", file, "--port", PORT.rpartition(":")[2]]
    assert (PAGE.parents[1] / "tests" / "llm_server" / "__main__.py").exists()
    played = load(tmp_path / file)
    with serving(*played.answers, models=played.models) as scripted:
        own = "{}:{}".format(*scripted.address)
        prompt, search = (run(*shlex.split(line.replace(PORT, own))[1:]) for line in commands.splitlines())
    assert prompt.exit_code == 0 and "torch.diag(a) @ b" in prompt.stdout
    assert search.exit_code in (0, 1), search.stderr  # the stand-in knows no speed-up
    row = next(line.split() for line in search.stdout.splitlines() if line.split()[:1] == ["scripted"])
    assert row[:6] == ["scripted", "at", own, row[3], "1", "1"]
    assert row[-1] == "no-code" and int(row[-2]) == int(row[3]) - 1 >= 20
