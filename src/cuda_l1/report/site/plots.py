"""Plots of figures; each is empty where there is nothing to show."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from cuda_l1.ratios import within_floats
from cuda_l1.report.aggregates import FAST_P, fast_p, quartiles
from cuda_l1.report.cells import Ratio, text, times
from cuda_l1.report.site.axes import (
    BOTTOM,
    COLOURS,
    LEFT,
    TOP,
    Frame,
    box,
    decades,
    figure,
    key,
    label,
    line,
    linked,
    log_ticks,
    told,
)
from cuda_l1.texts import many

BINS = 40
ROW = 40
"""Pixels of a box with its name."""
MOST_P = 3.0
"""Up to which fast_p is drawn."""


class Named(NamedTuple):
    """A task's figure."""

    name: str
    """What is told of it."""
    ratio: Ratio
    link: str
    """To its page."""


class Place(NamedTuple):
    """A task in the roofline's plot."""

    name: str
    intensity: float
    gflops_per_s: float
    link: str


NOTHING = Markup("")


def sorted_speedups(figures: Sequence[Named], title: str) -> Markup:
    """Every task's speed-up with its interval, from the least to the greatest; each leads to its task."""
    if not figures:
        return NOTHING
    ordered = sorted(figures, key=lambda shown: shown.ratio.value)
    ratios = [shown.ratio for shown in ordered]
    bounds = [1.0, *(bound for f in ratios for bound in (f.value, f.low or f.value, f.high or f.value))]
    frame, marks = Frame((0, len(ordered) + 1), (min(bounds), max(bounds)), log_y=True), []
    for place, (name, ratio, link) in enumerate(ordered, start=1):
        x, parts = frame.x(place), []
        if ratio.low is not None and ratio.high is not None:
            parts.append(line(x, frame.y(ratio.low), x, frame.y(ratio.high), "interval"))
        parts.append(Markup('<circle cx="{}" cy="{}" r="3" class="mark"/>').format(x, frame.y(ratio.value)))
        marks.append(linked(link, f"{name}: {text(ratio)}", parts))
    ticks = log_ticks(min(bounds), max(bounds))
    axes = frame.axes("tasks, sorted", "speed-up", sorted({1, len(ordered)}), ticks, "x")
    return figure(title, axes, [*marks, frame.one()])


def fast_p_curves(speedups: Mapping[str, Sequence[float | None]], title: str) -> Markup:
    """The share of tasks that are right and more than p times as fast, over p from 0 to 3; None: not right.

    A step down at each task's speed-up, since that is where the share changes.
    """
    shown = {name: values for name, values in speedups.items() if values}
    if not shown:
        return NOTHING
    frame, marks, keys = Frame((0.0, MOST_P), (0.0, 1.0)), [], []
    for number, (name, values) in enumerate(shown.items()):
        points = [(0.0, fast_p(values, 0.0) or 0.0)]
        for p in sorted({value for value in values if value is not None and 0 < value < MOST_P}):
            points += [(p, points[-1][1]), (p, fast_p(values, p) or 0.0)]
        points.append((MOST_P, points[-1][1]))
        path = " ".join(f"{frame.x(p)},{frame.y(share)}" for p, share in points)
        is_dashed = number >= COLOURS
        kind = f"c{number % COLOURS}{' dashed' if is_dashed else ''}"
        curve = Markup('<polyline class="curve {}" points="{}"/>').format(kind, path)
        shares = ", ".join(f"{fast_p(values, p) or 0.0:.3f} at {p:g}" for p in FAST_P)
        marks += [told(f"{name}: {shares}; {many(len(values), 'task')}", [curve])]
        keys.append(key(number, f"{name} (dashed)" if is_dashed else name))
    return figure(title, frame.axes("p", "share of tasks", (0, 1, 1.5, 2, 3), (0, 0.5, 1), ""), marks, keys=keys)


LINE = 12
"""Pixels from one line of labels to the next."""


def under_roofs(
    points: Mapping[str, Sequence[Place]], gb_per_s: float, gflops_per_s: Mapping[str, float], title: str
) -> Markup:
    """Tasks by operations for each byte, and operations in a second, below what memory and arithmetic allow for."""
    places = [place for found in points.values() for place in found if place.intensity > 0 and place.gflops_per_s > 0]
    if not places:
        return NOTHING
    x_low, x_high = (end([place.intensity for place in places]) for end in (min, max))
    edges = [most / gb_per_s for most in gflops_per_s.values()]
    x_low, x_high = min(x_low, min(edges) / 2), max(x_high, max(edges) * 2)  # the roof's edges are in sight
    y_low = min(x_low * gb_per_s, *(place.gflops_per_s for place in places))
    y_high = max(*gflops_per_s.values(), *(place.gflops_per_s for place in places))
    frame, marks = Frame((x_low, x_high), (y_low, y_high), log_x=True, log_y=True), []
    for most, edge in zip(gflops_per_s.values(), edges, strict=True):
        bends = [(x_low, x_low * gb_per_s), (edge, most), (x_high, most)]
        path = " ".join(f"{frame.x(x)},{frame.y(y)}" for x, y in bends)
        marks.append(Markup('<polyline class="roof" points="{}"/>').format(path))
    marks += [label(frame.x(x_high) - 4, y, names, "end") for names, y in _roof_labels(frame, gflops_per_s)]
    for number, found in enumerate(points.values()):
        marks += [_place(frame, place, number) for place in found if place in places]
    keys = [key(number, name) for number, name in enumerate(points)]
    axes = frame.axes("operations for each byte", "Gflop/s", decades(x_low, x_high), decades(y_low, y_high), "")
    return figure(title, axes, marks, keys=keys)


def _roof_labels(frame: Frame, gflops_per_s: Mapping[str, float]) -> list[tuple[str, float]]:
    """(names, pixels from the top): below a roof, which is seldom reached, and in one where they would overlap."""
    found: list[tuple[str, float]] = []
    for name, most in sorted(gflops_per_s.items(), key=lambda peak: -peak[1]):
        y = frame.y(most) + LINE
        if found and y - found[-1][1] < LINE:
            found[-1] = f"{found[-1][0]}, {name}", y
        else:
            found.append((name, y))
    return found


def _place(frame: Frame, place: Place, number: int) -> Markup:
    shape = Markup('<circle cx="{}" cy="{}" r="3.5" class="dot c{}"/>')
    dot = shape.format(frame.x(place.intensity), frame.y(place.gflops_per_s), number % COLOURS)
    return linked(place.link, place.name, [dot])


def boxes(groups: Mapping[str, Sequence[float]], title: str) -> Markup:
    """Quartiles, median and ends of positive speed-ups, one box a group, its name above it however many there are."""
    shown = {name: values for name, values in groups.items() if values}
    if not shown:
        return NOTHING
    everything = [1.0, *(value for values in shown.values() for value in values)]
    low, high = min(everything), max(everything)
    frame, bottom = Frame((low, high), (0.0, 1.0), log_x=True), TOP + ROW * len(shown)
    marks = []
    for tick in log_ticks(low, high):
        x = frame.x(tick)
        marks += [
            line(x, TOP, x, bottom, "one" if tick == 1 else "grid"),
            label(x, bottom + 16, f"{tick:g}x", "middle"),
        ]
    for row, (name, values) in enumerate(shown.items()):
        shape = _box(frame, TOP + ROW * row + 24, values)
        marks += [label(LEFT, TOP + ROW * row + 11, name, "start"), told(f"{name}: {_spread(values)}", shape)]
    return figure(title, NOTHING, marks, bottom + BOTTOM)


def _box(frame: Frame, y: float, values: Sequence[float]) -> list[Markup]:
    marks = [line(frame.x(min(values)), y, frame.x(max(values)), y, "interval")]
    if spread := quartiles(values):
        left, right = frame.x(spread.lower), frame.x(spread.upper)
        marks.append(box(left, y - 8, max(1.0, round(right - left, 1)), 16, "box"))
    middle = frame.x(statistics.median(values))
    return [*marks, line(middle, y - 8, middle, y + 8, "median")]


def _spread(values: Sequence[float]) -> str:
    """What a box shows, in words."""
    ends = f"{times(min(values))} to {times(max(values))}, {many(len(values), 'task')}"
    found = quartiles(values)
    inner = f", quartiles {times(found.lower)} and {times(found.upper)}" if found else ""
    return f"median {times(statistics.median(values))}{inner}, {ends}"


def bars(counts: Mapping[str, int], title: str) -> Markup:
    """A bar for each name, the most frequent first."""
    if not counts:
        return NOTHING
    most, marks = max(counts.values()), []
    for row, (name, count) in enumerate(sorted(counts.items(), key=lambda item: (-item[1], item[0]))):
        y, width = 18 + 22 * row, round(count / most * 340)
        shown = name if len(name) <= 34 else f"{name[:33]}…"
        marks += [label(210, y + 4, shown, "end"), box(218, y - 8, width, 14, "bar")]
        marks.append(label(224 + width, y + 4, str(count), "start"))
    return figure(title, NOTHING, marks, 22 * len(counts) + 10)


def distributions(samples: Mapping[str, Sequence[float]], title: str) -> Markup:
    """Timing samples in microseconds as histograms over one another; the slowest hundredth is left off."""
    shown = {name: sorted(map(within_floats, values)) for name, values in samples.items() if values}
    if not shown:
        return NOTHING
    low = min(values[0] for values in shown.values())
    high = max(values[int(0.99 * (len(values) - 1))] for values in shown.values())
    counts = {name: _histogram(values, low, high) for name, values in shown.items()}
    frame, marks, keys = Frame((low, high), (0.0, max(max(bins) for bins in counts.values()))), [], []
    for number, (name, bins) in enumerate(counts.items()):
        steps = [(low + (high - low) * step / BINS, low + (high - low) * (step + 1) / BINS) for step in range(BINS)]
        tops = " ".join(
            f"{frame.x(a)},{frame.y(share)} {frame.x(b)},{frame.y(share)}"
            for (a, b), share in zip(steps, bins, strict=True)
        )
        path = f"{frame.x(low)},{frame.y(0)} {tops} {frame.x(high)},{frame.y(0)}"
        marks.append(Markup('<polygon class="histogram c{}" points="{}"/>').format(number % COLOURS, path))
        keys.append(key(number, f"{name}, median {statistics.median(shown[name]):.4g} us"))
    ticks = sorted({float(f"{low + (high - low) * step / 4:.3g}") for step in range(5)})
    return figure(title, frame.axes("microseconds", "share of samples", ticks, (), ""), marks, keys=keys)


def _histogram(values: Sequence[float], low: float, high: float) -> list[float]:
    """Shares of the values in BINS equal bins from `low` to `high`."""
    bins = [0] * BINS
    for value in values:
        if value <= high:
            bins[min(BINS - 1, int((value - low) / ((high - low) or 1.0) * BINS))] += 1
    return [count / len(values) for count in bins]
