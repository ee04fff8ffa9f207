"""Replies of different lengths from one batch: those that have ended leave it, and nobody computes their padding."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

PART = 64
"""Tokens between two looks at who has ended. To leave copies the cache of the others, which takes about as long as a
token."""

BEFORE_5_24 = "past_key_values"
"""What transformers called the `cache` of a model until then."""


def write(
    generate: Callable[..., Any],
    *,
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor,
    generation_config: Any,
    on_left: Callable[[torch.Tensor], None] = lambda staying: None,
    is_over: Callable[[], bool] = lambda: False,
    **others: Any,
) -> torch.Tensor:
    """What `generate` of a causal model of transformers returns for the same arguments: (rows, prompt + longest reply),
    token ids, with pad tokens behind each end.

    `on_left` hears the places of the rows that stay, (rows left,), counted among those there were; after `is_over`
    nobody goes on. Draws from torch's own random numbers are others than `generate`'s, since rows that have ended make
    none.
    """
    import torch

    rows, asked = input_ids.shape
    ends = torch.tensor(generation_config.eos_token_id, device=input_ids.device).flatten()
    config = copy.copy(generation_config)
    config.return_dict_in_generate = True
    left = generation_config.max_new_tokens
    found = torch.full((rows, asked + left), generation_config.pad_token_id, device=input_ids.device)
    going, longest = torch.arange(rows, device=input_ids.device), asked
    ids, mask = input_ids, attention_mask
    more: dict[str, Any] = {}
    while len(going) and left and not is_over():
        config.max_new_tokens = min(PART, left)
        out = generate(input_ids=ids, attention_mask=mask, generation_config=config, **more, **others)
        ids, new = out.sequences, out.sequences[:, ids.shape[1] :]
        left -= new.shape[1]
        longest = ids.shape[1]
        found[going, :longest] = ids
        stays = (~torch.isin(new, ends).any(dim=1)).nonzero().flatten()
        mask = torch.cat([mask, mask.new_ones(new.shape)], dim=1)
        name = "cache" if hasattr(out, "cache") else BEFORE_5_24
        cache = getattr(out, name)  # None where the model is told to keep none
        more = {name: cache} if cache is not None else {}
        if len(stays) < len(going):
            ids, mask, going = ids[stays], mask[stays], going[stays]
            if cache is not None:
                cache.batch_select_indices(stays)
            on_left(stays)
    return found[:, :longest]


def cache_name(model: Any) -> str:
    """What its `forward` calls its cache."""
    return "cache" if "cache" in inspect.signature(model.forward).parameters else BEFORE_5_24
