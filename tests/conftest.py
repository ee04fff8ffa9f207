"""On CI an absence is a failure: a test that is skipped for want of something that CI installs has not passed."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator

import pytest

PROVIDED = (
    "compiler",
    "g++",
    "interpreter",
    "/dev/full",
    "needs make",
    "needs git",
    "needs openssl",
    "chromium",
    "needs transformers",
    "needs datasets",
    "is parquet",
)
"""Words in the reasons for skipping what `.ci/run` provides. GPUs, sandbox rungs and database servers it does not."""


# A shell starts what runs in the background with SIGINT ignored, and commands under test would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if os.environ.get("CI") == "true" and report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
        if not item.get_closest_marker("gpu") and any(word in reason for word in PROVIDED):
            report.outcome = "failed"
            report.longrepr = f"{item.nodeid}: {reason} (CI provides it)"
    return report
