"""The proposer `llm`: from a command line to its settings, and from its settings to a proposer that is joined up."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from cuda_l1.api.inline import parse_inline
from cuda_l1.api.models import advice, key_of, named_models, unkeyed
from cuda_l1.api.prompting import make_prompting
from cuda_l1.archive import Archive
from cuda_l1.config import LlmSettings, ModelSettings, PolicySettings, PromptSettings, SamplerSettings, SearchSettings
from cuda_l1.endpoint import Background, Chat, place_of
from cuda_l1.errors import EndpointError, UsageError
from cuda_l1.prompts.templates import load_template
from cuda_l1.proposers.interfaces import Replies
from cuda_l1.proposers.llm.prices import default_prices, load_prices, price_of
from cuda_l1.proposers.llm.proposer import LlmProposer
from cuda_l1.proposers.llm.purse import Purse
from cuda_l1.types import Environment, Exemplar, Reply, Task

PATIENCE = 20
"""Evaluations without a gain before a search with language models ends: many of their candidates do not build."""
CHECK_S = 15.0


class LlmOptions(NamedTuple):
    """The options of a command that say what the proposer `llm` is made of, as typed."""

    models: Sequence[str] = ()
    base_url: str | None = None
    key_file: str | None = None
    max_usd: float | None = None
    max_tokens: int | None = None
    prices: str | None = None
    sampler: str | None = None
    """None: bucket."""
    prompt: str | None = None
    """None: contrastive."""
    repair: bool = True
    seed: int = 0


def parse_llm(options: LlmOptions, proposers: Sequence[str]) -> LlmSettings | None:
    """The settings of `llm` where it is among `proposers`, else None. Raises UsageError."""
    if "llm" not in proposers:
        given = _only_for_models(options)
        if given and not any(text.startswith("llm:") for text in proposers):  # of that one more is to be said
            raise UsageError(f"{given[0]}: only --proposer llm asks a model; add it")
        return None
    if not options.models:
        raise UsageError("--proposer llm: name a model, e.g. --model NAME, as its endpoint calls it")
    for limit, value in (("--max-usd", options.max_usd), ("--max-tokens", options.max_tokens)):
        if value is not None and not value > 0:
            raise UsageError(f"{limit} {value}: nothing fits into it; give more")
        if value == math.inf:
            raise UsageError(f"{limit} inf: is no limit; leave it out")
    return LlmSettings(
        models=named_models(options.models, options.base_url, options.key_file),
        prompt=parse_inline("--prompt", options.prompt or "", PromptSettings, "kind"),
        sampler=parse_inline("--sampler", options.sampler or "", SamplerSettings, "kind"),
        repair=options.repair,
        max_usd=options.max_usd,
        max_tokens=options.max_tokens,
        prices=options.prices,
        seed=options.seed,
    )


def _only_for_models(options: LlmOptions) -> list[str]:
    """The options that were given and mean nothing without a model to ask, as they were typed."""
    values = {
        "--model": options.models[0] if options.models else None,
        "--base-url": options.base_url,
        "--key-file": options.key_file,
        "--max-usd": options.max_usd,
        "--max-tokens": options.max_tokens,
        "--prices": options.prices,
    }
    given = [f"{name} {value}" for name, value in values.items() if value is not None]
    return given if options.repair else [*given, "--no-repair"]


def patience(settings: LlmSettings | PolicySettings | None) -> int:
    """Evaluations without a gain before a search ends; `settings` are those of a model that proposes."""
    own: int = SearchSettings.model_fields["patience"].default
    return own if settings is None else PATIENCE


def check_llm(settings: LlmSettings) -> None:
    """Looks whether each endpoint is there and takes the key, before anything else begins.

    Whether it serves the model shows with the first question: not every endpoint lists all that it serves. Raises
    UsageError: no key where one is wanted, no prices, no template, a refused key; EndpointError: nobody answers.
    """
    load_prices(settings.prices)
    if settings.prompt.template:
        load_template(Path(settings.prompt.template))
    asked = {(model.url, key_of(model)): model for model in settings.models}
    for (_, key), model in asked.items():
        try:
            with Background() as background:  # a notebook's thread has an event loop of its own
                background.submit(_listed(model, key)).result()
        except EndpointError as error:
            if error.kind in ("unreachable", "refused"):
                line = f"{place_of(model.url)}: {error}{advice(model, key) if error.kind == 'refused' else ''}"
                raise as_exit(EndpointError(line, kind=error.kind)) from None


async def _listed(model: ModelSettings, key: str) -> None:
    chat = Chat(model.url, model.name, key=key, timeout_s=min(model.timeout_s, CHECK_S), retries=1)
    try:
        await chat.models()
    finally:
        await chat.close()


def as_exit(error: EndpointError | UsageError) -> UsageError | EndpointError:
    """What a command ends with: a wrong key or name is the person's to put right."""
    if isinstance(error, UsageError):
        return error
    return UsageError(str(error)) if error.kind in ("refused", "unknown") else error


def notes(settings: LlmSettings) -> list[str]:
    """What a person should hear of before anything is asked, a line each."""
    return [line for line in (unkeyed(settings), _unpriced(settings)) if line is not None]


def _unpriced(settings: LlmSettings) -> str | None:
    """A line where `max_usd` cannot be held, since a price is unknown."""
    if settings.max_usd is None:
        return None
    prices = load_prices(settings.prices)
    unknown = [m.name for m in settings.models if price_of(prices, m.name, place_of(m.url)) is None]
    if not unknown:
        return None
    where = settings.prices or default_prices()
    return f"--max-usd {settings.max_usd:g} is off for {', '.join(unknown)}: {where} has no price for it"


def llm_proposer(
    llm: LlmSettings,
    settings: SearchSettings,
    *,
    archive: Archive,
    run: str,
    environment: Environment,
    roofline_us: float | None,
    on_reply: Callable[[Reply], None],
    purse: Purse | None = None,
    replies: Replies | None = None,
    attempts: int | None = None,
    remembers: bool = True,
) -> LlmProposer:
    """The proposer of a run, with exemplars and known replies from the archive, or those of `replies`. `purse` and
    `attempts` as `LlmProposer` takes them. Not to `remember`: its questions know of its own attempts alone. Raises
    UsageError."""

    def draw(task: Task, seed: int) -> Sequence[Exemplar]:
        return archive.exemplars.draw(task.sha, llm.sampler, seed=seed, environment_key=environment.key)

    return LlmProposer(
        llm,
        run=run,
        environment_key=environment.key,
        prompts=make_prompting(
            llm.prompt,
            archive=archive,
            device=settings.device,
            roofline_us=roofline_us,
            clock=settings.clock,
            place=environment.key if remembers else None,
        ),
        draw=draw,
        replies=replies or archive.replies,
        prices=load_prices(llm.prices),
        on_reply=on_reply,
        purse=purse,
        attempts=attempts,
    )
