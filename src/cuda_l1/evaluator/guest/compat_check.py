"""The judge's part in a compatibility protocol: a published harness's inputs and its one comparison.

The reference that outputs are compared with is called here, in the judge's own process. What a published harness
cannot take (several outputs, an argument of the wrong dtype) fails here as it fails there.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Iterator
from typing import Any

import torch

from .compat import SEED, made, moved
from .load import is_short_of_memory, seed_everything
from .reference import Reference, first_line
from .session import RunnerFailure, Session

CHUNK = 1 << 24
"""Elements that are compared at a time in float64, for what is shown of the error."""


def load(reference: Reference, session: Session, message: dict[str, Any], control: Any, gate: str | None) -> None:
    """Share buffers with a fresh runner and have it load both texts. Raises RunnerFailure."""
    protocol = message["protocol"]
    inputs = _inputs(reference, protocol, SEED)
    with _harness_fails(), torch.no_grad():
        expected = _single(_model(reference, protocol)(*inputs))
    session.share(inputs, [expected], [torch.zeros(1)], control, gate)
    told = {key: message[key] for key in ("path", "reference", "protocol")}
    session.ask("compat", session.deadlines.load_s, "loading", step="load", device=reference.device, **told)


def check(reference: Reference, session: Session, protocol: dict[str, Any]) -> dict[str, Any]:
    """Trials and the failure that ended them, if one did."""
    evidence: dict[str, Any] = {"trials": [], "failure": None}
    try:
        if protocol["looks_for_lazy"]:
            _look_for_lazy(session)
        for failure in _compared(reference, session, protocol, evidence["trials"]):
            evidence["failure"] = failure
            break
    except RunnerFailure as failure:
        evidence["failure"] = failure.as_json()
    return evidence


def _look_for_lazy(session: Session) -> None:
    reply = session.ask("compat", session.deadlines.first_call_s, "the first call", step="lazy")
    if reply.get("problem") is not None:
        raise RunnerFailure("NO_OUTPUT", str(reply["problem"])[:300], "the first call")


def _compared(
    reference: Reference, session: Session, protocol: dict[str, Any], trials: list[dict[str, Any]]
) -> Iterator[dict[str, str]]:
    """Appends a trial for each of the harness's inputs; yields the failures."""
    model = _model(reference, protocol)
    if protocol["eval_mode"]:
        model.eval()
    for number, seed in enumerate(_seeds(protocol["trials"])):
        inputs = _inputs(reference, protocol, seed)
        seed_everything(seed)
        with _harness_fails(), torch.no_grad():
            expected = _single(model(*inputs))
        session.show(inputs)
        slot = session.slots([expected])[0]
        timeout = session.deadlines.call_s if number else session.deadlines.first_call_s
        own_seed = seed if protocol["seeds_candidate"] else seed + 1
        described = session.ask("compat", timeout, "a call", step="call", seed=own_seed, slot=slot)
        if wrong := _misfit(described, expected):
            yield wrong
            return
        got = session.output(slot)
        close = torch.allclose(expected, got, atol=protocol["tolerance"], rtol=protocol["tolerance"])
        error = least_tolerance(expected, got)
        trials.append(_trial(error, protocol["tolerance"], passed=close))
        if not close:
            text = f"input {number + 1} of {protocol['trials']} is not close: it would take a tolerance of {error:.3g}"
            yield {"outcome": "WRONG_VALUES", "detail": f"{text} and {protocol['tolerance']:g} is allowed", "stage": ""}
            return


def _seeds(count: int) -> list[int]:
    """The seeds that KernelBench and the release derive from theirs."""
    torch.manual_seed(SEED)
    return [int(torch.randint(0, 2**32 - 1, (1,)).item()) for _ in range(count)]


def _inputs(reference: Reference, protocol: dict[str, Any], seed: int) -> Any:
    return moved(reference.draw(seed), reference.device, to_fp32=protocol["cast_to_fp32"])


def _model(reference: Reference, protocol: dict[str, Any]) -> Any:
    to_fp32 = protocol["cast_to_fp32"]
    init = moved(reference.init, reference.device, to_fp32=to_fp32)
    with _harness_fails():
        return made(sys.modules["reference_task"].Model, init, reference.device, to_fp32=to_fp32)


@contextlib.contextmanager
def _harness_fails() -> Iterator[None]:
    """What the reference raises when it is treated as the harness treats it: there, too, no candidate passes."""
    try:
        yield
    except RunnerFailure:
        raise
    except Exception as error:
        if is_short_of_memory(error):
            raise
        text = f"the reference itself fails in this harness: {first_line(error)}"
        raise RunnerFailure("CRASHED", text, "a call") from error


def _single(output: Any) -> torch.Tensor:
    if isinstance(output, torch.Tensor):
        return output
    text = f"this harness compares one tensor; the reference gives a {type(output).__name__}"
    raise RunnerFailure("WRONG_SHAPE", text, "a call")


def _misfit(described: dict[str, Any], expected: torch.Tensor) -> dict[str, str] | None:
    """Why an output cannot be compared, in the order in which the harness would find out."""
    dtype = str(expected.dtype).removeprefix("torch.")
    for name, wanted, outcome in (
        ("shape", list(expected.shape), "WRONG_SHAPE"),
        ("dtype", dtype, "WRONG_DTYPE"),
        ("device", expected.device.type, "WRONG_DTYPE"),
    ):
        if described.get(name) != wanted:
            text = f"{name} {str(described.get(name))[:80]} where the reference gives {wanted}"
            return {"outcome": outcome, "detail": text, "stage": ""}
    return None


def least_tolerance(expected: torch.Tensor, got: torch.Tensor) -> float:
    """The least t at which torch.allclose(expected, got, atol=t, rtol=t) holds: max |e - g| / (1 + |g|)."""
    worst = 0.0
    flat, other = expected.reshape(-1), got.reshape(-1)
    wide = torch.complex128 if expected.is_complex() else torch.float64
    for start in range(0, flat.numel(), CHUNK):
        a, b = flat[start : start + CHUNK].to(wide), other[start : start + CHUNK].to(wide)
        needed = ((a - b).abs() / (1 + b.abs())).masked_fill(a == b, 0.0)
        largest = float(needed.nan_to_num(nan=math.inf).max())
        worst = max(worst, largest)
    return worst


def _trial(error: float, tolerance: float, *, passed: bool) -> dict[str, Any]:
    return {
        "kind": "allclose",
        "error": error if math.isfinite(error) else None,
        "reference_error": None,
        "bound": tolerance,
        "passed_class": "relaxed" if passed else None,
    }


def times(session: Session, message: dict[str, Any]) -> dict[str, list[float]]:
    """What a runner says that its calls took, microseconds, by side: checked for form, and believed as there.

    Raises RunnerFailure.
    """
    told = {key: message[key] for key in ("step", "warm_ups", "side", "seed") if key in message}
    reply = session.ask("compat", message["patience_s"], "a timed call", **told)
    return {side: _figures(reply.get(side), message["count"]) for side in message["sides"]}


def _figures(told: Any, count: int) -> list[float]:
    if not isinstance(told, list) or len(told) != count or not all(_is_time(value) for value in told):
        raise RunnerFailure("CRASHED", "the runner sent a malformed list of times", "timing")
    return [float(value) for value in told]


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and 0 <= value < 1e12
