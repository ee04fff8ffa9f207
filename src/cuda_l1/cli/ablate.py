"""`cuda-l1 ablate`: what each technique of a candidate contributes."""

from __future__ import annotations

import functools
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from cuda_l1.cli import options as o
from cuda_l1.cli.boundary import NOTHING_ACCEPTED, command
from cuda_l1.cli.output import Output
from cuda_l1.config import Precision
from cuda_l1.errors import UsageError

if TYPE_CHECKING:
    from cuda_l1.archive import Archive
    from cuda_l1.report.ablation import Effect, Interaction, Measured
    from cuda_l1.report.cells import Ratio
    from cuda_l1.search.ablation import Variant
    from cuda_l1.types import Clock, Evaluation, Record, Task

    Counted = dict[frozenset[str], Measured]


@command(kept="the verdicts that were finished are kept in the archive; the same command goes on from there")
def ablate(
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task: a file, a built-in name, file.py::Class.")],
    candidate: Annotated[
        str,
        typer.Argument(
            metavar="CANDIDATE",
            help="Techniques separated by +, or the beginning of a record's or candidate's id in the archive.",
        ),
    ],
    protocol: Annotated[o.OwnProtocolChoice, typer.Option(help="How much evidence.")] = o.OwnProtocolChoice.screen,
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
    """Build and measure every subset of a candidate's techniques. Exit code 1 when none of them is accepted.

    An effect within the spread of the measurements is not decided; --protocol final measures more pairs.

    Example: cuda-l1 ablate linear_recurrence kept_weights+fusion
    """
    from cuda_l1.api.limits import parse_final_budget, parse_limits
    from cuda_l1.api.places import check_clock, resolve_device
    from cuda_l1.archive import Archive
    from cuda_l1.config import FINAL, SCREEN, EvaluatorSettings
    from cuda_l1.evaluator import Evaluator
    from cuda_l1.proposers.techniques import compose
    from cuda_l1.search.ablation import ablate as take_apart
    from cuda_l1.search.verdicts import verdict
    from cuda_l1.tasks import load_task

    final = FINAL.model_copy(update={"budget_s": parse_final_budget(final_budget)})
    allowed, place = parse_limits(limits), resolve_device(device)
    check_clock(clock, place)
    objective: Clock | None = clock.value if clock else None
    loaded = load_task(task, device=place, dtype=dtype, inputs=inputs, init=init, weights=weights)
    techniques = _techniques(candidate, archive)
    with (
        Archive.open(archive) as opened,
        Evaluator(EvaluatorSettings(device=place, limits=allowed)) as evaluator,
    ):
        judge = functools.partial(
            verdict,
            loaded,
            protocol=final if protocol == "final" else SCREEN,
            archive=opened,
            evaluator=evaluator,
            run="ablate",
            fresh=fresh,
        )
        variants = take_apart(
            techniques,
            build=lambda subset: compose(loaded, subset, "cpu" if place == "cpu" else "cuda"),
            judge=judge,
            on_variant=functools.partial(_say, objective),
        )
        counted = _counted(variants, opened, precision.value, objective)
    return _show(Output(as_json=json), loaded, variants, counted, objective)


def _techniques(candidate: str, archive: str | None) -> list[str]:
    """The list that a person wrote, or that of a candidate in the archive."""
    from cuda_l1.proposers.techniques import REGISTRY, unknown_name

    names = [name.strip() for name in candidate.split("+") if name.strip()]
    if names and all(name in REGISTRY for name in names):
        twice = [name for name, number in Counter(names).items() if number > 1]
        if twice:
            raise UsageError(f"`{candidate}` names {' and '.join(twice)} twice; a candidate applies a technique once")
        return names
    found = _matching(candidate, archive) if names else []
    if not found:
        raise UsageError(
            f"`{candidate}` is neither techniques separated by + nor the beginning of an id in the archive: "
            f"{unknown_name(next((name for name in names if name not in REGISTRY), candidate))}"
        )
    own = [name for origin in found[-1].candidate.origins for name in origin.techniques if name in REGISTRY]
    if not own:
        raise UsageError(f"candidate {found[-1].candidate.id[:12]} was not built of techniques, so it has no subsets")
    return own


def _matching(candidate: str, archive: str | None) -> list[Record]:
    from cuda_l1.archive import Archive

    with Archive.look(archive) as opened:
        return opened.matching(candidate)


def _say(clock: Clock | None, variant: Variant) -> None:
    from cuda_l1 import scoring
    from cuda_l1.report.terminal import times

    name = " + ".join(variant.techniques)
    if variant.record is None:
        Output.say(f"{name}: {variant.why_not}")
    else:
        evaluation = variant.record.evaluation
        Output.say(f"{name}: {evaluation.outcome} {times(scoring.speedup(evaluation, clock))}")


def _counted(variants: list[Variant], archive: Archive, precision: Precision, clock: Clock | None) -> Counted:
    """Of each subset that counts, what all its verdicts in this place under this protocol say together."""
    from cuda_l1 import scoring
    from cuda_l1.report.ablation import measured

    counted = {}
    for variant in variants:
        record = variant.record
        if record is None or not scoring.counts(record.evaluation, precision):
            continue
        repeats = [
            other.evaluation
            for other in archive.records(task_sha=record.candidate.task_sha)
            if _is_repeat(other.evaluation, record.evaluation) and scoring.counts(other.evaluation, precision)
        ]
        timings = [timing for evaluation in repeats if (timing := evaluation.timing("eager", clock)) is not None]
        if timings:
            counted[frozenset(variant.techniques)] = measured(timings)
    return counted


def _is_repeat(one: Evaluation, other: Evaluation) -> bool:
    same = one.candidate_id == other.candidate_id and one.environment.key == other.environment.key
    return same and one.protocol == other.protocol


def _show(output: Output, task: Task, variants: list[Variant], counted: Counted, clock: Clock | None) -> int:
    from cuda_l1.report.ablation import effects, interactions

    techniques = variants[-1].techniques
    parts, pairs = effects(techniques, counted), interactions(techniques, counted)
    for variant in variants:
        _record(output, variant, counted.get(frozenset(variant.techniques)), clock)
    for effect in parts:
        output.record("technique", vars(effect))
    for pair in pairs:
        output.record("pair", vars(pair))
    _tables(output, variants, parts, pairs, counted, clock)
    if caveat := _caveat(parts, pairs, variants):
        output.show(caveat)
    flags = sorted({flag for v in variants if v.record for flag in v.record.evaluation.task_flags})
    if flags:
        output.show(f"the task is {', '.join(flags)}: no headline counts it")
    output.summary(
        task_id=task.id, techniques=list(techniques), subsets=len(variants), accepted=len(counted), task_flags=flags
    )
    return 0 if counted else NOTHING_ACCEPTED


def _caveat(parts: list[Effect], pairs: list[Interaction], variants: list[Variant]) -> str | None:
    """How to find out what could not be decided."""
    if "not decided" not in {*(part.verdict for part in parts), *(pair.verdict for pair in pairs)}:
        return None
    protocols = {variant.record.evaluation.protocol for variant in variants if variant.record}
    more = "--protocol final" if protocols == {"screen"} else "--protocol final --fresh with a longer --final-budget"
    return f"not decided: the measurements spread by more than that, or by more than 5 %; {more} measures more pairs"


def _record(output: Output, variant: Variant, counted: Measured | None, clock: Clock | None) -> None:
    from cuda_l1.report.figures import ratio_fields

    record = variant.record
    output.record(
        "variant",
        {"techniques": list(variant.techniques), "why_not": variant.why_not, "counts": counted is not None},
        record=record.id if record else None,
        outcome=record.evaluation.outcome if record else None,
        precision_class=record.evaluation.precision_class if record else None,
        half=counted.half if counted else None,
        pairs=counted.pairs if counted else None,
        **ratio_fields("speedup_eager", _speedup(variant, counted, clock)),
        **ratio_fields("speedup_best_baseline", None),
    )


def _tables(
    output: Output,
    variants: list[Variant],
    parts: list[Effect],
    pairs: list[Interaction],
    counted: Counted,
    clock: Clock | None,
) -> None:
    from cuda_l1.report.cells import text
    from cuda_l1.report.terminal import MISSING, table, times

    rows = []
    for variant in variants:
        known = counted.get(frozenset(variant.techniques))
        evaluation = variant.record.evaluation if variant.record else None
        held = evaluation is None or known is not None
        remark = variant.why_not or (evaluation.detail if evaluation else "") or ("" if held else "does not count")
        rows.append(
            (
                " + ".join(variant.techniques),
                str(evaluation.outcome) if evaluation else MISSING,
                (evaluation.precision_class if evaluation else None) or MISSING,
                text(_speedup(variant, known, clock)),
                _pairs(known),
                remark,
            )
        )
    output.show(table(("techniques", "outcome", "class", "vs eager", "pairs", "remarks"), rows))
    output.show(
        table(
            ("technique", "alone", "all / all others", "mean of adding it", "within", "best without it", "verdict"),
            [(e.technique, times(e.alone), times(e.in_all), times(e.mean), _percent(e.half), times(e.best_without),
              e.verdict) for e in parts],
        )
    )  # fmt: skip
    if pairs:
        output.show(
            table(
                ("pair", "", "together / product alone", "within", "verdict"),
                [(p.first, p.second, times(p.ratio), _percent(p.half), p.verdict) for p in pairs],
            )
        )


def _speedup(variant: Variant, counted: Measured | None, clock: Clock | None) -> Ratio | None:
    """Of all verdicts together where the subset counts, else of its own."""
    from cuda_l1.report.cells import Ratio
    from cuda_l1.report.figures import ratio_of

    if counted is None:
        timing = variant.record.evaluation.timing("eager", clock) if variant.record else None
        return ratio_of(timing) if timing else None
    return Ratio(counted.speedup, *(counted.bounds or ()))


def _pairs(known: Measured | None) -> str:
    if known is None:
        return "-"
    return str(known.pairs) if known.is_interval else f"1, samples within {_percent(known.half)}"


def _percent(half: float | None) -> str:
    """A half-width in log ratio for people."""
    if half is None:
        return "-"
    from cuda_l1.ratios import from_log

    percent = 100 * (from_log(half) - 1)
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.1f} %"
