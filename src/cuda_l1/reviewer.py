"""A second opinion by a language model on a speed-up that is hard to believe.

A reviewer can only suspect: its finding keeps a result out of headlines, exports and wins. It changes no outcome and
takes back no finding of the evaluator's, and where it cannot be asked the search goes on without it.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from cuda_l1.config import ReviewerSettings
from cuda_l1.endpoint import Endpoint, key_for, one_line
from cuda_l1.endpoint.keys import NO_KEY
from cuda_l1.errors import EndpointError
from cuda_l1.prompts.review import Answer, parse_review, render_review
from cuda_l1.types import Candidate, Evaluation, Finding, HackCase, Task

REVIEW = "review"
"""The check of a finding that holds an opinion: `suspect`, or a note that there is no objection."""
NO_OPINION = "no-opinion"
"""The check of a note that the reviewer was asked and gave no usable answer."""
OPINIONS = (REVIEW, NO_OPINION)

EXPLANATION_CHARACTERS = 600
LINE_CHARACTERS = 120
NAME_CHARACTERS = 80
_GIVE_KEY = "--reviewer-key-file FILE gives it one, reviewer_key_file in a recipe"


class Reviewer:
    """Asks one model; one that cannot be reached is not asked again."""

    def __init__(self, settings: ReviewerSettings) -> None:
        """Raises UsageError where the key that the settings name cannot be read."""
        self._key = key_for(settings.url, file=settings.key_file, variable=settings.key_env)
        self._endpoint = Endpoint(settings.url, settings.model, key=self._key)
        self._timeout_s = settings.timeout_s
        self._gone: EndpointError | None = None

    @property
    def name(self) -> str:
        """The model and where it is served."""
        return self._endpoint.name

    def review(
        self,
        task: Task,
        candidate: Candidate,
        evaluation: Evaluation,
        *,
        jump: str,
        cases: Sequence[HackCase],
        within_s: float | None = None,
    ) -> Finding:
        """What the model says of a candidate, as a finding: `review`, or `no-opinion` with the reason.

        `jump` says why it is asked, `cases` are known attacks like the candidate. Takes at most `within_s` and the
        settings' own limit. Never raises for what the endpoint or the model does.
        """
        fence = secrets.token_hex(6)
        question = render_review(task, candidate, evaluation, jump=jump, cases=cases, fence=fence)
        limit_s = min(self._timeout_s, within_s or self._timeout_s)
        try:
            if self._gone is not None:
                raise self._gone
            reply = self._endpoint.ask(
                question.system, question.user, form=Answer.model_json_schema(), within_s=limit_s
            )
            answer = parse_review(reply, candidate, fence=fence)
        except EndpointError as error:
            self._gone = error if error.lasting else None
            unkeyed = error.kind == "refused" and self._key == NO_KEY
            return self._no_opinion(f"{error}; {_GIVE_KEY}" if unkeyed else str(error), jump)
        except ValueError as error:
            return self._no_opinion(one_line(error, 200), jump)
        return self._opinion(answer, candidate, jump, cases)

    def _no_opinion(self, reason: str, jump: str) -> Finding:
        return Finding(
            check=NO_OPINION, severity="note", evidence=f"{self.name} has no opinion: {reason} (asked since {jump})"
        )

    def _opinion(self, answer: Answer, candidate: Candidate, jump: str, cases: Sequence[HackCase]) -> Finding:
        suspects = answer.verdict == "suspect"
        says = one_line(answer.explanation, EXPLANATION_CHARACTERS)
        parts = [f"{self.name} {'suspects' if suspects else 'has no objection'}: {says}"]
        if answer.lines:
            texts = candidate.source.split("\n")
            shown = next((text for n in answer.lines if (text := one_line(texts[n - 1], LINE_CHARACTERS))), "")
            parts.append(f"line {', '.join(map(str, answer.lines))}: `{shown}`")
        parts.append(f"cases shown: {', '.join(one_line(case.name, NAME_CHARACTERS) for case in cases) or 'none'}")
        parts.append(f"asked since {jump}")
        return Finding(check=REVIEW, severity="suspect" if suspects else "note", evidence="; ".join(parts))
