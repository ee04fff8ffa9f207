"""What trials show, and the exception that ends them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Evidence:
    """What the trials showed. `failure` ends the verdict."""

    trials: list[dict[str, Any]] = field(default_factory=list)
    precision_class: str | None = None
    failure: dict[str, str] | None = None
    at_odd_bytes: bool = False
    """It failed where inputs start between the places at which a vector load may begin, and nowhere before."""
    findings: list[dict[str, str]] = field(default_factory=list)
    allclose_kernelbench: bool | None = None
    allclose_release: bool | None = None


class Wrong(Exception):
    """An answer that no class allows."""

    def __init__(self, outcome: str, detail: str) -> None:
        super().__init__(detail)
        self.outcome, self.detail = outcome, detail

    def as_json(self) -> dict[str, str]:
        return {"outcome": self.outcome, "detail": self.detail, "stage": "checking"}
