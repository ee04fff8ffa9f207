"""`cuda-l1 tasks synth`: training workloads of our own, generated and audited."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Self

import typer

from cuda_l1.cli import options as o
from cuda_l1.cli.boundary import command
from cuda_l1.cli.output import Output
from cuda_l1.cli.targets import check_folder
from cuda_l1.errors import UsageError
from cuda_l1.texts import many

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from cuda_l1.tasks.synth.folder import Entry

_LEVELS = (1, 2, 3)


@command(kept="the audited tasks are in the folder; the same command goes on from there")
def synth(
    count: Annotated[int, typer.Option("--n", metavar="N", help="How many sound tasks.", min=1, max=100_000)] = 1000,
    seed: Annotated[int, typer.Option("--seed", help="Another seed gives other tasks.", min=0, max=10**18 - 1)] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Where they are written; default synth-SEED.")
    ] = None,
    level: Annotated[
        str, typer.Option("--level", metavar="LEVELS", help="Difficulty: 1, 2, 3, or a range such as 1-2.")
    ] = "1-3",
    device_memory: Annotated[
        float | None,
        typer.Option("--device-memory", metavar="GIB", help="Sizes for a GPU with this much memory; default: small."),
    ] = None,
    device: o.Device = "auto",
    limits: o.LimitsOption = None,
    json: o.Json = False,
) -> None:
    """Generate training tasks, audit each, and write those on which verdicts mean something.

    The folder is a suite for every other command: `cuda-l1 bench synth:DIR#train/*`.

    Example: cuda-l1 tasks synth --n 1000 --seed 0 --out synth-0
    """
    from cuda_l1.api.limits import parse_limits
    from cuda_l1.api.places import resolve_device
    from cuda_l1.api.synthesis import synthesise
    from cuda_l1.config import EvaluatorSettings
    from cuda_l1.tasks.synth.folder import Settings

    output = Output(as_json=json)
    levels, place, allowed = _levels(level), resolve_device(device), parse_limits(limits)
    if device_memory is not None and not 1 <= device_memory <= 1024:
        raise UsageError(f"--device-memory {device_memory:g}: give the GiB of a GPU, from 1 to 1024")
    settings = Settings(seed=seed, device=place.partition(":")[0], device_memory_gib=device_memory)
    folder = out or Path(f"synth-{seed}")
    check_folder("--out", folder)
    with _Progress(count) as progress:
        kept = synthesise(
            folder,
            count=count,
            settings=settings,
            evaluators=EvaluatorSettings(device=place, limits=allowed),
            levels=levels,
            on_entry=progress.tell,
        )
    for entry in kept:
        output.record("task", entry)
    _show(output, folder, kept, progress.refused)


def _levels(text: str) -> tuple[int, ...]:
    """`2`, `1-3` -> levels. Raises UsageError."""
    first, _, last = text.partition("-")
    chosen = tuple(number for number in _LEVELS if first <= str(number) <= (last or first))
    if not chosen or first not in map(str, _LEVELS) or (last and last not in map(str, _LEVELS)):
        raise UsageError(f"--level {text}: levels are 1, 2 and 3; give one of them or a range such as 1-2")
    return chosen


def _show(output: Output, folder: Path, kept: list[Entry], refused: int) -> None:
    from rich.text import Text

    from cuda_l1.report.terminal import table

    splits, levels = Counter(entry.split for entry in kept), Counter(entry.level for entry in kept)
    rows = [(name, *(str(sum(e.split == name and e.level == n for e in kept)) for n in _LEVELS)) for name in splits]
    output.show(table(("split", "level 1", "level 2", "level 3"), rows))
    output.show(Text(f"{many(len(kept), 'task')} in {folder}; {refused} more were audited now and are not sound"))
    output.summary(
        folder=str(folder),
        tasks=len(kept),
        not_sound=refused,
        splits=dict(splits),
        levels={str(number): levels[number] for number in sorted(levels)},
    )


class _Progress:
    """A bar on a terminal, a line for every 50 tasks elsewhere."""

    def __init__(self, count: int) -> None:
        self.refused = 0
        self._sound, self._count = 0, count
        self._bar: Progress | None = None
        self._row: TaskID | None = None

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(file=sys.stderr)
        if console.is_terminal:
            columns = (TextColumn("auditing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=console, transient=True)
            self._bar.start()
            self._row = self._bar.add_task("", total=self._count)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def tell(self, entry: Entry) -> None:
        """One more task was audited."""
        self._sound += entry.sound
        self.refused += not entry.sound
        if self._bar is not None and self._row is not None:
            self._bar.update(self._row, advance=int(entry.sound))
        elif (self._sound + self.refused) % 50 == 0:
            Output.say(f"audited {self._sound + self.refused}, {self._sound} of them sound")
