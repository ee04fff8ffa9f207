"""The error function by the polynomial of Abramowitz and Stegun, 7.1.26, which is right to 1.5e-7 everywhere: as exact
as single precision, unlike the approximation by tanh."""

import torch
import torch.nn as nn

COEFFICIENTS = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scaled = x.abs() * 0.5**0.5
        t = torch.reciprocal(scaled * 0.3275911 + 1.0)
        series = t * COEFFICIENTS[0]
        for coefficient in COEFFICIENTS[1:]:
            series.add_(coefficient).mul_(t)
        tail = series.mul_(torch.exp(scaled.square_().neg_())).mul_(0.5)  # half of 1 - erf(|x| / sqrt 2)
        return torch.where(x > 0, x - x * tail, x * tail)
