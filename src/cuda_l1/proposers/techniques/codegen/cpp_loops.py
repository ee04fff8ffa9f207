"""A planned nest as one C++ function: the kind of loops that suits it, and its parameters."""

from __future__ import annotations

from cuda_l1.proposers.techniques.codegen.cpp_columns import print_columns
from cuda_l1.proposers.techniques.codegen.cpp_nest import NestPrinter
from cuda_l1.proposers.techniques.codegen.cpp_rows import print_rows
from cuda_l1.proposers.techniques.codegen.cpp_split import print_split_rows
from cuda_l1.proposers.techniques.codegen.cpp_text import loop
from cuda_l1.proposers.techniques.codegen.plan import Plan


def print_nest(plan: Plan, name: str) -> str:
    """The C++ function `name` that runs a plan.

    Its parameters are pointers in the order of `plan.memory`, the most threads to use, and whether large results
    are written past the caches.
    """
    printer = NestPrinter(plan)
    body = print_split_rows(printer) if printer.split else print_rows(printer) if plan.row else print_columns(printer)
    return "\n".join(loop(f"static void {name}({', '.join([*_declared(plan), 'int threads', 'bool past'])})", body))


def _declared(plan: Plan) -> list[str]:
    written = {access.buffer.name for _, access in plan.stores}
    types = {access.buffer.name: access.buffer.dtype for access in plan.accesses}
    return [f"{'' if name in written else 'const '}{kind}* {name}" for name, kind in types.items()]
