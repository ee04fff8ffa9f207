"""On CI an absence is a failure: a test that is skipped for want of something that CI installs has not passed."""

from __future__ import annotations

import functools
import gc
import hashlib
import itertools
import os
import random
import shutil
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import settings

from shares import is_due

PROVIDED = (
    "compiler",
    "g++",
    "interpreter",
    "could not import",  # of `importorskip` with no reason of its own
    "/dev/full",
    "needs make",
    "needs git",
    "needs openssl",
    "chromium",
    "needs transformers",
    "needs datasets",
    "is parquet",
    "needs 2 cores",
)
"""Words in the reasons for skipping what `.ci/run` provides. GPUs, sandbox rungs and database servers it does not."""


# A shell starts what runs in the background with SIGINT ignored, and commands under test would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says how busy the machine is.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "each process of pytest-xdist, with all that it starts, keeps to cores of its own"
    parser.addoption("--own-cores", action="store_true", help=text)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """`-n auto`: one process for each core that may be used, hyper-threads included, and no more than four."""
    return min(4, len(os.sched_getaffinity(0)))


def pytest_configure(config: pytest.Config) -> None:
    worker = getattr(config, "workerinput", None)
    if worker and config.getoption("--own-cores"):
        os.sched_setaffinity(0, own_cores(int(worker["workerid"].removeprefix("gw")), worker["workercount"]))


def own_cores(index: int, count: int) -> set[int]:
    """The cores of one of `count` processes. One that replaces a dead one has a later number, and the dead one's or
    another's cores."""
    cores = sorted(os.sched_getaffinity(0))
    return set(cores[index % count :: count]) or {cores[index % len(cores)]}


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What test modules import stays to the end, and a full search of it for garbage takes half a second: all of them a
    third of the collection, and later on one in some eighty tests. Of what tests make little is garbage in cycles."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000)
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What may take longest is begun first, so that nobody waits for it in the end; and the Makefile must find what has
    the machine to itself."""
    for item in items:
        for name in ("alone", "gpu"):
            if item.get_closest_marker(name) and f"mark.{name}" not in _text(item.path):
                raise pytest.UsageError(f"{item.nodeid}: write pytest.mark.{name} in its own file, for `make test`")
    if os.environ.get("CI") == "true":
        left_out = [item for item in items if not _is_due(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if _is_due(item)]
    usual = float(config.getini("timeout"))
    items.sort(key=lambda item: -max((mark.args[0] for mark in item.iter_markers("timeout")), default=usual))


def _is_due(item: pytest.Item) -> bool:
    """Half of the tests of whole commands and verdicts, others at each commit: all of them take longer than CI may.
    Without CI `make test` runs all."""
    mark = item.get_closest_marker("e2e")
    return mark is None or mark.kwargs.get("always", False) or is_due(item.nodeid, 2)


@functools.cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def pytest_runtest_setup(item: pytest.Item) -> None:
    needed = max((mark.kwargs.get("cores", 1) for mark in item.iter_markers("alone")), default=1)
    if len(os.sched_getaffinity(0)) < needed:
        pytest.skip(f"needs {needed} cores")
    if item.get_closest_marker("gpu") and not _has_gpu():
        pytest.skip("no NVIDIA GPU that this torch can use: run on a machine with one")


@functools.cache
def _has_gpu() -> bool:
    """Without starting the driver, whose threads no fork may inherit."""
    import torch

    from cuda_l1.evaluator.gpus import visible_gpus

    return torch.version.cuda is not None and bool(visible_gpus())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _failed_where_provided(item, (yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Of a module that is skipped as a whole."""
    return _failed_where_provided(collector, (yield))


Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def _failed_where_provided(node: pytest.Item | pytest.Collector, report: Report) -> Report:
    """On CI a skip for want of what it provides as a failure."""
    if os.environ.get("CI") == "true" and report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
        if not node.get_closest_marker("gpu") and any(word in reason for word in PROVIDED):
            report.outcome = "failed"
            report.longrepr = f"{node.nodeid}: {reason} (CI provides it)"
    return report


@pytest.fixture(autouse=True)
def same_draws(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test and its verdicts leave to chance is drawn alike each time: a test that passes does so again. Other
    draws, to look for what passes by luck, follow from another text in DRAWS."""
    names = "torch", "cuda_l1.evaluator.client", "cuda_l1.evaluator.guest.entropy"
    torch, client, entropy = (sys.modules.get(name) for name in names)
    text = f"{request.node.nodeid} {os.environ.get('DRAWS', '')}".encode()
    secret, requests = hashlib.sha256(text).digest(), itertools.count()
    random.seed(secret)
    if torch is not None:
        torch.default_generator.manual_seed(int.from_bytes(secret[:8], "little"))
    if client is not None:
        monkeypatch.setattr(client, "_secret", lambda: hashlib.sha256(text + bytes(next(requests))).digest())
    if entropy is not None:
        entropy.ENTROPY.begin(secret)
    yield
    if entropy is not None:
        entropy.ENTROPY.begin(b"")


@pytest.fixture(scope="session")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A cache, and so a device lease, of the tests' own. What the usual one knows of the compiler is not found out
    again: that takes longer than most tests."""
    import torch

    from cuda_l1.config import cache_home, probes_folder

    cache = tmp_path_factory.mktemp("cache")
    known = probes_folder(cache_home(), torch.__version__)
    if known.is_dir():
        shutil.copytree(known, probes_folder(cache, torch.__version__))
    return str(cache)
