"""What the judge says of a task before any candidate: how it is judged, and whether its verdicts mean something."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from . import arithmetic, choices, drawing, input_forms, oracle, plans, state, undrawn, weight_forms
from .case import Case
from .classes import OWN, Halved, own_class, unit_roundoff
from .reading import hosted
from .reference import Answer, BadTask, Reference
from .room import free_bytes
from .tensors import leaves, map_leaves
from .traits import is_integer

ILL_CONDITIONED = 1e-2 / 16


@dataclass
class Facts:
    """The audit's result; what the parent needs of it crosses as JSON."""

    task_class: str
    mode: str
    jumpy: bool
    random: bool
    relaxed_allowed: bool
    seeded: bool = False
    """Its random numbers follow from the seeds that PyTorch's users set, at no cost: the same seed, the same answer."""
    flags: list[str] = field(default_factory=list)
    forgeries_passed: list[str] = field(default_factory=list)
    details: list[str] = field(default_factory=list)
    reference_us: float = 0.0
    structure: str = ""
    outputs: list[dict[str, Any]] = field(default_factory=list)
    input_bytes: int = 0
    output_bytes: int = 0
    state_bytes: int = 0


def audit(reference: Reference) -> Facts:
    """Examine the task in its constructed mode; where that is ill-conditioned and eval mode is sound, in eval mode.

    Raises BadTask when the reference itself does not work.
    """
    facts = _audit_mode(reference)
    if "ill-conditioned" in facts.flags and reference.mode == "train":
        reference.set_mode("eval")
        reference.changed_args, reference.changed_state = [], []
        other = _audit_mode(reference)
        if not {"ill-conditioned", "degenerate"} & set(other.flags):
            other.flags.append("eval-mode")
            other.details.append("judged and timed in eval mode: train mode is ill-conditioned")
            return other
        reference.set_mode("train")
        return _audit_mode(reference)
    return facts


def _keeps_dropout_state(model: torch.nn.Module) -> bool:
    """Whether cuDNN draws this module's random numbers from a state that it makes anew after each seed: seeding would
    be most of a call's time, and a captured graph never makes it again."""
    return any(isinstance(part, torch.nn.RNNBase) and part.dropout > 0 for part in model.modules())


def _audit_mode(reference: Reference) -> Facts:
    inputs = reference.draw()
    numbers = state.numbers(reference.model)
    reference.learn_changes(inputs)
    _learn_rare_changes(reference, inputs)
    state.put_numbers(numbers)  # a count that has gone far enough would look like none
    first = reference.call(inputs, reference.public, "shipped", seed=1)
    _require_answer(first)
    reference.chooses, reference.has_edges, reference.half = _choices(reference, inputs)
    other = reference.call(inputs, reference.public, "shipped", seed=2)
    random = _differs(first, other)
    if random:
        _require_no_count(reference, inputs, numbers)
    _require_alike(first, other)
    seeded = random and not _differs(first, reference.call(inputs, reference.public, "shipped", seed=1))
    if seeded and reference.device != "cpu" and _keeps_dropout_state(reference.model):
        seeded = False
    only = _few_of(first)
    task_class, outputs, output_bytes = (
        own_class([t.dtype for t in first.tensors]),
        [_spec(t) for t in first.tensors],
        _bytes(first.tensors),
    )
    first = Answer(first.structure, _thinned(first, only))  # the whole need not lie beside the trials
    jumpy = not random and (_learn_from_nudges(reference, inputs, first, only) or _rounds_on_edges(reference, inputs))
    cases: list[Case] = []
    if not random:
        reference.halved = _halved(reference, jumpy, only)
        cases, task_class = _cases(reference, jumpy, only)
    facts = Facts(
        task_class=task_class,
        mode=reference.mode,
        jumpy=jumpy,
        random=random,
        seeded=seeded,
        relaxed_allowed=False,
        reference_us=reference.rough_us(inputs),
        structure=first.structure,
        outputs=outputs,
        input_bytes=_bytes(leaves(inputs)),
        output_bytes=output_bytes,
        state_bytes=_bytes(list(reference.public.values())),
    )
    if random:
        facts.flags.append("random")
    if reference.changed_state:
        facts.flags.append("stateful")
    if cases:
        _judge_soundness(reference, cases, facts)
    return facts


def _choices(reference: Reference, inputs: drawing.Inputs) -> tuple[bool, bool, torch.dtype | None]:
    """Whether a call chooses elements by their places, whether it has edges at all, and in which half precision it
    computes; not known of a reference that does not stand being watched."""
    seen = oracle.Choices()
    with contextlib.suppress(BadTask), seen:
        reference.call(inputs, reference.public, "shipped", seed=1)
    return seen.found, seen.edges, seen.half


HALVED_DRAWS, FINER = 3, 16
"""Draws, for two kinds of weights each, by which it is told what is computed in half precision, and how many times as
large its error is as in float32."""


def _halved(reference: Reference, jumpy: bool, only: Sequence[oracle.Places] | None) -> dict[int, Halved]:
    """Tensors of the answer that the reference computes in half precision and then casts: its largest error in some
    draws is far above the largest that it has in float32 throughout. Of a loss, a single number, one draw may show next
    to nothing. None where it does not run in float32."""
    reference.halved = {}
    if reference.half is None:
        return {}
    told: dict[int, list[tuple[float, float, float]]] = {}
    for weights in (reference.public, reference.other_weights()) * HALVED_DRAWS:
        inputs, seed = reference.draw(), drawing.secret_seed()
        try:
            case = Case(reference, plans.Plan("base"), inputs, weights, seed, jumpy, only=only)
            finer = case.errors(reference.call(inputs, weights, "fp32", seed), forged=True).worst
        except BadTask:
            continue  # no fault of the task's with weights of ours; its own draws are judged later
        if not case.is_well_posed:
            continue
        for index, tensor in enumerate(case.noise.tensors):
            if tensor.dtype not in OWN and not oracle.is_exact(tensor):
                is_cast = torch.equal(tensor, tensor.to(reference.half).to(tensor.dtype))
                least = unit_roundoff(reference.half) if is_cast else 0.0
                own = [max(errors[index], least) for errors in (case.own_errors.worst, case.own_errors.bulk)]
                told.setdefault(index, []).append((finer[index], own[0], own[1]))
    found: dict[int, Halved] = {}
    for index, draws in told.items():
        finest, worst, bulk = (max(column) for column in zip(*draws, strict=True))
        if FINER * finest < worst:
            found[index] = Halved(reference.half, worst, bulk)
    return found


def _learn_rare_changes(reference: Reference, drawn: drawing.Inputs) -> None:
    """What a call changes of inputs and weights in the forms that trials put, of which no draw may show any."""
    fixed = choices.alike(drawn, reference.draw())
    other = weight_forms.other_state(reference.model)
    makes: list[input_forms.Make] = [
        *(functools.partial(input_forms.stress, factor=factor) for factor in _FACTORS),
        *(functools.partial(input_forms.with_outliers, other=reference.draw(), factor=factor) for factor in _OUTLIERS),
        *(
            make
            for plan in (*plans.INPUT_PLANS, *plans.OF_NOTHING)
            for make in undrawn.makers(plan, reference, fixed)[:1]
        ),
    ]
    for make in makes:
        inputs, found = make(reference.draw())
        if found:
            reference.learn_more_changes(inputs, reference.public)
    reference.learn_more_changes(reference.draw(), other)
    for each in (None, undrawn.ALIKE):
        if aged := reference.aged(each, learn=True):
            reference.learn_more_changes(reference.draw(), aged)
    if large := weight_forms.with_large_weights(reference.model, other, *weight_forms.WEIGHT_FACTORS[0]):
        reference.learn_more_changes(reference.draw(), large)


_FACTORS, _OUTLIERS = (-1.0, 64.0, 2.0**-6, 1e5, 1e-6), (64.0,)

LARGE = 1 << 22
"""An answer with more elements is not looked at whole: so many of them at most (`oracle.lattice`) tell what the task is
like."""
ROOM = 8
"""The inputs of a finished trial stay on a GPU while so many times the bytes of inputs and answer are free there, else
they move to the host's memory."""


def _few_of(answer: Answer) -> list[oracle.Places] | None:
    """Places that stand for all of a large answer; None where it is looked at whole."""
    if all(t.numel() <= LARGE for t in answer.tensors):
        return None
    return [oracle.lattice(t.shape, LARGE) for t in answer.tensors]


def _thinned(answer: Answer, only: Sequence[oracle.Places] | None) -> list[torch.Tensor]:
    return answer.tensors if only is None else [oracle.thinned(t, p) for t, p in zip(answer.tensors, only, strict=True)]


def _looked_at(answer: Answer, only: Sequence[oracle.Places] | None) -> list[torch.Tensor]:
    return hosted(_thinned(answer, only))


def _require_answer(answer: Answer) -> None:
    if not answer.tensors:
        raise BadTask("the reference returns no tensor")
    for index, tensor in enumerate(answer.tensors):
        if (tensor.is_floating_point() or tensor.is_complex()) and bool(torch.isnan(tensor).any()):
            raise BadTask(f"the reference's own output {index} holds NaN: nothing can be compared with it")


def _require_alike(one: Answer, other: Answer) -> None:
    """Raises BadTask where two calls differ in what is compared as it stands: numbers and texts beside tensors."""
    if one.structure != other.structure:
        text = (
            f"what forward returns beside tensors differs from call to call ({one.structure}, then {other.structure})"
        )
        raise BadTask(f"{text[:300]}: return numbers that do as tensors")


def _require_no_count(
    reference: Reference, inputs: drawing.Inputs, before: dict[tuple[torch.nn.Module, str], int | float]
) -> None:
    """Raises BadTask where answers differ by a Python number that calls change, such as a count of them: it is no
    state that the candidate could be given, and no seed that it could share."""
    changed = [place for place, value in state.numbers(reference.model).items() if before.get(place, value) != value]
    if not changed:
        return

    def call(*, anew: bool) -> Answer:
        if anew:
            state.put_numbers({place: before[place] for place in changed})
        return reference.call(inputs, reference.public, "shipped", seed=1)

    first = call(anew=True)
    if _differs(first, call(anew=False)) and not _differs(first, call(anew=True)):
        names = ", ".join(f"`{name}`" for _, name in changed[:3])
        text = f"answers depend on {names}, a Python number that every call changes, so that no two calls are alike"
        raise BadTask(f"{text}: keep it in a buffer (`register_buffer`)")


def _spec(tensor: torch.Tensor) -> dict[str, Any]:
    return {
        "shape": list(tensor.shape),
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "stride": list(tensor.stride()),
    }


def _bytes(tensors: list[torch.Tensor]) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


def _differs(a: Answer, b: Answer) -> bool:
    return not all(state.same_each(list(zip(a.tensors, b.tensors, strict=True)))) and not _close(a, b)


def _close(a: Answer, b: Answer) -> bool:
    """Equal up to the noise of a reduction whose order varies (atomics)."""
    return all(
        x.is_floating_point() and oracle.max_error(x, y.to(x.dtype)) < 1e-5
        for x, y in zip(a.tensors, b.tensors, strict=True)
        if not state.same(x, y)
    )


_NUDGES = (1e-6, 1e-4, 1e-4, 1e-4)
"""Relative sizes of the perturbations that tell whether a task jumps, in turn."""
_NUDGES_WITHIN, _FINER = 6, 3.0
"""How often inputs and weights are moved together, and by how much more or less each time."""
_EDGE_DRAWS = 4
"""Draws in which integers that the reference gets wrong are looked for."""
ROUND, LARGEST, FEW = 1024, 16, 2048
"""Round numbers are multiples of 1 / `ROUND` of at most `LARGEST` in magnitude: among 2^17 normal numbers in float32
there are some ten. Where more than one element in `FEW` is round, the task puts them there, and they may be its
edges."""


def _learn_from_nudges(
    reference: Reference, inputs: drawing.Inputs, first: Answer, only: Sequence[oracle.Places] | None
) -> bool:
    """Whether a small perturbation moves isolated elements by far more than the rest; learns `reference.lifted`.

    The larger ones are for small tensors, where one part in 10^6 seldom meets an edge. Where the reference has edges
    that show in none, weights may meet them, and each in many elements.
    """
    wide = arithmetic.cast(inputs, torch.float64)
    own, truth = hosted(first.tensors), _looked_at(reference.truth(wide, reference.public), only)
    for size in _NUDGES:
        if (answer := _truth_of_nudged(reference, wide, size)) is None:
            continue
        moved = _looked_at(answer, only)
        reference.lifted = [i for i, (t, a) in enumerate(zip(moved, own, strict=True)) if _finer(t, a)]
        pairs = zip(moved, truth, strict=True)
        if any(oracle.find_jumps(m, t, floor=20 * size).count for m, t in pairs):
            return True
    return reference.has_edges and _jumps_within(reference, wide, truth, only)


def _jumps_within(
    reference: Reference, wide: drawing.Inputs, truth: list[torch.Tensor], only: Sequence[oracle.Places] | None
) -> bool:
    """Whether inputs and weights that are moved a little cross an edge in what answers are made of; by how much is
    found out, since one that does moves a whole row, and of many rows each is moved soon."""
    constructed = arithmetic.cast(reference.public, torch.float64)
    size = _NUDGES[0]
    for _ in range(_NUDGES_WITHIN):
        weights = {
            name: _nudged(value, size) if value.is_floating_point() else value for name, value in constructed.items()
        }
        if (answer := _truth_of_nudged(reference, wide, size, weights)) is None:
            return False
        floor = 20 * size
        pairs = [p for p in zip(_looked_at(answer, only), truth, strict=True) if p[1].is_floating_point()]
        if any(oracle.find_inner_jumps(moved, due, floor, apart=64).count for moved, due in pairs):
            return True
        is_crowded = any(float(oracle.bulk(oracle.element_errors(*pair), 1 - oracle.INNER)) > floor for pair in pairs)
        size *= 1 / _FINER if is_crowded else _FINER
    return False


def _rounds_on_edges(reference: Reference, inputs: drawing.Inputs) -> bool:
    """Whether the reference itself gets few integers wrong in any of some draws, where no input can be nudged: sums of
    pixels times decimal fractions lie between two integers, where each order of adding up rounds otherwise."""
    if any(t.is_floating_point() or t.is_complex() for t in leaves(inputs)):
        return False
    for _ in range(_EDGE_DRAWS):
        drawn = reference.draw()
        plain = reference.call(drawn, reference.public).tensors
        if not any(map(is_integer, plain)):
            return False
        pairs = zip(plain, reference.truth(drawn, reference.public).tensors, strict=True)
        if any(is_integer(a) and oracle.find_jumps(a, t).count for a, t in pairs):
            return True
    return False


def _finer(truth: torch.Tensor, answer: torch.Tensor) -> bool:
    """Whether truth holds numbers that the answer's dtype has not."""
    return truth.is_floating_point() and answer.is_floating_point() and bool((truth.to(answer.dtype) != truth).any())


def _truth_of_nudged(
    reference: Reference, wide: drawing.Inputs, size: float, weights: state.State | None = None
) -> Answer | None:
    """Towards zero only where the reference refuses the other ones: probabilities end at 1. None where it refuses
    both."""
    for nudge in (_nudged, _nudged_inwards):
        try:
            nudged = map_leaves(wide, lambda t, nudge=nudge: nudge(t, size) if t.is_floating_point() else t)
            return reference.truth(nudged, weights or reference.public)
        except BadTask:
            continue
    return None


def _nudged(tensor: torch.Tensor, size: float) -> torch.Tensor:
    return torch.where(_drawn_by_chance(tensor), tensor, tensor * (1 + size * torch.randn_like(tensor)))


def _nudged_inwards(tensor: torch.Tensor, size: float) -> torch.Tensor:
    return torch.where(_drawn_by_chance(tensor), tensor, tensor * (1 - size * torch.randn_like(tensor).abs()))


def _drawn_by_chance(tensor: torch.Tensor) -> torch.Tensor:
    """Round numbers, where hardly any other is one. A text may ask equality with such (-1 stands for what is missing),
    and one draw in hundreds holds one: moved away from it, it would make the task one that jumps. Zeros stay anyway."""
    scaled = tensor * ROUND
    found = (scaled == scaled.round()) & (tensor != 0) & (tensor.abs() <= LARGEST)
    return found & (found.sum() * FEW <= tensor.numel())


def _cases(reference: Reference, jumpy: bool, only: Sequence[oracle.Places] | None) -> tuple[list[Case], str]:
    """The trials of a verdict, without the ones that only vary where the bytes lie; and the class of eager as shipped,
    which has cuDNN's TF32 on a GPU."""
    cases, classes = [], []
    weights = reference.other_weights()
    for plan in plans.standard_plans():
        if plan.offset or plan.same_inputs or (plan.few and plan.factor != 1.0):
            continue
        inputs, touched = input_forms.stress(reference.draw(), plan.factor)
        if plan.factor != 1.0 and not touched:
            continue
        held = weights if plan.other_weights else reference.public
        case = Case.where_stood(reference, plan, inputs, held, jumpy, only=only)
        if case is None:
            continue
        if plan.factor == 1.0 or case.sound:
            classes.append(_eager_class(reference, case))
            cases.append(case)
        if only is not None and _is_crowded(reference, case):
            case.inputs = map_leaves(case.inputs, torch.Tensor.cpu)
    order = [cases[0].own, "tf32", "relaxed"]
    return cases, max(classes, key=order.index)


def _is_crowded(reference: Reference, case: Case) -> bool:
    """Whether a GPU has little room beside the inputs that lie there already."""
    if reference.device == "cpu":
        return False
    return free_bytes() < ROOM * (_bytes(leaves(case.inputs)) + case.answer_bytes)


def _eager_class(reference: Reference, case: Case) -> str:
    """Of eager's answer in one trial: as exact as its dtype can be, `tf32` or `relaxed`."""
    shipped = reference.device != "cpu"
    answer = reference.call(case.inputs, case.weights, "shipped", case.seed) if shipped else case.noise
    return case.best_class(case.errors(answer), relaxed=True) or "relaxed"


def _judge_soundness(reference: Reference, cases: list[Case], facts: Facts) -> None:
    if _fp32_error(reference, cases) > ILL_CONDITIONED:
        facts.flags.append("ill-conditioned")
        facts.details.append("computed in float32 it differs from float64 by more than 1e-2 / 16")
    forgeries = _forgeries(reference, cases)
    facts.forgeries_passed = [
        name for name, forge in forgeries.items() if _passes_everywhere(forge, cases, cases[0].own)
    ]
    if facts.forgeries_passed:
        facts.flags.append("degenerate")
        facts.details.append("the bound lets through: " + ", ".join(facts.forgeries_passed))
    if facts.task_class in ("tf32", "relaxed") and any(
        _passes_everywhere(forgeries[name], cases, facts.task_class) for name in ("zeros", "other-inputs")
    ):
        facts.flags.append("ill-conditioned")
    facts.relaxed_allowed = cases[0].own != "exact" and not any(
        _passes_everywhere(forgeries[name], cases, "relaxed") for name in ("zeros", "other-inputs", "input-copy")
    )
    if not _sensitive(cases):
        facts.flags.append("insensitive-inputs")
    if len(state.collect(reference.model)) and not _weights_matter(reference, cases[0]):
        facts.flags.append("insensitive-weights")


def _fp32_error(reference: Reference, cases: list[Case]) -> float:
    plain = [c for c in cases if c.plan.factor == 1.0]
    if not any(dtype in OWN for dtype in cases[0].computed_in):
        return max(c.reference_error for c in plain)
    case = plain[0]
    return max(case.errors(reference.call(case.inputs, case.weights, "fp32", case.seed)).worst)


Forge = Callable[[Case, Case], list[torch.Tensor] | None]


def _forgeries(reference: Reference, cases: list[Case]) -> dict[str, Forge]:
    """Answers that need no understanding of the task: (case, another case with the same weights) -> tensors."""

    def zeros(case: Case, other: Case) -> list[torch.Tensor]:
        return [torch.zeros_like(t) for t in case.truth.tensors]

    def other_inputs(case: Case, other: Case) -> list[torch.Tensor] | None:
        return other.truth.tensors if case.plan.factor == other.plan.factor else None

    def input_copy(case: Case, other: Case) -> list[torch.Tensor] | None:
        if not case.copies:
            return None
        return [t.to(truth.dtype) for t, truth in zip(case.copies, case.truth.tensors, strict=True)]

    def rounded(dtype: torch.dtype) -> Forge:
        def forge(case: Case, other: Case) -> list[torch.Tensor] | None:
            if all(dtype in OWN or not dtype.is_floating_point for dtype in case.computed_in):
                return None
            low = [t.to(dtype).to(t.dtype) if t.is_floating_point() else t for t in case.truth.tensors]
            exact = all(state.same_each(list(zip(low, case.truth.tensors, strict=True))))
            return None if exact else low

        return forge

    return {
        "zeros": zeros,
        "other-inputs": other_inputs,
        "input-copy": input_copy,
        "rounded-fp16": rounded(torch.float16),
        "rounded-bf16": rounded(torch.bfloat16),
    }


def _partners(case: Case, cases: list[Case]) -> list[Case]:
    """Other draws for the same weights."""
    return [c for c in cases if c is not case and c.weights is case.weights and c.plan.factor == case.plan.factor]


def _passes_everywhere(forge: Forge, cases: list[Case], name: str) -> bool:
    """Whether the forgery passes as class `name` in every case where it can be made, and can be made at all."""
    made = 0
    for case in cases:
        forged = forge(case, next(iter(_partners(case, cases)), case))
        if forged is None or (forged is case.truth.tensors):
            continue
        made += 1
        if not case.passes(case.errors(Answer(case.truth.structure, forged), forged=True), name):
            return False
    return made > 0


def _sensitive(cases: list[Case]) -> bool:
    """Whether other inputs give another answer, some of them: one mean over much may be near another by chance."""
    first = cases[0]
    partners = _partners(first, cases)
    return not partners or any(e > 1e-4 for p in partners for e in first.errors(p.truth, forged=True).worst)


def _weights_matter(reference: Reference, case: Case) -> bool:
    weights = reference.other_weights()
    if not weight_forms.changed(reference.public, weights):  # it refuses others, or has buffers alone that stay
        return True
    try:
        other = reference.truth(case.inputs, weights, case.seed)
    except BadTask:
        return True
    return any(e > 1e-4 for e in case.errors(other, forged=True).worst)
