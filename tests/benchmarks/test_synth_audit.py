"""The report on synthetic tasks, from rows and a manifest."""

from __future__ import annotations

from cuda_l1.tasks.synth.folder import Entry
from synth_audit import _reasons, _report


def entry(number: int, *, flags: tuple[str, ...] = (), sound: bool = True) -> Entry:
    return Entry(
        number=number,
        name=f"train/{number}",
        split="train",
        level=1 + number % 3,
        sha="s",
        graph="g",
        stages=("relu",),
        sound=sound,
        flags=flags,
        reference_us=10.0 * number if sound else None,
    )


def test_the_report_counts_all_rows_and_tasks() -> None:
    provenance = {"device_name": "a processor", "torch": "2", "driver": "", "rung": "R2", "commit": "c", "date": "d"}
    rows = [{"sound": str(n), "audited": "30", "seconds": "90", **provenance} for n in (1, 2)]
    entries = [entry(n) for n in range(1, 57)] + [entry(n, sound=False, flags=("degenerate",)) for n in (57, 58, 59)]
    entries.append(entry(60, sound=False))
    text = "\n".join(_report(rows, entries))
    assert "60 tasks were generated and audited in 3.0 minutes (3.00 s each, every core in use); 56 are sound." in text
    assert "| train | 18 | 19 | 19 |" in text
    assert "| degenerate | 3 |" in text
    assert _reasons(entries) == {"degenerate": 3, "the reference raises": 1}
