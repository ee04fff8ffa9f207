"""The Python door: `optimize` a live module, `evaluate` a text, `load_tasks`. Torch is loaded when it is needed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from cuda_l1.api.budget import parse_budget
from cuda_l1.api.limits import parse_final_budget
from cuda_l1.api.places import check_choice, check_clock, data_folder, resolve_device
from cuda_l1.config import (
    COMPAT,
    EvaluatorSettings,
    Limits,
    LlmSettings,
    Precision,
    ProtocolName,
    ReviewerSettings,
    SearchSettings,
    protocol_named,
)
from cuda_l1.errors import UsageError
from cuda_l1.tasks import load_task, load_tasks
from cuda_l1.types import Clock, Evaluation, Task

if TYPE_CHECKING:
    import torch

    from cuda_l1.export.optimized import OptimizedModule
    from cuda_l1.report.shapes import ShapeReport
    from cuda_l1.search import Result
    from cuda_l1.search.events import Event

__all__ = ["evaluate", "load_tasks", "optimize", "verify_shapes"]


def optimize(
    module: torch.nn.Module,
    example_inputs: Any,
    *,
    budget: str | float = "60s",
    device: str = "auto",
    precision: Precision = "default",
    proposers: Sequence[str] = ("techniques",),
    clock: Clock | None = None,
    final_budget: str = "60s",
    limits: Limits | None = None,
    reviewer: ReviewerSettings | None = None,
    llm: LlmSettings | None = None,
    archive: str | Path | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> OptimizedModule:
    """`module` with a faster forward for inputs like `example_inputs`, or with its own where nothing faster was found.

    `example_inputs`: the positional arguments of `forward` as a tuple or list, or a single tensor. `budget`: `60s`,
    `5m`, or a number of evaluations. `final_budget`: a time for the pairs of the final beyond its first five. `limits`:
    deadlines and caps of an evaluation. `reviewer`: a language model that is asked about a jump in speed-up; the task's
    and candidates' text is sent there. `llm`: what the proposer `llm` is made of, where it is among `proposers`; the
    task's and candidates' text is sent to its models. `proposers`: names, or one text with commas between them;
    `policy:FOLDER` among them asks a trained checkpoint as it was trained to be asked. The module and its weights are
    judged in other processes; the result holds the very same Parameter objects. Its `report` says what was measured,
    and `report["fallbacks"]` counts calls that ran the original. Forward only: use it under `torch.no_grad()`.

    Raises UsageError (TaskError for a module that cannot be written down as source), InfrastructureError (also at
    sandbox rung R0), ArchiveError, EndpointError (nobody answers at a model's address).
    """
    from cuda_l1.api.llm import patience
    from cuda_l1.api.policy import PolicyOptions, parse_policy
    from cuda_l1.api.proposers import check_proposers
    from cuda_l1.api.searching import run_search
    from cuda_l1.archive import Archive
    from cuda_l1.evaluator import Evaluator
    from cuda_l1.tasks import task_from_module

    started = time.monotonic()
    if isinstance(example_inputs, Mapping):
        raise UsageError("example_inputs: give positional arguments; calls by keyword always run the original")
    seconds, evaluations = parse_budget(budget)
    final_s = parse_final_budget(final_budget)
    check_choice("precision", precision, get_args(Precision))
    check_choice("clock", clock, (None, "device", "call"))
    device = resolve_device(device)
    check_clock(clock, device)
    if isinstance(proposers, str):
        proposers = [name.strip() for name in proposers.split(",")]
    folder = data_folder(archive)
    task = task_from_module(module, example_inputs, work_dir=folder / "weights")
    policy = parse_policy(PolicyOptions(), proposers)
    settings = SearchSettings(
        task_sha=task.sha,
        device=device,
        clock=clock,
        precision=precision,
        budget_s=seconds,
        budget_evaluations=evaluations,
        proposers=tuple(proposers),
        final_budget_s=final_s,
        limits=limits or Limits(),
        patience=patience(llm or policy),
        reviewer=reviewer,
        llm=llm,
        policy=policy,
    )
    check_proposers(settings)
    with (
        Archive.open(archive) as opened,
        Evaluator(EvaluatorSettings(device=device, limits=settings.limits)) as evaluator,
    ):
        result = run_search(
            task,
            settings,
            archive=opened,
            evaluator=evaluator,
            runs=folder / "runs",
            on_event=on_event or (lambda event: None),
            started=started,
        )
    return _wrap(module, task, result)


def _wrap(module: torch.nn.Module, task: Task, result: Result) -> OptimizedModule:
    from cuda_l1.api.searching import guard_us
    from cuda_l1.export.optimized import OptimizedModule
    from cuda_l1.report.figures import figures

    final = result.final
    report = {
        "task": task.id,
        "outcome": result.outcome,
        "technique": final.candidate.label if final else None,
        "precision_class": final.evaluation.precision_class if final else None,
        "clock": result.clock,
        **figures(result.versus_eager, result.versus_best_baseline),
        "best_baseline": result.held_against,
        "task_flags": list(final.evaluation.task_flags) if final else [],
        "environment": final.evaluation.environment.model_dump(mode="json") if final else None,
        "guard_us": guard_us(task, final) if final else None,
        "record": final.id if final else None,
        "stop_reason": result.stop_reason,
        "evaluations": result.evaluations,
        "tried": result.tried,
        "not_confirmed": [found.model_dump(mode="json") for found in result.not_confirmed],
        "failures": list(result.failures),
    }
    return OptimizedModule(module, final.candidate.source if final else None, report)


def evaluate(
    task: Task | str | Path,
    source: str | Path,
    *,
    protocol: ProtocolName = "final",
    baselines: bool = False,
    device: str = "auto",
    precision: Precision = "default",
    final_budget: str = "60s",
    limits: Limits | None = None,
    reviewer: ReviewerSettings | None = None,
    archive: str | Path | None = None,
) -> Evaluation:
    """The verdict on a candidate: `source` is a path, or the text of a module that defines `ModelNew`.

    `task`: a Task, the path of a KernelBench-format file, or a built-in name. A verdict that the archive already holds
    for this place and protocol is returned as it is. With `baselines` the task's baselines are measured first and the
    best one is timed as an opponent. A bad candidate is an `outcome`, never an exception. `precision` says which class
    a baseline may have; `final_budget`, `limits` and `reviewer` are those of `optimize`. A `protocol` other than
    `final` and `screen` is that of a published harness (docs/compatibility.md), whose figures are none of ours.
    Raises UsageError, InfrastructureError, ArchiveError.
    """
    from cuda_l1.api.judging import best_baseline, candidate_from, judge, reviewed
    from cuda_l1.api.reviewing import open_reviews
    from cuda_l1.archive import Archive
    from cuda_l1.evaluator import Evaluator

    check_choice("protocol", protocol, get_args(ProtocolName))
    check_choice("precision", precision, get_args(Precision))
    device = resolve_device(device)
    if protocol in COMPAT and baselines:
        raise UsageError(f"baselines: {protocol} compares with eager only")
    settings = EvaluatorSettings(device=device, limits=limits or Limits())
    wanted = task if isinstance(task, Task) else load_task(str(task), device=device)
    text = _text(source)
    with Archive.open(archive) as opened, Evaluator(settings) as evaluator:
        known = best_baseline(
            wanted, measure=baselines, precision=precision, archive=opened, evaluator=evaluator, run="evaluate"
        )
        reviews = open_reviews(
            reviewer, wanted, archive=opened, evaluator=evaluator, on_event=lambda event: None, precision=precision
        )
        judged = judge(
            wanted,
            candidate_from(wanted, text),
            protocol=protocol_named(protocol, parse_final_budget(final_budget)),
            best=None if protocol in COMPAT else known.best,
            archive=opened,
            evaluator=evaluator,
            run="evaluate",
        )
        judged = reviewed(judged, wanted, reviews)
    return judged.record.evaluation


def verify_shapes(
    task: Task | str | Path,
    source: str | Path,
    shapes: str = "auto",
    *,
    device: str = "auto",
    precision: Precision = "default",
    limits: Limits | None = None,
) -> ShapeReport:
    """Whether a candidate is right at other sizes than its task's own, where the reference is the truth at each.

    `shapes`: `auto` varies each size of the inputs by itself; `batch_size=1,7,64 dim=512` says which, under the names
    that the task's text gives them (a number stands for itself where it has none), and `batch_size=1+dim=64` changes
    two at once. Nothing is timed or recorded, and the task's own size is not tried: `evaluate` does. `task`, `source`
    and the other arguments are those of `evaluate`. Raises UsageError, InfrastructureError.
    """
    from cuda_l1.api.judging import candidate_from
    from cuda_l1.api.pool import EvaluatorPool
    from cuda_l1.api.shapes import verify_sizes
    from cuda_l1.report.shapes import ShapeReport
    from cuda_l1.tasks.sizes import own_sizes, parse_shapes

    check_choice("precision", precision, get_args(Precision))
    device = resolve_device(device)
    wanted = task if isinstance(task, Task) else load_task(str(task), device=device)
    sizes = parse_shapes(shapes, wanted)
    candidate = candidate_from(wanted, _text(source))
    with EvaluatorPool(EvaluatorSettings(device=device, limits=limits or Limits())) as pool:
        found = [tried.result for tried in verify_sizes(wanted, [candidate], sizes, pool=pool, precision=precision)]
    found.sort(key=lambda result: sizes.index(result.size))
    return ShapeReport(own_sizes(wanted), tuple(found))


def _text(source: str | Path) -> str:
    """A candidate's text, given as such or as a path."""
    from cuda_l1.api.judging import read_candidate

    is_text = isinstance(source, str) and ("\n" in source or not source.endswith(".py"))
    return str(source) if is_text else read_candidate(Path(source))
