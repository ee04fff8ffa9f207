"""The trials of a verdict, and what the task itself draws: under seeds that are secret."""

from __future__ import annotations

import torch

from cuda_l1.evaluator.guest import drawing, plans


def test_inputs_follow_the_seed_and_are_secret_without_one():
    def get_inputs():
        return [torch.randn(8, requires_grad=True)]

    first, again = (drawing.draw_inputs(get_inputs, "cpu", 7)[0] for _ in range(2))
    secret, other = (drawing.draw_inputs(get_inputs, "cpu")[0] for _ in range(2))
    assert torch.equal(first, again) and not torch.equal(secret, other) and not first.requires_grad


def test_secret_seeds_do_not_follow_from_torchs_generator():
    torch.manual_seed(0)
    first = drawing.secret_seed()
    torch.manual_seed(0)
    assert drawing.secret_seed() != first and 0 <= first < 2**63


def test_plans_vary_everything_that_a_candidate_could_have_kept():
    standard = plans.standard_plans()
    assert standard[0].kind == "base" and standard[1].same_inputs
    assert (
        any(p.other_weights for p in standard)
        and [p.offset for p in standard if p.offset] == [1]
        and any(p.in_place for p in standard)
    )
    assert {p.factor < 0 for p in standard} == {True, False} and any(0 < p.factor < 1 for p in standard)
    assert [p.offset for p in plans.standard_plans(aligned=True) if p.offset] == [16]
    touching = [p for p in plans.standard_plans([(("a", "b"),), (("c",), ("d",))]) if p.touches]
    assert [(p.touches, p.exchanged) for p in touching] == [
        ((("a", "b"),), True),
        ((("c",), ("d",)), True),
        ((("a", "b"), ("c",), ("d",)), False),
    ]
    exponents = {p.factor for _ in range(60) for p in plans.standard_plans() if p.kind == "scaled"}
    assert len(exponents) > 2  # not known in advance
