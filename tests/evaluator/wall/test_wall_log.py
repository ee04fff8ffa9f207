"""The log of a guest keeps head and tail within its cap, however the output is cut into pieces."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from cuda_l1.evaluator.guest.log import CappedLog


@given(st.lists(st.integers(0, 70), max_size=20))
def test_head_and_tail_are_exact(sizes):
    log = CappedLog.create(40)
    written = ""
    for number, size in enumerate(sizes):
        piece = (chr(ord("a") + number) + "0123456789" * 7)[:size]
        written += piece
        log.append(piece.encode())
    text = log.text()
    if len(written) <= 40:
        assert text == written
    else:
        assert text.startswith(written[:20]) and text.endswith(written[-20:])
        assert f"[... {len(written) - 40} bytes of output left out ...]" in text
    assert log.text(5) == text[-5:]
    assert os.fstat(log.fileno()).st_size <= 40 + 16
    log.close()


def test_the_reader_sees_what_the_writer_adds_through_another_descriptor():
    ours = CappedLog.create(100)
    theirs = CappedLog(os.dup(ours.fileno()))
    theirs.append("ü is two bytes".encode())
    assert ours.text() == "ü is two bytes"
    theirs.append(b"\xff")
    assert ours.text().endswith("\N{REPLACEMENT CHARACTER}")
    ours.close()
    theirs.close()
    theirs.close()
