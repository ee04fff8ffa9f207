"""`--limits` and `--final-budget`: how long and how large an evaluation may become."""

from __future__ import annotations

import contextlib

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from cuda_l1.api.budget import parse_budget
from cuda_l1.config import Limits
from cuda_l1.errors import UsageError
from cuda_l1.validation import plain


def parse_limits(text: str | None) -> Limits:
    """`verdict_s=600,memory_bytes=34359738368`; the others keep their defaults.

    Raises UsageError, which names the known limits, for an unknown one and for what is not a positive number.
    """
    values: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in (text or "").split(","))):
        name, _, value = (word.strip() for word in part.partition("="))
        if name in values:
            raise UsageError(f"--limits: `{name}` is given twice, {values[name]} and {value}; give it once")
        values[name] = value
    for name in values:
        if name not in Limits.model_fields:
            raise UsageError(f"--limits: unknown limit `{name}`; known are {', '.join(Limits.model_fields)}")
    try:
        return Limits.model_validate(values)
    except ValidationError as error:
        problem = error.errors()[0]
        name = str(problem["loc"][0])
        raise UsageError(f"--limits {name}={values[name]}: {_wanted(name, problem)}") from error


def _wanted(name: str, problem: ErrorDetails) -> str:
    if problem["type"] == "less_than_equal":
        return f"{plain(problem)}; leave it out for {Limits.model_fields[name].default:g}"
    kind = "a positive number of seconds" if name.endswith("_s") else "a positive number"
    if Limits.model_fields[name].annotation is int:
        kind = "a positive whole number"
    return f"give {kind}; known are {', '.join(Limits.model_fields)}"


def parse_final_budget(text: str) -> float:
    """`60s`, `5m`, `1h` in seconds. Raises UsageError for anything else."""
    with contextlib.suppress(UsageError):
        if seconds := parse_budget(text).seconds:
            return seconds
    raise UsageError(f"--final-budget {text}: give a time up to a year, e.g. 60s")
