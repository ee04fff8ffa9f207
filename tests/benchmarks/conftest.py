"""The benchmark scripts are run as files, each beside the others: their folder is on the path here as it is there."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
