"""The parent: in a process of its own, never imports torch or a candidate, and alone writes an Outcome.

Single-threaded, and idle while anything is timed.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import resource
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from cuda_l1.config import (
    COMPAT,
    SCREEN,
    AnyProtocol,
    CompatProtocol,
    EvaluatorSettings,
    Protocol,
)
from cuda_l1.errors import CudaL1Error, InfrastructureError, NoRoomError, UsageError
from cuda_l1.evaluator import work_folders
from cuda_l1.evaluator.bench import Bench
from cuda_l1.evaluator.build_cache import BuildCache
from cuda_l1.evaluator.compat import CompatVerdict
from cuda_l1.evaluator.environment import (
    cache_folder,
    device_environment,
    device_variables,
    find_device,
    guest_environment,
    stay_on,
    usable_cores,
)
from cuda_l1.evaluator.evaluation import Verdict
from cuda_l1.evaluator.failures import DeviceMemoryShort, Failure, MemoryContested
from cuda_l1.evaluator.footprint import footprint
from cuda_l1.evaluator.lease import DeviceLease
from cuda_l1.evaluator.machine_faults import FAULTS, DiskFull, MachineFaults, RepeatedFault
from cuda_l1.evaluator.place import Place
from cuda_l1.evaluator.quarantine import Quarantine
from cuda_l1.evaluator.stages import Progress
from cuda_l1.evaluator.templates import Templates
from cuda_l1.types import Candidate, Environment, Evaluation, Outcome, Task, TaskAudit, Verification, Work

V = TypeVar("V", Evaluation, Verification)

WARM_RUNNERS = 2
STEADY_HEAP = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(8 << 30)}
"""glibc moves these by what a process has freed before, and with them whether a call faults in its memory anew."""


LEAST_FILE_BYTES = 64 << 20
"""What a file has to be allowed to hold: tensors travel in memory that counts as one, and a build writes libraries. A
candidate that is ended at a smaller limit would be blamed for it."""
LEAST_CACHE_BYTES = 512 << 10
"""What has to fit into the cache folder: who holds a lease, and what the compiler can do. Where it does not, every
process of a compiled baseline finds that out anew, and the verdict fails at its end."""


class Parent:
    """One evaluator's processes: the template, and a bench for the task at hand."""

    def __init__(self, settings: EvaluatorSettings) -> None:
        """Nothing is started yet. Raises UsageError and InfrastructureError for a device that is not there, and
        InfrastructureError for a cache folder that cannot be written to, and where files may not be as large as
        candidates need."""
        _require_large_files()
        self._settings = settings
        self._device = find_device(settings.device)
        on_cpu = self._device.kind == "cpu"
        if settings.lane and on_cpu:
            stay_on(settings.lane)  # whatever a lane's processes do, its neighbours are not disturbed
        self._lane = tuple(sorted(set(settings.lane or usable_cores())))
        self._cache_folder = _writable(cache_folder(settings.cache_dir))
        self._faults = MachineFaults(self, self._device, Quarantine(self._device.lease_name, self._cache_folder))
        self._lease = partial(
            DeviceLease, self._device.lease_name, self._cache_folder, cores=self._lane if on_cpu else ()
        )
        self._cache = BuildCache(self._cache_folder / "build")
        self._templates: Templates | None = None
        self._bench: Bench | None = None

    def start(self) -> None:
        """Start the fork template. Raises InfrastructureError when it, or the sandbox rung asked for, fails."""
        work_folders.sweep()
        kind = self._device.kind
        extra = {**device_variables(self._device), "OMP_NUM_THREADS": str(len(self._lane))}
        self._templates = Templates(
            guest_environment({**os.environ, **extra}, **STEADY_HEAP),
            rung=self._settings.rung,
            lane=self._lane,
            device=kind,
            cache=self._cache_folder,
        )
        found = self._templates.plain.facts
        self.environment: Environment = device_environment(
            self._device,
            self._lane,
            interchangeable=self._settings.interchangeable,
            torch_version=found.torch,
            cuda_version=found.cuda,
            python=found.python,
            rung=self._templates.plain.rung,
        )
        memory = self._device.gpu.memory_bytes if self._device.gpu else 0
        place = Place("cpu" if kind == "cpu" else "cuda:0", tuple(self._lane), self._settings.limits, memory)
        self._bench = Bench(self._templates, place, self._cache, self.environment.key[:16])

    def restart(self) -> None:
        """Every process anew."""
        self.close()
        self.start()

    @property
    def bench(self) -> Bench:
        assert self._bench is not None
        return self._bench

    def close(self) -> None:
        """End every process."""
        if self._bench is not None:
            self._bench.close()
        if self._templates is not None:
            self._templates.close()
        self._bench = self._templates = None

    # ── operations ────────────────────────────────────────────────────────────────────────────────

    def evaluate(self, message: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """One verdict."""
        task = Task.model_validate(message["task"])
        candidate = Candidate.model_validate(message["candidate"])
        if candidate.task_sha != task.sha:
            raise UsageError(f"candidate {candidate.id[:8]} was written for another task than {task.id}")
        protocol = _protocol(message["protocol"])
        opponents = {
            "baselines": [Candidate.model_validate(c) for c in message.get("baselines", [])],
            "best_of": tuple(message.get("best_of", ())),
            "best_so_far": message.get("best_so_far"),
            "until": time.monotonic() + (math.inf if message.get("within_s") is None else message["within_s"]),
        }

        def judge(alone: bool) -> Evaluation:
            if isinstance(protocol, CompatProtocol):
                return self._begun_compat(task, candidate, protocol, progress, alone=alone).run()
            return self._begun(task, candidate, protocol, progress, opponents, alone=alone).run()

        beside_others = bool(message.get("beside_others"))
        try:
            evaluation = self._faults.despite(
                task, lambda: self._judged(judge, progress, beside_others=beside_others), progress
            )
        except RepeatedFault as fault:
            self._faults.acquit_reference(task, candidate, fault, progress)
            evaluation = self._blamed(candidate, protocol, fault)
        return evaluation.model_dump(mode="json")

    def audit(self, message: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """The judge's facts about a task."""
        task = Task.model_validate(message["task"])

        def judge() -> TaskAudit:
            progress("judge")
            with self._lease(shared=True) as lease, self.bench.giving_way(lease):
                self.bench.open(task, self._settings.limits)
            return _audit_of(task, self.bench.facts, self.bench.work)

        return self._faults.despite(task, judge, progress).model_dump(mode="json")

    def verify(self, message: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """The trials of one candidate on any task."""
        task = Task.model_validate(message["task"])
        candidate = Candidate.model_validate(message["candidate"])

        def judge(alone: bool) -> Verification:
            return self._begun(task, candidate, SCREEN, progress, alone=alone).verify()

        try:
            found = self._faults.despite(task, lambda: self._judged(judge, progress), progress)
        except RepeatedFault as fault:
            self._faults.acquit_reference(task, candidate, fault, progress)
            found = Verification(
                candidate_id=candidate.id,
                task_sha=task.sha,
                outcome=Outcome.CRASHED,
                detail=str(fault)[:500],
                environment=self.environment,
            )
        return found.model_dump(mode="json")

    def footprint(self, message: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """What memory a call of the reference takes, before anything allocates it."""
        assert self._templates is not None
        task = Task.model_validate(message["task"])
        progress("footprint")
        with self._lease(shared=True):
            return {"peak_bytes": footprint(self._templates.plain, task, self._settings.limits)}

    def _judged(self, judge: Callable[[bool], V], progress: Progress, *, beside_others: bool = False) -> V:
        """A verdict beside other evaluators', and again alone where it ran out of memory or time that they share; with
        `beside_others` NoRoomError then: they would wait for it, and keep what memory they hold. DiskFull at once."""
        _writable(self._cache_folder)
        try:
            verdict = judge(False)
        except (MemoryContested, NoRoomError) as short:
            if isinstance(short, NoRoomError) and not self._device.gpu:
                raise
            if beside_others:
                self.bench.close()
                raise NoRoomError(f"not beside other evaluators: {short}") from short
            progress(f"once more, alone on the device: {short}")
            self.bench.close()
            verdict = judge(True)
        self._faults.look_after(verdict)
        return verdict

    def _begun(
        self,
        task: Task,
        candidate: Candidate,
        protocol: Protocol,
        progress: Progress,
        opponents: Mapping[str, Any] = MappingProxyType({}),
        *,
        alone: bool = False,
    ) -> Verdict:
        return Verdict(protocol=protocol, **opponents, **self._surroundings(task, candidate, progress, alone=alone))

    def _begun_compat(
        self, task: Task, candidate: Candidate, protocol: CompatProtocol, progress: Progress, *, alone: bool
    ) -> CompatVerdict:
        if task.weights:
            raise UsageError(f"{task.id}: has a file of weights, which {protocol.name} cannot load")
        return CompatVerdict(protocol=protocol, **self._surroundings(task, candidate, progress, alone=alone))

    def _surroundings(self, task: Task, candidate: Candidate, progress: Progress, *, alone: bool) -> dict[str, Any]:
        """What every kind of verdict is begun with."""
        return {
            "task": task,
            "candidate": candidate,
            "bench": self.bench,
            "environment": self.environment,
            "limits": self._settings.limits,
            "lease": self._lease,
            "progress": progress,
            "alone": alone,
        }

    def screen(self, task: Task, candidate: Candidate, protocol: Protocol, progress: Progress) -> Evaluation:
        """One verdict, as it comes, against eager alone."""
        return self._begun(task, candidate, protocol, progress).run()

    def retest(self) -> None:
        """Ask the device whether it still computes, see `Bench.retest`."""
        with self._lease(shared=True):
            self.bench.retest()

    def _blamed(self, candidate: Candidate, protocol: AnyProtocol, fault: RepeatedFault) -> Evaluation:
        short = isinstance(fault.__cause__, DeviceMemoryShort)
        text = f"the machine failed {FAULTS} times with this candidate and not with a known-good one: {fault}"
        if short:
            times = f"{FAULTS} times with this candidate and not with a small known-good one"
            text = f"{fault}, {times}; a verdict takes several times what a call does: `bench --max-gib` scales a task"
        return Evaluation(
            candidate_id=candidate.id,
            outcome=Outcome.OUT_OF_MEMORY if short else Outcome.CRASHED,
            detail=text[:500],
            environment=self.environment,
            protocol=protocol.name,
        )

    def idle(self) -> None:
        """Between requests: keep unused runners warm. What fails here fails again, and aloud, in the next request."""
        lease = self._lease(shared=True)
        with contextlib.suppress(CudaL1Error, Failure, OSError):
            if self.bench.task_sha and lease.is_free():  # not while another evaluator times
                with lease:
                    self.bench.warm_up(WARM_RUNNERS)
                    self.bench.settle()


def _protocol(told: dict[str, Any]) -> AnyProtocol:
    """A protocol from its fields; a published harness is what its name says, whatever they say."""
    return COMPAT[told["name"]] if told["name"] in COMPAT else Protocol.model_validate(told)


def _writable(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(LEAST_CACHE_BYTES))
        return folder
    except OSError as error:
        text = f"the cache folder {folder} cannot be written to: {error.strerror}"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"{text}; make room there, or name another by XDG_CACHE_HOME") from error
        raise InfrastructureError(f"{text}; mend that, or name another by XDG_CACHE_HOME") from error


def _audit_of(task: Task, found: dict[str, Any], work: Work | None) -> TaskAudit:
    return TaskAudit(
        task_id=task.id,
        task_class=found["task_class"],
        mode=found["mode"],
        flags=tuple(found["flags"]),
        forgeries_passed=tuple(found["forgeries_passed"]),
        reference_us=found["reference_us"],
        input_bytes=found["input_bytes"],
        output_bytes=found["output_bytes"],
        roofline_us=_roofline_us(found),
        work=work,
        details=tuple(found["details"]),
    )


def _roofline_us(found: dict[str, Any]) -> float | None:
    bandwidth = found.get("copy_bytes_per_us")
    return (found["input_bytes"] + found["output_bytes"]) / bandwidth if bandwidth else None


def _require_large_files() -> None:
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    if limit != resource.RLIM_INFINITY and limit < LEAST_FILE_BYTES:
        text = f"files may hold {limit / 2**20:.1f} MiB here, and evaluating takes {LEAST_FILE_BYTES >> 20}"
        raise InfrastructureError(f"{text}; raise the limit on file sizes with `ulimit -f unlimited`")
