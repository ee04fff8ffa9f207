"""A data set of variants to learn from, as `datasets.load_dataset(FOLDER)` reads it: parquet files and a card."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cuda_l1.errors import InfrastructureError, UsageError
from cuda_l1.export.writing import write_atomically
from cuda_l1.texts import many
from cuda_l1.types import Frozen

if TYPE_CHECKING:
    from types import ModuleType

Split = Literal["train", "validation"]
SPLITS: tuple[Split, ...] = ("train", "validation")
MARK = "<!-- written by cuda-l1 collect -->"
"""In the card: a folder with it may be written anew."""
INSTALL = "pip install pyarrow"


class Example(Frozen):
    """One row: a reference and a right variant of it."""

    split: Split
    """Of the computation: no graph is in two."""
    task_id: str
    """Suite, name and the beginning of `task_sha`."""
    task_sha: str
    """SHA-256 of the reference and its weights."""
    suite: str
    """Where the task came from: `file`, `kernelbook`, ..."""
    level: int | None
    """Its level, where the suite has levels."""
    graph_hash: str
    """Equal for equal computations, whatever their names and sizes."""
    reference: str
    """The task's text: `Model`, `get_inputs`, `get_init_inputs`."""
    variant: str
    """Text that defines `ModelNew`."""
    candidate_id: str
    """SHA-256 of task, language and variant."""
    language: str
    """Of the variant's fast path: `pytorch`, `cpp`, `cuda`, `triton`."""
    by: str
    """The model that wrote it, else the proposer."""
    proposer: str
    """`techniques`, `llm`, or `import` for what a public set brought along."""
    techniques: list[str]
    """Which, where techniques wrote it; the public set's name, where one brought it."""
    prompt_sha: str | None
    """Of the prompt that a model answered."""
    template: str | None
    """Name and hash of that prompt's template."""
    rationale: str
    """What its author says that it does."""
    tokens_in: int
    """Of that prompt."""
    tokens_out: int
    """Of the answer."""
    usd: float | None
    """What the model was paid; null where its price is unknown."""
    protocol: str
    """Under which it was judged."""
    precision_class: str
    """The most exact class whose bound held in every trial."""
    task_class: str
    """The class of the reference as it is."""
    clock: str
    """Of the speed-up: `device` on a GPU, `call` on a CPU."""
    speedup_eager: float
    """Against the reference; a single pair of processes, so without an interval."""
    device_name: str
    """Where it was judged."""
    torch: str
    """With which version."""
    record: str
    """Id of the verdict in the archive."""
    run: str
    """That the verdict belongs to."""
    licence: str
    """Of the reference, and of a variant that a public set brought along."""
    provenance: str
    """File, row and repository in a public set; else the suite."""
    overlaps: str | None
    """The evaluation task that this one is, or that the generator holds it out, where that was allowed."""


class CardFacts(Frozen):
    """What the card says beside the counts."""

    name: str
    sources: list[str]
    """Suites and files, without the folders of the machine."""
    attempts: int
    keep: int
    tasks: int
    """Asked for."""
    excluded: list[str]
    """Tasks of evaluation suites, a line each."""
    skipped: list[str]
    """Tasks that could not be judged, a line each."""
    unread: int
    """Rows of public sets that are no task."""
    compared: list[str]
    """The evaluation suites that were compared with."""


def check_folder(folder: Path) -> None:
    """Whether the set could be written there, before anything is paid for.

    Raises UsageError: no `pyarrow`, or a folder that holds something else.
    """
    _pyarrow()
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: is a file; name a folder for the data set")
    card = folder / "README.md"
    if folder.is_dir() and any(folder.iterdir()) and not (card.is_file() and MARK in card.read_text(errors="replace")):
        raise UsageError(f"{folder}: holds something else; name a new folder, or one that collect has written")


def write_dataset(folder: Path, examples: Sequence[Example], facts: CardFacts) -> dict[str, int]:
    """Writes the set, in place of an earlier one; returns the number of rows by split.

    Raises UsageError as `check_folder` does and for a folder that cannot be made, InfrastructureError for a full disk.
    """
    check_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be made: {error.strerror}; name another folder") from error
    by_split: dict[str, list[Example]] = {split: [] for split in SPLITS}
    for example in examples:
        by_split[example.split].append(example)
    sizes = {split: len(found) for split, found in by_split.items() if found}
    # The card first: it marks the folder as ours, should this be interrupted.
    write_atomically(folder / "README.md", _card(examples, sizes, facts))
    (folder / "data").mkdir(exist_ok=True)
    for split, found in by_split.items():
        target = folder / "data" / f"{split}-00000-of-00001.parquet"
        if found:
            _write_parquet(target, found)
        else:
            target.unlink(missing_ok=True)
    return sizes


def _write_parquet(target: Path, examples: Iterable[Example]) -> None:
    pyarrow = _pyarrow()
    from pyarrow import parquet

    table = pyarrow.Table.from_pylist([example.model_dump() for example in examples], schema=_schema(pyarrow))
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    os.close(handle)
    try:
        parquet.write_table(table, temporary, compression="zstd")
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except OSError as error:
        raise InfrastructureError(
            f"cannot write {target}: {error.strerror or error}; run the same command again"
        ) from error
    finally:
        Path(temporary).unlink(missing_ok=True)


def _schema(pyarrow: ModuleType) -> object:
    """One type a column, so that a column of nulls has its own, too."""
    kinds = {"int": pyarrow.int64(), "float": pyarrow.float64(), "list[str]": pyarrow.list_(pyarrow.string())}
    fields = Example.model_fields.items()
    names = {name: str(Example.__annotations__[name]).removesuffix(" | None") for name, _ in fields}
    return pyarrow.schema([(name, kinds.get(kind, pyarrow.string())) for name, kind in names.items()])


def _pyarrow() -> ModuleType:
    try:
        pyarrow = import_module("pyarrow")
    except ImportError:
        raise UsageError(f"a data set is parquet, which needs pyarrow, and that is not here: {INSTALL}") from None
    return pyarrow


def _card(examples: Sequence[Example], sizes: dict[str, int], facts: CardFacts) -> str:
    from jinja2 import Environment, StrictUndefined

    counted = {
        title: sorted(Counter(str(getattr(example, column)) for example in examples).items())
        for title, column in (("written by", "by"), ("language", "language"), ("suite", "suite"),
                              ("measured on", "device_name"), ("licence of the reference", "licence"))
    }  # fmt: skip
    text = files("cuda_l1.export").joinpath("dataset_card.md.j2").read_text("utf-8")
    template = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True).from_string(text)
    rendered: str = template.render(
        mark=MARK,
        many=many,
        sizes=sizes,
        facts=facts,
        counted=counted,
        examples=examples,
        graphs=len({example.graph_hash for example in examples}),
        overlapping=sum(example.overlaps is not None for example in examples),
        columns=[(name, field.description or "") for name, field in Example.model_fields.items()],
    )
    return rendered
