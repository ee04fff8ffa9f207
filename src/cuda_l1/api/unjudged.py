"""Variants that techniques write and nobody judges: of more tasks than verdicts can be paid for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from pathlib import Path
from random import Random
from typing import NamedTuple

from cuda_l1.api.collecting import Choice, choose, read_source
from cuda_l1.archive.faults import file_faults
from cuda_l1.prelude import contracted
from cuda_l1.proposers.techniques.proposer import TechniqueProposer
from cuda_l1.tasks.evaluation_suites import evaluation_tasks
from cuda_l1.texts import many
from cuda_l1.training.examples import Row, write_rows
from cuda_l1.training.recipe import Recipe
from cuda_l1.training.renaming import renamed
from cuda_l1.training.run_directory import RunDirectory
from cuda_l1.training.side_processes import side_processes
from cuda_l1.training.stages import Event
from cuda_l1.training.task_sets import splits_of

NAME = "data"
PAIRS = 0.3
"""Share of the variants that two techniques write together."""


class Written(NamedTuple):
    """What became of one of `[data] unjudged`."""

    spec: str
    tasks: int
    variants: int
    failures: list[str]
    """What could not be written, a line each."""

    def __str__(self) -> str:
        text = f"{self.spec}: {many(self.variants, 'variant')} of {many(self.tasks, 'task')}"
        return f"{text}; {len(self.failures)} could not be written ({self.failures[0]})" if self.failures else text


def write_unjudged(run: RunDirectory, on_event: Callable[[Event], None]) -> None:
    """Has techniques write variants of the training tasks of `[data] unjudged` into `RUN/unjudged`: each spec by one
    process, on all cores, and under other names where `[sft] other_names` says so. What is there already is not
    written again. Raises TaskError, UsageError, InfrastructureError.
    """
    specs = [spec for spec in dict.fromkeys(run.recipe.data.unjudged) if not run.unjudged_file(spec).exists()]
    if not specs:
        return
    on_event(Event(NAME, f"techniques write variants of {', '.join(specs)}, which nobody judges"))
    with side_processes(len(specs)) as pool:
        futures = [pool.submit(_write, spec, run.unjudged_file(spec), run.recipe) for spec in specs]
        for number, future in enumerate(as_completed(futures), start=1):
            on_event(Event(NAME, f"unjudged {number}/{len(specs)}, {future.result()}"))


def _write(spec: str, file: Path, recipe: Recipe) -> Written:
    """In a process of its own: the variants of one spec's training tasks, as one file."""
    known, _ = evaluation_tasks(recipe.against, recipe.evaluation.kind)
    source = read_source(spec, device=recipe.evaluation.kind)
    chosen, _ = choose([source], known, allow_overlap=recipe.data.allow_overlap, to_train=True)
    split_of = splits_of(recipe)
    training = [choice for choice in chosen if split_of(choice.task) == "train"]
    names = list(recipe.data.techniques) or None
    techniques = TechniqueProposer(recipe.evaluation.kind, recipe.evaluation.precision, names)
    rows = [row for choice in training for row in _rows(choice, techniques, recipe)]
    with file_faults(file):
        write_rows(file, rows)
    return Written(spec, len({row.task_sha for row in rows}), len(rows), techniques.failures)


def _rows(choice: Choice, techniques: TechniqueProposer, recipe: Recipe) -> Iterator[Row]:
    task = choice.task
    rng = Random(f"{recipe.run.seed} {task.sha}")
    names = list(techniques.applying(task))
    drawn = list(_drawn(names, recipe.data.unjudged_each, rng))
    built = (techniques.build(task, subset) for subset in drawn)
    candidates = list({each.id: each for each in built if each is not None}.values())
    # A later version may have other preludes, and what they name is no attribute of the task's.
    reference, variants = task.source, [contracted(each.source) for each in candidates]
    if rng.random() < recipe.sft.other_names:  # the same for all: one can be shown beside another
        reference, variants = renamed(reference, variants, rng)
    for candidate, variant in zip(candidates, variants, strict=True):
        yield Row(
            split="train",
            task_id=task.id,
            task_sha=task.sha,
            suite=task.suite,
            reference=reference,
            variant=variant,
            candidate_id=candidate.id,
            by="techniques, unjudged",
            techniques=list(candidate.origins[0].techniques),
            rationale=candidate.rationale,
            speedup_eager=None,
            device_name="",
            licence=choice.source.licence,
            overlaps=choice.overlaps,
        )


def _drawn(names: Sequence[str], count: int, rng: Random) -> Iterator[frozenset[str]]:
    """Techniques of so many variants: a different one first in each, in some with a second."""
    for first in rng.sample(names, min(count, len(names))):
        others = [name for name in names if name != first]
        yield frozenset({first, rng.choice(others)} if others and rng.random() < PAIRS else {first})
