"""The loops around the values of a nest: rows, passes, blocks, unrolled vectors, tails."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from cuda_l1.proposers.techniques.codegen.axes import Atom, count
from cuda_l1.proposers.techniques.codegen.cpp_expr import CARRIER, VECTOR
from cuda_l1.proposers.techniques.codegen.cpp_nest import BLOCK, NestPrinter, Scope
from cuda_l1.proposers.techniques.codegen.ir import Unsupported, Value
from cuda_l1.proposers.techniques.codegen.plan import Plan

_INTO = {"sum": "add_to", "max": "max_to", "min": "min_to"}
_FOLD = {"sum": "total", "max": "largest", "min": "smallest"}
_JOIN = {"sum": "{0} + {1}", "max": "larger({0}, {1})", "min": "smaller({0}, {1})"}
_START = {"sum": "0", "max": "-__builtin_inf()", "min": "__builtin_inf()"}
_PAIR = {"sum": "{0} + {1}", "max": "vmax({0}, {1})", "min": "vmin({0}, {1})"}


def indent(lines: Sequence[str]) -> list[str]:
    """The lines one level deeper."""
    return [textwrap.indent(line, "  ") for line in lines]


def loop(head: str, body: Sequence[str]) -> list[str]:
    """`head { body }`."""
    return [head + " {", *indent(body), "}"]


def print_nest(plan: Plan, name: str) -> str:
    """The C++ function `name` that runs a plan: pointers in the order of `parameters(plan)`, then a thread count."""
    printer = NestPrinter(plan, name)
    body = _split_rows(printer) if printer.split else _rows(printer) if plan.row else _columns(printer)
    return "\n".join(loop(f"static void {name}({', '.join([*_declared(plan), 'int threads'])})", body))


def parameters(plan: Plan) -> list[str]:
    """Names of the memory that a plan touches, each once, in order."""
    accesses = [*plan.loads.values(), *(access for _, access in plan.stores)]
    return list(dict.fromkeys(access.buffer.name for access in accesses))


def _declared(plan: Plan) -> list[str]:
    written = {access.buffer.name for _, access in plan.stores}
    accesses = [*plan.loads.values(), *(access for _, access in plan.stores)]
    types = {access.buffer.name: access.buffer.dtype for access in accesses}
    return [f"{'' if name in written else 'const '}{kind}* {name}" for name, kind in types.items()]


def _coordinates(printer: NestPrinter) -> list[str]:
    """Loop indices of the kept loops from the number of the row."""
    lines, radix = [], 1
    for atom in reversed(printer.plan.outer):
        lines.append(f"const i64 {printer.loop_names[atom]} = row / {radix} % {atom.size};")
        radix *= atom.size
    return lines[::-1]


def _accumulator(value: Value) -> str:
    """The compute type that partial results of a reduction have."""
    if value.compute not in CARRIER:
        raise Unsupported(f"a reduction of {value.compute}")
    return value.compute


# ── a row at a time: the vector loop is reduced ───────────────────────────────────────────────────


def _rows(printer: NestPrinter) -> list[str]:
    plan = printer.plan
    row = printer.scopes["row"] = Scope()
    for printer.level in range(plan.depth):
        row.lines += _row_pass(printer, "0", str(plan.vector.size))
        for value in plan.reductions(printer.level):
            kind, number = value.attrs["kind"], plan.values.index(value)
            name = f"t{number}"
            row.lines.append(
                f"const {VECTOR[value.compute]} {name} = splat(({value.compute}){_FOLD[kind]}(d{number}));"
            )
            row.names[(value, (), 0)] = name
    row.lines += [printer.store(value, access) for value, access in plan.kept_stores()]
    body = [
        *printer.scratch_lines(),
        *loop("for (i64 row = begin; row < end; ++row)", _coordinates(printer) + row.lines),
    ]
    return _parallel(str(plan.rows), plan.work(), body)


def _parallel(tasks: str, work: int, body: Sequence[str], capture: str = "=") -> list[str]:
    head = f"parallel({tasks}, enough(threads, {work}L), [{capture}](i64 begin, i64 end)"
    return [head + " {", *indent(body), "});"]


def _row_pass(printer: NestPrinter, low: str, high: str, blocked: Atom | None = None) -> list[str]:
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
        lane.lines.append(f"{_INTO[value.attrs['kind']]}<N>(s{number}, {_as_vector(printer, value, text)});")
    lane.lines += [printer.store(value, access) for value, access in stores]
    numbers = [(plan.values.index(value), value) for value in reductions]
    arguments = "".join(f", {VECTOR[_accumulator(v)]}& s{n}" for n, v in numbers)
    lines = [f"{_wide(v)} d{n} = {_identity(v, _wide(v))};" for n, v in numbers]
    bounds = (low, high) if blocked in (None, plan.vector) else ("0", str(plan.vector.size))
    inside = [
        *mid.lines,
        f"auto body = [&](auto n, i64 j{arguments}) __attribute__((always_inline)) {{",
        *indent(["constexpr int N = decltype(n)::n;", *lane.lines]),
        "};",
        *_vector_loop(numbers, *bounds, plan.vector.size, ordered=printer._scans()),
    ]
    for atom in reversed([atom for atom in plan.inner if atom is not plan.vector]):
        name = printer.loop_names[atom]
        start, stop = (low, high) if atom is blocked else ("0", str(atom.size))
        inside = loop(f"for (i64 {name} = {start}; {name} < {stop}; ++{name})", inside)
    return lines + loop("", [*_carries(printer, "f64", 1), *inside])


def _as_vector(printer: NestPrinter, value: Value, text: str) -> str:
    return text if value.compute == value.args[0].compute else f"to_{value.compute}({text})"


def _wide(value: Value) -> str:
    """Sums are carried in doubles; extremes stay as they are."""
    return "vd" if value.attrs["kind"] == "sum" else VECTOR[_accumulator(value)]


def _identity(value: Value, vector: str) -> str:
    kind = value.attrs["kind"]
    if kind == "sum":
        return "{}"
    return f"splat(({'f64' if vector == 'vd' else 'f32'}){_START[kind]})"


def _carries(printer: NestPrinter, kind: str, units: int) -> list[str]:
    """A running total per scan that this pass evaluates."""
    return [
        f"{kind} carry{printer.plan.values.index(v)}_{unit}{{}};" for v in printer.plan.scans for unit in range(units)
    ]


def _vector_loop(numbers: Sequence[tuple[int, Value]], low: str, high: str, size: int, *, ordered: bool) -> list[str]:
    """`body` over `low..high` in vectors, two at a time with their own accumulators, then the tail of the row."""
    first = "".join(f", s{n}" for n, _ in numbers)
    second = "".join(f", u{n}" for n, _ in numbers)
    fresh = [
        f"{VECTOR[_accumulator(v)]} s{n} = {_identity(v, VECTOR[v.compute])}, u{n} = s{n};" for n, v in numbers
    ]  # fmt: skip
    carry = [_carried(n, v, _PAIR[v.attrs["kind"]].format(f"s{n}", f"u{n}")) for n, v in numbers]
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
    return f"d{number} = {_PAIR[value.attrs['kind']].format(f'd{number}', text)};"


# ── few, long rows: every pass is cut into blocks, partial results are joined between passes ──────


def _split_rows(printer: NestPrinter) -> list[str]:
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
        lines += loop(f"for (i64 row = 0; row < {plan.rows}; ++row)", _coordinates(printer) + row.lines)
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
    body = _row_pass(printer, "low", "high", cut)
    if not body:
        return []
    limits = [
        "const i64 row = task / BLOCKS, low = task % BLOCKS * SIZE;".replace("BLOCKS", str(blocks)).replace(
            "SIZE", str(size)
        ),
        f"const i64 high = low + {size} < {cut.size} ? low + {size} : {cut.size};",
    ]
    keep = [f"part[task][{i}] = {_FOLD[v.attrs['kind']]}(d{plan.values.index(v)});" for i, v in enumerate(reductions)]
    task = limits + _coordinates(printer) + row.lines + body + keep
    lines = [f"f64 part[{plan.rows * blocks}][{max(len(reductions), 1)}];"] if reductions else []
    lines += _parallel(
        str(plan.rows * blocks), plan.work(), loop("for (i64 task = begin; task < end; ++task)", task), "&"
    )
    return loop("", lines + _join_parts(reductions, order, plan.rows, blocks))


def _join_parts(reductions: Sequence[Value], order: dict[Value, int], rows: int, blocks: int) -> list[str]:
    lines = []
    for index, value in enumerate(reductions):
        kind = value.attrs["kind"]
        joined = _JOIN[kind].format("x", f"part[row * {blocks} + b][{index}]")
        lines += [f"f64 x = {_START[kind]};", f"for (i64 b = 0; b < {blocks}; ++b) x = {joined};"]
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


# ── the vector loop is a kept one: element-wise nests, and reductions over an outer dimension ─────


def _columns(printer: NestPrinter) -> list[str]:
    plan = printer.plan
    size = plan.vector.size
    printer.scopes["row"] = Scope()
    passes = bool(plan.inner)
    printer.most_units = 4 if passes else 1
    widest = f"{printer.most_units} * W" if passes else str(BLOCK)
    chunk = [f"i64 j = j0;"]  # noqa: F541
    for units in (4, 1) if passes else (1,):
        chunk += _chunk(printer, units)
    tail = [f"if constexpr ({size} % W) if (high == {size}) chunk1(Lanes<{size} % W>{{}}, j);"]
    count_ = f"(({size} + {widest} - 1) / ({widest}))"
    task = [
        f"const i64 row = task / {count_}, j0 = task % {count_} * ({widest});",
        f"const i64 high = j0 + {widest} < {size} ? j0 + {widest} : {size};",
        *_coordinates(printer), *printer.scopes["row"].lines, *chunk, *tail,
    ]  # fmt: skip
    body = [*printer.scratch_lines(), *loop("for (i64 task = begin; task < end; ++task)", task)]
    return _parallel(f"{plan.rows}L * {count_}", plan.work(), body)


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
            text = _as_vector(printer, value, printer.ref(value.args[0]))
            into = _PAIR[value.attrs["kind"]].format(*((text, f"s{number}_{printer.unit}")))
            lane.lines.append(f"s{number}_{printer.unit} = {into};")
        lane.lines += [printer.store(value, access) for value, access in stores]
    printer.unit = 0
    named = [(f"{n}_{unit}", v) for n, v in numbers for unit in range(units)]
    lines = [f"{_wide(v)} d{n} = {_identity(v, _wide(v))};" for n, v in named]
    fresh = [f"{VECTOR[_accumulator(v)]} s{n} = {_identity(v, VECTOR[v.compute])};" for n, v in named]
    carry = [f"d{n} += to_f64(s{n});" if v.attrs["kind"] == "sum" else
             f"d{n} = {_PAIR[v.attrs['kind']].format(f'd{n}', f's{n}')};" for n, v in named]  # fmt: skip
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
    return lines + loop("", [*_carries(printer, "vd", units), *inside])
