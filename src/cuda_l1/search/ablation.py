"""Taking a candidate apart: every subset of its techniques, built and judged."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from cuda_l1.errors import CudaL1Error, InfrastructureError, UsageError
from cuda_l1.types import Candidate, Record

MOST_TECHNIQUES = 6
"""63 subsets."""


@dataclass(frozen=True)
class Variant:
    """One subset of the techniques."""

    techniques: tuple[str, ...]
    """In the order of the whole list."""
    record: Record | None
    """Its verdict; None where it cannot be built."""
    why_not: str = ""
    """Why it cannot be built."""


def ablate(
    techniques: Sequence[str],
    *,
    build: Callable[[Sequence[str]], Candidate | None],
    judge: Callable[[Candidate], Record],
    on_variant: Callable[[Variant], None] = lambda variant: None,
) -> list[Variant]:
    """Every subset but the empty one, which is eager; small ones first.

    `build` composes techniques into a candidate and leaves out what finds nothing to do; `judge` is `search.verdict`
    with all but the candidate given, so that what the archive knows is not paid for twice. `on_variant` hears of each
    as soon as it is known.

    Raises UsageError for more than `MOST_TECHNIQUES`, and what `judge` raises.
    """
    unique = list(dict.fromkeys(techniques))
    if len(unique) > MOST_TECHNIQUES:
        raise UsageError(
            f"{len(unique)} techniques have {2 ** len(unique) - 1} subsets; name at most {MOST_TECHNIQUES} of "
            f"{', '.join(unique)}"
        )
    variants = []
    for subset in _subsets(unique):
        variant = _variant(subset, build, judge)
        on_variant(variant)
        variants.append(variant)
    return variants


def _subsets(techniques: Sequence[str]) -> Iterator[tuple[str, ...]]:
    sizes = range(1, len(techniques) + 1)
    return itertools.chain.from_iterable(itertools.combinations(techniques, size) for size in sizes)


def _variant(
    subset: tuple[str, ...], build: Callable[[Sequence[str]], Candidate | None], judge: Callable[[Candidate], Record]
) -> Variant:
    try:
        candidate = build(subset)
    except InfrastructureError:
        raise
    except CudaL1Error as error:
        return Variant(subset, None, " ".join(str(error).split()))
    applied = candidate.origins[0].techniques if candidate else ()
    if candidate is None or (idle := [name for name in subset if name not in applied]):
        without = idle if candidate else list(subset)
        return Variant(subset, None, f"{' and '.join(without)} would change nothing here, or is not for this device")
    return Variant(subset, judge(candidate))
