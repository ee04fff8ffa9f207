"""What a check of values found, in words for whoever wrote them: pydantic's own speak of Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

_NUMBER = "must be a number"
_WHOLE = "must be a whole number"
_TRUTH = "must be true or false"
_TEXT = "must be a text"
_LIST = "must be a list"
_GROUP = "must be a group of named values"
_WORDS: dict[str, str | Callable[[Mapping[str, Any]], str]] = {
    "missing": "is missing",
    "extra_forbidden": "is not known",
    "greater_than": lambda bound: f"must be more than {bound['gt']}",
    "greater_than_equal": lambda bound: f"must be at least {bound['ge']}",
    "less_than": lambda bound: f"must be less than {bound['lt']}",
    "less_than_equal": lambda bound: f"must be at most {bound['le']}",
    "literal_error": lambda choice: f"must be {choice['expected']}",
    "finite_number": "must be a finite number",
    "int_type": _WHOLE,
    "int_from_float": _WHOLE,
    "int_parsing": _WHOLE,
    "int_parsing_size": "is too large a number",
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "bool_type": _TRUTH,
    "bool_parsing": _TRUTH,
    "string_type": _TEXT,
    "string_too_short": "must not be empty",
    "string_pattern_mismatch": "must be a text, and not an empty one",
    "string_unicode": "must be a text in UTF-8",
    "tuple_type": _LIST,
    "list_type": _LIST,
    "too_short": "must not be empty",
    "dict_type": _GROUP,
    "model_type": _GROUP,
    "model_attributes_type": _GROUP,
    "value_error": lambda raised: str(raised["error"]),
    "json_invalid": lambda fault: f"is no JSON ({fault['error']})",
}


def plain(problem: Mapping[str, Any]) -> str:
    """One of `ValidationError.errors()` in a few words that follow the name of the value, e.g. `must be at least 1`."""
    words = _WORDS.get(problem["type"])
    if words is None:
        return str(problem["msg"]).replace("Input should be", "must be")
    return words if isinstance(words, str) else words(problem.get("ctx", {}))


def first_problem(error: ValidationError, whole: str = "") -> str:
    """The first problem with its place, e.g. `sampler.kind: must be 'top'`. One that is about no part has none, or is
    said of `whole`."""
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"])) or whole
    return f"{place}: {plain(first)}" if place else plain(first)
