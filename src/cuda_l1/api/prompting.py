"""Prompts of a task on a device: what a search asks with, and what `cuda-l1 prompt` shows from the archive."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cuda_l1.api.device_facts import device_facts
from cuda_l1.archive import Archive
from cuda_l1.config import EvaluatorSettings, PromptSettings, SamplerSettings
from cuda_l1.errors import UsageError
from cuda_l1.prompts.facts import FailedAttempt
from cuda_l1.prompts.prompting import Prompting
from cuda_l1.prompts.templates import load_template
from cuda_l1.prompts.tokens import ESTIMATE, TokenCounter
from cuda_l1.texts import many
from cuda_l1.types import Clock, HackCase, Prompt, Record, Task

FASTEST = SamplerSettings(kind="top", count=1)
FAILED = 32
"""Failed attempts among which those are looked for that failed in different ways."""


class Shown(NamedTuple):
    """A prompt, and what a person should hear of beside it."""

    prompt: Prompt
    notes: tuple[str, ...] = ()


def make_prompting(
    settings: PromptSettings,
    *,
    archive: Archive,
    device: str,
    roofline_us: float | None = None,
    clock: Clock | None = None,
    place: str | None = None,
    counter: TokenCounter = ESTIMATE,
) -> Prompting:
    """The questions of a search on `device`, with the attacks that the archive knows, and with what it remembers of the
    place whose environment has the key `place`; None: a search tells what it remembers.

    Raises UsageError for a template of one's own that is none, and what `device_facts` raises.
    """

    def cases(text: str) -> Sequence[HackCase]:
        return [similar.case for similar in archive.hacks.similar(text)]

    return Prompting(
        settings=settings,
        facts=device_facts(device),
        roofline_us=roofline_us,
        clock=clock,
        recall=functools.partial(remembered, archive=archive, place=place) if place else None,
        cases=cases,
        template=load_template(Path(settings.template)) if settings.template else None,
        counter=counter,
    )


def remembered(task: Task, *, archive: Archive, place: str) -> list[Record]:
    """What a question says of earlier attempts at a task in one place, whichever search made them, oldest first: the
    latest that failed, the fastest variant, and the latest that was accepted, which tells what a call asks for.

    Few of many records are read, since this is done for every question. Raises ArchiveError.
    """
    fastest = archive.exemplars.draw(task.sha, FASTEST, seed=0, environment_key=place)
    found = [archive.find(each.candidate_id, place, name) for each in fastest for name in ("screen", "final")]
    found += archive.latest(task.sha, place, accepted=True, limit=1)
    found += archive.latest(task.sha, place, accepted=False, limit=FAILED)
    unique = {record.id: record for record in found if record is not None}
    return sorted(unique.values(), key=lambda record: (record.time, record.run, record.sequence))


def show_prompt(
    task: Task,
    settings: PromptSettings,
    sampler: SamplerSettings,
    *,
    archive: Archive,
    device: str,
    seed: int = 0,
    repair: bool = False,
    counter: TokenCounter = ESTIMATE,
) -> Shown:
    """What a search would ask a model next about `task` in this place.

    `repair`: the question to put right the latest failed attempt. Opens an evaluator, which knows the place, and on a
    GPU measures the roofline. Raises UsageError and InfrastructureError.
    """
    from cuda_l1.api.roofline import roofline_us
    from cuda_l1.evaluator import Evaluator

    with Evaluator(EvaluatorSettings(device=device)) as evaluator:
        place = evaluator.environment
        least_us = roofline_us(task, None, evaluator) if settings.roofline else None
    prompting = make_prompting(
        settings, archive=archive, device=device, roofline_us=least_us, place=place.key, counter=counter
    )
    if repair:
        latest = archive.latest(task.sha, place.key, accepted=False, limit=FAILED)
        failed = [record for record in latest if not record.candidate.is_baseline]
        if not failed:
            raise UsageError(f"--kind repair: the archive holds no failed attempt at {task.name} from this device")
        return Shown(prompting.repair(task, FailedAttempt.of(failed[-1])))
    exemplars = archive.exemplars.draw(task.sha, sampler, seed=seed, environment_key=place.key)
    prompt = prompting.render(task, exemplars, [])
    return Shown(prompt, (*_elsewhere(task, archive, place.key), *_uncounted(task, settings, archive, place.key)))


def _elsewhere(task: Task, archive: Archive, key: str) -> tuple[str, ...]:
    """A line where other places, or other rules, hold variants of the task: scores that cannot be compared."""
    others = archive.exemplars.elsewhere(task.sha, key)
    return tuple(
        f"not shown: {many(each.variants, 'variant')} measured elsewhere or under other rules ({each.device_name})"
        for each in others
    )


def _uncounted(task: Task, settings: PromptSettings, archive: Archive, key: str) -> list[str]:
    """A line where the profile has no hardware counters although somebody asked for them."""
    fastest = archive.exemplars.draw(task.sha, FASTEST, seed=0, environment_key=key) if settings.profile else []
    found = [archive.find(each.candidate_id, key, "screen") for each in fastest]
    asked = [record.evaluation.counters for record in found if record is not None]
    return [f"no hardware counters of the best variant: {each.missing}" for each in asked if each and each.missing]
