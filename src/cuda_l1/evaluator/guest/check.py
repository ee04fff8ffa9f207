"""Correctness: puts the trials to a runner and compares what comes back with truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from . import state, trials
from .audit import Facts
from .classes import Case
from .reference import Answer, Reference
from .session import Reply, RunnerFailure, Session
from .tensors import leaves

_ORDER = ("exact", "fp32", "bf16", "fp16", "tf32", "relaxed")
SEEDS = 64


@dataclass
class Evidence:
    """What the trials showed. `failure` ends the verdict."""

    trials: list[dict[str, Any]] = field(default_factory=list)
    precision_class: str | None = None
    failure: dict[str, str] | None = None
    findings: list[dict[str, str]] = field(default_factory=list)
    allclose_kernelbench: bool | None = None
    allclose_release: bool | None = None


class Wrong(Exception):
    """An answer that no class allows."""

    def __init__(self, outcome: str, detail: str) -> None:
        super().__init__(detail)
        self.outcome, self.detail = outcome, detail


@dataclass
class Checker:
    """Runs one candidate through its trials."""

    reference: Reference
    facts: Facts
    session: Session
    evidence: Evidence = field(default_factory=Evidence)
    _weights: Any = None
    _last: Case | None = None
    _reply_seen: bool = False

    def run(self, *, mapped: bool) -> Evidence:
        """All trials in order; `mapped`: the candidate can take other weights."""
        other = trials.other_state(self.reference.model)
        self._weights = self.reference.public
        try:
            for plan in trials.standard_plans():
                if plan.other_weights and not mapped:
                    plan = trials.Plan(plan.kind, factor=plan.factor, odd=plan.odd)
                    if plan.factor == 1.0:
                        continue
                self._trial(plan, other)
            if self._class_so_far() == "tf32":
                for plan in trials.RANGE_PLANS:
                    self._trial(plan, other)
        except Wrong as wrong:
            self.evidence.failure = {"outcome": wrong.outcome, "detail": wrong.detail, "stage": "checking"}
        except RunnerFailure as failure:
            self.evidence.failure = failure.as_json()
        self.evidence.precision_class = self._class_so_far()
        self._say_precision()
        return self.evidence

    def _class_so_far(self) -> str | None:
        classes = [t["passed_class"] for t in self.evidence.trials]
        if not classes or None in classes:
            return None
        return str(max(classes, key=_ORDER.index))

    # ── one trial ─────────────────────────────────────────────────────────────────────────────────

    def _trial(self, plan: trials.Plan, other: state.State) -> None:
        case = self._case(plan, other)
        if case is None:
            return
        if case.weights is not self._weights:
            self.session.set_weights(case.weights)
            self._weights = case.weights
        self.session.show(case.inputs, odd=plan.odd)
        slots = self.session.slots(case.noise.tensors)
        reply = self.session.call(self.request(slots, case.seed))
        self._compare_form(reply, case)
        answer = self.session.answer(reply, slots)
        self._compare_inputs(case)
        self._compare_values(answer, case)
        self._last = case

    def request(self, slots: Sequence[dict[str, Any]], seed: int | None) -> dict[str, Any]:
        """What a call must deliver."""
        return {
            "slots": list(slots),
            "changed_args": self.reference.changed_args,
            "changed_state": self.reference.changed_state,
            "seed": seed if self.facts.random else None,
        }

    def _case(self, plan: trials.Plan, other: state.State) -> Case | None:
        """The trial with its truth; None when it cannot be made or does not count."""
        if plan.same_inputs and self._last is not None:
            return self._last
        inputs, touched = trials.stress(self.reference.draw(), plan.factor)
        if plan.factor != 1.0 and not touched:
            return None
        weights = other if plan.other_weights else self.reference.public
        case = Case(self.reference, plan, inputs, weights, trials.secret_seed(), self.facts.jumpy)
        if plan.factor != 1.0 and not case.sound:
            return None
        return case

    def _compare_form(self, reply: Reply, case: Case) -> None:
        outputs, expected = reply.outputs, case.noise.tensors
        count = len(expected) - len(self.reference.changed_args) - len(self.reference.changed_state)
        if len(outputs) != len(expected):
            got = len(outputs) - (len(expected) - count)
            raise Wrong(
                "NO_OUTPUT" if got <= 0 else "WRONG_SHAPE", f"{max(got, 0)} output tensors where {count} are due"
            )
        for index, (out, want) in enumerate(zip(outputs, expected, strict=True)):
            self._compare_tensor_form(index, out, want, is_output=index < count)
        if reply.structure != case.noise.structure:
            raise Wrong("WRONG_SHAPE", f"the outputs are nested as {reply.structure}, not {case.noise.structure}"[:300])

    def _compare_tensor_form(self, index: int, out: dict[str, Any], want: torch.Tensor, *, is_output: bool) -> None:
        name = f"output {index}" if is_output else f"changed argument or buffer {index}"
        if out.get("problem") == "no partner":
            self._note_unpartnered()
            return
        if out.get("problem"):
            raise Wrong("NO_OUTPUT", f"{name}: {out['problem']}"[:300])
        if out.get("shape") != list(want.shape):
            raise Wrong("WRONG_SHAPE", f"{name} has shape {out.get('shape')}, not {list(want.shape)}"[:300])
        dtype = str(want.dtype).removeprefix("torch.")
        if out.get("dtype") != dtype:
            raise Wrong("WRONG_DTYPE", f"{name} is {out.get('dtype')}, not {dtype}"[:300])
        if out.get("device") != want.device.type:
            raise Wrong("WRONG_DTYPE", f"{name} is on {out.get('device')}, not {want.device.type}"[:300])
        if is_output and out.get("alias") and not self.reference.aliases:
            raise Wrong("WRONG_VALUES", f"{name} is a view of an input; the reference's is not")

    def _note_unpartnered(self) -> None:
        self._find("weights-unmapped", "suspect", "a buffer that the reference changes has no partner in the candidate")

    def _compare_inputs(self, case: Case) -> None:
        """The judge's own copy of the inputs decides whether the candidate changed them."""
        for index, (seen, own) in enumerate(zip(self.session.seen_inputs(), leaves(case.inputs), strict=True)):
            if index not in self.reference.changed_args and not state.same(seen, own):
                raise Wrong("WRONG_VALUES", f"input {index} is changed by the call; the reference leaves it alone")

    def _compare_values(self, answer: Answer, case: Case) -> None:
        if any(f["check"] == "weights-unmapped" and "partner" in f["evidence"] for f in self.evidence.findings):
            known = len(answer.tensors) - len(self.reference.changed_state)
            answer = Answer(answer.structure, [*answer.tensors[:known], *case.noise.tensors[known:]])
        errors = case.errors(answer)
        if not self.evidence.trials:
            self._other_verdicts(answer, case)
        passed = case.best_class(errors, relaxed=self.facts.relaxed_allowed)
        if passed is None and case.plan in trials.RANGE_PLANS and self.facts.relaxed_allowed:
            passed = "relaxed"  # these trials tell fp16 from TF32; ordinary ones have shown it to be within relaxed
        worst = max(errors, default=0.0)
        self.evidence.trials.append(
            {
                "kind": case.plan.kind if not self._is_repeat(case) else "repeat",
                "error": worst if math.isfinite(worst) else None,
                "reference_error": case.reference_error if math.isfinite(case.reference_error) else None,
                "bound": max(case.bounds(self._yardstick(case)), default=0.0),
                "passed_class": passed,
            }
        )
        if passed is None:
            raise self._wrong(errors, case)

    def _is_repeat(self, case: Case) -> bool:
        return case is self._last

    def _yardstick(self, case: Case) -> str:
        return self.facts.task_class if self.facts.task_class != "relaxed" else case.own

    def _wrong(self, errors: list[float], case: Case) -> Wrong:
        bounds = case.bounds(self._yardstick(case))
        index = max(
            range(len(errors)), key=lambda i: errors[i] / bounds[i] if bounds[i] else math.inf * (errors[i] > 0)
        )
        text = (
            f"output {index} errs by {errors[index]:.2e} where {bounds[index]:.2e} is allowed "
            f"(trial `{case.plan.kind}`; the reference itself errs by {case.noise_errors[index]:.1e})"
        )
        if self._is_repeat(case):
            return Wrong("NONDETERMINISTIC", "the first run on these inputs passed, the second did not: " + text)
        return Wrong("WRONG_VALUES", text)

    def _other_verdicts(self, answer: Answer, case: Case) -> None:
        """KernelBench's and the release's own verdicts, recorded beside ours."""

        def close(tolerance: float, half: float) -> bool:
            return all(
                torch.allclose(a.double(), n.double(), atol=t, rtol=t, equal_nan=False)
                for a, n in zip(answer.tensors, case.noise.tensors, strict=True)
                for t in [half if a.dtype in (torch.float16, torch.bfloat16) else tolerance]
            )

        self.evidence.allclose_kernelbench = close(1e-4, 1e-2)
        self.evidence.allclose_release = close(1e-2, 1e-2)

    # ── findings ──────────────────────────────────────────────────────────────────────────────────

    def _find(self, check: str, severity: str, evidence: str) -> None:
        entry = {"check": check, "severity": severity, "evidence": evidence}
        if entry not in self.evidence.findings:
            self.evidence.findings.append(entry)

    def _say_precision(self) -> None:
        if self.evidence.precision_class != "relaxed" or self._last is None:
            return
        ratios = [
            t["error"] / max(t["reference_error"] or 0.0, 6e-8) for t in self.evidence.trials if t["error"] is not None
        ]
        worst = max(ratios, default=0.0)
        looks = "a float32 sum in one lane" if worst < 100 else "TF32 or fp16" if worst < 6000 else "bf16"
        self._find("precision", "suspect", f"errs by up to {worst:.0f} times the float32 noise: looks like {looks}")

    # ── tasks that differ with the global seed ────────────────────────────────────────────────────

    def compare_statistics(self, case_inputs: trials.Inputs) -> None:
        """Mean and variance per element over 64 seeds, candidate against reference. Raises Wrong."""
        seeds = [trials.secret_seed() for _ in range(SEEDS)]
        runs = [
            [
                t.double()
                for t in self.reference.call(case_inputs, self.reference.public, "plain", s).tensors
                if t.is_floating_point()
            ]
            for s in seeds
        ]
        own_seeds = [trials.secret_seed() for _ in range(SEEDS)]
        self.session.show(case_inputs)
        like = [*runs[0], *runs[0]]
        slots = self.session.slots(like, torch.float64)
        self.session.ask("statistics", 64 * self.session.deadlines.call_s, "a call", seeds=own_seeds, slots=slots)
        got = self.session.answer(Reply("", [], False, 0.0), slots).tensors
        for index in range(len(runs[0])):
            values = torch.stack([run[index] for run in runs])
            compare_moments(index, got[index], got[index + len(runs[0])], values)


def compare_moments(index: int, mean: torch.Tensor, square: torch.Tensor, reference: torch.Tensor) -> None:
    """z-test of the means and a ratio test of the variances, elements together. Raises Wrong.

    `mean`, `square`: first two moments of the candidate over 64 seeds; `reference`: (64, ...) samples.
    """
    variance = (square - mean * mean).clamp(min=0)
    own_mean, own_variance = reference.mean(0), reference.var(0, unbiased=False)
    spread = ((variance + own_variance) / SEEDS).sqrt()
    floor = 1e-6 * (own_mean.abs() + own_mean.pow(2).mean().sqrt()) + 1e-12
    z = (mean - own_mean).abs() / (spread + floor)
    outside = float((z > 6).double().mean())
    ratio = float((variance.mean() + 1e-12) / (own_variance.mean() + 1e-12))
    tolerance = 4 * math.sqrt(2 / SEEDS / max(1, min(own_variance.numel(), 64))) + 0.05
    if not math.isfinite(float(z.max())) or outside > 1e-3:
        raise Wrong("WRONG_VALUES", f"output {index}: its mean over {SEEDS} seeds differs from the reference's")
    if abs(ratio - 1) > tolerance:
        raise Wrong("WRONG_VALUES", f"output {index}: its variance over seeds is {ratio:.2f} times the reference's")
