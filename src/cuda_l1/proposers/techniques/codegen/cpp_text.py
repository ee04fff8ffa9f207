"""Pieces of text that every kind of C++ loop nest is made of."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from cuda_l1.proposers.techniques.codegen.cpp_expr import CARRIER, VECTOR
from cuda_l1.proposers.techniques.codegen.cpp_nest import NestPrinter
from cuda_l1.proposers.techniques.codegen.ir import Unsupported, Value

FOLD = {"sum": "total", "max": "largest", "min": "smallest"}
JOIN = {"sum": "{0} + {1}", "max": "larger({0}, {1})", "min": "smaller({0}, {1})"}
START = {"sum": "0", "max": "-__builtin_inf()", "min": "__builtin_inf()"}
PAIR = {"sum": "{0} + {1}", "max": "vmax({0}, {1})", "min": "vmin({0}, {1})"}


def indent(lines: Sequence[str]) -> list[str]:
    """The lines one level deeper."""
    return [textwrap.indent(line, "  ") for line in lines]


def loop(head: str, body: Sequence[str]) -> list[str]:
    """`head { body }`."""
    return [head + " {", *indent(body), "}"]


def coordinates(printer: NestPrinter) -> list[str]:
    """Loop indices of the kept loops from the number of the row."""
    lines, radix = [], 1
    for atom in reversed(printer.plan.outer):
        lines.append(f"const i64 {printer.loop_names[atom]} = row / {radix} % {atom.size};")
        radix *= atom.size
    return lines[::-1]


def accumulator(value: Value) -> str:
    """The compute type that partial results of a reduction have."""
    if value.compute not in CARRIER:
        raise Unsupported(f"a reduction of {value.compute}")
    return value.compute


def parallel(tasks: str, work: int, body: Sequence[str], capture: str = "=") -> list[str]:
    """`body` over `begin..end`, shared among as many threads as `work` additions are worth."""
    head = f"parallel({tasks}, enough(threads, {work}L), [{capture}](i64 begin, i64 end)"
    return [head + " {", *indent(body), "});"]


def as_vector(value: Value, text: str) -> str:
    """The register `text` of a reduction's operand in the reduction's own compute type."""
    return text if value.compute == value.args[0].compute else f"to_{value.compute}({text})"


def wide(value: Value) -> str:
    """Sums are carried in doubles; extremes stay as they are."""
    return "vd" if value.attrs["kind"] == "sum" else VECTOR[accumulator(value)]


def identity(value: Value, vector: str) -> str:
    """What an accumulator of C++ type `vector` starts from."""
    kind = value.attrs["kind"]
    if kind == "sum":
        return "{}"
    return f"splat(({'f64' if vector == 'vd' else 'f32'}){START[kind]})"


def carries(printer: NestPrinter, kind: str, units: int) -> list[str]:
    """A running total per scan that this pass evaluates."""
    return [
        f"{kind} carry{printer.plan.values.index(v)}_{unit}{{}};" for v in printer.plan.scans for unit in range(units)
    ]
