"""How far an answer lies from truth, and jumps."""

from __future__ import annotations

import math

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from cuda_l1.evaluator.guest import oracle

INF, NAN = math.inf, math.nan


def error(answer: object, truth: object, left_out: torch.Tensor | None = None) -> float:
    got, due = torch.as_tensor(answer), torch.as_tensor(truth)
    due = due if due.is_complex() else due.double()
    found = oracle.max_error(got, due, left_out)
    known, _ = oracle.KnownTruth.of_each([due], [oracle.lattice(due.shape)])
    ((worst, bulk, slices),) = oracle.errors_of(known, [got], [left_out])
    assert worst == pytest.approx(found) and bulk >= 0.0 and bool((slices >= 0.0).all())
    return found


def test_the_error_is_relative_to_the_element_and_to_the_whole():
    truth = [3.0, -4.0]  # rms = 5 / sqrt(2)
    assert error([3.1, -4.0], truth) == pytest.approx(0.1 / (3 + 5 / math.sqrt(2)), rel=1e-6)
    assert error(truth, truth) == 0.0


@pytest.mark.parametrize(
    ("answer", "truth"),
    [([INF, 1], [INF, 1]), ([-INF, 1], [-INF, 1]), ([NAN, 1], [NAN, 1]), ([NAN, INF], [NAN, INF]), ([0, 0], [0, 0])],
)
def test_the_same_kind_of_infinity_is_right(answer, truth):
    assert error(answer, truth) == 0.0


@pytest.mark.parametrize(
    ("answer", "truth"),
    [
        ([INF, 1], [-INF, 1]),
        ([INF, 1], [5, 1]),
        ([NAN, 1], [5, 1]),
        ([5, 1], [NAN, 1]),
        ([5, 1], [INF, 1]),
        ([NAN, 1], [INF, 1]),
        ([INF, 1], [NAN, 1]),
        ([1e-30, 0], [0, 0]),
        ([3e38, 1], [INF, 1]),
    ],
)
def test_another_kind_is_infinitely_wrong(answer, truth):
    assert error(answer, truth) == INF


def test_infinite_elements_do_not_hide_errors_of_finite_ones():
    assert error([INF, 1.5], [INF, 1.0]) == pytest.approx(0.5 / 2)


def test_empty_tensors_are_right():
    assert error(torch.empty(0, 3), torch.empty(0, 3)) == 0.0


def test_integers_and_booleans_are_equal_or_wrong():
    assert oracle.max_error(torch.tensor([1, 2]), torch.tensor([1, 2])) == 0.0
    assert oracle.max_error(torch.tensor([1, 2]), torch.tensor([1, 3])) == INF
    assert oracle.max_error(torch.tensor([True]), torch.tensor([False])) == INF


def test_complex_elements_jump_as_a_whole():
    truth = torch.randn(64, 32, dtype=torch.complex128)
    answer = truth.clone()
    answer[3, 5] += 2j
    jumps = oracle.find_jumps(answer, truth)
    assert jumps.count == 1 and jumps.mask.shape == truth.shape and bool(jumps.mask[3, 5])
    assert error(answer, truth, jumps.mask) == 0.0 < error(answer, truth)


def test_complex_numbers_err_in_either_part():
    truth = torch.tensor([3 + 4j, 1 - 1j], dtype=torch.complex128)
    wrong = truth.clone()
    wrong[0] = 3 + 4.5j
    assert oracle.max_error(truth.to(torch.complex64), truth) < 1e-6
    assert oracle.max_error(wrong, truth) > 0.05


@pytest.mark.parametrize("shape", [(7, 5), (1, 40), (40,), (3, 2, 5), (2, 2, 2, 2, 2), (), (0, 3)])
def test_slices_give_what_the_whole_gives(shape, monkeypatch):
    truth = torch.randn(shape, dtype=torch.float64)
    answer = (truth * (1 + 1e-5 * torch.randn_like(truth))).float()
    left_out = torch.rand(shape) < 0.3
    whole = oracle.max_error(answer, truth), oracle.max_error(answer, truth, left_out), float(oracle.rms_of(truth))
    monkeypatch.setattr(oracle, "WHOLE", 8)
    found = oracle.max_error(answer, truth), oracle.max_error(answer, truth, left_out), float(oracle.rms_of(truth))
    assert found == pytest.approx(whole)
    pieces = list(oracle.parts(truth, answer))
    assert sum(piece.numel() for piece, _ in pieces) == truth.numel()
    assert all(a.shape == b.shape and a.numel() <= 2 * 8 for a, b in pieces)


def test_slices_see_what_the_whole_sees(monkeypatch):
    monkeypatch.setattr(oracle, "WHOLE", 4)
    values = torch.arange(12.0).reshape(1, 12)
    assert oracle.all_finite(values)
    values[0, 11] = math.nan
    assert not oracle.all_finite(values)
    assert float(oracle.rms_of(values)) == pytest.approx(math.sqrt(sum(i * i for i in range(11)) / 11))
    assert oracle.max_error(values.float(), values.double()) == 0.0
    assert oracle.max_error(values.nan_to_num(7.0), values.double()) == math.inf


def test_elements_left_out_do_not_count():
    truth = torch.ones(4, dtype=torch.float64)
    answer = torch.tensor([1.0, NAN, 1.0, 9.0])
    assert error(answer, truth, torch.tensor([False, True, False, True])) == 0.0


def test_a_lattice_spans_whole_rows_and_columns():
    places = oracle.lattice(torch.Size([3, 1000, 500]), limit=6000)
    assert len(places[0]) == 3 and 1500 < len(places[0]) * len(places[1]) * len(places[2]) <= 6000
    tensor = torch.arange(24.0).view(2, 3, 4)
    assert torch.equal(oracle.thinned(tensor, oracle.lattice(tensor.shape)), tensor)

    at = [torch.tensor([1]), torch.tensor([0, 2]), torch.arange(4)]
    assert torch.equal(oracle.thinned(tensor, at), tensor[1:, [0, 2]])


def test_a_lattice_of_a_long_row_is_drawn_without_shuffling_it():
    (places,) = oracle.lattice(torch.Size([1 << 24]))
    assert 0.99 * oracle.LATTICE < len(places) <= oracle.LATTICE and bool((places[1:] > places[:-1]).all())
    assert int(places[0]) < 1 << 12 and (1 << 24) - (1 << 12) < int(places[-1]) < 1 << 24
    (others,) = oracle.lattice(torch.Size([1 << 24]))
    assert not torch.equal(places, others)


# ── jumps ─────────────────────────────────────────────────────────────────────────────────────────


def test_isolated_jumps_are_found_and_noise_is_not():
    truth = torch.randn(10_000, dtype=torch.float64)
    noisy = truth * (1 + 1e-7 * torch.randn_like(truth))
    assert oracle.find_jumps(noisy, truth).count == 0
    noisy[[5, 77]] += 0.1
    found = oracle.find_jumps(noisy, truth)
    assert found.count == 2 and found.mask[[5, 77]].all()


def test_many_differences_are_no_jumps():
    truth = torch.randn(1000, dtype=torch.float64)
    answer = truth.clone()
    answer[:100] += 1.0
    assert oracle.find_jumps(answer, truth).count == 0


@pytest.mark.parametrize("whole", [1 << 25, 500])
def test_what_is_dealt_alike_holds_the_same_in_any_order(whole, monkeypatch):
    """By a sample, too, where a tensor is too large to be sorted."""
    monkeypatch.setattr(oracle, "WHOLE", whole)
    truth = torch.randn(40, 50, dtype=torch.float64).relu()
    order = torch.randperm(truth.numel())
    other = truth.flatten()[order].view(50, 40).t()  # neither contiguous nor in that order
    assert oracle.are_dealt_alike(other.float(), truth, 1e-6)
    assert oracle.are_dealt_alike(other + 0.01, truth, 0.02) and not oracle.are_dealt_alike(other + 0.03, truth, 0.02)
    assert oracle.are_dealt_alike(other - 0.01, truth, 0.02) and not oracle.are_dealt_alike(other - 0.03, truth, 0.02)
    for place, value in ((int(truth.argmax()), 9.0), (int(truth.argmax()), INF), (0, NAN), (0, -9.0)):
        wrong = truth.clone()
        wrong.view(-1)[place] = value
        assert not oracle.are_dealt_alike(wrong, truth, 0.02) and not oracle.are_dealt_alike(truth, wrong, 0.02)
    fewer = truth.where(truth > 0, truth.max() * (torch.rand_like(truth) < 0.05))
    assert not oracle.are_dealt_alike(fewer, truth, 0.02)
    assert not oracle.are_dealt_alike(truth, truth.t(), 0.02) and not oracle.are_dealt_alike(truth + 0j, truth, 0.02)


def test_large_tensors_are_never_sorted_as_a_whole(monkeypatch):
    monkeypatch.setattr(oracle, "WHOLE", 1 << 12)
    monkeypatch.setattr(oracle, "LATTICE", 1 << 8)

    class Largest(TorchDispatchMode):
        elements = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            made = func(*args, **(kwargs or {}))
            each = [t for t in (made if isinstance(made, tuple) else (made,)) if isinstance(t, torch.Tensor)]
            self.elements = max([self.elements, *(t.numel() for t in each if t.itemsize == 8)])
            return made

    truth = torch.randn(64, 512)
    with Largest() as seen:
        assert oracle.are_dealt_alike(truth.flip(0), truth, 1e-6)
    assert seen.elements <= oracle.WHOLE, "float64 copies and places are of parts"


def test_integers_jump_where_they_differ():
    truth = torch.arange(1000)
    answer = truth.clone()
    answer[3] = 0
    assert oracle.find_jumps(answer, truth).count == 1


# ── other precisions ──────────────────────────────────────────────────────────────────────────────
