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
    from cuda_l1.api.judging import Judged


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
    archive: o.ArchiveOption = None,
    json: o.Json = False,
) -> int:
    """Judge CANDIDATE files against the task REF. Exit code 1 when none is accepted.

    Example: cuda-l1 evaluate ref.py candidate.py --baselines
    """
    from cuda_l1 import scoring
    from cuda_l1.api.judging import best_baseline, candidate_from, judge, read_source
    from cuda_l1.api.places import check_clock, resolve_device
    from cuda_l1.archive import Archive
    from cuda_l1.config import FINAL, SCREEN, EvaluatorSettings
    from cuda_l1.evaluator import Evaluator
    from cuda_l1.tasks import load_task

    place = resolve_device(device)
    check_clock(clock, place)
    task = load_task(reference, device=place, dtype=dtype, inputs=inputs, init=init, weights=weights)
    sources = [(path, read_source(path)) for path in candidates]
    output = Output(as_json=json)
    judged: list[tuple[Path, Judged]] = []
    with Archive.open(archive) as opened, Evaluator(EvaluatorSettings(device=place)) as evaluator:
        if baselines:
            Output.say("measuring the baselines")
        best = best_baseline(
            task, measure=baselines, precision=precision.value, archive=opened, evaluator=evaluator, run="evaluate"
        )
        for path, source in sources:
            Output.say(f"judging {path}")
            verdict = judge(
                task,
                candidate_from(task, source),
                protocol=FINAL if protocol == "final" else SCREEN,
                best=best,
                archive=opened,
                evaluator=evaluator,
                run="evaluate",
                fresh=fresh,
                clock=clock.value if clock else None,
            )
            judged.append((path, verdict))
            _record(output, path, verdict)
    good = [v for _, v in judged if scoring.counts(v.record.evaluation, precision.value)]
    _show(output, judged, good)
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


def _show(output: Output, judged: list[tuple[Path, Judged]], good: list[Judged]) -> None:
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
    output.show(table(("candidate", "outcome", "class", "vs eager", "vs best baseline", "remarks"), rows))
    best = max(good, key=lambda v: scoring.speedup(v.record.evaluation, v.clock) or 0.0, default=None)
    output.summary(
        task_id=judged[0][1].record.candidate.task_id,
        outcome=best.record.evaluation.outcome if best else judged[-1][1].record.evaluation.outcome,
        precision_class=best.record.evaluation.precision_class if best else None,
        evaluated=len(judged),
        accepted=len(good),
        best=best.record.candidate.id if best else None,
        best_baseline=best.best.candidate.label if best and best.best else None,
        **figures(best.versus_eager if best else None, best.versus_best_baseline if best else None),
    )


def _remarks(verdict: Judged, counts: bool) -> Iterator[str]:
    evaluation = verdict.record.evaluation
    if evaluation.detail:
        yield evaluation.detail
    for finding in evaluation.findings:
        if finding.severity != "note":
            yield f"{finding.severity}: {finding.check} ({finding.evidence})"
    if evaluation.accepted and not counts and not evaluation.suspects(ignore=("precision", "unstable")):
        yield f"class {evaluation.precision_class} is less exact than asked for"
