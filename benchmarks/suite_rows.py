"""One search as one row of the suite's CSV."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cuda_l1.report.cells import times
from cuda_l1.report.figures import figures
from cuda_l1.search import Result
from cuda_l1.types import Clock, Environment, Evaluation, Record, TaskAudit
from provenance import PROVENANCE, columns_of

KEYS = 2
_EAGER = ("speedup_eager", "speedup_eager_low", "speedup_eager_high")
_BEST = ("speedup_best_baseline", "speedup_best_baseline_low", "speedup_best_baseline_high")
STAGES = ("build", "judge", "load", "check", "prepare", "samples", "time_rest")
NOT_MEASURED = "not measured"
PARTS = ("baselines", "screens", "finals")

COLUMNS = (
    *("task", "dtype", "outcome", "technique", "precision_class", "task_class", "clock"),
    *(*_EAGER, *_BEST, "best_baseline", "best_of"),
    *("candidate_us", "eager_us", "best_baseline_us", "pairs", "screen_speedup"),
    *("other_clock", *(f"other_{name}" for name in (*_EAGER, *_BEST))),
    *("evaluations", "duplicates", "budget", "precision", "wall_s", "stop_reason", "resumed"),
    *("findings", "baselines", "task_flags", "sound", "detail"),
    *(*(f"{name}_s" for name in (*PARTS, *STAGES)), "waiting_s", "search_s", "beforehand_s"),
    *("record", *PROVENANCE),
)


class Search(NamedTuple):
    """What a row is made of besides the result."""

    environment: Environment
    records: Sequence[Record]
    """Every record of the task made in this place, oldest first."""
    paid: Sequence[Record]
    """Those of them that this very call paid for."""
    asked_s: float
    """Seconds for which the search waited for the evaluator."""
    resumed: bool
    """Whether an earlier, interrupted call paid for a part of it."""
    detail: str
    """Why the last candidate did not hold up, where one did not."""


def result_columns(result: Result, search: Search) -> dict[str, object]:
    """All that a search found; of several candidates that did not hold up, the one first measured."""
    measured = _with_figures(result)
    final = measured.final.evaluation if measured.final else None
    eager, best = measured.versus_eager, measured.versus_best_baseline
    return {
        "outcome": result.outcome,
        "technique": measured.final.candidate.label if measured.final else None,
        "precision_class": final.precision_class if final else None,
        "clock": result.clock,
        **figures(eager, best),
        "best_baseline": result.best_baseline,
        "best_of": " ".join(best.best_of if best else (b.name for b in result.baselines if b.speedup is not None)),
        "candidate_us": eager.candidate_us if eager else None,
        "eager_us": eager.opponent_us if eager else None,
        "best_baseline_us": best.opponent_us if best else None,
        "pairs": len(eager.pairs) if eager else None,
        "screen_speedup": result.screen_speedup,
        **_other_clock(measured),
        "evaluations": result.evaluations,
        "duplicates": result.duplicates,
        "wall_s": result.wall_s,
        "stop_reason": result.stop_reason,
        "resumed": search.resumed,
        "findings": " ".join(f"{f.check}({f.severity})" for f in final.findings) if final else None,
        "baselines": "; ".join(_baselines(result)),
        "detail": search.detail,
        **_task_columns(result, search.records),
        **_time_columns(result, search),
        "record": measured.final.id if measured.final else None,
        **columns_of(search.environment),
    }


def _with_figures(result: Result) -> Result:
    """The result; where nothing held up, as if its first accepted final were the one to show."""
    shown = result.final or next((r for r in result.unconfirmed if r.evaluation.accepted), None)
    return result.model_copy(update={"final": shown})


def _other_clock(result: Result) -> dict[str, object]:
    other: Clock = "call" if result.clock == "device" else "device"
    if result.final is None or result.final.evaluation.timing("eager", other) is None:
        return {}
    there = result.model_copy(update={"clock": other})
    found = figures(there.versus_eager, there.versus_best_baseline)
    return {"other_clock": other, **{f"other_{name}": value for name, value in found.items()}}


def _baselines(result: Result) -> Iterable[str]:
    """Each baseline with its screen's speed-up against eager, or how it ended."""
    for baseline in result.baselines:
        figure = NOT_MEASURED if baseline.outcome is None else str(baseline.outcome)
        yield f"{baseline.name} {figure if baseline.speedup is None else times(baseline.speedup)}"


def _task_columns(result: Result, records: Sequence[Record]) -> dict[str, object]:
    """What the judge said of the task itself, from eager's own verdict."""
    eager_id = result.baselines[0].candidate_id if result.baselines else ""
    found = next((r.evaluation for r in reversed(records) if r.candidate.id == eager_id), None)
    if found is None or found.correctness is None:
        return {}
    task_class, flags = found.correctness.task_class, found.task_flags
    audit = TaskAudit(task_id=result.task_id, task_class=task_class, mode="eval", flags=flags)
    return {"task_class": task_class, "task_flags": " ".join(flags), "sound": audit.sound}


def _time_columns(result: Result, search: Search) -> dict[str, object]:
    """Where the seconds went: by kind of verdict, by stage of a verdict, and outside of verdicts."""
    verdicts = dict.fromkeys(PARTS, 0.0)
    for record in search.paid:
        verdicts[_part(record)] += record.evaluation.stage_s.get("total", 0.0)
    stages = [stage_seconds(record.evaluation) for record in search.paid]
    return {
        **{f"{part}_s": seconds for part, seconds in verdicts.items()},
        **{f"{name}_s": sum(stage[name] for stage in stages) for name in STAGES},
        "waiting_s": search.asked_s - sum(verdicts.values()),
        "search_s": result.wall_s - search.asked_s,
    }


def _part(record: Record) -> str:
    if record.evaluation.protocol == "final":
        return "finals"
    is_baseline = any(origin.proposer == "baselines" for origin in record.candidate.origins)
    return "baselines" if is_baseline else "screens"


def stage_seconds(evaluation: Evaluation) -> dict[str, float]:
    """Seconds per stage of one verdict, disjoint: `time_rest` is what timing took besides prepare and samples."""
    spent = {name: evaluation.stage_s.get(name, 0.0) for name in STAGES}
    spent["time_rest"] = evaluation.stage_s.get("time", 0.0) - spent["prepare"] - spent["samples"]
    return spent
