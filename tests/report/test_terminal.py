"""Tables on a terminal: whatever its width, nothing of them is cut."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from cuda_l1.report.cells import Ratio, Row, Share, Table
from cuda_l1.report.terminal import rendered

COLUMNS = ("method", "level", "geometric mean", "not floored", "mean", "75 %", "beats it", "tasks", "remarks")
WHY = "a call takes 12.00 GiB, more than there is: batch_size=32 instead of 4096"


def drawn(shown: Table, width: int) -> str:
    screen = Console(file=io.StringIO(), width=width)
    for part in rendered(shown):
        screen.print(part)
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue()


def made() -> Table:
    rows = [
        Row((method, level, Ratio(4.29, 1.02, 68.85), Ratio(3.5), Ratio(2.25), None, Share(1, 3), Share(3, 4), WHY))
        for method in ("compile-reduce-overhead", "techniques")
        for level in ("all", "kernelbench level 1")
    ]
    return Table("t", "Against the best baseline", COLUMNS, tuple(rows))


@pytest.mark.parametrize("width", [60, 80, 100, 140, 240])
def test_no_figure_is_cut_however_narrow_the_screen(width: int) -> None:
    text = drawn(made(), width)
    assert "…" not in text and all(len(line) <= width for line in text.splitlines())
    for figure in ("4.29x (1.02 to 68.85)", "3.50x", "2.25x", "1/3", "3/4"):
        assert text.count(figure) == 4, figure
    assert all(name in text for name in COLUMNS) and text.count("batch_size=32") == 4


def test_what_tells_rows_apart_stands_beside_every_part() -> None:
    lines = drawn(made(), 80).splitlines()
    heads = [line.split() for line in lines if line.lstrip().startswith("method")]
    assert len(heads) > 2 and all(head[:2] == ["method", "level"] for head in heads)
    assert sum(line.split()[:2] == ["techniques", "all"] for line in lines) == len(heads)


def test_one_table_is_enough_where_it_fits() -> None:
    text = drawn(made(), 240)
    assert text.count("method") == 1 and WHY in text


def test_a_table_without_rows_has_its_head() -> None:
    text = drawn(Table("t", "t", COLUMNS, ()), 60)
    assert all(name in text for name in COLUMNS)
