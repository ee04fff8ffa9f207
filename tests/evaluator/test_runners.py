"""Runners that come up beside other work: who waits for them, who gets them, and how long they live."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from evaluator_support import LINEAR, candidate_of, task_of

from cuda_l1.config import EvaluatorSettings, Limits
from cuda_l1.evaluator import eager_candidate
from cuda_l1.evaluator.bench import Bench
from cuda_l1.evaluator.parent import Parent

pytestmark = pytest.mark.e2e

TASK, OTHER = task_of(LINEAR), task_of(LINEAR + "\n    # another one\n", name="other")
COMPILED = candidate_of(TASK, LINEAR.replace("Model", "ModelNew") + "\n    # torch.compile\n")


@pytest.fixture
def bench(cache_dir: str) -> Iterator[Bench]:
    parent = Parent(EvaluatorSettings(device="cpu", cache_dir=cache_dir))
    parent.start()
    yield parent.bench
    parent.close()


def spare_pids(bench: Bench) -> list[int]:
    return [runner.pid for runner in bench._spare]


def test_runners_that_no_judge_has_seen_serve_the_next_task(bench: Bench) -> None:
    bench.warm_up(2)
    begun = spare_pids(bench)
    bench.settle()
    for task in (TASK, OTHER):
        bench.open(task, Limits())
        runner = bench.runner_for(eager_candidate(task), Limits())
        assert runner.pid in begun and bench.ask(runner, "observe", 30.0) == {"patched": [], "missing": ""}
    assert spare_pids(bench) == [] and list(bench._runners) == [runner.name], "the first one ended with its judge"


def test_a_runner_that_died_before_it_was_needed_is_nobodys_outcome(bench: Bench) -> None:
    bench.warm_up(2)
    dead, living = spare_pids(bench)
    bench._spare[0].guest.kill()
    bench.settle()
    bench.open(TASK, Limits())
    runner = bench.runner_for(eager_candidate(TASK), Limits())
    assert runner.pid == living != dead and spare_pids(bench) == []


def test_each_of_a_cast_has_a_runner_of_its_own_template(bench: Bench) -> None:
    bench.open(TASK, Limits())
    cast = [COMPILED, eager_candidate(TASK), COMPILED]
    for _ in range(2):  # what is there already is not started again
        bench.warm_up_for(cast)
    bench.settle()
    begun = spare_pids(bench)
    assert len(begun) == 3 and len({runner.template.pid for runner in bench._spare}) == 2
    assert {bench.runner_for(member, Limits()).pid for member in cast} == set(begun)
