"""Inputs that no draw shows, by the plans of the trials that put them."""

from __future__ import annotations

import functools
from collections.abc import Collection

from . import arranged, choices, input_forms, rare, shared, strays, uneven
from .agreed import filling_gaps
from .input_forms import Make
from .plans import Plan
from .reference import Reference

ALIKE: Make = filling_gaps(functools.partial(input_forms.related, apart=input_forms.APART[0]))
"""Of inputs that age a state."""


def makers(plan: Plan, reference: Reference, fixed: Collection[int]) -> list[Make]:
    """What makes inputs of a plan's form of drawn ones, from the first to the last that the reference may stand.
    `fixed`: tensors, in the order of `leaves`, that are the same in every draw."""
    return [filling_gaps(make) for make in _makers(plan, reference, fixed)]


def _makers(plan: Plan, reference: Reference, fixed: Collection[int]) -> list[Make]:
    made = functools.partial
    match plan.kind:
        case "constants":
            return [made(input_forms.with_other_constants, count=c, factor=f) for c, f in input_forms.OTHERS]
        case "choices" | "touched-choices":
            few = plan.kind == "touched-choices"
            other = made(choices.with_other_choices, fixed=fixed, few=few)
            return [made(other, numbers=numbers, places=places) for numbers, places in choices.PARTS]
        case "uneven":
            counted = functools.cache(made(uneven.counted, reference))
            even = made(uneven.uneven, fixed=fixed, counted=counted)
            return [made(even, numbers=n, places=places, shut=shut) for n, places, shut in uneven.PARTS]
        case "arranged":
            return [made(arranged.arranged, fixed=fixed)]
        case "clusters":
            return [made(input_forms.clustered, factor=factor) for factor in input_forms.LARGER]
        case "held":
            return [uneven.held]
        case "held-beside":
            return [made(uneven.held, beside=True)]
        case "positive" | "negative":
            return [made(uneven.of_one_sign, sign=1.0 if plan.kind == "positive" else -1.0)]
        case "shared" | "equal":
            share = shared.SHARE if plan.kind == "shared" else 1.0
            return [made(shared.shared, fixed=fixed, numbers=n, integers=i, share=share) for n, i in shared.PARTS]
        case "strays":
            return [made(strays.with_strays, fixed=fixed, ways=ways, deck=[]) for ways in strays.PARTS]
        case "near-one":
            return [input_forms.near_one]
        case "ordered":
            return [input_forms.ordered]
        case "concentrated":
            return [made(input_forms.concentrated, power=power) for power in input_forms.HELD_POWERS]
        case "isolated":
            return [made(input_forms.isolated, factors=factors) for factors in input_forms.ISOLATED_FACTORS]
        case "related":
            return [made(input_forms.related, apart=apart) for apart in input_forms.APART]
        case "rare":
            rares = rare.learn(reference)
            return [made(rare.with_rare, rares=some) for some in (rares, *((one,) for one in rares))]
        case "blank":
            return [made(input_forms.blanked, numbers=numbers, masks=m) for numbers, m in input_forms.ROW_PARTS]
        case "vacant" | "vacant-beside":
            vacated = made(input_forms.vacated, second=plan.kind == "vacant-beside")
            return [made(vacated, numbers=numbers, masks=masks) for numbers, masks in input_forms.ROW_PARTS]
        case "rows":
            return [
                made(input_forms.emptied, numbers=numbers, masks=m, all_ways=all_ways)
                for numbers, m in input_forms.ROW_PARTS
                for all_ways in (True, False)
            ]
        case _:
            return [made(input_forms.mixed, factors=factors) for factors in input_forms.MIXTURES]
