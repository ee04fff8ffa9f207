"""A judge for the task at hand and the runners that it knows: spawned, asked, placed on cores, and ended."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuda_l1.config import CompatProtocol, Limits
from cuda_l1.errors import InfrastructureError
from cuda_l1.evaluator import build_step
from cuda_l1.evaluator.build_cache import BuildCache
from cuda_l1.evaluator.deaths import LOG_TAIL, failure_of
from cuda_l1.evaluator.failures import DeviceMemoryShort, Failure, Late, bad_task
from cuda_l1.evaluator.guest.channel import Channel, ChannelClosed
from cuda_l1.evaluator.guest_files import emptied, put_file
from cuda_l1.evaluator.judge import Judge
from cuda_l1.evaluator.lease import DeviceLease
from cuda_l1.evaluator.nsight import Nsight
from cuda_l1.evaluator.place import Place
from cuda_l1.evaluator.processes import Guest, Template, wait
from cuda_l1.evaluator.templates import Templates
from cuda_l1.types import Candidate, Counters, Outcome, Task, Work

CORES_FOR_PARALLEL = 8
HELD_UP_S = 5.0
"""What a call may take beside a multiple of the reference's time: where others compute, threads that wait for one
another can be held up for seconds."""
RETEST_S = 5.0
"""A device that is well answers a small question within milliseconds."""
CEILINGS_S, NEEDED_S = 60.0, 120.0
START_S = 120.0
"""A runner is up within less than a second; where others start beside it, within a few."""
CONTEXT_BYTES = 700 << 20
"""What a CUDA context with torch's kernels takes of a GPU's memory, generously."""


@dataclass
class Runner:
    """One fresh process, which comes up by itself; it serves one candidate and dies."""

    name: str
    guest: Guest
    template: Template
    channel: Channel | None
    """The judge's end of the line to it, until the judge has it."""
    loaded: Candidate | None = None
    """Once it has one."""
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def pid(self) -> int:
        return self.guest.pid


class Bench:
    """A judge for one task, with the runners it knows."""

    def __init__(self, templates: Templates, place: Place, cache: BuildCache, cache_key: str) -> None:
        self._templates, self._place, self._cache, self._cache_key = templates, place, cache, cache_key
        self._rung = templates.plain.rung
        self._fixed_root = templates.plain.new_folder("fixed")
        self._judge: Judge | None = None
        self._runners: dict[str, Runner] = {}
        self._spare: list[Runner] = []
        self._count = 0
        self.task_sha: str | None = None
        self._ceilings: dict[str, Any] | None = None
        self._gate: str | None = None
        self._needed_us: float | None = None
        self._nsight = Nsight(templates.plain)
        self._lease: DeviceLease | None = None
        self.rested_s = 0.0
        """Seconds in which others timed while something was under way here."""

    # ── the judge ─────────────────────────────────────────────────────────────────────────────────

    @property
    def facts(self) -> dict[str, Any]:
        """What the judge's audit of the task found."""
        return self._judge.facts if self._judge else {}

    @property
    def work(self) -> Work | None:
        """What a call of the reference asks of the device; None where it could not be counted or measured."""
        counted = self.facts.get("work")
        return Work(**counted, **self._ceilings) if counted and self._ceilings else None

    def open(self, task: Task, limits: Limits, cast: Iterable[Candidate] = ()) -> None:
        """Have the task served: the judge that is there when it serves it already, else a new one. Runners for `cast`
        come up while it examines the task, and not before it is up itself.

        Raises TaskError when the reference itself does not work.
        """
        if self.task_sha == task.sha and self._judge is not None:
            return
        self._end_judge()
        self._judge = Judge.start(self._templates.plain, self._place, task, limits, self._gate, self._give_way)
        self._gate = self._judge.gate
        self.warm_up_for(cast)
        try:
            self._judge.examine(task, limits)
        except BaseException:
            self._end_judge()
            raise
        self.task_sha = task.sha
        if self._ceilings is None:  # the device's, not the task's
            self._ceilings = self._measured_ceilings()

    @contextlib.contextmanager
    def giving_way(self, lease: DeviceLease) -> Iterator[None]:
        """While a shared `lease` is held: what takes long is interrupted where somebody waits to time."""
        self._lease = lease
        try:
            yield
        finally:
            self._lease = None

    def _give_way(self) -> float:
        """Let those time who wait for it, with everything here stopped: seconds that this took, 0 where nobody waits,
        and where a candidate is in the middle of its check: it might go on on the device, or in spite of the signal."""
        there = [each for each in self._runners.values() if each.loaded and each.guest.poll() is None]
        if self._lease is None or not all(each.loaded and each.loaded.is_baseline for each in there):
            return 0.0
        if not self._lease.is_wanted():
            return 0.0
        begin, busy = time.monotonic(), [each.guest for each in there]
        self.settle()
        try:
            for guest in busy:
                guest.stop()
        except InfrastructureError:  # a driver that does not let go of it: they wait for its end
            pass
        else:
            self._lease.give_way()
        finally:
            for guest in busy:
                guest.resume(is_held_against=False)
        rested = time.monotonic() - begin
        self.rested_s += rested
        return rested

    def _measured_ceilings(self) -> dict[str, Any] | None:
        """None where there is no room to measure in, beside this task."""
        reply = self._ask_judge({"op": "ceilings", "threads": len(self._place.lane)}, CEILINGS_S)
        found: dict[str, Any] | None = reply.get("ceilings")
        return found

    def needed_us(self) -> float | None:
        """Microseconds that any right candidate needs for memory, on a GPU; None where the judge cannot say."""
        if self._judge is None:
            return None
        if self._needed_us is None:
            self._needed_us = self._ask_judge({"op": "needed"}, NEEDED_S).get("us")
        return self._needed_us

    def _ask_judge(
        self, message: dict[str, Any], timeout: float, fds: tuple[int, ...] = (), quiet: bool = False
    ) -> dict[str, Any]:
        """One operation of the judge's, with the limits of all runners watched."""
        assert self._judge is not None
        watched = [runner.guest for runner in self._runners.values()]
        return self._judge.ask(message, timeout, fds, quiet=quiet, watched=watched)

    def ask(self, runner: Runner, op: str, timeout: float, *, quiet: bool = False, **fields: Any) -> dict[str, Any]:
        """An operation of the judge's on one runner. Raises Failure when the runner gave no usable answer."""
        try:
            reply = self._ask_judge({"op": op, "name": runner.name, **fields}, timeout, quiet=quiet)
        except Late as late:
            log = runner.guest.log_tail(LOG_TAIL)
            self.close()  # the judge is in the middle of something
            raise Failure(Outcome.TIMED_OUT, f"`{op}` took longer than {timeout:.0f} s in all", log) from late
        if "failure" in reply:
            raise self.failure(runner, reply["failure"])
        if "bad_task" in reply:
            self.close()  # what made the reference fail may have left the judge's context broken
            raise bad_task(reply["bad_task"])
        if "memory" in reply:
            asked = reply["memory"].partition(" Including")[0].partition(" If reserved")[0]  # torch says much more
            raise DeviceMemoryShort(f"the judge ran out of device memory: {asked}")
        return reply

    def failure(self, runner: Runner, told: dict[str, str]) -> Failure:
        """What the judge saw, refined by how the process ended."""
        return failure_of(runner.guest, told, on_gpu=self._on_gpu, rung=self._rung)

    @property
    def _on_gpu(self) -> bool:
        return self._place.kind == "cuda"

    def retest(self) -> None:
        """Whether the device still computes, asked after a candidate that may have hurt it: the judge must get a known
        answer, and a fresh runner must start; unused ones, whose contexts are older, are given up for it.

        Raises Late when the device does not answer, another InfrastructureError when it answers wrongly.
        """
        if self._judge is None:
            raise InfrastructureError("the judge had to be ended")
        reply = self._ask_judge({"op": "probe"}, RETEST_S)
        if reply != {"right": True}:
            raise InfrastructureError(f"the device computes wrongly: {reply}")
        while self._spare:
            self.release(self._spare.pop())
        self.warm_up(1)
        self._greet(self._spare[0])

    # ── runners ───────────────────────────────────────────────────────────────────────────────────

    def deadlines(self, limits: Limits) -> dict[str, float]:
        """The judge's deadlines for one runner, seconds; a call's follow from the reference's own time."""
        call_s = limits.call_factor * self.facts.get("reference_us", 0.0) / 1e6 + HELD_UP_S
        return {"load_s": limits.build_s, "first_call_s": limits.first_call_s, "call_s": call_s}

    def _spawn(self, template: Template, work_dir: Path | None = None, limits: Limits | None = None) -> Runner:
        """A process that begins to come up. It needs no judge for that, and outlives the one of another task."""
        self._count += 1
        judges_end, runners_end = Channel.pair()
        guest = template.spawn(
            "runner", {}, channel=runners_end, work_dir=work_dir, limits=limits or self._place.limits
        )
        with contextlib.suppress(ChannelClosed):  # it is dead, which whoever needs it will see
            judges_end.send({"op": "warm", "threads": len(self._place.lane), "device": self._place.device})
        runner = Runner(f"runner-{self._count}", guest, template, judges_end)
        self._runners[runner.name] = runner
        return runner

    def _greet(self, runner: Runner) -> None:
        """Hand a runner to the judge, who waits until it is up. Raises InfrastructureError, and DeviceMemoryShort."""
        runner.guest.wait_until_started()
        channel, runner.channel = runner.channel, None
        assert channel is not None
        limits = runner.guest.limits
        deadlines = {"load_s": limits.build_s, "first_call_s": limits.first_call_s, "call_s": 60.0}
        try:
            reply = self._ask_judge(
                {"op": "greet", "name": runner.name, "deadlines": deadlines}, START_S + 30.0, (channel.fileno(),)
            )
        finally:
            channel.close()
        if "failure" in reply:
            self.release(runner)
            text = f"a runner could not be started: {reply['failure']['detail']}"
            short = reply["failure"]["outcome"] == "OUT_OF_MEMORY"
            raise DeviceMemoryShort(text) if short else InfrastructureError(text)

    def warm_up(self, count: int) -> None:
        """Keep `count` unused runners for candidates that need no compiler; they come up beside whatever follows."""
        self._keep(self._templates.plain, count)

    def warm_up_for(self, cast: Iterable[Candidate]) -> None:
        """Keep one unused runner for each of these, so that all of them come up at the same time."""
        wanted = Counter(self._templates.for_source(each.source) for each in cast if not self._fixed_path(each))
        for template, count in wanted.items():
            self._keep(template, count)

    def _keep(self, template: Template, count: int) -> None:
        for _ in range(count - sum(runner.template is template for runner in self._spare)):
            self._spare.append(self._spawn(template))

    def settle(self) -> None:
        """Wait until every unused runner is up, and idle: nothing starts beside what is timed."""
        deadline = time.monotonic() + START_S
        for runner in self._spare:
            if runner.channel is not None and runner.guest.poll() is None:
                wait([runner.channel], [runner.guest], deadline)

    def runner_for(self, candidate: Candidate, limits: Limits, beside: Candidate | None = None) -> Runner:
        """A fresh process with the candidate loaded, from the template of `beside` where given. Raises Failure."""
        runner, path = self._with_file(candidate, limits, beside)
        reply = self._loaded(runner, "load", limits, path=path, interruptible=candidate.is_baseline)
        runner.facts["unmapped"] = reply["unmapped"]
        return runner

    def compat_runner(self, task: Task, candidate: Candidate, protocol: CompatProtocol, limits: Limits) -> Runner:
        """A fresh process that holds candidate and reference as a published harness does. Raises Failure."""
        runner, path = self._with_file(candidate, limits)
        reference = put_file(runner.guest, self._rung, "reference_task.py", task.source)
        plain = protocol.model_dump(mode="json")
        self._loaded(runner, "compat_load", limits, path=path, reference=reference, protocol=plain)
        return runner

    def _with_file(self, candidate: Candidate, limits: Limits, beside: Candidate | None = None) -> tuple[Runner, str]:
        """A fresh runner and the candidate's file in its work directory, as the runner sees it."""
        key = self.cache_key(candidate)
        fixed_path = self._fixed_path(candidate)
        template = self._templates.for_source((beside or candidate).source)
        spare = None if fixed_path else self._living_spare(template)
        runner = spare or self._spawn(template, self._fixed_dir(key) if fixed_path else None, limits)
        if runner.channel is not None:
            self._greet(runner)
        self._cache.copy_to(key, runner.guest.work_dir)  # owned by the runner with the file that follows
        runner.loaded = candidate
        return runner, put_file(runner.guest, self._rung, "candidate.py", candidate.source)

    def _loaded(self, runner: Runner, op: str, limits: Limits, **fields: Any) -> dict[str, Any]:
        """The reply to an operation that loads; a runner that cannot is ended."""
        try:
            return self.ask(runner, op, limits.build_s + 90.0, deadlines=self.deadlines(limits), **fields)
        except Failure:
            self.release(runner)
            raise

    def _fixed_path(self, candidate: Candidate) -> bool:
        """Whether what was built for it runs only where it was built."""
        return self._rung != "R2" and not self._cache.is_empty(self.cache_key(candidate))

    def _living_spare(self, template: Template) -> Runner | None:
        """An unused runner (deadlines come with the load); one that something has killed is nobody's outcome."""
        for runner in [runner for runner in self._spare if runner.template is template]:
            self._spare.remove(runner)
            if runner.guest.poll() is None:
                return runner
            self.release(runner)
        return None

    def _fixed_dir(self, key: str) -> Path | None:
        """Without a mount namespace what was built runs at the path of its build; a second one beside it rebuilds."""
        path = self._fixed_root / key
        if any(r.guest.work_dir == path for r in self._runners.values()):
            return None
        return emptied(path)

    def first_calls(self, runners: list[Runner], timeout: float) -> dict[str, Failure]:
        """Let several loaded runners make their first calls at the same time; those that failed, by name."""
        reply = self._ask_judge({"op": "first_calls", "names": [r.name for r in runners]}, timeout)
        by_name = {r.name: r for r in runners}
        return {name: self.failure(by_name[name], told) for name, told in reply.get("failures", {}).items()}

    def room_for(self, runners: int) -> bool:
        """Whether so many runners at a time are better than one after the other, and fit the GPU's memory."""
        if len(self._place.lane) < CORES_FOR_PARALLEL or not self._on_gpu:
            return False
        each = CONTEXT_BYTES + 4 * sum(self.facts[f"{part}_bytes"] for part in ("input", "output", "state"))
        return bool(runners * each < self._place.device_bytes / 2)

    def pin(self, runners: list[Runner]) -> None:
        """Judge and runners on cores of their own while they are timed, see `Place.pin`."""
        if self._judge is not None:
            self._place.pin(self._judge.pid, [runner.guest.pid for runner in runners])

    def share_core(self, runners: list[Runner]) -> None:
        """Judge and runners on one core, see `Place.share_core`."""
        if self._judge is not None:
            self._place.share_core(self._judge.pid, [runner.guest.pid for runner in runners])

    def spread(self) -> None:
        """The judge may use the whole lane again."""
        if self._judge is not None:
            self._place.spread(self._judge.pid)

    def release(self, runner: Runner, *, keep_caches: Candidate | None = None) -> None:
        """End a runner; keep what it compiled for the candidate's later runners."""
        self._runners.pop(runner.name, None)
        runner.guest.kill()
        if runner.channel is not None:
            runner.channel.close()
        elif self._judge is not None and self._judge.is_alive():
            self._ask_judge({"op": "drop", "name": runner.name}, 60.0)
        if keep_caches is not None:
            self._cache.keep(self.cache_key(keep_caches), runner.guest.work_dir)
        runner.guest.close()

    # ── the build step ────────────────────────────────────────────────────────────────────────────

    def cache_key(self, candidate: Candidate) -> str:
        return f"{self._cache_key}-{candidate.id}"

    def build(self, candidate: Candidate, limits: Limits) -> str:
        """Import the candidate once without a device, unless that was done; returns what was printed.

        Raises Failure as `build_step.build` does.
        """
        key = self.cache_key(candidate)
        if self._cache.has(key):
            return ""
        return build_step.build(
            candidate,
            limits,
            template=self._templates.for_source(candidate.source),
            work_dir=emptied(self._fixed_root / key) if self._rung != "R2" else None,
            cache=self._cache,
            key=key,
            on_gpu=self._on_gpu,
        )

    def counters(self, task: Task, candidate: Candidate, limits: Limits) -> Counters:
        """What hardware counters show of one call of a candidate, or why there are none; raises no Failure."""

        def prepare(folder: Path) -> None:
            while self._spare:  # they hold memory of the device
                self.release(self._spare.pop())
            self._cache.copy_to(self.cache_key(candidate), folder)

        return self._nsight.counters(task, candidate, mode=self.facts["mode"], limits=limits, prepare=prepare)

    def close(self) -> None:
        """End the judge and every runner."""
        self._spare.clear()
        self._end_judge()

    def _end_judge(self) -> None:
        """End the judge and every runner but the unused ones that it has not seen."""
        self._spare = [runner for runner in self._spare if runner.channel is not None]
        kept = {runner.name: runner for runner in self._spare}
        for runner in self._runners.values():
            if runner.name not in kept:
                runner.guest.close()
                if runner.channel is not None:
                    runner.channel.close()
        self._runners = kept
        if self._judge is not None:
            self._judge.close()
        self._judge, self.task_sha, self._needed_us = None, None, None
