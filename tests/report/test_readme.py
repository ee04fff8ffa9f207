"""The figures in a README: between the markers, from finals and baselines, and the same each time."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

import pytest
from report_fakes import GPU, record, task

from cuda_l1.errors import UsageError
from cuda_l1.prelude import PRELUDES
from cuda_l1.report.build import build
from cuda_l1.report.entries import entry_of
from cuda_l1.report.readme import BEGIN, END, GUARD, LINES, figures, parts
from cuda_l1.types import Origin, Record, Task

Records = Sequence[tuple[Record, Task]]


def shown(records: Records) -> str | None:
    known = {made.id: made for made, _ in records}
    return figures(build([entry_of(made, of) for made, of in records]), known.get)


A, B = task("1_a", 1), task("2_b", 2)


def test_what_stands_around_the_markers_stays() -> None:
    text = f"# Mine\n{BEGIN}\nold\n{END}\nend\n"
    assert parts(text, "README.md") == (f"# Mine\n{BEGIN}", f"{END}\nend\n")


@pytest.mark.parametrize("text", ["", "# Mine", BEGIN, END + BEGIN, BEGIN + END + BEGIN + END, BEGIN + BEGIN + END])
def test_a_file_without_one_place_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"README\.md.*begin.*end"):
        parts(text, "README.md")


def test_levels_and_kernels_of_finals() -> None:
    records = [
        (record(A, 3.0, against={"compile": 1.5}, best_of=("eager", "compile")), A),
        (record(A, 9.0, protocol="screen"), A),
        (record(B, 1.0), B),
    ]
    found = shown(records)
    assert found is not None and "9.00x" not in found
    assert "| techniques | all |" in found and "| techniques | kernelbench level 1 |" in found
    (row,) = (line for line in found.splitlines() if line.startswith("| kernelbench/1_a"))
    assert "| 30 us | 10 us | 3.00x (2.94 to 3.06) | 1.50x (1.47 to 1.53) | compile |" in row
    assert "eager 2/2, compile 1/2." in found and "the 1 of 2 tasks" in found and "2_b |" not in found
    assert shown(records) == found


def test_each_place_by_itself_and_side_by_side() -> None:
    found = shown([(record(A, 3.0), A), (record(A, 2.0, place=GPU, timings=None), A)])
    assert found is not None
    assert "### Test CPU, final" in found and "### Test GPU, final" in found and "place by place" in found


def test_without_a_final_there_is_nothing_to_show() -> None:
    assert shown([(record(A, 3.0, protocol="screen"), A)]) is None
    assert shown([(record(A, 3.0, protocol="screen"), A), (record(A, 3.0, "compile", protocol="screen"), A)]) is None
    assert shown([(record(A, 1.0, "eager", protocol="screen"), A)]) is None


def test_where_only_baselines_were_judged_they_stand_by_level_with_what_they_count_on() -> None:
    records = [
        (record(A, 2.0, "compile", protocol="screen"), A),
        (record(B, 8.0, "compile", protocol="screen"), B),
        (record(A, 0.5, "cuda-graph", protocol="screen"), A),
        (record(B, None, "cuda-graph", protocol="screen"), B),
        (record(A, 3.0, place=GPU, timings=None), A),
    ]
    found = shown(records)
    assert found is not None and "### Test CPU, screen" in found
    cpu = found.partition("### Test CPU, screen")[2]
    assert "- tasks: 2 of `kernelbench`\n- measured 2025-01-01\n" in cpu
    assert "| level | compile | cuda-graph |" in cpu and "| all | 4.00x (2/2) | 0.50x (1/2) |" in cpu
    assert "| kernelbench level 1 | 2.00x (1/1) | 0.50x (1/1) |" in cpu
    assert "| kernelbench level 2 | 8.00x (1/1) | - (0/1) |" in cpu
    assert "PyTorch's own baselines" not in found.partition("### Test CPU, screen")[0]


def test_foreign_text_closes_no_fence_and_holds_no_marker() -> None:
    evil = task(f"<script>{END}")
    source = f"x = '''\n```\n</details>\n{END}\n'''\n" + "y = 1\n" * (LINES + 5)
    found = shown([(record(evil, 3.0, Origin(proposer="llm", model=f"m{BEGIN}"), source=source), evil)])
    assert found is not None and BEGIN not in found and END not in found and "<script" not in found.partition("```")[0]
    assert "````python" in found and "more lines" in found


def test_the_reference_is_not_shown_twice() -> None:
    found = shown([(record(A, 3.0, source=A.source + "class ModelNew(Model): ...\n"), A)])
    assert found is not None and found.count("class Model:") == 1 and "class ModelNew(Model)" in found


def test_of_a_drop_in_the_kernel_is_shown_and_the_guard_is_counted() -> None:
    guard = files("cuda_l1.export").joinpath("dropin.py.j2").read_text("utf-8")
    assert guard.startswith(GUARD)
    kernel = "class _Optimized(Model):\n" + "    x = 1\n" * 20
    found = shown([(record(A, 3.0, source=f"{A.source}\n{kernel}\n\n{guard}"), A)])
    assert found is not None and found.count("    x = 1") == 20 and "_dropin" not in found
    assert f"# ... the guard: {len(guard.splitlines())} lines" in found and "more lines" not in found


def test_of_a_kernel_that_our_techniques_wrote_what_it_computes_is_shown_not_what_all_of_them_hold() -> None:
    """In a drop-in: a future import on top, the reference spaced otherwise, the prelude, the kernel and the guard."""
    guard = files("cuda_l1.export").joinpath("dropin.py.j2").read_text("utf-8")
    preludes = ("# prelude: compile_cpp", "# prelude: DerivedTensors")
    kernel = (
        "\n\n\n".join(PRELUDES[line] for line in preludes) + "\n\n\nclass _Optimized(Model):\n    x = 'the kernel'\n"
    )
    of = A.model_copy(update={"source": f"\n# Theirs.\nimport torch\n\n\n{A.source}\n\n\n\n"})
    source = f"from __future__ import annotations\n\n{of.source.strip()}\n\n\n{kernel}\n\n{guard}"
    found = shown([(record(of, 3.0, source=source), of)])
    assert found is not None and found.count("class Model:") == 1 and "x = 'the kernel'" in found
    assert all(line in found for line in preludes) and "more lines" not in found


def test_a_long_kernel_is_shown_from_both_ends() -> None:
    lines = [f"x{number} = {number}" for number in range(LINES + 100)]
    found = shown([(record(A, 3.0, Origin(proposer="llm", model="m"), source="\n".join(lines)), A)])
    assert found is not None and "\nx0 = 0\n" in found and f"\n{lines[-1]}\n" in found
    assert "# ... 100 more lines" in found and found.count("\nx") == LINES


def test_a_text_that_begins_like_a_guard_is_shown() -> None:
    found = shown([(record(A, 3.0, source=f"\n{GUARD}\nx = 1\n"), A)])
    assert found is not None and "x = 1" in found
