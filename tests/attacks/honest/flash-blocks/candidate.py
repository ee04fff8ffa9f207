"""Causal attention in blocks with a running maximum: the scores are never stored as a whole. Blocks of keys that lie
behind all of their queries are left out, because the mask would turn each of their terms into an exact zero.

For each block of queries the blocks of keys up to the diagonal are visited in order; accumulators are scaled down
when a block raises a row's maximum. Only the block on the diagonal needs a mask.
"""

import functools

import torch
import torch.nn as nn

BLOCK = 32
Running = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


@functools.lru_cache(maxsize=16)
def above_diagonal(rows: int, columns: int, device: torch.device) -> torch.Tensor:
    """Which keys of a diagonal block lie behind a query. It depends on sizes alone."""
    return torch.ones(rows, columns, dtype=torch.bool, device=device).triu(1)


def begin(q: torch.Tensor, features: int) -> Running:
    """Maximum, sum of exponentials and weighted values before any key."""
    shape = (*q.shape[:-1], 1)
    largest = torch.full(shape, float("-inf"), dtype=q.dtype, device=q.device)
    total = torch.zeros(shape, dtype=q.dtype, device=q.device)
    weighted = torch.zeros(*q.shape[:-1], features, dtype=q.dtype, device=q.device)
    return largest, total, weighted


def absorb(running: Running, scores: torch.Tensor, v: torch.Tensor) -> Running:
    """The same after one more block of keys."""
    largest, total, weighted = running
    raised = torch.maximum(largest, scores.amax(dim=-1, keepdim=True))
    shrink = torch.exp(largest - raised)
    weights = torch.exp(scores - raised)
    total = total * shrink + weights.sum(dim=-1, keepdim=True)
    weighted = weighted * shrink + torch.matmul(weights, v)
    return raised, total, weighted


class ModelNew(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        q = q * q.shape[-1] ** -0.5
        out = torch.empty_like(v)
        for row in range(0, q.shape[-2], BLOCK):
            self.rows(q[..., row : row + BLOCK, :], k, v, row, out[..., row : row + BLOCK, :])
        return out

    def rows(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, row: int, out: torch.Tensor) -> None:
        """One block of queries, written to `out`."""
        running = begin(q, v.shape[-1])
        for column in range(0, row + 1, BLOCK):
            keys, values = k[..., column : column + BLOCK, :], v[..., column : column + BLOCK, :]
            scores = torch.matmul(q, keys.transpose(-1, -2))
            if column == row:
                scores.masked_fill_(above_diagonal(*scores.shape[-2:], scores.device), float("-inf"))
            running = absorb(running, scores, values)
        _, total, weighted = running
        torch.div(weighted, total, out=out)
