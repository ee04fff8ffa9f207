from __future__ import annotations

import os
from typing import Any


def prepare(spec: dict[str, Any]) -> None:
    pass


def enter(spec: dict[str, Any]) -> dict[str, Any]:
    return {"uid": os.getuid()}


def choose(rung: str) -> str:
    return "R0"
