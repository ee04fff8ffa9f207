"""Each rule of why a published figure and ours differ: the evidence that gives it, and the like that does not."""

from __future__ import annotations

import math
import statistics
from typing import Any

import pytest

from cuda_l1.report.reasons import RULES, Facts, reasons
from cuda_l1.tasks.same_program import same_program, same_reference
from cuda_l1.types import Clock, Correctness, Environment, Evaluation, Finding, Outcome, Pair, Timing, Trial

REFERENCE = "class Model(Module):\n    def forward(self, x):\n        return relu(x)\n"
NOTHING = "the output is not a tensor: NoneType"
CANDIDATE = "class ModelNew(Module):\n    def forward(self, x):\n        return my_relu(x)\n"


def trial(kind: str = "base", error: float = 1e-7, reference: float | None = 2e-7, passed: Any = "fp32") -> Trial:
    return Trial(kind=kind, error=error, reference_error=reference, bound=1e-6, passed_class=passed)


def timing(speedup: float, clock: Clock) -> Timing:
    pair = Pair(candidate_us=(1.0,), opponent_us=(1.0,), candidate_pid=1, opponent_pid=2, log_ratio=0.0)
    return Timing(
        clock=clock,
        opponent="eager",
        opponent_id="e",
        pairs=(pair,),
        speedup=speedup,
        candidate_us=1.0,
        opponent_us=1.0,
    )


def evaluation(
    outcome: Outcome = Outcome.ACCEPTED,
    *,
    detail: str = "",
    trials: tuple[Trial, ...] = (trial(),),
    precision: Any = "fp32",
    speedup: float = 2.0,
    call: float | None = None,
    findings: tuple[str, ...] = (),
    protocol: str = "final",
    flags: tuple[str, ...] = (),
    allclose: bool | None = None,
) -> Evaluation:
    """On a GPU; `findings` are suspect ones, by name."""
    place = Environment(device="cuda", device_name="GPU", lane="gpu", rung="R2", torch="2")
    accepted = outcome is Outcome.ACCEPTED
    return Evaluation(
        candidate_id="c",
        outcome=outcome,
        detail=detail,
        correctness=Correctness(trials=trials, precision_class=precision, task_class="fp32", allclose_release=allclose),
        timings=(timing(speedup, "device"), timing(call or speedup, "call")) if accepted else (),
        findings=tuple(Finding(check=name, severity="suspect", evidence=f"{name} seen") for name in findings),
        environment=place,
        protocol=protocol,
        task_flags=flags,
    )


def why(
    ours: Evaluation | None = None,
    theirs: Evaluation | None = None,
    published: float | None = None,
    text: str = CANDIDATE,
    published_reference: str | None = None,
) -> dict[str, str]:
    found = reasons(Facts(published, theirs, ours, REFERENCE, text, published_reference))
    return {reason.why: reason.evidence for reason in found}


def theirs(speedup: float = 2.0, outcome: Outcome = Outcome.ACCEPTED, detail: str = "") -> Evaluation:
    accepted = trial("allclose", 1e-5, None, "relaxed")
    return evaluation(
        outcome, detail=detail, speedup=speedup, protocol="cuda-l1", trials=(accepted,), precision="relaxed"
    )


def of_random(trials: tuple[Trial, ...], outcome: Outcome = Outcome.WRONG_VALUES) -> Evaluation:
    """A wrong one on a random task."""
    return evaluation(outcome, flags=("random",), trials=trials, allclose=True)


def of_other_weights(detail: str = "output errs by 1") -> Evaluation:
    """Right until its weights are others."""
    trials = (trial(), trial("weights", passed=None))
    return evaluation(Outcome.WRONG_VALUES, trials=trials, detail=detail, allclose=True)


def test_an_honest_kernel_whose_figure_comes_back_has_no_reason():
    assert why(evaluation(), theirs(2.0), published=2.1) == {}


def test_nothing_known_gives_no_reason():
    assert why() == {}


@pytest.mark.parametrize(
    ("expected", "ours", "harness"),
    [
        ("degenerate task", evaluation(flags=("degenerate", "random")), None),
        ("degenerate task", evaluation(flags=("ill-conditioned",)), None),
        ("failed to build", evaluation(Outcome.BUILD_FAILED, detail="no ModelNew"), None),
        ("failed to build", evaluation(), theirs(outcome=Outcome.BUILD_FAILED, detail="refused")),
        ("did not run", evaluation(Outcome.CRASHED, detail="signal 11"), None),
        ("did not run", evaluation(Outcome.OUT_OF_MEMORY), None),
        ("lazy", evaluation(Outcome.NO_OUTPUT, detail="a.Lazy is not a plain tensor"), None),
        ("lazy", evaluation(findings=("late-write",)), None),
        ("cached", evaluation(findings=("caching",)), None),
        ("cached", evaluation(Outcome.WRONG_VALUES, trials=(trial(), trial("refill", passed=None))), None),
        ("cached", evaluation(Outcome.WRONG_VALUES, detail="a timed call errs by 1"), None),
        ("cached", evaluation(Outcome.WRONG_VALUES, detail="a second call gives back the output of the first"), None),
        ("other weights", of_other_weights(), theirs()),
        ("other weights", evaluation(Outcome.WRONG_VALUES, trials=(trial("touched-weights", passed=None),)), None),
        ("wrong in train mode", evaluation(Outcome.WRONG_VALUES, allclose=False), theirs()),
        ("wrong in train mode", of_random((trial(),)), theirs()),
        ("wrong", evaluation(Outcome.WRONG_VALUES, detail="errs by 1", allclose=True), theirs()),
        ("wrong", evaluation(Outcome.WRONG_SHAPE, detail="(2,)"), None),
        ("wrong", evaluation(Outcome.NO_OUTPUT, detail="0 output tensors where 1 are due"), None),
        ("wrong", evaluation(Outcome.NONDETERMINISTIC, detail="a second run differs", allclose=False), theirs()),
        ("silent fallback", evaluation(findings=("silent-fallback",)), None),
        ("silent fallback", evaluation(findings=("dead-kernel",)), None),
        ("hidden work", evaluation(findings=("clock-mismatch",)), None),
        ("hidden work", evaluation(findings=("patched",)), None),
        ("relaxed precision", evaluation(precision="tf32"), None),
        ("relaxed precision", evaluation(precision="relaxed", findings=("precision",)), None),
        ("launch overhead only", evaluation(speedup=1.01, call=1.6), None),
        ("no different from the reference", evaluation(speedup=1.01, trials=(trial(error=2e-7),)), None),
        ("refused there", evaluation(), theirs(outcome=Outcome.WRONG_VALUES, detail="errs by 0.02")),
        ("refused there", evaluation(), theirs(outcome=Outcome.NO_OUTPUT, detail=NOTHING)),
        ("suspect", evaluation(findings=("busy-machine", "unstable")), None),
        ("measured otherwise", evaluation(speedup=1.1), theirs()),
        ("another figure here", evaluation(speedup=1.1), theirs(1.1)),
    ],
)  # fmt: skip
def test_each_reason_has_its_evidence_and_stands_alone(expected, ours, harness):
    found = why(ours, harness, published=2.0 if harness else None)
    assert list(found) == [expected], found
    assert found[expected]


@pytest.mark.parametrize(
    ("absent", "ours", "harness"),
    [
        ("wrong in train mode", evaluation(Outcome.WRONG_VALUES, allclose=False), None),
        ("wrong in train mode", evaluation(Outcome.WRONG_VALUES, allclose=False), theirs(outcome=Outcome.WRONG_VALUES)),
        ("wrong in train mode", evaluation(Outcome.NONDETERMINISTIC, allclose=False), theirs()),
        ("wrong in train mode", evaluation(Outcome.WRONG_VALUES, flags=("eval-mode",), allclose=False), theirs()),
        ("wrong in train mode", of_random((trial(),), Outcome.NONDETERMINISTIC), theirs()),
        ("wrong in train mode", of_random(()), theirs()),
        ("wrong in train mode", of_random((trial("seeds"),)), theirs()),
        ("wrong in train mode", of_random((trial(passed=None),)), theirs()),
        ("cached", evaluation(Outcome.WRONG_VALUES, trials=(trial(passed=None), trial("refill", passed=None))), None),
        ("cached", evaluation(trials=(trial(), trial("refill"))), None),
        ("other weights", evaluation(Outcome.WRONG_VALUES, trials=(trial(passed=None),)), None),
        ("other weights", evaluation(Outcome.WRONG_VALUES, trials=(trial(), trial("negated", passed=None))), None),
        ("other weights", evaluation(Outcome.NONDETERMINISTIC, trials=(trial("weights", passed=None),)), None),
        ("other weights", of_other_weights(detail="`a` was laid in `b`, one of several equal tensors"), None),
        ("launch overhead only", evaluation(speedup=1.5, call=3.0), None),
        ("launch overhead only", evaluation(speedup=1.01, call=1.02), None),
        ("unchanged reference", evaluation(speedup=1.01, trials=(trial(error=2e-7),)), None),
        ("no different from the reference", evaluation(speedup=1.5, trials=(trial(error=2e-7),)), None),
        ("no different from the reference", evaluation(speedup=1.0, trials=(trial(error=0.0, reference=0.0),)), None),
        ("relaxed precision", evaluation(precision="exact"), None),
        ("suspect", evaluation(findings=("caching", "outside-work", "precision")), None),
        ("measured otherwise", evaluation(speedup=1.8), theirs()),
        ("measured otherwise", evaluation(Outcome.CRASHED), theirs()),
    ],
)  # fmt: skip
def test_and_what_is_like_it_has_not(absent, ours, harness):
    assert absent not in why(ours, harness)


def test_a_note_is_no_reason():
    noted = Finding(check="silent-fallback", severity="note", evidence="seen")
    assert why(evaluation().model_copy(update={"findings": (noted,)})) == {}


def test_every_rule_was_asked_for():
    asked = test_each_reason_has_its_evidence_and_stands_alone.pytestmark[0].args[1]
    assert {case[0] for case in asked} | {"another reference", "unchanged reference"} == set(RULES)


def of_rounds(evaluation: Evaluation, *rounds: tuple[float, ...]) -> Evaluation:
    """With rounds of these samples of the candidate's, the opponent's taking 100 us."""
    pairs = tuple(
        Pair(
            candidate_us=samples,
            opponent_us=(100.0,),
            candidate_pid=1,
            opponent_pid=2,
            log_ratio=math.log(100 / statistics.fmean(samples)),
        )
        for samples in rounds
    )
    timings = tuple(t.model_copy(update={"pairs": pairs}) for t in evaluation.timings)
    return evaluation.model_copy(update={"timings": timings})


def test_what_is_measured_otherwise_says_what_both_figures_rest_on():
    harness = of_rounds(theirs(2.0), (50.0,), (40.0,))
    told = why(evaluation(speedup=1.0, call=1.9), harness)["measured otherwise"]
    assert "2.00x there, 1.00x here; their 2 rounds lie between 2.00x and 2.50x" in told
    assert "a screen of one pair" in told and "by our call clock it is 1.90x, as there" in told and "means" not in told
    drawn = of_rounds(theirs(2.0), (10.0, 10.0, 130.0))
    assert "by medians their samples say 10.00x" in why(evaluation(speedup=10.0), drawn)["measured otherwise"]
    several = of_rounds(evaluation(speedup=3.0), (20.0,), (50.0,), (40.0,))
    assert "a screen, whose 3 pairs lie between 2.00x and 5.00x" in why(several, harness)["measured otherwise"]
    final = evaluation(speedup=3.0)
    bounds = {"speedup_low": 1.5, "speedup_high": 4.5}
    final = final.model_copy(update={"timings": tuple(t.model_copy(update=bounds) for t in final.timings)})
    assert "95 % intervals, and theirs lies within" in why(final, harness)["measured otherwise"]


def test_a_measurement_that_gave_up_says_why():
    """The release's harness makes no further round after one below 0.3; a final of ours may have no time for more."""
    slow = of_rounds(theirs(0.6), (100.0,), (500.0,))
    few = Finding(check="few-pairs", severity="note", evidence="the interval rests on 3 pairs")
    ours = evaluation(speedup=1.0).model_copy(update={"findings": (few,)})
    told = why(ours, slow, published=4.2)
    gave_up = "it gave up after 2 of 7 rounds, the last of which was below 0.30x: 0.20x"
    assert (
        gave_up in told["measured otherwise"] and "of ours the interval rests on 3 pairs" in told["measured otherwise"]
    )
    assert gave_up in told["another figure here"]
    whole = of_rounds(theirs(0.6), *[(100.0,)] * 6, (500.0,))
    unsure = of_rounds(theirs(0.6), (100.0,), (200.0,))
    for harness in (whole, unsure):
        assert "gave up" not in " ".join(why(evaluation(speedup=1.0), harness, published=4.2).values())


def test_another_figure_here_names_the_harness_that_says_it():
    """A release is judged by whichever is asked for, which need not be the one that it was published with."""
    other = evaluation(speedup=1.0, protocol="kernelbench")
    told = why(evaluation(speedup=1.0), other, published=2.0)["another figure here"]
    assert told == "published 2.00x, the harness kernelbench says 1.00x on GPU"


def test_a_figure_against_another_reference_is_no_figure_of_this_machine():
    sized = "batch_size = 64\ndim = 8\n" + REFERENCE
    found = reasons(Facts(2.0, theirs(1.1), evaluation(speedup=1.1), sized, CANDIDATE, sized.replace("64", "16")))
    assert [reason.why for reason in found] == ["another reference"]
    assert "(batch_size there 16, here 64)" in found[0].evidence
    assert list(why(evaluation(Outcome.CRASHED), published=2.0, published_reference="x = (")) == [
        "another reference",
        "did not run",
    ]


@pytest.mark.parametrize(
    "text",
    [
        REFERENCE.replace("Model(", "ModelNew("),
        '"""Fast."""\nimport os\n' + REFERENCE.replace("Model(Module):", 'ModelNew(Module):\n    """Faster."""'),
        REFERENCE.replace("Model(", "ModelNew(").replace("return relu(x)", "return relu( x )  # tuned"),
    ],
)
def test_the_same_class_under_another_name_is_unchanged(text):
    assert same_program(REFERENCE, text)
    same = evaluation(speedup=1.0, trials=(trial(error=2e-7),))
    assert list(why(evaluation(), text=text)) == list(why(same, text=text)) == ["unchanged reference"]


@pytest.mark.parametrize("text", [CANDIDATE, REFERENCE, "x = (", "", "class ModelNew(Module):\n    pass\n"])
def test_another_class_or_none_is_not(text):
    assert not same_program(REFERENCE, text)


def test_super_with_the_own_name_is_unchanged_too():
    named = "class Model(Module):\n    def __init__(self):\n        super(Model, self).__init__()\n"
    assert same_program(named, named.replace("Model,", "ModelNew,").replace("Model(M", "ModelNew(M"))


HELPED = """
import torch
from torch import nn

SCALE = 2.0


def doubled(x):
    return x * SCALE


class Model(nn.Module):
    def forward(self, x):
        return doubled(x)
"""
OTHERS = HELPED.replace("class Model(", "class ModelNew(")


@pytest.mark.parametrize(
    "text",
    [
        OTHERS,
        OTHERS.replace("from torch import nn", "import torch.nn as nn\nimport torch.nn.functional as F\nimport math"),
        OTHERS.replace("def doubled(x):", 'def doubled(x):\n    """Twice."""'),
        OTHERS + "\n\ndef unused(x):\n    return x\n",
        OTHERS + "\n\nSIZES = [1]\nSIZES[0] = 2\n",
        HELPED + OTHERS,
    ],
    ids=["as-it-is", "imported-otherwise", "docstring", "unused-helper", "other-names", "beside-the-reference"],
)
def test_what_the_class_uses_is_the_same_too(text):
    assert same_program(HELPED, text)


@pytest.mark.parametrize(
    "text",
    [
        OTHERS.replace("x * SCALE", "fast(x)"),
        OTHERS.replace("def doubled(x):", "@torch.compile\ndef doubled(x):"),
        OTHERS.replace("SCALE = 2.0", "SCALE = 3.0"),
        OTHERS.replace("from torch import nn", "import mine as nn"),
        OTHERS.replace("    return x * SCALE", "    return helper(x)") + "\n\ndef helper(x):\n    return x * SCALE\n",
        OTHERS + "\n\ndoubled = torch.compile(doubled)\n",
        OTHERS + "\n\nModelNew.forward = lambda self, x: fast(x)\n",
        OTHERS + "\n\nsetattr(ModelNew, 'forward', torch.add)\n",
        OTHERS + "\n\ntorch.backends.cuda.matmul.allow_tf32 = True\n",
        OTHERS + "\n\nif torch.cuda.is_available():\n    doubled = torch.add\n",
    ],
)
def test_a_helper_of_another_text_is_another_program(text):
    assert not same_program(HELPED, text)


def test_a_parameter_that_is_called_like_a_size_of_the_text_is_not_that_size():
    sized = "dim = 1\n\nclass Model(Module):\n    def __init__(self, dim):\n        self.dim = dim\n"
    assert same_program(sized, sized.replace("dim = 1\n", "dim = 2\n", 1).replace("Model(", "ModelNew("))


INPUTS = "\n\nsize = 4\n\n\ndef get_inputs():\n    return [torch.randn(size)]\n"


def test_what_neither_model_nor_inputs_use_makes_no_other_reference():
    whole = HELPED + INPUTS
    documented = '"""A task."""\nUNUSED = 3\n' + whole.replace(
        "def forward(self, x):", 'def forward(self, x):\n        "Twice."'
    )
    assert same_reference(whole, documented + "# the same\n")
    for other in (
        whole.replace("size = 4", "size = 8"),
        whole.replace("randn", "rand"),
        whole.replace("SCALE = 2.0", "SCALE = 3.0"),
        whole + "\ntorch.manual_seed(1)\n",
        whole + "\n\ndef get_init_inputs():\n    return [1]\n",
        HELPED,
        "x = (",
    ):
        assert not same_reference(whole, other)
    assert same_reference("x = (", "x = (") and not same_reference("x = 1", "x = 2")
