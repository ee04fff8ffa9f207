"""One trial with its truth: how far any answer to it lies from that, and which classes this is within.

Bounds are those of `classes`, from the errors of the reference in this trial, which is called again, its inputs and
weights moved, where an answer misses them by little or lies beyond an edge.
"""

from __future__ import annotations

import contextlib
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from . import arithmetic, elements, oracle
from .classes import (
    OWN,
    RELAXED_CEILING,
    RELAXED_FLOOR,
    ROUNDING,
    Errors,
    least_exact,
    multiple,
    own_class,
    unit_roundoff,
)
from .drawing import Inputs, secret_seed
from .edges import MOVES, Edges
from .elements import MORE_JUMPS
from .last_of_equal import LastOfEqual
from .load import seed_everything
from .perturbations import neighbour, nudged, rounded_to_bf16_by_chance, told_apart
from .plans import ONE_SIDED, PRUNED, RANGE_PLANS, SLIGHT, Plan
from .reading import hosted, read
from .reference import Answer, BadTask, Reference
from .tensors import leaves, map_leaves
from .traits import is_integer

NUDGES = (0.25, 1.0, 2.0)
"""By which share of what an answer may err before it is rounded, see `multiple`, inputs and weights are moved to see
where the task jumps, in turn."""
_NO_DRAW = (BadTask, torch.OutOfMemoryError)
"""A reference may refuse shares that no longer sum to one, and a large task leaves no room for other inputs."""
AS_MANY = 4
"""How many times as many integers as the reference an answer may get wrong where these are not isolated."""
REACH = 32
"""Missing a bound by more than this factor is no matter of luck: arithmetic of another class errs so."""
DRAWS = 8
"""How often the reference's error is drawn again: where rounding moves few elements far, most draws show nothing."""
MOST_OWN = 1e-2
"""What the reference itself may err by at the most."""
CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}
"""By the dimensions of a batch of images or volumes."""
_OF_TRUTH = (torch.float64, torch.complex128)


def _laid_channels_last(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(memory_format=CHANNELS_LAST.get(tensor.dim(), torch.preserve_format))


def _raised(
    own: list[float], found: list[list[float]], pick: Callable[[list[float]], float], of_truth: list[bool]
) -> list[float]:
    """Per tensor the larger of its own error and of what is picked from those found; what had none keeps none, unless
    truth is computed as it is."""
    picked = (pick(list(column)) for column in zip(*found, strict=True))
    several = zip(own, picked, of_truth, strict=True)
    return [max(error, other) if error > 0.0 or same else 0.0 for error, other, same in several]


@dataclass
class Case:
    """One trial with its truth: the yardstick for any answer to it."""

    reference: Reference
    plan: Plan
    inputs: Inputs
    weights: Mapping[str, torch.Tensor]
    seed: int
    jumpy: bool
    """The task is known to jump (rounding, argmax, routing). Integers may in half precision all the same: what is known
    comes of moves by far less than its roundoff."""
    ordinary: Sequence[float] = ()
    """Root mean square of each tensor of truth for inputs as they are; only matters where answers may shrink."""
    only: Sequence[oracle.Places] | None = None
    """Places, per tensor, that stand for all of it (`oracle.lattice`): no more is kept, and no more of an answer looked
    at. For questions about a task with large answers, never about a candidate's."""
    copies: list[torch.Tensor] = field(init=False)
    """For each tensor of an answer the first input of its shape; empty where one has none."""
    answer_bytes: int = field(init=False)
    """Of a whole answer."""
    truth: Answer = field(init=False)
    """Small tensors of it in the host's memory."""
    noise: Answer = field(init=False)
    """What the reference answers, where it answers."""
    _plain: list[torch.Tensor] = field(init=False)
    """The same where truth is."""
    _overflows: bool = field(init=False)
    """Whether truth is beyond the range of an answer's dtype somewhere."""
    jumps: list[oracle.Jumps | None] = field(init=False)
    unjudged: list[torch.Tensor | None] = field(init=False)
    undecided: set[int] = field(init=False, default_factory=set)
    """Tensors of the answer that ties leave open, where that was asked: nothing in them counts as wrong."""
    _known: list[oracle.KnownTruth] = field(init=False)
    """Of each tensor of truth; what stands for all of it is others in every trial."""
    _own: dict[str, Errors] = field(init=False, default_factory=dict)
    """Errors of the reference in the arithmetic of a class."""
    _redrawn: set[str] = field(init=False, default_factory=set)
    """The classes for which more draws of the reference's errors were taken."""
    _resliced: set[str] = field(init=False, default_factory=set)
    """The classes for which more draws of the reference's slices were taken."""
    _edges: Edges = field(init=False)
    _beyond_all: list[torch.Tensor] | None = field(init=False, default=None)
    """Truth where what stands for infinity is beyond all, once an answer asked for it; empty where there is none."""
    _counts: list[int] | None = field(init=False, default=None)
    """Per tensor the most jumps in more draws of the reference, where an answer asked for them."""

    def __post_init__(self) -> None:
        whole = self.reference.truth(self.inputs, self.weights, self.seed)
        same = [next((t for t in leaves(self.inputs) if t.shape == made.shape), None) for made in whole.tensors]
        found = [t for t in same if t is not None]
        copies = self._thinned(Answer("", found)).tensors if len(found) == len(same) else []
        truth = self._thinned(whole)
        del whole
        noise = self.reference.call(self.inputs, self.weights, "plain", self.seed)
        self.answer_bytes, self.noise = sum(t.nbytes for t in noise.tensors), self._thinned(noise)
        del noise
        kept, count = hosted([*truth.tensors, *self.noise.tensors, *copies]), len(truth.tensors)
        self.truth, self._plain = Answer(truth.structure, kept[:count]), kept[count : 2 * count]
        self.copies = kept[2 * count :]
        sizes = self._learn_truth()
        pairs = list(zip(self._plain, self.truth.tensors, strict=True))
        half = self.reference.half or any(t.dtype in OWN for t in (*leaves(self.inputs), *self.weights.values()))
        self.jumps = [
            oracle.find_jumps(a, t)
            if self.jumpy or (half and is_integer(a)) or elements.rounds_to_other(a, t)
            else None
            for a, t in pairs
        ]
        self._edges = Edges(self.truth.tensors, self._plain, self.jumps, self.jumpy, self._answer_to_move)
        self.unjudged = [elements.unjudged(a, size, t) for size, (a, t) in zip(sizes, pairs, strict=True)]
        self._own[self.own] = self._with_usual(self._errors_of_kept(self._plain))

    def _learn_truth(self) -> list[oracle.Size]:
        """Its tensors with infinities where they are beyond what an answer's dtype holds, and what is known of them;
        gives the sizes of what the reference answers."""
        truths = self.truth.tensors
        places = [oracle.lattice(t.shape) for t in truths]
        self._known, sizes = oracle.KnownTruth.of_each(truths, places, self._plain)
        trios = zip(self._known, self._plain, strict=True)
        in_range = [elements.within_range(known.truth, known.size, plain.dtype) for known, plain in trios]
        cut = [index for index, (made, was) in enumerate(zip(in_range, truths, strict=True)) if made is not was]
        self._overflows = any(elements.lies_beyond(in_range[index], truths[index]) for index in cut)
        for index in cut:
            ((self._known[index],), _) = oracle.KnownTruth.of_each([in_range[index]], [places[index]])
        self.truth = Answer(self.truth.structure, in_range)
        return sizes

    def _thinned(self, answer: Answer) -> Answer:
        """An answer as far as it is looked at; one that was made from what is kept is as it should be."""
        if self.only is None:
            return answer
        pairs = zip(answer.tensors, self.only, strict=True)
        return Answer(answer.structure, [oracle.thinned(t, places) for t, places in pairs])

    def _kept(self, answer: Answer) -> Answer:
        """That, and where it is compared: the many small tensors that a call changes would each be waited for."""
        return Answer(answer.structure, hosted(self._thinned(answer).tensors))

    def forget(self) -> None:
        """Let go of the answers, which may be large; inputs and weights stay."""
        self.truth = self.noise = Answer("", [])
        self._plain = []
        self.jumps, self.unjudged, self._known, self._own, self.undecided = [], [], [], {}, set()
        self._edges = Edges([], [], [], self.jumpy, self._answer_to_move)

    @classmethod
    def where_stood(
        cls,
        reference: Reference,
        plan: Plan,
        inputs: Inputs,
        weights: Mapping[str, torch.Tensor],
        jumpy: bool,
        ordinary: Sequence[float] = (),
        only: Sequence[oracle.Places] | None = None,
    ) -> Case | None:
        """The trial under a secret seed; None where the reference refuses what the harness has changed. Raises BadTask
        where it refuses what its own task draws."""
        try:
            return cls(reference, plan, inputs, weights, secret_seed(), jumpy, ordinary, only)
        except BadTask:
            if plan.is_drawn:
                raise
            return None

    @property
    def noise_errors(self) -> list[float]:
        """The largest error of the reference itself, per tensor, all TF32 off."""
        return self.own_errors.worst

    @property
    def sizes(self) -> list[float]:
        """Root mean square of each tensor of truth, 0.0 of integers."""
        return [known.size.rms for known in self._known]

    @property
    def own(self) -> str:
        return own_class(self.computed_in)

    @property
    def computed_in(self) -> list[torch.dtype]:
        """What each tensor of the answer is computed in: its dtype, or half precision where it is cast from that."""
        halved = self.reference.halved
        return [halved[n].dtype if n in halved else t.dtype for n, t in enumerate(self.noise.tensors)]

    def _with_usual(self, own: Errors) -> Errors:
        """No less than what the reference usually errs by where it computes in half precision."""
        worst, bulk = list(own.worst), list(own.bulk)
        for index, usual in self.reference.halved.items():
            if index < len(worst):  # of the last of some calls only outputs are compared
                worst[index], bulk[index] = max(worst[index], usual.worst), max(bulk[index], usual.bulk)
        return Errors(worst, bulk, own.slices)

    @property
    def own_errors(self) -> Errors:
        """Of the reference, all TF32 off."""
        return self._own[self.own]

    @property
    def reference_error(self) -> float:
        return max(self.noise_errors, default=0.0)

    @property
    def sound(self) -> bool:
        """Whether this trial counts: truth is finite, or the reference infinite where it is, in few places and not for
        want of range; the reference itself passes, and ties do not decide all of the answer."""
        known = [(k, n) for k, n in zip(self._known, self._plain, strict=True) if k.truth.is_floating_point()]
        finite = all(k.is_finite or (not self._overflows and elements.is_infinite_alike(n, k.truth)) for k, n in known)
        if not finite or any(mask is not None for mask in self.unjudged):
            return False
        if len(self.truth.tensors) == 1 and not self._is_posed():
            return False  # no part of it is left where ties decide
        return self._is_determined() and self._is_posed() and self._stands_as_shipped()

    def _is_posed(self) -> bool:
        """Whether the reference itself passes, and jumps are told from noise, in what ties do not leave open."""
        compared = (index for index in range(len(self.jumps)) if index not in self.undecided)
        return self.is_well_posed and all(map(self._tells_jumps, compared))

    @property
    def is_well_posed(self) -> bool:
        """Whether the reference itself passes, by all of its errors that are known: where truth is computed as it is,
        in float64, more draws may have shown that these inputs, a roundoff off, have another answer."""
        return self.reference_error <= MOST_OWN

    def counts(self, answer: Answer, errors: Errors, passed: str | None, before: str | None) -> bool:
        """Whether this trial counts for an answer with these errors, of the class `passed` and of that `before` until
        then. It does not where the reference itself misses its bound when what it adds up is rounded otherwise, and the
        answer misses it in such elements alone, and by no more. Of constant channels, which have no variance, a
        reference may be right by luck, as sums of equal numbers are exact: behind each normalisation any other rounding
        is hundreds of times as large. Inputs stay as they are, since a reference may ask whether they are equal."""
        if passed == before or not self.plan.in_forms or self.plan in RANGE_PLANS:
            return True
        bounds = self.bounds(self.own)
        missed = [n for n, (error, bound) in enumerate(zip(errors.worst, bounds, strict=True)) if not error <= bound]
        if not missed or any(oracle.is_exact(self.truth.tensors[n]) for n in missed):
            return True
        drawn = [way() for way in (*[self._answer_rounded_otherwise] * DRAWS, self._answer_laid_last)]
        shaky = [self._kept(each).tensors for each in drawn if each and self._is_beyond(each)]
        got, truth = self._kept(answer).tensors, self.truth.tensors
        return not shaky or not all(
            elements.is_as_far(got[n], [each[n] for each in shaky], truth[n], bounds[n]) for n in missed
        )

    def _is_beyond(self, answer: Answer) -> bool:
        return max(self._errors(answer).worst, default=0.0) > MOST_OWN

    def _stands_as_shipped(self) -> bool:
        """Whether the reference gives no nan where truth is a number when nothing looks over its shoulder, too: in eval
        mode attention takes a fast path, in which a row that is masked as a whole is nan."""
        if not self.plan.in_forms:
            return True
        try:
            given = self.reference.call(self.inputs, self.weights, "shipped", seed=self.seed)
        except BadTask:
            return False
        pairs = [p for p in zip(self.truth.tensors, self._kept(given).tensors, strict=True) if p[0].is_floating_point()]
        return not any(read(*((got.isnan() & ~truth.isnan()).any() for truth, got in pairs)))

    def _tells_jumps(self, index: int) -> bool:
        """Whether as many jumps as an answer may have would still be isolated ones: inputs of the judge's making can
        lie so near one another that rounding chooses between them everywhere (routing by logits times 1e-6)."""
        jumps = self.jumps[index]
        if jumps is None:
            return True
        known = max(jumps.count, self._wrong_integers(index))  # where too many are wrong none is called isolated
        return self._jumps_allowed(index, known) <= oracle.most_isolated(jumps.mask.numel())

    def _is_determined(self) -> bool:
        """Whether there is an answer that ties do not leave open, or a part of one; what they do is `undecided` then.

        Choices in the answer, and in a task that jumps or chooses all of it, have to stay when equal inputs are told
        apart: which of several comes first is nobody's promise, and inputs of the judge's making hold ties that no draw
        does (rectified ones times -1), and so do its weights (rows of zeros)."""
        self.undecided = self._left_open()
        if self.undecided:
            self._own = {self.own: self._with_usual(self._errors_of_kept(self._plain))}
        return not self.undecided or len(self.undecided) < len(self.truth.tensors)

    def _left_open(self) -> set[int]:
        """Places of the answer that ties decide."""
        tensors = self.truth.tensors
        compared = {i for i, t in enumerate(tensors) if t.dtype is torch.bool}
        chosen = {i for i, t in enumerate(tensors) if is_integer(t) or self.jumpy or self.reference.chooses} - compared
        steps, others = secret_seed(), secret_seed()
        if not self.plan.may_tie:
            saturates = self.reference.chooses and self.plan.factor > 1.0
            return self._moved_by(0.0, steps) & (chosen | compared) if saturates else set()
        found, every = set[int](), set(range(len(tensors)))
        if any(t.is_complex() for t in leaves(self.inputs)) and self._lies_on_a_cut(steps):
            return every
        # what is first when all are a little larger is last when they are as much smaller, and of what stays equal in
        # either case that which comes last is chosen in one of them
        ways = ((1.0, steps), (-1.0, steps)) if self.reference.chooses else ((1.0, steps), (1.0, others))
        for way in ways if chosen else ():
            found |= self._moved_by(*way) & chosen
            if found == every:
                return found
        if self.plan is PRUNED:
            found |= self._chosen_by_equal_weights()
        if compared and self.reference.chooses:
            found |= self._moved_by(0.0, steps) & compared
        if compared - found:  # a comparison with zero is another one a little above it, or else a little below
            found |= self._moved_by(1.0, steps) & self._moved_by(-1.0, steps) & compared
        return found

    def _moved_by(self, towards: float, steps: int) -> set[int]:
        """Places of the answer that are others when equal inputs are told apart, upwards (1), downwards (-1) or not at
        all (0), save upwards with the last of equal elements chosen; `steps`: the seed of how far."""
        with LastOfEqual() if towards <= 0 and self.reference.chooses else contextlib.nullcontext():
            return self._others(self._told_apart(towards, steps), self.weights)

    def _told_apart(self, towards: float, steps: int) -> Inputs:
        seed_everything(steps)
        wide = arithmetic.cast(self.inputs, torch.float64)
        told: Inputs = map_leaves(wide, lambda t: told_apart(t, towards))
        return told

    def _lies_on_a_cut(self, steps: int) -> bool:
        """Whether an element of the answer is another one to one side of the inputs alone, as the angle of a negative
        number is: on which side rounding leaves it is nobody's promise. What the reference asks of such numbers
        themselves is another one to either side."""
        sides = [self._answers_moved(self._told_apart(towards, steps), self.weights) for towards in (1.0, -1.0)]
        return any(not torch.equal(above, below) for above, below in zip(*sides, strict=False))

    def _chosen_by_equal_weights(self) -> set[int]:
        """Places of the answer that are others when equal weights are told apart, and not when all are moved alike, as
        where a weight is compared with zero or divided by a size. Asked of every task: one that chooses for few rows
        seldom shows that it jumps."""
        wide = arithmetic.cast(dict(self.weights), torch.float64)
        apart = self._others(self.inputs, {name: told_apart(value, 1.0) for name, value in wide.items()})
        if not apart:
            return set()
        alike = {name: told_apart(value, 1.0, alike=True) for name, value in wide.items()}
        return apart - self._others(self.inputs, alike)

    def _others(self, inputs: Inputs, weights: Mapping[str, torch.Tensor]) -> set[int]:
        """Places of the answer in which truth for these is another one: at all where the task chooses, since of more
        than two equal ones an answer may have any, else in more than `MORE_JUMPS` elements."""
        allowed = 0 if self.reference.chooses else MORE_JUMPS
        counts = read(*(moved.sum() for moved in self._answers_moved(inputs, weights)))
        return {index for index, count in enumerate(counts) if count > allowed}

    def _answers_moved(self, inputs: Inputs, weights: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        """Which elements of truth are others for these; none where the reference refuses them."""
        try:
            other = self._kept(self.reference.truth(inputs, weights, self.seed)).tensors
        except BadTask:
            return []
        return [elements.moved_far(*pair) for pair in zip(self.truth.tensors, other, strict=True)]

    def bounds(self, name: str) -> list[float]:
        """Per tensor, the largest error that class `name` allows an element."""
        return self._bounds(name, [e.worst for e in self._yardsticks(name)])

    def _yardsticks(self, name: str) -> list[Errors]:
        """Errors of the reference in its own arithmetic, then in that of class `name` where that is another."""
        return [self._reference_in(n) for n in dict.fromkeys((self.own, name))]

    def _reference_in(self, name: str) -> Errors:
        if name not in self._own:
            self._own[name] = self._errors_under("tf32" if name == "tf32" else "autocast")
            if name == "tf32" and self.reference.device != "cpu":  # on a CPU operands were rounded already
                rounded = self._errors_drawn("tf32-rounded", self.seed)
                self._own[name] = self._own[name].or_larger(rounded) if rounded else self._own[name]
        return self._own[name]

    def _bounds(self, name: str, errors: list[list[float]]) -> list[float]:
        """What class `name` allows where the reference errs like this: in its own arithmetic, and in that of `name`."""
        base = [self._own_bound(index, error) for index, error in enumerate(errors[0])]
        if len(errors) == 1:
            return base
        pairs = list(zip(base, errors[1], strict=True))
        if name == "tf32":
            return [max(b, 4 * e) for b, e in pairs]
        return [max(b, min(RELAXED_CEILING, max(RELAXED_FLOOR, 4 * e if math.isfinite(e) else 0.0))) for b, e in pairs]

    def _own_bound(self, index: int, error: float) -> float:
        answer = self.noise.tensors[index]
        if not (answer.is_floating_point() or answer.is_complex()):
            return 0.0
        if self.noise_errors[index] == 0.0 and index in self.reference.lifted:
            return 0.0
        bound = multiple(self.computed_in[index]) * max(error, unit_roundoff(answer.dtype))
        return bound if self.plan in RANGE_PLANS else max(bound, self._rounding(index))

    def _rounding(self, index: int) -> float:
        """What rounding at the size of an ordinary answer amounts to in an answer as small as this one."""
        truth = self.truth.tensors[index]
        if not (self.ordinary and self.plan.may_shrink and (truth.is_floating_point() or truth.is_complex())):
            return 0.0
        size = self.sizes[index]
        return ROUNDING * unit_roundoff(torch.float32) * self.ordinary[index] / size if size > 0.0 else 0.0

    def _errors_under(self, how: str) -> Errors:
        """Errors of the reference under reduced precision; as in its own where it does not run there at all."""
        try:
            return self._errors(self.reference.call(self.inputs, self.weights, how, self.seed))
        except BadTask:
            return self._own[self.own]

    def errors(self, answer: Answer, *, forged: bool = False) -> Errors:
        """Errors per tensor; isolated jumps are left out while they are no more than `MORE_JUMPS` beyond `multiple`
        times the reference's, and the reference gives answers like them when it is moved; that is not asked for answers
        that are `forged`. Far from ordinary inputs a task that does not jump for these may, as attention does that
        chooses by scores of 1e10: there the same holds of isolated elements, however few they are."""
        return self._errors(answer, patient=not forged, far=self.plan in RANGE_PLANS and not forged)

    def _errors(self, answer: Answer, *, patient: bool = True, far: bool = False) -> Errors:
        return self._errors_of_kept(self._kept(answer).tensors, patient=patient, far=far)

    def _errors_of_kept(self, tensors: list[torch.Tensor], *, patient: bool = True, far: bool = False) -> Errors:
        left_out = [self._left_out(index, got, patient=patient) for index, got in enumerate(tensors)]
        found = self._errors_without(tensors, left_out)
        is_large = far or (patient and self.plan.factor > 1.0 and tensors is not self._plain)
        if is_large and self._outgrows(tensors, found, left_out):
            found = self._errors_without(tensors, left_out)
        far_off = [
            index
            for index, (got, error) in enumerate(zip(tensors, found.worst, strict=True))
            if far and error > RELAXED_FLOOR and self.jumps[index] is None and got.numel() <= oracle.WHOLE
        ]
        for index in far_off:
            left_out[index] = self._jumped_far(index, tensors[index], left_out[index])
        return self._errors_without(tensors, left_out) if far_off else found

    def _errors_without(self, tensors: list[torch.Tensor], left_out: list[torch.Tensor | None]) -> Errors:
        found = oracle.errors_of(self._known, tensors, left_out)
        for index in self.undecided:
            found[index] = 0.0, 0.0, torch.zeros_like(found[index][2])
        worst, bulk, slices = (list(column) for column in zip(*found, strict=True)) if found else ([], [], [])
        return Errors(worst, bulk, slices)

    def _left_out(self, index: int, got: torch.Tensor, *, patient: bool) -> torch.Tensor | None:
        """Elements that do not count: isolated jumps, what the reference itself cannot compute, and integers that are
        the reference's own, however often it lies beyond an edge."""
        mask, jumps = self.unjudged[index], self.jumps[index]
        if jumps is None:
            return mask
        truth, others = self.truth.tensors[index], got
        if exact := not (got.is_floating_point() or got.is_complex()):
            others = torch.where(got == self._plain[index], truth.to(got.dtype), got)
        own = jumps if others is self._plain[index] else oracle.find_jumps(others, truth)
        jumped = jumps.mask | own.mask if self._may_jump(index, jumps.count, own.count) else jumps.mask
        if exact:
            jumped = jumped | self._beyond_edges(index, others)
        jumped = self._edges.reached(index, got, jumped, patient=patient)
        if exact:
            jumped = jumped | (others != got)
        elif self.jumpy and self.reference.has_edges and patient:
            jumped = jumped | self._jumped_within(index, got, jumped)
        return jumped if mask is None else mask | jumped

    def _jumped_within(self, index: int, got: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Elements beside `mask` that differ by a jump of what they are made of, as the reference's do when it is
        moved, or are ill-conditioned. Its own are left out as they are."""
        truth = self.truth.tensors[index]
        found = oracle.find_inner_jumps(got, truth).mask & ~mask
        if got is self._plain[index] or not bool(found.any()):
            return found
        known = self._edges.ill_conditioned(index, got, found)
        rest = found & ~known
        return known | self._edges.jumped_so(index, got, rest) if bool(rest.any()) else known

    def _jumped_far(self, index: int, got: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """Beside `mask` isolated elements at which the reference gives an answer like this, too, when it is moved."""
        jumped = oracle.find_jumps(got, self.truth.tensors[index], floor=RELAXED_FLOOR).mask
        jumped = self._edges.reached(index, got, jumped, patient=True)
        return jumped if mask is None else mask | jumped

    def _outgrows(self, tensors: list[torch.Tensor], found: Errors, left_out: list[torch.Tensor | None]) -> bool:
        """Whether elements of an answer are as they would be if the large numbers that stand for infinity in the
        reference, and that these inputs outgrow, were beyond all; they are `left_out` then."""
        limits = [RELAXED_FLOOR] * len(tensors) if self.plan in RANGE_PLANS else self.bounds(self.own)
        missed = [n for n, pair in enumerate(zip(found.worst, limits, strict=True)) if not pair[0] <= pair[1]]
        if missed and self._beyond_all is None:
            others = self.reference.beyond_all(self.inputs, self.weights, self.seed)
            self._beyond_all = self._kept(others).tensors if others else []
        if not (missed and self._beyond_all):
            return False
        any_left = False
        for index in missed:
            got, truth, other = tensors[index], self.truth.tensors[index], self._beyond_all[index]
            if truth.is_complex():
                continue
            if oracle.is_exact(truth):
                alike = (got == other.to(got.dtype)) & (other != truth)
            else:
                alike = elements.moved_far(truth, other) & (
                    oracle.element_errors(got, other, oracle.rms_of(truth)) <= limits[index]
                )
            if bool(alike.any()):
                mask, any_left = left_out[index], True
                left_out[index] = alike if mask is None else mask | alike
        return any_left

    def _beyond_edges(self, index: int, others: torch.Tensor) -> torch.Tensor:
        """Where integers differ from truth, isolated or not, while they are no more than the reference's own allow: of
        few, or in bfloat16, it may get many wrong."""
        found = others != self.truth.tensors[index].to(others.dtype)
        count, allowed = int(found.sum()), AS_MANY * self._wrong_integers(index) + MORE_JUMPS
        if allowed < count <= REACH * allowed:
            allowed = max(allowed, AS_MANY * self._most_jumps()[index] + MORE_JUMPS)
        return found if count <= allowed else torch.zeros_like(found)

    def _wrong_integers(self, index: int) -> int:
        """How many the reference gets wrong, isolated or not; 0 for other tensors."""
        plain, truth = self._plain[index], self.truth.tensors[index]
        exact = not (plain.is_floating_point() or plain.is_complex())
        return int((plain != truth.to(plain.dtype)).sum()) if exact else 0

    def _may_jump(self, index: int, known: int, found: int) -> bool:
        """Whether an answer may lie on the other side of so many edges where the reference does at `known`. A few are a
        matter of luck, too: where it misses by little the most of more draws stand for the reference's."""
        allowed = self._jumps_allowed(index, known)
        if allowed < found <= REACH * allowed:
            allowed = self._jumps_allowed(index, max(known, self._most_jumps()[index]))
        return found <= allowed

    def _jumps_allowed(self, index: int, known: int) -> int:
        return multiple(self.computed_in[index]) * known + MORE_JUMPS

    def _most_jumps(self) -> list[int]:
        if self._counts is None:
            self._counts = [0] * len(self.truth.tensors)
            for drawn in (self._answer_to_moved(self._moved_by_rounding) for _ in range(DRAWS)):
                if drawn is not None:
                    pairs = zip(self._kept(drawn).tensors, self.truth.tensors, self._counts, strict=True)
                    self._counts = [max(most, oracle.find_jumps(a, t).count) for a, t, most in pairs]
        return self._counts

    def passes(self, errors: Errors, name: str) -> bool:
        """Whether every tensor's error is within class `name`. May raise the bounds, see `_learn_from_rounding`."""
        if self._passes(errors, name):
            return True
        return self._learn_from_rounding(errors, name) and self._passes(errors, name)

    def _passes(self, errors: Errors, name: str) -> bool:
        if not all(e <= b for e, b in zip(errors.worst, self.bounds(name), strict=True)):
            return False
        if name == "relaxed":
            return True
        bulk = self._bounds(name, [e.bulk for e in self._yardsticks(name)])
        if not all(e <= b for e, b in zip(errors.bulk, bulk, strict=True)):
            return False
        return not self._loses(errors, name) or (self._learn_slices(name) and not self._loses(errors, name))

    def _loses(self, errors: Errors, name: str) -> bool:
        own, dtypes = self._reference_in(name), [t.dtype for t in self.noise.tensors]
        return any(errors.lost_slices(own, each) > 0 for each in (dtypes, self.computed_in))

    def _learn_slices(self, name: str) -> bool:
        """Raise the reference's errors of slices to those of more draws, once: of what rounding does, and in a task
        that jumps of where it does. False where nothing was learned."""
        if name in self._resliced:
            return False
        self._resliced.add(name)
        own = self._reference_in(name)
        for _ in range(DRAWS):
            drawn = self._answer_to_moved(self._moved_for_slices)
            if drawn is not None:
                pairs = zip(self._kept(drawn).tensors, self._known, strict=True)
                found = [oracle.slice_errors(oracle.thinned(t, k.places), k.thin) for t, k in pairs]
                own = own.or_larger(Errors(own.worst, own.bulk, hosted(found)))
        self._own[name] = own
        return True

    def _learn_from_rounding(self, errors: Errors, name: str) -> bool:
        """Raise the reference's errors in the arithmetic of class `name` to those of more draws of what its rounding
        does: once, and only for answers that miss by so little that it can matter, or where truth is computed as the
        reference is, in float64, so that nothing is known of what rounding does. False where nothing was learned. Not
        where the task jumps: what is rounded otherwise may lie beyond an edge."""
        of_truth = [tensor.dtype in _OF_TRUTH for tensor in self.noise.tensors]
        near = all(e <= REACH * b or same for e, b, same in zip(errors.worst, self.bounds(name), of_truth, strict=True))
        if name in self._redrawn or self.jumpy or not near:
            return False
        self._redrawn.add(name)
        others = {"tf32": self._errors_by_chance, "relaxed": self._errors_in_bf16}
        draws = (
            [others[name]] * DRAWS
            if name in others
            else [self._errors_of_neighbours] * DRAWS + [self._errors_laid_last]
        )
        found = [drawn for drawn in (draw() for draw in draws) if drawn is not None]
        if not found:
            return False
        own = self._reference_in(name)
        pick: Callable[[list[float]], float] = statistics.median if name == "tf32" else max
        worst = _raised(own.worst, [e.worst for e in found], pick, of_truth)
        bulk = _raised(own.bulk, [e.bulk for e in found], pick, of_truth)
        self._own[name] = Errors(worst, bulk, own.slices)
        return True

    def _errors_of_neighbours(self) -> Errors | None:
        answer = self._answer_to_neighbours()
        return None if answer is None else self._errors(answer)

    def _errors_laid_last(self) -> Errors | None:
        answer = self._answer_laid_last()
        return None if answer is None else self._errors(answer)

    def _errors_by_chance(self) -> Errors | None:
        """In TF32, operands rounded up or down by chance: which one is drawn with the seed."""
        return self._errors_drawn("tf32-by-chance", secret_seed())

    def _errors_in_bf16(self) -> Errors | None:
        """Under autocast, inputs and weights rounded to bfloat16, too: so they are where all is kept in it."""
        answer = self._answer_to_moved(rounded_to_bf16_by_chance, "autocast")
        return None if answer is None else self._errors(answer)

    def _errors_drawn(self, how: str, seed: int) -> Errors | None:
        answer = self._answer_drawn(how, seed)
        return None if answer is None else self._errors(answer)

    def _answer_to_neighbours(self) -> Answer | None:
        """In its own arithmetic, to float32 inputs and weights that are each the next number above or below."""
        return self._answer_to_moved(neighbour)

    def _moved_by_rounding(self, tensor: torch.Tensor) -> torch.Tensor:
        """As far as rounding goes."""
        return nudged(tensor, 1.0) if tensor.dtype in OWN else neighbour(tensor)

    def _moved_for_slices(self, tensor: torch.Tensor) -> torch.Tensor:
        """The same, and in float32 as far as an answer may err where that meets edges."""
        edges = self.jumpy and tensor.dtype not in OWN
        return nudged(tensor, multiple(tensor.dtype)) if edges else self._moved_by_rounding(tensor)

    def _answer_to_move(self, number: int) -> list[torch.Tensor] | None:
        """What the reference gives to move `number`, from 1 on (see `Edges`); None where it refuses."""
        drawn = self._answer_to_nudges(number) if number <= MOVES else self._answer_in_tf32()
        return None if drawn is None else self._kept(drawn).tensors

    def _answer_to_nudges(self, number: int) -> Answer | None:
        share = NUDGES[number % len(NUDGES)]
        return self._answer_to_moved(lambda t: nudged(t, share * multiple(t.dtype)))

    def _answer_to_moved(self, moved: Callable[[torch.Tensor], torch.Tensor], how: str = "plain") -> Answer | None:
        seed_everything(secret_seed())  # a call of the reference leaves the generator where the one before left it
        try:
            inputs = map_leaves(list(self.inputs), lambda t: moved(t.to(self.reference.device)))
            weights = {key: moved(value) for key, value in self.weights.items()}
            return self.reference.call(inputs, weights, how, self.seed)
        except _NO_DRAW:
            return None

    def _answer_laid_last(self) -> Answer | None:
        """In its own arithmetic with images channels-last, where there are any: libraries have other kernels for these,
        which add up in another order, as no other inputs would make them."""
        images = any(t.dim() in CHANNELS_LAST for t in leaves(self.inputs))
        return self._answer_to_moved(_laid_channels_last) if images else None

    def _answer_in_tf32(self) -> Answer | None:
        return self._answer_drawn("tf32-by-chance", secret_seed())

    def _answer_rounded_otherwise(self) -> Answer | None:
        """In its own arithmetic with sums, products and convolutions rounded to a neighbour."""
        return self._answer_drawn("sums-by-chance", secret_seed())

    def _answer_drawn(self, how: str, seed: int) -> Answer | None:
        try:
            return self.reference.call(self.inputs, self.weights, how, seed)
        except _NO_DRAW:
            return None

    def best_class(self, errors: Errors, *, relaxed: bool) -> str | None:
        """The exactest class whose bound holds; `relaxed` only where the task allows it."""
        order = [self.own]
        if self.own == "fp32":
            order.append("tf32")
        if relaxed and self.own != "exact":
            order.append("relaxed")
        return next((name for name in order if self.passes(errors, name)), None)

    def class_in_range(self, errors: Errors, before: str, *, relaxed: bool) -> str | None:
        """The class after a trial far from ordinary inputs, `before` it. There an answer need only hold `range_bounds`;
        but what was tf32 is fp16, and `relaxed` where the task allows it, when it leaves the bound of tf32 for other
        inputs. Large weights and related rows magnify what rounding does, too."""
        if before == "tf32" and not self.plan.in_forms:
            return self.best_class(errors, relaxed=False) or ("relaxed" if relaxed else None)
        if self._is_in_range(errors):
            if before == "tf32" and self.plan in ONE_SIDED and max(errors.worst, default=0.0) > SLIGHT:
                return self.best_class(errors, relaxed=False) or ("relaxed" if relaxed else None)
            return before
        return before if self.plan.in_forms and self.passes(errors, before) else None

    def class_when_timed(self, errors: Errors, before: str, *, relaxed: bool) -> str | None:
        """The class after a call among timed ones, or after them, `before` it: never a better one, and none where its
        answer is within none. For inputs of other forms a little more is a matter of luck: errors that are slight, or
        of any class where that before is none of float32; far from ordinary ones what is within `range_bounds`."""
        if self.plan in RANGE_PLANS:
            found = self.class_in_range(errors, before, relaxed=relaxed)
            return found if found is None or (found == "relaxed" and not self._is_in_range(errors)) else before
        if self.passes(errors, before):
            return before
        best = self.best_class(errors, relaxed=relaxed)
        if self.plan.in_forms or self.plan.few:
            lucky = max(errors.worst, default=0.0) <= SLIGHT if before == "fp32" else best is not None
            if lucky and before != "exact":
                return before
        return least_exact([before, best])

    def hides_small_parts(self, errors: Errors, passed: str | None) -> bool:
        """Whether only its largest error keeps an ordinary answer within the class that it has, which is no matter of
        precision."""
        return (
            passed == "relaxed"
            and self.plan.factor == 1.0
            and all(e <= b for e, b in zip(errors.worst, self.bounds(self.own), strict=True))
            and not self.passes(errors, self.own)  # else it has its class from an earlier trial
        )

    def _is_in_range(self, errors: Errors) -> bool:
        return all(e <= b for e, b in zip(errors.worst, self.range_bounds(), strict=True))

    def range_bounds(self) -> list[float]:
        """Per tensor, what an element of an answer in float32 may err by far from ordinary inputs."""
        return [max(b, self._rounding(index)) for index, b in enumerate(self.bounds("relaxed"))]
