"""KernelBench's metric fast_p, and what k samples a task are worth."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cuda_l1.report.aggregates import FAST_P, SAMPLES_K, fast_p, pass_at_k
from cuda_l1.report.cells import Cell, Row, Share, Table
from cuda_l1.report.entries import EAGER, TECHNIQUES, Entry, Method, Sampled
from cuda_l1.report.sections import Section, TaskView
from cuda_l1.report.tables.headline import known
from cuda_l1.report.versus import against, over, standings

BEST = "best baseline"
ENOUGH = 0.9
"""Of a method's tasks so many must have k samples: on those with fewer, it may have been given up."""


def fast(section: Section) -> Table:
    """Method x opponent: the share of tasks that are right and more than p times as fast."""
    rows = []
    for method in (*section.baselines, *section.systems):
        for opponent, speedups in _speedups(section, method).items():
            if speedups:
                shares = [fast_p(speedups, p) for p in FAST_P]
                rows.append(Row((method.name, opponent, *shares, Share(len(speedups), len(section.sound)))))
    return Table(
        name="fast_p",
        title="fast_p",
        columns=("method", "against", *(f"p = {p:g}" for p in FAST_P), "tasks"),
        rows=tuple(rows),
        notes=(
            "The share of tasks that are right and more than p times as fast (Ouyang et al. 2025, arXiv 2502.10517); a "
            "result that does not count is not right. tasks: those that it is a share of, of all sound ones.",
        ),
    )


def _speedups(section: Section, method: Method) -> dict[str, list[float | None]]:
    """Per opponent, None for what failed."""
    found = standings(section, method, section.sound)
    eager = [ratio.value if (ratio := against(section, one)) else None for one in found]
    if method.kind == "baseline":
        return {EAGER: eager}
    # What was given up counts as the reference: right, and no faster than the best baseline.
    best = [b.ratio.value if b else 1.0 if one.counts else None for one, b in known(section, found)]
    return {EAGER: eager, BEST: best}


@dataclass(frozen=True)
class Drawn:
    """A method's samples for a task: how many, and the verdicts of those that hold a candidate."""

    view: TaskView
    count: int
    entries: tuple[Entry, ...]
    """As often as they were drawn."""


def samples(section: Section, sampled: Sequence[Sampled] = ()) -> Table:
    """Method x k: pass@k and fast_p@k, the means of every k over the same tasks, which have that many samples each."""
    rows = []
    for method in (method for method in section.systems if method.name != TECHNIQUES):
        replies = _of_section(section, method, sampled)
        asked = [view for view in section.sound if _has_tried(view, method, replies)]
        drawn = [found for view in asked if (found := _drawn(section, view, method, replies))]
        if max((found.count for found in drawn), default=0) < 2:
            continue
        known = [k for k in SAMPLES_K if sum(found.count >= k for found in drawn) >= ENOUGH * len(asked)]
        enough = [found for found in drawn if found.count >= max(known, default=0)]
        for k in known:
            shares = [_at_k(section, enough, p, k) for p in FAST_P]
            rows.append(Row((method.name, k, *shares, Share(len(enough), len(section.sound)))))
    return Table(
        name="pass_at_k",
        title="pass@k and fast_p@k against eager",
        columns=("method", "k", "pass@k", *(f"fast_{p:g}@k" for p in FAST_P[1:]), "tasks"),
        rows=tuple(rows),
        notes=(
            "Unbiased estimate (Chen et al. 2021, arXiv 2107.03374), for samples drawn alike, which replies to a "
            "model that is shown its earlier ones are only in part. Of a language model: its replies; one without a "
            "candidate is a failure, repairs are left out. Of others: their different candidates. Our techniques are "
            "no samples.",
            "A k is shown where at least 9 in 10 of the tasks that a method tried have so many samples; of finals, "
            "where every sample has one. All rows of a method are over the same tasks, those with as many samples as "
            "its largest k. tasks: how many, of all sound ones.",
        ),
    )


def _of_section(section: Section, method: Method, sampled: Sequence[Sampled]) -> dict[str, list[Sampled]]:
    """By task, what a model answered for this place, in the runs that recorded anything here."""
    runs = {entry.run for view in section.views for entry in view.entries}
    found: dict[str, list[Sampled]] = {}
    for one in sampled:
        if one.model == method.name and one.run in runs and one.environment_key in ("", section.place.key):
            found.setdefault(one.task_sha, []).append(one)
    return found


def _has_tried(view: TaskView, method: Method, replies: Mapping[str, Sequence[Sampled]]) -> bool:
    return bool(view.of(method) or view.screens_of(method) or replies.get(view.task.sha))


def _drawn(section: Section, view: TaskView, method: Method, replies: Mapping[str, Sequence[Sampled]]) -> Drawn | None:
    """None where there is none, or where a search chose which samples to measure here."""
    entries = {entry.candidate_id: entry for entry in view.of(method)}
    chosen = {entry.candidate_id for entry in view.screens_of(method)} - entries.keys()
    own = replies.get(view.task.sha, ())
    if chosen or not (entries or (own and section.protocol != "final")):
        return None
    if not own:
        return Drawn(view, len(entries), tuple(entries.values()))
    judged = [one.candidate_id for one in own if one.candidate_id is None or one.candidate_id in entries]
    return Drawn(view, len(judged), tuple(entries[name] for name in judged if name is not None))


def _at_k(section: Section, drawn: Sequence[Drawn], p: float, k: int) -> Cell:
    chances = [
        pass_at_k(one.count, sum(_is_fast(section, one.view, entry, p) for entry in one.entries), k) for one in drawn
    ]
    return statistics.fmean(chances)


def _is_fast(section: Section, view: TaskView, entry: Entry, p: float) -> bool:
    if not entry.counts(section.precision):
        return False
    ratio = over(section, view, entry, EAGER)
    return p == 0.0 or (ratio is not None and ratio.value > p)
