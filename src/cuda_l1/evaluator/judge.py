"""The parent's handle on the judge: start it for one task, ask it with all limits watched, say how it died."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Self

from cuda_l1.config import Limits
from cuda_l1.errors import CudaL1Error, InfrastructureError, NoRoomError, TaskError
from cuda_l1.evaluator.deaths import end_of
from cuda_l1.evaluator.failures import DeviceMemoryShort, Late, TaskFault, bad_task
from cuda_l1.evaluator.guest.channel import ChannelClosed, ProtocolError
from cuda_l1.evaluator.guest.entropy import ENTROPY
from cuda_l1.evaluator.guest_files import put_file
from cuda_l1.evaluator.place import Place
from cuda_l1.evaluator.processes import Guest, Template, wait
from cuda_l1.types import Task

_WARM_S = 120.0


class Judge:
    """A judge process that has examined one task. It may hold four times the memory of a candidate."""

    def __init__(self, guest: Guest, rung: str, give_way: Callable[[], float]) -> None:
        """`give_way`: lets others time who wait for it; seconds that this took."""
        self._guest, self._rung, self._give_way = guest, rung, give_way
        self.gate: str | None = None
        """The gate kernel's image for this device, base64; None on a CPU."""
        self.facts: dict[str, Any] = {}
        """What its audit of the task found."""

    @classmethod
    def start(
        cls,
        template: Template,
        place: Place,
        task: Task,
        limits: Limits,
        gate: str | None = None,
        give_way: Callable[[], float] = lambda: 0.0,
    ) -> Self:
        """A fresh judge, ready to examine `task`; `gate`: the image that an earlier one made, knowing no task yet.
        Raises DeviceMemoryShort where there is no room for it beside others, and what `ask` does."""
        reads = [task.weights.path] if task.weights else []
        generous = limits.model_copy(update={"memory_bytes": 4 * limits.memory_bytes})
        judge = cls(template.spawn("judge", {}, read_paths=reads, limits=generous), template.rung, give_way)
        try:
            warm = {"op": "warm", "device": place.device, "threads": len(place.lane), "gate": gate}
            reply = judge.ask(warm, _WARM_S)
            if "memory" in reply:
                raise DeviceMemoryShort(f"the judge ran out of device memory: {reply['memory']}")
            judge.gate = reply["gate"]
        except BaseException:
            judge.close()
            raise
        return judge

    def examine(self, task: Task, limits: Limits) -> None:
        """Learn all that there is to know of the task. Raises TaskError when the reference itself does not work."""
        path = put_file(self._guest, self._rung, "reference_task.py", task.source)
        message = {"op": "task", "path": path, "weights": task.weights.path if task.weights else None}
        try:
            reply = self.ask(message, limits.verdict_s)
        except Late as late:
            text = f"{task.id}: examining the reference took longer than {limits.verdict_s:.0f} s"
            raise TaskError(f"{text}; give more: --limits verdict_s=SECONDS") from late
        if "bad_task" in reply:
            raise bad_task(f"{task.id}: {reply['bad_task']}")
        if "memory" in reply:
            raise NoRoomError(f"{task.id}: does not fit the device: {reply['memory']}")
        self.facts = reply["facts"]

    @property
    def pid(self) -> int:
        return self._guest.pid

    def is_alive(self) -> bool:
        return self._guest.poll() is None

    def ask(
        self,
        message: dict[str, Any],
        timeout: float,
        fds: tuple[int, ...] = (),
        *,
        quiet: bool = False,
        watched: Iterable[Guest] = (),
    ) -> dict[str, Any]:
        """One operation; its own limits and those of `watched` are looked at while waiting (rarely when `quiet`:
        something is timed).

        Raises Late, TaskError when it ran out of the memory that the task may take, TaskFault when it died while it
        examined the reference, else InfrastructureError.
        """
        judge = self._guest
        deadline = time.monotonic() + timeout
        try:
            judge.channel.send({**message, "key": ENTROPY.key(message["op"]).hex()}, fds)
            while True:
                living = [judge, *(guest for guest in watched if guest.exit is None)]
                ready = wait([judge.channel], living, deadline, look_s=1.0 if quiet else 0.05)
                if judge.channel in ready.channels:
                    reply = judge.channel.receive(5.0)[0]
                    if reply != {"rests": True}:
                        return reply
                    deadline += self._give_way()
                    judge.channel.send({"op": "go on"})
                    continue
                if judge in ready.exited:
                    raise self._lost(message["op"])
                if not ready:
                    text = f"the judge did not finish `{message['op']}` within {timeout:.0f} s"
                    raise Late(f"{text}; give more: --limits verdict_s=SECONDS")
        except (ChannelClosed, ProtocolError, TimeoutError) as error:
            raise self._lost(message["op"]) from error

    def _lost(self, op: str) -> CudaL1Error:
        """It is dead: of its memory, which is the task's doing, or by a fault."""
        judge = self._guest
        text = f"the judge died during `{op}`: {end_of(judge)}"
        if judge.exit is not None and judge.exit.oom:
            room = judge.limits.memory_bytes / 2**30
            return TaskError(f"{text}; the task needs more than {room:.1f} GiB: --limits memory_bytes=BYTES")
        return TaskFault(text) if op == "task" else InfrastructureError(text)

    def close(self) -> None:
        """End it."""
        self._guest.close()
