"""Settings on one line: `NAME,setting=value,setting=value`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from cuda_l1.errors import UsageError
from cuda_l1.types import Frozen
from cuda_l1.validation import first_problem

M = TypeVar("M", bound=Frozen)


def parse_inline(
    option: str,
    text: str,
    kind: type[M],
    first: str | None,
    *,
    given: Mapping[str, Any] | None = None,
    hidden: Sequence[str] = (),
) -> M:
    """`text` as settings of `kind`: the part before the first comma is the field `first`, the others are named; without
    a `first` all are.

    `given` are defaults, which the text overrides; `hidden` are fields that it may not name. Raises UsageError, which
    lists what may be named.
    """
    parts = [part.strip() for part in text.split(",")]
    values: dict[str, Any] = dict(given or {})
    if first and (head := parts.pop(0)):
        values[first] = head
    known = [name for name in kind.model_fields if name != first and name not in hidden]
    named: set[str] = set()
    for part in filter(None, parts):
        name, equals, value = (word.strip() for word in part.partition("="))
        if name not in known or not equals:
            raise UsageError(f"{option} {text}: `{part}` is no setting; give NAME=VALUE with {', '.join(known)}")
        if name in named:
            raise UsageError(f"{option} {text}: `{name}` is given twice; give it once")
        named.add(name)
        values[name] = value
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise UsageError(f"{option} {text}: {first_problem(error, first or '')}") from error
