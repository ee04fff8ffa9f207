"""Correctness: puts the trials to a runner and compares what comes back with truth."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from . import oracle, state, trials
from .audit import Facts
from .classes import Case, unit_roundoff
from .reference import Answer, Reference
from .session import NO_PARTNER, Reply, RunnerFailure, Session
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

    def run(self, *, mapped: bool, only: str | None = None, without: Sequence[str] = ()) -> Evidence:
        """All trials in order; `mapped`: the candidate can take other weights. `only` names the single kind to run,
        `without` the kinds that the reference does not stand."""
        other = self.reference.other_weights()
        self._weights = self.reference.public
        try:
            for plan in trials.standard_plans():
                if plan.kind in without or (only is not None and plan.kind != only):
                    continue
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
        if plan.in_place and self._last is not None and self.session.fits(case.inputs):
            self.session.refill(case.inputs)
        else:
            self.session.show(case.inputs, odd=plan.odd)
        answer = self._call(case)
        self._compare_inputs(case)
        self._compare_values(answer, case)
        self._last = case

    def _call(self, case: Case) -> Answer:
        """The candidate's answer, right in form. Raises Wrong."""
        slots = self.session.slots(case.noise.tensors)
        reply = self.session.call(self.request(slots, case.seed))
        self._compare_form(reply, case.noise)
        self.session.unpartnered = reply.unpartnered & self._places_of_state(case.noise)
        if self.session.unpartnered:
            self._find(
                "weights-unmapped", "suspect", "a buffer that the reference changes has no partner in the candidate"
            )
        return without_unpartnered(self.session.answer(reply, slots), case.noise, self.session.unpartnered)

    def _places_of_state(self, expected: Answer) -> set[int]:
        count = len(expected.tensors)
        return set(range(count - len(self.reference.changed_state), count))

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

    def _compare_form(self, reply: Reply, answer: Answer) -> None:
        """Number, nesting, shapes and dtypes of a reply against those of the reference's answer. Raises Wrong."""
        outputs, expected = reply.outputs, answer.tensors
        count = self._output_count(answer)
        if len(outputs) != len(expected):
            got = len(outputs) - (len(expected) - count)
            raise Wrong(
                "NO_OUTPUT" if got <= 0 else "WRONG_SHAPE", f"{max(got, 0)} output tensors where {count} are due"
            )
        for index, (out, want) in enumerate(zip(outputs, expected, strict=True)):
            self._compare_tensor_form(self._place_name(index, answer), out, want, is_output=index < count)
        if reply.shared and not self.reference.shares:
            raise Wrong("WRONG_VALUES", "two outputs are one tensor; the reference's are not")
        if reply.exposed and not self.reference.exposes:
            raise Wrong("WRONG_VALUES", "an output is a parameter or buffer of the module; the reference's is not")
        if reply.structure != answer.structure:
            raise Wrong("WRONG_SHAPE", f"the outputs are nested as {reply.structure}, not {answer.structure}"[:300])

    def _output_count(self, answer: Answer) -> int:
        return len(answer.tensors) - len(self.reference.changed_args) - len(self.reference.changed_state)

    def _place_name(self, index: int, answer: Answer) -> str:
        """What the tensor at this place of an answer is, for a reader."""
        outputs, args = self._output_count(answer), self.reference.changed_args
        if index < outputs:
            return f"output {index}"
        if index < outputs + len(args):
            return f"input {args[index - outputs]} after the call"
        return f"`{self.reference.changed_state[index - outputs - len(args)]}` after the call"

    def _compare_tensor_form(self, name: str, out: dict[str, Any], want: torch.Tensor, *, is_output: bool) -> None:
        if out.get("problem") == NO_PARTNER and not is_output:
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
        if is_output and out.get("overlaps") and not self.reference.overlaps:
            raise Wrong("NO_OUTPUT", f"{name} is expanded: elements share memory; the reference's does not")
        if is_output and out.get("alias") and not self.reference.aliases:
            raise Wrong("WRONG_VALUES", f"{name} is a view of an input; the reference's is not")

    def _compare_inputs(self, case: Case) -> None:
        """The judge's own copy of the inputs decides whether the candidate changed them."""
        for index, (seen, own) in enumerate(zip(self.session.seen_inputs(), leaves(case.inputs), strict=True)):
            if index not in self.reference.changed_args and not state.same(seen, own):
                raise Wrong("WRONG_VALUES", f"input {index} is changed by the call; the reference leaves it alone")

    def _compare_values(self, answer: Answer, case: Case) -> None:
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
                "bound": reported(case.bounds(self._yardstick(case))),
                "passed_class": passed,
            }
        )
        if passed is None:
            raise self._wrong(answer, errors, case)

    def _is_repeat(self, case: Case) -> bool:
        return case is self._last

    def _yardstick(self, case: Case) -> str:
        return self.facts.task_class if self.facts.task_class != "relaxed" else case.own

    def _wrong(self, answer: Answer, errors: list[float], case: Case) -> Wrong:
        bounds = case.bounds(self._yardstick(case))
        index = max(range(len(errors)), key=lambda i: math.inf if errors[i] == math.inf else errors[i] - bounds[i])
        text = (
            f"{self._place_name(index, case.noise)} errs by {errors[index]:.2e} where {bounds[index]:.2e} is allowed "
            f"(trial `{case.plan.kind}`; the reference itself errs by {case.noise_errors[index]:.1e})"
        )
        if self._is_repeat(case):
            return Wrong("NONDETERMINISTIC", "the first run on these inputs passed, the second did not: " + text)
        if not self._repeats(answer, case):
            return Wrong(
                "NONDETERMINISTIC", "a second run on the same inputs gave another answer; in the first " + text
            )
        return Wrong("WRONG_VALUES", text)

    def _repeats(self, answer: Answer, case: Case) -> bool:
        """Whether a wrong answer comes again: within the task's own bound of the first one."""
        self.session.refill(case.inputs)
        again = self._call(case)
        trios = zip(again.tensors, answer.tensors, case.bounds(case.own), strict=True)
        return all(oracle.max_error(new, old) <= max(bound, 1e-6) for new, old, bound in trios)

    def _other_verdicts(self, answer: Answer, case: Case) -> None:
        """KernelBench's and the release's own verdicts, recorded beside ours."""

        def close(tolerance: float, half: float) -> bool:
            return all(
                torch.allclose(oracle.wide(a), oracle.wide(n), atol=t, rtol=t, equal_nan=False)
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
        runs = [self._random_answer(case_inputs).tensors for _ in range(SEEDS)]
        self.session.show(case_inputs)
        self._compare_random_form(case_inputs)
        floating = [i for i, t in enumerate(runs[0]) if t.is_floating_point()]
        own_seeds = [trials.secret_seed() for _ in range(SEEDS)]
        slots = self.session.slots(2 * [runs[0][i] for i in floating], torch.float64)
        patience_s = SEEDS * self.session.deadlines.call_s
        self.session.ask("statistics", patience_s, "a call", seeds=own_seeds, slots=slots)
        got = self.session.answer(Reply("", [], False, 0.0), slots).tensors
        for place, index in enumerate(floating):
            values = torch.stack([run[index] for run in runs])
            compare_moments(index, got[place], got[place + len(floating)], values)

    def _random_answer(self, inputs: trials.Inputs) -> Answer:
        """The reference's outputs, without what else it changes, under a secret seed."""
        answer = self.reference.call(inputs, self.reference.public, "plain", trials.secret_seed())
        return Answer(answer.structure, answer.tensors[: self._output_count(answer)])

    def _compare_random_form(self, inputs: trials.Inputs) -> None:
        answer = self.reference.call(inputs, self.reference.public, "plain", trials.secret_seed())
        slots = self.session.slots(answer.tensors)
        self._compare_form(self.session.call(self.request(slots, trials.secret_seed())), answer)


def reported(bounds: Sequence[float]) -> float:
    """The largest bound, finite: JSON has no infinities. Where the reference itself overflows anything is allowed."""
    return min(max(bounds, default=0.0), sys.float_info.max)


def without_unpartnered(answer: Answer, expected: Answer, unpartnered: set[int]) -> Answer:
    """The answer with what the candidate cannot have replaced by what is expected."""
    pairs = enumerate(zip(answer.tensors, expected.tensors, strict=True))
    return Answer(answer.structure, [want if index in unpartnered else got for index, (got, want) in pairs])


def compare_moments(index: int, mean: torch.Tensor, square: torch.Tensor, reference: torch.Tensor) -> None:
    """z-test of each element's mean, and of the variance of all elements together. Raises Wrong.

    `mean`, `square`: first two moments of the candidate over 64 seeds, float64; `reference`: (64, ...) samples in
    their own dtype. How far the variances may differ follows from how much the reference's varies from seed to seed:
    one random number for all elements tells far less than one for each.
    """
    roundoff = unit_roundoff(reference.dtype)
    samples = reference.double()
    own_mean = samples.mean(0)
    deviations = (samples - own_mean).pow(2)
    own_variance, variance = deviations.mean(0), (square - mean * mean).clamp(min=0)
    size = own_mean.abs() + own_mean.pow(2).mean().sqrt()
    floor = 2 * max(roundoff, 1e-6) * size + 1e-30
    z = (mean - own_mean).abs() / (((variance + own_variance) / SEEDS).sqrt() + floor)
    if not math.isfinite(float(z.max())) or float((z > 6).double().mean()) > 1e-3:
        raise Wrong("WRONG_VALUES", f"output {index}: its mean over {SEEDS} seeds differs from the reference's")
    noise = float(floor.pow(2).sum())
    totals = deviations.reshape(len(samples), -1).sum(1)
    ratio = (float(variance.sum()) + noise) / (float(totals.mean()) + noise)
    relative = float(totals.std()) / (float(totals.mean()) + noise) / math.sqrt(SEEDS)
    if abs(math.log(ratio)) > 6 * math.sqrt(2) * relative + 0.05:
        raise Wrong("WRONG_VALUES", f"output {index}: its variance over seeds is {ratio:.2f} times the reference's")
