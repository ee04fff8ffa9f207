"""One session on a machine with a GPU: a list of steps, each within a time limit, all within one.

    PYTHONPATH=src python benchmarks/gpu_session.py --out OUT --limit 570s --commit $(git rev-parse HEAD) \\
        --from last/results.tar.gz --from last/archive.tar.gz tests:90 cost:60 suite

A step is NAME, or NAME:SECONDS; one without seconds gets what is left. A step that fails or is stopped at its limit
does not stop the others. Each continues from what the folder of --work holds, which --from fills: folders, or archives
that an earlier session left. After every step OUT holds: session.log (what ran, how it ended, when), results.tar.gz
(tables, reports, logs) and archive.tar.gz (verdicts and runs). `--add suite='--budget 30s'` appends to a command;
`replay` needs that: `--add replay='--release h100.json'`, and so do `exams` and `kernelbench`, which read checkouts:
`--add exams='--kernelbench KernelBench'`, `--add kernelbench='kernelbench:KernelBench#level1-3'`.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cuda_l1.api.budget import parse_budget
from cuda_l1.errors import UsageError
from provenance import COMMIT, ROOT, commit, run, say

STEPS: Mapping[str, str] = {
    "doctor": "-m cuda_l1.cli doctor",
    "tests": "benchmarks/gpu_tests.py --out {work}/gpu-tests {until}",
    "gate": "benchmarks/gate_check.py",
    "attacks": "benchmarks/attack_table.py --device cuda --out {work}/attacks {until}",
    "exams": "benchmarks/exams.py --device cuda --out {work}/exams {until}",
    "delta": "benchmarks/known_delta.py --device cuda --out {work}/delta {until}",
    "delta-busy": "benchmarks/known_delta.py --device cuda --busy --out {work}/delta-busy {until}",
    "cost": "benchmarks/verdict_cost.py --device cuda --out {work}/cost {until}",
    "throughput": "benchmarks/throughput.py --device cuda --out {work}/throughput {until}",
    "repeat": "benchmarks/repeatability.py --device cuda --parts repeat --out {work}/repeatability {until}",
    "aa": "benchmarks/repeatability.py --device cuda --parts aa --out {work}/repeatability {until}",
    "replay": "benchmarks/replay_release.py --device cuda --out {work}/replay {until}",
    "kernelbench": "-m cuda_l1.cli bench --device cuda --archive {work}/kernelbench/archive.sqlite --json",
    "suite": "benchmarks/suite.py --device cuda --dtypes fp32,bf16 --keep-evaluator --out {work}/suite {until}",
}
"""Name -> arguments of this Python."""
SHARDED = ("suite", "kernelbench")
"""Steps that take `--shard I/N`."""
LEAST_S = 10.0
"""A step is not begun with less than this."""
SAFELY: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
"""Python 3.11.2, which Debian has, knows no filters; the archives are our own."""
STOPPING_S = 12.0
"""What a step gets to end in after it was told to, before it is killed."""
TAIL_LINES = 25


@dataclass(frozen=True)
class Step:
    """One command, run `shards` times side by side, each on a GPU and a share of the cores of its own."""

    name: str
    seconds: float | None
    """None: what is left."""
    added: str = ""
    shards: int = 1

    def commands(self, work: Path, seconds: float) -> list[list[str]]:
        """The command lines; they are told to end by themselves before they are stopped."""
        until = f"--deadline {max(1, int(seconds))}s"
        filled = STEPS[self.name].format(work=shlex.quote(str(work)), until=until)
        base = [sys.executable, *shlex.split(filled), *shlex.split(self.added)]
        if self.shards == 1:
            return [base]
        return [[*base, "--shard", f"{index + 1}/{self.shards}"] for index in range(self.shards)]


def main() -> int:
    options = _options()
    end = time.monotonic() + (parse_budget(options.limit).seconds or 0.0)
    steps = [_step(text, options) for text in options.steps]
    options.out.mkdir(parents=True, exist_ok=True)
    options.work.mkdir(parents=True, exist_ok=True)
    for source in options.sources:
        take_over(source, options.work)
    log = SessionLog(options.out / "session.log")
    log.write(f"commit {options.commit or commit()}, {len(os.sched_getaffinity(0))} cores, steps {options.steps}")
    ended_well = True
    for step in steps:
        left = end - time.monotonic()
        seconds = min(left - STOPPING_S, step.seconds or left)
        if seconds < LEAST_S:
            log.write(f"{step.name}: not begun, {max(left, 0.0):.0f} s left")
            ended_well = False
            continue
        try:
            ended_well &= run_step(step, seconds, options, log)
        finally:
            sizes = pack(options.work, options.out)
        log.write("packed: " + ", ".join(f"{name} {size / 2**20:.1f} MiB" for name, size in sizes.items()))
    log.write("end")
    return 0 if ended_well else 1


def _options() -> argparse.Namespace:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("steps", nargs="+", metavar="STEP[:SECONDS]", help=", ".join(STEPS))
    made.add_argument("--out", type=Path, required=True, help="folder for the packed results")
    made.add_argument("--work", type=Path, default=ROOT / "build" / "gpu-session", help="folder the steps write to")
    made.add_argument("--from", dest="sources", type=Path, action="append", default=[], help="what to continue from")
    made.add_argument("--limit", default="570s", help="for the whole session")
    made.add_argument("--commit", help="where the sources lie without their repository: the commit they are of")
    made.add_argument("--add", action="append", default=[], metavar="STEP=ARGUMENTS")
    made.add_argument("--gpus", type=int, default=1, help="run suites on so many GPUs, a share of the tasks on each")
    return made.parse_args()


def _step(text: str, options: argparse.Namespace) -> Step:
    """Raises UsageError for a step that is not known."""
    name, _, seconds = text.partition(":")
    added = dict(item.partition("=")[::2] for item in options.add)
    unknown = ({name} | added.keys()) - STEPS.keys()
    if unknown or (seconds and not seconds.isdecimal()):
        raise UsageError(f"step `{text}`, --add {sorted(added)}: known steps are {', '.join(STEPS)}; limits in seconds")
    shards = options.gpus if name in SHARDED else 1
    return Step(name, float(seconds) if seconds else None, added.get(name, ""), shards)


class SessionLog:
    """Lines with the time of day, kept and shown."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, text: str) -> None:
        line = f"{datetime.now(UTC):%H:%M:%S} {text}"
        with self._path.open("a") as file:
            file.write(line + "\n")
        say(line)


# ── a step ────────────────────────────────────────────────────────────────────────────────────────


def run_step(step: Step, seconds: float, options: argparse.Namespace, log: SessionLog) -> bool:
    """Runs a step within its limit; whether it ended well. The end of what it printed is shown."""
    began = time.monotonic()
    commands = step.commands(options.work, seconds)
    log.write(f"{step.name}: {shlex.join(commands[0][1:])}, at most {seconds:.0f} s")
    outputs = [options.work / "logs" / f"{step.name}-{index + 1}.txt" for index in range(len(commands))]
    outputs[0].parent.mkdir(exist_ok=True)
    places = _places(len(commands))
    processes = [
        _start(command, output, cores, {**_environment(options.commit), **gpu})
        for command, output, (cores, gpu) in zip(commands, outputs, places, strict=True)
    ]
    try:
        codes = [_wait(process, began + seconds) for process in processes]
    finally:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    log.write(f"{step.name}: ended with {codes} after {time.monotonic() - began:.0f} s")
    for output in outputs:
        say("\n".join(f"    {line}" for line in output.read_text(errors="replace").splitlines()[-TAIL_LINES:]))
    return not any(codes)


def _start(
    command: Sequence[str], output: Path, cores: Sequence[int], environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    with output.open("ab") as file:
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )


def _environment(commit_text: str | None) -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    named = {COMMIT: commit_text} if commit_text else {}
    return {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": path, **named}


def _places(shares: int) -> list[tuple[list[int], dict[str, str]]]:
    """Equal shares of the cores, neighbours together, each with a GPU; a single one keeps all that there is."""
    cores = sorted(os.sched_getaffinity(0))
    if shares == 1:
        return [(cores, {})]
    size = max(1, len(cores) // shares)
    parts = [cores[index * size : (index + 1) * size] or cores for index in range(shares)]
    return [(part, {"CUDA_VISIBLE_DEVICES": str(index)}) for index, part in enumerate(parts)]


def _wait(process: subprocess.Popen[bytes], end: float) -> int:
    """The exit code; a step beyond its limit is asked to end, then killed, with the processes that it started."""
    try:
        return process.wait(max(0.0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
    try:
        return process.wait(STOPPING_S - 2.0)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.wait()


# ── what comes and what goes ──────────────────────────────────────────────────────────────────────


def take_over(source: Path, work: Path) -> None:
    """Copies a folder, or unpacks an archive of an earlier session, into the working folder.

    Raises UsageError where there is nothing, or no archive.
    """
    if source.is_dir():
        shutil.copytree(source, work, dirs_exist_ok=True)
        return
    try:
        with tarfile.open(source) as packed:
            packed.extractall(work, **SAFELY)
    except (OSError, tarfile.TarError) as error:
        raise UsageError(f"--from {source}: {error}") from error


def pack(work: Path, out: Path) -> dict[str, int]:
    """The working folder as two compressed files, each there whole or as it was before; their sizes in bytes."""
    files = [path for path in sorted(work.rglob("*")) if path.is_file()]
    verdicts = [path for path in files if _is_of_archive(path)]
    parts = {"results.tar.gz": [path for path in files if path not in verdicts], "archive.tar.gz": verdicts}
    for name, part in parts.items():
        _pack(out / name, work, part)
    return {name: (out / name).stat().st_size for name in parts}


def _is_of_archive(path: Path) -> bool:
    return ".sqlite" in path.name or "runs" in path.parts


def _pack(target: Path, work: Path, files: Sequence[Path]) -> None:
    partial = target.with_name(f".{target.name}.partial")
    with tarfile.open(partial, "w:gz") as packed:
        for path in files:
            if path.name.endswith((".sqlite-wal", ".sqlite-shm")):
                continue  # what they hold is in the consistent copy of the database
            source = _consistent_copy(path) if path.suffix == ".sqlite" else path
            packed.add(source, arcname=str(path.relative_to(work)))
            if source != path:
                source.unlink()
    partial.replace(target)


def _consistent_copy(path: Path) -> Path:
    """A database as it stands between two transactions."""
    copy = path.with_name(f".{path.name}.copy")
    source, target = sqlite3.connect(path), sqlite3.connect(copy)
    try:
        source.backup(target)
    finally:
        source.close()
        target.close()
    return copy


if __name__ == "__main__":
    run(main)
