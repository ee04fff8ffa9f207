"""Few, long rows: every pass is cut into blocks for all threads, partial results are joined between passes."""

from __future__ import annotations

from collections.abc import Sequence

from cuda_l1.proposers.techniques.codegen.axes import Atom, count
from cuda_l1.proposers.techniques.codegen.cpp_expr import VECTOR
from cuda_l1.proposers.techniques.codegen.cpp_nest import BLOCK, NestPrinter, Scope
from cuda_l1.proposers.techniques.codegen.cpp_rows import row_pass
from cuda_l1.proposers.techniques.codegen.cpp_text import (
    FOLD,
    JOIN,
    START,
    coordinates,
    loop,
    parallel,
)
from cuda_l1.proposers.techniques.codegen.ir import Value


def print_split_rows(printer: NestPrinter) -> list[str]:
    """The body of the function: per pass, blocks of all rows in parallel, then the partial results joined."""
    plan = printer.plan
    cut = max(plan.inner, key=lambda atom: atom.size)
    size = _block_size(cut, count(plan.inner), cut is plan.vector)
    blocks = -(-cut.size // size)
    reductions = plan.reduces
    order = {value: index for index, value in enumerate(reductions)}
    lines = [f"f64 done[{plan.rows}][{len(reductions)}];"]
    for printer.level in range(plan.depth):
        lines += _split_level(printer, order, cut, size, blocks)
    row = printer.scopes["row"] = Scope()
    _finished(printer, order, row, plan.depth)
    row.lines += [printer.store(value, access) for value, access in plan.kept_stores()]
    if plan.kept_stores():
        lines += loop(f"for (i64 row = 0; row < {plan.rows}; ++row)", coordinates(printer) + row.lines)
    return lines


def _block_size(cut: Atom, elements: int, is_vector: bool) -> int:
    """About 16k elements and at most 256 blocks; a whole number of vectors where the vector loop is cut."""
    wanted = max(1, (1 << 14) * cut.size // elements, -(-cut.size // 256))
    return -(-wanted // BLOCK) * BLOCK if is_vector else wanted


def _split_level(printer: NestPrinter, order: dict[Value, int], cut: Atom, size: int, blocks: int) -> list[str]:
    plan = printer.plan
    reductions = plan.reductions(printer.level)
    row = printer.scopes["row"] = Scope()
    _finished(printer, order, row, printer.level)
    body = row_pass(printer, "low", "high", cut)
    if not body:
        return []
    limits = [
        "const i64 row = task / BLOCKS, low = task % BLOCKS * SIZE;".replace("BLOCKS", str(blocks)).replace(
            "SIZE", str(size)
        ),
        f"const i64 high = low + {size} < {cut.size} ? low + {size} : {cut.size};",
    ]
    keep = [f"part[task][{i}] = {FOLD[v.attrs['kind']]}(d{plan.values.index(v)});" for i, v in enumerate(reductions)]
    task = limits + coordinates(printer) + row.lines + body + keep
    lines = [f"f64 part[{plan.rows * blocks}][{max(len(reductions), 1)}];"] if reductions else []
    lines += parallel(
        str(plan.rows * blocks), plan.work(), loop("for (i64 task = begin; task < end; ++task)", task), "&"
    )
    return loop("", lines + _join_parts(reductions, order, plan.rows, blocks))


def _join_parts(reductions: Sequence[Value], order: dict[Value, int], rows: int, blocks: int) -> list[str]:
    lines = []
    for index, value in enumerate(reductions):
        kind = value.attrs["kind"]
        joined = JOIN[kind].format("x", f"part[row * {blocks} + b][{index}]")
        lines += [f"f64 x = {START[kind]};", f"for (i64 b = 0; b < {blocks}; ++b) x = {joined};"]
        lines += [f"done[row][{order[value]}] = x;"]
        lines = [*lines[:-3], *loop("", lines[-3:])]
    return loop(f"for (i64 row = 0; row < {rows}; ++row)", lines) if lines else []


def _finished(printer: NestPrinter, order: dict[Value, int], row: Scope, level: int) -> None:
    """Define the reductions that are complete before pass `level` in a new row scope."""
    for value, index in order.items():
        if printer.plan.levels[value] <= level:
            name = f"t{printer.plan.values.index(value)}"
            row.names[(value, (), 0)] = name
            row.lines.append(f"const {VECTOR[value.compute]} {name} = splat(({value.compute})done[row][{index}]);")
