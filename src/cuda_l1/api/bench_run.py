"""What a `bench` run remembers beside the archive: which tasks it had judged, what they take, which cannot be judged,
searches that ended."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from cuda_l1.archive import RunDirectory
from cuda_l1.config import BenchSettings
from cuda_l1.errors import UsageError
from cuda_l1.report.entries import NOT_REACHED, Skipped
from cuda_l1.report.selection import RunParts
from cuda_l1.search.bench import Ours
from cuda_l1.types import Task

_OF_TASKS = ("skipped", "footprint")
"""What is so whichever archive the verdicts go to."""


class BenchRun:
    """A run directory as `bench` uses it; what its log says of another place, or of what is in another archive beside
    it, is not taken up."""

    def __init__(self, directory: RunDirectory, place: str, archive: str | None = None) -> None:
        """`place`: the key of the environment in which this process measures. `archive`: the name of the file that its
        records go to; None where that is a server."""
        self._directory, self._place, self._archive = directory, place, archive
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], dict[str, Any]] = {
            (event["event"], event["task"]): event
            for event in directory.events()
            if event.get("place") == place and (event["event"] in _OF_TASKS or event.get("archive") in (None, archive))
        }

    @classmethod
    def open(
        cls, runs: Path, settings: BenchSettings, resume: str | None, place: str, archive: str | None = None
    ) -> BenchRun:
        """The run of these settings, or with `resume` the one of that name.

        Raises UsageError: no such run, or the settings that differ, with both values.
        """
        directory = RunDirectory.create(runs, settings) if resume is None else resumed(runs, settings, resume)
        return cls(directory, place, archive)

    @property
    def name(self) -> str:
        """What records carry as `run`."""
        return self._directory.name

    def skip(self, task: Task, reason: str) -> None:
        """Remember that a task cannot be judged, so that finding out is not paid for again."""
        self._remember("skipped", task, reason=reason)

    def reason_to_skip(self, task: Task) -> str | None:
        """Why it cannot be judged; None where nothing is known against it."""
        return self._said("skipped", task).get("reason")

    def measured(self, task: Task, peak_bytes: int | None) -> None:
        """Remember what a call of a task takes; None: that cannot be told."""
        self._remember("footprint", task, peak_bytes=peak_bytes)

    def has_measured(self, task: Task) -> bool:
        """Whether `peak_bytes` was asked for before."""
        return bool(self._said("footprint", task))

    def peak_bytes(self, task: Task) -> int | None:
        """What was found out by then."""
        found: int | None = self._said("footprint", task).get("peak_bytes")
        return found

    def asked(self, tasks: Iterable[Task]) -> None:
        """Remember that the run is to judge these, so that a report says what is missing where it was interrupted."""
        for task in tasks:
            if not self._said("asked", task):
                self._remember("asked", task)

    def judged(self, task: Task) -> None:
        """Remember that the run is about this task, whichever run paid for its verdicts."""
        if not self._said("judged", task):
            self._remember("judged", task)

    def left_out(self, task: Task, reason: str | None) -> None:
        """Remember for reports that there is no verdict on it, and why; None: there may be one the next time, or it was
        judged at other sizes."""
        said = self._said("left_out", task)
        if not said or said["reason"] != reason:
            self._remember("left_out", task, reason=reason)

    def searching(self, task: Task, run: str) -> None:
        """Remember the run that the records of a search carry, which may be interrupted."""
        self._remember("searching", task, run=run)

    def searched(self, task: Task, run: str, ours: Ours) -> None:
        """Remember how a search ended, and the run that its records carry."""
        self._remember("searched", task, run=run, ours=ours.model_dump(mode="json"))

    def result_of_search(self, task: Task) -> tuple[str, Ours] | None:
        """(run, what it found) of a search that ended, or None."""
        said = self._said("searched", task)
        return (said["run"], Ours.model_validate(said["ours"])) if said else None

    def _remember(self, event: str, task: Task, **fields: Any) -> None:
        said = {"task": task.sha, "name": task.name, "place": self._place, "archive": self._archive, **fields}
        with self._lock:
            self._known[event, task.sha] = {"event": event, **said}
            self._directory.log(event, **said)

    def _said(self, event: str, task: Task) -> dict[str, Any]:
        return self._known.get((event, task.sha), {})


def resumed(runs: Path, settings: BenchSettings, name: str) -> RunDirectory:
    """The run of that name. Raises UsageError: no such run, or the settings that differ, with both values."""
    if name != Path(name).name or not (runs / name / "config.json").is_file():
        known = bench_runs(runs)
        more = f" and {len(known) - 5} more" if len(known) > 5 else ""
        raise UsageError(f"--resume {name}: no such run in {runs}; there are {', '.join(known[:5]) or 'none'}{more}")
    return RunDirectory.open(runs / name, settings)


def parts_of(runs: Iterable[Path], name: str, archives: Collection[str] = (), *, is_asked_for: bool = True) -> RunParts:
    """What a run by that name consists of, by its files in any of the folders; of one that is no `bench` its records.

    Several archives may lie beside one folder of runs: of what was logged for another than `archives` (names of files)
    nothing belongs to it, unless that is all that a run `is_asked_for` has, whose records were merged or bundled.
    Raises UsageError for a damaged folder.
    """
    tasks: dict[str, None] = {}
    searches: dict[str, None] = {}
    asked: dict[str, Skipped] = {}
    found: dict[tuple[str, str], str | None] = {}
    skipped: dict[str, Skipped] = {}
    for folder in runs:
        path = folder / name
        if name != path.name or not (path / "config.json").is_file():
            continue
        directory = RunDirectory.open(path)
        try:
            events = list(directory.events())
            mine = [event for event in events if _is_for(event.get("archive"), archives, folder.parent)]
            for event in mine or (events if is_asked_for else []):
                if event["event"] == "judged":
                    tasks[event["task"]] = None
                elif event["event"] == "asked":
                    asked[event["task"]] = Skipped(event["task"], event["name"], name, NOT_REACHED)
                elif event["event"] in ("skipped", "left_out"):
                    skipped[event["task"]] = Skipped(event["task"], event["name"], name, event["reason"] or "")
                elif event["event"] in ("searching", "searched"):
                    searches[event["run"]] = None
                    found[event["task"], event.get("place", "")] = event.get("ours", {}).get("record")
        except (KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"{path / 'events.jsonl'}: damaged, not what `bench` writes; restore a copy") from error
    without = tuple(one for sha, one in {**asked, **skipped}.items() if one.why and sha not in tasks)
    return RunParts(name, tuple(searches), frozenset(tasks), without, frozenset(filter(None, found.values())))


def _is_for(logged: str | None, archives: Collection[str], beside: Path) -> bool:
    """Whether it was logged for one of the archives, or for one that has another name by now."""
    return logged is None or logged in archives or not (beside / logged).exists()


def bench_runs(runs: Path) -> list[str]:
    """Names of the runs of `bench` in a folder, the latest first."""
    configs = sorted(runs.glob("*/config.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    return [path.parent.name for path in configs if '"max_gib"' in path.read_text(errors="replace")]
