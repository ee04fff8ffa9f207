"""A planned nest as one C++ function: parallel loops over what is kept, vector loops over what lies contiguously.

Values are computed in the outermost scope in which they do not change: `row` (once per kept index), `chunk` (once
per vector, where the vector loop is a kept one), `mid` (in the reduced loops outside the vector), `lane`.
Reductions add up at most a few hundred single-precision terms per lane before they are carried into doubles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from cuda_l1.proposers.techniques.codegen.axes import Atom, count, resolve
from cuda_l1.proposers.techniques.codegen.cpp_expr import CARRIER, VECTOR, converted, literal, pointwise
from cuda_l1.proposers.techniques.codegen.ir import COSTS, VIEWS, Unsupported, Value
from cuda_l1.proposers.techniques.codegen.plan import Access, Pins, Plan, chosen_index, fixed_index

SCRATCH_BYTES = 256 << 10
"""A row of intermediate results is kept when it fits into the second-level cache beside its neighbours."""
SPLIT_ROWS, SPLIT_ELEMENTS = 16, 1 << 15
"""Fewer rows than this, each at least this long, are cut into blocks so that every thread has work."""
BLOCK = 4096
"""Elements of a block, of a run of single-precision additions in a row, and of a task of an element-wise nest."""
STREAM_WORK = 16
"""Stores past the caches pay in nests that wait for memory; between long computations they measured slower."""


@dataclass
class Scope:
    """Lines of one nesting level and the values they define."""

    lines: list[str] = field(default_factory=list)
    names: dict[object, str] = field(default_factory=dict)


class NestPrinter:
    """Prints one plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.loop_names = {loop: f"a{i}" for i, loop in enumerate(plan.outer)}
        self.loop_names |= {loop: f"r{i}" for i, loop in enumerate(plan.inner)}
        self.loop_names[plan.vector] = "j"
        self.vector_atoms = set(plan.merged.get(plan.vector, [plan.vector]))
        self.peaked = set(_peaked(plan.values))
        self.inner_atoms = {a for loop in plan.inner for a in plan.merged[loop]}
        self.split = plan.row and plan.rows < SPLIT_ROWS and count(plan.inner) >= SPLIT_ELEMENTS and not plan.scans
        self.scratch = {} if self.split else self._scratch()
        self.scopes: dict[str, Scope] = {}
        self.unit, self.units = 0, 1
        self.fresh = 0
        self.most_units = 4
        self.level = 0

    # ── values ────────────────────────────────────────────────────────────────────────────────────

    def scope_of(self, value: Value, pins: Pins) -> str:
        atoms = self.plan.depends[value] - set(pins)
        if self.plan.row:
            return "lane" if atoms & self.vector_atoms else "mid" if atoms & self.inner_atoms else "row"
        return "lane" if atoms & self.inner_atoms else "chunk" if atoms & self.vector_atoms else "row"

    def ref(self, value: Value, pins: Pins | None = None) -> str:
        """The variable that holds `value`, defined in its scope on first use."""
        pins = {atom: text for atom, text in (pins or {}).items() if atom in self._reach(value)}
        scope = self.scope_of(value, pins)
        unit = self.unit if scope in ("lane", "chunk") else 0
        key = (value, tuple(sorted((id(atom), text) for atom, text in pins.items())), unit)
        home = self.scopes[scope]
        if key not in home.names:
            text = self._expression(value, pins, scope)
            self.fresh += 1
            home.names[key] = f"v{self.fresh}"
            home.lines.append(f"const {VECTOR[value.compute]} v{self.fresh} = {text};")
            if not pins and scope == "lane" and self.scratch.get(value, ("", -1))[1] == self.level:
                home.lines.append(f"store<N>({self.scratch[value][0]} + {self._scratch_index()}, v{self.fresh});")
        return home.names[key]

    def _reach(self, value: Value) -> frozenset[Atom]:
        """Loops that the value, or anything it is computed from, is indexed by."""
        return self.plan.depends[value]

    def _expression(self, value: Value, pins: Pins, scope: str) -> str:
        if value in self.plan.loads:
            return self._load(self.plan.loads[value], pins, scope)
        if not pins and value in self.scratch and scope == "lane" and self._saved(value):
            return f"load<N>({self.scratch[value][0]} + {self._scratch_index()})"
        special = getattr(self, f"_on_{value.op}", None)
        if special is not None:
            return str(special(value, pins, scope))
        text = pointwise(value, [self.ref(arg, pins) for arg in value.args])
        return f"rounded({text})" if value in self.peaked else text

    def _on_const(self, value: Value, pins: Pins, scope: str) -> str:
        return literal(value.attrs["value"], value.compute)

    def _on_same(self, value: Value, pins: Pins, scope: str) -> str:
        return self.ref(value.args[0], pins)

    _on_reshape = _on_permute = _on_expand = _on_same

    def _on_slice(self, value: Value, pins: Pins, scope: str) -> str:
        start = value.attrs["start"] // value.shape[value.attrs["dim"]]
        return self.ref(value.args[0], {**pins, **fixed_index(self.plan.axes.pins[value], start, "L")})

    def _on_cat(self, value: Value, pins: Pins, scope: str) -> str:
        atoms = resolve([self.plan.axes.pins[value]])
        if len(atoms) != 1:
            raise Unsupported("parts spread over several loops")
        *others, text = [self.ref(arg, pins) for arg in value.args]
        number = pins.get(atoms[0]) or (self.loop_names[atoms[0]] if atoms[0] is not self.plan.vector else None)
        for index, other in reversed(list(enumerate(others))):
            if number is not None:
                text = f"({number} == {index} ? {other} : {text})"
            else:
                text = f"sel(mask({self._vector_index(1)} == {index}), {other}, {text})"
        return text

    def _on_at(self, value: Value, pins: Pins, scope: str) -> str:
        """The source at an index that is itself a value; out-of-range indices read the nearest element."""
        source, index = value.args
        atoms = resolve(self.plan.axes.ats[value])
        last = source.shape[value.attrs["dim"]] - 1
        chosen = converted(self.ref(index, pins), index.compute, "i64")
        if scope in ("row", "mid"):
            return self.ref(source, {**pins, **chosen_index(atoms, f"bounded({chosen}[0], {last}L)", "/")})
        access = self.plan.loads.get(source)
        if access is None or len(atoms) != 1:
            raise Unsupported("a lookup in something that is not in memory")
        base = f"{access.buffer.name} + {self._index(access, {**pins, atoms[0]: '0'}, with_vector=True)}"
        step, along = access.strides.get(atoms[0], 0), access.strides.get(self.plan.vector, 0)
        return f"gather<N>({base}, {chosen}, {step}L, {last}L, {along}L)"

    def _on_iota(self, value: Value, pins: Pins, scope: str) -> str:
        terms, radix = ["0"], 1
        moving = 0
        for atom in reversed(self.plan.axes.atoms(value)):
            if atom is self.plan.vector and atom not in pins:
                moving = radix
            else:
                terms.append(f"(i32)({pins.get(atom, self.loop_names.get(atom, '0'))}) * {radix}")
            radix *= atom.size
        fixed = f"splat({' + '.join(terms)})"
        return fixed if not moving else f"{fixed} + {self._vector_index(moving)}"

    def _vector_index(self, radix: int) -> str:
        return f"(splat((i32)({self._j()})) + lanes()) * {radix}"

    def _on_reduce(self, value: Value, pins: Pins, scope: str) -> str:
        raise Unsupported("a reduction read before it is complete")

    def _on_scan(self, value: Value, pins: Pins, scope: str) -> str:
        if pins or scope != "lane":
            raise Unsupported("a scan that does not run along its loop")
        return f"running({self.ref(value.args[0])}, {self._carry(value)})"

    def _carry(self, value: Value) -> str:
        return f"carry{self.plan.values.index(value)}_{self.unit}"

    # ── memory ────────────────────────────────────────────────────────────────────────────────────

    def _j(self) -> str:
        return "j" if self.unit == 0 else f"j + {self.unit} * W"

    def _index(self, access: Access, pins: Pins, with_vector: bool) -> str:
        terms = [f"{access.offset}L"] if access.offset else []
        for loop, stride in access.strides.items():
            if loop in pins:
                terms.append(f"({pins[loop]}) * {stride}L")
            elif loop is not self.plan.vector:
                terms.append(f"{self.loop_names[loop]} * {stride}L")
            elif with_vector:
                terms.append(f"({self._j()}) * {stride}L")
        return " + ".join(terms) or "0"

    def _load(self, access: Access, pins: Pins, scope: str) -> str:
        place = f"{access.buffer.name} + {self._index(access, pins, with_vector=True)}"
        stride = 0 if self.plan.vector in pins else access.strides.get(self.plan.vector, 0)
        if stride == 0:
            return f"one({place})"
        if stride == -1 and access.buffer.dtype == "f32":
            return f"backwards<N>({place})"
        return f"load<N>({place})" if stride == 1 else f"strided<N>({place}, {stride}L)"

    def store(self, value: Value, access: Access) -> str:
        """The statement that writes a value; a conversion that only the memory needs is left to the store."""
        inner = value.args[0] if value.op == "cast" and value.args[0].compute == value.compute else value
        wraps = value.op == "cast" and value.compute == "i32"
        text = self.ref(value if wraps else inner)
        place = f"{access.buffer.name} + {self._index(access, {}, with_vector=True)}"
        stride = access.strides.get(self.plan.vector, 0)
        if stride == 0:
            return f"store<1>({place}, {text});"
        if stride == 1 and access.buffer.streamed and self._waits_for_memory(value):
            return f"if (past) stream<N>({place}, {text}); else store<N>({place}, {text});"
        return f"store<N>({place}, {text});" if stride == 1 else f"store_strided<N>({place}, {stride}L, {text});"

    def _waits_for_memory(self, value: Value) -> bool:
        """Whether little is computed per element in the pass that stores `value`."""
        pending, seen = [value], set[Value]()
        while pending:
            step = pending.pop()
            kept = step in self.scratch and self._saved(step)
            if step in seen or step in self.plan.loads or kept or self.scope_of(step, {}) == "row":
                continue
            seen.add(step)
            pending.extend(step.args)
        return sum(COSTS.get(step.op, 1) for step in seen if step.op not in VIEWS) <= STREAM_WORK

    # ── what is kept between passes ───────────────────────────────────────────────────────────────

    def _scratch(self) -> dict[Value, tuple[str, int]]:
        """Expensive values that a later pass needs again: name of their memory and the pass that fills it."""
        plan, found = self.plan, dict[Value, tuple[str, int]]()
        done: dict[Value, int] = {}
        for level in range(plan.depth):
            roots = [value.args[0] for value in plan.reductions(level)] + [v for v, _ in plan.full_stores(level)]
            for value in self._walk(roots, done, found):
                done.setdefault(value, level)
        size = SCRATCH_BYTES // (4 if plan.row else 256)
        fits = count(plan.inner) * max(len(found), 1) <= size
        return found if fits else {}

    def _walk(self, roots: list[Value], done: dict[Value, int], found: dict[Value, tuple[str, int]]) -> Iterator[Value]:
        pending, seen = list(roots), set[Value]()
        while pending:
            value = pending.pop()
            if value in seen or value in self.plan.reduces or self.scope_of(value, {}) != "lane":
                continue
            seen.add(value)
            if value in found:
                continue
            if value in done and value.compute in CARRIER and self._cost(value) >= 8:
                found[value] = (f"kept{len(found)}", done[value])
                continue
            if value.op not in ("slice", "at") and value not in self.plan.loads:
                pending.extend(value.args)
        yield from seen

    def _cost(self, value: Value) -> int:
        if value in self.plan.loads or value.op == "reduce" or self.scope_of(value, {}) != "lane":
            return 0
        own = 8 if value.op == "scan" else COSTS.get(value.op, 1)
        return own + sum(self._cost(arg) for arg in value.args)

    def _saved(self, value: Value) -> bool:
        return self.scratch[value][1] < self.level

    def _scratch_index(self) -> str:
        linear = ""
        for loop in self.plan.inner:
            linear = f"({linear}) * {loop.size}L + " if linear else ""
            linear += self.loop_names[loop]
        return linear if self.plan.row else f"({linear}) * {self.units} * W + {self.unit} * W"

    def scratch_lines(self) -> list[str]:
        """Declarations of what is kept between passes."""
        elements = str(count(self.plan.inner)) if self.plan.row else f"{count(self.plan.inner)} * W * {self.most_units}"
        return [
            f"alignas(64) {CARRIER[value.compute]} {name}[{elements} + W];" for value, (name, _) in self.scratch.items()
        ]


def _peaked(values: Sequence[Value]) -> Iterator[Value]:
    """Single-precision values of which the largest or the smallest is sought."""
    for reduction in values:
        if reduction.op == "reduce" and reduction.attrs["kind"] != "sum" and reduction.compute == "f32":
            (value,) = reduction.args
            while value.op in ("reshape", "permute", "expand"):
                (value,) = value.args
            yield value
