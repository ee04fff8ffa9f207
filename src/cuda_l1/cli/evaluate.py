"""`cuda-l1 evaluate`: verdicts for files that somebody else wrote."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cuda_l1.cli import options as o
from cuda_l1.cli.boundary import NOTHING_ACCEPTED, command
from cuda_l1.cli.output import Output

if TYPE_CHECKING:
    from rich.text import Text

    from cuda_l1.api.batch import Answer
    from cuda_l1.api.judging import Comparison, Judged
    from cuda_l1.api.pool import EvaluatorPool
    from cuda_l1.archive import Archive
    from cuda_l1.config import Precision
    from cuda_l1.types import Clock, Task

RUN = "evaluate"
"""What records of this command carry."""
TOLD = ("baseline-failed", "few-pairs", "review", "no-opinion")
"""Notes without which the figures would be misread."""


@command(kept="the verdicts that were finished are kept in the archive; the same command goes on from there")
def evaluate(
    reference: Annotated[str, typer.Argument(metavar="REF", help="The task: a file, a built-in name, file.py::Class.")],
    candidates: Annotated[list[Path], typer.Argument(metavar="CANDIDATE", help="Files that define ModelNew.")],
    baselines: Annotated[bool, typer.Option("--baselines", help="Measure the task's baselines, too.")] = False,
    protocol: Annotated[o.ProtocolChoice, typer.Option(help="How much evidence.")] = o.ProtocolChoice.final,
    precision: o.PrecisionOption = o.PrecisionChoice.default,
    shapes: o.Shapes = None,
    require_shapes: o.RequireShapes = False,
    clock: Annotated[o.ClockChoice | None, typer.Option(help="Whose figures are shown.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure anew what the archive already knows.")] = False,
    device: o.Device = "auto",
    inputs: o.Inputs = None,
    init: o.Init = None,
    weights: o.Weights = None,
    dtype: o.Dtype = None,
    limits: o.LimitsOption = None,
    final_budget: o.FinalBudget = "60s",
    reviewer: o.ReviewerOption = None,
    reviewer_model: o.ReviewerModel = None,
    reviewer_key_file: o.ReviewerKeyFile = None,
    archive: o.ArchiveOption = None,
    json: o.Json = False,
) -> int:
    """Judge CANDIDATE files against the task REF. Exit code 1 when none is accepted.

    Example: cuda-l1 evaluate ref.py candidate.py --baselines
    """
    from cuda_l1 import scoring
    from cuda_l1.api.batch import Asked, judge_many
    from cuda_l1.api.judging import best_baseline, candidate_from, read_candidate
    from cuda_l1.api.limits import parse_final_budget, parse_limits
    from cuda_l1.api.places import UNCONFINED, check_clock, resolve_device
    from cuda_l1.api.pool import EvaluatorPool
    from cuda_l1.api.reviewing import open_reviews, parse_reviewer
    from cuda_l1.archive import Archive
    from cuda_l1.cli.answers import Answers
    from cuda_l1.cli.compat import judge_as_published, refuse
    from cuda_l1.cli.progress import say_review
    from cuda_l1.cli.shapes import at_other_sizes, show_sizes
    from cuda_l1.config import COMPAT, EvaluatorSettings, protocol_named
    from cuda_l1.errors import UsageError
    from cuda_l1.tasks import load_task
    from cuda_l1.tasks.sizes import parse_shapes

    wanted = protocol_named(protocol.value, parse_final_budget(final_budget))
    if wanted.name in COMPAT:
        own = {"baselines": baselines, "shapes": shapes, "reviewer": reviewer, "clock": clock}
        refuse(wanted.name, {**own, "precision": precision != o.PrecisionChoice.default})
    allowed, asked = parse_limits(limits), parse_reviewer(reviewer, reviewer_model, reviewer_key_file)
    place = resolve_device(device)
    objective: Clock | None = clock.value if clock else None
    check_clock(clock, place)
    task = load_task(reference, device=place, dtype=dtype, inputs=inputs, init=init, weights=weights)
    if require_shapes and shapes is None:
        raise UsageError("--require-shapes: say which, e.g. --shapes auto")
    sizes = parse_shapes(shapes, task) if shapes is not None else []
    made = [candidate_from(task, read_candidate(path)) for path in candidates]
    output = Output(as_json=json)
    with (
        Archive.open(archive) as opened,
        EvaluatorPool(EvaluatorSettings(device=place, limits=allowed), on_quiet=Output.say) as pool,
    ):
        if wanted.name in COMPAT:
            paths = [str(path) for path in candidates]
            return judge_as_published(wanted, made, paths, task, archive=opened, pool=pool, fresh=fresh, output=output)
        if not scoring.is_confined(pool.first.environment):
            Output.say(UNCONFINED)
        if baselines:
            _measure_baselines(task, precision.value, opened, pool)
        known = best_baseline(
            task,
            measure=baselines,
            precision=precision.value,
            archive=opened,
            evaluator=pool.first,
            run=RUN,
            clock=objective,
        )
        names = {candidate.id: str(path) for candidate, path in zip(made, candidates, strict=True)}
        reviews = open_reviews(
            asked,
            task,
            archive=opened,
            evaluator=pool.first,
            on_event=functools.partial(say_review, names),
            clock=objective,
            precision=precision.value,
        )
        many = f"{len(made)} candidates, up to {min(pool.size, len(made))} at once"
        Output.say(f"judging {many if len(made) > 1 else candidates[0]}")
        answers = Answers([str(path) for path in candidates], functools.partial(_record, output), precision.value)
        for answer in judge_many(
            [Asked(task, candidate, known.best) for candidate in made],
            protocol=wanted,
            archive=opened,
            pool=pool,
            run=RUN,
            fresh=fresh,
            clock=objective,
            reviews=reviews,
        ):
            answers.take(answer)
        judged = answers.all()
        reports = at_other_sizes(task, judged, sizes, pool=pool, precision=precision.value) if sizes else {}
    counted = [
        (name, answer.judged)
        for name, answer in judged
        if scoring.counts(answer.judged.record.evaluation, precision.value)
    ]
    good = [verdict for name, verdict in counted if not require_shapes or reports[name].holds]
    show_sizes(output, reports)
    _show(output, judged, [verdict for _, verdict in counted], good, known, asked.url if asked else None)
    return 0 if good else NOTHING_ACCEPTED


def _measure_baselines(task: Task, precision: Precision, archive: Archive, pool: EvaluatorPool) -> None:
    """A screen of each into the archive, with a line for whoever waits."""
    from cuda_l1.api.batch import Asked, judge_many
    from cuda_l1.cli.answers import Answers
    from cuda_l1.config import SCREEN
    from cuda_l1.proposers.baselines import baselines

    Output.say("measuring the baselines")
    opponents = baselines(task, pool.first.environment.device, precision)
    told = Answers([baseline.label for baseline in opponents], lambda name, answer: None, precision)
    asked = [Asked(task, baseline) for baseline in opponents]
    for answer in judge_many(asked, protocol=SCREEN, archive=archive, pool=pool, run=RUN):
        told.take(answer)


def _record(output: Output, path: str, answer: Answer) -> None:
    from cuda_l1.report.figures import figures

    verdict = answer.judged
    evaluation = verdict.record.evaluation
    output.record(
        "evaluation",
        evaluation,
        path=path,
        verdict_from=answer.source,
        precision_class=evaluation.precision_class,
        record=verdict.record.id,
        **figures(verdict.versus_eager, verdict.versus_best_baseline),
    )


def _show(
    output: Output,
    judged: list[tuple[str, Answer]],
    counted: list[Judged],
    good: list[Judged],
    known: Comparison,
    reviewer: str | None,
) -> None:
    from cuda_l1 import scoring
    from cuda_l1.cli.answers import provenance
    from cuda_l1.report.figures import figures
    from cuda_l1.report.terminal import table, with_interval

    rows = []
    names = [path for path, _ in judged]
    for path, answer in judged:
        verdict = answer.judged
        evaluation = verdict.record.evaluation
        rows.append(
            (
                path,
                evaluation.told(counts=verdict in counted),
                evaluation.precision_class or "-",
                with_interval(verdict.versus_eager),
                with_interval(verdict.versus_best_baseline),
                "; ".join(
                    filter(None, (*_remarks(verdict, verdict in counted, verdict in good), provenance(answer, names)))
                ),
            )
        )
    output.show(
        table(("candidate", "outcome", "class", "vs eager", "vs best baseline", "remarks"), rows), _opponent(known)
    )
    best = max(good, key=lambda v: scoring.speedup(v.record.evaluation, v.clock) or 0.0, default=None)
    output.summary(
        task_id=judged[0][1].judged.record.candidate.task_id,
        outcome=(best or judged[-1][1].judged).record.evaluation.outcome,
        precision_class=best.record.evaluation.precision_class if best else None,
        evaluated=len(judged),
        accepted=len(good),
        best=best.record.candidate.id if best else None,
        best_baseline=_held_against(best, known),
        best_of=known.best.best_of if known.best else (),
        baselines_left_out=known.left_out,
        baselines_missing=known.missing,
        reviewer=reviewer,
        **figures(best.versus_eager if best else None, best.versus_best_baseline if best else None),
    )


def _held_against(best: Judged | None, known: Comparison) -> str | None:
    """By name what the figure is against; without a figure what was chosen."""
    timing = best.versus_best_baseline if best else None
    chosen = known.best.candidate.label if known.best else None
    return timing.opponent if timing else chosen


def _opponent(known: Comparison) -> Text:
    """Which baseline is the best one and of what, and why others are not among them."""
    from rich.text import Text

    if known.best:
        told = f"{known.best.candidate.label}, the best of {', '.join(known.best.best_of)}"
    elif known.missing:
        told = f"not known, no record of {', '.join(known.missing)}; --baselines measures them"
    else:
        told = "none may stand"
    left_out = f"; left out: {', '.join(known.left_out)}" if known.left_out else ""
    return Text(f"best baseline: {told}{left_out}")


def _remarks(verdict: Judged, counts: bool, is_good: bool) -> Iterator[str]:
    from cuda_l1 import exactness, scoring
    from cuda_l1.types import proves_little

    evaluation = verdict.record.evaluation
    if evaluation.detail:
        yield evaluation.detail
    for finding in evaluation.findings:
        if finding.severity != "note" or finding.check in TOLD:
            yield f"{finding.severity}: {finding.check} ({finding.evidence})"
    if evaluation.accepted and (little := proves_little(evaluation.task_flags)):
        yield f"no headline: {little}"
    if evaluation.accepted and not scoring.is_confined(evaluation.environment):
        yield f"sandbox rung {evaluation.environment.rung}: never wins"
    elif evaluation.correctness and evaluation.accepted and not counts and not evaluation.disqualifying:
        yield exactness.less_exact(evaluation.correctness)
    if counts and not is_good:
        yield "does not hold at all sizes"
