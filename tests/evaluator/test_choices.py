"""Other values for what is the same in every draw: places stay in range, rows keep their sum, tables their signs."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import one_hot

from cuda_l1.evaluator.guest import choices


def other(value, *, numbers=True, places=True, beside=()):
    """The value with other choices, or None where it stays."""
    torch.manual_seed(1)
    (made, *_), found = choices.with_other_choices([value, *beside], {0}, numbers=numbers, places=places)
    assert found is (made is not value)
    if found:
        assert made.dtype == value.dtype and made.stride() == value.stride() and not torch.equal(made, value)
    return made if found else None


def edges():
    source = torch.arange(320) % 40
    return torch.stack([source, (source * 7 + torch.arange(320) // 40 + 1) % 40])


def test_what_two_draws_have_in_common():
    fixed = {"x": torch.ones(3), "n": 4}, torch.full((2,), torch.nan)
    assert choices.alike([*fixed, torch.zeros(3)], [*fixed, torch.ones(3)]) == {0, 1}


def test_what_differs_between_draws_stays():
    shares = torch.rand(9, 9).softmax(-1)
    made, found = choices.with_other_choices([shares, edges()], set(), numbers=True, places=True)
    assert not found and made[0] is shares


SHARES = (
    torch.full((12,), 1 / 12),
    torch.full((64, 3), 1 / 3),
    torch.linspace(0, 9, 256).sin().view(32, 8).softmax(-1),
)


@pytest.mark.parametrize("shares", SHARES)
def test_some_shares_are_others_and_add_up_to_one(shares):
    made = other(shares, places=False)
    assert torch.allclose(made.sum(-1), shares.sum(-1)) and bool((made >= 0).all())
    same = (made == shares).all(-1)
    assert shares.dim() == 1 or 0.5 < float(same.float().mean()) < 1.0
    assert other(shares, numbers=False) is None


def test_symmetric_shares_stay_symmetric():
    ring = (torch.eye(9) + torch.eye(9).roll(1, 0) + torch.eye(9).roll(-1, 0) * 1.0) / 3
    made = other(ring, numbers=False)
    assert torch.equal(made, made.T) and torch.allclose(made.sum(-1), torch.ones(9))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.int64])
def test_one_hot_rows_change_places(dtype):
    rows = one_hot(torch.arange(32) % 8, 8).to(dtype)
    made = other(rows, numbers=False)
    assert bool(((made != 0).sum(-1) == 1).all()) and torch.equal(made.sum(0), rows.sum(0))


def test_a_permutation_stays_one_and_an_identity_gets_another_diagonal():
    shuffle = torch.eye(64)[torch.arange(64).view(8, 8).T.flatten()]
    made = other(shuffle)
    assert torch.equal(made @ made.T, torch.eye(64)) and sorted(made.argmax(-1).tolist()) == list(range(64))
    scaled = other(torch.eye(16))
    assert torch.equal(scaled, scaled.diagonal().diag()) and 0.25 <= float(scaled.diagonal().min()) < 1.0


def test_infinities_stay_where_they_are_and_what_is_symmetric_stays_so():
    place = torch.arange(64.0)
    distance = (place[:, None] - place).abs()
    for scores in (
        (-distance).masked_fill(distance > 9, -math.inf),
        (place - place[:, None]).masked_fill(place > place[:, None], -math.inf),
    ):
        made = other(scores.expand(2, 64, 64), places=False)[0]
        assert torch.equal(made.isinf(), scores.isinf()) and torch.equal(made == 0, scores == 0)
        assert torch.equal(scores, scores.T) is torch.equal(made, made.T)
    definite = torch.exp(-distance)
    assert float(torch.linalg.eigvalsh(other(definite, places=False).double()).min()) > 0


def test_in_a_small_mask_a_zero_and_a_number_change_places():
    for chosen in ([0, 3], [2]):
        mask = torch.zeros(8).index_fill_(0, torch.tensor(chosen), 1.0)
        made = other(mask, numbers=False)
        assert int((made != mask).sum()) == 2 and float(made.sum()) == len(chosen)
    assert other(torch.tensor([0.0] * 4 + [1.0] * 4)) is None  # knots


@pytest.mark.parametrize("table", [torch.linspace(0, 1, 40), torch.linspace(0, 1, 40).cos()])
def test_tables_keep_their_signs_and_their_order(table):
    made = other(table, places=False)
    assert torch.equal(made.sign(), table.sign()) and float(made.abs().max()) <= 1.0
    assert bool((made.diff() >= 0).all()) is bool((table.diff() >= 0).all())
    assert other(table, numbers=False) is None


def test_edges_are_those_of_a_graph_with_the_same_degrees_and_no_edge_twice():
    for graph in (edges(), edges().T.contiguous()):
        made = other(graph, numbers=False)
        was, now = (g if len(g) == 2 else g.T for g in (graph, made))
        for row in range(2):
            assert now[row].bincount().sort().values.tolist() == was[row].bincount().sort().values.tolist()
        assert len({tuple(pair) for pair in now.T.tolist()}) == len({tuple(pair) for pair in was.T.tolist()})
    assert other(edges(), places=False) is None


def test_each_column_of_places_keeps_its_range():
    columns = torch.stack([torch.arange(30) * 7 % 30, torch.arange(30) * 7 % 30 + 100, torch.arange(30) * 7 % 5], 1)
    made = other(columns, numbers=False)
    assert torch.equal(made.sort(dim=0).values, columns.sort(dim=0).values)
    wide = torch.stack([torch.randperm(100) + 100 * column for column in range(choices.COLUMNS + 1)], 1)
    assert torch.equal(other(wide).sort(dim=0).values, wide.sort(dim=0).values)


def test_places_that_are_in_order_stay():
    place = torch.arange(30)
    assert other(place) is None and other(place // 5) is None and other(torch.arange(9, 0, -1)) is None
    assert other(place.expand(4, 30)) is None and other(place.expand(100, 30).contiguous()) is None
    pairs = torch.stack([place // 3, place * 7 % 30])
    made = other(pairs)
    assert torch.equal(made[0], pairs[0]) and not torch.equal(made[1], pairs[1])


def test_uneven_routing_is_dealt_in_another_order():
    route = torch.tensor([0, 0, 0, 1, 1, 2, 0, 1, 0, 0])
    assert torch.equal(other(route).sort().values, route.sort().values)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_lengths_that_are_full_in_every_draw_are_shorter_in_falling_order(dtype):
    lengths = torch.full((16,), 128, dtype=dtype)
    made = other(lengths, numbers=False, beside=[torch.zeros(16, 128)]).long()
    assert int(made.max()) == 128 and int(made.min()) >= 1 and bool((made.diff() <= 0).all())


def test_one_number_throughout_stays_where_lower_ones_would_mean_nothing():
    assert other(torch.full((8,), 16), beside=[torch.zeros(128, 4)]) is None  # groups of a whole
    assert other(torch.ones(8, dtype=torch.int64)) is None and other(torch.full((8,), -100)) is None
