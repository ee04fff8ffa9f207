"""Why a published figure and ours differ: rules over what two evaluations of one kernel found out.

Each rule is one function that sees both evaluations and the texts, and either gives a reason with its evidence or None.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from cuda_l1 import exactness
from cuda_l1.config import COMPAT
from cuda_l1.ratios import from_log, within_floats
from cuda_l1.report.terminal import times
from cuda_l1.tasks.same_program import same_program
from cuda_l1.tasks.sizes import own_sizes
from cuda_l1.types import Evaluation, Finding, Frozen, Outcome, Task, Timing, Trial, other_clock

Why = Literal[
    "another reference",
    "degenerate task",
    "failed to build",
    "unchanged reference",
    "no different from the reference",
    "wrong in train mode",
    "lazy",
    "cached",
    "other weights",
    "wrong",
    "did not run",
    "silent fallback",
    "hidden work",
    "relaxed precision",
    "launch overhead only",
    "refused there",
    "suspect",
    "measured otherwise",
    "another figure here",
]
SAME_SPEED = 0.02
"""So far from 1x is the reference's own speed."""
NO_FASTER = 1.05
"""Up to this the device does not work less."""
APART = 1.25
"""Two figures of which one is so many times the other differ: a published one does not come back, or two protocols
measure one kernel otherwise."""
EXPLAINED = {"late-write", "caching", "silent-fallback", "dead-kernel", "precision", "small-parts"}
HIDDEN = ("clock-mismatch", "outside-work", "drawn-ahead", "patched")
"""Findings that have a reason of their own."""


_GUESSED = "was laid in"
"""Of a verdict's detail: the weights may have been laid in the wrong places, which is no fault of the kernel's."""
_NOTHING = ("0 output tensors", "the output is not a tensor: NoneType")
"""How the details of NO_OUTPUT begin, by our protocol and by a harness, where nothing is there to be computed later."""
WRONG = {Outcome.WRONG_VALUES, Outcome.WRONG_SHAPE, Outcome.WRONG_DTYPE, Outcome.NONDETERMINISTIC}


class Reason(Frozen):
    """One of the reasons, with what shows it."""

    why: Why
    evidence: str


class Facts(NamedTuple):
    """What the rules see of one kernel."""

    published: float | None
    """The published speed-up against eager."""
    theirs: Evaluation | None
    """Under the harness that the figure was published with; None where it could not be asked."""
    ours: Evaluation | None
    reference: str
    """What both verdicts are against."""
    candidate: str
    published_reference: str | None = None
    """What the published figure is against, where that is another program than `reference`."""


def reasons(facts: Facts) -> tuple[Reason, ...]:
    """Every reason that applies, the ones that explain most first."""
    found = ((why, rule(facts)) for why, rule in RULES.items())
    return tuple(Reason(why=why, evidence=evidence) for why, evidence in found if evidence)


def _another_reference(facts: Facts) -> str | None:
    """The published figure is of another program, often of other shapes: it is no figure of this task."""
    if facts.published_reference is None:
        return None
    theirs, ours = _sizes(facts.published_reference), _sizes(facts.reference)
    other = [f"{name} there {size}, here {ours[name]}" for name, size in theirs.items() if ours.get(name, size) != size]
    only_there, only_here = (_without_name(one, two) for one, two in ((theirs, ours), (ours, theirs)))
    if only_there and only_here:
        other.append(f"sizes without a name there {only_there}, here {only_here}")
    told = f" ({'; '.join(other)})" if other else ""
    return f"the published figure is against the release's own reference, another program than the one here{told}"


def _without_name(one: Mapping[str, int], other: Mapping[str, int]) -> str:
    """The sizes that one text alone has and gives no names to: they are called by their values."""
    return ", ".join(name for name in one if name.isdecimal() and name not in other)


def _sizes(source: str) -> dict[str, int]:
    """The sizes that a reference's text gives names to; none of a text that is no Python."""
    try:
        return own_sizes(Task(suite="release", name="reference", source=source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def _degenerate(facts: Facts) -> str | None:
    flags = {"degenerate", "ill-conditioned", "insensitive-inputs"} & set(facts.ours.task_flags if facts.ours else ())
    return f"the task is {', '.join(sorted(flags))}: being right there proves nothing" if flags else None


def _failed_to_build(facts: Facts) -> str | None:
    return _detail_of(facts, {Outcome.BUILD_FAILED})


def _did_not_run(facts: Facts) -> str | None:
    return _detail_of(facts, {Outcome.CRASHED, Outcome.TIMED_OUT, Outcome.OUT_OF_MEMORY})


def _detail_of(facts: Facts, outcomes: set[Outcome]) -> str | None:
    """The detail of the first evaluation that ended in one of these, ours before theirs."""
    for evaluation in (facts.ours, facts.theirs):
        if evaluation and evaluation.outcome in outcomes:
            return evaluation.detail or str(evaluation.outcome)
    return None


def _unchanged(facts: Facts) -> str | None:
    same = same_program(facts.reference, facts.candidate)
    return "the class is the reference's, word for word, and so is what it uses" if same else None


def _no_different(facts: Facts) -> str | None:
    """Another text that does the same: nothing measured tells it from the reference."""
    if _unchanged(facts):
        return None
    ours = facts.ours
    timing = ours.timing() if ours and ours.accepted else None
    if ours is None or ours.correctness is None or timing is None or abs(timing.speedup - 1) > SAME_SPEED:
        return None
    trials = [t for t in ours.correctness.trials if t.reference_error is not None]
    if any(t.reference_error for t in trials) and all(t.error == t.reference_error for t in trials):
        return f"errs as the reference does in all {len(trials)} trials, and takes its time ({times(timing.speedup)})"
    return None


def _wrong_in_train_mode(facts: Facts) -> str | None:
    """Close in eval mode by the harness, and in the mode that is timed not even within its tolerance, or, where that is
    random, with other statistics. What differs from call to call says nothing of modes, nor does what was judged in
    eval mode."""
    ours = facts.ours.correctness if facts.ours else None
    if facts.ours is None or ours is None or not _passed_in_eval_mode(facts.theirs):
        return None
    if facts.ours.outcome is Outcome.NONDETERMINISTIC or "eval-mode" in facts.ours.task_flags:
        return None
    told = "close to the reference in eval mode, where the harness compares, and not in train mode, where it times"
    if _random_only_when_timed(facts.ours):
        return f"{told}: {facts.ours.detail}"
    return told if ours.allclose_release is False else None


def _random_only_when_timed(ours: Evaluation) -> bool:
    """Whether a random task's candidate passed by value, which is in eval mode, and then failed over seeds."""
    trials = ours.correctness.trials if ours.correctness else ()
    by_value = bool(trials) and all(t.passed_class and t.kind != "seeds" for t in trials)
    return by_value and "random" in ours.task_flags and ours.outcome in WRONG


def _passed_in_eval_mode(theirs: Evaluation | None) -> bool:
    return theirs is not None and theirs.protocol == "cuda-l1" and theirs.accepted


def _lazy(facts: Facts) -> str | None:
    late = _finding(facts, "late-write")
    if late:
        return late.evidence
    for evaluation in (facts.ours, facts.theirs):
        if evaluation and evaluation.outcome is Outcome.NO_OUTPUT and not _returns_nothing(evaluation):
            return evaluation.detail
    return None


def _returns_nothing(evaluation: Evaluation) -> bool:
    return evaluation.outcome is Outcome.NO_OUTPUT and evaluation.detail.startswith(_NOTHING)


def _cached(facts: Facts) -> str | None:
    caching = _finding(facts, "caching")
    if caching:
        return caching.evidence
    failed = _first_failed(facts.ours)
    if failed and failed.kind in ("refill", "touched"):
        return "other values in the same tensors get the answer to the old ones"
    detail = facts.ours.detail if facts.ours and facts.ours.outcome is Outcome.WRONG_VALUES else ""
    if detail.startswith("a second call gives back the output of the first"):
        return detail
    return f"right when it is checked, and {detail}" if detail.startswith("a timed call") else None


def _other_weights(facts: Facts) -> str | None:
    """Right with the weights that it was built with, as harnesses compare it, and with no others: it folds them into
    others, or into constants, once."""
    ours, failed = facts.ours, _first_failed(facts.ours)
    if ours is None or failed is None or ours.outcome is not Outcome.WRONG_VALUES or _GUESSED in ours.detail:
        return None
    if failed.kind == "weights":
        return f"right with the weights that it was built with, and wrong with others: {ours.detail}"
    if failed.kind == "touched-weights":
        return f"right until some of its weights change in place: {ours.detail}"
    return None


def _wrong(facts: Facts) -> str | None:
    """Wrong by our bounds, for another reason than those that have a name."""
    if _cached(facts) or _other_weights(facts) or _wrong_in_train_mode(facts) or facts.ours is None:
        return None
    return facts.ours.detail if facts.ours.outcome in WRONG or _returns_nothing(facts.ours) else None


def _first_failed(evaluation: Evaluation | None) -> Trial | None:
    if evaluation is None or evaluation.correctness is None:
        return None
    return next((t for t in evaluation.correctness.trials if t.passed_class is None), None)


def _silent_fallback(facts: Facts) -> str | None:
    found = _finding(facts, "silent-fallback") or _finding(facts, "dead-kernel")
    return found.evidence if found else None


def _hidden_work(facts: Facts) -> str | None:
    found = (_finding(facts, check) for check in HIDDEN)
    return next((f"{f.check}: {f.evidence}" for f in found if f), None)


def _finding(facts: Facts, check: str) -> Finding | None:
    findings = facts.ours.findings if facts.ours else ()
    return next((f for f in findings if f.check == check and f.severity != "note"), None)


def _relaxed(facts: Facts) -> str | None:
    ours = facts.ours
    if ours is None or not ours.accepted or ours.correctness is None or ours.precision_class is None:
        return None
    wanted = ours.correctness.task_class
    if exactness.at_least_as_exact(ours.precision_class, wanted):
        return None
    named = _finding(facts, "precision") or _finding(facts, "small-parts")
    return f"class {ours.precision_class}, the task's is {wanted}{f': {named.evidence}' if named else ''}"


def _launch_overhead(facts: Facts) -> str | None:
    """On a GPU: the device works as long as before, and only what the host needs to start it is less."""
    device, call = (facts.ours.timing("eager", c) if facts.ours else None for c in ("device", "call"))
    if device is None or call is None or device.speedup > NO_FASTER or call.speedup <= NO_FASTER * device.speedup:
        return None
    return f"{times(device.speedup)} on the device, {times(call.speedup)} for a caller that waits"


def _refused_there(facts: Facts) -> str | None:
    """Wrong by the harness, and right by our bounds."""
    theirs, ours = facts.theirs, facts.ours
    if theirs is None or ours is None or not ours.accepted:
        return None
    refused = theirs.outcome in WRONG or theirs.outcome is Outcome.REJECTED or _returns_nothing(theirs)
    return theirs.detail or str(theirs.outcome) if refused else None


def _suspect(facts: Facts) -> str | None:
    """What our checks saw beside the findings that have a reason of their own."""
    found = [f for f in (facts.ours.findings if facts.ours else ()) if f.severity != "note"]
    told = [f"{f.check}: {f.evidence}" for f in found if f.check not in EXPLAINED and f.check not in HIDDEN]
    return "; ".join(told) or None


def _measured_otherwise(facts: Facts) -> str | None:
    """The harness and our protocol accept the kernel and give it different figures here: what the two rest on."""
    one, other = (e.timing() if e and e.accepted else None for e in (facts.theirs, facts.ours))
    if facts.ours is None or one is None or other is None or not apart(one.speedup, other.speedup):
        return None
    told = [f"{times(one.speedup)} there, {times(other.speedup)} here"]
    ratios = [from_log(pair.log_ratio) for pair in one.pairs]
    if len(ratios) > 1:
        told.append(f"their {len(ratios)} rounds lie between {times(min(ratios))} and {times(max(ratios))}")
    medians = _by_medians(one)
    if medians and apart(medians, one.speedup):
        told.append(f"they take means: by medians their samples say {times(medians)}")
    told += filter(None, [_gave_up(facts.theirs)])
    told.append(_rests_on(other, one.speedup))
    told += [f"of ours {note.evidence}" for note in facts.ours.findings if note.check == "few-pairs"]
    clock = other_clock(other.clock)
    if (waits := facts.ours.timing(clock=clock)) and not apart(waits.speedup, one.speedup):
        told.append(f"by our {clock} clock it is {times(waits.speedup)}, as there")
    return "; ".join(told)


def _gave_up(theirs: Evaluation | None) -> str | None:
    """Why the harness made fewer rounds than it makes of others."""
    protocol, timing = COMPAT.get(theirs.protocol) if theirs else None, theirs.timing() if theirs else None
    if protocol is None or timing is None or not 0 < len(timing.pairs) < protocol.rounds:
        return None
    last, least = from_log(timing.pairs[-1].log_ratio), protocol.gives_up_below
    told = (
        f"it gave up after {len(timing.pairs)} of {protocol.rounds} rounds, the last of which was below {times(least)}"
    )
    return f"{told}: {times(last)}" if last < least else None


def _rests_on(ours: Timing, theirs: float) -> str:
    """How exact our figure is."""
    if ours.speedup_low is not None and ours.speedup_high is not None:
        inside = ours.speedup_low <= theirs <= ours.speedup_high
        return f"ours has 95 % intervals, and theirs lies {'within' if inside else 'outside'}"
    ratios = [from_log(pair.log_ratio) for pair in ours.pairs]
    if len(ratios) > 1:
        return f"ours is a screen, whose {len(ratios)} pairs lie between {times(min(ratios))} and {times(max(ratios))}"
    return "ours is a screen of one pair, without an interval: `--ours final` has one"


def _by_medians(timing: Timing) -> float | None:
    """The mean over rounds, each by the medians of its samples."""
    sides = [(statistics.median(p.opponent_us), statistics.median(p.candidate_us)) for p in timing.pairs]
    if not sides or not all(one > 0 and other > 0 for one, other in sides):
        return None
    return statistics.fmean(within_floats(one / other) for one, other in sides)


def apart(one: float, other: float) -> bool:
    """Whether two figures differ."""
    return not 1 / APART < one / other < APART


def _another_figure(facts: Facts) -> str | None:
    """The published figure does not come back under the harness that was asked for, against one reference."""
    timing = facts.theirs.timing() if facts.theirs and facts.theirs.accepted else None
    if timing is None or facts.published is None or facts.theirs is None or facts.published_reference is not None:
        return None
    if not apart(timing.speedup, facts.published):
        return None
    harness, device = facts.theirs.protocol, facts.theirs.environment.device_name
    told = f"published {times(facts.published)}, the harness {harness} says {times(timing.speedup)} on {device}"
    return "; ".join(filter(None, (told, _gave_up(facts.theirs))))


RULES: dict[Why, Callable[[Facts], str | None]] = {
    "another reference": _another_reference,
    "degenerate task": _degenerate,
    "failed to build": _failed_to_build,
    "unchanged reference": _unchanged,
    "no different from the reference": _no_different,
    "wrong in train mode": _wrong_in_train_mode,
    "lazy": _lazy,
    "cached": _cached,
    "other weights": _other_weights,
    "wrong": _wrong,
    "did not run": _did_not_run,
    "silent fallback": _silent_fallback,
    "hidden work": _hidden_work,
    "relaxed precision": _relaxed,
    "launch overhead only": _launch_overhead,
    "refused there": _refused_there,
    "suspect": _suspect,
    "measured otherwise": _measured_otherwise,
    "another figure here": _another_figure,
}
