"""The page of a training run: its curves, stage after stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from markupsafe import Markup

import cuda_l1
from cuda_l1.archive.faults import file_faults
from cuda_l1.errors import UsageError
from cuda_l1.report.learning import Panel
from cuda_l1.report.site.axes import COLOURS, Frame, figure, key, linear_ticks
from cuda_l1.report.site.write import asset, is_ours, rendered_page


def check_folder(folder: Path) -> None:
    """Raises UsageError where `write_page` would replace what is none of its pages."""
    there = [name for name in ("index.html", "style.css") if (folder / name).exists()]
    if there and (not is_ours(folder) or (folder / "tasks").exists()):
        raise UsageError(f"--html {folder}: holds {there[0]} of something else, which would be lost; name a new folder")


def write_page(name: str, stages: Mapping[str, Sequence[Panel]], folder: Path) -> Path:
    """Writes `index.html` and its style sheet into `folder`, in place of earlier ones, and returns the page's path.

    `stages`: the plots of each stage by its name, in order. Raises InfrastructureError (full disk), ArchiveError.
    """
    page = rendered_page(
        "learning.html.j2",
        root="",
        title=f"{name}, training",
        name=name,
        made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        version=cuda_l1.__version__,
        stages={stage: [plot(panel) for panel in panels] for stage, panels in stages.items()},
    )
    with file_faults(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "style.css").write_text(asset("style.css"), "utf-8")
        (folder / "index.html").write_text(page, "utf-8")
    return folder / "index.html"


def plot(panel: Panel) -> Markup:
    """The panel's curves over their steps, from 0 where no value is below."""
    points = [point for curve in panel.curves for point in curve.points]
    steps, values = [x for x, _ in points], [y for _, y in points]
    low, high = min(0.0, *values), max(values)
    frame, marks, keys = Frame((min(steps), max(steps)), (low, high)), [], []
    for number, curve in enumerate(panel.curves):
        kind = f"c{number % COLOURS}"
        path = " ".join(f"{frame.x(x)},{frame.y(y)}" for x, y in curve.points)
        marks.append(Markup('<polyline class="curve {}" points="{}"/>').format(kind, path))
        x, y = curve.points[-1]
        marks.append(Markup('<circle cx="{}" cy="{}" r="3" class="dot {}"/>').format(frame.x(x), frame.y(y), kind))
        keys.append(key(number, f"{curve.name.replace('_', ' ')}: {y:.4g}"))
    across = linear_ticks(min(steps), max(steps))
    return figure(panel.title, frame.axes("step", "", across, linear_ticks(low, high), ""), marks, keys=keys)
