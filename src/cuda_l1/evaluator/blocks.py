"""Driven calls of one side of a pair: how many, in how many blocks, on which clock; and what is asked once of them."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cuda_l1.config import Limits, Protocol
from cuda_l1.evaluator.bench import Bench
from cuda_l1.evaluator.failures import Failure, one_line
from cuda_l1.evaluator.guest.entropy import ENTROPY
from cuda_l1.evaluator.pairs import Row, Side
from cuda_l1.types import CallProfile, Candidate, Clock

BLOCKS = 6
ENOUGH_CALLS = 8
"""A block of so many calls always has a strange one among them."""
STRANGE_CALLS, STRANGE_SHARE = 18, 0.5
"""So many of a side's calls in a pair are strange ones, so that all forms of inputs have their turn, where they take no
more than this share of its time beside its samples."""
MULTI_STREAM_US = 5.0
"""Added to a candidate that works on several streams: what handing a stream over can still hide behind the gate."""
SLOPE_BELOW_US = 20.0
MATTERS_BELOW_US = 250.0
"""From here on the surcharge is below 2 % of the figure."""
_COPY_BYTES_PER_US = 2000.0
_OVERHEAD_US = 400.0
_LONG_CALL_US = 20_000.0
_CURRENT_STREAM = re.compile(
    r"(?:_cuda_)?getCurrent(?:Raw|CUDA)Stream|get_raw_stream|current_stream|default_stream"
    r"|CUDAStream\.h|cudaStream_t|\.cuda_stream\b|\bstream\d*\b(?!\s*\()"
)


@dataclass(frozen=True)
class Look:
    """What a profiler showed of one untimed call."""

    streams: int = 1
    """1 as well where they were not counted."""
    profile: CallProfile | None = None


@dataclass(frozen=True)
class Blocks:
    """Asks the judge for the calls of one runner at a time."""

    bench: Bench
    on_cpu: bool
    protocol: Protocol
    clocks: tuple[Clock, ...]
    limits_of: Callable[[Candidate], Limits]

    def plan(self, side: Side, runners: int) -> tuple[int, int]:
        """(blocks, calls in each) that fill this side's share of the pair's time on one clock."""
        share_us = self._share_us(runners)
        by_samples, by_wall = share_us / self._call_us(side), 1.5 * share_us / self._cycle_us(side)
        total = max(self.protocol.min_samples, min(self.protocol.max_samples, by_samples, by_wall))
        blocks = int(min(BLOCKS, max(3, total // 2)))
        return blocks, max(1, math.ceil(total / blocks))

    def _cycle_us(self, side: Side) -> float:
        """What a call takes with all that goes on beside it."""
        traffic = self.bench.facts["input_bytes"] + self.bench.facts["output_bytes"]
        overhead = _OVERHEAD_US + (traffic / _COPY_BYTES_PER_US if self.on_cpu else 600.0)
        return self._call_us(side) + overhead + float(side.prepared["supply_us"] or 0.0)

    @staticmethod
    def _call_us(side: Side) -> float:
        return float(side.prepared["us"] or 1.0)

    def after_first(
        self, plan: tuple[int, int], strange: Sequence[int], took_us: float, runners: int
    ) -> tuple[int, int]:
        """The plan for a side whose first block took so long: on a GPU, where the clock runs beside a call for longer
        than a short one takes, its share is wall time, as others wait for the device."""
        blocks, calls = plan
        if self.on_cpu or blocks == 1:
            return plan
        left = (self._share_us(runners) - took_us) / (blocks - 1)
        cycles = left * (calls + 1 + strange[0]) / took_us - 1 - max(strange[1:])  # one of each block warms up
        least = math.ceil((self.protocol.min_samples - calls) / (blocks - 1))
        return blocks, max(1, least, min(calls, int(cycles)))

    def _share_us(self, runners: int) -> float:
        return self.protocol.pair_s * 1e6 / (runners * len(self.clocks))

    def strange(self, side: Side, plan: tuple[int, int], runners: int) -> list[int]:
        """How many strange calls each block of a plan has: one of them one for certain, most where calls are many, and
        more of them while they take little of this side's share."""
        blocks, calls = plan
        certain = ENTROPY.randrange(blocks)
        least = [int(n == certain or ENTROPY.random() < calls / ENOUGH_CALLS) for n in range(blocks)]
        cheap = min(STRANGE_CALLS, int(STRANGE_SHARE * self._share_us(runners) / self._cycle_us(side)))
        dealt = [cheap // blocks + (n < cheap % blocks) for n in range(blocks)]
        return [max(pair) for pair in zip(least, ENTROPY.sample(dealt, blocks), strict=True)]

    def run(self, side: Side, clock: Clock, calls: int, *, strange: int) -> None:
        """One block; the runner goes on for as long as it takes. `strange`: so many calls more are among them, which
        are no samples, with inputs that are not the task's ordinary ones. Raises Failure."""
        warm = 1 if float(side.prepared["us"] or 0.0) < _LONG_CALL_US or clock not in side.samples else 0
        side.runner.guest.resume()
        reply = self.bench.ask(
            side.runner,
            "block",
            (calls + warm + strange) * (self._call_s(side) + 5.0) + 60.0,
            quiet=True,
            clock=clock,
            calls=calls,
            warm=warm,
            strange=strange,
        )
        side.runner.guest.stop()
        side.samples.setdefault(clock, []).extend(reply["samples"])
        side.judge.setdefault(clock, []).extend(reply["judge"])
        side.outside.setdefault(clock, []).extend(reply["outside"])
        side.late = side.late or reply["late"]
        side.opened += reply["opened"]

    def back_to_back(self, side: Side) -> Row | None:
        """On a CPU, calls in a row; None where inputs are too large."""
        call_us = max(1.0, statistics.median(side.judge["call"]))
        side.runner.guest.resume()
        reply = self.bench.ask(
            side.runner, "back_to_back", 300.0 + 100 * self._call_s(side), quiet=True, call_us=call_us
        )
        side.runner.guest.stop()
        if (row := reply["row"]) is None:
            return None
        side.late = side.late or row["late"]
        return Row(row["us"], row["cold_us"])

    def slope_us(self, side: Side) -> float | None:
        """On a GPU, for a call so short that the judge's clock is coarse: a lower bound of its own from many calls
        behind one gate."""
        if side.median("device") > SLOPE_BELOW_US:
            return None
        us: float = self.bench.ask(side.runner, "slope", 120.0, quiet=True)["us"]
        return us

    def look(self, sides: Sequence[Side]) -> Look:
        """What a profiler shows of the candidate. Starting one costs up to seconds on a GPU and slows what comes after
        it, so: once, after the samples, and where streams can matter or somebody wants to see it."""
        streams_matter = self._streams_matter(sides)
        if not (streams_matter or self._is_wanted(sides)):
            return Look()
        try:
            told = self.bench.ask(sides[0].runner, "profile", 90.0 + self._call_s(sides[0]))
        except Failure:
            if streams_matter or not self.bench.facts:  # the judge had to be ended, too
                raise
            return Look()
        return Look(told["streams"] if streams_matter else 1, _profile(told["profile"]))

    def _is_wanted(self, sides: Sequence[Side]) -> bool:
        clock, above = self.clocks[0], self.protocol.profile_above
        return above is not None and sides[1].median(clock) > above * sides[0].median(clock)

    def _streams_matter(self, sides: Sequence[Side]) -> bool:
        if self.on_cpu:
            return False
        ours = sides[0].median("device")
        if ours > MATTERS_BELOW_US or ours > 0.98 * min(side.median("device") for side in sides[1:]):
            return False
        return self.protocol.name == "final" or speaks_of_streams(sides[0].candidate.source)

    def _call_s(self, side: Side) -> float:
        return self.bench.deadlines(self.limits_of(side.candidate))["call_s"]


def _profile(told: dict[str, Any] | None) -> CallProfile | None:
    if told is None:
        return None
    parts = [{**part, "name": one_line(part["name"]) or "?"} for part in told["parts"]]
    return CallProfile.model_validate({**told, "parts": parts})


def speaks_of_streams(source: str) -> bool:
    """Whether a text makes streams of its own or switches to one. Asking for the current one, and a variable that holds
    it, which every launcher has, is neither; what hides behind other names a final's profile shows."""
    return "tream" in _CURRENT_STREAM.sub("", source)
