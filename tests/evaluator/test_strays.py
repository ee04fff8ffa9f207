"""Samples that lie otherwise than independent numbers: which, how, and that a look at a batch does not tell."""

from __future__ import annotations

import math

import pytest
import torch

from cuda_l1.evaluator.guest import strays
from cuda_l1.evaluator.guest.strays import FARTHEST, IN_ORDER, LEAST, LONGEST, MANY, MOST, WAYS, with_strays


def made_of(*drawn, ways=WAYS, deck=None, fixed=()):
    return with_strays(list(drawn), fixed, ways=ways, deck=[] if deck is None else deck)


def changed(before, after):
    return (before != after).flatten(1).any(1)


def test_few_samples_change_and_the_same_in_every_tensor():
    images = torch.randn(64, 3, 8, 8).to(memory_format=torch.channels_last)
    numbers, places, single, ones = torch.randn(64, 40), torch.arange(64), torch.randn(LEAST - 1), torch.ones(64, 9)
    (rows, pictures, *kept), found = made_of(numbers, images, places, single, ones)
    assert found and all(now is was for now, was in zip(kept, (places, single, ones), strict=True))
    assert pictures.stride() == images.stride()
    assert 1 <= int(changed(numbers, rows).sum()) <= 8 and torch.equal(
        changed(numbers, rows), changed(images, pictures)
    )
    (same,), found = made_of(numbers, fixed=(0,))
    assert not found and same is numbers


@pytest.mark.parametrize("ways", [WAYS, IN_ORDER])
def test_a_batch_keeps_means_deviations_extremes_and_columns(ways):
    for _ in range(20):
        drawn = torch.randn(64, 2048)
        (made,), _ = made_of(drawn, ways=ways)
        deviations, means = torch.std_mean(made, 1)
        assert float((deviations - 1).abs().max()) < 8 / math.sqrt(2 * 2048)
        assert float(means.abs().max()) < 8 / math.sqrt(2048)
        assert float(made.mean(0).std()) < 1.2 / math.sqrt(64) and float(made.abs().max()) <= float(drawn.abs().max())
        if ways is IN_ORDER:
            assert torch.equal(made.sort(1).values, drawn.sort(1).values)


def test_half_of_a_few_samples_change_and_every_way_has_its_turn():
    deck: list[strays.Way] = []
    for left in (4, 2, 0):
        drawn = torch.randn(4, 64)
        (made,), _ = made_of(drawn, deck=deck)
        assert int(changed(drawn, made).sum()) == 2 and len(deck) == left


def test_large_samples_are_parted_and_a_batch_of_one_is_its_channels():
    (one, wide), _ = made_of(torch.zeros(1, 6, 9, 9).normal_(), torch.zeros(2, 4, MOST).normal_())
    assert one.shape == (1, 6, 9, 9) and wide.shape == (2, 4, MOST)
    assert strays._leading(one) == (1, 6) and strays._leading(wide) == (2, 4)
    assert not strays._leading(torch.empty(4, LEAST - 1)) and not strays._leading(torch.empty(2, LONGEST + 1))
    many = torch.randn(1000, 8)
    assert int(changed(many, made_of(many)[0][0]).sum()) <= MANY


def test_a_tensor_of_one_dimension_is_one_sample_and_of_long_ones_there_are_few():
    series = torch.randn(512)
    (made,), found = made_of(series, ways=IN_ORDER)
    assert found and made.shape == series.shape and not torch.equal(made, series)
    assert torch.equal(made.sort().values, series.sort().values)
    long = torch.zeros(1, 40).normal_().expand(16, 40).repeat(1, LONGEST // 40)
    assert int(changed(long, made_of(long)[0][0]).sum()) <= MANY * MOST // long.shape[1]


def test_what_is_read_at_even_distances_may_be_the_largest():
    distances = set[int]()
    for _ in range(40):
        made = strays.interleaved(torch.randn(4096), False)
        found = [
            2**n
            for n in range(1, 9)
            if not float(made[:: 2**n].min()) < float(made.median()) < float(made[:: 2**n].max())
        ]
        distances.update(found)
        assert found and max(found) <= FARTHEST
    assert len(distances) > 4


def test_triangles_and_expanded_tensors_stay():
    kept = [torch.randn(24, 24).tril(), torch.randn(24, 1).expand(24, 24)]
    made, found = made_of(*kept)
    assert not found and all(now is was for now, was in zip(made, kept, strict=True))


def test_complex_samples_and_rectified_ones_lie_otherwise_too():
    drawn = [torch.randn(24, 64, dtype=torch.complex64), torch.relu(torch.randn(24, 64))]
    made, found = made_of(*drawn)
    assert found and made[0].dtype is torch.complex64
    assert all(1 <= int(changed(was, now).sum()) <= len(WAYS) for was, now in zip(drawn, made, strict=True))


def test_what_is_large_stands_in_one_place():
    row = torch.randn(512)
    for _ in range(20):
        far = (strays.by_distance(row, False) - row.mean()).abs()
        at = int(far.argmax())
        beside = torch.cat([far, far]).unfold(0, 64, 1).amax(1)
        assert float(beside.min()) < 1.0 and float(far[at]) == float((row - row.mean()).abs().max())


def test_a_line_winds_through_all_rows():
    image = torch.randn(9, 12)
    for _ in range(20):
        made = strays.winding(image, False)
        assert torch.equal(made.flatten().sort().values, image.flatten().sort().values)
        path = [(row, column if row % 4 == 0 else 11 - column) for row in range(0, 9, 2) for column in range(12)]
        line = torch.stack([made[place] for place in path])
        steps, others = line.diff(), made[1::2]
        assert bool((steps <= 0).all()) or bool((steps >= 0).all())
        ends = torch.tensor([[11 if row % 4 == 1 else 0] for row in range(1, 9, 2)])
        beside = others.scatter(1, ends, math.nan).nanmean()
        assert abs(float(line.mean() - beside)) > 1


def test_copies_run_apart_and_meet_at_the_ends():
    series = torch.arange(320.0)
    one, other = (strays.warped(series, turn) for turn in (True, False))
    assert torch.equal(torch.unique(one), torch.unique(other))
    apart = max(abs(int((one == v).nonzero()[0]) - int((other == v).nonzero()[0])) for v in torch.unique(one))
    assert apart >= 155
    pair = made_of(torch.randn(2, 320), torch.randn(2, 320), ways=(strays.warped,))[0]
    assert torch.equal(*(torch.unique(t[changed(t, t.roll(1, 1)) & (t.diff(dim=1) == 0).any(1)]) for t in pair))


def test_every_other_way_than_one_through_all_nodes_is_long():
    graph = strays.of_one_size(torch.randn(64, 64), False)
    short = graph.abs() < 0.5
    assert int(short.sum()) == 2 * 63 and torch.equal(short, short.T), "there and back"
    assert sorted(short.sum(1).tolist()) == [1, 1, *[2] * 62], "a line through all nodes"
    steps, first = torch.eye(64)[0] > 0, 0
    while not bool(steps.all()):
        steps, first = steps | (short[steps].any(0)), first + 1
    assert first >= 32
    assert abs(float(graph.std()) - 1) < 0.1 and len(torch.unique(graph[~short])) == 2
