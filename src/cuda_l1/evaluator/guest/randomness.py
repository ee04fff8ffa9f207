"""Tasks that differ with the global seed: whether answers of a candidate come from the reference's distribution.

Compared over many calls: each element's mean, the variance of all elements, how strongly elements move together, how
many different answers there are, and how often elements lie within parts of their standard deviation. Everything works
on samples of shape (calls, ...); integers and truth values count as the numbers that they are.
"""

from __future__ import annotations

import math

import torch

from .classes import unit_roundoff

SEEDS = 64
"""Answers of each side to the same inputs that are compared."""


def numbers(tensor: torch.Tensor) -> torch.Tensor:
    """What statistics are made of: floating numbers as they are, complex ones in pairs, others as float64."""
    if tensor.is_complex():
        return torch.view_as_real(tensor)
    return tensor if tensor.is_floating_point() else tensor.double()


class Unlike(Exception):
    """The answers do not come from the reference's distribution; the text says how that shows."""

    def __init__(self, text: str, *, may_be_chance: bool = False) -> None:
        """`may_be_chance`: few calls decide it, so that other answers have to show it, too."""
        super().__init__(text)
        self.may_be_chance = may_be_chance


def compare_moments(name: str, mean: torch.Tensor, square: torch.Tensor, reference: torch.Tensor) -> None:
    """z-test of each element's mean, and of the variance of all elements together. Raises Unlike.

    `mean`, `square`: first two moments of the candidate over as many calls, float64; `reference`: (calls, ...) samples
    in their own dtype. How far the variances may differ follows from how much they vary from seed to seed: one random
    number for all elements tells far less than one for each.
    """
    roundoff = unit_roundoff(reference.dtype)
    samples = reference.double()
    own_mean = samples.mean(0)
    own_variance, variance = (samples - own_mean).pow(2).mean(0), (square - mean * mean).clamp(min=0)
    size = own_mean.abs() + own_mean.pow(2).mean().sqrt()
    floor = 2 * max(roundoff, 1e-6) * size + 1e-30
    z = (mean - own_mean).abs() / (((variance + own_variance) / len(samples)).sqrt() + floor)
    if not math.isfinite(float(z.max())) or float((z > 6).double().mean()) > 1e-3:
        raise Unlike(f"{name}: its mean over {len(samples)} seeds differs from the reference's")
    if ratio := _unlike_variances(mean, variance, samples, floor):
        raise Unlike(f"{name}: its variance over seeds is {ratio:.2f} times the reference's")


def _unlike_variances(
    mean: torch.Tensor, variance: torch.Tensor, reference: torch.Tensor, floor: torch.Tensor
) -> float | None:
    """The ratio of the sums of all variances where it is none of chance's; `reference`: (calls, ...) samples, `floor`:
    deviations that are rounding."""
    own_mean = reference.mean(0)
    deviations = (reference - own_mean).pow(2)
    noise = float(floor.pow(2).sum())
    totals = deviations.reshape(len(reference), -1).sum(1)
    ratio = (float(variance.sum()) + noise) / (float(totals.mean()) + noise)
    relative = max(_spread(totals), _spread(_energies(reference))) / math.sqrt(len(reference))
    shift = float((mean - own_mean).pow(2).sum()) / (float(deviations.mean(0).sum()) + noise)
    return ratio if abs(math.log(max(ratio, 1e-300))) > 6 * math.sqrt(2) * relative + shift + 0.05 else None


def sums_along(tensor: torch.Tensor) -> list[torch.Tensor]:
    """Sums of an answer and of its magnitudes along each dimension, float64, where there are several sums of several
    elements: signs of the inputs hide from the first how many are zero."""
    dims = [d for d, size in enumerate(tensor.shape) if 1 < size < tensor.numel()]
    return [of.sum(dim, dtype=torch.float64) for of in (tensor, tensor.abs()) for dim in dims]


def compare_sums(name: str, samples: torch.Tensor, reference: torch.Tensor) -> None:
    """Whether sums of elements vary as the reference's do, (calls, ...) each, of `sums_along`: those of a mask that
    drops as many of each row vary less, though no two elements tell. Raises Unlike."""
    mean, own_mean = samples.mean(0), reference.mean(0)
    floor = 2e-6 * (own_mean.abs() + own_mean.pow(2).mean().sqrt()) + 1e-30
    if ratio := _unlike_variances(mean, (samples - mean).pow(2).mean(0), reference, floor):
        text = f"its sums of elements vary over seeds by {ratio:.2f} times what the reference's do"
        raise Unlike(f"{name}: {text}", may_be_chance=True)


LEAST_REPEATED = 20
"""Calls that repeat something, of so many of which none of the reference's does: of one distribution they would be
among either's by halves."""
VECTOR = 4
"""Elements of a row of which two are equal by no chance, nor by rounding."""


def repeats(tensor: torch.Tensor) -> torch.Tensor:
    """How often something comes again along each dimension, of up to `COINCIDENCES` elements in whole lines: elements
    of float64, as which whole numbers are here, and of other dtypes rows along the last dimension. Empty where nothing
    can."""
    values = tensor.double()
    if tensor.dtype is not torch.float64:
        if tensor.dim() < 2 or tensor.shape[-1] < VECTOR:
            return torch.zeros(0)
        chosen = torch.arange(1.0, tensor.shape[-1] + 1, dtype=torch.float64, device=tensor.device).sqrt()
        values = (values * chosen).sum(-1)
    found = []
    for dim in range(values.dim()):
        lines = values.movedim(dim, -1).flatten(0, -2) if values.dim() > 1 else values.unsqueeze(0)
        lines = lines[:: math.ceil(lines.numel() / COINCIDENCES)].sort(dim=-1).values
        found.append(float((lines.diff(dim=-1) == 0).sum()))
    return torch.tensor(found)


def compare_repeats(name: str, found: torch.Tensor, due: torch.Tensor) -> None:
    """Whether something comes again within an answer though in none of the reference's: a choice without replacement
    is all different, and of many one with replacement nearly so. Both of `repeats`, (calls, dimensions). Raises
    Unlike."""
    for again, own in zip(found.T, due.T, strict=True):
        calls = int((again > 0).sum())
        if not bool(own.any()) and calls >= LEAST_REPEATED:
            text = f"in {calls} of {len(found)} calls something is drawn twice, the reference draws nothing again"
            raise Unlike(f"{name}: {text}", may_be_chance=True)


def _energies(samples: torch.Tensor) -> torch.Tensor:
    """Each call's squared distance from the mean of all."""
    rows = samples.double().reshape(len(samples), -1)
    return (rows - rows.mean(0)).pow(2).sum(1)


def _spread(totals: torch.Tensor) -> float:
    mean = float(totals.mean())
    return float(totals.std()) / mean if mean > 0 else 0.0


def compare_dependence(name: str, samples: torch.Tensor, reference: torch.Tensor) -> None:
    """Elements that move together though the reference's do not, and answers that come again. Raises Unlike.

    Standardised elements as columns of Z, (calls, n): the entries of Z Z^T / n off its diagonal have the mean square
    sum_ij r_ij^2 / n^2 over the correlations r of all pairs of elements, which is one over the number of independent
    ones. Of independent elements it varies by 4 % between draws of 64; of elements that share a random number of each
    call by tens of per cent, and by more where a few calls hold most of the variance: the standard error of the
    reference's says so. A candidate's own would be what it likes: four calls of one number each make it large.
    """
    own, theirs = _distinct(reference), _distinct(samples)
    if theirs < 0.75 * own - 3:
        text = f"{theirs} different answers in {len(samples)} calls, the reference gives {own}"
        raise Unlike(f"{name}: {text}", may_be_chance=True)
    for what, of in (("", _standard), (", by its sizes,", _sizes)):  # signs of their own hide numbers that come again
        (expected, error), (found, other) = _dependence(of(reference)), _dependence(of(samples))
        if expected == 0 or found == 0:
            continue  # nothing varies: compared by value
        ratio = found / expected
        if abs(math.log(ratio)) > max(0.5, 6 * math.sqrt(2) * error):
            few = "fewer" if ratio > 1 else "more"
            text = f"it looks{what} like {max(ratio, 1 / ratio):.1f} times {few} independent random numbers"
            is_uneven = 6 * math.sqrt(2) * max(error, other) > 0.5
            raise Unlike(f"{name}: {text} than the reference's", may_be_chance=is_uneven)
    compare_neighbours(name, _standard(samples), _standard(reference))


def _distinct(samples: torch.Tensor) -> int:
    return len(torch.unique(samples.reshape(len(samples), -1), dim=0))


def _standard(samples: torch.Tensor) -> torch.Tensor:
    """The elements that vary, less their means over calls and by their deviations: (calls, elements), float32."""
    rows = samples.double().reshape(len(samples), -1)
    if rows.numel() == 0:  # nothing varies, and torch warns of deviations of nothing
        return rows.float()
    mean, deviation, varies = _spans(rows)
    return _in_deviations(rows, mean, deviation, varies)


def _spans(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(mean, standard deviation, whether it varies by more than rounding) of each element of `rows`, (calls, elements)
    of float64."""
    mean = rows.mean(0)
    deviation = (rows - mean).pow_(2).sum(0).div_(max(len(rows) - 1, 1)).sqrt_()  # by far faster than `std`
    return mean, deviation, deviation > 1e-5 * (mean.abs() + mean.pow(2).mean().sqrt())


def _in_deviations(
    rows: torch.Tensor, mean: torch.Tensor, deviation: torch.Tensor, varies: torch.Tensor
) -> torch.Tensor:
    """The elements that vary, standardised; in float32, whose rounding is nothing beside what chance does to them."""
    standard = (rows - mean).div_(deviation).float()
    return standard if bool(varies.all()) else standard[:, varies]


def _sizes(samples: torch.Tensor) -> torch.Tensor:
    """The same of their magnitudes, once they are standardised."""
    return _standard(_standard(samples).abs())


def _dependence(standard: torch.Tensor) -> tuple[float, float]:
    """(one over the number of independent elements, 0 where there is none; its standard error, as a share of it).

    The error is the jackknife's of a mean over pairs of calls: B. Efron and C. Stein, The Jackknife Estimate of
    Variance, Annals of Statistics 9, 1981.
    """
    if standard.numel() == 0:
        return 0.0, 0.0
    gram = (standard @ standard.t()).double() / standard.shape[1]
    calls = len(gram)
    others = gram[~torch.eye(calls, dtype=torch.bool, device=gram.device)].reshape(calls, calls - 1)
    squares = (others - others.mean()).pow(2)
    found = float(squares.sum()) / (squares.numel() - 1)
    return found, 2 * float(squares.mean(1).std()) / math.sqrt(calls) / found if found else 0.0


RELABELLINGS = 4000
"""How often the calls of both sides are dealt anew into two halves, to see how far apart these lie by chance."""
FARTHER = 1.75
"""Both sides differ where they lie so many times as far from the middle as the farthest of these halves: six standard
deviations of many elements, and one chance in 200,000 of a single one."""


def compare_pooled(name: str, samples: torch.Tensor, reference: torch.Tensor) -> None:
    """Whether differences that are lost in the noise of each element show in all of them together: of means, of mean
    distances from the mean, and for whole numbers of how often they come again and how many come once. Raises Unlike.

    Calls of one distribution may change places, so that the distance between the two halves of all calls, whose labels
    are dealt anew, is what chance gives, whatever depends on what: a permutation test of the maximum mean discrepancy
    (A. Gretton et al., A Kernel Two-Sample Test, JMLR 13, 2012, section 8). `samples`, `reference`: (calls, ...).
    """
    calls = len(samples)
    rows = torch.cat([samples, reference]).double().reshape(2 * calls, -1)
    if not bool(torch.isfinite(rows).all()):
        return
    mean = rows[calls:].mean(0)
    least = 16 * unit_roundoff(reference.dtype) * mean.abs() + 1e-5 * mean.pow(2).mean().sqrt()
    varies = (_spans(rows[calls:])[1] > least) | (_spans(rows[:calls])[1] > least)
    if not bool(varies.any()):
        return
    rows = rows if bool(varies.all()) else rows[:, varies]
    deviations = rows - rows.mean(0)
    if _is_apart(_products(deviations)):
        text = f"its means over {calls} seeds, all elements together, differ from the reference's"
        raise Unlike(f"{name}: {text}")
    if _is_apart(_products(deviations.abs(), 0.1)):
        raise Unlike(f"{name}: its elements vary from seed to seed by other amounts than the reference's")
    if bool((rows == rows.round()).all()):
        some = _narrow(_some_of(rows))
        if _is_apart(_coincidences(some)):
            raise Unlike(f"{name}: its whole numbers are drawn with other chances than the reference's")
        _compare_rare(name, some[:calls], some[calls:])


def _products(rows: torch.Tensor, least: float = 0.0) -> torch.Tensor:
    """Of each two calls, their elements standardised, by `least` of their means at least: (calls, calls)."""
    mean, deviation, _ = _spans(rows)
    standard = (rows - mean).div_(torch.hypot(deviation, least * mean) + 1e-300).float()
    return (standard @ standard.t()).double() / standard.shape[1]


COINCIDENCES = 1 << 14
"""Elements in which calls are looked through for equal whole numbers, at the most."""
RARE = 0.005
"""By how much the share of whole numbers that come in no other call may differ, beyond what chance explains."""


def _coincidences(rows: torch.Tensor) -> torch.Tensor:
    """In which share of elements each two calls agree: (calls, calls) of float64."""
    return torch.stack([_share(rows == row) for row in rows])


def _some_of(rows: torch.Tensor) -> torch.Tensor:
    return rows[:, :: math.ceil(rows.shape[1] / COINCIDENCES)]


def _narrow(numbers: torch.Tensor) -> torch.Tensor:
    """Whole numbers of float64 in a dtype that holds them and is quicker to compare."""
    low, high = (float(end) for end in numbers.aminmax())
    if low >= 0 and high < 256:
        return numbers.to(torch.uint8)
    return numbers.float() if max(-low, high) <= 2**24 else numbers


def _compare_rare(name: str, samples: torch.Tensor, reference: torch.Tensor) -> None:
    """Whether whole numbers that are drawn seldom are among the candidate's as often: what share of the reference's
    each of its calls gives at an element where no other does, and none of the candidate's; by I. J. Good, The
    Population Frequencies of Species, Biometrika 40, 1953, about the probability of all that was not seen."""
    unseen = 1 - _met_again(reference)
    for one, others, what in ((reference, samples, "the reference's"), (samples, reference, "its")):
        found = torch.stack([_met_nowhere(row, others, call) for call, row in enumerate(one)])
        if _differ(found, unseen, RARE):
            text = f"{float(found.mean()):.1%} of {what} whole numbers come in no call of the other"
            raise Unlike(
                f"{name}: {text}, of the reference among itself {float(unseen.mean()):.1%}", may_be_chance=True
            )


def _met_nowhere(row: torch.Tensor, calls: torch.Tensor, but: int) -> torch.Tensor:
    """In which share of its elements a call gives what none of `calls` does, one of these left out."""
    differs = calls != row
    differs[but] = True
    return differs.all(0).double().mean()


def _is_apart(gram: torch.Tensor) -> bool:
    """Whether the means of the first and the second half of the calls lie further apart than of halves dealt by chance.
    `gram`: products of each two calls."""
    half = len(gram) // 2
    lots = torch.rand(RELABELLINGS, len(gram), device=gram.device).argsort(dim=1)
    lots[0] = torch.arange(len(gram))
    signs = torch.where(lots < half, 1.0 / half, -1.0 / half).double()
    distances = ((signs @ gram) * signs).sum(1)
    found, dealt = float(distances[0]), distances[1:]
    middle = float(dealt.mean())
    return found > middle + FARTHER * (float(dealt.max()) - middle) + 1e-12


SIGMAS = 7
"""Standard errors up to which chance explains a difference."""
WITHIN = (0.25, 0.5, 1.0, 1.5, 2.5)
"""Bounds, in standard deviations, within and below which elements are counted."""
TAILS, OF_TAIL, TAIL_SIGMAS = (5.0, 7.0, 9.0), 0.25, 5
"""Bounds, in standard deviations, beyond which few elements lie; the share of these by which their number may differ;
and the standard errors up to which chance explains more, fewer than `SIGMAS` since it is looked at twice. Elements out
there show in no count within the other bounds, and cost a candidate as much to draw as any."""
SKEW, OF_SKEW = 0.03, 0.05
"""By how much the mean of third powers may differ, and by which share of it, as for chances that are nearly right."""
APART, TOGETHER = 0.25, 0.75
"""What `_of_corners` is at the most where the reference's rows are independent, and at the least where a candidate's
follow from one another."""


def compare_shape(name: str, samples: torch.Tensor, reference: torch.Tensor) -> None:
    """How often standardised elements lie within `WITHIN`, below it, below its negative and beyond `TAILS`; how skewed
    they are; and whether those at the corners of rectangles of the last dimension and all others move together, as sums
    of a number for each row and one for each column do, any two of which are independent. Raises Unlike.

    The shares are means over elements, one number a call, and calls are independent: compared as two samples. Means
    and deviations are those of the first half of the reference's calls, the other half is held against the candidate's.
    """
    shape, half = reference.shape, len(reference) // 2
    rows, own = samples.double().reshape(len(samples), -1), reference.double().reshape(len(reference), -1)
    mean, deviation, varies = _spans(own[:half])
    if not bool(varies.any()):
        return
    theirs, known = (_in_deviations(each, mean, deviation, varies) for each in (rows, own[half:]))
    for bound in WITHIN:
        below, under = ([_share(z < edge) for z in (theirs, known)] for edge in (bound, -bound))
        within = [one - other for one, other in zip(below, under, strict=True)]
        for where, (found, due) in (("within", within), ("below", below), ("below -", under)):
            if _differ(found, due, 0.02):
                text = f"{float(found.mean()):.1%} of its elements lie {where} {bound:g} standard deviations"
                raise Unlike(f"{name}: {text}, of the reference's {float(due.mean()):.1%}")
    found, due = (z.clamp(-4, 4).pow_(3).mean(1, dtype=torch.float64) for z in (theirs, known))
    if _differ(found, due, SKEW + OF_SKEW * abs(float(due.mean()))):
        text = f"its elements are skewed by {float(found.mean()):.2f}, the reference's by {float(due.mean()):.2f}"
        raise Unlike(f"{name}: {text}")
    for bound in TAILS:
        found, due = (_share(z.abs() > bound) for z in (theirs, known))
        if _differ(found, due, OF_TAIL * float(due.mean()), TAIL_SIGMAS):
            text = f"{float(found.mean()):.2g} of its elements lie beyond {bound:g} standard deviations"
            raise Unlike(f"{name}: {text}, of the reference's {float(due.mean()):.2g}", may_be_chance=True)
    if len(shape) > 2 and shape[-1] > 1 and shape[1:-1].numel() > 1:
        of_rows = (_all_places(z, varies).reshape(len(z), -1, shape[-1]) for z in (theirs, known))
        (together, _), (owed, error) = map(_of_corners, of_rows)
        if owed < APART and not together < max(TOGETHER, owed + SIGMAS * math.sqrt(2) * error):
            text = "a row's elements follow from another row's, which the reference's do not"
            raise Unlike(f"{name}: {text}", may_be_chance=True)


def _share(holds: torch.Tensor) -> torch.Tensor:
    """Of how many of each call's elements it is true, (calls,) of float64."""
    return holds.count_nonzero(1).double() / holds.shape[1]


def _all_places(standard: torch.Tensor, varies: torch.Tensor) -> torch.Tensor:
    """0 for the elements that do not vary."""
    whole = standard.new_zeros(len(standard), len(varies))
    whole[:, varies] = standard
    return whole


LAGS = (1, 2, 4, 7)
"""How far apart elements lie that are looked at as neighbours."""
LEAST_NEIGHBOURS = 64
"""Elements of an answer from which on neighbours are looked at."""
RELATED = 0.002
"""The mean square of correlations that are none. Of -1/7, as eight elements have of which four are always kept, it is
0.02."""
MOSTLY = 1.5
"""Nearly all of the reference's elements are independent where there are at most so many times as many elements as
independent numbers."""


def compare_neighbours(name: str, samples: torch.Tensor, reference: torch.Tensor) -> None:
    """Whether elements near one another depend on one another, however weakly, though nearly all of the reference's are
    independent: all together tell what no two of them could. Standardised, (calls, elements). Raises Unlike."""
    count = reference.shape[1]
    if min(count, samples.shape[1]) < LEAST_NEIGHBOURS or _dependence(reference)[0] * count > MOSTLY:
        return
    for lag in LAGS:
        (found, error), (due, own_error) = (_correlation(z, lag) for z in (samples, reference))
        if abs(found - due) > RELATED + SIGMAS * math.hypot(error, own_error):
            text = f"elements {lag} apart have {found:.3f} in common, the reference's {due:.3f}"
            raise Unlike(f"{name}: {text} (squares of correlations)")


def _correlation(z: torch.Tensor, lag: int) -> tuple[float, float]:
    """(mean square of the correlations of elements so far apart, without what chance adds; its standard error)."""
    calls, clipped = len(z), z.clamp(-4, 4)
    product = clipped * clipped.roll(lag, 1)
    squares = ((product.sum(0) ** 2 - product.pow_(2).sum(0)) / (calls * (calls - 1))).double()
    return float(squares.mean()), float(squares.std()) / math.sqrt(len(squares))


def _differ(found: torch.Tensor, due: torch.Tensor, least: float, sigmas: float = SIGMAS) -> bool:
    """Whether two samples have means that lie further apart than chance explains."""
    error = math.sqrt(float(found.var()) / len(found) + float(due.var()) / len(due))
    return not abs(float(found.mean()) - float(due.mean())) <= least + sigmas * error


STREAM, STREAMS = 1 << 14, 16
"""Elements from the beginning of an answer, and calls, of which each two are laid over each other at any distance."""
OVERLAP, AS_FAR = 0.1, 2.0
"""The correlation of two calls at a distance from which on one goes on in the other's random numbers: this, and so many
times the largest of the reference's."""


def compare_streams(name: str, samples: torch.Tensor, reference: torch.Tensor) -> None:
    """Whether calls take their random numbers from one stream, each from another place on, so that two of them have
    many in common, a distance apart. `samples`, `reference`: of `stream`, (calls, elements). Raises Unlike.

    What an element is multiplied by shows with its mean's sign, what is added to it without.
    """
    samples, reference = samples.cpu(), reference.cpu()  # a GPU's library for this takes longer to load than it takes
    mean, deviation, varies = _spans(torch.cat([samples, reference]).double())
    for sign in (torch.ones_like(mean), mean.sign()):
        scale = torch.where(varies, sign / deviation, 0.0)
        found, due = (_overlap(((each - mean) * scale).float().clamp(-3, 3)) for each in (samples, reference))
        if found > OVERLAP + AS_FAR * due:
            text = f"two calls have {found:.2f} in common, a distance apart, the reference's {due:.2f} at most"
            raise Unlike(f"{name}: {text} (correlations)", may_be_chance=True)


def stream(answer: torch.Tensor) -> torch.Tensor:
    """The elements of an answer that are laid over another's: (elements,)."""
    return answer.reshape(-1)[:STREAM]


def _overlap(z: torch.Tensor) -> float:
    """The largest magnitude of the correlation of two calls at a distance other than none; `z`: (calls, elements)."""
    count = z.shape[1]
    spectra = torch.fft.rfft(z / (z.norm(dim=1, keepdim=True) + 1e-30), n=2 * count)
    largest = 0.0
    for call in range(1, len(z)):
        products = torch.fft.irfft(spectra[:call] * spectra[call].conj(), n=2 * count)
        largest = max(largest, float(products[:, 1:].abs().max()))
    return largest


LEVELS, AS_OFTEN = 2e-4, 16
"""The share of elements in which a call gives what any other gave, above which numbers are taken from few, where it is
so many times the reference's. Of 64 calls 2^-18 for each number makes as much."""


def compare_levels(name: str, samples: torch.Tensor, reference: torch.Tensor) -> None:
    """Whether elements have few values where the reference's have many, as noise made of a byte has, which every count
    within bounds takes for what it stands for. Both (calls, ...). Raises Unlike.

    Half of all calls have to show it: where a call shares one number, two calls that drew it do not.
    """
    found, due = (_met_again(_some_of(each.reshape(len(each), -1))) for each in (samples, reference))
    if float(found.median()) > max(LEVELS, AS_OFTEN * float(due.mean())):
        text = f"{float(found.median()):.2%} of its elements come again in another call"
        raise Unlike(f"{name}: {text}, of the reference's {float(due.mean()):.2%}")


def _met_again(calls: torch.Tensor) -> torch.Tensor:
    """Of each call, the share of elements that are as in another one: (calls,)."""
    values, order = calls.sort(dim=0)
    alike = values[1:] == values[:-1]
    again = torch.zeros_like(values, dtype=torch.bool)
    again[1:] |= alike
    again[:-1] |= alike
    return torch.zeros_like(again).scatter_(0, order, again).double().mean(1)


LEAST_MET = 32
"""How often two calls have to have chosen alike for anything to be said."""
SAME, OTHER = 1e-3, 0.05
"""An answer follows from a choice where calls that chose alike differ by at most the first of these, as a share of the
deviation over all calls, and does not where they differ by more than the second."""


def compare_determined(
    name: str, chosen: torch.Tensor, follows: torch.Tensor, own_chosen: torch.Tensor, own_follows: torch.Tensor
) -> None:
    """Whether an answer follows from whole numbers that are drawn beside it where the reference's does: the probability
    of a token, what a mask has let through. Samples of one shape, (calls, ...). Raises Unlike."""
    if not all(bool((each == each.round()).all()) for each in (chosen, own_chosen)):
        return
    due = _among_alike(own_chosen, own_follows)
    found = _among_alike(chosen, follows)
    if due is not None and found is not None and due <= SAME and found > OTHER:
        text = f"where calls choose alike it differs by {found:.2f} deviations, the reference's does not"
        raise Unlike(f"{name}: {text}")


def _among_alike(chosen: torch.Tensor, follows: torch.Tensor) -> float | None:
    """By how much, in deviations over all calls, an element differs in the mean between two calls that chose alike;
    None where too few do."""
    choices, values = (each.double().reshape(len(each), -1) for each in (chosen, follows))
    varies = (values.std(0) > 0) & (choices.std(0) > 0)
    order = choices[:, varies].argsort(dim=0)
    choices, values = choices[:, varies].gather(0, order), values[:, varies].gather(0, order)
    alike = choices[1:] == choices[:-1]
    if int(alike.sum()) < LEAST_MET:
        return None
    return float((values.diff(dim=0).abs() / values.std(0))[alike].mean())


def _of_corners(z: torch.Tensor) -> tuple[float, float]:
    """(how strongly the corners of rectangles move together, its standard error): the mean square of what their product
    is in the mean over calls, without what chance adds. `z`: standardised, (calls, rows, columns). 0 for independent
    numbers, 1 for signs that are products of a sign for each row and one for each column."""
    z, calls, found = z.clamp(-2, 2), len(z), []
    for down, right in ((1, 1), (z.shape[1] // 2, z.shape[2] // 2)):
        product = z * z.roll(down, 1) * z.roll(right, 2) * z.roll((down, right), (1, 2))
        with_others = (product * (product.sum(0) - product)).reshape(calls, -1).mean(1, dtype=torch.float64) / (
            calls - 1
        )
        found.append((float(with_others.mean()), 2 * float(with_others.std()) / math.sqrt(calls)))
    return max(found)
