"""`cuda-l1 archive export --release`: the best verified kernels of an archive as a release that anybody can replay."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cuda_l1.cli.boundary import NOTHING_ACCEPTED
from cuda_l1.cli.output import Output
from cuda_l1.cli.targets import check_file
from cuda_l1.errors import UsageError
from cuda_l1.texts import many

if TYPE_CHECKING:
    from cuda_l1.types import Clock, Record, Task


def export_release(
    found: Sequence[tuple[Task, dict[str, Record]]],
    path: Path,
    *,
    device_name: str | None,
    clock: Clock | None,
    output: Output,
) -> int:
    """Writes the winners on one device, given by task and device name; exit code 1 where there is none.

    Raises UsageError for several devices without a choice, and for a file that is there already.
    """
    from cuda_l1.export.release import numbered, release_lines
    from cuda_l1.export.writing import write_atomically
    from cuda_l1.report.terminal import with_interval
    from cuda_l1.search.result import is_faster

    check_file("--release", path)
    if path.exists():
        raise UsageError(f"--release {path}: exists; name a new file")
    devices = sorted({name for _, winners in found for name in winners})
    device = _device(devices, device_name)
    rows, left_out = numbered((task, winners[device]) for task, winners in found if device in winners)
    for line in left_out:
        Output.say(f"left out: {line}")
    scaled = [row for row in rows if row.other_sizes]
    for row in scaled:
        Output.say(f"level{row.level_id}/{row.task_id}: is of other sizes than the suite's problem: {row.other_sizes}")
    unsure = [row for row in rows if not is_faster(row.record.evaluation.timing("eager", clock))]
    for row in unsure:
        timing = with_interval(row.record.evaluation.timing("eager", clock))
        Output.say(f"level{row.level_id}/{row.task_id}: is not faster than eager by more than its interval: {timing}")
    if not rows:
        Output.error("the archive holds no verified final of a proposed kernel; run `cuda-l1 optimize` first")
        return NOTHING_ACCEPTED
    write_atomically(path, "".join(f"{line}\n" for line in release_lines(rows, clock)))
    told = f", {len(scaled)} of other sizes than the suite's" if scaled else ""
    output.show(f"written: {path}, {many(len(rows), 'kernel')} on {device}{told}")
    output.summary(
        path=str(path),
        kernels=len(rows),
        device_name=device,
        left_out=left_out,
        other_sizes=[r.task.id for r in scaled],
        not_faster=[r.task.id for r in unsure],
    )
    return 0


def _device(devices: Sequence[str], wanted: str | None) -> str:
    """The one that figures are of. Raises UsageError that names the choices."""
    names = ", ".join(f"'{name}'" for name in devices)
    if wanted is not None and wanted not in devices:
        raise UsageError(f"--device-name {wanted}: the archive has winners on {names or 'no device'}")
    if wanted is None and len(devices) > 1:
        raise UsageError(
            f"a release is of one device, and the archive has winners on several: give --device-name {names}"
        )
    return wanted or next(iter(devices), "")
