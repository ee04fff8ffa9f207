"""The correctness trials before they are run: what each varies, in what order, and to whom it is put."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .entropy import ENTROPY
from .tensors import VECTOR_BYTES

Part = tuple[tuple[str, ...], ...]
"""Names of a model's state; those of tied tensors are in one tuple."""


@dataclass(frozen=True)
class Plan:
    """One correctness trial before it is run."""

    kind: str
    other_weights: bool = False
    factor: float = 1.0
    """Floating inputs that may be stressed are multiplied by this; with `few` the other values only."""
    offset: int = 0
    """Bytes into their storage at which inputs start, rounded up to an element."""
    same_inputs: bool = False
    """The inputs of the trial before, again."""
    few: bool = False
    """The inputs of the trial before, with other values in a few places only."""
    in_place: bool = False
    """Other contents under the tensors that the trial before looked at."""
    in_forms: bool = False
    """Made in several forms, of which the first that the reference stands counts."""
    touches: Part = ()
    """What is touched of the weights of the trial before, whose inputs come again."""
    exchanged: bool = True
    """Touched elements are in each other's places, else other numbers."""

    @property
    def may_tie(self) -> bool:
        """Whether elements that are asked for may be equal where they are not so in a draw."""
        return self.in_forms or self.factor < 0

    @property
    def may_shrink(self) -> bool:
        """Whether answers may be much smaller than ordinary ones."""
        return self.factor < 1.0 or self.kind in ("small-weights", "lowered", "raised")

    @property
    def is_drawn(self) -> bool:
        """Whether inputs and weights are the task's own: a reference may refuse others."""
        return self.factor == 1.0 and not (self.few or self.other_weights or self.in_forms)


SUCCESSION = Plan("succession", other_weights=True)
"""A second call, from the state that the first has left."""
ROW = Plan("row", in_forms=True)
"""The last of some calls in a row, each side with the state that its own have left."""
ROW_CALLS = (3, 8)
OTHER_WEIGHTS = Plan("weights", other_weights=True)


def standard_plans(parts: Sequence[Part] = (), *, aligned: bool = False) -> tuple[Plan, ...]:
    """The trials of every verdict, in order: later ones change what the first forward could have cached. `parts`: of
    the weights, one of them changes and the others stay, and then all do. `aligned`: the one with an offset leaves
    inputs where a vector load may begin."""
    exponent = ENTROPY.randint(2, 6)
    return (
        Plan("base"),
        Plan("repeat", same_inputs=True),
        Plan("refill", in_place=True),
        Plan("touched", in_place=True, few=True),
        Plan("outliers", in_place=True, few=True, factor=64.0),
        OTHER_WEIGHTS,
        *touched_plans(parts),
        Plan("negated", other_weights=True, factor=-1.0),
        Plan("scaled", other_weights=True, factor=2.0**exponent),
        Plan("shrunk", factor=2.0**-exponent),
        Plan("offset", offset=VECTOR_BYTES if aligned else 1),
    )


def touched_plans(parts: Sequence[Part]) -> tuple[Plan, ...]:
    """A few elements of the weights change: one trial for each of `parts`, and one for all of them."""
    every = tuple(names for part in parts for names in part)
    return (
        *(Plan("touched-weights", other_weights=True, in_place=True, touches=part) for part in parts),
        *[Plan("touched-weights", other_weights=True, in_place=True, touches=every, exchanged=False)] * bool(every),
    )


BLANK = Plan("blank", in_forms=True)
"""Nothing but zeros, and masks that let nothing through: what divides by the size, the range or the count of all of an
input meets none. An answer need only be finite where truth is, since beside nothing no error is small; roughly right
where truth is more than `SOMETHING` of the size of an ordinary answer."""
SOMETHING = 1e-3
VACANT = Plan("vacant", in_forms=True)
VACANT_BESIDE = Plan("vacant-beside", in_forms=True)
"""One of two inputs nothing but zeros, or shut, and then the other: what is optional is given as nothing."""
HELD = Plan("held", in_forms=True)
"""Samples that are large and of one sign, as gates among the inputs are that stay open or shut."""
HELD_BESIDE = Plan("held-beside", in_forms=True)
"""The same of samples that lie along the second dimension."""
POSITIVE = Plan("positive", in_forms=True)
NEGATIVE = Plan("negative", in_forms=True)
"""All numbers of one sign: the largest of many is never negative in a draw."""
SHARED = Plan("shared", in_forms=True)
EQUAL = Plan("equal", in_forms=True)
"""Rows and integers of one input as another has them, and all of them."""
STRAYS = Plan("strays", in_forms=True)
"""Few samples whose numbers lie as no independent ones do, beside others as they are drawn."""
PRUNED = Plan("pruned", other_weights=True, in_forms=True)
"""Zeros, and rows of zeros, in matrices among the weights."""
HISTORY = Plan("history", other_weights=True, in_forms=True)
"""Biases that keep gates open, so that a recurrence forgets nothing."""
AGED = Plan("aged", other_weights=True, in_forms=True)
"""State as many calls in a row have left it."""
AGED_ALIKE = Plan("aged-alike", other_weights=True, in_forms=True)
"""The same of calls on inputs whose rows are alike."""

LENIENT = (PRUNED, HISTORY, VACANT, VACANT_BESIDE, HELD, HELD_BESIDE, POSITIVE, NEGATIVE, SHARED, EQUAL, STRAYS)
CANCELLING = (VACANT, VACANT_BESIDE, EQUAL)
"""In which answers may be next to nothing, and then need only be finite: a difference of equal numbers, a product with
zeros."""
OF_NOTHING = (BLANK, *CANCELLING)
"""Put in trials only: an answer to these may have nothing to be compared with."""
SLIGHT = 1e-3
"""An error that leaves a class as it is in these, since limits are far from ordinary inputs, sums of numbers in order
go far before they come back, and a normalisation divides what is constant, as a channel without weights is, by the root
of its epsilon: one of 1e-5 magnifies rounding of a mean 316 times, and whoever sums in float64, as the reference may,
rounds nothing."""

UNDRAWN_PLANS = (
    Plan("mixed", in_forms=True),  # elements of both signs, and zeros among them
    Plan("rows", in_forms=True),  # whole rows of zeros; rows of masks that let nothing through
    BLANK,
    VACANT,
    VACANT_BESIDE,
    Plan("constants", in_forms=True),  # other elements in inputs of nothing but ones or zeros
    Plan("choices", in_forms=True),  # other integers, masks, shares and tables where every draw has the same
    Plan("touched-choices", in_place=True, in_forms=True),  # one or two of these only
    Plan("uneven", in_forms=True),  # one choice almost everywhere, masks that let all through, samples of one sign
    Plan("arranged", in_forms=True),  # integers and masks in an order that no independent draw has
    Plan("clusters", in_forms=True),  # large values near one another
    Plan("near-one", in_forms=True),  # numbers of which long products neither vanish nor overflow
    HELD,
    HELD_BESIDE,
    POSITIVE,
    NEGATIVE,
    SHARED,
    EQUAL,
    STRAYS,
    Plan("rare", in_forms=True),  # integers that the task's text names, probabilities of zero and one
    Plan("signs", other_weights=True, in_forms=True),  # parameters of both signs, buffers of another checkpoint
    PRUNED,
    HISTORY,
    AGED,
    AGED_ALIKE,
)
"""What a draw never shows, and callers may give all the same."""

LARGE_WEIGHTS = Plan("large-weights", other_weights=True, in_forms=True)
"""Behind a normalisation inputs of any size are alike: only weights make what follows large."""
LARGE_CHANNELS = Plan("large-channels", other_weights=True, in_forms=True)
"""Between two normalisations only a channel that is large beside the others makes anything large."""
SMALL_WEIGHTS = Plan("small-weights", other_weights=True, in_forms=True)
"""Before a normalisation biases have a size of their own, beside which small inputs show no epsilon: weights are small,
too."""
LOWERED = Plan("lowered", other_weights=True, in_forms=True)
"""The largest of many channels is hardly ever negative unless all of their biases are."""
RAISED = Plan("raised", other_weights=True, in_forms=True)
"""The same of the smallest, and positive biases."""
ONE_SIDED = (LOWERED, RAISED)
RELATED = Plan("related", in_forms=True)
"""Rows that are alike make attention sharp, experts full and matrices nearly singular, which independent ones never
do."""
ORDERED = Plan("ordered", in_forms=True)
"""Numbers beside like ones, as in images, series and ramps: independent ones lie scattered, whatever they are like."""
CONCENTRATED = Plan("concentrated", in_forms=True)
"""A mean of many independent numbers is that of a part of them, as far as half precision tells; not where few of them
hold all."""
ISOLATED = Plan("isolated", in_forms=True)
"""Two elements far out: whoever looks at a sample to see whether inputs are ordinary does not see them."""

NEAR_PLANS = (Plan("near-1e5", factor=1e5), Plan("near-1e-6", factor=1e-6))
"""What tells half precision from TF32."""
RANGE_PLANS = (
    *NEAR_PLANS,
    LARGE_WEIGHTS,
    LARGE_CHANNELS,
    SMALL_WEIGHTS,
    LOWERED,
    RAISED,
    RELATED,
    ORDERED,
    CONCENTRATED,
    ISOLATED,
)
"""Far from ordinary inputs, where less is asked of an answer: exponentials overflow, epsilons decide, and fp16, else as
good as TF32, has no range."""

_OF_WEIGHTS = (
    "signs",
    "pruned",
    "history",
    "aged",
    "aged-alike",
    "large-weights",
    "large-channels",
    "small-weights",
    "lowered",
    "raised",
)
INPUT_PLANS = tuple(
    p for p in (*UNDRAWN_PLANS, *RANGE_PLANS) if p.in_forms and p not in OF_NOTHING and p.kind not in _OF_WEIGHTS
)
"""The undrawn and the far ones that are forms of inputs, and not of weights, whose answers can be compared by value."""

OUT_OF_RANGE = ("relaxed",)
"""Classes of candidates to whom `RANGE_PLANS` are not put."""
