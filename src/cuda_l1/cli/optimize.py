"""`cuda-l1 optimize`: search, confirm, and write the winner as one file."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cuda_l1.cli import options as o
from cuda_l1.cli.boundary import NOTHING_ACCEPTED, command
from cuda_l1.cli.output import Output
from cuda_l1.cli.targets import check_file
from cuda_l1.errors import UsageError

if TYPE_CHECKING:
    from cuda_l1.config import SearchSettings
    from cuda_l1.report.ledger import ModelUse
    from cuda_l1.search import Result
    from cuda_l1.types import Record, Task

AS_CONSTRUCTED = (
    "as its constructor leaves it, the module draws random numbers or changes its own state in each call; where that "
    "is its train mode and you want inference, call self.eval() at the end of its __init__"
)


@command(kept="every verdict so far is kept in the archive, and the same command goes on from there")
def optimize(
    task: Annotated[
        str, typer.Argument(metavar="TASK", help="A KernelBench-format file, a built-in task, or file.py::ClassName.")
    ],
    device: o.Device = "auto",
    budget: Annotated[str, typer.Option(help="A time (60s, 5m, 1h) or a number of evaluations (20).")] = "60s",
    clock: Annotated[o.ClockChoice | None, typer.Option(help="The objective; default: device on a GPU.")] = None,
    proposer: Annotated[
        str,
        typer.Option(help="Who proposes, with commas between: techniques, techniques:NAME+NAME, llm, policy:FOLDER."),
    ] = "techniques",
    precision: o.PrecisionOption = o.PrecisionChoice.default,
    out: Annotated[
        Path | None, typer.Option(help="Where the file goes; default: ./TASK_optimized.py.", metavar="FILE")
    ] = None,
    inputs: o.Inputs = None,
    init: o.Init = None,
    weights: o.Weights = None,
    dtype: o.Dtype = None,
    limits: o.LimitsOption = None,
    final_budget: o.FinalBudget = "60s",
    model: o.ModelOption = None,
    base_url: o.BaseUrl = None,
    key_file: o.KeyFile = None,
    max_usd: o.MaxUsd = None,
    max_tokens: o.MaxTokens = None,
    prices: o.PricesOption = None,
    sampler: o.SamplerOption = None,
    prompt: o.PromptOption = None,
    generation: o.GenerationOption = None,
    repair: o.Repair = True,
    seed: o.Seed = 0,
    reviewer: o.ReviewerOption = None,
    reviewer_model: o.ReviewerModel = None,
    reviewer_key_file: o.ReviewerKeyFile = None,
    archive: o.ArchiveOption = None,
    json: o.Json = False,
) -> int:
    """Make TASK faster, prove it, and write the winner as one self-contained file.

    Example: cuda-l1 optimize diagonal_matmul --budget 60s

    Example: cuda-l1 optimize model.py::Block --inputs 'randn(8,128,4096):bf16' --init 4096

    Example: cuda-l1 optimize model.py --proposer techniques,llm --model qwen3 --base-url http://localhost:8000/v1

    Example: cuda-l1 optimize model.py --proposer techniques,policy:checkpoint --generation temperature=0.8
    """
    from cuda_l1.api.budget import parse_budget
    from cuda_l1.api.limits import parse_final_budget, parse_limits
    from cuda_l1.api.llm import LlmOptions, parse_llm, patience
    from cuda_l1.api.places import check_clock, resolve_device
    from cuda_l1.api.policy import PolicyOptions, parse_policy
    from cuda_l1.api.reviewing import parse_reviewer
    from cuda_l1.config import SearchSettings
    from cuda_l1.tasks import load_task

    seconds, evaluations = parse_budget(budget)
    final_s, allowed = parse_final_budget(final_budget), parse_limits(limits)
    asked = parse_reviewer(reviewer, reviewer_model, reviewer_key_file)
    proposers = tuple(name.strip() for name in proposer.split(",") if name.strip())
    options = LlmOptions(
        model or (), base_url, key_file, max_usd, max_tokens, prices, sampler, prompt, repair=repair, seed=seed
    )
    writing = PolicyOptions(generation, sampler, prompt, seed)
    llm, policy = parse_llm(options, proposers), parse_policy(writing, proposers)
    place = resolve_device(device)
    check_clock(clock, place)
    loaded = load_task(task, device=place, dtype=dtype, inputs=inputs, init=init, weights=weights)
    target = out or default_target(loaded)
    check_target(target)
    settings = SearchSettings(
        task_sha=loaded.sha,
        device=place,
        clock=clock.value if clock else None,
        precision=precision.value,
        budget_s=seconds,
        budget_evaluations=evaluations,
        proposers=proposers,
        final_budget_s=final_s,
        patience=patience(llm or policy),
        limits=allowed,
        reviewer=asked,
        llm=llm,
        policy=policy,
    )
    return _run(loaded, settings, archive, target, Output(as_json=json))


def _run(task: Task, settings: SearchSettings, archive: str | None, target: Path, output: Output) -> int:
    started = time.monotonic()
    from cuda_l1.api.llm import notes
    from cuda_l1.api.places import data_folder
    from cuda_l1.api.proposers import check_proposers
    from cuda_l1.api.searching import run_search
    from cuda_l1.archive import Archive
    from cuda_l1.cli.progress import SearchDisplay
    from cuda_l1.config import EvaluatorSettings
    from cuda_l1.evaluator import Evaluator
    from cuda_l1.report.ledger import uses_in

    check_proposers(settings)  # an unknown name, or an endpoint that is not there, is said before anything starts
    for line in notes(settings.llm) if settings.llm else ():
        output.say(line)
    with (
        Archive.open(archive) as opened,
        Evaluator(EvaluatorSettings(device=settings.device, limits=settings.limits)) as evaluator,
        SearchDisplay() as display,
    ):
        result = run_search(
            task,
            settings,
            archive=opened,
            evaluator=evaluator,
            runs=data_folder(archive) / "runs",
            on_event=display.on_event,
            tell=display.tell,
            started=started,
        )
        records = list(opened.records(task_sha=task.sha, run=result.run))
        uses = uses_in(opened, result.run, evaluator.environment.key, result.clock, task.sha)
    asked = settings.reviewer.url if settings.reviewer else None
    return _finish(task, result, target, output, records, uses, asked)


def _finish(
    task: Task,
    result: Result,
    target: Path,
    output: Output,
    records: list[Record],
    uses: list[ModelUse],
    reviewer: str | None,
) -> int:
    from cuda_l1.api.searching import guard_us
    from cuda_l1.cli.results import show_result
    from cuda_l1.export.header import add_header
    from cuda_l1.export.writing import write_atomically
    from cuda_l1.report.figures import figures

    for record in records:
        output.record("record", record, id=record.id)
    cost = None
    if result.final:
        cost = guard_us(task, result.final)
        write_atomically(target, add_header(result.final.candidate.source, result.final, task, guard_us=cost))
    path = str(target) if result.final else None
    if {"random", "stateful"} & {flag for record in records for flag in record.evaluation.task_flags}:
        output.say(AS_CONSTRUCTED)
    show_result(output, result, path, cost, uses)
    final = result.final.evaluation if result.final else None
    output.summary(
        task_id=task.id,
        result=result.outcome,
        outcome=final.outcome if final else None,
        precision_class=final.precision_class if final else None,
        technique=result.final.candidate.label if result.final else None,
        clock=result.clock,
        **figures(result.versus_eager, result.versus_best_baseline),
        best_baseline=result.held_against,
        task_flags=final.task_flags if final else (),
        screen_speedup=result.screen_speedup,
        shrinkage=result.shrinkage,
        not_confirmed=[found.model_dump(mode="json") for found in result.not_confirmed],
        guard_us=cost,
        path=path,
        record=result.final.id if result.final else None,
        reviewer=reviewer,
        run=result.run,
        stop_reason=result.stop_reason,
        evaluations=result.evaluations,
        tried=result.tried,
        duplicates=result.duplicates,
        failures=result.failures,
        models=[use.model_dump(mode="json") for use in uses],
        wall_s=round(result.wall_s, 2),
    )
    return 0 if result.final else NOTHING_ACCEPTED


def default_target(task: Task) -> Path:
    """`TASK_optimized.py` in the current folder; a name that Python can import."""
    name = re.sub(r"\W+", "_", Path(task.name).name)
    return Path(f"{name}_optimized.py")


def check_target(path: Path) -> None:
    """Raises as `check_file` does, and UsageError for a file of the person's own: only ours is overwritten."""
    from cuda_l1.export.header import split_header

    check_file("--out", path)
    if path.exists() and not split_header(path.read_text("utf-8", errors="replace"))[0]:
        raise UsageError(f"{path} exists and was not written by cuda-l1; give another name with --out")
