"""The stages of training, in the paper's order: a line here makes a stage a command of `cuda-l1 train`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from cuda_l1.errors import UsageError
from cuda_l1.training.processes import ALONE, Processes

if TYPE_CHECKING:
    from cuda_l1.archive import Archive
    from cuda_l1.search.interfaces import SupportsEvaluate, SupportsReview
    from cuda_l1.training.recipe import Recipe
    from cuda_l1.training.run_directory import RunDirectory
    from cuda_l1.training.table import Table


INSTALL = "pip install 'cuda-l1[train]'"


class Event(NamedTuple):
    """Something that a person who waits may want to hear of."""

    stage: str
    text: str
    """One line."""
    figures: Mapping[str, Any] = MappingProxyType({})
    """The same for programs, e.g. {"step": 10, "loss": 2.1}."""


class Surroundings(NamedTuple):
    """What a stage is handed, since training imports neither the evaluator nor a command."""

    archive: Archive | None
    """None in all processes but the main one."""
    evaluators: Callable[[], AbstractContextManager[Sequence[SupportsEvaluate]]]
    """Opens the evaluators of `[evaluation]`, one a device or lane, each for one thread at a time. Verdicts
    come through `search.verdict` with one of them."""
    reviewer: SupportsReview | None = None
    """Who gives a second opinion on jumps in speed-up; None: nobody."""
    processes: Processes = ALONE
    table: Table | None = None
    """Where verdicts that are new to the run are looked up and left; None: they are measured, and in all processes but
    the main one."""


class RunStage(Protocol):
    """A stage's work: from the checkpoint folder `start` to its own final one. Goes on from the stage's latest
    checkpoint where there is one. Raises UsageError, InfrastructureError."""

    def __call__(
        self,
        recipe: Recipe,
        run: RunDirectory,
        *,
        start: Path,
        surroundings: Surroundings,
        on_event: Callable[[Event], None],
    ) -> Path: ...


class Stage(NamedTuple):
    """A stage as the command line offers it."""

    help: str
    """One line."""
    module: str
    """Has the function `run`; it may import transformers and TRL, so it is imported when the stage runs."""

    def run(self) -> RunStage:
        """The stage's function. Raises UsageError where a package of the extra `train` is missing."""
        try:
            function: RunStage = import_module(self.module).run
        except ImportError as error:
            raise UsageError(f"training needs packages that are not here ({error}): {INSTALL}") from error
        return function


STAGES: dict[str, Stage] = {
    "sft": Stage("Stage 1: supervised fine-tuning on right variants.", "cuda_l1.training.sft"),
    "self": Stage("Stage 2: learning from its own right replies.", "cuda_l1.training.self_supervised"),
    "contrastive": Stage("Stage 3: reinforcement learning on measured speed.", "cuda_l1.training.contrastive"),
}
"""By the name of their command, which is also their folder's."""
