"""Nests whose vector loop is reduced, a row at a time: passes, blocks, unrolled vectors, tails."""

from __future__ import annotations

from collections.abc import Sequence

from cuda_l1.proposers.techniques.codegen.axes import Atom
from cuda_l1.proposers.techniques.codegen.cpp_expr import VECTOR
from cuda_l1.proposers.techniques.codegen.cpp_nest import BLOCK, NestPrinter, Scope
from cuda_l1.proposers.techniques.codegen.cpp_text import (
    FOLD,
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
from cuda_l1.proposers.techniques.codegen.ir import Value

_INTO = {"sum": "add_to", "max": "max_to", "min": "min_to"}


def print_rows(printer: NestPrinter) -> list[str]:
    """The body of the function: rows in parallel, pass after pass over each."""
    plan = printer.plan
    row = printer.scopes["row"] = Scope()
    for printer.level in range(plan.depth):
        row.lines += row_pass(printer, "0", str(plan.vector.size))
        for value in plan.reductions(printer.level):
            kind, number = value.attrs["kind"], plan.values.index(value)
            name = f"t{number}"
            row.lines.append(f"const {VECTOR[value.compute]} {name} = splat(({value.compute}){FOLD[kind]}(d{number}));")
            row.names[(value, (), 0)] = name
    row.lines += [printer.store(value, access) for value, access in plan.kept_stores()]
    body = [
        *printer.scratch_lines(),
        *loop("for (i64 row = begin; row < end; ++row)", coordinates(printer) + row.lines),
    ]
    return parallel(str(plan.rows), plan.work(), body)


def row_pass(printer: NestPrinter, low: str, high: str, blocked: Atom | None = None) -> list[str]:
    """One pass over a row, or over the part of it from `low` to `high` of the loop `blocked` (default: the vector)."""
    plan = printer.plan
    reductions, stores = plan.reductions(printer.level), plan.full_stores(printer.level)
    if not reductions and not stores:
        return []
    mid, lane = Scope(), Scope()
    printer.scopes["mid"], printer.scopes["lane"] = mid, lane
    for value in reductions:
        text = printer.ref(value.args[0])
        number = plan.values.index(value)
        lane.lines.append(f"{_INTO[value.attrs['kind']]}<N>(s{number}, {as_vector(value, text)});")
    lane.lines += [printer.store(value, access) for value, access in stores]
    numbers = [(plan.values.index(value), value) for value in reductions]
    arguments = "".join(f", {VECTOR[accumulator(v)]}& s{n}" for n, v in numbers)
    lines = [f"{wide(v)} d{n} = {identity(v, wide(v))};" for n, v in numbers]
    bounds = (low, high) if blocked in (None, plan.vector) else ("0", str(plan.vector.size))
    inside = [
        *mid.lines,
        f"auto body = [&](auto n, i64 j{arguments}) __attribute__((always_inline)) {{",
        *indent(["constexpr int N = decltype(n)::n;", *lane.lines]),
        "};",
        *_vector_loop(numbers, *bounds, plan.vector.size, ordered=bool(plan.scans)),
    ]
    for atom in reversed([atom for atom in plan.inner if atom is not plan.vector]):
        name = printer.loop_names[atom]
        start, stop = (low, high) if atom is blocked else ("0", str(atom.size))
        inside = loop(f"for (i64 {name} = {start}; {name} < {stop}; ++{name})", inside)
    return lines + loop("", [*carries(printer, "f64", 1), *inside])


def _vector_loop(numbers: Sequence[tuple[int, Value]], low: str, high: str, size: int, *, ordered: bool) -> list[str]:
    """`body` over `low..high` in vectors, two at a time with their own accumulators, then the tail of the row."""
    first = "".join(f", s{n}" for n, _ in numbers)
    second = "".join(f", u{n}" for n, _ in numbers)
    fresh = [
        f"{VECTOR[accumulator(v)]} s{n} = {identity(v, VECTOR[v.compute])}, u{n} = s{n};" for n, v in numbers
    ]  # fmt: skip
    carry = [_carried(n, v, PAIR[v.attrs["kind"]].format(f"s{n}", f"u{n}")) for n, v in numbers]
    pairs = [] if ordered else [
        f"for (; j + 2 * W <= stop; j += 2 * W) {{ body(Lanes<W>{{}}, j{first}); body(Lanes<W>{{}}, j + W{second}); }}"
    ]  # fmt: skip
    singles = [f"for (; j + W <= stop; j += W) body(Lanes<W>{{}}, j{first});"]
    block = [*fresh, f"const i64 stop = j + {BLOCK} < {high} ? j + {BLOCK} : {high};", *pairs, *singles, *carry]
    tail = [*fresh, f"body(Lanes<{size} % W>{{}}, j{first});", *carry]
    return [
        f"i64 j = {low};",
        *loop(f"while (j + W <= {high})", block),
        *loop(f"if constexpr ({size} % W) if ({high} == {size})", tail),
    ]


def _carried(number: int, value: Value, text: str) -> str:
    if value.attrs["kind"] == "sum":
        return f"d{number} += to_f64({text});"
    return f"d{number} = {PAIR[value.attrs['kind']].format(f'd{number}', text)};"
