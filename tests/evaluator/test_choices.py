"""Other values for what is the same in every draw: places stay in range, rows keep their sum, tables their signs."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import one_hot

from cuda_l1.evaluator.guest import choices


def other(value, *, numbers=True, places=True, beside=(), fixed=(0,), few=False):
    """The value with other choices, or None where it stays."""
    torch.manual_seed(1)
    (made, *_), found = choices.with_other_choices([value, *beside], fixed, numbers=numbers, places=places, few=few)
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


def test_a_table_of_complex_numbers_keeps_their_angles():
    table = torch.randn(32, 16, dtype=torch.complex64)
    made = other(table)
    assert torch.allclose(made.angle(), table.angle()) and bool((made.abs() <= table.abs() + 1e-6).all())
    assert other(table, numbers=False) is None and int((other(table, few=True) != table).sum()) <= choices.FEW_ELEMENTS


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
    assert other(place) is None and other(torch.arange(9, 0, -1)) is None
    assert other(place.expand(4, 30)) is None and other(place.expand(100, 30).contiguous()) is None
    beside = torch.arange(10) * 7 % 9
    made, found = choices.with_other_choices([place * 3, beside], (0, 1), numbers=False, places=True)
    assert found and torch.equal(made[0], place * 3)  # it may have to agree with the others
    pairs = torch.stack([place // 3, place * 7 % 30])
    made = other(pairs)
    assert torch.equal(made[0], pairs[0]) and not torch.equal(made[1], pairs[1])


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize(
    ("places", "strictly"),
    [
        (torch.tensor([0, 7, 9, 30, 31, 40]), True),
        (torch.arange(0, 400, 8), True),
        (torch.arange(30) // 5, False),
        (torch.tensor([0, 0, 0, 1, 1, 2, 5, 5, 5, 5]), False),
    ],
    ids=["offsets", "even-offsets", "even-segments", "segments"],
)
def test_distances_between_places_in_order_are_others(places, strictly, few):
    made = other(places, numbers=False, few=few)
    steps = made.diff()
    assert bool((steps > 0).all()) if strictly else bool((steps >= 0).all())
    assert made[0] == places[0] and made[-1] == places[-1] and set(made.tolist()) <= set(range(int(places.max()) + 1))
    assert torch.equal(made.unique(), places.unique()) or strictly
    assert not few or int((made != places).sum()) <= 3


def test_an_even_distance_that_a_number_among_the_inputs_tells_stays():
    assert other(torch.arange(0, 400, 8), beside=[8]) is None and other(torch.arange(0, 400, 8), beside=[9]) is not None


CHOSEN = {
    "edges": edges,
    "lengths": lambda: torch.full((64,), 128),
    "one-hot": lambda: one_hot(torch.arange(64) * 7 % 64).float(),
    "shares": lambda: torch.linspace(0, 9, 256).sin().view(32, 8).softmax(-1),
    "table": lambda: torch.linspace(-3, 5, 4096).sin(),
}


@pytest.mark.parametrize("make", CHOSEN.values(), ids=CHOSEN)
def test_only_one_or_two_are_others(make):
    value = make()
    rows = value.view(len(value), -1) if value.is_floating_point() else value.view(-1, 1)
    made = other(value, few=True, beside=[torch.zeros(9, 9)])
    assert 0 < int((made.view_as(rows) != rows).any(-1).sum()) <= choices.FEW_ELEMENTS


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
