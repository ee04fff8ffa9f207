"""Questions and the answers to learn, as the tokens that likelihood training reads."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from cuda_l1.proposers.policy.policy import messages_of
from cuda_l1.training.examples import Example, Row, examples_by, over_tasks
from cuda_l1.training.forms import most_shown
from cuda_l1.training.recipe import Recipe
from cuda_l1.types import Prompt

PLACE = "the answer stands here"
"""In place of an answer in a conversation that is laid out without it."""
IGNORED = -100
"""Label of a token that nothing is learned from; torch's."""
PARALLEL = "TOKENIZERS_PARALLELISM"
AT_ONCE = 1000
"""Texts that a tokenizer is given together, so that it uses all cores."""


class Lesson(Protocol):
    """A question and the answer to learn; `examples.Example` is one."""

    @property
    def prompt(self) -> Prompt: ...
    @property
    def completion(self) -> str: ...


@dataclass(frozen=True)
class Tokenized:
    """Lessons as tokens, those that fit into the length that is trained."""

    ids: Any
    """int32 array: the tokens of all that fit, one lesson after the other."""
    lengths: Any
    """int64 array: how many tokens each of these has."""
    given: Any
    """int64 array: how many of them come before its answer, from which nothing is learned."""
    fits: tuple[bool, ...]
    """Of all lessons, those included that are left out."""
    longest: int
    """Tokens of the longest lesson, those that are left out included."""

    @property
    def count(self) -> int:
        """Lessons that fit."""
        return len(self.lengths)

    @property
    def dataset(self) -> Any:
        """`input_ids` and `labels` of each lesson, as TRL reads them, as NumPy's arrays: these become tensors ten
        times as fast as lists."""
        import pyarrow
        from datasets import Dataset

        offsets = np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)
        labels = self.ids.copy()
        for start, count in zip(offsets, self.given, strict=False):
            labels[start : start + count] = IGNORED
        columns = {
            name: pyarrow.LargeListArray.from_arrays(offsets, values)
            for name, values in (("input_ids", self.ids), ("labels", labels))
        }
        return Dataset(pyarrow.table(columns)).with_format("numpy")


class Made(NamedTuple):
    """What stage 1 learns from, or is tested with."""

    tokens: Tokenized
    shown: int
    """Scored variants in the question that shows the most of them, of those that fit."""


def lessons_of(rows: Sequence[Row], recipe: Recipe, folder: Path) -> Made:
    """The examples that a recipe makes of rows, as tokens of the policy in `folder`; on all cores where there are many.

    Raises InfrastructureError where a process that makes some dies.
    """
    parts = over_tasks(rows, partial(_part, recipe=recipe, folder=folder))
    return Made(joined([part.tokens for part in parts]), max((part.shown for part in parts), default=0))


def _part(rows: Sequence[Row], *, recipe: Recipe, folder: Path) -> Made:
    """What nobody judged is told without the others where it is too long beside them: it is told once."""
    with few_collections():
        made = list(examples_by(recipe, rows))
    tokens = tokenized(made, tokenizer_in(folder), recipe.sft.max_length)
    told = zip(made, tokens.fits, strict=True)
    is_left = [not fits and one.exemplars > 0 and one.row.speedup_eager is None for one, fits in told]
    plain = [_alone(one, recipe) for one, left in zip(made, is_left, strict=True) if left]
    kept = replace(tokens, fits=tuple(fits for fits, left in zip(tokens.fits, is_left, strict=True) if not left))
    again = tokenized(plain, tokenizer_in(folder), recipe.sft.max_length)
    return Made(joined([kept, again]), most_shown(made, tokens.fits))


def _alone(example: Example, recipe: Recipe) -> Example:
    """The same answer to a question that shows no variant."""
    sft = recipe.sft.model_copy(update={"exemplars": 0})
    (found,) = examples_by(recipe.model_copy(update={"sft": sft}), [example.row])
    return found


@contextmanager
def few_collections() -> Iterator[None]:
    """Meanwhile Python looks for garbage seldom, and not among what is there already. Syntax trees are many objects and
    no garbage: looking through all others after each few thousand took half of the time."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


@lru_cache(maxsize=1)
def tokenizer_in(folder: Path) -> Any:
    """Of the policy in a folder."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder, local_files_only=True)


def joined(parts: Sequence[Tokenized]) -> Tokenized:
    """The lessons of all parts."""
    return Tokenized(
        np.concatenate([np.zeros(0, np.int32), *(part.ids for part in parts)]),
        np.concatenate([np.zeros(0, np.int64), *(part.lengths for part in parts)]),
        np.concatenate([np.zeros(0, np.int64), *(part.given for part in parts)]),
        tuple(fits for part in parts for fits in part.fits),
        max((part.longest for part in parts), default=0),
    )


def tokenized(lessons: Sequence[Lesson], tokenizer: Any, max_length: int) -> Tokenized:
    """The lessons of at most `max_length` tokens; longer ones are counted, never cut."""
    with _many_threads():
        starts = range(0, len(lessons), AT_ONCE)
        return joined([_tokenized(lessons[at : at + AT_ONCE], tokenizer, max_length) for at in starts])


@contextmanager
def _many_threads() -> Iterator[None]:
    """Meanwhile tokenizers use all cores; by default ours do not, since they complain of it in each process that is
    forked later."""
    before = os.environ.get(PARALLEL)
    os.environ[PARALLEL] = "true"
    try:
        yield
    finally:
        os.environ[PARALLEL] = before or "false"


def _tokenized(lessons: Sequence[Lesson], tokenizer: Any, max_length: int) -> Tokenized:
    """Tokens of lessons. What an answer spells of the tokenizer's special tokens is text: a variant that holds the mark
    of an end as a string ends no turn, and reads back as it was."""
    heads, tails, questions = [], [], []
    for lesson in lessons:
        messages = messages_of(lesson.prompt, tokenizer)
        laid_out = [*messages, {"role": "assistant", "content": PLACE}]
        head, _, tail = tokenizer.apply_chat_template(laid_out, tokenize=False).rpartition(PLACE)
        heads.append(head)
        tails.append(tail)
        questions.append(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))
    asked = _tokens(questions, tokenizer)
    before = asked if heads == questions else _tokens(heads, tokenizer)
    answers = _tokens([lesson.completion for lesson in lessons], tokenizer, split_special_tokens=True)
    all_ids = [
        [*head, *answer, *end] for head, answer, end in zip(before, answers, _tokens(tails, tokenizer), strict=True)
    ]
    fits = [len(ids) <= max_length for ids in all_ids]
    found = [(ids, _common(ids, question)) for ids, question, fit in zip(all_ids, asked, fits, strict=True) if fit]
    return Tokenized(
        np.array([token for ids, _ in found for token in ids], np.int32),
        np.array([len(ids) for ids, _ in found], np.int64),
        np.array([given for _, given in found], np.int64),
        tuple(fits),
        max(map(len, all_ids), default=0),
    )


def _common(ids: list[int], question: list[int]) -> int:
    """How many tokens both begin with."""
    if ids[: len(question)] == question:
        return len(question)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(ids, question, strict=False)))


def _tokens(texts: list[str], tokenizer: Any, **how: bool) -> list[list[int]]:
    quick = {"return_attention_mask": False, "return_token_type_ids": False, "verbose": False}
    found: list[list[int]] = tokenizer(texts, add_special_tokens=False, **quick, **how)["input_ids"]
    return found
