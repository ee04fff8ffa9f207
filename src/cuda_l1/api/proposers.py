"""Who may propose, by the names that `--proposer` takes. A new proposer is one function and one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cuda_l1.config import SearchSettings
from cuda_l1.errors import UsageError
from cuda_l1.proposers import Proposer
from cuda_l1.types import Environment, Reply

if TYPE_CHECKING:
    from cuda_l1.archive import Archive


@dataclass(frozen=True)
class Sources:
    """What a proposer may be given of a search."""

    archive: Archive
    run: str
    environment: Environment
    roofline_us: float | None = None
    on_reply: Callable[[Reply], None] = lambda reply: None
    """Hears of each reply of a language model."""


def _techniques(chosen: str | None, settings: SearchSettings, sources: Sources | None) -> Proposer:
    from cuda_l1.proposers.techniques import REGISTRY
    from cuda_l1.proposers.techniques.proposer import TechniqueProposer

    names = None if chosen is None else [name for name in chosen.split("+") if name]
    if names == []:
        raise UsageError(f"--proposer techniques:{chosen} names no technique; known are {', '.join(REGISTRY)}")
    return TechniqueProposer(settings.device, settings.precision, names, settings.clock)


def _llm(chosen: str | None, settings: SearchSettings, sources: Sources | None) -> Proposer | None:
    from cuda_l1.api.llm import check_llm, llm_proposer

    if chosen:
        raise UsageError(f"--proposer llm:{chosen}: models are named with --model NAME")
    if settings.llm is None:
        raise UsageError("--proposer llm: name a model, e.g. --model NAME, as its endpoint calls it")
    if sources is None:
        check_llm(settings.llm)
        return None
    return llm_proposer(
        settings.llm,
        settings,
        archive=sources.archive,
        run=sources.run,
        environment=sources.environment,
        roofline_us=sources.roofline_us,
        on_reply=sources.on_reply,
    )


def _policy(chosen: str | None, settings: SearchSettings, sources: Sources | None) -> Proposer | None:
    from cuda_l1.api.policy import check_policy, policy_proposer

    if settings.policy is None:
        raise UsageError("--proposer policy: name a checkpoint, policy:FOLDER, in `optimize` or `bench --optimize`")
    if sources is None:
        check_policy(settings.policy, settings)
        return None
    return policy_proposer(
        settings.policy,
        settings,
        archive=sources.archive,
        run=sources.run,
        environment=sources.environment,
        roofline_us=sources.roofline_us,
        on_reply=sources.on_reply,
    )


PROPOSERS: dict[str, Callable[[str | None, SearchSettings, Sources | None], Proposer | None]] = {
    "techniques": _techniques,
    "llm": _llm,
    "policy": _policy,
}
"""Name -> what makes it of the text behind the name's colon (None: no colon), or without sources checks that it could
be made."""


def check_proposers(settings: SearchSettings) -> None:
    """Whether the proposers of `settings` can be made, before anything else begins.

    Raises UsageError that names the known ones, and what their own checks raise: EndpointError, say.
    """
    _made(settings, None)


def make_proposers(settings: SearchSettings, sources: Sources) -> list[Proposer]:
    """The proposers of `settings`: `techniques`, or `techniques:NAME+NAME` for some of them; `llm`;
    `policy:FOLDER`.

    Raises UsageError that names the known ones.
    """
    return [proposer for proposer in _made(settings, sources) if proposer is not None]


def _made(settings: SearchSettings, sources: Sources | None) -> list[Proposer | None]:
    if not settings.proposers:
        raise UsageError(f"no proposer is named; known are {', '.join(PROPOSERS)}")
    return [make_proposer(text, settings, sources) for text in settings.proposers]


def make_proposer(text: str, settings: SearchSettings, sources: Sources | None = None) -> Proposer | None:
    """The proposer that `text` names, see `make_proposers`; None where it needs sources and has none."""
    name, colon, chosen = text.partition(":")
    if name not in PROPOSERS:
        raise UsageError(f"unknown proposer `{name}`; known are {', '.join(PROPOSERS)}")
    return PROPOSERS[name](chosen if colon else None, settings, sources)
