"""The proposer `policy`: from a command line to its settings, and from its settings to a proposer that is joined up."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from cuda_l1.api.inline import parse_inline
from cuda_l1.api.places import resolve_device
from cuda_l1.api.prompting import make_prompting
from cuda_l1.archive import Archive
from cuda_l1.config import GenerationSettings, PolicySettings, PromptSettings, SamplerSettings, SearchSettings
from cuda_l1.errors import UsageError
from cuda_l1.prompts.templates import load_template
from cuda_l1.proposers.policy.checkpoint import read_checkpoint
from cuda_l1.proposers.policy.policy import Policy, require_transformers
from cuda_l1.proposers.policy.proposer import PolicyProposer
from cuda_l1.types import Environment, Exemplar, Reply, Task

NAME = "policy"


class PolicyOptions(NamedTuple):
    """The options of a command that say what the proposer `policy` is made of, as typed."""

    generation: str | None = None
    sampler: str | None = None
    prompt: str | None = None
    seed: int = 0


def parse_policy(options: PolicyOptions, proposers: Sequence[str]) -> PolicySettings | None:
    """The settings of the one `policy:FOLDER` among `proposers`, else None; what is not given is as the checkpoint was
    trained.

    Raises UsageError for a checkpoint that is none, too.
    """
    named = [text.partition(":")[2] for text in proposers if text.partition(":")[0] == NAME]
    if not named:
        if options.generation:
            raise UsageError(f"--generation {options.generation}: only --proposer policy:FOLDER generates; add it")
        for name, value in (("--sampler", options.sampler), ("--prompt", options.prompt)):
            if value is not None and "llm" not in proposers:
                raise UsageError(f"{name} {value}: only --proposer llm and policy:FOLDER are shown a prompt; add one")
        return None
    if len(named) > 1 or not named[0]:
        raise UsageError("--proposer policy: name one checkpoint, policy:FOLDER")
    checkpoint = read_checkpoint(named[0])
    form = checkpoint.format
    sampled = form.model_dump(include={"temperature", "top_p"}, exclude_none=True)
    return PolicySettings(
        checkpoint=str(checkpoint.path),
        sha=checkpoint.sha,
        prompt=parse_inline("--prompt", options.prompt or "", PromptSettings, "kind", given=form.prompt.model_dump()),
        sampler=parse_inline(
            "--sampler", options.sampler or "", SamplerSettings, "kind", given=form.sampler.model_dump()
        ),
        generation=parse_inline(
            "--generation",
            options.generation or "",
            GenerationSettings,
            None,
            given={"seed": options.seed, **sampled},
            hidden=["seed"],
        ),
    )


def check_policy(policy: PolicySettings, settings: SearchSettings) -> None:
    """Whether it could be asked, before anything is measured or loaded. Raises UsageError, InfrastructureError."""
    require_transformers()
    if policy.prompt.template:
        load_template(Path(policy.prompt.template))
    place_of(policy, settings)


def place_of(policy: PolicySettings, settings: SearchSettings) -> str:
    """The device on which it writes. Raises InfrastructureError for one that is not there."""
    device = policy.generation.device
    return settings.device if device == "auto" else resolve_device(device)


def is_alone(device: str, judged_on: str) -> bool:
    """Whether nothing is measured where the policy writes: on another GPU. A CPU has a hand in every measurement."""
    return device.startswith("cuda:") and judged_on.startswith("cuda:") and device != judged_on


def policy_proposer(
    policy: PolicySettings,
    settings: SearchSettings,
    *,
    archive: Archive,
    run: str,
    environment: Environment,
    roofline_us: float | None,
    on_reply: Callable[[Reply], None],
) -> PolicyProposer:
    """The proposer of a run, with exemplars and known replies from the archive; the checkpoint is loaded here, once for
    all searches. Raises UsageError, InfrastructureError."""
    device = place_of(policy, settings)
    writer = _loaded(policy, device)

    def draw(task: Task, seed: int) -> Sequence[Exemplar]:
        return archive.exemplars.draw(task.sha, policy.sampler, seed=seed, environment_key=environment.key)

    prompting = make_prompting(
        _fitting(policy.prompt, writer.prompt_tokens),
        archive=archive,
        device=settings.device,
        roofline_us=roofline_us,
        clock=settings.clock,
        place=environment.key,
        counter=writer.counter,
    )
    return PolicyProposer(
        writer,
        read_checkpoint(policy.checkpoint).name,
        run=run,
        environment_key=environment.key,
        # It has not learnt from prompts with attacks, and was never rewarded for a reply that it did not end.
        prompts=dataclasses.replace(prompting, cases=lambda text: (), must_end=True),
        draw=draw,
        replies=archive.replies,
        is_alone=is_alone(device, settings.device),
        on_reply=on_reply,
    )


@functools.lru_cache(maxsize=1)
def _loaded(policy: PolicySettings, device: str) -> Policy:
    """Searches of a suite come one after the other and ask the same."""
    checkpoint = read_checkpoint(policy.checkpoint)
    if checkpoint.sha != policy.sha:
        raise UsageError(f"checkpoint {policy.checkpoint}: its files have changed since the command began")
    return Policy.load(checkpoint, policy.generation, device)


def _fitting(prompt: PromptSettings, most: int | None) -> PromptSettings:
    """Prompts that leave room for a reply in the model's context."""
    return prompt.model_copy(update={"max_tokens": min(filter(None, (prompt.max_tokens, most)), default=None)})
