"""What is remembered: an append-only database of records, and the directory of a run."""

from __future__ import annotations

from cuda_l1.archive.archive import Archive
from cuda_l1.archive.runs import RunDirectory

__all__ = ["Archive", "RunDirectory"]
