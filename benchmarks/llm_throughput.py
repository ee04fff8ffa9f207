"""Does the client of language models keep a server busy, and what does that cost it?

    PYTHONPATH=src python benchmarks/llm_throughput.py --out build/llm

A number of questions at a time goes to the test server of `tests/llm_server`, a process of its own that takes as many
as come and answers each after `--answer` seconds, give or take half, as a model server with room for so many would.
Question and answer are as long as a search's. Once every question has been asked, the two are watched for `--window`
seconds. `busy` is the share of the server's places that was taken: 1 would be a client that takes no time between an
answer and the next question. `client_cpu` is the client's processor time over wall time, 1 being a whole core. With
`--answer 0` the server does not think at all, and `per_s` is how many questions a second the two can exchange.
Writes llm_throughput.csv, a row for each number and time, and llm_throughput.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

from csv_table import Row, Table
from cuda_l1.endpoint import Background, Chat
from cuda_l1.errors import EndpointError, InfrastructureError
from cuda_l1.evaluator.environment import usable_cores
from cuda_l1.report.markdown import table_lines
from provenance import PROVENANCE, ROOT, cpu_columns, header, plain_parser, run, say, write_report

FIGURES = (
    *("busy", "per_s", "client_cpu", "server_cpu", "failed", "most_in_flight", "connections", "window_s"),
    *("prompt_characters", "reply_characters", "cores", "openai"),
)
COLUMNS = ("concurrency", "answer_s", *FIGURES, *PROVENANCE)
PROMPT_CHARACTERS, REPLY_CHARACTERS = 16_000, 8_000
MODEL = "test-model"


def main() -> int:
    options = _options()
    table = Table(options.out / "llm_throughput.csv", COLUMNS, keys=2)
    done = {table.key(row) for row in table.rows()}
    for answer_s in options.answer:
        for concurrency in options.concurrency:
            key: dict[str, object] = {"concurrency": concurrency, "answer_s": answer_s}
            if table.key(key) in done:
                continue
            row = measured(concurrency, answer_s, options.window)
            table.append({**key, **row, **_provenance()})
            say(f"{concurrency} at a time, {answer_s:g} s each: {row['busy']:.1%} busy, client {row['client_cpu']:.0%}")
    write_report(options.out / "llm_throughput.md", report(table.rows()))
    return 0


def _options() -> argparse.Namespace:
    made = plain_parser(__doc__)
    made.add_argument("--concurrency", type=int, nargs="+", default=[1, 16, 64, 256])
    made.add_argument("--answer", type=float, nargs="+", default=[2.0, 0.0], metavar="SECONDS")
    made.add_argument("--window", type=float, default=10.0, metavar="SECONDS")
    return made.parse_args()


def _provenance() -> dict[str, object]:
    return {"cores": len(usable_cores()), "openai": version("openai"), **cpu_columns()}


# ── what is measured ──────────────────────────────────────────────────────────────────────────────


@dataclass
class Asking:
    """So many questions in flight until it is stopped, each place asking again as soon as it has its answer."""

    chat: Chat
    failed: int = 0
    stopped: bool = False

    async def place(self, number: int) -> None:
        count = 0
        while not self.stopped:
            count += 1
            try:
                await self.chat.ask("You make PyTorch modules faster.", f"{number}/{count} " + "x" * PROMPT_CHARACTERS)
            except EndpointError:
                self.failed += 1


def measured(concurrency: int, answer_s: float, window_s: float) -> dict[str, Any]:
    """The figures of a row."""
    with _server(answer_s) as url, Background() as background:
        chat = Chat(url, MODEL, key="none", timeout_s=600)
        asking = Asking(chat)
        places = [background.submit(asking.place(number)) for number in range(concurrency)]
        time.sleep(2.0 + 1.5 * answer_s)
        before, cpu_before = _stats(url), time.process_time()
        time.sleep(window_s)
        after, cpu_after = _stats(url), time.process_time()
        asking.stopped = True
        for place in places:
            place.result()
        background.submit(chat.close()).result()
    took = after["at_s"] - before["at_s"]
    change = {name: after[name] - before[name] for name in after}
    return {
        "busy": change["held_s"] / (took * concurrency),
        "per_s": change["questions"] / took,
        "client_cpu": (cpu_after - cpu_before) / took,
        "server_cpu": change["cpu_s"] / took,
        "failed": asking.failed,
        **{name: after[name] for name in ("most_in_flight", "connections")},
        "window_s": took,
        "prompt_characters": PROMPT_CHARACTERS,
        "reply_characters": REPLY_CHARACTERS,
    }


@contextmanager
def _server(answer_s: float) -> Iterator[str]:
    """The test server's URL, until the block ends."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.toml"
        text = json.dumps("y" * REPLY_CHARACTERS)
        script.write_text(f"[[answer]]\ntext = {text}\ndelay_s = {answer_s / 2}\nspread_s = {answer_s}\n")
        command = [sys.executable, str(ROOT / "tests" / "llm_server"), "--script", str(script)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            try:
                assert server.stderr
                first = server.stderr.readline()
                if " at " not in first:
                    raise InfrastructureError(f"the test server did not start: {first}{server.stderr.read()}")
                yield first.split(" at ")[1].partition(";")[0]
            finally:
                server.terminate()


def _stats(url: str) -> dict[str, float]:
    address = url.removesuffix("/v1") + "/stats"
    with build_opener(ProxyHandler({})).open(address, timeout=60) as answer:
        told: dict[str, float] = json.load(answer)
    return told


# ── report ────────────────────────────────────────────────────────────────────────────────────────


def report(rows: Sequence[Row]) -> str:
    """The rows as a table with what they were measured on."""
    first = rows[0]
    lines = header("Throughput of the client of language models", list(rows))
    lines += [
        f"Questions of {first['prompt_characters']} characters, answers of {first['reply_characters']}, "
        f"{first['cores']} cores for client and server together, openai {first['openai']}, "
        f"each row watched for {float(first['window_s']):.0f} s. "
        "A share of processor time of 100 % is one core.",
        "",
    ]
    head = ("at a time", "answer, s", "places busy", "questions/s", "client CPU", "server CPU", "failed", "connections")
    return "\n".join([*lines, *table_lines(head, [_cells(row) for row in rows]), ""])


def _cells(row: Row) -> list[str]:
    shares = [f"{float(row[name]):.1%}" for name in ("busy", "client_cpu", "server_cpu")]
    shares[0] = shares[0] if float(row["answer_s"]) else "none to fill"
    per_s = f"{float(row['per_s']):.1f}"
    return [row["concurrency"], row["answer_s"], shares[0], per_s, *shares[1:], row["failed"], row["connections"]]


if __name__ == "__main__":
    run(main)
