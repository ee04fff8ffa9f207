"""The proposer that searches subsets of techniques, guided by what earlier subsets measured."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from cuda_l1 import scoring
from cuda_l1.config import Precision
from cuda_l1.errors import UsageError
from cuda_l1.proposers.techniques import FUSION, REGISTRY, Technique, compose, load, usable
from cuda_l1.proposers.techniques.draft import Device, Draft, open_draft
from cuda_l1.types import Candidate, Clock, Record, Task

T = TypeVar("T")
Subset = frozenset[str]

MOST_COMBINATIONS = 40
"""Combinations offered per task beyond the singles."""

BASES = 3
"""Subsets that are extended: the best so far."""

HARMFUL = 0.9
"""A technique that alone is slower than this is not added to a subset."""

ALIKE = {
    "compile": "inductor",
    "compile-reduce-overhead": "inductor",
    "compile-max-autotune": "inductor",
    "channels-last": "channels_last",
    "cuda-graph": "cuda_graph",
    "tf32": "tf32",
}
"""Baseline -> the technique whose candidate is about as fast."""

COMPILERS = frozenset({"inductor", "compile"})
"""Techniques whose candidates take as long to judge as a baseline that compiles."""

LATE_S = 10.0
"""What compiles may end so much later than a search would like; it may take 15 s beyond its budget."""

_UNKNOWN_SIZE = ("GuardOnDataDependentSymNode", "DynamicOutputShapeException", "DataDependentOutputException")

log = logging.getLogger(__name__)

_ALLOWED = {
    "default": ("same",),
    "fp32": ("same",),
    "tf32": ("same", "tf32"),
    "relaxed": ("same", "tf32", "relaxed"),
}


@dataclass
class _Known:
    """What this process has built for one task."""

    singles: list[str] = field(default_factory=list)
    """Techniques that are known to change the unchanged task, in the registry's order."""
    others: Iterator[str] | None = None
    """The rest of them, found as they are asked for; None before the first look."""
    tried: set[Subset] = field(default_factory=set)
    offered: set[str] = field(default_factory=set)
    combinations: int = 0
    left_out: set[str] = field(default_factory=set)
    """Techniques that would have taken longer than was left."""


class TechniqueProposer:
    """First each technique alone, then the best subset so far extended by one technique at a time.

    Extending goes by measured speed-up: techniques that helped alone first, then those not measured with this subset.
    A baseline that is ahead of all of them shows which technique to try next: the one that does what it does. It needs
    no memory of its own between processes: what `history` holds is not offered again.
    """

    name = "techniques"

    def __init__(
        self,
        device: str,
        precision: Precision = "default",
        techniques: Sequence[str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`device`: `cpu`, `cuda` or `cuda:N`. `techniques`: only these. `clock`: the objective, default the device's.

        Raises UsageError for an unknown technique or device.
        """
        self.device = _device(device)
        self.precision: Precision = precision
        self.clock: Clock | None = clock
        wanted = [load(name) for name in (REGISTRY if techniques is None else techniques)]
        self.techniques = [t for t in wanted if self.device in t.devices and t.precision in _ALLOWED[precision]]
        self.failures: list[str] = []
        """What could not be built, over all tasks: `technique + technique: why`, one line each."""
        self._known: dict[str, _Known] = {}

    def propose(self, task: Task, history: Sequence[Record], until: float = math.inf) -> Candidate | None:
        """The next candidate that neither `history` nor an earlier call holds; None when there is none left.

        Building one can take Inductor several seconds; after `until` (a `time.monotonic()`) no building is begun.
        """
        known = self._known.setdefault(task.sha, _Known())
        seen = known.offered | {record.candidate.id for record in history}
        compiling_s = _compiling_s(history)
        for subset in self._subsets(task, known, history, until):
            if subset in known.tried:
                continue
            if subset & COMPILERS and time.monotonic() + compiling_s > until + LATE_S:
                self._leave_out(task, known, subset, compiling_s)
                continue
            if time.monotonic() > until:
                return None
            known.tried.add(subset)
            candidate = self.build(task, subset)
            if candidate is not None and candidate.id not in seen:
                known.offered.add(candidate.id)
                known.combinations += len(subset) > 1
                return candidate
        return None

    def _leave_out(self, task: Task, known: _Known, subset: Subset, seconds: float) -> None:
        """Say once of each technique that there was no time for it."""
        for name in sorted(subset & COMPILERS - known.left_out):
            known.left_out.add(name)
            self._tell(task, f"{name}: no time is left for it; torch.compile took {seconds:.0f} s to judge")

    def build(self, task: Task, subset: Subset) -> Candidate | None:
        """The candidate of these techniques; None where none applies, or a line in `failures` says what failed."""
        return self._tried(task, subset, lambda: compose(task, sorted(subset), self.device))

    def _usable(self, task: Task, technique: Technique, draft: Draft) -> bool:
        return bool(self._tried(task, frozenset({technique.name}), lambda: usable(technique, draft)))

    def _tried(self, task: Task, subset: Subset, make: Callable[[], T]) -> T | None:
        """What `make` gives; None, and a line for people, where it fails: one technique must not end the search."""
        try:
            return make()
        except Exception as error:  # noqa: BLE001 - whatever goes wrong in torch or in a technique is told
            self._failed(task, subset, error)
            return None

    def _failed(self, task: Task, subset: Subset, error: Exception) -> None:
        line = ": ".join(filter(None, (" + ".join(sorted(subset)), _why(error))))
        self._tell(task, line)

    def _tell(self, task: Task, line: str) -> None:
        self.failures.append(line)
        log.info("%s: could not be built: %s", task.name, line)

    def _subsets(self, task: Task, known: _Known, history: Sequence[Record], until: float) -> Iterator[Subset]:
        """Subsets worth trying now, best guess first; lazily, since building one is not free."""
        scores = self._scores(history)
        yield from self._like_baselines(history, max(scores.values(), default=1.0))
        yield from (frozenset({name}) for name in self._singles(task, known, until))
        rewrites = frozenset(name for name in known.singles if load(name).stage < FUSION)
        if rewrites:
            yield rewrites
        for base in sorted(scores, key=lambda subset: -scores[subset])[:BASES]:
            for technique in self._extensions(base, scores):
                if known.combinations >= MOST_COMBINATIONS:
                    return
                yield base | {technique.name}

    def _like_baselines(self, history: Sequence[Record], best: float) -> Iterator[Subset]:
        """What does the same as the baselines that are ahead of every candidate so far, the fastest first."""
        ahead: dict[str, float] = {}
        for record in history:
            value = scoring.speedup(record.evaluation, self.clock)
            name = ALIKE.get(record.candidate.label) if record.candidate.is_baseline else None
            if name is None or value is None or not scoring.counts(record.evaluation, self.precision):
                continue
            if value > best:
                ahead[name] = max(value, ahead.get(name, 0.0))
        names = {technique.name for technique in self.techniques}
        yield from (frozenset({name}) for name in sorted(ahead, key=lambda name: -ahead[name]) if name in names)

    def _singles(self, task: Task, known: _Known, until: float) -> Iterator[str]:
        """Those that are known, then the others: whether Inductor applies is seen from its code, seconds later."""
        yield from list(known.singles)
        if known.others is None:
            known.others = self.applying(task)
        while time.monotonic() <= until and (name := next(known.others, None)) is not None:
            known.singles.append(name)
            yield name

    def applying(self, task: Task) -> Iterator[str]:
        """The techniques that would change the unchanged task; a line in `failures` says what failed."""
        draft = self._tried(task, frozenset({"capture"}), lambda: open_draft(task, self.device))
        if draft is None:
            return
        if draft.graph_module is None:
            self._tell(task, f"rewrites of its graph: {draft.failure}")
        yield from (technique.name for technique in self.techniques if self._usable(task, technique, draft))

    def _extensions(self, base: Subset, scores: dict[Subset, float]) -> list[Technique]:
        """Techniques to add to `base`: by what each measured alone, unmeasured as neutral, harmful never."""
        alone = {technique.name: scores.get(frozenset({technique.name}), 1.0) for technique in self.techniques}
        others = [t for t in self.techniques if t.name not in base and alone[t.name] >= HARMFUL]
        return sorted(others, key=lambda technique: -alone[technique.name])

    def _scores(self, history: Sequence[Record]) -> dict[Subset, float]:
        """Subset -> best measured speed-up, of this proposer's candidates that count."""
        scores: dict[Subset, float] = {}
        for record in history:
            if not scoring.counts(record.evaluation, self.precision):
                continue
            value = scoring.speedup(record.evaluation, self.clock)
            for origin in record.candidate.origins:
                if value is not None and origin.proposer == self.name:
                    subset = frozenset(origin.techniques)
                    scores[subset] = max(value, scores.get(subset, 0.0))
        return scores


def _compiling_s(history: Sequence[Record]) -> float:
    """Seconds that a verdict on what torch.compile makes of this task took; 0 where there was none."""
    compiled = [r.evaluation for r in history if r.candidate.is_baseline and r.candidate.label == "compile"]
    return max((evaluation.stage_s.get("total", 0.0) for evaluation in compiled), default=0.0)


def _why(error: Exception) -> str:
    """One line; of a size that no graph knows torch's own is advice to its developers."""
    if type(error).__name__ in _UNKNOWN_SIZE:
        return "a size in its graph depends on data"
    first = (str(error).strip().splitlines() or [""])[0]
    return ": ".join(filter(None, (type(error).__name__, first)))


def _device(device: str) -> Device:
    kind = device.split(":")[0]
    if kind == "cpu":
        return "cpu"
    if kind == "cuda":
        return "cuda"
    raise UsageError(f"techniques: no device `{device}`; use cpu, cuda or cuda:N")
