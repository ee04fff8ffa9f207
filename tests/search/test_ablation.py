"""Every subset of a candidate's techniques is built and judged once; what cannot be built says why."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import pytest
from search_fakes import TASK, FakeEvaluator

from cuda_l1.archive import Archive
from cuda_l1.config import SCREEN
from cuda_l1.errors import TaskError, UsageError
from cuda_l1.search.ablation import Variant, ablate
from cuda_l1.search.verdicts import verdict
from cuda_l1.types import Candidate, Origin, Record


def built(applied: Sequence[str]) -> Candidate:
    origin = Origin(proposer="techniques", techniques=tuple(applied))
    text = f"speed=2.0 {'+'.join(applied)}"
    return Candidate(task_sha=TASK.sha, task_id=TASK.id, source=text, origins=(origin,))


def build(subset: Sequence[str]) -> Candidate | None:
    """`late` needs `early`, `odd` never works, `nothing` finds nothing to do."""
    if "odd" in subset:
        raise TaskError("odd: no text\nfor this graph")
    applied = [n for n in subset if n != "nothing" and (n != "late" or "early" in subset)]
    return built(applied) if applied else None


@pytest.fixture
def judge(archive: Archive, evaluator: FakeEvaluator) -> Callable[[Candidate], Record]:
    return functools.partial(verdict, TASK, protocol=SCREEN, archive=archive, evaluator=evaluator, run="ablate")


def test_all_subsets_small_ones_first(judge):
    heard: list[Variant] = []
    variants = ablate(["a", "b", "c"], build=build, judge=judge, on_variant=heard.append)
    names = ["+".join(v.techniques) for v in variants]
    assert names == ["a", "b", "c", "a+b", "a+c", "b+c", "a+b+c"] and heard == variants
    assert all(v.record and v.record.evaluation.accepted for v in variants)


def test_what_cannot_be_built_says_why(judge):
    by_name = {v.techniques: v for v in ablate(["early", "late", "nothing", "odd"], build=build, judge=judge)}
    assert by_name["late",].why_not == "late would change nothing here, or is not for this device"
    assert by_name["early", "late"].record is not None
    assert by_name["early", "nothing"].why_not == "nothing would change nothing here, or is not for this device"
    assert by_name["late", "nothing"].why_not == "late and nothing would change nothing here, or is not for this device"
    assert by_name["odd",].why_not == "odd: no text for this graph" and by_name["odd",].record is None


def test_what_the_archive_knows_is_not_judged_again(judge, evaluator):
    ablate(["a", "b"], build=build, judge=judge)
    done = len(evaluator.calls)
    ablate(["a", "b", "c"], build=build, judge=judge)
    assert done == 3 and len(evaluator.calls) == 7


def test_too_many_techniques_are_refused():
    with pytest.raises(UsageError, match="127 subsets; name at most 6 of a, b"):
        ablate("abcdefg", build=build, judge=lambda candidate: pytest.fail("nothing may be judged"))
