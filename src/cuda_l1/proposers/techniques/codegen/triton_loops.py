"""Tile shapes, and the kernels around the values of a nest."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from cuda_l1.proposers.techniques.codegen.axes import count
from cuda_l1.proposers.techniques.codegen.ir import Unsupported, Value
from cuda_l1.proposers.techniques.codegen.plan import Plan
from cuda_l1.proposers.techniques.codegen.reroll import HANDS_ON, rerolled
from cuda_l1.proposers.techniques.codegen.triton_expr import TYPES
from cuda_l1.proposers.techniques.codegen.triton_nest import Scope, Tile, TilePrinter

MULTIPROCESSORS = 132
"""Of an H100; smaller GPUs get a few tiles more than they need."""
WHOLE_ELEMENTS = 16384
"""The longest row that one program holds in registers."""

SERIAL = Tile(32, 1, 1, "whole")
"""Of nests with a loop over steps, each of which waits for the one before: as many programs as there can be. Measured
on an H100, 65,536 elements of 128 steps: 41 us, and 55 with the tile of other element-wise nests (256, 4 warps)."""

_IDENTITY = {"sum": "0.0", "max": 'float("-inf")', "min": 'float("inf")'}
_JOIN = {"sum": "{0} + {1}", "max": "larger({0}, {1})", "min": "smaller({0}, {1})"}
_FOLD = {"sum": "tl.sum({0}, 1)", "max": "tl.reduce({0}, 1, larger)", "min": "tl.reduce({0}, 1, smaller)"}


@dataclass(frozen=True)
class Launch:
    """One kernel of a nest and how it is started."""

    name: str
    source: str
    pointers: list[str]
    grid: tuple[int, ...]
    constants: dict[str, int]
    warps: int


def power_of_two(number: int) -> int:
    """The smallest power of two that is not below `number`."""
    return 1 << max(number - 1, 0).bit_length()


def ceil_div(number: int, size: int) -> int:
    """How many blocks of `size` hold `number` elements."""
    return -(-number // size)


def tile_of(plan: Plan) -> Tile:
    """Shape and mode of the tiles of a plan."""
    kept = plan.rows * (1 if plan.row else plan.vector.size)
    length = count(plan.inner)
    if not plan.inner:
        block = 1024 if kept >= 1 << 18 else 256
        return Tile(min(block, power_of_two(kept)), 1, 4, "whole")
    tile = _row_tile(kept, length) if plan.row else _column_tile(kept, length)
    programs = ceil_div(kept, tile.x)
    if tile.mode == "blocks" and not plan.scans and programs < MULTIPROCESSORS:
        blocks = ceil_div(length, tile.r)
        tile.splits = min(power_of_two(4 * MULTIPROCESSORS // programs), power_of_two(blocks // 2), 512)
        tile.mode = "split" if tile.splits > 1 else "blocks"
    return tile


def _row_tile(kept: int, length: int) -> Tile:
    """Tiles whose rows lie in memory: as many rows as make a thousand elements, or one long one."""
    if length > WHOLE_ELEMENTS:
        return Tile(1, 4096, 8, "blocks")
    wide = power_of_two(length)
    rows = max(1, min(1024 // wide, power_of_two(kept // (4 * MULTIPROCESSORS))))
    return Tile(rows, wide, max(1, min(16, rows * wide // 256)), "whole")


def _column_tile(kept: int, length: int) -> Tile:
    """Tiles whose columns lie in memory: a few dozen neighbours side by side."""
    columns = min(64, power_of_two(kept))
    while columns > 16 and kept // columns < MULTIPROCESSORS:
        columns //= 2
    if power_of_two(length) * columns <= 4096:
        deep = power_of_two(length)
        return Tile(columns, deep, max(1, min(8, columns * deep // 256)), "whole")
    return Tile(columns, 2048 // columns, 8, "blocks")


def print_nest(plan: Plan, name: str) -> list[Launch]:
    """The kernels of a nest, in the order in which they are launched."""
    tile = tile_of(plan)
    if tile.mode != "whole":
        plan = plan.in_fewer_passes()
    if tile.mode == "split":
        return [launch for level in range(plan.depth + 1) for launch in _split_level(plan, tile, name, level)]
    printer = TilePrinter(plan, tile)
    body = _whole(printer) if tile.mode == "whole" else _blocks(printer)
    if not plan.inner and any(line.startswith(HANDS_ON) for line in body):
        printer = TilePrinter(plan, SERIAL)
        body = _whole(printer)
    return [_kernel(printer, name, body, [], 1)]


def _kernel(printer: TilePrinter, name: str, body: Sequence[str], extra: Sequence[str], splits: int) -> Launch:
    tile, plan = printer.tile, printer.plan
    pointers = [*plan.memory, *extra]
    first = "tl.program_id(0).to(tl.int64)" if _is_wide(printer) else "tl.program_id(0)"
    lines = [f"x = {first} * XBLOCK + tl.arange(0, XBLOCK)[:, None]", f"xmask = x < {printer.elements}"]
    lines += printer.coordinates(printer.kept, "x")
    head = f"def {name}({', '.join(pointers)}, XBLOCK: tl.constexpr, RBLOCK: tl.constexpr):"
    source = f"@triton.jit\n{head}\n" + textwrap.indent("\n".join([*lines, *body]), "    ")
    grid = (ceil_div(printer.elements, tile.x), splits)
    return Launch(name, source, pointers, grid, {"XBLOCK": tile.x, "RBLOCK": tile.r}, tile.warps)


def _is_wide(printer: TilePrinter) -> bool:
    """Whether an element's index may not fit into 32 bits."""
    return max(_reach(printer.plan), printer.elements * max(printer.length, 1)) >= 1 << 31


def _reach(plan: Plan) -> int:
    """The largest element offset of any access."""
    return max((a.offset + sum(loop.size * abs(stride) for loop, stride in a.strides.items()) for a in plan.accesses),
               default=0)  # fmt: skip


def _block_lines(printer: TilePrinter, start: str) -> list[str]:
    lines = [f"r = {start} + tl.arange(0, RBLOCK)[None, :]"] if start else ["r = tl.arange(0, RBLOCK)[None, :]"]
    if printer.partial():
        lines.append(f"rmask = r < {printer.length}")
    return lines + printer.coordinates(printer.plan.inner, "r")


def _contribution(printer: TilePrinter, value: Value) -> str:
    text = printer.ref(value.args[0])
    if value.compute not in ("f32", "f64"):
        raise Unsupported(f"a reduction of {value.compute}")
    if value.args[0].compute != value.compute:
        text = f"{text}.to({TYPES[value.compute]})"
    return printer.masked(f"tl.broadcast_to({text}, [XBLOCK, RBLOCK])", value, _IDENTITY[value.attrs["kind"]])


def _whole(printer: TilePrinter) -> list[str]:
    """Everything in registers: values of kept and reduced scope stand in one sequence."""
    plan = printer.plan
    scope = printer.row = printer.lane = Scope()
    for level in range(plan.depth):
        for value in plan.reductions(level):
            text = _FOLD[value.attrs["kind"]].format(_contribution(printer, value))
            scope.lines.append(f"t{plan.values.index(value)} = {text}[:, None]")
            scope.names[(value, ())] = f"t{plan.values.index(value)}"
        scope.lines += [printer.store(value, access) for value, access in plan.full_stores(level)]
    scope.lines += [printer.store(value, access) for value, access in plan.kept_stores()]
    block = _block_lines(printer, "") if plan.inner else []
    return [*block, *(scope.lines if _is_wide(printer) else rerolled(scope.lines))]


def _blocks(printer: TilePrinter) -> list[str]:
    """One loop over blocks of the row per pass."""
    plan = printer.plan
    row = printer.row
    for level in range(plan.depth):
        row.lines += _pass(printer, level, "0", str(printer.length))
        for value in plan.reductions(level):
            number = plan.values.index(value)
            peak = f"t{plan.values.index(plan.peaks[value])}" if value in plan.peaks else ""
            row.lines.append(f"t{number} = {_folded(plan, value, peak)}{_nothing_about_infinity(peak)}")
            row.names[(value, ())] = f"t{number}"
    row.lines += [printer.store(value, access) for value, access in plan.kept_stores()]
    return row.lines


def _pass(printer: TilePrinter, level: int, low: str, high: str) -> list[str]:
    plan = printer.plan
    reductions, stores = plan.reductions(level), plan.full_stores(level)
    if not reductions and not stores:
        return []
    lane = printer.lane = Scope()
    for value in reductions:
        number = plan.values.index(value)
        if value in plan.peaks:
            lane.lines += _grown(printer, plan.peaks[value], number)
        else:
            joined = _JOIN[value.attrs["kind"]].format(f"a{number}", _contribution(printer, value))
            lane.lines.append(f"a{number} = {joined}")
    lane.lines += [printer.store(value, access) for value, access in stores]
    lines = [f"carry{plan.values.index(v)} = tl.zeros([XBLOCK, 1], {TYPES[v.compute]})" for v in plan.scans]
    for value in reductions:
        number = plan.values.index(value)
        starts = {f"a{number}": value, **({f"c{number}": plan.peaks[value]} if value in plan.peaks else {})}
        for name, of in starts.items():
            lines.append(f"{name} = tl.full([XBLOCK, RBLOCK], {_IDENTITY[of.attrs['kind']]}, {TYPES[of.compute]})")
    body = "\n".join([*_block_lines(printer, "start"), *lane.lines])
    return [*lines, f"for start in range({low}, {high}, RBLOCK):", textwrap.indent(body, "    ")]


def _grown(printer: TilePrinter, peak: Value, number: int) -> list[str]:
    """Statements that take one more block into each lane's maximum `c` and the sum of exponentials `a` about it."""
    added = printer.masked(_power(f"d{number}", f"e{number}"), peak, "0.0")
    return [
        f"d{number} = {_contribution(printer, peak)}",
        f"e{number} = larger(c{number}, d{number})",
        f"a{number} = a{number} * {_power(f'c{number}', f'e{number}')} + {added}",
        f"c{number} = e{number}",
    ]


def _power(value: str, peak: str) -> str:
    """exp(value - peak), and 1 for the peak itself where it is infinite."""
    return f"tl.where({value} == {peak}, 1.0, libdevice.exp({value} - {peak}))"


def _folded(plan: Plan, value: Value, peak: str) -> str:
    """What the lanes of a reduction come to; of a sum of exponentials about `peak`."""
    number = plan.values.index(value)
    lanes = f"a{number} * {_power(f'c{number}', peak)}" if value in plan.peaks else f"a{number}"
    return f"{_FOLD[value.attrs['kind']].format(lanes)}[:, None]"


def _nothing_about_infinity(peak: str) -> str:
    """What a finished sum is added to, so that about an infinite maximum it is nan, as in PyTorch."""
    return f" + ({peak} - {peak})" if peak else ""


# ── rows shared by several programs ───────────────────────────────────────────────────────────────


def partials(plan: Plan) -> dict[str, tuple[tuple[int, ...], str]]:
    """Name, shape and dtype of the partial results that the kernels of a plan exchange: [split, kept]."""
    tile = tile_of(plan)
    if tile.mode != "split":
        return {}
    elements = plan.rows * (1 if plan.row else plan.vector.size)
    return {f"part{plan.values.index(v)}": ((tile.splits, elements), v.compute) for v in plan.reduces}


def _split_level(plan: Plan, tile: Tile, name: str, level: int) -> list[Launch]:
    """The kernel of one pass; after the last pass, the one that stores values per kept index."""
    printer = TilePrinter(plan, tile)
    names = list(partials(plan))
    _joined(printer, level)
    if level == plan.depth:
        body = [printer.store(value, access) for value, access in plan.kept_stores()]
        lines = [*printer.row.lines, *body]
        return [_kernel(printer, f"{name}_end", lines, names, 1)] if body else []
    size = ceil_div(ceil_div(printer.length, tile.r), tile.splits) * tile.r
    bounds = [f"low = tl.program_id(1) * {size}", f"high = tl.minimum(low + {size}, {printer.length})"]
    body = _pass(printer, level, "low", "high")
    if not body:
        return []
    keep = []
    for value in plan.reductions(level):
        number = plan.values.index(value)
        place = f"part{number} + tl.program_id(1) * {printer.elements} + x"
        peak = f"o{plan.values.index(plan.peaks[value])}" if value in plan.peaks else ""
        keep.append(f"o{number} = {_folded(plan, value, peak)}")
        keep.append(f"tl.store({place}, o{number}, xmask)")
    lines = [*bounds, *printer.row.lines, *body, *keep]
    return [_kernel(printer, f"{name}_{level}", lines, names, tile.splits)]


def _part(printer: TilePrinter, value: Value) -> str:
    """The partial results of a reduction."""
    place = f"part{printer.plan.values.index(value)} + s * {printer.elements} + x"
    return f"tl.load({place}, xmask, {_IDENTITY[value.attrs['kind']]})"


def _joined(printer: TilePrinter, level: int) -> None:
    """Define the reductions that earlier kernels left as partial results."""
    plan, row = printer.plan, printer.row
    ready = [value for value in plan.reduces if plan.levels[value] <= level]
    if ready:
        row.lines.append(f"s = tl.arange(0, {printer.tile.splits})[None, :]")
    for value in ready:
        number = plan.values.index(value)
        text, peak = _part(printer, value), ""
        if value in plan.peaks:
            own, peak = _part(printer, plan.peaks[value]), f"t{plan.values.index(plan.peaks[value])}"
            text = f"{text} * {_power(own, peak)}"
        fold = _FOLD[value.attrs["kind"]].format(text)
        row.lines.append(f"t{number} = {fold}[:, None]{_nothing_about_infinity(peak)}")
        row.names[(value, ())] = f"t{number}"
