"""Loops out of repetition: a recurrence that was unrolled step by step becomes a loop again.

A graph holds each step of `for t in range(T)` by itself, and a kernel printed from it has lines for each: it takes half
a minute to compile, and holds every step's result in registers until its end. Here the printed lines are searched for a
group that repeats, in which only names and addresses differ, and differ evenly. Steps are taken several at a time,
loads first and stores last: a compiler moves no load over a store that may alias it, and the loads hide each other's
latency.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

TOGETHER = 8
"""Steps in one turn of the loop."""
LEAST_TURNS = 3
"""Fewer turns than this are not worth a loop."""
MOST_LINES = 20_000
LONGEST_GROUP = 96
MOST_FORMS = 200
"""Lines of so many kinds repeat nothing that is worth the search."""

TURN = "for turn in range(0, "
"""How the line begins that opens a loop."""
HANDS_ON = "    k"
"""How a line of a loop begins that hands a value to later turns."""

_NAME = re.compile(r"\b[vtp]\d+\b")
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
_DEFINITION = re.compile(r"([vtp]\d+) = (.+)")
_STORE = "tl.store("
NAME, NUMBER = "\0", "\1"
"""What stands in a form for a name and for a number."""
_HOLE = re.compile(f"[{NAME}{NUMBER}]")


@dataclass(frozen=True)
class _Line:
    """One statement. Its form has a hole for each name that it reads and, where it has an address, for each number."""

    defines: str | None
    form: str
    reads: tuple[str, ...]
    numbers: tuple[int, ...]
    kind: str
    """`load`, `store` or `compute`."""

    def text(
        self, reads: Sequence[str] | None = None, numbers: Sequence[str] | None = None, defines: str | None = None
    ) -> str:
        """The statement, with other names and numbers where they are given."""
        names, values = iter(reads or self.reads), iter(numbers or map(str, self.numbers))
        filled = _HOLE.sub(lambda hole: next(names if hole[0] == NAME else values), self.form)
        return f"{defines or self.defines} = {filled}" if self.defines else filled

    def beyond(self, other: _Line) -> list[int]:
        """By how much its numbers exceed those of a line of the same form."""
        return [mine - its for mine, its in zip(self.numbers, other.numbers, strict=True)]


def rerolled(lines: Sequence[str]) -> list[str]:
    """The same statements with a loop where a group of them repeats often enough, else `lines` as they are.

    `lines` define each name once, `name = expression`, or store; no store may touch what a load reads.
    """
    statements = _parsed(lines) if TOGETHER * LEAST_TURNS <= len(lines) <= MOST_LINES else []
    if len({statement.form for statement in statements}) > MOST_FORMS:
        return list(lines)
    for order in (_stores_early, _step_by_step) if statements else ():
        ordered = order(statements)
        found = _repetition(ordered)
        printed = _Loop(ordered, *found).printed() if found else []
        if printed:
            return printed
    return list(lines)


def _parsed(lines: Sequence[str]) -> list[_Line]:
    """Statements without aliases; empty where a line is none."""
    same: dict[str, str] = {}
    defined: set[str] = set()
    found: list[_Line] = []
    for line in lines:
        match = _DEFINITION.fullmatch(line)
        if match is None and not line.startswith(_STORE):
            return []
        text = _NAME.sub(lambda name: same.get(name[0], name[0]), match[2] if match else line)
        if match and _NAME.fullmatch(text):
            same[match[1]] = text
            continue
        found.append(_statement(match[1] if match else None, text))
        if not defined.issuperset(found[-1].reads):
            return []
        defined |= {match[1]} if match else set()
    return found


def _stores_early(statements: Sequence[_Line]) -> list[_Line]:
    """In their order, save that each store follows what it stores."""
    order: list[_Line] = []
    behind: dict[str | None, list[_Line]] = {}
    places = _places(statements)
    for store in statements:
        if store.defines is None:
            behind.setdefault(max(store.reads, key=places.__getitem__, default=None), []).append(store)
    order += behind.get(None, ())
    for statement in statements:
        if statement.defines is not None:
            order += [statement, *behind.get(statement.defines, ())]
    return order


def _step_by_step(statements: Sequence[_Line]) -> list[_Line]:
    """What depends on an earlier statement of its own form, and stores, by how long a chain leads to them; all else
    directly before its first reader. A kernel is printed result by result: of two that a recurrence gives, the steps of
    the one would stand behind all steps of the other."""
    by_name = {statement.defines: statement for statement in statements if statement.defines}
    length: dict[str | None, int] = {}
    forms: dict[str, frozenset[str]] = {}
    roots: list[tuple[int, str, int]] = []
    for index, statement in enumerate(statements):
        above = frozenset[str]().union(*(forms[name] | {by_name[name].form} for name in statement.reads))
        steps = 1 + max((length[name] for name in statement.reads), default=0)
        if statement.defines is not None:
            forms[statement.defines], length[statement.defines] = above, steps
        if statement.defines is None or statement.form in above:
            roots.append((steps, statement.form, index))
    order: dict[int, _Line] = {}
    for _, _, index in sorted(roots):
        pending = [statements[index]]
        while pending:
            missing = [by_name[name] for name in pending[-1].reads if id(by_name[name]) not in order]
            if missing:
                pending.append(missing[0])
            else:
                last = pending.pop()
                order.setdefault(id(last), last)
    return list(order.values())


def _places(statements: Sequence[_Line]) -> dict[str, int]:
    """Where each name is defined."""
    return {statement.defines: index for index, statement in enumerate(statements) if statement.defines}


def _statement(defines: str | None, text: str) -> _Line:
    reads = tuple(_NAME.findall(text))
    form = _NAME.sub(NAME, text)
    kind = "store" if defines is None else "load" if "tl.load(" in text else "compute"
    numbers: tuple[int, ...] = ()
    if kind != "compute":
        numbers = tuple(map(int, _NUMBER.findall(form)))
        form = _NUMBER.sub(NUMBER, form)
    return _Line(defines, form, reads, numbers, kind)


def _repetition(lines: Sequence[_Line]) -> tuple[int, int, int] | None:
    """Where a group begins that repeats, its length and how often: what covers most lines, the shortest group first."""
    shapes = [(line.kind, line.form) for line in lines]
    best: tuple[int, int, int] | None = None
    covered = 0
    for period in range(1, min(LONGEST_GROUP, len(lines) // 2) + 1):
        start = 0
        while start + period < len(lines):
            end = start
            while end + period < len(lines) and shapes[end] == shapes[end + period]:
                end += 1
            times = (end - start) // period + 1
            if times * period > covered and times >= TOGETHER * LEAST_TURNS:
                best, covered = (start, period, times), times * period
            start = end + 1
    return best


class _Loop:
    """A group of `period` lines that stands `times` times from `start` on; a step is one of these."""

    def __init__(self, lines: Sequence[_Line], start: int, period: int, times: int) -> None:
        self.lines, self.start, self.period = lines, start, period
        self.places = _places(lines)
        self.first, self.last = self._even(times)
        self.operands = [self._operands(position) for position in range(period)]

    def printed(self) -> list[str]:
        """All lines with the loop in its place; empty where it cannot be written or is not worth it."""
        end = self.start + (self.last + 1) * self.period
        left = self._left(end)
        kept = {(position, back) for operands in self.operands for _, position, ago in operands
                for back in range(1, ago + 1)} | set(left.values())  # fmt: skip
        ages: dict[int, int] = {}
        for position, ago in kept:
            ages[position] = max(ago, ages.get(position, 0))
        # What a kept value's shape follows from is handed from line to line, and through each of them once at most: it
        # has the shape that it keeps after as many steps as the lines' oldest values are old together.
        turns = (self.last + 1 - self.first - max(sum(ages.values()), 1)) // TOGETHER
        if turns < LEAST_TURNS or any(ago > TOGETHER for ago in ages.values()):
            return []
        entry = self.last + 1 - turns * TOGETHER
        begin = self.start + entry * self.period
        if any(self.places[name] >= begin for operands in self.operands for name, _, _ in operands if name):
            return []
        renamed = {name: _kept(*place) for name, place in left.items()}
        return [
            *(line.text() for line in self.lines[:begin]),
            *(f"{_kept(q, ago)} = {self._line(entry - ago, q).defines}" for q, ago in sorted(kept)),
            f"{TURN}{turns}):",
            *(f"    {line}" for line in self._turn(entry)),
            *(f"    {_kept(q, ago)} = {_made(q, TOGETHER - ago)}" for q, ago in sorted(kept)),
            *(line.text([renamed.get(name, name) for name in line.reads]) for line in self.lines[end:]),
        ]

    def _line(self, step: int, position: int) -> _Line:
        return self.lines[self.start + step * self.period + position]

    def _even(self, times: int) -> tuple[int, int]:
        """The longest run of steps of which each follows from the one before: its first and its last."""
        best, first = (0, 0), 0
        for step in range(1, times):
            if not self._follows(step, first):
                first = step
            if step - first > best[1] - best[0]:
                best = (first, step)
        return best

    def _follows(self, step: int, first: int) -> bool:
        """Whether names and numbers of a step continue those of the step before, as that continued its own."""
        for position in range(self.period):
            line, before = self._line(step, position), self._line(step - 1, position)
            moves = self._moves(line, before)
            if not all(move in (0, self.period) for move in moves):
                return False
            if step - 1 > first:
                oldest = self._line(step - 2, position)
                if moves != self._moves(before, oldest) or line.beyond(before) != before.beyond(oldest):
                    return False
        return True

    def _moves(self, line: _Line, before: _Line) -> list[int]:
        """How many lines further down each name is defined that a line reads, than that of the same line a step ago."""
        return [self.places[name] - self.places[earlier]
                for name, earlier in zip(line.reads, before.reads, strict=True)]  # fmt: skip

    def _operands(self, position: int) -> list[tuple[str, int, int]]:
        """Of each name that this line of a step reads: the name, where it is always the same; else the line that
        defines it, and how many steps ago."""
        found = []
        line, before = self._line(self.last, position), self._line(max(self.last - 1, 0), position)
        for name, earlier in zip(line.reads, before.reads, strict=True):
            step, defining = divmod(self.places[name] - self.start, self.period)
            found.append((name, 0, 0) if name == earlier else ("", defining, self.last - step))
        return found

    def _left(self, end: int) -> dict[str, tuple[int, int]]:
        """What lines behind the loop read of it: the line of a step, and how many steps before the loop's end."""
        begin = self.start + self.first * self.period
        read = {name for line in self.lines[end:] for name in line.reads if begin <= self.places[name] < end}
        places = {name: divmod(self.places[name] - self.start, self.period) for name in read}
        return {name: (position, self.last + 1 - step) for name, (step, position) in places.items()}

    def _turn(self, entry: int) -> list[str]:
        """Several steps: what they load, then what they compute, then what they store."""
        early: list[str] = []
        computed: list[str] = []
        late: list[str] = []
        for part in range(TOGETHER):
            for position in range(self.period):
                line = self._line(entry + part, position)
                fixed = all(name for name, _, _ in self.operands[position])
                group = late if line.kind == "store" else early if line.kind == "load" and fixed else computed
                group.append(self._text(entry, part, position))
        return early + computed + late

    def _text(self, entry: int, part: int, position: int) -> str:
        """One line of the loop's body: line `position` of the step `part` of a turn."""
        line = self._line(entry + part, position)
        reads = [
            name or (_made(defining, part - ago) if part >= ago else _kept(defining, ago - part))
            for name, defining, ago in self.operands[position]
        ]
        steps = line.beyond(self._line(entry + part - 1, position))
        numbers = [f"({number} + turn * {step * TOGETHER})" if step else str(number)
                   for number, step in zip(line.numbers, steps, strict=True)]  # fmt: skip
        return line.text(reads, numbers, _made(position, part))


def _made(position: int, part: int) -> str:
    """The name of what line `position` of a turn's step `part` defines."""
    return f"s{position}_{part}"


def _kept(position: int, ago: int) -> str:
    """The name of what line `position` defined `ago` steps before a turn begins."""
    return f"k{position}_{ago}"
