"""The parts of a plot as inline SVG; every text in it is escaped."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

WIDTH, HEIGHT = 640, 260
LEFT, RIGHT, TOP, BOTTOM = 52, 24, 12, 34
COLOURS = 8
"""Series that can be told apart; the style sheet names them c0 to c7."""


class Frame:
    """Axes: from values to pixels. With `log_x`, `log_y` values are positive, and compared by their logarithm."""

    def __init__(
        self, x: tuple[float, float], y: tuple[float, float], *, log_x: bool = False, log_y: bool = False
    ) -> None:
        self._across, self._scale = (math.log if is_log else float for is_log in (log_x, log_y))
        self._x = _wide(self._across(x[0]), self._across(x[1]), 0.04 if log_x else 0.0)
        self._y = _wide(self._scale(y[0]), self._scale(y[1]), 0.04 if log_y else 0.0)

    def x(self, value: float) -> float:
        """Pixels from the left."""
        low, high = self._x
        return round(LEFT + (self._across(value) - low) / (high - low) * (WIDTH - LEFT - RIGHT), 1)

    def y(self, value: float) -> float:
        """Pixels from the top."""
        low, high = self._y
        return round(HEIGHT - BOTTOM - (self._scale(value) - low) / (high - low) * (HEIGHT - TOP - BOTTOM), 1)

    def axes(self, x_label: str, y_label: str, x_ticks: Sequence[float], y_ticks: Sequence[float], unit: str) -> Markup:
        """Lines across, ticks and labels."""
        along = [_below(self.x(tick), f"{tick:g}") for tick in x_ticks]
        up = [label(LEFT - 6, self.y(tick) + 4, f"{tick:g}{unit}", "end") for tick in y_ticks]
        lines = [line(LEFT, self.y(tick), WIDTH - RIGHT, self.y(tick), "grid") for tick in y_ticks]
        turned = Markup('<text class="label" transform="translate(12 {}) rotate(-90)" text-anchor="middle">{}</text>')
        names = [
            label((LEFT + WIDTH) / 2, HEIGHT - 4, x_label, "middle"),
            turned.format((HEIGHT - BOTTOM) / 2, y_label),
        ]
        return Markup("").join([*along, *up, *lines, *names])

    def one(self) -> Markup:
        """The line of a speed-up of 1."""
        return line(LEFT, self.y(1.0), WIDTH - RIGHT, self.y(1.0), "one")


LETTER = 6.5
"""Pixels that a letter of a label takes, about."""


def _below(x: float, text: str) -> Markup:
    """A tick's label below its place, and left of it where half of it would leave the plot."""
    anchor = "end" if x + len(text) * LETTER / 2 > WIDTH else "middle"
    return label(WIDTH if anchor == "end" else x, HEIGHT - BOTTOM + 16, text, anchor)


def _wide(low: float, high: float, margin: float = 0.0) -> tuple[float, float]:
    """The span with a share of it on either side; a single value in the middle of one."""
    if high <= low:
        return low - 0.5, low + 0.5
    return low - margin * (high - low), high + margin * (high - low)


def linear_ticks(low: float, high: float) -> list[float]:
    """Round values between two, at most six: multiples of 1, 2 or 5 times a power of ten."""
    if high <= low:
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / 5))
    step = next(power * factor for factor in (1, 2, 5, 10) if (high - low) / (power * factor) <= 5)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{count * step:.6g}") for count in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Round speed-ups between two."""
    wanted = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
    inside = [tick for tick in wanted if low <= tick <= high]
    return inside if len(inside) <= 8 else [tick for tick in inside if tick in (0.01, 0.1, 1, 10, 100, 1000)]


def decades(low: float, high: float) -> list[float]:
    """Powers of ten between two, at most seven; where there is none, as for one task, what lies in their middle."""
    powers = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    if not powers:
        return [float(f"{math.sqrt(low * high):.3g}")]
    return [10.0**power for power in powers[:: 1 + (len(powers) - 1) // 7]]


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    """A straight line; `kind` names its style."""
    return Markup('<line x1="{}" y1="{}" x2="{}" y2="{}" class="{}"/>').format(x1, y1, x2, y2, kind)


def box(x: float, y: float, width: float, height: float, kind: str) -> Markup:
    """A rectangle by its upper left corner."""
    return Markup('<rect x="{}" y="{}" width="{}" height="{}" class="{}"/>').format(x, y, width, height, kind)


def label(x: float, y: float, text: str, anchor: str) -> Markup:
    """A word or two; `anchor` is start, middle or end."""
    shape = Markup('<text class="label" x="{}" y="{}" text-anchor="{}">{}</text>')
    return shape.format(round(x, 1), round(y, 1), anchor, text)


def linked(target: str, told: str, parts: Sequence[Markup]) -> Markup:
    """Marks that lead to a page and say what they are when pointed at.

    The keyboard passes them over: there may be hundreds, and the overview's table leads to the same pages.
    """
    shape = Markup('<a href="{}" tabindex="-1"><title>{}</title>{}</a>')
    return shape.format(target, told, Markup("").join(parts))


def told(what: str, parts: Sequence[Markup]) -> Markup:
    """Marks that say what they are when pointed at."""
    return Markup("<g><title>{}</title>{}</g>").format(what, Markup("").join(parts))


def key(number: int, text: str) -> Markup:
    """The name of a series in its colour, for a caption: it is seen where a phone shows a part of the plot alone."""
    return Markup(' <span class="key c{}">{}</span>').format(number % COLOURS, text)


def figure(
    title: str, axes: Markup, marks: Sequence[Markup], height: int = HEIGHT, keys: Sequence[Markup] = ()
) -> Markup:
    """The whole plot with its title, which a screen reader reads, and the names of its series."""
    return Markup(
        '<figure><figcaption>{title}{keys}</figcaption><svg viewBox="0 0 {width} {height}" role="img">'
        "<title>{title}</title>{axes}{marks}</svg></figure>"
    ).format(
        title=title, keys=Markup("").join(keys), width=WIDTH, height=height, axes=axes, marks=Markup("").join(marks)
    )
