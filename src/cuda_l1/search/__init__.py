"""The search: propose, skip what is known, evaluate, record, and measure the winner anew."""

from __future__ import annotations

from cuda_l1.search.loop import optimize
from cuda_l1.search.result import Result
from cuda_l1.search.verdicts import verdict

__all__ = ["Result", "optimize", "verdict"]
