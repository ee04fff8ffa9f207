"""Tasks that differ with the seed are compared by mean and variance per element."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from cuda_l1.evaluator.guest.check import SEEDS, Wrong, compare_moments


def moments(samples: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    wide = samples.double()
    return wide.mean(0), wide.pow(2).mean(0)


def compare(draw, other) -> None:
    """`other` as the candidate's draw, against `draw` as the reference's."""
    mean, square = moments(torch.stack([other() for _ in range(SEEDS)]))
    compare_moments(0, mean, square, torch.stack([draw() for _ in range(SEEDS)]))


X = torch.linspace(-3, 3, 2000)
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
}


@pytest.mark.parametrize("kind", HONEST)
@pytest.mark.parametrize("attempt", range(3))
def test_the_same_distribution_passes(kind, attempt):
    compare(HONEST[kind], HONEST[kind])


def test_other_roundings_of_what_does_not_vary_pass():
    compare(HONEST["no-noise"], lambda: X * (1 + 5e-7))
    compare(HONEST["half"], lambda: (F.dropout(X, 0.5) * (1 + 1e-3)).bfloat16())


FORGED = {
    "dropout-removed": ("dropout", lambda: X.clone()),
    "rare-dropout-removed": ("rare-dropout", lambda: X.clone()),
    "another-rate": ("dropout", lambda: F.dropout(X, 0.3)),
    "not-rescaled": ("dropout", lambda: X * (torch.rand(2000) > 0.5)),
    "zeros": ("dropout", lambda: torch.zeros(2000)),
    "nan": ("dropout", lambda: X * torch.nan),
    "noise-removed": ("noise", lambda: X.clone()),
    "noise-doubled": ("noise", lambda: X + 2 * torch.randn(2000)),
    "one-number-removed": ("one-number", lambda: torch.zeros(2000)),
    "mean-of-a-scalar": ("scalar", lambda: X.sum()),
    "shifted": ("partly", lambda: torch.cat([X + 1e-3, torch.randn(10)])),
}


@pytest.mark.parametrize("kind", FORGED)
def test_another_distribution_is_wrong(kind):
    name, forged = FORGED[kind]
    with pytest.raises(Wrong) as caught:
        compare(HONEST[name], forged)
    assert caught.value.outcome == "WRONG_VALUES"
