"""Writing with keys and values that stay in place, on a GPU with a token's kernels captured as one graph: those of a
small model take less time to run than a host takes to launch them. Imports torch and transformers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from transformers import StaticCache, TemperatureLogitsWarper, TopPLogitsWarper

from cuda_l1.proposers.policy.writing import cache_name, write

ROOM = 256
"""Tokens by which keys and values are given more room: all of it is read for each token."""
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")
"""What configurations call the number of parts of which each token has some."""
LOOK = 16
"""Tokens between two looks at whether all rows have ended, for which the host waits for the GPU."""


class Captured:
    """In the place of a model's `generate` for `writing.write`, which asks for a few dozen tokens at a time.

    Choices are greedy, or heed temperature and top-p; no other setting of a generation is looked at.
    """

    def __init__(self, model: Any) -> None:
        """`model`: one that `can_stay_in_place`."""
        self._model = model

    def __call__(
        self,
        *,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        generation_config: Any,
        cache: Any = None,
        logits_processor: Sequence[Any] = (),
        stopping_criteria: Sequence[Any] = (),
    ) -> Any:
        """`sequences` and `cache`, as `generate` gives them: (rows, tokens so far + at most
        `max_new_tokens`) token ids, and the keys and values of all but the last."""
        rows, known = input_ids.shape
        last = known + generation_config.max_new_tokens
        ids = torch.cat([input_ids, input_ids.new_full((rows, last - known), generation_config.pad_token_id)], dim=1)
        ends = torch.tensor(generation_config.eos_token_id, device=ids.device).flatten()
        processors = [*logits_processor, *_warpers(generation_config)]
        step = _Step(self._model, input_ids, attention_mask, cache, last)
        has_ended = torch.zeros(rows, dtype=torch.bool, device=ids.device)
        so_far = ids
        for place in range(known, last):
            scores = step.scores()
            for process in processors:
                scores = process(ids[:, :place], scores)
            chosen = _draw(scores) if generation_config.do_sample else scores.argmax(dim=-1)
            ids[:, place] = torch.where(has_ended, ids[:, place], chosen)
            has_ended |= torch.isin(ids[:, place], ends)
            if place % LOOK == 0 or place == last - 1:
                so_far = ids[:, : place + 1]
                if bool(has_ended.all()):
                    longest = torch.isin(so_far[:, known:], ends).int().argmax(dim=1).max()
                    so_far = so_far[:, : known + int(longest) + 1]
                    break
                if any(bool(each(so_far, scores).all()) for each in stopping_criteria):
                    break
            step.take(ids[:, place], place)
        return SimpleNamespace(sequences=so_far, cache=step.kept)


def generating(model: Any) -> Callable[..., Any]:
    """What `write` is given for a causal model: one that keeps keys and values in place, and captures graphs on a GPU,
    where the model allows it, else its own `generate`."""
    return Captured(model) if can_stay_in_place(model) else model.generate


@contextlib.contextmanager
def writing_in_parts(model: Any) -> Iterator[None]:
    """Meanwhile `model.generate(input_ids=..., attention_mask=..., generation_config=...)` is `write`."""
    own = generating(model)

    def generate(*, generation_config: Any, **inputs: Any) -> torch.Tensor:
        return write(own, generation_config=generation_config, **inputs)

    model.generate = generate
    try:
        yield
    finally:
        del model.generate


def can_stay_in_place(model: Any) -> bool:
    """Whether a causal model of transformers lies on one device and what it computes for a token has one form. On a CPU
    nothing is captured, but keys and values stay where they are: a token of many replies takes little
    more than half as long."""
    devices = {each.device for each in model.parameters()}
    return len(devices) == 1 and next(iter(devices)).type in ("cuda", "cpu") and has_one_form(model)


def has_one_form(model: Any) -> bool:
    """Whether it attends to all that it has read, by kernels that take a mask and that no number decides about."""
    config = model.config.get_text_config()
    kinds = getattr(config, "layer_types", None) or ["full_attention"]
    chooses = getattr(model, "hf_quantizer", None) is not None or any(getattr(config, name, 0) for name in EXPERTS)
    takes_mask = config._attn_implementation in ("sdpa", "eager")
    compiles = bool(getattr(model, "_can_compile_fullgraph", False))
    return compiles and takes_mask and not chooses and set(kinds) == {"full_attention"}


def _of_one_type(update: Any, keys: torch.Tensor, values: torch.Tensor, *args: Any, **others: Any) -> Any:
    """Keys in the type of the values: within autocast those are what attention computes in, and norms are not."""
    return update(keys.to(values.dtype), values, *args, **others)


class _Kept:
    """Keys and values of what was read, in tensors that stay where they are while tokens are added."""

    def __init__(self, model: Any, room: int) -> None:
        self.cache = StaticCache(config=model.config.get_text_config(), max_cache_len=room)
        self.cache.update = partial(_of_one_type, self.cache.update)

    @property
    def is_empty(self) -> bool:
        return not self.cache.layers[0].is_initialized

    @property
    def room(self) -> int:
        """Tokens."""
        return int(self.cache.layers[0].max_cache_len)

    def make_room(self, room: int) -> None:
        """For so many tokens, where there is less."""
        more = room - self.room
        for layer in self.cache.layers if more > 0 else ():
            layer.max_cache_len = room
            if layer.is_initialized:
                layer.keys = torch.nn.functional.pad(layer.keys, (0, 0, 0, more))
                layer.values = torch.nn.functional.pad(layer.values, (0, 0, 0, more))

    def batch_select_indices(self, rows: torch.Tensor) -> None:
        """Others than these rows are gone."""
        for layer in self.cache.layers:
            layer.keys, layer.values = layer.keys[rows], layer.values[rows]


class _Step:
    """The model's scores for one token after another."""

    def __init__(self, model: Any, ids: torch.Tensor, mask: torch.Tensor, kept: _Kept | None, last: int) -> None:
        """`kept`: of all tokens but the last, from a step before; `last`: tokens at the end."""
        room = -(-last // ROOM) * ROOM
        self.kept = kept or _Kept(model, room)
        self.kept.make_room(room)
        self._model, self._cache_name, self._unread = model, cache_name(model), (ids, mask)
        self._seen = torch.zeros((len(ids), 1, 1, self.kept.room), dtype=torch.bool, device=ids.device)
        self._seen[:, 0, 0, : mask.shape[1]] = mask.bool()
        self._token, self._position = ids[:, -1:].clone(), mask.sum(dim=1, keepdim=True) - 1
        self._is_warm = False
        self._graph: torch.cuda.CUDAGraph | None = None
        self._scores = torch.empty(0)

    def scores(self) -> torch.Tensor:
        """(rows, vocabulary), logits of the next token. The first is computed launch by launch, and so is one before
        the graph: nothing may be loaded while that is captured."""
        if self.kept.is_empty:
            ids, mask = self._unread
            return self._called(ids, mask, (mask.cumsum(dim=1) - 1).clamp(min=0))
        if not self._is_warm or not self._token.is_cuda:
            self._is_warm = True
            return self._of_one()
        if self._graph is None:
            self._capture()
        assert self._graph is not None
        self._graph.replay()
        return self._scores

    def take(self, token: torch.Tensor, place: int) -> None:
        """The token that was chosen for `place`, (rows,)."""
        self._token.copy_(token[:, None])
        self._position += 1
        self._seen[..., place] = True

    def _capture(self) -> None:
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._scores = self._of_one()

    def _of_one(self) -> torch.Tensor:
        return self._called(self._token, self._seen, self._position)

    def _called(self, ids: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        out = self._model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            use_cache=True,
            logits_to_keep=1,
            **{self._cache_name: self.kept.cache},
        )
        scores: torch.Tensor = out.logits[:, -1]
        return scores


def _warpers(config: Any) -> list[Any]:
    if not config.do_sample:
        return []
    warpers: list[Any] = [] if config.temperature in (None, 1.0) else [TemperatureLogitsWarper(config.temperature)]
    return warpers if config.top_p in (None, 1.0) else [*warpers, TopPLogitsWarper(config.top_p)]


def _draw(scores: torch.Tensor) -> torch.Tensor:
    return torch.multinomial(torch.softmax(scores.float(), dim=-1), 1)[:, 0]
