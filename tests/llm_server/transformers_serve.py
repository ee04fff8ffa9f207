"""`transformers serve`: somebody else's OpenAI-compatible server, with a real model behind it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LIMIT_S = 120.0
# An environment that has transformers from outside has no script of its own for it.
PROGRAM = "import sys; from importlib.metadata import entry_points as e; sys.argv[0] = 'transformers'; "
PROGRAM += "sys.exit(next(iter(e(group='console_scripts', name='transformers'))).load()())"


@contextmanager
def transformers_serve(model: Path) -> Iterator[str]:
    """The server's URL, to ask for the model `str(model)`, until the block ends. Raises RuntimeError with its log."""
    program = [sys.executable, "-c", PROGRAM]
    command = [*program, "serve", model, "--device", "cpu", "--host", "127.0.0.1", "--port", "0", "--default-seed", "0"]
    alone = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(model / "hub"), "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
    environment = {**os.environ, **alone}
    with subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as server:
        late = threading.Timer(LIMIT_S, server.kill)
        late.start()
        try:
            url = _url(server)
            late.cancel()
            threading.Thread(target=_drain, args=(server,), daemon=True).start()
            yield f"{url}/v1"
        finally:
            late.cancel()
            server.kill()


def _url(server: subprocess.Popen[str]) -> str:
    """Where it says that it listens; port 0 was any free one."""
    assert server.stderr
    log = []
    for line in server.stderr:
        log.append(line)
        if found := re.search(r"running on (http://[\d.:]+)", line):
            return found[1]
    raise RuntimeError("transformers serve ended or was late:\n" + "".join(log[-20:]))


def _drain(server: subprocess.Popen[str]) -> None:
    assert server.stderr
    for _ in server.stderr:
        pass
