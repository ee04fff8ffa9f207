"""Whether the machine is at fault, or what it was asked to do: retries, the known-good candidate, quarantine."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol as Shape
from typing import TypeVar

from cuda_l1.config import SCREEN, Protocol
from cuda_l1.errors import InfrastructureError, NoRoomError, TaskError
from cuda_l1.evaluator.eager import eager_candidate
from cuda_l1.evaluator.environment import Device
from cuda_l1.evaluator.failures import DeviceMemoryShort, Late, MemoryContested, TaskFault
from cuda_l1.evaluator.guests import Unkillable
from cuda_l1.evaluator.quarantine import Quarantine
from cuda_l1.evaluator.stages import Progress
from cuda_l1.types import Candidate, Evaluation, Outcome, Task, TaskAudit, Verification

T = TypeVar("T", Evaluation, Verification, TaskAudit)

FAULTS = 2
LEAST_ROOM_BYTES = 64 << 20
"""With less than this free in the temporary folder, what fails there proves nothing."""
_HARMFUL = (Outcome.CRASHED, Outcome.TIMED_OUT, Outcome.OUT_OF_MEMORY)
"""Outcomes after which the device is tested."""
_BRIEF = SCREEN.model_copy(update={"pair_s": 0.05})
_CANARY = Task(
    suite="canary",
    name="relu",
    source=(
        "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return torch.relu(x)\n\n\n"
        "def get_inputs():\n    return [torch.randn(64, 64)]\n\n\ndef get_init_inputs():\n    return []\n"
    ),
)


class Quarantined(InfrastructureError):
    """The device failed its test; nothing is judged on it."""


class DiskFull(InfrastructureError):
    """Too little room for any verdict."""


class RepeatedFault(InfrastructureError):
    """The machine failed with this work every time, and not with a known-good candidate in between."""


class Work(Shape):
    """What is asked of the parent."""

    def restart(self) -> None:
        """Every process anew."""

    def retest(self) -> None:
        """Ask the device whether it still computes, see `Bench.retest`."""

    def screen(self, task: Task, candidate: Candidate, protocol: Protocol, progress: Progress) -> Evaluation:
        """One verdict, as it comes."""


@dataclass(frozen=True)
class MachineFaults:
    """Tells the machine's doing from the work's, for one parent on one device."""

    parent: Work
    device: Device
    quarantine: Quarantine

    def despite(self, task: Task, work: Callable[[], T], progress: Progress) -> T:
        """`work()`; a fault of the machine is retried once, in fresh processes and after a known-good candidate.

        Raises RepeatedFault when it comes back, Quarantined when the known-good candidate fails too, DiskFull at once,
        and TaskError when what comes back is that the reference ends the judge.
        """
        for attempt in range(1, FAULTS + 1):
            self._leave_quarantine(progress)
            try:
                return work()
            except TaskError as error:
                short = isinstance(error, NoRoomError)
                if self.device.gpu and "CUDA" in str(error) and not short:  # of the reference, or the device's end
                    self._canary(str(error))
                if str(error).startswith(task.id):
                    raise
                raise type(error)(f"{task.id}: {error}") from error
            except Unkillable as fault:
                raise self._into_quarantine(str(fault)) from fault
            except (Quarantined, DiskFull):
                raise
            except InfrastructureError as fault:
                last = fault
                progress(f"fault of the machine, attempt {attempt}: {fault}")
                self.parent.restart()
                self._canary(str(fault))
        if isinstance(last, TaskFault):
            raise TaskError(f"{task.id}: {last}; a known-good reference does not end it") from last
        raise RepeatedFault(str(last)) from last

    def acquit_reference(self, task: Task, candidate: Candidate, fault: RepeatedFault, progress: Progress) -> None:
        """Before a candidate is blamed: raises TaskError where the reference does no better in its place."""
        if isinstance(fault.__cause__, DeviceMemoryShort):
            if candidate.source == eager_candidate(task).source:
                raise NoRoomError(f"{task.id}: does not fit the device: {fault}") from fault
            return
        progress("the reference alone")
        try:
            alone = self.parent.screen(task, eager_candidate(task), SCREEN, progress)
        except InfrastructureError as error:
            self.parent.restart()
            raise TaskError(f"{task.id}: the evaluator fails on it with the reference alone, too: {error}") from error
        if alone.outcome not in (Outcome.ACCEPTED, Outcome.REJECTED):  # what its clocks say on a busy machine is moot
            raise TaskError(f"{task.id}: the reference alone is {alone.outcome}: {alone.detail}")

    def look_after(self, verdict: Evaluation | Verification) -> None:
        """After a candidate that may have met a full disk or hurt the device: raises when the machine is at fault."""
        if verdict.outcome is Outcome.ACCEPTED:
            return
        folder = tempfile.gettempdir()
        free = shutil.disk_usage(folder).free
        if free < LEAST_ROOM_BYTES:
            text = f"{folder} is full ({free >> 20} MiB free), which can fail any candidate"
            raise DiskFull(f"{text}: make room, or name another folder by TMPDIR")
        if verdict.outcome not in _HARMFUL and "CUDA" not in verdict.detail:
            return
        try:
            self.parent.retest()
        except (Late, Unkillable) as fault:
            raise self._into_quarantine(f"the device does not answer after {verdict.detail}") from fault
        except InfrastructureError as fault:  # of these processes, or of the device: fresh ones will tell
            self._canary(f"{fault}, after {verdict.detail}")

    def _leave_quarantine(self, progress: Progress) -> None:
        """A device in quarantine is tested again first, and is free when it passes."""
        reason = self.quarantine.reason()
        if reason is None:
            return
        progress(f"testing {self.device.lease_name}, in quarantine {reason}")
        self._canary(f"in quarantine {reason}")
        self.quarantine.lift()

    def _canary(self, fault: str) -> None:
        """A known-good candidate must be found right, else the device goes into quarantine (raises Quarantined)."""
        try:
            verdict = self.parent.screen(_CANARY, eager_candidate(_CANARY), _BRIEF, lambda _: None)
        except MemoryContested as short:  # of the device's, which another program holds
            raise InfrastructureError(f"{fault}; a known-good candidate runs out of memory too: {short}") from short
        except (InfrastructureError, TaskError) as error:
            too = "; a known-good candidate fails too"
            told = fault if too in fault else fault + too
            raise self._into_quarantine(told if str(error) in told else f"{told}: {error}") from error
        if verdict.outcome not in (Outcome.ACCEPTED, Outcome.REJECTED):  # what its clocks say on a busy machine is moot
            raise self._into_quarantine(f"{fault}; a known-good candidate is {verdict.outcome}: {verdict.detail}")

    def _into_quarantine(self, reason: str) -> Quarantined:
        self.quarantine.impose(reason)
        device = f"{self.device.name} ({self.device.lease_name})"
        return Quarantined(f"{reason}; {device} is in quarantine until a known-good candidate passes on it")
