"""What trying a candidate at other sizes showed: one result for each size, and one honest line about all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cuda_l1 import exactness
from cuda_l1.config import Precision
from cuda_l1.types import UNSOUND_FLAGS, Outcome, Verification


@dataclass(frozen=True)
class SizeResult:
    """One candidate at one size."""

    size: dict[str, int]
    """The values that differ from the task's own."""
    verification: Verification | None
    """None: the reference itself does not work at this size."""
    refusal: str = ""
    """Why it does not, one line."""
    precision: Precision = "default"
    """The least exact class that counts, as for `--precision`."""

    @property
    def label(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.size.items())

    @property
    def verdict(self) -> str:
        """`holds`, `fails`, `proves nothing`, or `refused` by the reference."""
        found = self.verification
        if found is None:
            return "refused"
        if found.outcome is not Outcome.ACCEPTED or not self._exact_enough(found):
            return "fails"
        return "proves nothing" if UNSOUND_FLAGS & set(found.task_flags) else "holds"

    @property
    def reason(self) -> str:
        """In one word why it fails, proves nothing or is refused; "" where it holds."""
        found = self.verification
        if found is None or self.verdict == "holds":
            return ""
        if self.verdict == "fails":
            return str(found.outcome) if found.outcome is not Outcome.ACCEPTED else f"class {found.precision_class}"
        return next(flag for flag in found.task_flags if flag in UNSOUND_FLAGS)

    @property
    def detail(self) -> str:
        """One line about what was wrong."""
        return self.refusal if self.verification is None else self.verification.detail

    def _exact_enough(self, found: Verification) -> bool:
        made = found.correctness
        if made is None or made.precision_class is None:
            return False
        return exactness.at_least_as_exact(
            made.precision_class, exactness.least_exact(self.precision, made.task_class)
        ) and not any(finding.severity == "reject" for finding in found.findings)

    def fields(self) -> dict[str, Any]:
        """For JSON."""
        found = self.verification
        return {
            "size": self.size,
            "verdict": self.verdict,
            "outcome": str(found.outcome) if found else None,
            "precision_class": found.precision_class if found else None,
            "reason": self.reason,
            "detail": self.detail,
            "task_flags": list(found.task_flags) if found else [],
        }


@dataclass(frozen=True)
class ShapeReport:
    """One candidate at every size that was tried."""

    own: dict[str, int]
    """The task's own sizes."""
    results: tuple[SizeResult, ...]

    @property
    def holds(self) -> bool:
        """Whether it fails nowhere and is shown to hold somewhere besides the task's own size."""
        verdicts = {result.verdict for result in self.results}
        return "fails" not in verdicts and "holds" in verdicts

    @property
    def statement(self) -> str:
        """One line: for which sizes it holds and for which not, only of those that were tried."""
        return statement(self.results, self.own)


def statement(results: Sequence[SizeResult], own: dict[str, int]) -> str:
    """Where it was seen to hold and where not, in one line that names every size tried and claims no other.

    `own`: the task's own values, at which the candidate is known to be right.
    """
    by_verdict = {
        verdict: [result for result in results if result.verdict == verdict]
        for verdict in ("holds", "fails", "proves nothing", "refused")
    }
    named = list(dict.fromkeys(name for result in results for name in result.size))
    parts = [_ranges(by_verdict["holds"], by_verdict["fails"], {name: own[name] for name in named})]
    for verdict, words in (("fails", "fails at"), ("proves nothing", "proves nothing at")):
        if found := by_verdict[verdict]:
            parts.append(f"{words} {_grouped(found)}")
    if found := by_verdict["refused"]:
        parts.append(f"the reference itself refuses {_grouped(found)}")
    return "; ".join(parts)


def _ranges(holding: Sequence[SizeResult], failing: Sequence[SizeResult], own: dict[str, int]) -> str:
    axes = []
    for name, value in own.items():
        good = sorted({value} | {result.size[name] for result in holding if list(result.size) == [name]})
        bad = [result.size[name] for result in failing if list(result.size) == [name]]
        called = f"the {name}s as" if name.isdigit() else name  # a literal, which has no name
        axes.append(f"{called} {', '.join(map(str, good))}{_multiple(good, bad)}")
    together = [result.label for result in holding if len(result.size) > 1]
    said = "holds for " + "; ".join(axes)
    alone = " (one changed at a time)" if len(own) > 1 else ""
    return said + alone + (f"; together: {'; '.join(together)}" if together else "")


def _multiple(good: Sequence[int], bad: Sequence[int]) -> str:
    """What tells the values where it holds from those where it fails, if one common factor does."""
    factor = math.gcd(*good)
    if len(good) < 2 or not bad or factor < 2 or any(value % factor == 0 for value in bad):
        return ""
    return f" (multiples of {factor}, of which it fails at none)"


def _grouped(results: Sequence[SizeResult]) -> str:
    """`dim=1, 7 (WRONG_VALUES), 513 (CRASHED)`."""
    texts = []
    for reason in dict.fromkeys(result.reason for result in results):
        same = [result for result in results if result.reason == reason]
        alone: dict[str, list[int]] = {}
        for result in same:
            if len(result.size) == 1:
                ((name, value),) = result.size.items()
                alone.setdefault(name, []).append(value)
        told = [f"{name}={', '.join(map(str, sorted(values)))}" for name, values in alone.items()]
        told += [result.label.replace(", ", " with ") for result in same if len(result.size) > 1]
        texts.append("; ".join(told) + (f" ({reason})" if reason else ""))
    return "; ".join(texts)
