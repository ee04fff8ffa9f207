"""Correctness: puts the trials to a runner and compares what comes back with truth."""

from __future__ import annotations

import functools
import itertools
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from . import asked, choices, dirty_memory, drawing, input_forms, oracle, plans, state, uncounted, undrawn, weight_forms
from .audit import Facts
from .case import Case
from .classes import RELAXED_CEILING, Errors, least_exact
from .entropy import ENTROPY
from .evidence import Evidence, Wrong
from .form import Form, without_unpartnered
from .held import compare_held
from .read_weights import read_elements
from .reading import hosted
from .reference import Answer, Reference
from .session import RunnerFailure, Session
from .tensors import VECTOR_BYTES, leaves

AGAIN_S = 5.0
AGAIN = (plans.OTHER_WEIGHTS, plans.HISTORY, plans.LARGE_WEIGHTS)
_SMALL_PARTS = "most elements, or slices that are small beside the others, are wrong by their own measure"


@dataclass
class Checker:
    """Runs one candidate through its trials."""

    reference: Reference
    facts: Facts
    session: Session
    evidence: Evidence = field(default_factory=Evidence)
    _weights: Any = None
    _last: Case | None = None
    _read: dict[str, torch.Tensor] | None = None
    """Where elements of the weights lie that the inputs of `touched-weights` are answered by, where they are few."""
    _ordinary: Sequence[float] = ()
    """Root mean square of each tensor of truth in the first trial."""
    _kind: str = "base"
    """Of the trial that is being run."""
    _alike: frozenset[int] = frozenset()
    """Tensors among the inputs that are the same in every draw."""
    _unlike: dict[str, str] = field(default_factory=dict)
    """Trials that were `relaxed` with weights as constructed, and others than the reference's, with what to say."""

    def __post_init__(self) -> None:
        self.form = Form(self.reference)

    def run(self, *, mapped: bool, aligned: bool) -> Evidence:
        """All trials in order; `mapped`: the candidate can take other weights. `aligned`: see `standard_plans`."""
        other = self.reference.other_weights()
        self._weights = self.reference.public
        try:
            parts = weight_forms.parts(self.reference.model, self.reference.data, self.reference.changed_state)
            for plan in plans.standard_plans(parts if mapped else (), aligned=aligned):
                if plan.other_weights and not mapped:
                    plan = plans.Plan(plan.kind, factor=plan.factor)
                    if plan.factor == 1.0:
                        continue
                self.evidence.at_odd_bytes = 0 < plan.offset < VECTOR_BYTES
                self._trial(plan, other)
            self.evidence.at_odd_bytes = False
            self._put_row()
            for plan in plans.UNDRAWN_PLANS:
                if mapped or not plan.other_weights:
                    self._trial(plan, other)
            if self._class_so_far() not in (*plans.OUT_OF_RANGE, None):
                for plan in plans.RANGE_PLANS:
                    if mapped or not plan.other_weights:
                        self._trial(plan, other)
        except Wrong as wrong:
            self.evidence.failure = self._placed(wrong.as_json(), "detail")
        except RunnerFailure as failure:
            self.evidence.failure = self._placed(failure.as_json(), "stage" if failure.outcome == "DIED" else "detail")
        self.evidence.precision_class = self._class_so_far()
        self._say_precision()
        return self.evidence

    def again(self, precision_class: str, checked_class: str) -> Evidence:
        """Once more after timed calls, for a candidate of that class, or of another by the trials: trials with inputs
        of forms that none of them had, since some are slow and some machines busy, and, where it can be given others,
        with weights that they are not made with; then it has those of timed calls again. Raises RunnerFailure."""
        timed = self._weights = dict(self.session.weights)
        self._note_class(precision_class)
        try:
            self._put_forms_again(timed)
            if self._class_so_far() == "tf32" != checked_class:
                self._put_near_again(timed)
            ENTROPY.turn(plans.OTHER_WEIGHTS.kind)
            other = self.reference.other_weights()
            for plan in AGAIN if self.session.mapped else ():
                before = self._class_so_far()
                if plan in plans.RANGE_PLANS and before in plans.OUT_OF_RANGE:
                    continue
                self._trial(plan, other if plan is plans.OTHER_WEIGHTS else timed)
                last = self.evidence.trials[-1]
                if before != "fp32" or last["passed_class"] != "relaxed":
                    last["passed_class"] = before  # one class less is a matter of luck
        except Wrong as wrong:
            self.evidence.failure = wrong.as_json()
        if self._weights is not timed:
            self.session.set_weights(timed)
        self.evidence.precision_class = self._class_so_far()
        return self.evidence

    def _note_class(self, passed: str | None) -> None:
        self.evidence.trials.append({"kind": "timed", "passed_class": passed})

    def _put_forms_again(self, weights: state.State) -> None:
        """Inputs of the forms of which no timed call was compared, in random order, for `AGAIN_S` seconds. Raises
        Wrong."""
        if self.session.moving:  # they left it as it was before the last of them
            self.session.set_weights(weights)
        begin = time.monotonic() - self.reference.rested_s
        forms = uncounted.forms_of(self.reference, self.session)
        left = [plan for plan in forms if plan not in self.session.compared]
        for plan in ENTROPY.sample(left, len(left)):
            if time.monotonic() - self.reference.rested_s - begin > AGAIN_S:
                return
            self._put_again(plan, forms[plan], weights, Case.class_when_timed)

    def _put_near_again(self, weights: state.State) -> None:
        """What tells half precision from TF32, of a candidate to whom it was put when it computed in float32. Raises
        Wrong."""
        for plan in plans.NEAR_PLANS:
            self._put_again(
                plan, functools.partial(input_forms.stress, factor=plan.factor), weights, Case.class_in_range
            )

    def _put_again(
        self, plan: plans.Plan, make: input_forms.Make, weights: state.State, class_of: Callable[..., str | None]
    ) -> None:
        ENTROPY.turn(plan.kind)
        before = self._class_so_far()
        if plan in plans.RANGE_PLANS and before in plans.OUT_OF_RANGE:
            return
        inputs, found = make(self.reference.draw())
        if not (found and self.session.fits(inputs)):
            return
        case = Case.where_stood(self.reference, plan, inputs, weights, self.facts.jumpy)
        if case is None or not case.sound:
            return
        self.session.refill(inputs, before_slots=True)
        answer = self._call(case)
        self._compare_inputs(case)
        errors = case.errors(answer)
        passed = class_of(case, errors, before, relaxed=self.facts.relaxed_allowed)
        if passed is None:
            raise Wrong("WRONG_VALUES", self._what_is_wrong(errors, case))
        if passed != before:
            self._say_small_parts(case, errors, passed)
            self._note_class(passed)

    def _placed(self, failure: dict[str, str], key: str) -> dict[str, str]:
        """With the trial that it came in, unless that has the task's own inputs and weights, or is named already."""
        if self._kind != "base" and "(trial `" not in failure[key]:
            failure[key] += f" (trial `{self._kind}`)"
        return failure

    def _class_so_far(self) -> str | None:
        return least_exact([t["passed_class"] for t in self.evidence.trials])

    # ── one trial ─────────────────────────────────────────────────────────────────────────────────

    def _trial(self, plan: plans.Plan, other: state.State) -> None:
        ENTROPY.turn(plan.kind)
        self._kind = plan.kind
        case = self._case(plan, other)
        if case is None:
            return
        exchanged = None
        if case.weights is not self._weights:
            if plan.touches and not self.session.fixed:
                exchanged = self.session.lay_weights(case.weights)
            else:
                self.session.set_weights(case.weights)
            self._weights = case.weights
        if plan.in_place and self._last is not None and self.session.fits(case.inputs):
            self.session.refill(case.inputs, before_slots=True)
        else:
            self.session.show(case.inputs, offset=plan.offset)
        answer = self._call(case, exchanged=exchanged)
        self._compare_inputs(case)
        self._compare_values(answer, case)
        if plan.kind == "base":
            self._ordinary = case.sizes
            compare_held(self.session, self.reference, answer.tensors[: self.form.output_count(answer)])
            self._go_on(case, answer)
        self._last = case

    def _go_on(self, case: Case, answer: Answer) -> None:
        """Another call from the state that the candidate's own has left, where that is all in buffers: what follows
        from state may be kept under something that only the harness changes."""
        names, kinds = self.reference.changed_state, state.kinds(self.reference.model)
        if not names or self.session.unpartnered or any(kinds.get(name) != "buffer" for name in names):
            return
        left = dict(zip(names, answer.tensors[-len(names) :], strict=True))
        if any(name not in case.weights or value.shape != case.weights[name].shape for name, value in left.items()):
            return  # it has grown: a row of calls asks about that
        weights = {**case.weights, **left}
        again = Case.where_stood(self.reference, plans.SUCCESSION, self.reference.draw(), weights, self.facts.jumpy)
        if again is not None and again.sound and self.session.fits(again.inputs):
            self.session.refill(case.inputs, before_slots=True)
            self._call(case, stays=True)
            self.session.refill(again.inputs, before_slots=True)
            self._compare_values(self._call(again, goes_on=True), again)

    def _put_row(self) -> None:
        """Some calls in a row, as a program makes them: what begins as nothing (a cache that grows), or lies where
        nobody looks (a position beside tensors in an object), shows in the next call alone. Raises Wrong."""
        if not self.reference.changed_state:
            return
        ENTROPY.turn(plans.ROW.kind)
        self._kind = plans.ROW.kind
        earlier = [self.reference.draw() for _ in range(ENTROPY.randint(*plans.ROW_CALLS) - 1)]
        later = self.reference.after(earlier)
        inputs = self.reference.draw()
        case = Case.where_stood(later, plans.ROW, inputs, self.reference.public, self.facts.jumpy)
        if case is None or not case.sound:
            return
        if case.weights is not self._weights:
            self.session.set_weights(case.weights)
            self._weights = case.weights
        form, slots = Form(self.reference), self.session.slots(case.noise.tensors)
        for number, each in enumerate([*earlier, inputs]):
            is_last = number == len(earlier)
            self.session.show(each)
            reply = self.session.call(form.request(slots, in_a_row=True, stays=not is_last, goes_on=number > 0))
        Form(later).compare(reply, case.noise)
        self._compare_values(self.session.answer(reply, slots), case)

    def _call(self, case: Case, exchanged: dict[str, Any] | None = None, **succession: bool) -> Answer:
        """The candidate's answer, right in form; `exchanged` and `succession` as for `Form.request`. Raises Wrong."""
        slots = self.session.slots(case.noise.tensors)
        dirt = dirty_memory.dirt() if self._is_repeat(case) else None
        reply = self.session.call(
            self.form.request(slots, compare_state=True, dirt=dirt, exchanged=exchanged, **succession)
        )
        self.form.compare(reply, case.noise)
        self.session.unpartnered = reply.unpartnered & self.form.places_of_state(case.noise)
        if self.session.unpartnered:
            self._find(
                "weights-unmapped", "suspect", "a buffer that the reference changes has no partner in the candidate"
            )
        return without_unpartnered(self.session.answer(reply, slots), case.noise, self.session.unpartnered)

    def _case(self, plan: plans.Plan, other: state.State) -> Case | None:
        """The trial with its truth; None when it cannot be made or does not count."""
        if plan.same_inputs and self._last is not None:
            return self._last
        if self._last is not None:
            self._last.forget()
        if plan.few:
            return self._touched(plan)
        if plan.in_forms or plan.touches:
            return self._formed(plan, other)
        make = functools.partial(input_forms.stress, factor=plan.factor)
        inputs, touched = make(self.reference.draw())
        if plan.factor != 1.0 and not touched:
            return None
        weights = other if plan.other_weights else self.reference.public
        case = Case.where_stood(self.reference, plan, inputs, weights, self.facts.jumpy, self._ordinary)
        if case and plan in plans.RANGE_PLANS and plan.factor > 1.0 and case.sound:
            self.reference.forms[plan] = make
        return case if case and (plan.factor == 1.0 or case.sound) else None

    def _touched(self, plan: plans.Plan) -> Case | None:
        if self._last is None:
            return None
        last, drawn = self._last.inputs, self.reference.draw()
        plain = plan.factor == 1.0
        if plain:
            self._alike = choices.alike(last, drawn)
        touch = input_forms.touched if plain else functools.partial(input_forms.with_outliers, factor=plan.factor)
        inputs, found = touch(last, drawn)
        if not found:
            return None
        case = Case.where_stood(self.reference, plan, inputs, self._last.weights, self.facts.jumpy)
        if case and not plain and case.sound:
            draw = self.reference.draw  # what is kept must not hold this checker's answers
            self.reference.forms[plan] = lambda inputs: input_forms.with_outliers(inputs, draw(), plan.factor)
        return case if case and (plain or case.sound) else None

    def _formed(self, plan: plans.Plan, other: state.State) -> Case | None:
        """The first form of a trial that the reference stands: it may refuse what no draw shows it."""
        for make, inputs, weights in self._forms(plan, other):
            case = Case.where_stood(self.reference, plan, inputs, weights, self.facts.jumpy, self._ordinary)
            if case and case.sound:
                if make is not None and plan not in plans.OF_NOTHING:
                    self.reference.forms[plan] = make
                return case
            del case  # its truths need not lie beside those of the next
        return None

    def _forms(
        self, plan: plans.Plan, other: state.State
    ) -> Iterator[tuple[input_forms.Make | None, drawing.Inputs, state.State]]:
        """Inputs and weights, and what makes such inputs of drawn ones where they are not as drawn."""
        if plan.touches:
            if self._last is not None:
                if self._read is None:  # inputs are the same in all of these
                    self._read = read_elements(self.reference, self._last.inputs, self._weights)
                for any_sign in (True, False):
                    touched = weight_forms.with_touched(
                        self._weights, plan.touches, any_sign=any_sign, exchanged=plan.exchanged, read=self._read
                    )
                    yield None, self._last.inputs, touched
            return
        if plan.kind == "signs":
            model, data = self.reference.model, self.reference.data
            clamped = asked.clamped(self.reference, self.reference.draw())
            beyond = [clamped, {}] if clamped else [{}]
            ways = itertools.product(beyond, weight_forms.SINGLES, weight_forms.CONSTANT_BUFFERS)
            for ends, single, constants in ways:
                signed = weight_forms.of_both_signs(model, other, constants, data, single=single)
                if signed or ends:
                    yield None, self.reference.draw(), weight_forms.with_ends_passed(signed or other, ends)
            return
        if plan is plans.PRUNED:
            for rows in (True, False):
                if made := weight_forms.pruned(self.reference.model, other, rows=rows):
                    yield None, self.reference.draw(), made
            return
        if plan in (plans.AGED, plans.AGED_ALIKE):
            if aged := self.reference.aged(undrawn.ALIKE if plan is plans.AGED_ALIKE else None):
                yield None, self.reference.draw(), aged
            return
        if plan is plans.HISTORY:
            if remembering := weight_forms.with_long_memory(self.reference.model, other):
                yield None, self.reference.draw(), remembering
            return
        if plan is plans.LARGE_WEIGHTS:
            for factor, dims in weight_forms.WEIGHT_FACTORS:
                if large := weight_forms.with_large_weights(self.reference.model, other, factor, dims):
                    yield None, self.reference.draw(), large
            return
        if plan is plans.LARGE_CHANNELS:
            for factor in weight_forms.CHANNEL_FACTORS:
                if large := weight_forms.with_large_channels(self.reference.model, other, factor):
                    yield None, self.reference.draw(), large
            return
        if plan is plans.SMALL_WEIGHTS:
            small = weight_forms.SMALL
            if shrunk := weight_forms.with_large_weights(self.reference.model, other, small, 1):
                for factor in (small, 1.0):
                    yield None, input_forms.stress(self.reference.draw(), factor)[0], shrunk
            return
        if plan in plans.ONE_SIDED:
            towards = -1.0 if plan is plans.LOWERED else 1.0
            if moved := weight_forms.with_biases_moved(self.reference.model, other, towards):
                yield None, self.reference.draw(), moved
            return
        kept = plan.kind == "touched-choices" and self._last is not None
        drawn = self._last.inputs if kept and self._last is not None else self.reference.draw()
        for make in undrawn.makers(plan, self.reference, self._alike):
            inputs, found = make(drawn)
            if found:
                yield make, inputs, self.reference.public

    def _compare_inputs(self, case: Case) -> None:
        """The judge's own copy of the inputs decides whether the candidate changed them."""
        pairs = enumerate(zip(self.session.seen_inputs(), leaves(case.inputs), strict=True))
        compared = {index: pair for index, pair in pairs if index not in self.reference.changed_args}
        for index, is_same in zip(compared, state.same_each(list(compared.values())), strict=True):
            if not is_same:
                raise Wrong("WRONG_VALUES", f"input {index} is changed by the call; the reference leaves it alone")

    def _compare_values(self, answer: Answer, case: Case) -> None:
        errors = case.errors(answer)
        if not self.evidence.trials:
            self._other_verdicts(answer, case)
        relaxed, before = self.facts.relaxed_allowed, self._class_so_far()
        if case.plan is plans.BLANK:
            passed = before if self._is_as_plain(answer, errors, case, RELAXED_CEILING) else None
        elif before is not None and case.plan in plans.RANGE_PLANS:
            passed = case.class_in_range(errors, before, relaxed=relaxed)
        elif before is not None and self._errs_slightly(answer, errors, case):
            passed = before
        else:
            passed = case.best_class(errors, relaxed=relaxed)
        if case.plan.in_forms and not (case.is_well_posed and case.counts(answer, errors, passed, before)):
            return  # found out since it was chosen
        if case.plan not in plans.OF_NOTHING:
            self._say_small_parts(case, errors, passed)
        kind = "repeat" if self._is_repeat(case) else case.plan.kind
        if passed == "relaxed" and self.session.unlike:
            self._unlike[kind] = self._say_unlike()
        worst = max(errors.worst, default=0.0)
        self.evidence.trials.append(
            {
                "kind": kind,
                "error": worst if math.isfinite(worst) else None,
                "reference_error": case.reference_error if math.isfinite(case.reference_error) else None,
                "bound": reported(self._bounds(case)),
                "passed_class": passed,
            }
        )
        if passed is None:
            raise self._wrong(answer, errors, case)

    def _errs_slightly(self, answer: Answer, errors: Errors, case: Case) -> bool:
        if case.plan in plans.CANCELLING:
            return self._is_as_plain(answer, errors, case, plans.SLIGHT)
        return case.plan in plans.LENIENT and max(errors.worst, default=0.0) <= plans.SLIGHT

    def _is_as_plain(self, answer: Answer, errors: Errors, case: Case, bound: float) -> bool:
        """Whether what the reference makes of nothing, where that is something beside an ordinary answer, is up to
        `bound` what an answer makes of it, in whatever places, since which of equal numbers is kept is nobody's
        promise; and else as finite. Integers, which are never next to nothing, are what they are."""
        if not _is_finite_alike(answer, case.truth):
            return False
        pairs = zip(hosted(answer.tensors), case.truth.tensors, strict=True)
        each = zip(pairs, errors.worst, case.sizes, self._ordinary, strict=False)
        return all(
            error <= bound or _is_as_little(*pair, size, bound, ordinary) for pair, error, size, ordinary in each
        )

    def _is_repeat(self, case: Case) -> bool:
        return case is self._last

    def _bounds(self, case: Case) -> list[float]:
        """What an element may err by, for people."""
        before = self._class_so_far()
        if case.plan is plans.BLANK:
            return [math.inf] * len(case.noise.tensors)
        if case.plan in plans.RANGE_PLANS and before not in ("tf32", None):
            return case.range_bounds()
        return case.bounds(self._yardstick(case))

    def _yardstick(self, case: Case) -> str:
        return self.facts.task_class if self.facts.task_class != "relaxed" else case.own

    def _wrong(self, answer: Answer, errors: Errors, case: Case) -> Wrong:
        text = self._what_is_wrong(errors, case) + self._guess(case)
        if self._is_repeat(case) and math.inf in errors.worst:
            return Wrong("WRONG_VALUES", "a second call gives back the output of the first, which was written to since")
        if self._is_repeat(case):
            first = "the first run on these inputs passed, the second, whose memory held no zeros, did not"
            return Wrong("NONDETERMINISTIC", f"{first}: {text}")
        if case.plan not in (plans.SUCCESSION, plans.ROW) and not self._repeats(answer, case):
            return Wrong(
                "NONDETERMINISTIC", "a second run on the same inputs gave another answer; in the first " + text
            )
        return Wrong("WRONG_VALUES", text)

    def _guess(self, case: Case) -> str:
        """What to do where other weights may have been laid in the wrong places, or a constructor draws its own."""
        if case.plan.kind == "base" and self.session.fixed:
            return (
                "; both are as constructed here, under one seed: end the constructor of `ModelNew` with load_reference "
                "of what the reference's layers draw"
            )
        if self.session.unlike:
            return f"; {self._say_unlike()}"
        if case.weights is self.reference.public or len(self.session.guessed) < 2:
            return ""
        name, partner = self.session.guessed[:2]
        return (
            f"; `{name}` was laid in `{partner}`, one of several equal tensors whose names tell nothing: give them the "
            "reference's names, or `ModelNew` a method load_reference(state)"
        )

    def _say_unlike(self) -> str:
        """Why answers differ before any weights are laid."""
        name, *others = self.session.unlike
        more = f" and {len(others)} more" if others else ""
        return (
            f"as constructed, under one seed, `{name}`{more} of `ModelNew` differs from the reference's: let its "
            "constructor draw and set what the reference's does, in the same order"
        )

    def _what_is_wrong(self, errors: Errors, case: Case) -> str:
        worst, bounds = errors.worst, self._bounds(case)
        index = max(range(len(worst)), key=lambda i: math.inf if worst[i] == math.inf else worst[i] - bounds[i])
        name, own = Form(case.reference).place_name(index, case.noise), case.noise_errors[index]
        if case.plan is plans.BLANK:
            is_far = math.isfinite(worst[index]) or oracle.is_exact(case.noise.tensors[index])
            what = "is far from truth" if is_far else "is not finite where truth is"
            return f"{name} {what} (trial `blank`: nothing but zeros)"
        if worst[index] > bounds[index]:
            said = f"{name} errs by {worst[index]:.2e} where {bounds[index]:.2e} is allowed"
        else:
            said = f"{_SMALL_PARTS}, though no element errs by more than {worst[index]:.2e}"
        return f"{said} (trial `{case.plan.kind}`; the reference itself errs by {own:.1e})"

    def _repeats(self, answer: Answer, case: Case) -> bool:
        """Whether a wrong answer comes again: within the task's own bound of the first one."""
        self.session.refill(case.inputs, before_slots=True)
        again = self._call(case)
        trios = zip(again.tensors, answer.tensors, case.bounds(case.own), strict=True)
        return all(oracle.max_error(new, old) <= max(bound, 1e-6) for new, old, bound in trios)

    def _other_verdicts(self, answer: Answer, case: Case) -> None:
        """KernelBench's and the release's own verdicts, recorded beside ours."""

        def close(tolerance: float, half: float) -> bool:
            return all(
                torch.allclose(oracle.wide(got), oracle.wide(due), atol=t, rtol=t, equal_nan=False)
                for a, n in zip(answer.tensors, case.noise.tensors, strict=True)
                for t in [half if a.dtype in (torch.float16, torch.bfloat16) else tolerance]
                for got, due in oracle.parts(a, n)
            )

        self.evidence.allclose_kernelbench = close(1e-4, 1e-2)
        self.evidence.allclose_release = close(1e-2, 1e-2)

    # ── findings ──────────────────────────────────────────────────────────────────────────────────

    def _find(self, check: str, severity: str, evidence: str) -> None:
        entry = {"check": check, "severity": severity, "evidence": evidence}
        if entry not in self.evidence.findings:
            self.evidence.findings.append(entry)

    def _say_small_parts(self, case: Case, errors: Errors, passed: str | None) -> None:
        if case.hides_small_parts(errors, passed):
            self._find("small-parts", "suspect", _SMALL_PARTS)

    def _say_precision(self) -> None:
        if self.evidence.precision_class != "relaxed" or self._last is None:
            return
        trials = [t for t in self.evidence.trials if t["kind"] != plans.BLANK.kind]  # those answers are only finite
        coarse = [t for t in trials if t["passed_class"] == "relaxed"]
        beyond = [t for t in coarse if t["error"] is None or t["error"] > t["bound"]]
        kinds = ", ".join(f"`{kind}`" for kind in dict.fromkeys(t["kind"] for t in beyond or coarse))
        if not beyond:
            self._find("precision", "suspect", f"{_SMALL_PARTS} (trials {kinds}), though no element errs by too much")
            return
        if self._unlike.keys() >= {t["kind"] for t in beyond}:
            self._find("precision", "suspect", f"{next(iter(self._unlike.values()))} (relaxed in trials {kinds})")
            return
        ratios = [t["error"] / max(t["reference_error"] or 0.0, 6e-8) for t in trials if t["error"] is not None]
        worst = max(ratios, default=0.0)
        in_float32 = "a float32 sum in one lane or a difference of squares"
        looks = in_float32 if worst < 100 else "TF32 or fp16" if worst < 6000 else "bf16"
        said = f"errs by up to {worst:.0f} times the float32 noise: looks like {looks} (relaxed in trials {kinds})"
        self._find("precision", "suspect", said)


def _is_as_little(got: torch.Tensor, due: torch.Tensor, size: float, bound: float, ordinary: float) -> bool:
    """Whether numbers of root mean square `size` are next to nothing beside an `ordinary` one, or dealt alike."""
    little = size <= plans.SOMETHING * ordinary
    return not oracle.is_exact(due) and (little or oracle.are_dealt_alike(got, due, bound * size))


def _is_finite_alike(answer: Answer, truth: Answer) -> bool:
    """Whether each tensor of an answer is finite where that of truth is; one of float8, which has few numbers, as it
    may be."""
    pairs = zip(answer.tensors, truth.tensors, strict=True)
    return all(got.dtype.itemsize < 2 or oracle.all_finite(got) or not oracle.all_finite(due) for got, due in pairs)


def reported(bounds: Sequence[float]) -> float:
    """The largest bound, finite: JSON has no infinities. Where the reference itself overflows anything is allowed."""
    return min(max(bounds, default=0.0), sys.float_info.max)
