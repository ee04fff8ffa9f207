"""Integers and masks as no independent draw arranges them, and what stays as it is."""

from __future__ import annotations

import math

import pytest
import torch

from cuda_l1.evaluator.guest.arranged import arranged


def made_of(*drawn: torch.Tensor, fixed: frozenset[int] = frozenset()) -> list[torch.Tensor]:
    made, found = arranged(list(drawn), fixed)
    assert found == any(now is not was for now, was in zip(made, drawn, strict=True))
    for now, was in zip(made, drawn, strict=True):
        assert now.shape == was.shape and now.dtype is was.dtype and now.stride() == was.stride()
    return made


def steps_to_all(graph: torch.Tensor) -> int:
    """How many steps reach what can be reached."""
    step = (graph | torch.eye(len(graph), dtype=torch.bool)).float()
    reach, count = step, 0
    while not torch.equal(further := (reach @ step).clamp(max=1), reach):
        reach, count = further, count + 1
    return count


@pytest.mark.parametrize("symmetric", [True, False])
def test_a_graph_is_one_long_line_sooner_or_later(symmetric):
    drawn = torch.rand(32, 32) < 0.3
    drawn = drawn | drawn.t() if symmetric else drawn
    made = [made_of(drawn)[0] for _ in range(40)]
    assert steps_to_all(drawn) < 8 and max(map(steps_to_all, made)) == 30
    for graph in made:
        assert torch.equal(graph, graph.t()) or not symmetric
    assert max(steps_to_all(graph) for graph in made_of(torch.stack([drawn] * 16))[0]) == 30 or not symmetric


def test_a_grid_has_a_winding_line_or_a_single_corner_and_half_of_the_samples_stay():
    drawn = torch.rand(64, 9, 16) < 0.4
    (made,) = made_of(drawn)
    counts = {int(each.sum()) for each, was in zip(made, drawn, strict=True) if not torch.equal(each, was)}
    assert counts == {4, 5 * 16 + 4}
    assert 31 <= sum(torch.equal(each, was) for each, was in zip(made, drawn, strict=True)) <= 32


def test_bounds_and_labels_keep_their_order_and_range_and_leave_one_long_segment():
    bounds = (torch.randperm(2047)[:31] + 1).sort().values
    labels = torch.randint(0, 9, (4, 300)).sort().values
    for _ in range(8):
        made, of_labels = made_of(bounds, labels)
        assert bool((made.diff() > 0).all()) and made[0] == bounds[0] and made[-1] == bounds[-1]
        assert int(made.diff().max()) == int(bounds[-1] - bounds[0]) - 29
        assert bool((of_labels.diff() >= 0).all()) and bool((of_labels.amax(1) <= labels.amax(1)).all())
        assert all(int(row.bincount().max()) == 299 for row in of_labels)


def test_edges_are_one_line_through_all_nodes():
    drawn = torch.stack([torch.randint(0, 20, (64,)), torch.randint(0, 20, (64,))])
    (made,) = made_of(drawn)
    nodes = int(drawn.max() - drawn.min()) + 1
    assert made.unique(dim=1).shape[1] == nodes - 1 and all(
        int(row.bincount(minlength=nodes).max()) == 4 for row in made
    )
    both = torch.cat([drawn, drawn.flip(0)], 1)
    in_order = drawn[:, drawn[0].argsort()]
    assert made_of(both)[0] is both and made_of(in_order)[0] is in_order


def test_a_string_beside_another_is_that_one_shifted():
    one, other = torch.randint(0, 4, (8, 64)), torch.randint(0, 4, (8, 64))
    same, made = made_of(one, other)
    assert same is one
    assert any(
        torch.equal(made[:, by:], one[:, :-by]) and torch.equal(made[:, :by], other[:, :by]) for by in range(16, 33)
    )


def test_what_means_something_else_or_is_the_same_in_every_draw_stays():
    kept = [
        torch.randperm(64),
        torch.randint(0, 1000, (8, 32)),  # tokens: nothing of them comes twice in a row
        torch.randint(0, 1000, (8, 32)),
        torch.eye(16).bool(),
        torch.randn(16, 16),
        torch.tensor([1, 2, 3]),
    ]
    assert all(now is was for now, was in zip(made_of(*kept), kept, strict=True))
    mask = torch.rand(16, 16) < 0.5
    assert made_of(mask, fixed=frozenset({0}))[0] is mask


@pytest.mark.parametrize("written", [lambda m: m, lambda m: m.float(), lambda m: torch.rand(m.shape) * m])
def test_a_series_lets_through_in_one_stretch(written):
    mask = torch.rand(512) < 0.5
    (made,) = made_of(written(mask))
    is_open = made != 0
    assert int(is_open.sum()) == int(mask.sum()) and int((is_open != is_open.roll(1)).sum()) == 2


def test_distances_with_infinities_for_what_is_no_edge_become_one_line():
    lines = 0
    for _ in range(20):
        graph = torch.rand(48, 48).masked_fill(torch.rand(48, 48) < 0.8, math.inf)
        (made,) = made_of(graph)
        edges = torch.isfinite(made) & ~torch.eye(48, dtype=torch.bool)
        lines += bool((edges.sum(0) <= 1).all() and (edges.sum(1) <= 1).all() and edges.sum() == 47)
        assert bool((made[torch.isfinite(made)] <= 1).all())
    assert lines
