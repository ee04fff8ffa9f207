"""Judging kernels: the one place that says whether a candidate is right and how fast it is.

with Evaluator() as evaluator:
    evaluator.audit(task)
    evaluator.evaluate(task, candidate, protocol=FINAL)
"""

from cuda_l1.evaluator.client import Evaluator
from cuda_l1.evaluator.eager import eager_candidate

__all__ = ["Evaluator", "eager_candidate"]
