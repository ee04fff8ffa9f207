"""Inputs that hold what another one holds, and what stays as it is."""

from __future__ import annotations

import torch

from cuda_l1.evaluator.guest.shared import shared


def made(*drawn, fixed=(), numbers=True, integers=True, share=0.25):
    return shared(list(drawn), fixed, numbers=numbers, integers=integers, share=share)


def test_some_rows_and_some_integers_are_an_earlier_tensors():
    a, b, s, d = torch.rand(400, 8), torch.rand(400, 8), torch.randint(9000, (400,)), torch.randint(9000, (400,))
    b[0], b[1], d[0], d[1] = 0.0, 1.0, 0, 9000  # all of the others lie within
    (same_a, new_b, same_s, new_d), found = made(a, b, s, d)
    assert found and same_a is a and same_s is s
    taken = (new_b == a).all(-1)
    assert 0.1 < float(taken.float().mean()) < 0.4 and torch.equal(new_b[~taken], b[~taken])
    assert 0.1 < float((new_d == s).float().mean()) < 0.4 and bool(((new_d == s) | (new_d == d)).all())


def test_nothing_lies_beyond_the_range_of_a_tensors_own():
    users, items = torch.randint(1000, (500,)), torch.randint(10, (500,))
    (_, new), _ = made(users, items)
    assert int(new.max()) < 10
    positive = torch.rand(400, 8) + 1e-3
    (_, same), _ = made(torch.randn(400, 8), positive)
    assert bool((same > 0).all())


def test_all_of_a_tensor_is_an_earlier_ones():
    a, b = torch.rand(400, 8), torch.rand(400, 8)
    (_, new), found = made(a, b, share=1.0)
    assert found and torch.equal(new, a), "what lies a little beyond, too, where most does not"
    (_, new), _ = made(torch.randn(400, 8), b, share=1.0)
    assert torch.equal(new, b)


def test_of_three_each_shares_with_the_one_before():
    a, b, c = (torch.rand(400, 2) * 0.5 + 0.25 for _ in range(3))
    (_, new_b, new_c), _ = made(a, b, c)
    assert bool((new_b == a).all(-1).any()) and bool((new_c == new_b).all(-1).any())


def test_what_a_kernel_may_rely_on_stays():
    for kept in (torch.randperm(64), torch.randint(99, (64,)).sort().values):
        assert made(torch.randint(9, (64,)), kept)[1] is False
    square = torch.randn(8, 8)
    assert made(torch.randn(8, 8), square + square.mT)[1] is False
    one, other = torch.randn(64, 64), torch.randn(64, 64).tril()
    assert made(one, other)[1] is False, "a structure of zeros"
    assert made(one, torch.randn(64, 32))[1] is False, "another shape"
    assert made(one, torch.randn(64, 64), fixed=(1,))[1] is False
    assert made(one, torch.randn(64, 64), numbers=False)[1] is False
    assert made(torch.randn(9, 4, dtype=torch.complex64), torch.randn(9, 4, dtype=torch.complex64))[1] is False
