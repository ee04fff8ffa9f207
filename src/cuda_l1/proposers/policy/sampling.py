"""Hooks into `generate` of transformers: each reply with random numbers of its own, and an end when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


BLOCK = 8
"""Tokens that a row's noise is drawn for at once: a call for each row and token is what a GPU waits for."""


class OwnDraws:
    """Makes the choice of the most likely token a draw, each row by a generator of its own.

    The Gumbel-max trick: with g from a standard Gumbel distribution, argmax(logits + g) is a draw from softmax(logits)
    (E. J. Gumbel, Statistical Theory of Extreme Values, 1954). So a reply depends on its prompt and its seed alone, not
    on its neighbours in the batch (but for rounding) nor on the process's random numbers.
    """

    def __init__(self, seeds: Sequence[int], device: torch.device) -> None:
        """A seed for each row."""
        import torch

        self._generators = [torch.Generator(device).manual_seed(seed) for seed in seeds]
        self._noise: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """`scores`: (rows, vocabulary), logits; returns the same in float32 with noise."""
        if not self._noise:
            self._noise = self._drawn(scores)
        return scores.float() + self._noise.pop(0)

    def keep(self, rows: torch.Tensor) -> None:
        """Others than these have left the batch; (rows left,), their places."""
        self._generators = [self._generators[row] for row in rows.tolist()]
        self._noise = [noise[rows] for noise in self._noise]

    def _drawn(self, scores: torch.Tensor) -> list[torch.Tensor]:
        """`BLOCK` tensors like `scores` of noise, in float32."""
        import torch

        rows, vocabulary = scores.shape
        exponential = torch.empty((rows, BLOCK, vocabulary), dtype=torch.float32, device=scores.device)
        for row, generator in zip(exponential, self._generators, strict=True):
            row.exponential_(generator=generator)
        return list(exponential.clamp_min_(torch.finfo(torch.float32).tiny).log_().neg_().unbind(1))


def draws(seeds: Sequence[int], temperature: float, top_p: float, device: torch.device) -> list[Any]:
    """What makes greedy decoding draw, a seed for each row, `OwnDraws` last; nothing at temperature 0."""
    from transformers import TemperatureLogitsWarper, TopPLogitsWarper

    if temperature == 0:
        return []
    nucleus = [TopPLogitsWarper(top_p)] if top_p < 1 else []
    return [TemperatureLogitsWarper(temperature), *nucleus, OwnDraws(seeds, device)]


class EndWhen:
    """Ends all rows after the token at which a condition holds, and remembers that it did."""

    def __init__(self, condition: Callable[[], bool]) -> None:
        self._condition = condition
        self.has_ended = False

    def __call__(self, input_ids: torch.Tensor, scores: object) -> torch.Tensor:
        """(rows,), whether each is at its end."""
        import torch

        self.has_ended = self.has_ended or self._condition()
        return torch.full((input_ids.shape[0],), self.has_ended, device=input_ids.device, dtype=torch.bool)
