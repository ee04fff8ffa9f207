"""The judge: serves one task. Makes inputs, runs the oracle, holds truth, compares, and keeps a clock of its own.

It answers the parent's operations with evidence; the parent alone writes an Outcome.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import os
from typing import Any

import torch

from . import back_to_back, compat_check, driving, preparing, vector_math
from .audit import audit
from .ceilings import ceilings
from .channel import Channel, ChannelClosed
from .check import Checker
from .control import Control
from .copying import copy_bytes_per_us
from .entropy import ENTROPY
from .load import is_short_of_memory
from .profiling import believable
from .random_tasks import EvalMode, check_random, check_random_again, unlike_another_process
from .reference import BadTask, Reference, first_line, synchronize
from .resting import Rests
from .room import idle_bytes
from .session import Deadlines, RunnerFailure, Session, names_of, total_bytes
from .timed_outputs import kept_calls, verify_timed
from .traffic import needed_us, traffic_of
from .work import work_of

SMALL_BYTES = 4 << 20
"""A task whose inputs and weights take less is judged with one thread."""
HOARD_BYTES = 1 << 30
"""Memory of a GPU that torch may keep without use: more is given back, since other evaluators wait for it."""
HUNGRY = frozenset({"task", "check", "verify_timed", "verify_weights", "compat_check"})
"""Operations behind which it is given back: for a while they take several times what a call does."""
PATIENT = frozenset({"task", "load", "check"})
"""Operations that may rest while somebody else times on the device: nothing is timed in them."""
OPERATIONS = (
    "warm",
    "probe",
    "ceilings",
    "task",
    "greet",
    "load",
    "drop",
    "check",
    "first_calls",
    "prepare",
    "profile",
    "slope",
    "needed",
    "block",
    "back_to_back",
    "witness",
    "verify_timed",
    "verify_weights",
    "observe",
    "compat_load",
    "compat_check",
    "compat_time",
)


class Judge:
    """State of the judge process; each public method answers one operation of the parent's."""

    def __init__(self, channel: Channel) -> None:
        self.rests = Rests(channel, self._settle)
        self._device = "cpu"
        self._sessions: dict[str, Session] = {}
        self._supply: driving.Supply | None = None
        self._driver: Any = None
        self._gate: str | None = None
        self._eval_mode: EvalMode | None = None

    def warm(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Threads and, on a GPU, the context and the gate's image, where none is known; before any task is."""
        self._device = message["device"]
        self._threads = message["threads"]
        vector_math.call_once()
        torch.set_num_threads(self._threads)
        if self._device != "cpu":
            from .cuda_driver import Driver
            from .gate import assemble_gate

            torch.cuda.set_device(self._device)
            torch.zeros(1, device=self._device)
            self._driver = Driver(int(self._device.split(":")[1]))
            self._gate = message["gate"] or base64.b64encode(assemble_gate(self._driver)).decode()
        return {"gate": self._gate}

    def probe(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """A sum with a known answer, on the device: whether this process's context still computes."""
        return {"right": int(torch.arange(4096, device=self._device).sum()) == 4096 * 4095 // 2}

    def ceilings(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """What the device can do at the most, with every thread, however few the task is worth."""
        torch.set_num_threads(message["threads"])
        found = ceilings(self._device)
        torch.set_num_threads(self._threads)
        return {"ceilings": found}

    def task(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Load the reference and audit the task."""
        self._reference = Reference(message["path"], self._device, message.get("weights"), rests=self.rests)
        traffic = total_bytes(self._reference.draw()) + total_bytes(list(self._reference.public.values()))
        if traffic < SMALL_BYTES:  # one thread is as fast, and does not suffer when the machine is busy
            self._threads = 1
            torch.set_num_threads(1)
        self._facts = audit(self._reference)
        if self._facts.random:
            self._eval_mode = EvalMode.learn(self._reference)
        self._traffic = traffic_of(self._facts, self._driver, lambda: copy_bytes_per_us(self._device))
        facts = {
            **dataclasses.asdict(self._facts),
            **self._traffic,
            "work": work_of(self._reference, self._facts),
        }
        return {"facts": facts, "oracle": self._reference.oracle_place}

    # ── runners ───────────────────────────────────────────────────────────────────────────────────

    def greet(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Take over the channel of a fresh runner, which was told to come up, before its candidate is known."""
        limits = Deadlines(**message["deadlines"])
        session = Session(message["name"], Channel.from_fd(fds[0]), self._device, self._driver, limits)
        session.meet()
        self._sessions[message["name"]] = session
        return {"pid": session.pid}

    def load(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Give a runner its candidate: buffers, constructor, partners of the reference's tensors."""
        session = self._sessions[message["name"]]
        session.deadlines = Deadlines(**message["deadlines"])
        session.rest = self.rests if message["interruptible"] else None
        reference = self._reference
        sample = reference.draw()
        answer = reference.call(sample, reference.public, "plain")
        state_like = [reference.init, list(reference.constructed.values())]
        session.share(sample, answer.tensors, state_like, self._new_control(), self._gate)
        session.load(message["path"], reference.init, reference.mode)
        unmapped = reference.needed(session.match(reference.constructed))
        session.weights, session.mapped = reference.public, not unmapped
        if reference.weights or message.get("weights"):
            session.set_weights(reference.public)
        return {"unmapped": unmapped}

    def _new_control(self) -> Control | None:
        if self._driver is None:
            return None
        return Control.create(seal=bool(self._driver.attributes.read_only_host_register))

    def _settle(self) -> None:
        synchronize(self._device)
        self.give_back()

    def give_back(self) -> None:
        """Memory of a GPU that no tensor is in; nothing where the reference has broken the context."""
        with contextlib.suppress(RuntimeError):
            if self._device != "cpu" and idle_bytes() > HOARD_BYTES:
                torch.cuda.empty_cache()

    def drop(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Forget a runner, its buffers and what was kept of its outputs."""
        session = self._sessions.pop(message["name"], None)
        if session is not None:
            session.close()
        return {}

    # ── correctness ───────────────────────────────────────────────────────────────────────────────

    def check(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """All trials for one runner."""
        torch.set_num_threads(self._threads)
        session = self._sessions[message["name"]]
        checker = Checker(self._reference, self._facts, session)
        which = {"mapped": message["mapped"], "aligned": message["aligned"]}
        evidence = check_random(checker, self._eval_mode, which) if self._facts.random else checker.run(**which)
        evidence.failure = evidence.failure or self._restore(session)
        return {"evidence": dataclasses.asdict(evidence), "oracle": self._reference.oracle_place}

    def _restore(self, session: Session) -> dict[str, str] | None:
        try:
            session.set_weights(self._reference.public)
        except RunnerFailure as failure:
            return failure.as_json()
        return None

    def observe(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """What a runner says that its candidate changed around itself: names, not believed to be all; and what it tried
        for a library of its own that is not there. Raises RunnerFailure where that is a weight."""
        stage, changed = "looking at what was changed", self._reference.changed_state
        told = self._sessions[message["name"]].ask("observe", 30.0, stage, changed_state=changed)
        if overwritten := names_of(told.get("overwritten")):
            text = f"`{overwritten[0]}` is changed by a timed call; the reference leaves it alone"
            raise RunnerFailure("WRONG_VALUES", text, stage)
        names = told["patched"] if isinstance(told.get("patched"), list) else ["a malformed list"]
        return {"patched": [str(name)[:100] for name in names[:20]], "missing": str(told.get("missing"))[:200]}

    # ── timing ────────────────────────────────────────────────────────────────────────────────────

    def first_calls(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """The first calls of several runners at the same time; failures by name."""
        sessions = [self._sessions[name] for name in message["names"]]
        return {"failures": preparing.first_calls(self._reference, sessions)}

    def prepare(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Make a runner ready for driven calls. The first of a pair (`fresh_sets`) gets new inputs."""
        if self._supply is None or message["fresh_sets"]:
            self._supply = driving.Supply(self._reference)
        return preparing.prepare(
            self._reference,
            self._facts,
            self._sessions[message["name"]],
            self._supply,
            warm_s=message["warm_s"],
            look_for_caching=message["look_for_caching"],
        )

    def profile(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Streams that the candidate works on in one untimed call, and where its time goes."""
        session = self._sessions[message["name"]]
        told = session.ask("profile", 60.0 + session.deadlines.call_s, "a call under the profiler")
        streams = told.get("streams")
        return {"streams": streams if isinstance(streams, int) else 1, "profile": believable(told.get("profile"))}

    def needed(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """What moving the bytes takes at the least that any right candidate must move, on a GPU."""
        bandwidth = self._traffic["copy_bytes_per_us"]
        assert bandwidth
        return {"us": needed_us(self._reference, self._facts, self._driver, bandwidth)}

    def slope(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """The judge's own figure for a short call on a GPU, without the runner's clock."""
        session = self._sessions[message["name"]]
        assert self._supply is not None
        return {"us": driving.slope_on_cuda(session, self._supply, patience_s=session.deadlines.call_s)}

    def block(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """One block of driven calls of one runner on one clock."""
        session = self._sessions[message["name"]]
        assert self._supply is not None
        patience_s, warm = session.deadlines.call_s, message["warm"]
        if preparing.vary_weights(self._reference, session, self._supply.first):
            warm = max(1, warm)  # what is derived from them is no part of a sample
        options = {"warm": warm, "strange": message["strange"], "patience_s": patience_s}
        if self._driver:
            block = driving.block_on_cuda(
                session, self._supply, session.request, message["calls"], clock=message["clock"], **options
            )
        else:
            block = driving.block_on_cpu(session, self._supply, session.request, message["calls"], **options)
        return dataclasses.asdict(block)

    def back_to_back(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """The judge's own figure for a call on a CPU, of several in a row."""
        session = self._sessions[message["name"]]
        assert self._supply is not None
        patience_s = session.deadlines.call_s
        row = back_to_back.back_to_back(session, self._supply, call_us=message["call_us"], patience_s=patience_s)
        return {"row": row and row._asdict()}

    # ── compatibility protocols ───────────────────────────────────────────────────────────────────

    def compat_load(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Give a runner candidate and reference, as a published harness holds them."""
        session = self._sessions[message["name"]]
        session.deadlines = Deadlines(**message["deadlines"])
        compat_check.load(self._reference, session, message, self._new_control(), self._gate)
        return {}

    def compat_check(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """The harness's comparisons."""
        torch.set_num_threads(self._threads)
        session = self._sessions[message["name"]]
        return {"evidence": compat_check.check(self._reference, session, message["protocol"])}

    def compat_time(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """What the runner says that calls took."""
        return {"times": compat_check.times(self._sessions[message["name"]], message)}

    def witness(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Put timed calls of another runner with the same candidate to this one, under their own seeds."""
        torch.set_num_threads(self._threads)
        of, session = self._sessions[message["of"]], self._sessions[message["name"]]
        return {"unlike": unlike_another_process(self._reference, of, session, kept_calls(of))}

    def verify_timed(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Compare the outputs kept from timed calls with truth, which may lower the candidate's class."""
        torch.set_num_threads(self._threads)
        session = self._sessions[message["name"]]
        return verify_timed(self._reference, self._facts, session, message["precision_class"])

    def verify_weights(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Put trials to a runner once more, after its timed calls: forms of inputs that none of these had, and other
        weights, which may lower the candidate's class; in tasks that differ with the seed, one comparison of many
        answers. Raises RunnerFailure."""
        session, so_far = self._sessions[message["name"]], message["precision_class"]
        torch.set_num_threads(self._threads)
        checker = Checker(self._reference, self._facts, session)
        again = check_random_again(checker) if self._facts.random else checker.again(so_far, message["checked_class"])
        torch.set_num_threads(1)  # as it was between timed calls
        if failure := again.failure:
            return {"failure": {**failure, "detail": f"after timed calls {failure['detail']}"}}
        now = again.precision_class or so_far
        small_parts = now != so_far and any(each["check"] == "small-parts" for each in again.findings)
        return {"precision_class": now, "small_parts": small_parts}


def main(channel: Channel, spec: dict[str, Any]) -> None:
    """Serve the parent until it hangs up. A `RunnerFailure` or `BadTask` is a reply, never an exception here."""
    judge = Judge(channel)
    operations = {name: getattr(judge, name) for name in OPERATIONS}
    while True:
        try:
            message, fds = channel.receive(max_fds=2)
        except ChannelClosed:
            os._exit(0)
        if message["op"] in PATIENT:
            judge.rests.begin()
        ENTROPY.begin(bytes.fromhex(message["key"]))
        try:
            reply = operations[message["op"]](message, fds)
        except RunnerFailure as failure:
            reply = {"failure": failure.as_json()}
        except BadTask as bad:
            reply = {"bad_task": str(bad)}
        except RuntimeError as error:
            if not is_short_of_memory(error):
                raise
            reply = {"memory": first_line(error)}
        judge.rests.end()
        if message["op"] in HUNGRY:
            judge.give_back()
        channel.send(reply)
