"""`cuda-l1 doctor`: what is present, what each lack costs, and how to get it."""

from __future__ import annotations

from cuda_l1.cli import options as o
from cuda_l1.cli.boundary import NOTHING_ACCEPTED, command
from cuda_l1.cli.output import Output


@command(kept="nothing was changed")
def doctor(archive: o.ArchiveOption = None, json: o.Json = False) -> int:
    """Say what this machine has, what each lack costs and how to get it. Exit code 1 when nothing can be judged here.

    Example: cuda-l1 doctor
    """
    from cuda_l1.cli.checkup import checkup
    from cuda_l1.report.terminal import table

    output = Output(as_json=json)
    found = checkup(archive)
    for check in found:
        output.record("check", check.model_dump())
    rows = [(c.name, "yes" if c.present else "NO" if c.needed else "no", c.detail, c.costs, c.remedy) for c in found]
    output.show(table(("what", "here", "detail", "without it", "how to get it"), rows))
    missing = [check.name for check in found if check.needed and not check.present]
    output.summary(ok=not missing, missing=missing, absent=[c.name for c in found if not c.present])
    return NOTHING_ACCEPTED if missing else 0
