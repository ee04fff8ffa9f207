"""A deterministic stand-in for the evaluator and for proposers: a candidate's text says how it will fare.

`speed=2.0` is accepted with that speed-up against eager; `final=1.5` is what a final says instead; `half=0.1` is the
half-width of its interval; `wrong`, `crash`, `suspect`, `relaxed` and `device=0.5` say what else an evaluator could
find.
A baseline that says `absent` fails in every final.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from cuda_l1.config import Protocol
from cuda_l1.errors import OutOfTimeError
from cuda_l1.types import (
    Candidate,
    Clock,
    Correctness,
    Environment,
    Evaluation,
    Finding,
    Origin,
    Outcome,
    Pair,
    PrecisionClass,
    Record,
    Task,
    Timing,
    Trial,
)

TASK = Task(suite="builtin", name="toy", source="class Model: ...")
PLACE = Environment(device="cpu", device_name="Test CPU", lane="0", rung="R1", torch="2.9.0")


def candidate(text: str, proposer: str = "techniques", name: str | None = None) -> Candidate:
    origin = Origin(proposer=proposer, techniques=(name or text,))
    return Candidate(task_sha=TASK.sha, task_id=TASK.id, source=text, origins=(origin,))


def baseline(name: str, text: str) -> Candidate:
    return candidate(f"{name}: {text}", "baselines", name)


EAGER = baseline("eager", "speed=1.0")


class ListProposer:
    """Offers the given texts in order."""

    def __init__(
        self, *texts: str, name: str = "list", failures: Sequence[str] = (), writer: str = "techniques"
    ) -> None:
        self.name, self.failures, self.writer = name, failures, writer
        self.histories: list[list[str]] = []
        self._texts = list(texts)

    def propose(self, task: Task, history: Sequence[Record], until: float) -> Candidate | None:
        self.histories.append([record.candidate.label for record in history])
        return candidate(self._texts.pop(0), self.writer) if self._texts else None


class FakeEvaluator:
    """Counts its calls in memory and, where given, in a file that outlives the process."""

    def __init__(self, ledger: Path | None = None, before: Callable[[str], None] = lambda text: None) -> None:
        self.environment = PLACE
        self.calls: list[tuple[str, str]] = []
        self.protocols: list[Protocol] = []
        self.asked: list[dict[str, object]] = []
        self._ledger = ledger
        self._before = before

    def evaluate(
        self,
        task: Task,
        candidate: Candidate,
        *,
        protocol: Protocol,
        baselines: Sequence[Candidate] = (),
        best_of: Sequence[str] = (),
        best_so_far: float | None = None,
        within_s: float | None = None,
    ) -> Evaluation:
        if within_s is not None and within_s < (_number("takes", candidate.source) or 0.0):
            raise OutOfTimeError(f"{candidate.label}: given up for want of time")
        self._before(candidate.source)
        self.calls.append((protocol.name, candidate.source))
        self.protocols.append(protocol)
        self.asked.append({"baselines": [b.label for b in baselines], "best_of": best_of, "best_so_far": best_so_far,
                           "budget_s": protocol.budget_s})  # fmt: skip
        if self._ledger:
            with self._ledger.open("a") as file:
                file.write(f"{protocol.name} {candidate.source}\n")
        return make_evaluation(candidate, protocol.name, baselines, best_of)

    def screens(self) -> list[str]:
        return [text for name, text in self.calls if name == "screen" and ":" not in text]

    def finals(self) -> list[str]:
        return [text for name, text in self.calls if name == "final"]


def make_evaluation(
    candidate: Candidate, protocol: str, baselines: Sequence[Candidate] = (), best_of: Sequence[str] = ()
) -> Evaluation:
    text = candidate.source
    speedup = _number("final", text) if protocol == "final" and "final=" in text else _number("speed", text)
    if "wrong" in text or "crash" in text or speedup is None:
        crashed = "crash" in text
        return Evaluation(
            candidate_id=candidate.id,
            outcome=Outcome.CRASHED if crashed else Outcome.WRONG_VALUES,
            detail="no module named x" if crashed else "output 0 differs",
            environment=PLACE,
            protocol=protocol,
        )
    half = None if protocol == "screen" else (_number("half", text) or 0.01)
    got: PrecisionClass = "relaxed" if "relaxed" in text else "fp32"
    trial = Trial(kind="base", error=1e-7, reference_error=1e-7, bound=1e-6, passed_class=got)
    timings = [_timing("eager", EAGER.id, speedup, half, "call")]
    if device := _number("device", text):
        timings.append(_timing("eager", EAGER.id, device, half, "device"))
    timings += [
        _timing(b.label, b.id, speedup / (_number("speed", b.source) or 1.0), half, "call", tuple(best_of))
        for b in baselines
        if "absent" not in b.source
    ]
    dropped = [Finding(check="baseline-failed", severity="note", evidence=f"{b.label}: gone") for b in baselines
               if "absent" in b.source]  # fmt: skip
    suspect = Finding(check="clock-mismatch", severity="suspect", evidence="30 %")
    return Evaluation(
        candidate_id=candidate.id,
        outcome=Outcome.ACCEPTED,
        correctness=Correctness(trials=(trial,), precision_class=got, task_class="fp32"),
        timings=tuple(timings),
        findings=(*dropped, suspect) if "suspect" in text else tuple(dropped),
        environment=PLACE,
        protocol=protocol,
    )


def _number(name: str, text: str) -> float | None:
    found = re.search(rf"{name}=([\d.]+)", text)
    return float(found[1]) if found else None


def _timing(
    opponent: str, opponent_id: str, speedup: float, half: float | None, clock: Clock, best_of: tuple[str, ...] = ()
) -> Timing:
    pair = Pair(candidate_us=(10.0,), opponent_us=(10 * speedup,), candidate_pid=1, opponent_pid=2, log_ratio=0.0)
    return Timing(
        clock=clock,
        opponent=opponent,
        opponent_id=opponent_id,
        pairs=(pair,),
        speedup=speedup,
        speedup_low=None if half is None else speedup * (1 - half),
        speedup_high=None if half is None else speedup * (1 + half),
        candidate_us=100.0 / speedup,
        opponent_us=100.0,
        best_of=best_of,
    )
