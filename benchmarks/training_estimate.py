"""What a recipe for a 7B policy on eight GPUs needs: memory, tokens and verdicts a second, hours. Nothing is run.

    python benchmarks/training_estimate.py recipes/node8-7b.toml

Every figure follows from the recipe, from the model's sizes and from the assumptions below, each with where it is from.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

from cuda_l1.training.recipe import Recipe, load_recipe

PARAMETERS, EMBEDDING, LAYERS, HIDDEN, KEY_VALUE = 7.616e9, 0.545e9, 28, 3584, 512
"""Qwen2.5-Coder-7B, by its config.json; weights of the input embedding, width of keys and of values."""
TRAINERS, WRITERS = 4, 2
"""GPUs of the node that train and that write, by `node8-7b.sbatch`; the recipe names those that measure."""
GIB = 1 << 30

PROMPT_TOKENS, REPLY_TOKENS = 4000, 1500
"""Assumed means: a question with two variants, a reply of half the longest."""
FLOPS = 989e12 * 0.35
"""Of a GPU that trains: the dense bf16 peak of an H100 SXM by its data sheet, and an assumed share of it."""
WRITTEN_PER_S = 2500.0
"""Assumed: tokens a second of a GPU that writes, 7B in bf16, some sixty replies at a time."""
VERDICT_S = 1.527
"""Measured: a screen with warm pools on an H100 of a host that others used (docs/results/h100/verdict_cost.md)."""
JUDGE_S = 1.341
"""Measured there: the judge of a task that is new to an evaluator."""
BUILD_S, BUILDERS = 21.0, 32
"""Measured: torch's load_inline of a CUDA source; assumed: so many at a time, each on three of 96 cores."""
PUSH_S = 5.0
"""Assumed: 15 GB of weights to the server by NCCL, and waking it."""


class Figure(NamedTuple):
    """A line of the table."""

    what: str
    value: str
    how: str


def figures(recipe: Recipe) -> list[Figure]:
    """The lines of the table, in the order of a round."""
    section, measuring = recipe.contrastive, len(recipe.evaluation.places)
    replies = section.prompts * section.group
    write_s = replies * REPLY_TOKENS / (WRITTEN_PER_S * WRITERS) + PUSH_S
    judge_s = (replies * VERDICT_S + section.prompts * JUDGE_S) / measuring + replies * BUILD_S / BUILDERS
    tokens = replies * (PROMPT_TOKENS + REPLY_TOKENS)
    train_s = 10 * PARAMETERS * tokens / (FLOPS * TRAINERS)
    round_s = write_s + judge_s + train_s
    every = section.checkpoint_every
    ahead_s = (max(judge_s, write_s + train_s) * (every - 1) + round_s) / every
    speed = f"{replies / judge_s:.1f}"
    return [
        Figure(
            "memory of a GPU that trains", _gib(_training_bytes(recipe)), "16 bytes a weight over four; activations"
        ),
        Figure("memory of a GPU that writes", _gib(_writing_bytes(replies)), "weights in bf16, caches of all replies"),
        Figure("memory on the host", _gib(4 * PARAMETERS), "one copy in float32 while it is loaded and saved"),
        Figure("tokens written a second", f"{WRITTEN_PER_S * WRITERS:,.0f}", "assumed for two GPUs"),
        Figure("tokens learned from a second", f"{tokens / train_s:,.0f}", "10 operations a weight, 35 % of the peak"),
        Figure(
            "verdicts a second",
            speed,
            f"{VERDICT_S} s each, on a host that others used, on {measuring} GPUs; builds of {BUILD_S:.0f} s",
        ),
        Figure("write a round", f"{write_s:.0f} s", f"{replies} replies of {REPLY_TOKENS} tokens; new weights"),
        Figure("judge a round", f"{judge_s:.0f} s", "every reply a new text with CUDA to build: the worst case"),
        Figure("learn from a round", f"{train_s:.0f} s", f"{tokens:,} tokens, activations computed twice"),
        Figure(f"{section.rounds} rounds, one after the other", _hours(section.rounds * round_s), "the sum"),
        Figure(
            f"{section.rounds} rounds with `lag = 1`",
            _hours(section.rounds * ahead_s),
            "judging beside writing and learning",
        ),
    ]


def table(recipe: Recipe) -> str:
    """The figures in Markdown."""
    rows = [f"| {each.what} | {each.value} | {each.how} |" for each in figures(recipe)]
    return "\n".join(["| figure | estimated | from |", "|---|---|---|", *rows]) + "\n"


def _training_bytes(recipe: Recipe) -> float:
    """Weights, gradients and both moments in float32; what each layer hands on, and one layer computed again."""
    tokens = recipe.contrastive.batch * (PROMPT_TOKENS + recipe.generation.max_new_tokens)
    kept = LAYERS * tokens * HIDDEN * 2
    one_layer = tokens * HIDDEN * 34  # as much as a layer keeps without flash attention's squares
    whole_layer = (PARAMETERS - 2 * EMBEDDING) / LAYERS * 4 + EMBEDDING * 4
    return 16 * PARAMETERS / TRAINERS + kept + one_layer + whole_layer


def _writing_bytes(replies: int) -> float:
    cache = LAYERS * 2 * KEY_VALUE * 2
    return (2 * PARAMETERS + replies * (PROMPT_TOKENS + REPLY_TOKENS) * cache) / WRITERS


def _gib(size: float) -> str:
    return f"{size / GIB:.0f} GiB"


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h"


if __name__ == "__main__":
    sys.stdout.write(table(load_recipe(Path(sys.argv[1] if len(sys.argv) > 1 else "recipes/node8-7b.toml"))))
