"""Batches of examples of about one length, in an order that a resumed training finds again."""

from __future__ import annotations

from random import Random

from cuda_l1.training.order import by_length


def batches_of(order: list[int], batch: int) -> list[list[int]]:
    return [order[at : at + batch] for at in range(0, len(order), batch)]


def padded(lengths: list[int], order: list[int], batch: int) -> int:
    return sum(len(each) * max(lengths[index] for index in each) for each in batches_of(order, batch))


def test_every_example_comes_once_before_any_comes_again() -> None:
    lengths = [Random(number).randint(1, 900) for number in range(103)]
    order = by_length(lengths, batch=4, batches=75, seed=0)
    assert len(order) == 300
    window = 24  # what is sorted together can hold the end of one epoch and the beginning of the next
    assert set(order[: 103 + window]) == set(range(103))
    counts = [order.count(index) for index in range(103)]
    assert set(counts) == {2, 3}


def test_little_is_padded_and_long_and_short_batches_take_turns() -> None:
    rng = Random(0)
    lengths = [rng.randint(100, 3000) for _ in range(4000)]
    order = by_length(lengths, batch=32, batches=125, seed=0)
    drawn = rng.sample(range(4000), 4000)
    needed = sum(lengths)
    assert padded(lengths, order, 32) < 1.1 * needed < 1.6 * needed < padded(lengths, drawn, 32)
    longest = [max(lengths[index] for index in each) for each in batches_of(order, 32)]
    assert longest != sorted(longest) and sum(longest[:25]) / 25 > 1000 < sum(longest[-25:]) / 25


def test_batches_differ_from_epoch_to_epoch_and_not_from_call_to_call() -> None:
    lengths = list(range(64))
    order = by_length(lengths, batch=4, batches=32, seed=1)
    first, second = ({frozenset(each) for each in batches_of(half, 4)} for half in (order[:64], order[64:]))
    assert len(first & second) < 4
    assert order == by_length(lengths, batch=4, batches=32, seed=1) != by_length(lengths, batch=4, batches=32, seed=2)


def test_a_data_set_smaller_than_a_batch_is_repeated() -> None:
    order = by_length([5, 9], batch=4, batches=2, seed=0)
    assert sorted(order) == [0, 0, 0, 0, 1, 1, 1, 1]
