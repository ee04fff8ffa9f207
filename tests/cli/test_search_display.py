"""What a search says where there is no terminal."""

from __future__ import annotations

import pytest

from cuda_l1.cli.progress import SearchDisplay


def test_a_wait_for_a_device_is_said_once_for_each_holder(capsys: pytest.CaptureFixture[str]) -> None:
    display = SearchDisplay()
    waits = [f"waiting for cpu: process {number} is timing on it" for number in (1, 1, 2, 1)]
    for line in ("build", *waits, "time"):
        display.tell(line)
    assert capsys.readouterr().err.splitlines() == [waits[0], waits[2]]
