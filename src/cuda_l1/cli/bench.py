"""`cuda-l1 bench`: every baseline of every task of a suite, and what a search finds beyond them."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from cuda_l1.cli import options as o
from cuda_l1.cli.boundary import NOTHING_ACCEPTED, command
from cuda_l1.cli.output import Output, plain
from cuda_l1.cli.targets import check_file
from cuda_l1.errors import InfrastructureError, UsageError
from cuda_l1.texts import many

if TYPE_CHECKING:
    from cuda_l1.config import BenchSettings
    from cuda_l1.report.ledger import ModelUse
    from cuda_l1.search.bench import TaskRow
    from cuda_l1.types import Task

ALL = "all"
SUITE = (
    "builtin, kernelbench:PATH, hf:OWNER/NAME, release:FILE.jsonl, any folder or file; "
    "behind it #level1-3, #1/19 or #NAME for some of it."
)


@command(kept="every verdict so far is kept in the archive, and the same command goes on from there")
def bench(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help=SUITE)],
    device: o.Device = "auto",
    protocol: Annotated[
        o.OwnProtocolChoice, typer.Option(help="How much evidence: screen is quick, final has intervals.")
    ] = o.OwnProtocolChoice.screen,
    baselines: Annotated[
        str, typer.Option(metavar="NAMES", help="Which, separated by commas; bf16 is one where asked for.")
    ] = ALL,
    precision: o.PrecisionOption = o.PrecisionChoice.default,
    clock: Annotated[o.ClockChoice | None, typer.Option(help="Whose figures are shown.")] = None,
    shard: Annotated[str, typer.Option(metavar="I/N", help="Only every N-th task, beginning with the I-th.")] = "1/1",
    resume: Annotated[
        str | None, typer.Option(metavar="RUN", help="Go on with this run, in the same settings.")
    ] = None,
    max_gib: Annotated[
        float | None,
        typer.Option(metavar="X", min=0.001, max=1e6, help="Scale down, or skip, tasks of which a call takes more."),
    ] = None,
    optimize: Annotated[
        bool, typer.Option("--optimize", help="Search for something faster on each task, too.")
    ] = False,
    budget: Annotated[
        str | None, typer.Option(help="Of each search: a time (5m) or a number of evaluations; default: 60s.")
    ] = None,
    proposer: Annotated[str, typer.Option(help="Who proposes in a search, separated by commas.")] = "techniques",
    bundle: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the run's records there, for `archive merge` elsewhere.")
    ] = None,
    dtype: o.Dtype = None,
    limits: o.LimitsOption = None,
    at_once: o.AtOnce = None,
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
    archive: o.ArchiveOption = None,
    json: o.Json = False,
) -> int:
    """A verdict for each baseline of each task of SUITE. Exit code 1 when there is none at all.

    Example: cuda-l1 bench kernelbench:KernelBench#level1 --device cuda

    Example: cuda-l1 bench builtin#*_matmul --optimize --budget 60s --bundle mine.sqlite
    """
    from cuda_l1.api.bench_extras import check_bundle
    from cuda_l1.api.budget import parse_budget
    from cuda_l1.api.limits import parse_final_budget, parse_limits
    from cuda_l1.api.llm import LlmOptions, notes, parse_llm
    from cuda_l1.api.places import check_clock, resolve_device
    from cuda_l1.api.policy import PolicyOptions, parse_policy
    from cuda_l1.config import BenchSettings, SearchSettings
    from cuda_l1.tasks import load_tasks, suite_problems
    from cuda_l1.types import digest

    seconds, evaluations = parse_budget("60s" if budget is None else budget)
    proposers = tuple(name.strip() for name in proposer.split(",") if name.strip())
    options = LlmOptions(
        model or (), base_url, key_file, max_usd, max_tokens, prices, sampler, prompt, repair=repair, seed=seed
    )
    writing = PolicyOptions(generation, sampler, prompt, seed)
    if not optimize and proposer != "techniques":
        raise UsageError(f"--proposer {proposer}: only a search asks proposers; add --optimize")
    if not optimize and budget is not None:
        raise UsageError("--budget: only a search has one; add --optimize")
    llm, policy = parse_llm(options, proposers), parse_policy(writing, proposers)
    place = resolve_device(device)
    check_clock(clock, place)
    if bundle is not None:
        check_file("--bundle", bundle, is_archive=True)
        check_bundle(bundle, archive)
    tasks = load_tasks(suite, device=place, dtype=dtype)
    mine = shard_of(tasks, shard)
    for problem in suite_problems(suite):
        Output.say(f"{suite}: {problem}")
    settings = BenchSettings(
        tasks=digest(*(task.sha for task in tasks)),
        device="cuda" if place.startswith("cuda") else "cpu",
        protocol=protocol.value,
        baselines=chosen(baselines, place, precision.value),
        precision=precision.value,
        clock=clock.value if clock else None,
        max_gib=max_gib,
        optimize=optimize,
        budget_s=seconds if optimize else None,
        budget_evaluations=evaluations if optimize else None,
        proposers=proposers,
        final_budget_s=parse_final_budget(final_budget),
        limits=parse_limits(limits),
        llm=llm,
        policy=policy,
    )
    if optimize:
        from cuda_l1.api.proposers import check_proposers

        check_proposers(SearchSettings(task_sha="", device=place, proposers=proposers, llm=llm, policy=policy))
        for line in notes(llm) if llm else ():
            Output.say(line)
    return _run(mine, settings, place, at_once, resume, archive, bundle, Output(as_json=json))


def _run(
    tasks: list[Task],
    settings: BenchSettings,
    place: str,
    at_once: int | None,
    resume: str | None,
    archive: str | None,
    bundle: Path | None,
    output: Output,
) -> int:
    from cuda_l1 import scoring
    from cuda_l1.api.bench_extras import search_task, write_bundle
    from cuda_l1.api.bench_run import BenchRun, resumed
    from cuda_l1.api.benching import Bench
    from cuda_l1.api.places import UNCONFINED, data_folder
    from cuda_l1.api.pool import EvaluatorPool
    from cuda_l1.archive import Archive
    from cuda_l1.archive.database import file_name
    from cuda_l1.cli.bench_table import Telling, show_rows
    from cuda_l1.config import EvaluatorSettings

    runs = data_folder(archive) / "runs"
    rows: list[tuple[Task, TaskRow]] = []
    uses: list[tuple[str, ModelUse]] = []
    if resume is not None:
        resumed(runs, settings, resume)  # before anything is made
    with (
        Archive.open(archive) as opened,
        EvaluatorPool(
            EvaluatorSettings(device=place, limits=settings.limits), size=at_once, on_quiet=Output.say
        ) as pool,
    ):
        run = BenchRun.open(runs, settings, resume, pool.first.environment.key, file_name(archive))
        telling = Telling(run.name, len(tasks), settings.precision, settings.clock)
        if not scoring.is_confined(pool.first.environment):
            if settings.optimize:
                raise InfrastructureError(UNCONFINED)
            Output.say(UNCONFINED)
        search = functools.partial(
            search_task,
            device=place,
            archive=opened,
            evaluator=pool.first,
            runs=runs,
            run=run,
            on_event=telling.on_event,
        )
        for task, row in Bench(
            tasks, settings, archive=opened, pool=pool, run=run, on_verdict=telling.on_verdict
        ).rows():
            paid: tuple[ModelUse, ...] = ()
            if settings.optimize and row.skipped is None:
                telling.on_search(task)
                ours, paid = search(task, settings)
                row = row.model_copy(update={"ours": ours})
            rows.append((task, row))
            uses += [(row.task, use) for use in paid]
            telling.on_row(row)
            output.record("task", row, **({"models": [plain(use) for use in paid]} if settings.llm else {}))
        written = write_bundle(bundle, rows, opened, run) if bundle else None
    named = str(bundle) if bundle else None
    show_rows(output, [row for _, row in rows], settings, run.name, bundle=named, new=written, uses=uses)
    return 0 if any(row.baselines and row.baselines[0].speedup for _, row in rows) else NOTHING_ACCEPTED


def chosen(text: str, device: str, precision: str) -> tuple[str, ...]:
    """`--baselines` as names, eager first; `all` is every one, bf16 only under `--precision relaxed`.

    Raises UsageError that names the known ones.
    """
    from cuda_l1.proposers.baselines import names

    known = names(device)
    wanted = {name.strip() for name in text.split(",") if name.strip()}
    if not wanted:
        raise UsageError(f"--baselines: names none; give all, or some of {', '.join(known)}")
    if ALL in wanted:
        wanted |= {name for name in known if name != "bf16" or precision == "relaxed"}
        wanted.remove(ALL)
    unknown = sorted(wanted - set(known))
    if unknown:
        raise UsageError(f"--baselines {', '.join(unknown)}: not known on {device}; known are {', '.join(known)}")
    return tuple(name for name in known if name == "eager" or name in wanted)


Each = TypeVar("Each")


def shard_of(tasks: list[Each], text: str) -> list[Each]:
    """Every N-th task, beginning with the I-th. Raises UsageError for anything but I/N, and where nothing is left."""
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise UsageError(f"--shard {text}: give I/N with I from 1 to N, e.g. 1/4")
    mine = tasks[int(found[1]) - 1 :: int(found[2])]
    if not mine:
        raise UsageError(f"--shard {text}: the suite has only {many(len(tasks), 'task')}, none is left for this shard")
    return mine
