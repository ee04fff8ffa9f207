"""TechniqueProposer: singles first, then extensions of the best; nothing twice; nothing raised for odd tasks."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from graphs import make_task

from cuda_l1.errors import UsageError
from cuda_l1.proposers.techniques import REGISTRY, build, compose, load
from cuda_l1.proposers.techniques.proposer import TechniqueProposer
from cuda_l1.types import (
    Candidate,
    Correctness,
    Environment,
    Evaluation,
    Origin,
    Outcome,
    Pair,
    Record,
    Task,
    Timing,
    Trial,
)

TASK = make_task(
    "y = self.fc(x)\nreturn (y * torch.sigmoid(y)).relu() + x.exp() * x.exp()",
    "torch.randn(4, 6)",
    "self.fc = nn.Linear(6, 6)",
)


def evaluation(candidate: Candidate, speedup: float | None) -> Evaluation:
    """An accepted evaluation of that speed-up, or a wrong one."""
    environment = Environment(device="cpu", device_name="test", lane="0", rung="R1", torch="2")
    if speedup is None:
        return Evaluation(
            candidate_id=candidate.id, outcome=Outcome.CRASHED, environment=environment, protocol="screen"
        )
    trial = Trial(kind="base", error=0.0, reference_error=0.0, bound=1.0, passed_class="fp32")
    pair = Pair(candidate_us=(1.0,), opponent_us=(speedup,), candidate_pid=1, opponent_pid=2, log_ratio=0.0)
    timing = Timing(
        clock="call",
        opponent="eager",
        opponent_id="e",
        pairs=(pair,),
        speedup=speedup,
        candidate_us=1.0,
        opponent_us=speedup,
    )
    return Evaluation(
        candidate_id=candidate.id,
        outcome=Outcome.ACCEPTED,
        correctness=Correctness(trials=(trial,), precision_class="fp32", task_class="fp32"),
        timings=(timing,),
        environment=environment,
        protocol="screen",
    )


def run(proposer: TechniqueProposer, task: Task, score: Callable[[tuple[str, ...]], float | None]) -> list[Record]:
    """Propose until there is nothing left, measuring with `score`."""
    history: list[Record] = []
    while (candidate := proposer.propose(task, history)) is not None:
        value = score(candidate.origins[0].techniques)
        history.append(
            Record(run="r", sequence=len(history), candidate=candidate, evaluation=evaluation(candidate, value))
        )
        assert len(history) < 200, "a proposer must come to an end"
    return history


NAMES = ["fuse_activation", "common_subexpressions", "in_place", "straight_line"]


def test_singles_come_first_and_nothing_comes_twice() -> None:
    history = run(TechniqueProposer("cpu", techniques=NAMES), TASK, lambda names: 1.0 + 0.1 * len(names))
    ids = [record.candidate.id for record in history]
    sizes = [len(record.candidate.origins[0].techniques) for record in history]
    assert len(ids) == len(set(ids))
    assert sizes[:4] == [1, 1, 1, 1] and max(sizes) >= 3


def test_the_best_is_extended_by_what_helped() -> None:
    gains = {"fuse_activation": 1.5, "common_subexpressions": 1.2, "in_place": 1.1, "straight_line": 1.0}

    def score(names: tuple[str, ...]) -> float:
        total = 1.0
        for name in names:
            total *= gains[name]
        return total

    history = run(TechniqueProposer("cpu", techniques=NAMES), TASK, score)
    best = max(history, key=lambda record: score(record.candidate.origins[0].techniques))
    assert set(best.candidate.origins[0].techniques) >= {"fuse_activation", "common_subexpressions", "in_place"}


def test_harmful_techniques_are_not_added() -> None:
    def score(names: tuple[str, ...]) -> float:
        return 0.5 if "in_place" in names else 1.2

    history = run(TechniqueProposer("cpu", techniques=NAMES), TASK, score)
    with_it = [r for r in history if "in_place" in r.candidate.origins[0].techniques]
    assert len(with_it) == 1


def test_failures_end_the_search_and_raise_nothing() -> None:
    history = run(TechniqueProposer("cpu", techniques=NAMES), TASK, lambda names: None)
    assert 4 <= len(history) <= 5


def test_what_history_holds_is_not_offered_again() -> None:
    first = run(TechniqueProposer("cpu", techniques=NAMES), TASK, lambda names: 1.0)
    again = TechniqueProposer("cpu", techniques=NAMES)
    offered = set()
    while (candidate := again.propose(TASK, first)) is not None:
        offered.add(candidate.id)
    assert not offered & {record.candidate.id for record in first}


def test_precision_limits_the_techniques() -> None:
    strict = {technique.name for technique in TechniqueProposer("cuda:1").techniques}
    loose = {technique.name for technique in TechniqueProposer("cuda", "relaxed").techniques}
    assert strict < loose
    assert all(load(name).precision == "same" for name in strict)


@pytest.mark.parametrize(
    "source",
    [
        "",
        "import torch\nclass Model: pass",
        "raise SystemExit(3)",
        "def get_inputs(): return []",
        "import torch\nclass Model(torch.nn.Module):\n"
        "    def forward(self, x):\n        return x if x.sum() > 0 else -x\n"
        "def get_inputs(): return [torch.randn(3)]\ndef get_init_inputs(): return []\n",
        "import torch\nclass Model(torch.nn.Module):\n    def __init__(self):\n        raise ValueError('no')\n"
        "def get_inputs(): return [torch.randn(3)]\ndef get_init_inputs(): return []\n",
        "this is not Python",
    ],
)
def test_tasks_without_a_graph_end_without_a_traceback(source: str) -> None:
    proposer = TechniqueProposer("cpu", techniques=["straight_line", "identities", "in_place", "kept_weights"])
    assert proposer.propose(Task(suite="file", name="odd", source=source), []) is None


def test_unknown_names_are_one_line() -> None:
    with pytest.raises(
        UsageError, match="unknown technique `magic`; `cuda-l1 optimize TASK --proposer techniques:` lists all"
    ):
        TechniqueProposer("cpu", techniques=["magic"])
    with pytest.raises(UsageError, match="no device `tpu`"):
        TechniqueProposer("tpu")
    with pytest.raises(UsageError, match="unknown technique"):
        build(TASK, ["magic"], "cpu")


def test_build_wants_all_and_compose_takes_what_applies() -> None:
    assert build(TASK, ["fuse_activation", "diagonal_matmul"], "cpu") is None
    built = compose(TASK, ["fuse_activation", "diagonal_matmul"], "cpu")
    assert built is not None and built.origins[0].techniques == ("fuse_activation",)
    assert compose(TASK, ["diagonal_matmul"], "cpu") is None


def test_order_of_application_does_not_depend_on_the_order_of_names() -> None:
    one, two = build(TASK, NAMES, "cpu"), build(TASK, NAMES[::-1], "cpu")
    assert one is not None and two is not None and one.id == two.id


def test_every_registered_technique_says_what_it_is() -> None:
    for name in REGISTRY:
        technique = load(name)
        assert technique.name == name
        assert technique.devices <= {"cpu", "cuda"} and technique.devices
        assert type(technique).__doc__


def test_nothing_is_built_after_the_time_is_up_and_nothing_is_lost() -> None:
    proposer = TechniqueProposer("cpu", techniques=NAMES)
    assert proposer.propose(TASK, [], until=0.0) is None
    assert proposer.propose(TASK, []) is not None


def test_the_first_candidate_waits_for_no_technique_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(load("straight_line")), "applies", lambda *_: pytest.fail("nobody needs to know yet"))
    proposer = TechniqueProposer("cpu", techniques=NAMES)
    first, second = (proposer.propose(TASK, []) for _ in range(2))
    assert first is not None and first.origins[0].techniques == ("fuse_activation",)
    assert second is not None and second.origins[0].techniques == ("common_subexpressions",)


CONVOLUTION = make_task("return self.conv(x).relu() * 2", "torch.randn(2, 3, 8, 8)", "self.conv = nn.Conv2d(3, 4, 3)")


def baseline(task: Task, name: str, speedup: float, *, total_s: float = 1.0) -> Record:
    """What a search knows of a baseline when it asks for candidates."""
    made = Candidate(
        task_sha=task.sha,
        task_id=task.id,
        source=f"# {name}",
        language="pytorch",
        origins=(Origin(proposer="baselines", techniques=(name,)),),
    )
    measured = evaluation(made, speedup).model_copy(update={"stage_s": {"total": total_s}})
    return Record(run="r", sequence=0, candidate=made, evaluation=measured)


@pytest.mark.parametrize(("speedup", "first"), [(1.3, "channels_last"), (0.9, "in_place")])
def test_a_baseline_that_is_ahead_shows_what_to_try_first(speedup: float, first: str) -> None:
    proposer = TechniqueProposer("cpu", techniques=["in_place", "channels_last"])
    offered = proposer.propose(CONVOLUTION, [baseline(CONVOLUTION, "channels-last", speedup)])
    assert offered is not None and offered.origins[0].techniques == (first,)


def test_what_compiles_for_longer_than_is_left_is_not_offered() -> None:
    history = [baseline(CONVOLUTION, "compile", 1.5, total_s=100.0)]
    proposer = TechniqueProposer("cpu", techniques=["inductor", "in_place"])
    begin = time.monotonic()
    offered = proposer.propose(CONVOLUTION, history, until=begin + 50.0)
    assert offered is not None and offered.origins[0].techniques == ("in_place",)
    assert time.monotonic() - begin < 50.0
    assert proposer.failures == ["inductor: no time is left for it; torch.compile took 100 s to judge"]
