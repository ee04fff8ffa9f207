"""`cuda-l1 collect`: a data set of right variants to learn from."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cuda_l1.cli import options as o
from cuda_l1.cli.boundary import NOTHING_ACCEPTED, command
from cuda_l1.cli.output import Output
from cuda_l1.cli.targets import check_folder
from cuda_l1.errors import InfrastructureError, UsageError
from cuda_l1.texts import many

if TYPE_CHECKING:
    from cuda_l1.api.collecting import Choice, Outcome, Source
    from cuda_l1.config import CollectSettings
    from cuda_l1.export.dataset import Example
    from cuda_l1.report.ledger import ModelUse
    from cuda_l1.types import Record

SUITES = (
    "Any folder or file of tasks, a suite as `bench` takes it, or a public set on this disk: kernelbook:PATH, "
    "cuda-agent-ops:PATH, drkernel:PATH; #NAME behind it for some of it."
)
SHOWN = 5


@command(kept="every verdict so far is kept in the archive, and the same command goes on from there")
def collect(
    suites: Annotated[list[str], typer.Argument(metavar="SUITE", help=SUITES)],
    out: Annotated[Path, typer.Option(help="The folder of the data set.", metavar="FOLDER")],
    proposer: Annotated[
        str, typer.Option(help="Who proposes, separated by commas: techniques, techniques:NAME+NAME, llm.")
    ] = "techniques",
    attempts: Annotated[
        int, typer.Option(min=1, max=1 << 20, help="Of each model or other proposer on each task.")
    ] = 20,
    keep: Annotated[int, typer.Option(min=1, max=1 << 20, help="Right variants of each on each task.")] = 2,
    against: Annotated[
        list[str] | None,
        typer.Option(metavar="SUITE", help="Leave out tasks of this evaluation suite, too; may be given again."),
    ] = None,
    allow_overlap: Annotated[
        bool, typer.Option("--allow-overlap", help="Keep tasks of evaluation suites; the card and each row say so.")
    ] = False,
    precision: o.PrecisionOption = o.PrecisionChoice.default,
    limits: o.LimitsOption = None,
    model: o.ModelOption = None,
    base_url: o.BaseUrl = None,
    key_file: o.KeyFile = None,
    max_usd: o.MaxUsd = None,
    max_tokens: o.MaxTokens = None,
    prices: o.PricesOption = None,
    sampler: o.SamplerOption = "none",
    prompt: o.PromptOption = "one-shot",
    repair: o.Repair = True,
    seed: o.Seed = 0,
    device: o.Device = "auto",
    archive: o.ArchiveOption = None,
    json: o.Json = False,
) -> int:
    """Collect right variants of tasks as a data set to train on. Exit code 1 when there is none.

    Example: cuda-l1 collect my_tasks/ --out variants --attempts 20 --keep 2

    Example: cuda-l1 collect kernelbook:KernelBook/ --out variants --device cuda

    Example: cuda-l1 collect my_tasks/ --out variants --proposer techniques,llm --model qwen3 --max-usd 20
    """
    from cuda_l1.api.collecting import choose, read_source
    from cuda_l1.api.collecting_writers import search_settings
    from cuda_l1.api.limits import parse_limits
    from cuda_l1.api.llm import LlmOptions, notes, parse_llm
    from cuda_l1.api.places import resolve_device
    from cuda_l1.api.proposers import check_proposers
    from cuda_l1.cli.results import ledger
    from cuda_l1.config import CollectSettings
    from cuda_l1.export.dataset import CardFacts, write_dataset
    from cuda_l1.export.dataset import check_folder as check_target
    from cuda_l1.tasks.evaluation_suites import evaluation_tasks
    from cuda_l1.types import digest

    output = Output(as_json=json)
    place = resolve_device(device)
    check_target(out)
    check_folder("--out", out)
    names = tuple(name.strip() for name in proposer.split(",") if name.strip())
    options = LlmOptions(
        model or (), base_url, key_file, max_usd, max_tokens, prices, sampler, prompt, repair=repair, seed=seed
    )
    llm = parse_llm(options, names)
    for line in notes(llm) if llm else ():
        Output.say(line)
    sources = [read_source(spec, device=place) for spec in suites]
    for source in sources:
        _tell_source(source)
    known, compared = evaluation_tasks(against or (), place)
    chosen, left_out = choose(sources, known, allow_overlap=allow_overlap)
    for line in left_out.lines:
        Output.say(f"left out: {line}")
    if not chosen:
        raise UsageError(f"no task is left: {left_out.reason}; name others, or give --allow-overlap")
    settings = CollectSettings(
        tasks=digest(*(choice.task.sha for choice in chosen)),
        device=place,
        proposers=names,
        attempts=attempts,
        keep=keep,
        precision=precision.value,
        limits=parse_limits(limits),
        llm=llm,
    )
    check_proposers(search_settings(settings))
    examples, skipped, uses = _collected(chosen, settings, archive, output)
    facts = CardFacts(
        name=out.name,
        sources=[source.name for source in sources],
        attempts=attempts,
        keep=keep,
        tasks=sum(len(source.tasks) for source in sources),
        excluded=left_out.lines,
        skipped=skipped,
        unread=sum(len(source.problems) for source in sources),
        compared=compared,
    )
    sizes = write_dataset(out, examples, facts)
    output.show(*ledger(uses))
    output.show(f"written: {out} ({', '.join(f'{split} {size}' for split, size in sizes.items()) or 'no rows'})")
    output.summary(
        path=str(out),
        rows=len(examples),
        splits=sizes,
        tasks=len(chosen),
        excluded=len(left_out.lines),
        skipped=len(skipped),
        models=[use.model_dump(mode="json") for use in uses],
    )
    return 0 if examples else NOTHING_ACCEPTED


def _collected(
    chosen: list[Choice], settings: CollectSettings, archive: str | None, output: Output
) -> tuple[list[Example], list[str], list[ModelUse]]:
    """(the rows, tasks that could not be judged, a line each, what the models cost)."""
    from cuda_l1 import evaluator as evaluators
    from cuda_l1 import scoring
    from cuda_l1.api.collecting import Collection, examples_of
    from cuda_l1.api.collecting_writers import Writers
    from cuda_l1.api.places import UNCONFINED, data_folder
    from cuda_l1.api.proposers import Sources
    from cuda_l1.archive import Archive, RunDirectory
    from cuda_l1.config import EvaluatorSettings

    examples: list[Example] = []
    skipped: list[str] = []
    with (
        Archive.open(archive) as opened,
        evaluators.Evaluator(EvaluatorSettings(device=settings.device, limits=settings.limits)) as evaluator,
    ):
        if not scoring.is_confined(evaluator.environment):
            raise InfrastructureError(UNCONFINED)
        run = RunDirectory.create(data_folder(archive) / "runs", settings)
        telling = Telling(run.name, len(chosen))
        collection = Collection(settings, archive=opened, evaluator=evaluator, run=run)
        writers = Writers(settings, Sources(opened, run.name, evaluator.environment), collection.is_done)
        for choice, outcome in collection.chosen(chosen, writers.of, telling.on_record):
            telling.on_outcome(outcome)
            if outcome.skipped:
                skipped.append(f"{choice.task.suite}/{choice.task.name}: {outcome.skipped}")
            for attempts in outcome.attempts:
                output.record("attempts", {"task_id": choice.task.id, "by": attempts.by, "tried": attempts.tried},
                                  kept=[record.id for record in attempts.kept])  # fmt: skip
            examples += examples_of(choice, outcome)
        uses = collection.model_uses()
    return examples, skipped, uses


class Telling:
    """Progress on stderr: a line for each verdict that was paid for, and for each task."""

    def __init__(self, run: str, tasks: int) -> None:
        self._tasks, self._done = tasks, 0
        self._began = time.monotonic()
        Output.say(f"run {run}: {many(tasks, 'task')}")

    def on_record(self, record: Record, is_known: bool) -> None:
        """One more verdict."""
        from cuda_l1 import scoring

        if not is_known:
            name = record.candidate.task_id.partition("@")[0]
            why = record.evaluation.detail or scoring.why_not(record.evaluation)
            outcome = record.evaluation.told(counts=scoring.counts(record.evaluation))
            Output.say(f"  {name} {record.candidate.label}: {outcome}{f': {why}'[:120] if why else ''}")

    def on_outcome(self, outcome: Outcome) -> None:
        """A task is done."""
        self._done += 1
        tried = ", ".join(f"{one.by} {len(one.kept)} of {one.tried}" for one in outcome.attempts)
        known = ", known from before" if outcome.is_known else ""
        if outcome.unfinished:
            known = f"; not asked to the end: {outcome.unfinished}; the same command tries again"
        said = f"skipped: {outcome.skipped}" if outcome.skipped else f"kept {tried or 'nothing'}"
        took = time.monotonic() - self._began
        Output.say(f"[{self._done}/{self._tasks}, {took:.0f} s] {outcome.task.name}: {said}{known}")


def _tell_source(source: Source) -> None:
    from cuda_l1.tasks import suite_problems

    Output.say(f"{source.spec}: {many(len(source.tasks), 'task')}; licence: {source.licence}")
    problems = [*source.problems, *suite_problems(source.spec)]
    for problem in problems[:SHOWN]:
        Output.say(f"{source.spec}: {problem}")
    if len(problems) > SHOWN:
        Output.say(f"{source.spec}: {many(len(problems) - SHOWN, 'more line')} like these")
