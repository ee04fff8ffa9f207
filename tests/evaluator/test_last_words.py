"""What is told of a process that has died."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cuda_l1.evaluator.deaths import last_words


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("", "it printed nothing"),
        ("one\nSegmentation fault\n", "Segmentation fault"),
        ("a line\n" + 300 * "x", 200 * "x"),
    ],
)
def test_the_last_line_is_told(log, words):
    assert last_words(log) == words


def test_an_error_of_this_package_is_told_with_its_place():
    code = "from cuda_l1.types import digest; digest(5)"
    log = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr
    words = last_words(log)
    assert words.startswith("AttributeError") and "(cuda_l1/types.py:" in words and "\n" not in words
