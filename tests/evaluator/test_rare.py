"""What inputs may mean and hardly ever do in a draw is put into them where the reference stands it."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import pytest
import torch
from torch.nn.functional import one_hot

from cuda_l1.evaluator.guest import rare
from cuda_l1.evaluator.guest.rare import Rare
from cuda_l1.evaluator.guest.reference import Reference

BASE = """
import torch
import torch.nn.functional as F
from torch import nn
{above}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, *args):
        {forward}


def get_inputs():
    return [{inputs}]
"""


def learned(tmp_path, forward, inputs, init="pass", above="", kinds=()):
    path = tmp_path / "task.py"
    shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)  # which knows a text by its second and its size
    path.write_text(BASE.format(forward=forward, inputs=inputs, init=init, above=above))
    found = rare.learn(Reference(str(path), "cpu"))
    return {each for each in found if each.kind in kinds} if kinds else {each for each in found if each.kind != "once"}


def changed(value, kind, integer=0):
    torch.manual_seed(2)
    (made,), found = rare.with_rare([value], [Rare(0, kind, integer)])
    assert found is (made is not value) is (not torch.equal(made, value))
    assert made.stride() == value.stride() and made.dtype == value.dtype
    return made


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x == 3", [3]),
        ("-1 != x", [-1]),
        ("x < 3", [2, 3]),
        ("3 < x", [3, 4]),
        ("x > 0", [0, 1]),
        ("0 <= x <= 5", [-1, 0, 5, 6]),
        ("PAD = 7\nx.ne(PAD)", [7]),
        ("PAD = 7\nx != PAD", [7]),
        ("torch.isin(x, torch.tensor([4, 9]))", [4, 9]),
        ("F.cross_entropy(x, y, ignore_index=-1)", [-1]),
        ("nn.Embedding(9, 3, padding_idx=2)", [2]),
        ("F.ctc_loss(x, y, n, m, blank=0)", []),
        ("self.num_classes = 8", [7]),
        ("self.count = 8\nself.padding = 1\nx = x + 5", []),
        ("x.dim() == 3 and x.shape[0] == 5 and dim == -1", []),
        ("x == 3.0 or x is True", []),
        ("not python", []),
    ],
)
def test_integers_that_a_text_asks_for(text, found):
    assert sorted(rare.named_integers(text)) == found


def test_numbers_that_a_text_asks_equality_with():
    text = "x == -1.5 or 2.5 != y or x.eq(3.5)\nx < 9.5\nx == 0.0 or self.dim == 7.5\nx != 2j"
    assert set(rare.named_numbers(text)) == {-1.5, 2.5, 3.5, 2j} and rare.named_numbers("not python") == []


def test_where_all_integers_are_zero_some_are_one_if_there_is_a_second_thing(tmp_path):
    inputs = "torch.zeros(4, 16, dtype=torch.long)"
    kinds = "self.kinds = nn.Embedding({}, 3)"
    forward = "return self.kinds(args[0])"
    assert learned(tmp_path, forward, inputs, kinds.format(2)) == {Rare(0, "row", 1), Rare(0, "places", 1)}
    assert learned(tmp_path, forward, inputs, kinds.format(1)) == set()


def test_integers_become_up_to_so_many_times_as_large():
    values = torch.randint(-50, 50, (64, 64))
    made = changed(values, "larger", 3)
    assert bool((made.sign() == values.sign()).all()) and set((values * 3 - made).abs().unique().tolist()) == {0, 1, 2}


@pytest.mark.parametrize(
    ("forward", "inputs", "larger"),
    [
        ("args[0].sort(-1).values", "torch.randint(100, (8, 64))", True),
        ("args[0].float() @ args[1]", "torch.randint(100, (8, 64)), torch.randn(64, 4)", True),
        ("args[1][args[0]]", "torch.randint(8, (64,)), torch.randn(30)", False),
        ("(args[0].unsqueeze(-1) == torch.arange(100)).float()", "torch.randint(100, (64,))", False),
        ("args[0].cumsum(-1)", "torch.randint(2, (64,))", False),
        ("args[0].cumsum(-1)", "torch.randint(100, (64,), dtype=torch.int8)", False),
        ("args[0] > 5", "torch.randint(100, (64,))", False),
    ],
    ids=["sort", "product", "places", "kinds", "mask", "whole-dtype", "truth"],
)
def test_integers_that_stand_for_numbers_are_larger(tmp_path, forward, inputs, larger):
    assert (Rare(0, "larger", 3) in learned(tmp_path, f"return {forward}", inputs)) is larger


@pytest.mark.parametrize(
    ("forward", "inputs", "most"),
    [
        ("args[0] @ args[1]", "torch.randint(64, (64, 256)), torch.randint(64, (256, 64))", 1 << 33),
        ("args[0].int() @ args[1].int()", "torch.randint(64, (64, 256)), torch.randint(64, (256, 64))", 1 << 28),
        ("args[0].cumsum(-1)", "torch.randint(100, (8, 1024), dtype=torch.int16)", 1 << 28),
        ("args[0].sum(-1, dtype=torch.int16)", "torch.randint(10, (8, 256), dtype=torch.int16)", 1 << 14),
    ],
    ids=["product", "product-of-int32", "sums", "narrow-sums"],
)
def test_sums_of_integers_come_near_what_floats_do_not_hold(tmp_path, forward, inputs, most):
    found = learned(tmp_path, f"return {forward}", inputs)
    reference = Reference(str(tmp_path / "task.py"), "cpu")
    made, _ = rare.with_rare(reference.draw(), found)
    largest = int(reference.call(made, reference.public).tensors[0].abs().max())
    assert most // 16 < largest <= 2 * most and all(each.value > 3 for each in found if each.kind == "larger")


@pytest.mark.parametrize("forward", ["(args[0] * 100).clamp(max=50_000)", "args[0].float().cumsum(-1).long() + 1 - 1"])
def test_integers_are_three_times_as_large_where_answers_to_larger_ones_are_not(tmp_path, forward):
    """Beyond a limit, or where the reference computes in floats, answers are not in proportion."""
    assert learned(tmp_path, f"return {forward}", "torch.randint(100, (8, 256))") == {
        Rare(0, "larger", 3),
        Rare(0, "negated"),
    }


def test_integers_that_stand_for_numbers_are_negative_in_two_places(tmp_path):
    assert Rare(0, "negated") not in learned(tmp_path, "return args[0] * 2", "torch.randint(-9, 100, (8, 64))")
    drawn = torch.randint(1, 100, (8, 64))
    ((made,), found) = rare.with_rare([drawn], {Rare(0, "negated")})
    assert found and 1 <= int((made < 0).sum()) <= 2 and torch.equal(made.abs(), drawn)


@pytest.mark.parametrize(
    ("forward", "least", "is_put"),
    [
        ("args[1].sum(-1) / args[0].clamp(min=1)", 1, True),
        ("args[1].sum(-1) / args[0].float().clamp_min(1.0)", 1, True),
        ("args[1].sum(-1) / torch.maximum(args[0], torch.tensor(1))", 1, True),
        ("args[1].sum(-1) / args[0].clamp(min=1)", 0, False),
        ("args[1].sum(-1) / args[0]", 1, False),
        ("(args[1].sum(-1) / args[0]).clamp(min=1)", 1, False),
    ],
)
def test_what_is_raised_to_one_is_zero_somewhere(tmp_path, forward, least, is_put):
    """Where a draw holds no zero."""
    found = learned(tmp_path, f"return {forward}", f"torch.randint({least}, 9, (64,)), torch.rand(64, 8)")
    assert (Rare(0, "places", 0) in found) is is_put


def test_a_number_that_is_asked_for_is_put_in_some_places(tmp_path):
    forward = "return torch.where(args[0] == -1.5, 0.0, args[0])"
    assert learned(tmp_path, forward, "torch.randn(8, 16)") == {Rare(0, "places", -1.5)}
    assert learned(tmp_path, forward, "torch.randn(8, 16).softmax(-1)") == {Rare(0, "shares", 1)}


def test_a_number_is_put_among_complex_ones_and_a_complex_one_among_these_alone(tmp_path):
    forward = "return torch.where(args[0] == -1.5, 0.0, args[0]) * (args[0] != 2j)"
    found = {Rare(0, "places", -1.5), Rare(0, "places", 0.0, 2.0)}
    assert learned(tmp_path, forward, "torch.randn(8, 16, dtype=torch.complex64)") == found
    assert learned(tmp_path, forward, "torch.randn(8, 16)") == {Rare(0, "places", -1.5)}
    ((made,), _) = rare.with_rare([torch.randn(8, 16, dtype=torch.complex64)], found)
    assert bool((made == 2j).any()) and bool((made == -1.5).any())


def test_integers_of_the_modules_are_looked_up():
    model = torch.nn.ModuleList([torch.nn.Embedding(9, 3, padding_idx=2)])
    model.k = 5
    assert rare.named_integers("x == self.k", model) == [2, 5, 8]


def test_integers_are_put_in_some_places_and_one_row():
    tokens = torch.randint(10, 20, (16, 32))
    places = changed(tokens, "places", 3)
    assert 0.05 < float((places == 3).float().mean()) <= 1 / 8 and torch.equal(places[places != 3], tokens[places != 3])
    row = changed(tokens, "row", 3)
    assert (row == 3).all(1).sum() == 1 and (row == 3).sum() == 32


def test_rows_become_of_categories_that_none_is_of():
    made = changed(one_hot(torch.arange(40) % 5, 8).float(), "column")
    assert torch.equal(made.sum(-1), torch.ones(40)) and bool(made[:, 5:].any()) and bool(made[:, :5].any())
    whole = torch.eye(8)
    assert changed(whole, "column") is whole


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_some_shares_are_zero_and_the_sum_stays(dim):
    shares = torch.randn(6, 7, 8).softmax(dim)
    made = changed(shares, "shares", dim)
    assert torch.allclose(made.sum(dim), torch.ones_like(made.sum(dim))) and bool((made >= 0).all())
    assert bool((made == 0).any()) and bool(made.max() > 1 - 1e-6)  # what a row sums to
    assert int((made != shares).any(dim).sum()) <= shares.select(dim, 0).numel() // 8 + 1


def test_some_shares_are_nearly_alike_in_the_order_that_they_had():
    shares = (4 * torch.randn(64, 1024)).softmax(1)
    made = changed(shares, "shares", 1)
    is_flat = (made > 0).all(1) & (made != shares).any(1)
    assert int(is_flat.sum()) >= 1 and float(made[is_flat].max()) < 2 / 1024
    assert torch.equal(
        made[is_flat].gather(1, shares[is_flat].argsort(1)).diff(dim=1) >= 0, torch.ones(int(is_flat.sum()), 1023) > 0
    )


def test_single_probabilities_are_zero_and_one():
    made = changed(torch.rand(64) * 0.9 + 0.05, "ends")
    assert bool((made == 0).any()) and bool((made == 1).any()) and bool(((made > 0) & (made < 1)).any())


def test_divergences_stand_targets_of_zero_and_no_predictions_of_zero(tmp_path):
    softmax = "torch.randn(8, 16).softmax(-1)"
    found = learned(tmp_path, "return F.kl_div(args[0].log(), args[1])", f"{softmax}, {softmax}")
    assert found == {Rare(1, "shares", 1)}


def test_only_probabilities_become_zero_and_one(tmp_path):
    losses = "return F.binary_cross_entropy(args[0], args[1])"
    assert learned(tmp_path, losses, "torch.rand(8, 16), torch.rand(8, 16)") == {Rare(0, "ends"), Rare(1, "ends")}
    assert learned(tmp_path, "return torch.log(args[0])", "torch.rand(8, 16)") == set(), "infinite"
    assert learned(tmp_path, "return torch.sin(args[0])", "torch.rand(8, 16)") == set(), "numbers of any kind"
    assert learned(tmp_path, "return args[0].log1p()", "torch.rand(8, 16) * 2") == set(), "beyond one"
    assert learned(tmp_path, "return args[0].log1p()", "(torch.rand(8, 16) < 0.5).float()") == set(), "a mask"


def test_padding_is_put_where_the_reference_stands_it(tmp_path):
    init, forward = "self.table = nn.Embedding(50, 4, padding_idx=0)", "return self.table(args[0]).sum(1) + args[1]"
    tokens, far = "torch.randint(1, 50, (8, 16))", "torch.randn(8, 1)"
    found = learned(tmp_path, forward, f"{tokens}, {far}", init)
    assert found == {Rare(0, "row", 0), Rare(0, "places", 0), Rare(0, "places", 49)}
    ignored = "return F.cross_entropy(args[0], args[1], ignore_index=-1)"
    found = learned(tmp_path, ignored, "torch.randn(64, 8), torch.randint(0, 8, (64,))")
    assert found == {Rare(1, "places", -1)}
    masked = "return args[0][args[1]] * (args[2] != -77).unsqueeze(-1)"
    found = learned(tmp_path, masked, "torch.randn(9, 4), torch.randint(9, (20,)), torch.randint(9, (20,))")
    assert found == {Rare(2, "places", -77)}, "an index is out of range"


@pytest.mark.parametrize(
    ("forward", "found"),
    [
        ("return args[0][args[1]] * (args[0] >= 0).sum()", set()),
        ("return torch.zeros(9).index_put((args[1],), torch.ones(20), accumulate=True) * (args[0] >= 0).sum()", set()),
        ("return args[0][:, None][None, args[1]] + (args[0] >= 0).sum()", set()),
        ("return args[0][args[1]] * (args[1] >= 0)[:, None]", {-1}),
        ("return (args[1] >= 0) + (args[0] >= 0).sum()", {-1}),
    ],
)
def test_a_negative_integer_is_none_that_only_counts_from_an_end(tmp_path, forward, found):
    learnt = learned(tmp_path, forward, "torch.randn(9, 4), torch.randint(9, (20,))")
    assert {rare.value for rare in learnt if rare.value < 0} == found


def test_what_is_in_order_or_far_beyond_stays(tmp_path):
    forward = "return (args[0] == 100000).float() + (args[0] == 3)"
    assert learned(tmp_path, forward, "torch.arange(40)") == set()
    assert learned(tmp_path, forward, "torch.randint(9, (40,))") == {Rare(0, "places", 3)}


def test_the_reference_is_asked_for_no_longer_than_that(tmp_path, monkeypatch):
    monkeypatch.setattr(rare, "ASK_S", 0.0)
    equals = " + ".join(f"(args[0] == {n})" for n in range(1, 8))
    assert len(learned(tmp_path, f"return ({equals}).float()", "torch.randint(90, (4, 40))")) == rare.ASK_AT_LEAST - 1


def test_what_others_time_meanwhile_is_not_its_own_time(tmp_path, monkeypatch):
    """Each call rests for longer than all of them may take."""
    forward = "return args[0].float().masked_fill(args[0] == 3, 0.0) + (args[0] == 7)"
    plain = learned(tmp_path, forward, "torch.randint(0, 1000, (4, 4))")
    clock = [0.0]

    class Resting:
        rested_s = 0.0

        def __call__(self):
            clock[0] += 2 * rare.ASK_S
            self.rested_s += 2 * rare.ASK_S

    monkeypatch.setattr(rare, "ASK_AT_LEAST", 0)
    monkeypatch.setattr(rare, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    with_rests = Reference(str(tmp_path / "task.py"), "cpu", rests=Resting())
    found = [{each for each in asked if each.kind != "larger"} for asked in (plain, rare.learn(with_rests))]
    assert found[0] == found[1] and len(found[0]) > 1, "larger ones follow from the draw"


def test_being_watched_takes_none_of_the_time_for_questions(tmp_path, monkeypatch):
    """Where watching alone takes longer than all questions may."""
    forward = "return args[0].float().masked_fill(args[0] == 3, 0.0) + (args[0] == 7)"
    plain = learned(tmp_path, forward, "torch.randint(0, 1000, (4, 4))", kinds=("places",))
    clock, watch = [0.0], rare.asked_of

    def slowly(*args):
        clock[0] += 2 * rare.ASK_S
        return watch(*args)

    monkeypatch.setattr(rare, "ASK_AT_LEAST", 0)
    monkeypatch.setattr(rare, "asked_of", slowly)
    monkeypatch.setattr(rare, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    found = rare.learn(Reference(str(tmp_path / "task.py"), "cpu"))
    assert {each for each in found if each.kind == "places"} == plain
    assert {each.value for each in plain} >= {3, 7} and clock[0]


@pytest.mark.parametrize(
    ("inputs", "forward", "kind"),
    [
        ("torch.randint(8, (64,))", "torch.bincount(args[0], minlength=8)", "once"),
        ("torch.randint(8, (64,)).sort().values", "torch.bincount(args[0], minlength=8)", "once"),
        ("torch.randint(8, (64,))", "1 / torch.bincount(args[0], minlength=8).sub(1)", None),
        ("torch.randint(10**9, (16,))", "args[0] * 2", "twice"),
        ("torch.randperm(16)", "args[0] * 2", None),
        ("torch.tensor([3, 5, 4, 4]), torch.rand(16)", "args[1][args[0].cumsum(0) - 1]", "dealt"),
    ],
)
def test_integers_come_as_often_as_the_reference_stands(tmp_path, inputs, forward, kind):
    found = learned(tmp_path, f"return {forward}", inputs, kinds=("once", "twice", "dealt"))
    assert [each.kind for each in found] == ([kind] if kind else [])


def test_lists_that_say_where_parts_lie_may_have_to_agree(tmp_path):
    inputs = "torch.randint(8, (64,)).sort().values, torch.tensor([30, 10, 20, 4]), torch.rand(64)"
    assert learned(tmp_path, "return args[2] * args[0] + args[1].sum()", inputs, kinds=("once", "dealt")) == set()


@pytest.mark.parametrize(
    ("inputs", "ends"),
    [
        ("torch.randint(0, 127, (64,), dtype=torch.uint8)", {255}),
        ("torch.randint(-100, 101, (64,), dtype=torch.int8)", {-128, 127}),
        ("torch.randint(0, 16, (64,), dtype=torch.uint8)", set()),
        ("torch.randint(0, 20000, (64,), dtype=torch.int16)", set()),
    ],
)
def test_bytes_are_at_the_ends_of_their_dtype(tmp_path, inputs, ends):
    found = learned(tmp_path, "return args[0] + args[0]", inputs, kinds=("places",))
    assert {rare.value for rare in found} == ends


def test_what_is_put_in_few_elements_stays_when_more_is_put():
    for seed in range(20):
        torch.manual_seed(seed)
        rares = [Rare(0, "places", value) for value in (70_000, 80_000, 90_000)]
        ((made,), _) = rare.with_rare([torch.randperm(1000)[:16]], [*rares, Rare(0, "twice")])
        assert {70_000, 80_000, 90_000} <= set(made.tolist())
