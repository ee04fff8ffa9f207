"""Techniques: each makes one kind of change to a draft; any subset composes into a candidate.

    candidate = build(task, ["diagonal_matmul", "cuda_graph"], "cuda")

A new technique is a module here that defines `TECHNIQUE`, and one line in `REGISTRY`.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Sequence
from typing import Literal, Protocol

from cuda_l1.errors import UsageError
from cuda_l1.proposers.techniques.derived import hoist
from cuda_l1.proposers.techniques.draft import Device, Draft, candidate, open_draft
from cuda_l1.types import Candidate, Task

# Module names, cheap likely winners first: the order in which singles are proposed.
REGISTRY: tuple[str, ...] = (
    "diagonal_matmul",
    "constant_output",
    "reduce_linear",
    "pooled_convolution",
    "triangular_matmul",
    "matmul_chain",
    "merged_linear",
    "fold_batch_norm",
    "attention",
    "hoist_linear",
    "pairwise_distance",
    "pooled_embedding",
    "fuse_softmax",
    "fuse_norm",
    "symmetric_matmul",
    "packed_linear",
    "fuse_activation",
    "fusion",
    "traced_loops",
    "in_place",
    "channels_last",
    "identities",
    "common_subexpressions",
    "straight_line",
    "kept_weights",
    "kept_constants",
    "preallocation",
    "bf16",
    "inductor",
    "compile",
    "tf32",
    "cuda_graph",
)  # fmt: skip

FUSION = 30
"""From this stage on, what is computed from weights alone stands outside the graph."""


class Technique(Protocol):
    """One kind of change. Modules of techniques import torch only inside functions."""

    name: str
    """That of its module."""
    devices: frozenset[str]
    """Where it may be used: `cpu`, `cuda`."""
    stage: int
    """Order of application: 10 graph rewrites, 20 layout, 30 fusion and code generation, 40 allocation, 50 wrappers.
    Below 50 a technique needs a captured graph."""
    precision: Literal["same", "tf32", "relaxed"]
    """The least `--precision` under which it may be proposed; `same` keeps the task's own class."""

    def applies(self, draft: Draft) -> bool:
        """Whether it would change this draft; cheap, changes nothing."""
        ...

    def apply(self, draft: Draft) -> None:
        """Change the draft; called only where `applies` holds."""
        ...


def load(name: str) -> Technique:
    """The technique called `name`. Raises UsageError that names the closest ones."""
    if name not in REGISTRY:
        raise UsageError(unknown_name(name))
    module = importlib.import_module(f"{__name__}.{name}")
    technique: Technique = module.TECHNIQUE
    return technique


def unknown_name(name: str) -> str:
    """One line for a name that is none of a technique, with the closest ones and where all stand."""
    close = difflib.get_close_matches(name, REGISTRY, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}? " if close else ""
    return f"unknown technique `{name}`; {hint}`cuda-l1 optimize TASK --proposer techniques:` lists all"


def usable(technique: Technique, draft: Draft) -> bool:
    """Whether a technique would change this draft on the draft's device."""
    if draft.device not in technique.devices:
        return False
    if technique.stage < 50 and draft.graph_module is None:
        return False
    return technique.applies(draft)


def build(task: Task, techniques: Sequence[str], device: Device) -> Candidate | None:
    """The candidate with these techniques applied in stage order; None when one of them finds nothing to do.

    Raises UsageError for an unknown technique, TaskError where what the techniques made of the graph has no text.
    Executes the task's source on fake tensors; needs no GPU.
    """
    built = compose(task, techniques, device)
    complete = built is not None and set(built.origins[0].techniques) == set(techniques)
    return built if complete else None


def compose(task: Task, techniques: Sequence[str], device: Device) -> Candidate | None:
    """As `build`, but techniques that find nothing to do are left out; None when that leaves none."""
    draft = open_draft(task, device)
    applied = []
    for technique in sorted((load(name) for name in set(techniques)), key=_order):
        if technique.stage >= FUSION:
            hoist(draft)
        if usable(technique, draft):
            technique.apply(draft)
            draft.techniques += (technique.name,)
            applied.append(technique)
    hoist(draft)
    for change in draft.last:
        change(draft)
    return candidate(draft, _rationale(applied)) if applied else None


def _order(technique: Technique) -> tuple[int, int]:
    return technique.stage, REGISTRY.index(technique.name)


def _rationale(chosen: Sequence[Technique]) -> str:
    """The first line of each technique's description."""
    return " ".join((type(technique).__doc__ or technique.name).strip().splitlines()[0] for technique in chosen)
