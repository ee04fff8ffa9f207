"""Tasks whose answers differ with the global seed: by value in eval mode where that is deterministic, and in the mode
that is timed by their distribution over seeds."""

from __future__ import annotations

import functools
import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from . import choices, drawing, input_forms, oracle, plans, random_answers, randomness, state, undrawn, weight_forms
from .audit import Facts, audit
from .check import Checker
from .classes import unit_roundoff
from .driving import Kept
from .entropy import ENTROPY
from .evidence import Evidence, Wrong
from .form import Form
from .reference import Answer, BadTask, Reference
from .session import RunnerFailure, Session
from .tensors import leaves

OF_ROUNDING = 16
"""The squared distance of a candidate's means from the reference's is rounding up to so many times that of the
reference in other arithmetic: four times its error, as in `classes`."""
LARGE = 4.0
"""What the matrices of other weights are multiplied by, so that noise which is added beside a network no longer drowns
its answer."""
SPREAD_SEEDS = 16
"""Answers of the reference that tell how far its answers lie apart from seed to seed."""
SEEDED = 1 / 2
"""The share of compared calls that begin under a seed of their own."""
FEW_SEEDS = 16
"""Answers of each side in a first look at inputs of one form; where they differ, `randomness.SEEDS` are compared."""
MANY_SAMPLES = 16
"""Samples from which on so few answers show that equal ones have one fate."""
FORMS_S, LEAST_FORMS, ROUNDS = 1.5, 4, 2
"""Seconds of calls that are spent on inputs in other forms; forms that are looked at however long that takes; and how
often each of them is, at the most."""
APART = 0.05
"""How far the answers of two processes under one seed may lie apart and still be the same: in mean squared distance, as
a share of that between the reference's answers under different seeds. Independent numbers give 1."""
ROUNDINGS = 4
"""Unit roundoffs by which the two may differ besides: another process may choose another kernel."""


@dataclass(frozen=True)
class EvalMode:
    """The task in eval mode, where it is deterministic there."""

    facts: Facts
    changed_args: list[int]
    changed_state: list[str]

    @classmethod
    def learn(cls, reference: Reference) -> EvalMode | None:
        """Audit the reference in eval mode; afterwards it is as it was. None where that is random too."""
        before = _Mode.of(reference)
        _Mode("eval", [], []).put(reference)
        facts = audit(reference)
        found = cls(facts, reference.changed_args, reference.changed_state)
        before.put(reference)
        return None if facts.random else found

    def check(self, reference: Reference, session: Session, which: dict[str, Any]) -> Evidence:
        """All trials by value, with both sides in eval mode for as long as that takes."""
        before = _Mode.of(reference)
        _Mode("eval", self.changed_args, self.changed_state).put(reference)
        try:
            session.ask("set_mode", 60.0, "a call", mode="eval")
            evidence = Checker(reference, self.facts, session).run(**which)
        finally:
            before.put(reference)  # also when this runner is gone: others follow
        if evidence.failure is None:  # else it may be gone, and no call follows
            session.ask("set_mode", 60.0, "a call", mode=before.mode)
        return evidence


@dataclass(frozen=True)
class _Mode:
    """Mode of a reference, and what a call changes in it."""

    mode: str
    changed_args: list[int]
    changed_state: list[str]

    @classmethod
    def of(cls, reference: Reference) -> _Mode:
        return cls(reference.mode, reference.changed_args, reference.changed_state)

    def put(self, reference: Reference) -> None:
        reference.set_mode(self.mode)
        reference.changed_args, reference.changed_state = self.changed_args, self.changed_state


def check_random(checker: Checker, eval_mode: EvalMode | None, which: dict[str, Any]) -> Evidence:
    """All that can be said of one runner; `which` trials by value."""
    reference, session, task_class = checker.reference, checker.session, checker.facts.task_class
    evidence = Evidence()
    try:
        if eval_mode is not None:
            evidence = eval_mode.check(reference, session, which)
        if evidence.failure is None:
            weights = reference.public
            session.set_weights(weights)
            if which["mapped"]:
                _call_once(checker)  # what is kept of the first weights shows with the next
                weights = reference.other_weights()
                session.set_weights(weights)
            compare_statistics(checker, reference.draw(), weights)
            evidence.trials.append(_seeds_trial(task_class))
            stressed = _stressed(reference, mapped=which["mapped"], inputs_too=eval_mode is None)
            if stressed is not None:
                session.set_weights(stressed[1])
                compare_statistics(checker, *stressed, stressed=True)
                evidence.trials.append(_seeds_trial(task_class))
            session.set_weights(weights)
            compare_equals(checker, weights)
            for inputs in _in_forms(reference, weights, checker.facts.reference_us):
                if _may_be_unlike(checker, inputs, weights):
                    compare_statistics(checker, inputs, weights, stressed=True)
                evidence.trials.append(_seeds_trial(task_class))
            evidence.precision_class = evidence.precision_class or task_class
    except Wrong as wrong:
        evidence.failure = wrong.as_json()
    except RunnerFailure as failure:
        evidence.failure = failure.as_json()
    return evidence


def check_random_again(checker: Checker) -> Evidence:
    """One comparison more after timed calls, each under a seed of its own as these are, with their weights: a candidate
    that counts its calls, or looks whether they are seeded, cannot know that these are none of them."""
    session = checker.session
    if session.moving:  # timed calls left it as it was before the last of them
        session.set_weights(session.weights)
    timed = dict(session.weights)
    try:
        compare_statistics(checker, checker.reference.draw(), timed, seeded=1.0)
        compare_equals(checker, timed, seeded=1.0)
        if session.mapped:
            _compare_with_other_weights(checker)
            session.set_weights(timed)
    except Wrong as wrong:
        return Evidence(failure=wrong.as_json())
    return Evidence()


def _compare_with_other_weights(checker: Checker) -> None:
    """Whether answers still follow from the weights. Raises Wrong."""
    weights, inputs = checker.reference.other_weights(), checker.reference.draw()
    checker.session.set_weights(weights)
    if _may_be_unlike(checker, inputs, weights, seeded=1.0):
        compare_statistics(checker, inputs, weights, stressed=True, seeded=1.0)


def _in_forms(reference: Reference, weights: state.State, call_us: float) -> Iterator[drawing.Inputs]:
    """Inputs in the forms that trials by value put, of those that the reference stands, in random order; the timed mode
    of a task may show what eval mode does not. So many that calls of `call_us` take `FORMS_S`, however slow the machine
    is just now: who is looked at less closely there would be found sometimes."""
    fixed = choices.alike(reference.draw(), reference.draw())
    affordable = int(FORMS_S * 1e6 / (2 * FEW_SEEDS * max(1.0, call_us)))
    rounds = [plan for _ in range(ROUNDS) for plan in ENTROPY.sample(plans.INPUT_PLANS, len(plans.INPUT_PLANS))]
    for plan in rounds[: max(LEAST_FORMS, affordable)]:
        ENTROPY.turn(plan.kind)
        for make in undrawn.makers(plan, reference, fixed):
            inputs, found = make(reference.draw())
            if found and _gives_numbers(reference, inputs, weights):
                yield inputs
                break


def _gives_numbers(reference: Reference, inputs: drawing.Inputs, weights: state.State) -> bool:
    """Whether the reference answers, with finite numbers alone."""
    try:
        answer = reference.call(inputs, weights)
    except BadTask:
        return False
    return all(oracle.all_finite(t) for t in answer.tensors if t.is_floating_point() or t.is_complex())


def _call_once(checker: Checker) -> None:
    inputs = checker.reference.draw()
    expected = checker.reference.call(inputs, checker.reference.public, "plain", drawing.secret_seed())
    checker.session.show(inputs)
    checker.session.call(checker.form.request(checker.session.slots(expected.tensors)))


def _seeds_trial(task_class: str) -> dict[str, Any]:
    return {"kind": "seeds", "error": 0.0, "reference_error": 0.0, "bound": 0.0, "passed_class": task_class}


PAIRS = 8
"""Pairs of tensors of one answer whose products are compared, at the most."""


def _parts(tensors: Sequence[torch.Tensor], names: Mapping[int, str]) -> dict[str, torch.Tensor]:
    """What of an answer is compared: the tensors with `names`, by their places, and where two have one shape their
    product, whose mean is another one where one does not belong to the other (a mask that is kept, and was not used).
    """
    parts = {name: randomness.numbers(tensors[place]) for place, name in names.items()}
    pairs = [
        (a, b) for a, b in itertools.combinations(parts, 2) if parts[a].shape == parts[b].shape and parts[a].numel() > 1
    ]
    for one, other in pairs[:PAIRS]:
        a, b = parts[one], parts[other]
        parts[f"{one} times {other}"] = (a.double() * b.double()).to(torch.promote_types(a.dtype, b.dtype))
    return parts


@dataclass
class _Sample:
    """What is kept of answers to the same inputs, by the names of their parts: moments of every element, sums along
    each dimension, what comes again, where it begins, and whole values at `places`. `names`: those of the tensors that
    are looked at, by their places."""

    names: Mapping[int, str]
    places: dict[str, oracle.Places]
    sums: dict[str, torch.Tensor] = field(default_factory=dict)
    squares: dict[str, torch.Tensor] = field(default_factory=dict)
    thin: dict[str, list[torch.Tensor]] = field(default_factory=dict)
    along: dict[str, list[list[torch.Tensor]]] = field(default_factory=dict)
    repeats: dict[str, list[torch.Tensor]] = field(default_factory=dict)
    streams: dict[str, list[torch.Tensor]] = field(default_factory=dict)

    def add(self, tensors: Sequence[torch.Tensor]) -> None:
        parts = _parts(tensors, self.names)
        for name, places in self.places.items():
            value = parts[name]
            wide = value.double()
            self.sums[name] = self.sums[name] + wide if name in self.sums else wide
            self.squares[name] = self.squares[name] + wide**2 if name in self.squares else wide**2
            self.thin.setdefault(name, []).append(oracle.thinned(value, places))
            self.along.setdefault(name, []).append(randomness.sums_along(value))
            if name in self.names.values():
                self.repeats.setdefault(name, []).append(randomness.repeats(value))
                if len(streams := self.streams.setdefault(name, [])) < randomness.STREAMS:
                    streams.append(randomness.stream(value).clone())

    def compare_moments(self, own: Mapping[str, torch.Tensor]) -> None:
        """Means and variances of single elements against those of the reference's answers. Raises Unlike."""
        for name, thin in self.thin.items():
            mean, square = self.sums[name] / len(thin), self.squares[name] / len(thin)
            randomness.compare_moments(name, mean, square, own[name])

    def compare(self, own: Mapping[str, torch.Tensor]) -> None:
        """All that a single element or a share of them shows against answers of the reference. Raises Unlike."""
        self.compare_moments(own)
        for name, places in self.places.items():
            thin, own_thin = self._pair(own, name, places)
            randomness.compare_dependence(name, thin, own_thin)
            randomness.compare_shape(name, thin, own_thin)
            randomness.compare_levels(name, thin, own_thin)
            own_along = zip(*map(randomness.sums_along, own[name]), strict=True)
            for sums, own_sums in zip(zip(*self.along[name], strict=True), own_along, strict=True):
                randomness.compare_sums(name, torch.stack(sums), torch.stack(own_sums))
        for name, repeats in self.repeats.items():
            own_repeats = map(randomness.repeats, own[name])
            randomness.compare_repeats(name, torch.stack(repeats), torch.stack(list(own_repeats)))
        for name, streams in self.streams.items():
            own_streams = map(randomness.stream, own[name][: len(streams)])
            randomness.compare_streams(name, torch.stack(streams), torch.stack(list(own_streams)))
        singles = [name for name in self.names.values() if name in self.places]
        for chosen, other in itertools.permutations(singles, 2):
            if self.places[chosen] is self.places[other]:  # of one shape
                (one, own_one), (two, own_two) = (self._pair(own, each, self.places[each]) for each in (chosen, other))
                randomness.compare_determined(f"{other} beside {chosen}", one, two, own_one, own_two)

    def compare_pooled(self, own: Mapping[str, torch.Tensor]) -> None:
        """What shows in all elements together. Raises Unlike."""
        for name, places in self.places.items():
            randomness.compare_pooled(name, *self._pair(own, name, places))

    def compare_dependence(self, own: Mapping[str, torch.Tensor]) -> None:
        """How strongly elements move together, whatever they are. Raises Unlike."""
        for name, places in self.places.items():
            randomness.compare_dependence(name, *self._pair(own, name, places))

    def distances(self, own: Mapping[str, torch.Tensor]) -> list[float]:
        """Of the means of each tensor from those of the reference, squared."""
        made = ((own[name].double().mean(0) - total / len(self.thin[name])) for name, total in self.sums.items())
        return [float(difference.pow(2).sum()) for difference in made]

    def _pair(
        self, own: Mapping[str, torch.Tensor], name: str, places: oracle.Places
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.stack(self.thin[name]), torch.stack([oracle.thinned(value, places) for value in own[name]])


def compare_statistics(
    checker: Checker,
    inputs: drawing.Inputs,
    weights: Mapping[str, torch.Tensor],
    *,
    stressed: bool = False,
    seeded: float = SEEDED,
) -> None:
    """Answers of candidate and reference to the same inputs, one per seed for 64 seeds. Raises Wrong.

    What a few calls decide is looked at once more, with other answers. `seeded`: the share of the candidate's calls
    that begin under a seed of their own, where the task follows from one.
    """
    for is_last in (False, True):
        ENTROPY.turn("seeds")
        try:
            return _compare_once(checker, inputs, weights, stressed=stressed, seeded=seeded)
        except randomness.Unlike as unlike:
            if is_last or not unlike.may_be_chance:
                text = str(unlike) + (" (trial `seeds`, stressed)" if stressed else "")
                raise Wrong("WRONG_VALUES", text) from unlike


def compare_equals(checker: Checker, weights: state.State, *, seeded: float = SEEDED) -> None:
    """Whether equal samples and numbers still have random numbers of their own: who makes these of the bits of his
    inputs gives all of them one fate, and no draw holds many. Raises Wrong.

    Only how strongly answers move together is compared, since equal numbers leave order and normalisations to rounding.
    """
    reference = checker.reference
    fixed = choices.alike(reference.draw(), reference.draw())
    for values in (True, False):
        inputs, found = input_forms.repeated(reference.draw(), fixed, values=values)
        is_sound = found and _gives_numbers(reference, inputs, weights)
        if is_sound and not (values and _gives_integers(reference, inputs)):
            break
    else:
        return
    samples = max(size for tensor in leaves(inputs) for size in tensor.shape)
    for count in (FEW_SEEDS if samples >= MANY_SAMPLES else randomness.SEEDS, randomness.SEEDS):
        own, sample = _answers(checker, inputs, weights, count, seeded)
        try:
            return sample.compare_dependence(own)
        except randomness.Unlike as unlike:
            text = f"{unlike} (trial `seeds`, with equal samples or numbers)"
    raise Wrong("WRONG_VALUES", text)


def _compare_once(
    checker: Checker, inputs: drawing.Inputs, weights: Mapping[str, torch.Tensor], *, stressed: bool, seeded: float
) -> None:
    """Raises Unlike, and Wrong for an answer of another form.

    What the reference shows as well where it computes in other arithmetic is rounding: that is asked of differences in
    all elements together, and of all differences where inputs or weights are `stressed`.
    """
    own, sample = _answers(checker, inputs, weights, randomness.SEEDS, seeded)
    if not stressed:
        sample.compare(own)
    try:
        if stressed:
            sample.compare(own)
        sample.compare_pooled(own)
    except randomness.Unlike:
        call = functools.partial(checker.reference.call, inputs, weights)
        if not _is_rounding(call, own, sample, pooled_only=not stressed):
            raise


def _may_be_unlike(
    checker: Checker, inputs: drawing.Inputs, weights: Mapping[str, torch.Tensor], *, seeded: float = SEEDED
) -> bool:
    """Whether a few answers differ so that many are worth their time. Raises Wrong for an answer of another form."""
    own, sample = _answers(checker, inputs, weights, FEW_SEEDS, seeded)
    try:
        sample.compare_moments(own)
        sample.compare_pooled(own)
    except randomness.Unlike:
        return True
    return False


def _answers(
    checker: Checker, inputs: drawing.Inputs, weights: Mapping[str, torch.Tensor], count: int, seeded: float
) -> tuple[dict[str, torch.Tensor], _Sample]:
    """So many answers of the reference, by part, and what is kept of as many of the candidate's. Raises Wrong for one
    of another form.

    The candidate is seeded before some calls, as before each timed one, and not before others, as in a program, which
    seeds once: who tells them apart is unlike in either.
    """
    session, form = checker.session, checker.form
    runs = [checker.reference.call(inputs, weights, "plain", drawing.secret_seed()) for _ in range(count)]
    expected = runs[0]
    names = {
        place: form.place_name(place, expected)
        for place, tensor in enumerate(expected.tensors)
        if tensor.numel() and all(run.tensors[place].shape == tensor.shape for run in runs)
    }
    own: dict[str, torch.Tensor] = {}
    session.show(inputs)
    for number in range(count):
        slots = session.slots(expected.tensors)
        is_seeded = checker.facts.seeded and ENTROPY.random() < seeded
        seed = drawing.secret_seed() if is_seeded else None
        reply = session.call(form.request(slots, seed, compare_state=number == 0))
        form.compare(reply, expected)
        if number == 0:
            for place in reply.unpartnered & form.places_of_state(expected):
                names.pop(place, None)
            own = _stacked([_parts(run.tensors, names) for run in runs], set(names.values()))
            del runs
            lattices = {shape: oracle.lattice(shape) for shape in {values.shape[1:] for values in own.values()}}
            sample = _Sample(names, {name: lattices[values.shape[1:]] for name, values in own.items()})
        sample.add(session.answer(reply, slots).tensors)
    return own, sample


def _stacked(answers: Sequence[Mapping[str, torch.Tensor]], single: set[str]) -> dict[str, torch.Tensor]:
    """(calls, ...) of each part; of those that are not `single`, products, what overflows is left out."""
    stacked = {name: torch.stack([parts[name] for parts in answers]) for name in answers[0]}
    return {name: values for name, values in stacked.items() if name in single or oracle.all_finite(values)}


def _is_rounding(
    call: Callable[[str, int], Answer],
    own: Mapping[str, torch.Tensor],
    sample: _Sample,
    *,
    pooled_only: bool,
) -> bool:
    """Whether the reference, computing in TF32 or all in float32, is unlike itself too, and its means lie at least a
    quarter as far away as those of `sample`."""
    for how in ("tf32", "fp32"):
        other = _Sample(sample.names, sample.places)
        try:
            for _ in range(randomness.SEEDS):
                answer = call(how, drawing.secret_seed()).tensors
                dtypes = [own[sample.names[i]].dtype if i in sample.names else t.dtype for i, t in enumerate(answer)]
                other.add([t if t.is_complex() else t.to(d) for t, d in zip(answer, dtypes, strict=True)])
            if not pooled_only:
                other.compare(own)
            other.compare_pooled(own)
        except BadTask:
            continue
        except randomness.Unlike:
            pairs = zip(sample.distances(own), other.distances(own), strict=True)
            if all(mine <= OF_ROUNDING * theirs for mine, theirs in pairs):
                return True
    return False


def _stressed(reference: Reference, *, mapped: bool, inputs_too: bool) -> tuple[drawing.Inputs, state.State] | None:
    """The first form of inputs and weights that no draw shows and the reference stands: large weights, beside which
    noise is small, and where eval mode says nothing by value (`inputs_too`) also what trials by value show of inputs
    and of signs of weights."""
    weights = [reference.public]
    if mapped:
        other, model = reference.other_weights(), reference.model
        forms = itertools.product(weight_forms.SINGLES, weight_forms.CONSTANT_BUFFERS) if inputs_too else ()
        signed = [
            weight_forms.of_both_signs(model, other, each, reference.data, single=single) for single, each in forms
        ]
        made = [*(each for each in signed if each), other]
        large = [weight_forms.with_large_weights(model, each, LARGE, 2) for each in made]
        weights = [*(each for each in large if each), *(made if inputs_too else [])]
    elif not inputs_too:
        return None
    for values, factors in itertools.product(weights, (*input_forms.MIXTURES, ()) if inputs_too else ((),)):
        inputs = reference.draw()
        if inputs_too:
            inputs = _as_not_drawn(inputs, factors)
        if _gives_numbers(reference, inputs, values) and not (0.0 in factors and _gives_integers(reference, inputs)):
            return inputs, values
    return None


def _gives_integers(reference: Reference, inputs: drawing.Inputs) -> bool:
    """Whether ties may decide about some of its answer."""
    return any(not (t.is_floating_point() or t.is_complex()) for t in reference.call(inputs, reference.public).tensors)


def _as_not_drawn(inputs: drawing.Inputs, factors: Sequence[float]) -> drawing.Inputs:
    """With some elements times `factors`, others in what is constant, and those of masks in each other's places."""
    inputs, _ = input_forms.mixed(inputs, factors)
    inputs, _ = input_forms.with_other_constants(inputs, *input_forms.OTHERS[0 if factors else -1])
    inputs, _ = input_forms.with_outliers(inputs, inputs, 1.0)
    return inputs


def unlike_another_process(reference: Reference, session: Session, witness: Session, kept: list[Kept]) -> str | None:
    """How answers of timed calls differ from those of a fresh process with the same candidate (`witness`) to the same
    inputs, state and seeds; None where they do not.

    Numbers that were drawn before their call cannot follow from its seed, and what a process remembers no other one
    knows. Rounding may differ between processes: what counts is how far answers lie apart, measured by how far those
    of the reference do under different seeds.
    """
    form = Form(reference)
    spread: list[float] = []
    before: state.State = {}
    for call in kept:
        weights = {**session.weights, **call.state}
        if witness.mapped and any(weights[name] is not before.get(name) for name in weights):
            witness.set_weights(weights)
            before = weights
        if not spread:
            spread = _variances(functools.partial(reference.call, call.inputs, weights))
        witness.show(call.inputs)
        slots = witness.slots(call.tensors)
        if not witness.called:  # a first call may compile, or capture a graph, under random numbers of its own
            witness.call(form.request(slots, drawing.secret_seed()))
        reply = witness.call(form.request(slots, call.seed))
        answers = zip(witness.answer(reply, slots).tensors, call.tensors, spread, strict=True)
        for index, (again, timed, variance) in enumerate(answers):
            if index not in session.unpartnered and 0 < variance < math.inf:
                places = oracle.lattice(timed.shape)
                one, other = (oracle.thinned(tensor, places).double() for tensor in (timed, again))
                roundoff = unit_roundoff(timed.dtype) if timed.is_floating_point() else 0.0
                rounding = (ROUNDINGS * roundoff) ** 2 * float(one.pow(2).mean())
                if not float((one - other).pow(2).mean()) <= APART * 2 * variance + rounding:
                    return f"the same inputs under the same seed gave another answer in another process (place {index})"
    return None


def _variances(draw: Callable[[], Answer]) -> list[float]:
    """Of each tensor's elements over answers, in the mean, at a lattice of its elements."""
    first = draw()
    places = [oracle.lattice(tensor.shape) for tensor in first.tensors]
    answers = itertools.chain([first], (draw() for _ in range(SPREAD_SEEDS - 1)))
    thin = [[oracle.thinned(t, at) for t, at in zip(each.tensors, places, strict=True)] for each in answers]
    stacked = [torch.stack(samples).double() for samples in zip(*thin, strict=True)]
    return [float(each.var(0).mean()) if each.numel() else 0.0 for each in stacked]


def wrong_numbers(reference: Reference, session: Session, kept: list[Kept], patience_s: float) -> str | None:
    """What is wrong with the nesting of outputs of timed calls, and with numbers and texts among them, which do not
    differ with the seed where the reference's do not; compared as far as time allows."""
    begin = time.monotonic()
    for call in kept:
        draw = functools.partial(reference.call, call.inputs, {**session.weights, **call.state})
        due = draw().structure
        if call.structure != due and draw().structure == due:
            return f"the outputs of a timed call are nested as {call.structure}, not {due}"[:300]
        if time.monotonic() - begin > patience_s:
            break
    return None


def wrong_at_random(reference: Reference, session: Session, kept: list[Kept], patience_s: float) -> str | None:
    """What is wrong with outputs of timed calls, compared as far as time allows: one answer to two calls, where the
    reference gives two, or an answer that is none of its."""
    without = session.unpartnered
    begin = time.monotonic()

    def compared(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        return [randomness.numbers(t) for index, t in enumerate(tensors) if index not in without]

    def draw(call: Kept) -> list[torch.Tensor]:
        return compared(reference.call(call.inputs, {**session.weights, **call.state}, "plain").tensors)

    def alike(one: list[torch.Tensor], two: list[torch.Tensor]) -> bool:
        return all(state.same(a, b) for a, b in zip(one, two, strict=True))

    answers = [(call, compared(call.tensors)) for call in kept]
    for index, (call, one) in enumerate(answers):
        for other, two in answers[:index]:
            if alike(one, two) and not any(alike(draw(call), draw(other)) for _ in range(8)):
                return "two timed calls gave the same answer; the reference's differ"
    lattices = {shape: oracle.lattice(shape) for shape in {tensor.shape for _, own in answers for tensor in own}}
    beside = [
        random_answers.Beside(own, functools.partial(draw, call), [lattices[tensor.shape] for tensor in own])
        for call, own in answers
    ]
    if random_answers.drift(beside, patience_s):
        return "answers of timed calls lie together where the reference's do not"
    for each in beside:
        if each.stands_out():
            return "a timed call gave an answer that none of the reference's is like"
        if time.monotonic() - begin > patience_s:
            break
    return None
