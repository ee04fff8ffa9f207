"""How often integers come: once, not at all, or twice where all of a draw are different."""

from __future__ import annotations

import pytest
import torch

from cuda_l1.evaluator.guest import kinds
from cuda_l1.evaluator.guest.reference import Reference


def once(tensor: torch.Tensor) -> torch.Tensor:
    made = tensor.clone()
    kinds.put_once(made)
    return made


def test_one_value_comes_once_and_another_not_at_all():
    torch.manual_seed(0)
    labels = torch.randint(0, 8, (256,))
    made = once(labels)
    counts = torch.bincount(made, minlength=8)
    assert (counts == 1).sum() == 1 and (counts == 0).sum() == 1 and counts.sum() == 256
    assert (made != labels).float().mean() < 0.4


def test_of_two_values_one_comes_once():
    torch.manual_seed(0)
    assert sorted(torch.bincount(once(torch.randint(0, 2, (64,)))).tolist()) == [1, 63]


def test_what_is_in_order_stays_so():
    for seed in range(8):
        torch.manual_seed(seed)
        made = once(torch.randint(0, 16, (512,)).sort().values)
        counts = torch.bincount(made, minlength=16)
        assert bool((made.diff() >= 0).all()) and (counts == 1).sum() == 1 and (counts == 0).sum() == 1


def test_values_stay_in_their_column():
    torch.manual_seed(0)
    columns = torch.stack([torch.randint(0, 3, (64,)), torch.randint(100, 103, (64,))], 1)
    made = once(columns)
    assert not torch.equal(made, columns)
    assert made[:, 0].max() < 3 and made[:, 1].min() >= 100


def test_one_segment_between_bounds_is_empty_and_one_of_length_one():
    torch.manual_seed(0)
    bounds = torch.cat([torch.zeros(1, dtype=torch.long), torch.randint(2, 9, (16,)).cumsum(0)])
    lengths = once(bounds).diff()
    assert sorted(lengths.tolist())[:2] == [0, 1] and lengths.sum() == bounds[-1]


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(64),
        torch.randperm(64),
        torch.arange(3, 99, 3),
        torch.zeros(64, dtype=torch.long),
        torch.tensor([0, 5, 9]),
        torch.eye(8, dtype=torch.long),
    ],
)
def test_what_has_no_kinds_stays(tensor):
    assert torch.equal(once(tensor), tensor)


def test_lengths_are_dealt_to_others():
    torch.manual_seed(0)
    lengths = torch.randint(4, 9, (16,))
    assert kinds.add_up(lengths, {int(lengths.sum())}) and not kinds.add_up(lengths, {16})
    made = lengths.clone()
    kinds.deal(made, 1 << 30)
    assert made.sum() == lengths.sum() and sorted(made.tolist())[:2] == [0, 1]
    within = lengths.clone()
    kinds.deal(within, 8)
    assert within.sum() == lengths.sum() and sorted(within.tolist())[:2] == [0, 1] and within.max() == 8
    full = torch.full((16,), 8)
    kinds.deal(full, 8)
    assert bool((full == 8).all())


def test_integers_come_twice_and_in_two_lists():
    torch.manual_seed(0)
    one, history = torch.randperm(5000)[:128].view(8, 16), torch.randperm(5000)[:192].view(8, 24)
    made = one.clone()
    kinds.put_twice(made, None)
    assert len(made.unique()) < 128 and set(made.flatten().tolist()) <= set(one.flatten().tolist())
    made = one.clone()
    kinds.put_twice(made, history)
    assert bool((made[:, :, None] == history[:, None]).any()) and made.max() <= one.max()
    assert not bool((made[:, :, None] == history.roll(1, 0)[:, None]).any())
    pair = torch.randperm(5000)[:128].view(8, 16)
    kinds.put_twice(pair, one)
    assert bool((pair == one).any())


TASK = """
import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode as watched_by


class Model(torch.nn.Module):
    def forward(self, t, x):
        return {forward}


def get_inputs():
    return [{ids}, torch.randn(100000, 4)]
"""


@pytest.mark.parametrize(
    ("ids", "forward", "are_by_chance"),
    [
        ("torch.randint(0, 100000, (16,))", "x[t]", True),
        ("torch.randint(0, 100000, (64,)).view(8, 8)", "x[t].sum(1)", True),
        ("torch.randperm(100000)[:16]", "x[t]", False),
        ("torch.randint(0, 100000, (16,)).sort().values", "x[t]", False),
        ("torch.randint(0, 100000, (16,))", "x.index_copy(0, t, x[:16])", False),
        ("torch.randint(0, 4, (16,))", "x[t]", False),
        ("torch.randint(0, 100000, (16,))[: 16 // (watched_by() is None)]", "x[t]", False),
        ("torch.randint(0, 100000, (16,))", "x[t[: 16 // (watched_by() is None)]]", False),
    ],
)
def test_integers_that_are_different_by_chance(tmp_path, ids, forward, are_by_chance):
    (tmp_path / "task.py").write_text(TASK.format(ids=ids, forward=forward))
    reference = Reference(str(tmp_path / "task.py"), "cpu")
    with torch.random.fork_rng():
        inputs = reference.draw()
    while torch.unique(inputs[0]).numel() < 16 and are_by_chance:
        inputs = reference.draw()
    assert kinds.distinct_by_chance(reference, inputs) == ({0} if are_by_chance else set())
