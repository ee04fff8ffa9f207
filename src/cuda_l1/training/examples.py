"""What stage 1 learns from: rows of right variants as questions with 0 to k scored variants, and the answers to them.

The answers have the form that `prompts.parse_reply` reads, checked on each. What they say under *Performance Analysis*
and *Algorithm Design* is made by rule from what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeVar

from cuda_l1.config import PromptSettings
from cuda_l1.errors import UsageError
from cuda_l1.prelude import expanded
from cuda_l1.prompts.build import render
from cuda_l1.prompts.continuation import continuation
from cuda_l1.prompts.reply import parse_reply
from cuda_l1.prompts.sections import ANALYSIS, CODE, DESIGN
from cuda_l1.training.recipe import Recipe
from cuda_l1.training.renaming import renamed
from cuda_l1.training.run_directory import partial_of
from cuda_l1.training.side_processes import side_processes
from cuda_l1.types import Exemplar, Prompt, Task, detect_language

T = TypeVar("T")
MANY = 5000
"""Rows that processes of their own work on: it takes seconds to start these."""
NOISE = 1.05
"""Speed-ups that a single screen each has measured are told apart from here on."""
PARTS = 64
"""That many rows are dealt out in, tasks whole."""


class Row(NamedTuple):
    """A right variant of a task, as `cuda-l1 collect` stores it."""

    split: str
    task_id: str
    task_sha: str
    suite: str
    reference: str
    variant: str
    """Of one that nobody has judged a line may stand for each prelude."""
    candidate_id: str
    by: str
    techniques: list[str]
    rationale: str
    speedup_eager: float | None
    """None: nobody has judged it."""
    device_name: str
    licence: str
    overlaps: str | None

    @property
    def score(self) -> float:
        """The speed-up of one that is judged."""
        assert self.speedup_eager is not None
        return self.speedup_eager

    @property
    def label(self) -> str:
        """Who wrote it, in a few words."""
        return " + ".join(self.techniques) or self.by

    @property
    def task(self) -> Task:
        """The task, without weights of its own."""
        return Task(suite=self.suite, name=self.task_id.partition("@")[0].partition("/")[2], source=self.reference)


class Example(NamedTuple):
    """A question and the answer to learn."""

    prompt: Prompt
    completion: str
    row: Row
    exemplars: int
    """Variants that the question shows."""


def read_rows(folder: Path, *, are_judged: bool = True) -> list[Row]:
    """The rows of a data set that `cuda-l1 collect` has written, or with `are_judged` off of one that `write_rows` has
    and nobody judged. Raises UsageError: there is none, or it is damaged."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise UsageError("a data set is parquet, which needs pyarrow: pip install 'cuda-l1[train]'") from None
    files = sorted((folder / "data").glob("*.parquet"))
    if not files:
        raise UsageError(
            f"{folder}: no data set there (data/*.parquet); name a folder that `cuda-l1 collect` has written"
        )
    found: list[Row] = []
    for file in files:
        try:
            table = parquet.read_table(file, columns=list(Row._fields)).select(Row._fields).cast(_schema())
            rows = [Row(**values) for values in table.to_pylist()]
        except (ArrowException, OSError) as error:
            raise _damaged(file, " ".join(str(error).split())[:120]) from error
        for number, row in enumerate(rows, start=1):
            if problem := _problem(row, are_judged=are_judged):
                raise _damaged(file, f"row {number}: {problem}")
        found += rows
    return found


def _damaged(file: Path, why: str) -> UsageError:
    return UsageError(f"{file}: not what `cuda-l1 collect` writes ({why}); collect it anew, or restore a copy")


def _problem(row: Row, *, are_judged: bool) -> str | None:
    """What a row lacks that `collect` writes into each."""
    may_lack = ("overlaps",) if are_judged else ("overlaps", "speedup_eager")
    for name, value in zip(Row._fields, row, strict=True):
        if value is None and name not in may_lack:
            return f"no {name}"
    if row.speedup_eager is not None and not 0 < row.speedup_eager < math.inf:
        return f"speedup_eager is {row.speedup_eager}"
    return None


def write_rows(file: Path, rows: Sequence[Row]) -> None:
    """Writes what `read_rows` reads from the folder above `data`, whole or not at all. Raises OSError."""
    from pyarrow import Table, parquet

    file.parent.mkdir(parents=True, exist_ok=True)
    partial = partial_of(file)
    parquet.write_table(
        Table.from_pylist([row._asdict() for row in rows], schema=_schema()), partial, compression="zstd"
    )
    partial.replace(file)


def _schema() -> Any:
    from pyarrow import float64, list_, schema, string

    own = {"techniques": list_(string()), "speedup_eager": float64()}
    return schema([(name, own.get(name, string())) for name in Row._fields])


def over_tasks(rows: Sequence[Row], work: Callable[[list[Row]], T]) -> list[T]:
    """What `work` makes of the rows of some tasks, part by part, on all cores where there are many; the same on however
    many cores. Raises InfrastructureError where a process that works dies.
    """
    tasks = list(by_task(rows))
    size = math.ceil(len(tasks) / PARTS) or 1
    parts = [[row for task in tasks[at : at + size] for row in task] for at in range(0, len(tasks), size)]
    if len(rows) < MANY:
        return list(map(work, parts))
    with side_processes(PARTS) as pool:
        return list(pool.map(work, parts))


def by_task(rows: Sequence[Row]) -> Iterable[list[Row]]:
    """The rows of each task, in the order of the first ones."""
    of_task: dict[str, list[Row]] = {}
    for row in rows:
        of_task.setdefault(row.task_sha, []).append(row)
    return of_task.values()


def examples_by(recipe: Recipe, rows: Sequence[Row]) -> Iterator[Example]:
    """The examples that stage 1 of a recipe makes of rows."""
    return examples_of(
        rows,
        settings=recipe.prompt.settings,
        exemplars=recipe.sft.exemplars,
        seed=recipe.run.seed,
        other_names=recipe.sft.other_names,
        tellings=recipe.sft.tellings,
        faster=recipe.sft.answers == "faster",
    )


def examples_of(
    rows: Sequence[Row],
    *,
    settings: PromptSettings,
    exemplars: int,
    seed: int,
    other_names: float = 0.0,
    tellings: int = 1,
    faster: bool = False,
) -> Iterator[Example]:
    """Each row as the answer to questions that show 0 to `exemplars` other variants of its task from the same device;
    with `faster` a judged one beside those alone that it beats by more than `NOISE`, and beside itself where none of
    the task's beats it so: what cannot be beaten is written again.

    Contrastive questions come with the one-shot question of CUDA-L1's first stage beside them. The judged rows that are
    trained on are told `tellings` times. A row that nobody has judged is told once, in a compact question with as many
    others of its kind, without scores, as chance has it; a contrastive question says that what it shows is right, so
    there it shows none. A share `other_names` of the judged ones that are trained on is told under other names
    ([`renaming`](renaming.py)). The same arguments give the same examples.
    """
    siblings: dict[Hashable, list[Row]] = {}
    for row in rows:
        siblings.setdefault(_kin(row), []).append(row)
    for row in rows:
        others = [other for other in siblings[_kin(row)] if other.candidate_id != row.candidate_id]
        if faster and row.speedup_eager is not None:
            is_unbeaten = all(other.score <= NOISE * row.score for other in others)
            others = [other for other in others if row.score > NOISE * other.score] + [row] * is_unbeaten
        if settings.kind == "contrastive":
            yield _example(row, [], settings.model_copy(update={"kind": "one-shot"}))
        is_told_often = row.speedup_eager is not None and row.split == "train"
        for count, telling in _tellings(row, len(others), settings, exemplars, seed, tellings if is_told_often else 1):
            rng = Random(f"{seed} {row.candidate_id} {count}" + (f" {telling}" if telling else ""))
            shown = rng.sample(others, count)
            if is_told_often and rng.random() < other_names:
                yield _example(*_renamed(row, shown, rng), settings)
            else:
                yield _example(row, shown, settings)


def _kin(row: Row) -> Hashable:
    """What rows that stand in one question share: the task, its names, the device, and whether they are measured."""
    return row.task_sha, row.reference, row.device_name, row.speedup_eager is None


def _tellings(
    row: Row, others: int, settings: PromptSettings, exemplars: int, seed: int, times: int
) -> Iterator[tuple[int, int]]:
    """(how many of the others a question shows, number of its telling) for each question that a row answers."""
    most = 0 if settings.kind == "one-shot" else min(exemplars, others)
    if row.speedup_eager is not None:
        yield from ((count, telling) for telling, count in product(range(times), range(most + 1)))
    else:
        yield Random(f"{seed} {row.candidate_id}").randint(0, most if settings.kind == "compact" else 0), 0


def _renamed(row: Row, shown: Sequence[Row], rng: Random) -> tuple[Row, list[Row]]:
    told = [row, *shown]
    reference, variants = renamed(row.reference, [each.variant for each in told], rng)
    first, *others = (
        each._replace(reference=reference, variant=variant) for each, variant in zip(told, variants, strict=True)
    )
    return first, others


def _example(row: Row, shown: Sequence[Row], settings: PromptSettings) -> Example:
    prompt = render(row.task, exemplars=[_exemplar(each) for each in shown], settings=settings)
    return Example(prompt, reply_of(row, shown, settings), row, len(shown))


def _exemplar(row: Row) -> Exemplar:
    return Exemplar(
        candidate_id=row.candidate_id,
        source=row.variant,
        language=detect_language(row.variant),
        label=row.label,
        score=row.speedup_eager,
    )


def reply_of(row: Row, shown: Sequence[Row], settings: PromptSettings) -> str:
    """The answer that a policy should have given; it reads back as the row's variant.

    Raises UsageError where it does not, which names the variant.
    """
    source = continuation(row.reference, row.variant) if settings.kind == "compact" else row.variant
    text = f"```python\n{source.strip(chr(10))}\n```\n"
    if settings.kind != "one-shot":
        text = f"## {DESIGN}\n{design(row)}\n\n## {CODE}\n{text}"
        if settings.analysis:
            text = f"## {ANALYSIS}\n{analysis(shown)}\n\n{text}"
    read = parse_reply(text, kind=settings.kind, reference=row.reference)
    if read.source is None or read.source.strip() != expanded(row.variant).strip():
        raise UsageError(
            f"{row.task_id}: variant {row.candidate_id[:12]} does not read back from a reply ({read.detail})"
        )
    return text


def analysis(shown: Sequence[Row]) -> str:
    """What the author of each variant shown says that it does; where they are measured, which is the fastest, and by
    how much."""
    if not shown:
        return "No variant is measured yet."
    if shown[0].speedup_eager is None:
        return "\n".join(f"Nobody has measured variant {at}: {said(row)}" for at, row in enumerate(shown, start=1))
    best = max(shown, key=lambda row: row.score)
    number = shown.index(best) + 1
    lines = [f"Variant {number} is the fastest, {_times(best.score)} as fast as the original: {said(best)}"]
    for number, row in enumerate(shown, start=1):
        if row is not best:
            lines.append(f"Variant {number} takes {_times(best.score / row.score)} as long: {said(row)}")
    return "\n".join(lines)


def design(row: Row) -> str:
    """What the variant does, and how fast it was measured to be, where it was."""
    if row.speedup_eager is None:
        return f"{said(row)} Nobody has measured it."
    return f"{said(row)} It should be {_times(row.speedup_eager)} as fast as the original."


def said(row: Row) -> str:
    """What its author says that a variant does, as a sentence."""
    text = " ".join(row.rationale.split()) or row.label
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _times(factor: float) -> str:
    """One digit behind the point: the next ones are noise, which nobody can learn."""
    return f"{factor:.1f} times"
