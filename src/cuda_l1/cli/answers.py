"""What `evaluate` tells while verdicts come in: a line for each on stderr, and on stdout the order that was asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cuda_l1 import scoring
from cuda_l1.api.batch import Answer
from cuda_l1.cli.output import Output
from cuda_l1.config import Precision
from cuda_l1.report.terminal import times


class Answers:
    """Takes answers as they become known and hands them on in the order of `names`."""

    def __init__(
        self, names: Sequence[str], hand_on: Callable[[str, Answer], None], precision: Precision | None = None
    ) -> None:
        """`precision`: by which a right one counts or does not; None where nothing is said of that."""
        self._names, self._hand_on, self._precision = list(names), hand_on, precision
        self._known: dict[int, Answer] = {}
        self._next = 0

    def take(self, answer: Answer) -> None:
        """One more; says so at once."""
        self._known[answer.index] = answer
        Output.say(f"[{len(self._known)}/{len(self._names)}] {self._line(answer)}")
        while self._next in self._known:
            self._hand_on(self._names[self._next], self._known[self._next])
            self._next += 1

    def all(self) -> list[tuple[str, Answer]]:
        """Every one so far, in order."""
        return [(self._names[index], self._known[index]) for index in sorted(self._known)]

    def _line(self, answer: Answer) -> str:
        evaluation = answer.judged.record.evaluation
        timing = answer.judged.versus_eager
        figure = f" {times(timing.speedup)}" if timing else ""
        is_eager = answer.judged.record.candidate.label == "eager"
        why_not = scoring.why_not(evaluation, self._precision, is_eager=is_eager) if self._precision else ""
        outcome = evaluation.told(counts=not why_not)
        seconds = evaluation.stage_s.get("total")
        took = provenance(answer, self._names) or (f"{seconds:.1f} s" if seconds is not None else "")
        how = "; ".join(filter(None, (why_not, took)))
        return f"{self._names[answer.index]}: {outcome}{figure}{f' ({how})' if how else ''}"


def provenance(answer: Answer, names: Sequence[str]) -> str:
    """Where a verdict comes from, when it was not measured by this command."""
    if answer.same_as is not None:
        return f"same text as {names[answer.same_as]}"
    return "known, from the archive" if answer.source == "archive" else ""
