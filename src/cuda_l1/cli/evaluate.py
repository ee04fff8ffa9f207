"""`cuda-l1 evaluate`: verdicts for files that somebody else wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cuda_l1.cli import options as o
from cuda_l1.cli.boundary import NOTHING_ACCEPTED, command
from cuda_l1.cli.output import Output

if TYPE_CHECKING:
    from rich.text import Text

    from cuda_l1.api.judging import Comparison, Judged

TOLD = ("baseline-failed", "few-pairs")
"""Notes without which the figures would be misread."""


@command(kept="the verdicts that were finished are kept in the archive; the same command goes on from there")
def evaluate(
    reference: Annotated[str, typer.Argument(metavar="REF", help="The task: a file, a built-in name, file.py::Class.")],
    candidates: Annotated[list[Path], typer.Argument(metavar="CANDIDATE...", help="Files that define ModelNew.")],
    baselines: Annotated[bool, typer.Option("--baselines", help="Measure the task's baselines, too.")] = False,
    protocol: Annotated[o.ProtocolChoice, typer.Option(help="How much evidence.")] = o.ProtocolChoice.final,
    precision: o.PrecisionOption = o.PrecisionChoice.default,
    clock: Annotated[o.ClockChoice | None, typer.Option(help="Whose figures are shown.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure anew what the archive already knows.")] = False,
    device: o.Device = "auto",
    inputs: o.Inputs = None,
    init: o.Init = None,
    weights: o.Weights = None,
    dtype: o.Dtype = None,
    limits: o.LimitsOption = None,
    final_budget: o.FinalBudget = "60s",
    archive: o.ArchiveOption = None,
    json: o.Json = False,
) -> int:
    """Judge CANDIDATE files against the task REF. Exit code 1 when none is accepted.

    Example: cuda-l1 evaluate ref.py candidate.py --baselines
    """
    from cuda_l1 import scoring
    from cuda_l1.api.judging import best_baseline, candidate_from, judge, read_source
    from cuda_l1.api.limits import parse_final_budget, parse_limits
    from cuda_l1.api.places import UNCONFINED, check_clock, resolve_device
    from cuda_l1.archive import Archive
    from cuda_l1.config import FINAL, SCREEN, EvaluatorSettings
    from cuda_l1.evaluator import Evaluator
    from cuda_l1.tasks import load_task

    final = FINAL.model_copy(update={"budget_s": parse_final_budget(final_budget)})
    allowed = parse_limits(limits)
    place = resolve_device(device)
    check_clock(clock, place)
    task = load_task(reference, device=place, dtype=dtype, inputs=inputs, init=init, weights=weights)
    sources = [(path, read_source(path)) for path in candidates]
    output = Output(as_json=json)
    judged: list[tuple[Path, Judged]] = []
    settings = EvaluatorSettings(device=place, limits=allowed)
    with Archive.open(archive) as opened, Evaluator(settings) as evaluator:
        if not scoring.is_confined(evaluator.environment):
            Output.say(UNCONFINED)
        if baselines:
            Output.say("measuring the baselines")
        known = best_baseline(
            task,
            measure=baselines,
            precision=precision.value,
            archive=opened,
            evaluator=evaluator,
            run="evaluate",
            clock=clock.value if clock else None,
        )
        for path, source in sources:
            Output.say(f"judging {path}")
            verdict = judge(
                task,
                candidate_from(task, source),
                protocol=final if protocol == "final" else SCREEN,
                best=known.best,
                archive=opened,
                evaluator=evaluator,
                run="evaluate",
                fresh=fresh,
                clock=clock.value if clock else None,
            )
            judged.append((path, verdict))
            _record(output, path, verdict)
    good = [v for _, v in judged if scoring.counts(v.record.evaluation, precision.value)]
    _show(output, judged, good, known)
    return 0 if good else NOTHING_ACCEPTED


def _record(output: Output, path: Path, verdict: Judged) -> None:
    from cuda_l1.report.figures import figures

    evaluation = verdict.record.evaluation
    output.record(
        "evaluation",
        evaluation,
        path=str(path),
        precision_class=evaluation.precision_class,
        record=verdict.record.id,
        **figures(verdict.versus_eager, verdict.versus_best_baseline),
    )


def _show(output: Output, judged: list[tuple[Path, Judged]], good: list[Judged], known: Comparison) -> None:
    from cuda_l1 import scoring
    from cuda_l1.report.figures import figures
    from cuda_l1.report.terminal import table, with_interval

    rows = []
    for path, verdict in judged:
        evaluation = verdict.record.evaluation
        rows.append(
            (
                str(path),
                str(evaluation.outcome),
                evaluation.precision_class or "-",
                with_interval(verdict.versus_eager),
                with_interval(verdict.versus_best_baseline),
                "; ".join(_remarks(verdict, verdict in good)),
            )
        )
    output.show(
        table(("candidate", "outcome", "class", "vs eager", "vs best baseline", "remarks"), rows), _opponent(known)
    )
    best = max(good, key=lambda v: scoring.speedup(v.record.evaluation, v.clock) or 0.0, default=None)
    output.summary(
        task_id=judged[0][1].record.candidate.task_id,
        outcome=best.record.evaluation.outcome if best else judged[-1][1].record.evaluation.outcome,
        precision_class=best.record.evaluation.precision_class if best else None,
        evaluated=len(judged),
        accepted=len(good),
        best=best.record.candidate.id if best else None,
        best_baseline=known.best.candidate.label if known.best else None,
        best_of=known.best.best_of if known.best else (),
        baselines_left_out=known.left_out,
        baselines_missing=known.missing,
        **figures(best.versus_eager if best else None, best.versus_best_baseline if best else None),
    )


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


def _remarks(verdict: Judged, counts: bool) -> Iterator[str]:
    from cuda_l1 import scoring

    evaluation = verdict.record.evaluation
    if evaluation.detail:
        yield evaluation.detail
    for finding in evaluation.findings:
        if finding.severity != "note" or finding.check in TOLD:
            yield f"{finding.severity}: {finding.check} ({finding.evidence})"
    if evaluation.accepted and not scoring.is_confined(evaluation.environment):
        yield f"sandbox rung {evaluation.environment.rung}: never wins"
    elif evaluation.accepted and not counts and not evaluation.suspects(ignore=("precision", "unstable")):
        yield f"class {evaluation.precision_class} is less exact than asked for"
