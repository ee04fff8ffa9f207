"""Tasks that differ with the seed are compared by the distribution of their answers."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from cuda_l1.evaluator.guest import input_forms, randomness
from cuda_l1.evaluator.guest.random_answers import Beside, drift
from cuda_l1.evaluator.guest.random_tasks import FEW_SEEDS
from cuda_l1.evaluator.guest.randomness import SEEDS, Unlike, numbers


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """An honest answer may stand out by chance: of `heavy` four in three thousand did, of the others none in 600."""
    torch.manual_seed(0)


OfInputs = Callable[[torch.Tensor], torch.Tensor]


def moments(samples: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    wide = samples.double()
    return wide.mean(0), wide.pow(2).mean(0)


def compare(draw, other) -> None:
    """`other` as the candidate's draw, against `draw` as the reference's."""
    samples, reference = (torch.stack([numbers(make()) for _ in range(SEEDS)]) for make in (other, draw))
    randomness.compare_moments("output 0", *moments(samples), reference)
    randomness.compare_dependence("output 0", samples, reference)
    randomness.compare_shape("output 0", samples, reference)
    randomness.compare_levels("output 0", samples, reference)
    for sums, own in zip(
        *(zip(*map(randomness.sums_along, of), strict=True) for of in (samples, reference)), strict=True
    ):
        randomness.compare_sums("output 0", torch.stack(sums), torch.stack(own))
    repeats = [torch.stack(list(map(randomness.repeats, of))) for of in (samples, reference)]
    randomness.compare_repeats("output 0", *repeats)
    randomness.compare_streams(
        "output 0", *(torch.stack(list(map(randomness.stream, of))) for of in (samples, reference))
    )
    randomness.compare_pooled("output 0", samples, reference)


FIXED = torch.randn(4, 100, generator=torch.Generator().manual_seed(1))
X = torch.linspace(-3, 3, 2000)
BYTES = 2**0.5 * torch.erfinv((torch.arange(256) + 0.5) / 128 - 1)
PATTERN = torch.randn(2000, generator=torch.Generator().manual_seed(3))
LOGITS = torch.randn(128, 64, generator=torch.Generator().manual_seed(4))
MANY_LOGITS = 3 * torch.randn(256, 1024, generator=torch.Generator().manual_seed(6))
LIKELY = MANY_LOGITS.masked_fill(MANY_LOGITS.topk(48).values[:, -1:] > MANY_LOGITS, -torch.inf)
TOKENS, MANY_TOKENS, LIKELY_TOKENS = (
    torch.distributions.Categorical(logits=each) for each in (LOGITS, MANY_LOGITS, LIKELY)
)
CHANCES = torch.rand(500, 8, generator=torch.Generator().manual_seed(2))
HONEST = {
    "dropout": lambda: F.dropout(X, 0.5),
    "rare-dropout": lambda: F.dropout(X, 0.02),
    "sparse": lambda: F.dropout(X, 0.95),
    "noise": lambda: X + torch.randn(2000),
    "one-number": lambda: X * torch.randn(()),
    "one-row": lambda: X.view(20, 100) * torch.rand(20, 1),
    "half": lambda: F.dropout(X, 0.5).bfloat16(),
    "scalar": lambda: F.dropout(X, 0.5).sum(),
    "few": lambda: torch.randn(3),
    "no-noise": lambda: X.clone(),
    "partly": lambda: torch.cat([X, torch.randn(10)]),
    "low-rank": lambda: torch.randn(20, 4) @ FIXED,
    "heavy": lambda: X * torch.exp(2 * torch.randn(())),
    "coin": lambda: X * (torch.rand(()) < 0.3),
    "rows": lambda: F.dropout(X.view(20, 100), 0.2),
    "sums": lambda: F.dropout(X.abs().view(20, 100), 0.2).sum(1),
    "uniform": lambda: torch.rand(2000),
    "normal": lambda: torch.randn(2000),
    "choices": lambda: torch.multinomial(CHANCES, 1).squeeze(1),
    "permutation": lambda: torch.randperm(300),
    "truth": lambda: torch.rand(40, 50) < 0.3,
    "phases": lambda: torch.polar(torch.ones(2000), 6.28 * torch.rand(2000)),
    "truth-of-halves": lambda: torch.rand(40, 50) < 0.5,
    "halves": lambda: F.dropout(X.view(20, 100), 0.5),
    "two-by-two": lambda: torch.randn(2, 2),
    "heavy-rows": lambda: torch.randn(20, 100) * torch.exp(2 * torch.randn(20, 1)),
    "one-choice": lambda: torch.randint(10, ()),
    "exponential": lambda: torch.empty(20, 100).exponential_(),
    "faint-answer": lambda: 0.15 * PATTERN + torch.randn(2000),
    "faint-rates": lambda: torch.bernoulli(0.5 + 0.05 * PATTERN.repeat(4).clamp(-3, 3)),
    "faint-scales": lambda: torch.exp(0.15 * PATTERN) * torch.randn(2000),
    "tokens": TOKENS.sample,
    "tokens-of-many": MANY_TOKENS.sample,
    "smoothed": lambda: F.avg_pool1d(torch.randn(1, 2100), 16, 1)[0, :2000],
    "differences": lambda: torch.randn(2001).diff(),
}


@pytest.mark.parametrize("kind", HONEST)
def test_the_same_distribution_passes(kind):
    compare(HONEST[kind], HONEST[kind])


def test_other_roundings_of_what_does_not_vary_pass():
    compare(HONEST["no-noise"], lambda: X * (1 + 5e-7))
    compare(HONEST["half"], lambda: (F.dropout(X, 0.5) * (1 + 1e-3)).bfloat16())


def _twice(mask: torch.Tensor) -> torch.Tensor:
    return mask.repeat_interleave(2, dim=0)


def _opposite(mask: torch.Tensor) -> torch.Tensor:
    return torch.cat([mask, ~mask])


def _signed(sizes: torch.Tensor) -> torch.Tensor:
    return sizes * (torch.randint(2, sizes.shape) * 2 - 1)


HALVES = torch.tensor([[2.0 * (i in kept) for i in range(8)] for kept in itertools.combinations(range(8), 4)])
POOL = [HONEST["sums"]() for _ in range(32)]
ONE_STREAM = torch.randn(6000, generator=torch.Generator().manual_seed(5))


def _window() -> torch.Tensor:
    begin = int(torch.randint(4000, ()))
    return ONE_STREAM[begin : begin + 2000]


FORGED = {
    "dropout-removed": ("dropout", lambda: X.clone()),
    "rare-dropout-removed": ("rare-dropout", lambda: X.clone()),
    "another-rate": ("dropout", lambda: F.dropout(X, 0.3)),
    "not-rescaled": ("dropout", lambda: X * (torch.rand(2000) > 0.5)),
    "zeros": ("dropout", lambda: torch.zeros(2000)),
    "nan": ("dropout", lambda: X * torch.nan),
    "noise-removed": ("noise", lambda: X.clone()),
    "noise-doubled": ("noise", lambda: X + 2 * torch.randn(2000)),
    "noise-of-a-byte": ("noise", lambda: X + BYTES[torch.randint(256, (2000,))]),
    "one-number-removed": ("one-number", lambda: torch.zeros(2000)),
    "mean-of-a-scalar": ("scalar", lambda: X.sum()),
    "one-mask-for-all-rows": ("rows", lambda: X.view(20, 100) * (torch.rand(100) > 0.2) / 0.8),
    "one-mask-for-two-rows": ("rows", lambda: X.view(20, 100) * _twice(torch.rand(10, 100) > 0.2) / 0.8),
    "one-mask-for-all-sums": ("sums", lambda: (X.abs().view(20, 100) * (torch.rand(100) > 0.2) / 0.8).sum(1)),
    "opposite-masks": ("dropout", lambda: X * _opposite(torch.rand(1000) > 0.5) * 2),
    "few-answers": ("sums", lambda: POOL[int(torch.randint(32, ()))]),
    "uniform-noise": ("noise", lambda: X + 12**0.5 * (torch.rand(2000) - 0.5)),
    "coin-noise": ("noise", lambda: X + torch.randint(2, (2000,)) * 2.0 - 1.0),
    "normal-for-exponential": ("exponential", lambda: 1 + torch.randn(20, 100)),
    "sums-of-bits": ("truth-of-halves", lambda: (torch.rand(40, 1) < 0.5) ^ (torch.rand(1, 50) < 0.5)),
    "sums-of-bits-as-a-mask": (
        "halves",
        lambda: X.view(20, 100) * ((torch.rand(20, 1) < 0.5) ^ (torch.rand(100) < 0.5)) * 2,
    ),
    "the-likeliest": ("choices", lambda: CHANCES.argmax(1)),
    "never-any": ("choices", lambda: torch.zeros(500, dtype=torch.int64)),
    "other-chances": ("choices", lambda: torch.randint(8, (500,))),
    "in-order": ("permutation", lambda: torch.arange(300)),
    "a-rotation": ("permutation", lambda: torch.arange(300).roll(int(torch.randint(300, ())))),
    "more-often-true": ("truth", lambda: torch.rand(40, 50) < 0.4),
    "no-phases": ("phases", lambda: torch.ones(2000, dtype=torch.complex64)),
    "faint-answer-left-out": ("faint-answer", lambda: torch.randn(2000)),
    "faint-rates-left-out": ("faint-rates", lambda: torch.bernoulli(torch.full((8000,), 0.5))),
    "faint-scales-left-out": ("faint-scales", lambda: torch.randn(2000)),
    "logits-left-out": ("tokens", lambda: torch.randint(64, (128,))),
    "half-of-each-row": ("halves", lambda: X.view(20, 100) * (torch.rand(20, 100).argsort(1) < 50) * 2),
    "unlikely-tokens-left-out": ("tokens-of-many", LIKELY_TOKENS.sample),
    "half-of-each-eight": ("dropout", lambda: X * HALVES[torch.randint(len(HALVES), (250,))].flatten()),
    "sizes-that-come-again": ("noise", lambda: X + _signed(torch.randn(250).repeat(8))),
    "dropout-from-one-stream": ("dropout", lambda: 2 * X * (_window() > 0)),
    "noise-from-one-stream": ("noise", lambda: X + _window()),
    "shifted": ("partly", lambda: torch.cat([X + 1e-3, torch.randn(10)])),
}


ROWS = torch.randn(16, 32, generator=torch.Generator().manual_seed(5))
SHARED = {
    "uniform": lambda: ROWS * torch.rand(()) + torch.randn(16, 32),
    "normal": lambda: ROWS * torch.randn(()) + torch.randn(16, 32),
    "exponential": lambda: ROWS * torch.empty(()).exponential_() + torch.randn(16, 32),
    "seldom": lambda: ROWS * (torch.rand(()) < 0.1) + torch.randn(16, 32),
    "a-layer-left-out": lambda: ROWS + ROWS.roll(1, 0) * (torch.rand(()) > 0.2),
    "a-scale": lambda: ROWS * (1 + 0.1 * torch.randn(())),
}


@pytest.mark.parametrize("kind", SHARED)
def test_how_elements_move_together_varies_where_they_share_a_number_of_the_call(kind):
    """Of 64 numbers the variance is not known well, and all that elements have in common follows from it. A verdict
    looks twice."""
    differed = 0
    for _ in range(60):
        samples, reference = (torch.stack([SHARED[kind]() for _ in range(SEEDS)]) for _ in range(2))
        try:
            randomness.compare_dependence("output 0", samples, reference)
            randomness.compare_shape("output 0", samples, reference)
        except Unlike:
            differed += 1
    assert differed <= 4


def test_a_number_of_the_call_may_be_drawn_twice():
    """A choice among 3,000 for all elements comes again in every other verdict, and is no noise of few values."""
    for _ in range(60):
        samples, reference = (
            torch.stack([X.roll(int(torch.randint(3000, ()))) for _ in range(SEEDS)]) for _ in range(2)
        )
        randomness.compare_levels("output 0", samples, reference)


def test_calls_of_one_number_excuse_no_numbers_that_come_again():
    """They make the candidate's standard error large; what counts is the reference's."""

    def forged(number: int) -> torch.Tensor:
        return X + (torch.randn(()) if number % 16 == 0 else _signed(torch.randn(500).repeat(4)))

    reference = torch.stack([X + torch.randn(2000) for _ in range(SEEDS)])
    with pytest.raises(Unlike, match="independent random numbers"):
        randomness.compare_dependence("output 0", torch.stack([forged(number) for number in range(SEEDS)]), reference)


@pytest.mark.parametrize("kind", FORGED)
def test_another_distribution_is_wrong(kind):
    name, forged = FORGED[kind]
    with pytest.raises(Unlike):
        compare(HONEST[name], forged)


RATES = 100 + 100 * torch.rand(65536)
NEARLY = {
    "poisson": (lambda: torch.poisson(RATES), lambda: (RATES + RATES.sqrt() * torch.randn(65536)).round(), "skewed"),
    "levels": (
        lambda: torch.empty(65536).exponential_(),
        lambda: -torch.log((torch.randint(65536, (65536,)) + 0.5) / 65536),
        "come again in another call",
    ),
}


@pytest.mark.parametrize("kind", NEARLY)
def test_a_distribution_that_is_nearly_right_is_told_apart(kind):
    drawn, forged, says = NEARLY[kind]
    reference, same, *others = (torch.stack([draw() for _ in range(SEEDS)]) for draw in (drawn, drawn, forged, forged))
    compare_all(same, reference)
    said = []
    for other in others:
        try:
            compare_all(other, reference)
        except Unlike as unlike:
            said.append(str(unlike))
    assert said and all(says in text for text in said)


def compare_all(samples, reference):
    randomness.compare_shape("output 0", samples, reference)
    randomness.compare_levels("output 0", samples, reference)


def test_what_is_drawn_seldom_is_missed():
    """One waiting time in a thousand is longer than seven; mean, variance and shape are as they should be."""

    def ended() -> torch.Tensor:
        return -1.005 * (0.000911882 + 0.999088118 * torch.rand(65536)).log()

    def drawn() -> torch.Tensor:
        return torch.empty(65536).exponential_()

    reference, other, same = (torch.stack([draw() for _ in range(SEEDS)]) for draw in (drawn, ended, drawn))
    randomness.compare_shape("output 0", same, reference)
    with pytest.raises(Unlike, match="of its elements lie beyond") as unlike:
        randomness.compare_shape("output 0", other, reference)
    assert unlike.value.may_be_chance


@pytest.mark.parametrize("kind", HONEST)
def test_an_answer_of_the_same_distribution_does_not_stand_out(kind):
    draw = HONEST[kind]
    assert not any(Beside([numbers(draw())], lambda: [numbers(draw())]).stands_out() for _ in range(20))


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("dropout", lambda: X.clone()),
        ("dropout", lambda: torch.zeros(2000)),
        ("dropout", lambda: F.dropout(X.flip(0), 0.5)),
        ("rare-dropout", lambda: F.dropout(X * 1.2, 0.02)),
        ("noise", lambda: X + 2 * torch.randn(2000)),
        ("half", lambda: X.bfloat16() * torch.nan),
        ("no-noise", lambda: X + 1e-3),
    ],
)
def test_an_answer_of_another_distribution_stands_out(kind, answer):
    assert Beside([answer()], lambda: [HONEST[kind]()]).stands_out()


def beside(answer: OfInputs, draw: OfInputs) -> list[Beside]:
    """Eleven answers and what the reference gives, to inputs of their own."""
    inputs = [torch.randn(16, 200) for _ in range(11)]
    return [Beside([answer(x)], lambda x=x: [draw(x)]) for x in inputs]


def kept_paths(x: torch.Tensor) -> torch.Tensor:
    """A residual branch that is dropped for half of the samples."""
    return x + 0.4 * x.abs() * (torch.rand(16, 1) < 0.5)


def little_beside_noise(x: torch.Tensor) -> torch.Tensor:
    return 1.0 + 0.2 * x + torch.randn(16, 200)


def tokens(x: torch.Tensor) -> torch.Tensor:
    return torch.multinomial((2 * x).softmax(-1), 20, replacement=True).double()


@pytest.mark.parametrize("kind", HONEST)
def test_answers_of_the_same_distribution_do_not_drift(kind):
    draw = HONEST[kind]
    assert not drift([Beside([numbers(draw())], lambda: [numbers(draw())]) for _ in range(6)], 9.0)


@pytest.mark.parametrize(
    ("draw", "answer"),
    [
        (kept_paths, lambda x: x.clone()),
        (little_beside_noise, lambda x: 1.0 + torch.randn(16, 200)),
        (tokens, lambda x: tokens(-x)),
    ],
)
def test_answers_that_are_likely_one_by_one_drift_together(draw, answer):
    assert not any(each.stands_out() for each in beside(answer, draw)[:2])
    assert drift(beside(answer, draw), 9.0)
    assert not drift(beside(draw, draw), 9.0)
    assert not drift(beside(answer, draw)[:4], 9.0), "too few to tell"


def drawn(follows: bool, count: int = SEEDS) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens, and the logarithm of each one's probability, or of another draw's."""
    logits = LOGITS.log_softmax(-1)
    tokens, others = (torch.multinomial(logits.exp(), count, replacement=True).t() for _ in range(2))
    scored = logits.expand(count, -1, -1).gather(2, (tokens if follows else others)[..., None])[..., 0]
    return numbers(tokens), scored


def test_what_follows_from_a_choice_belongs_to_it() -> None:
    for _ in range(20):
        randomness.compare_determined("output 1 beside output 0", *drawn(True), *drawn(True))
        with pytest.raises(Unlike, match="output 1 beside output 0: where calls choose alike it differs"):
            randomness.compare_determined("output 1 beside output 0", *drawn(False), *drawn(True))
    tokens, scored = drawn(True)
    noisy = scored + torch.randn_like(scored)
    randomness.compare_determined("a", tokens, noisy, *drawn(True)[:1], drawn(True)[1] + torch.randn_like(scored))
    randomness.compare_determined("a", scored, tokens, scored, tokens)  # no whole numbers


POINTS = torch.randn(4096, 8, generator=torch.Generator().manual_seed(5))
CHOICES = {
    "numbers": (lambda: torch.randperm(4096)[:64], lambda: torch.randint(4096, (64,))),
    "columns": (
        lambda: torch.rand(4096, 16).argsort(dim=0)[:16],
        lambda: torch.randint(4096, (16, 16)),
    ),
    "points": (lambda: POINTS[torch.randperm(4096)[:64]], lambda: POINTS[torch.randint(4096, (64,))]),
}


@pytest.mark.parametrize("kind", CHOICES)
def test_a_choice_without_replacement_is_all_different(kind: str) -> None:
    different, any_of_all = CHOICES[kind]
    compare(different, different)
    compare(any_of_all, any_of_all)
    with pytest.raises(Unlike, match="drawn twice"):
        compare(different, any_of_all)


def test_rounding_makes_no_choice_with_replacement() -> None:
    noise = torch.randn(64, 64)
    due, found = (torch.stack([randomness.repeats(noise)] * SEEDS) for noise in (noise, noise.bfloat16()))
    randomness.compare_repeats("output 0", found, due)
    assert not due.any()


def of_bits(x: torch.Tensor) -> torch.Tensor:
    """Dropout that a hash of each number's own bits decides, and one number of the call."""
    bits = x.view(torch.int32) ^ torch.randint(-(2**31), 2**31, ()).int()
    for factor in (0x2C1B3C6D, 0x297A2D39):
        bits = bits * factor
        bits = bits ^ (bits >> 15)
    return torch.where(bits * -1640531535 > 0, 2 * x, 0.0)


@pytest.mark.parametrize("count", [FEW_SEEDS, SEEDS])
def test_equal_numbers_show_who_draws_from_their_bits(count):
    drawn = torch.randn(32, 64)
    (again,), _ = input_forms.repeated([drawn], (), values=True)

    def compare_dependence(x: torch.Tensor, make: Callable[[torch.Tensor], torch.Tensor]) -> None:
        samples, reference = (torch.stack([each(x) for _ in range(count)]) for each in (make, F.dropout))
        randomness.compare_dependence("output 0", samples, reference)

    compare_dependence(drawn, of_bits)
    compare_dependence(again, F.dropout)
    with pytest.raises(Unlike):
        compare_dependence(again, of_bits)
