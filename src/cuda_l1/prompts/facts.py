"""What a prompt can say beside the task and its exemplars, as plain data that whoever measured it hands in."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cuda_l1.types import Evaluation, Frozen, Language, Record, Work


class DeviceFacts(Frozen):
    """The device that candidates are timed on. What is not known is None and is left out of the prompt."""

    device: Literal["cpu", "cuda"]
    name: str
    compute_capability: str | None = None
    """Of a GPU, e.g. `9.0`."""
    multiprocessors: int | None = None
    shared_memory_bytes: int | None = None
    """What one block of threads may have at most, by opting in."""
    l2_bytes: int | None = None
    memory_bytes: int | None = None
    bandwidth_gb_s: float | None = None
    """Of the device's memory, 10^9 bytes a second, by its clock and bus width."""
    cores: int | None = None
    """Of a CPU: those that a candidate may use."""
    vector_extensions: tuple[str, ...] = ()
    """Of a CPU: what its instruction set offers for vectors, e.g. `avx2`, `avx512f`."""
    cache_bytes: int | None = None
    """Of a CPU: its last-level cache."""


class Roofline(Frozen):
    """How far a task's time can fall, and where it is now; microseconds, on the clock that is the objective."""

    least_us: float = Field(gt=0)
    """What moving the bytes once, or doing the operations, takes: the larger of both."""
    work: Work | None = None
    """The bytes and operations behind it; None where the bytes of inputs and outputs alone are known."""
    reference_us: float | None = Field(None, gt=0)
    best_us: float | None = Field(None, gt=0)
    """The best variant so far."""

    @classmethod
    def of_work(cls, work: Work, precision_class: str | None) -> Roofline | None:
        """By what a judge counted and measured, in arithmetic of that class, else in the fastest; None for no bytes."""
        rate = work.flops_per_us.get(precision_class or "") or max(work.flops_per_us.values(), default=0.0)
        least_us = max(work.moved_bytes / work.bytes_per_us, work.flops / rate if rate else 0.0)
        return cls(least_us=least_us, work=work) if least_us > 0 else None


class FailedAttempt(Frozen):
    """An attempt that did not become an accepted candidate, and what was said about it."""

    source: str
    """The candidate's text; the whole reply where it held no candidate."""
    language: Language = "pytorch"
    outcome: str
    """An `Outcome`, or the `ReplyProblem` of a reply without a candidate."""
    detail: str = ""
    """What was wrong, in one line."""
    log: str = ""
    """What the compiler and the candidate printed."""

    @classmethod
    def of(cls, record: Record) -> FailedAttempt:
        """What a record of a candidate that was not accepted shows."""
        found: Evaluation = record.evaluation
        return cls(
            source=record.candidate.source,
            language=record.candidate.language,
            outcome=found.outcome,
            detail=found.detail,
            log=found.log,
        )
