"""What generated candidates begin with, the same text in all of them, and the one line that stands for it in a prompt.

A candidate holds all that it needs. Of one with C++ that is 23 kB of vectors and functions around perhaps 2 kB that are
its own, which a model should neither read nor write anew each time.
"""

from __future__ import annotations

from cuda_l1.prelude.cpp_loader import LOADER as CPP_LOADER
from cuda_l1.prelude.cpp_vectors import header
from cuda_l1.prelude.derived_tensors import DERIVED_TENSORS
from cuda_l1.prelude.traced import TRACED
from cuda_l1.prelude.triton_loader import LOADER as TRITON_LOADER

_TEXTS = {
    "# prelude: traced": TRACED,  # first: it holds two of the others
    "# prelude: compile_cpp": CPP_LOADER,
    "// prelude: vectors of 4 bytes": header(4),
    "// prelude: vectors of 8 bytes": header(8),
    "# prelude: Launcher": TRITON_LOADER,
    "# prelude: DerivedTensors": DERIVED_TENSORS,
}
PRELUDES = {line: text.strip("\n") for line, text in _TEXTS.items()}
"""Line that stands for a prelude -> its text."""


def contracted(source: str) -> str:
    """`source` with a line in place of each prelude; a source that holds such a line already is left as it is."""
    if any(line in source for line in PRELUDES):
        return source
    for line, text in PRELUDES.items():
        source = source.replace(text, line, 1)
    return source


def expanded(source: str) -> str:
    """`source` with the text of each prelude that a line of it stands for, the first time that it does."""
    for line, text in PRELUDES.items():
        source = source.replace(line, text, 1)
    return source
