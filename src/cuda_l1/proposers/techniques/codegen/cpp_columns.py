"""Nests whose vector loop is a kept one: element-wise work, and reductions over an outer dimension.

A task is a run of neighbouring vectors; reductions keep one accumulator per lane and walk down the reduced loops.
"""

from __future__ import annotations

from cuda_l1.proposers.techniques.codegen.cpp_expr import VECTOR
from cuda_l1.proposers.techniques.codegen.cpp_nest import BLOCK, NestPrinter, Scope
from cuda_l1.proposers.techniques.codegen.cpp_text import (
    PAIR,
    accumulator,
    as_vector,
    carries,
    coordinates,
    identity,
    indent,
    loop,
    parallel,
    wide,
)


def print_columns(printer: NestPrinter) -> list[str]:
    """The body of the function: runs of vectors in parallel, four side by side where a reduced loop runs below them."""
    plan = printer.plan
    size = plan.vector.size
    printer.scopes["row"] = Scope()
    passes = bool(plan.inner)
    printer.most_units = 4 if passes else 1
    widest = f"{printer.most_units} * W" if passes else str(BLOCK)
    chunk = ["i64 j = j0;"]
    for units in (4, 1) if passes else (1,):
        chunk += _chunk(printer, units)
    tail = [f"if constexpr ({size} % W) if (high == {size}) chunk1(Lanes<{size} % W>{{}}, j);"]
    count_ = f"(({size} + {widest} - 1) / ({widest}))"
    task = [
        f"const i64 row = task / {count_}, j0 = task % {count_} * ({widest});",
        f"const i64 high = j0 + {widest} < {size} ? j0 + {widest} : {size};",
        *coordinates(printer), *printer.scopes["row"].lines, *chunk, *tail,
    ]  # fmt: skip
    body = [*printer.scratch_lines(), *loop("for (i64 task = begin; task < end; ++task)", task)]
    return parallel(f"{plan.rows}L * {count_}", plan.work(), body)


def _chunk(printer: NestPrinter, units: int) -> list[str]:
    """A lambda for `units` vectors side by side, and the loop that calls it while they fit."""
    plan = printer.plan
    printer.units = units
    scope = printer.scopes["chunk"] = Scope()
    for printer.level in range(plan.depth):
        scope.lines += _column_pass(printer, units)
        for value in plan.reductions(printer.level):
            number = plan.values.index(value)
            for unit in range(units):
                name = f"t{number}_{unit}"
                scope.lines.append(f"const {VECTOR[value.compute]} {name} = to_{value.compute}(d{number}_{unit});")
                scope.names[(value, (), unit)] = name
    printer.level = plan.depth
    for printer.unit in range(units):
        for value, access in plan.kept_stores():
            scope.lines.append(printer.store(value, access))
    printer.unit = 0
    return [
        f"auto chunk{units} = [&](auto n, i64 j) __attribute__((always_inline)) {{",
        *indent(["constexpr int N = decltype(n)::n;", *scope.lines]),
        "};",
        f"for (; j + {units} * W <= high; j += {units} * W) chunk{units}(Lanes<W>{{}}, j);",
    ]


def _column_pass(printer: NestPrinter, units: int) -> list[str]:
    plan = printer.plan
    reductions, stores = plan.reductions(printer.level), plan.full_stores(printer.level)
    if not reductions and not stores:
        return []
    lane = printer.scopes["lane"] = Scope()
    numbers = [(plan.values.index(value), value) for value in reductions]
    for printer.unit in range(units):
        for number, value in numbers:
            text = as_vector(value, printer.ref(value.args[0]))
            into = PAIR[value.attrs["kind"]].format(*((text, f"s{number}_{printer.unit}")))
            lane.lines.append(f"s{number}_{printer.unit} = {into};")
        lane.lines += [printer.store(value, access) for value, access in stores]
    printer.unit = 0
    named = [(f"{n}_{unit}", v) for n, v in numbers for unit in range(units)]
    lines = [f"{wide(v)} d{n} = {identity(v, wide(v))};" for n, v in named]
    fresh = [f"{VECTOR[accumulator(v)]} s{n} = {identity(v, VECTOR[v.compute])};" for n, v in named]
    carry = [f"d{n} += to_f64(s{n});" if v.attrs["kind"] == "sum" else
             f"d{n} = {PAIR[v.attrs['kind']].format(f'd{n}', f's{n}')};" for n, v in named]  # fmt: skip
    *others, last = plan.inner
    name = printer.loop_names[last]
    inside = [
        *fresh,
        f"const i64 stop = {name}0 + 128 < {last.size} ? {name}0 + 128 : {last.size};",
        *loop(f"for (i64 {name} = {name}0; {name} < stop; ++{name})", lane.lines),
        *carry,
    ]
    inside = loop(f"for (i64 {name}0 = 0; {name}0 < {last.size}; {name}0 += 128)", inside)
    for atom in reversed(others):
        name = printer.loop_names[atom]
        inside = loop(f"for (i64 {name} = 0; {name} < {atom.size}; ++{name})", inside)
    return lines + loop("", [*carries(printer, "vd", units), *inside])
