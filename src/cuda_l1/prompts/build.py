"""From a task and what is known about it to what a language model is asked.

Texts of tasks, candidates and compilers are by unknown authors. They stand between lines that carry a word which none
of them contains, so that no text can end its quotation; the system message says that nothing in there is an order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cuda_l1.config import PromptSettings
from cuda_l1.errors import UsageError
from cuda_l1.prompts.continuation import continuation
from cuda_l1.prompts.facts import DeviceFacts, FailedAttempt, Roofline
from cuda_l1.prompts.shortening import shortened_lines
from cuda_l1.prompts.templates import PromptTemplate, built_in_template
from cuda_l1.prompts.tokens import ESTIMATE, TokenCounter
from cuda_l1.types import Exemplar, HackCase, Prompt, Task, digest

MESSAGE_TOKENS = 1500
"""Of what a compiler said, of a profile, and of a known attack."""
FENCE_LETTERS = 12


def render(
    task: Task,
    *,
    exemplars: Sequence[Exemplar] = (),
    failures: Sequence[FailedAttempt] = (),
    facts: DeviceFacts | None = None,
    roofline: Roofline | None = None,
    profile: str | None = None,
    cases: Sequence[HackCase] = (),
    settings: PromptSettings | None = None,
    template: PromptTemplate | None = None,
    counter: TokenCounter = ESTIMATE,
) -> Prompt:
    """The question for a faster version of `task`; equal arguments give equal text.

    Parts that `settings` switches off are left out whatever is handed in, and so are those that are None. `template`
    takes the place of the built-in one of `settings.kind`. A prompt of more than `settings.max_tokens` loses what it
    can do without, a piece at a time: failures, of which `failures` has the latest first, from the oldest on; the
    profile; cases and then exemplars, the last first. Raises UsageError: a template that fails, or a prompt that is too
    long even without all of these.
    """
    chosen = settings or PromptSettings()
    shown = list(exemplars) if chosen.kind != "one-shot" or template else []
    values = {
        **_common(task, facts, chosen),
        "roofline": roofline if chosen.roofline else None,
        "profile": _message(profile, counter) if chosen.profile and profile else None,
        "failures": [_failure(each, chosen, counter) for each in failures[: chosen.failures]],
        "cases": [_case(each, counter) for each in cases],
    }
    used = template or built_in_template(chosen.kind)
    while True:
        prompt = _prompt(used, {**values, **_exemplars(shown, chosen, counter, task.source)}, shown)
        size = prompt_tokens(prompt, counter)
        if chosen.max_tokens is None or size <= chosen.max_tokens:
            return prompt
        if not _loses_a_piece(values, shown):
            without = f"{size} tokens ({counter.name}) without failed attempts and exemplars"
            raise UsageError(f"the prompt has {without}, more than max_tokens = {chosen.max_tokens}")


def _loses_a_piece(values: dict[str, Any], shown: list[Exemplar]) -> bool:
    """Takes out what a prompt can best do without; False where nothing is left. Exemplars are what it learns from."""
    if values["failures"]:
        values["failures"].pop()
    elif values["profile"]:
        values["profile"] = None
    elif values["cases"]:
        values["cases"].pop()
    elif shown:
        shown.pop()
    else:
        return False
    return True


def render_repair(
    task: Task,
    attempt: FailedAttempt,
    *,
    facts: DeviceFacts | None = None,
    settings: PromptSettings | None = None,
    counter: TokenCounter = ESTIMATE,
) -> Prompt:
    """The question to put right an attempt that failed, by what the compiler, a check or the parser said of it.

    It stands alone: the conversation before it need not be sent again. Raises UsageError: it has more than
    `settings.max_tokens`.
    """
    chosen = settings or PromptSettings()
    values = {
        **_common(task, facts, chosen),
        **_exemplars([], chosen, counter, task.source),
        "roofline": None,
        "profile": None,
        "cases": [],
        "failures": [_failure(attempt, chosen, counter)],
    }
    prompt = _prompt(built_in_template("repair"), values, [])
    size = prompt_tokens(prompt, counter)
    if chosen.max_tokens is not None and size > chosen.max_tokens:
        raise UsageError(
            f"the repair prompt has {size} tokens ({counter.name}), more than max_tokens = {chosen.max_tokens}"
        )
    return prompt


def prompt_tokens(prompt: Prompt, counter: TokenCounter = ESTIMATE) -> int:
    """Tokens of both messages, without the few that a model's chat template adds."""
    return counter.count(prompt.system) + counter.count(prompt.user)


def _common(task: Task, facts: DeviceFacts | None, settings: PromptSettings) -> dict[str, Any]:
    device = facts.device if facts else None
    by_device = {"cuda": "cuda or triton", "cpu": "cpp", None: "any"}[device]
    return {
        "task": task.source,
        "language": by_device if settings.language == "auto" else settings.language,
        "device": device,
        "facts": facts if settings.device_facts else None,
        "analysis": settings.analysis,
    }


def _exemplars(
    exemplars: Sequence[Exemplar], settings: PromptSettings, counter: TokenCounter, reference: str
) -> dict[str, Any]:
    """In a compact prompt a variant is what follows the reference in its file, as an answer to it would be."""
    shown = [
        {
            "number": number,
            "language": each.language,
            "score": each.score,
            "source": shortened_lines(
                continuation(reference, each.source) if settings.kind == "compact" else each.source,
                settings.exemplar_tokens,
                counter,
            ),
        }
        for number, each in enumerate(exemplars, start=1)
    ]
    return {"exemplars": shown, "scores": any(each.score is not None for each in exemplars)}


def _failure(attempt: FailedAttempt, settings: PromptSettings, counter: TokenCounter) -> dict[str, Any]:
    said = "\n".join(filter(None, (attempt.detail.strip(), attempt.log.strip())))
    return {
        "outcome": attempt.outcome,
        "language": attempt.language,
        "said": _message(said, counter) or "nothing",
        "source": shortened_lines(attempt.source, settings.exemplar_tokens, counter),
    }


def _case(case: HackCase, counter: TokenCounter) -> str:
    return f"{case.name}: {case.why}\n\n{_message(case.source, counter)}"


def _message(text: str, counter: TokenCounter) -> str:
    return shortened_lines(text, MESSAGE_TOKENS, counter)


def _prompt(template: PromptTemplate, values: dict[str, Any], exemplars: Sequence[Exemplar]) -> Prompt:
    fence = _fence(values, template.fence)
    system, user = template.render({**values, "data": _quoting(fence), "fence": fence})
    return Prompt(
        system=system, user=user, template=template.version, exemplars=tuple(each.candidate_id for each in exemplars)
    )


def _quoting(fence: str) -> Callable[[str, str], str]:
    def data(name: str, text: str) -> str:
        return f"BEGIN {fence} {name}\n{text.strip(chr(10))}\nEND {fence} {name}"

    return data


def _fence(values: dict[str, Any], first: str | None) -> str:
    """A word that no value contains, the same for the same values, so that a prompt asked before is known again;
    `first` where none contains that."""
    everything = str(values)
    word = first or digest(everything)[:FENCE_LETTERS]
    while word in everything:
        word = digest(word)[:FENCE_LETTERS]
    return word
