"""What replies are worth: against which denominator, and what becomes of a speed-up that is hard to believe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from judge_fakes import PLACE, TASKS, FakeEvaluator, candidate, evaluation

from cuda_l1.archive import Archive
from cuda_l1.config import SamplerSettings
from cuda_l1.errors import InfrastructureError, TaskError
from cuda_l1.training.judging import Judgement, Judging
from cuda_l1.training.opinions import Opinions, roofline_us
from cuda_l1.training.replies import Grader, Scored, Written, check_machine, figures
from cuda_l1.training.sections import EvaluationSection
from cuda_l1.training.step_time import evaluator_seconds
from cuda_l1.types import Candidate, Evaluation, Prompt, Record, Task, Work
from fake_reviewer import FakeReviewer


class WithBaselines(FakeEvaluator):
    """Judges baselines, too: torch.compile is twice as fast as the reference, unless it is said to fail."""

    def __init__(self, compile_fate: str = "speed=2.0") -> None:
        super().__init__()
        self._fates = {"eager": "speed=0.9", "compile": compile_fate}

    def evaluate(self, task: Task, candidate: Candidate, **more: Any) -> Evaluation:
        if not candidate.is_baseline:
            return super().evaluate(task, candidate, **more)
        self.paid.append(candidate.label)
        fate = self._fates[candidate.label]
        if fate == "fault":
            raise InfrastructureError("the device is gone")
        found = evaluation(candidate.model_copy(update={"source": fate}))
        return found.model_copy(update={"candidate_id": candidate.id})


def grader(archive: Archive, evaluator: FakeEvaluator, opinions: Opinions | None = None, **section: Any) -> Grader:
    judge = Judging([evaluator], archive=archive, run="run", within_s=30.0)
    return Grader(judge, EvaluationSection(device="cpu", **section), "contrastive", "policy", opinions)


def replies(*fates: str, best: float | None = None, task: Task = TASKS[0]) -> list[Written]:
    prompt = Prompt(system="s", user="u", template="t")
    return [Written(task, prompt, f"```python\nclass ModelNew: {f}\n```\n", True, 9, best) for f in fates]


def rewards(scored: Sequence[Scored]) -> list[float | None]:
    return [one.reward for one in scored]


def test_the_reference_is_what_rewards_are_measured_by(archive: Archive) -> None:
    evaluator = WithBaselines()
    assert rewards(grader(archive, evaluator)(replies("speed=3.0", "wrong"))) == [3.0, 0.0]
    assert not {"eager", "compile"} & set(evaluator.paid)


def test_a_reply_that_met_its_limit_is_no_answer_though_its_file_is_whole(archive: Archive) -> None:
    evaluator = FakeEvaluator()
    whole = "## Algorithm Design\nFuse.\n\n## Code Implementation\n```python\nclass ModelNew: speed=3.0\n```\n"
    cut = [each._replace(text=f"{whole}and so on", ended=False) for each in replies("speed=3.0")]
    (found,) = grader(archive, evaluator)(cut)
    assert (found.reward, found.problem, found.is_right, evaluator.paid) == (0.0, "cut-off", False, [])


def test_or_the_best_baseline_which_is_judged_once(archive: Archive) -> None:
    evaluator = WithBaselines()
    grade = grader(archive, evaluator, denominator="best-baseline")
    scored = grade([*replies("speed=3.0", "wrong", "speed=5.0; suspect"), *replies("speed=1.0", task=TASKS[1])])
    assert rewards(scored) == [1.5, 0.0, 0.5, 0.5]
    assert [one.is_right for one in scored] == [True, False, False, True], "slower than a baseline is right, too"
    assert sorted(each for each in evaluator.paid if each in ("eager", "compile")) == [
        "compile",
        "compile",
        "eager",
        "eager",
    ]
    again = WithBaselines()
    assert rewards(grader(archive, again, denominator="best-baseline")(replies("speed=4.0"))) == [2.0]
    assert again.paid == ["class ModelNew: speed=4.0\n"]


@pytest.mark.parametrize(("fate", "reward"), [("wrong", 3.0), ("speed=5.0; suspect", 3.0), ("fault", None)])
def test_a_baseline_that_may_not_stand_leaves_the_reference_and_one_without_verdict_nothing(
    archive: Archive, fate: str, reward: float | None
) -> None:
    scored = grader(archive, WithBaselines(fate), denominator="best-baseline")(replies("speed=3.0", "wrong"))
    assert rewards(scored) == [reward, 0.0 if reward else None]


def test_what_others_on_the_machine_disturb_is_measured_once_more_and_else_teaches_nothing(archive: Archive) -> None:
    evaluator = FakeEvaluator()
    asked = replies("speed=3.0; busy_once", "speed=4.0; busy", "speed=5.0; busy; suspect", "speed=2.0")
    scored = grader(archive, evaluator)(asked)
    assert rewards(scored) == [3.0, None, 1.0, 2.0] and [one.is_right for one in scored] == [True, False, False, True]
    assert scored[1].outcome == "fault" and "others use the machine: 9 us" in (scored[1].fault or "")
    assert [sum(f"speed={n}.0" in text for text in evaluator.paid) for n in (2, 3, 4, 5)] == [1, 2, 2, 1]
    assert figures(asked, scored)["faults"] == figures(asked, scored)["suspected"] == 0.25
    again = FakeEvaluator()
    assert rewards(grader(archive, again)(asked)) == rewards(scored)
    assert len(again.paid) == 1 and "speed=4.0" in again.paid[0], "only that is tried again"


def test_baselines_without_a_verdict_for_every_task_end_what_is_learned_with_the_reason(archive: Archive) -> None:
    asked = [*replies("speed=3.0", "wrong"), *replies("speed=1.0", task=TASKS[1])]
    scored = grader(archive, WithBaselines("fault"), denominator="best-baseline")(asked)
    why = r"failed for all 3 candidates of round 3 \(no verdict on the baseline compile of toy0: the device is gone\)"
    with pytest.raises(InfrastructureError, match=why):
        check_machine(scored, "round 3")


def test_tasks_that_cannot_be_judged_are_no_fault_of_the_machine(archive: Archive) -> None:
    scored = grader(archive, FakeEvaluator())(replies("unjudgeable=1", "unjudgeable=2"))
    with pytest.raises(
        TaskError, match=r"no task of round 1 can be judged \(its output has NaN\); take such tasks out"
    ):
        check_machine(scored, "round 1")


def test_the_seconds_of_evaluators_are_told_apart() -> None:
    timed = evaluation(candidate("speed=1.0")).model_copy(
        update={"stage_s": {"total": 10.0, "build": 2.0, "wait": 5.0}}
    )
    record = Record(run="r", sequence=1, candidate=candidate("speed=1.0"), evaluation=timed)
    paid, known = (Scored(1.0, True, judgement=Judgement(record, is_known=is_known)) for is_known in (False, True))
    assert evaluator_seconds([paid, paid, known]) == {"build_s": 4.0, "lease_s": 10.0, "evaluate_s": 6.0}


def opinions(archive: Archive, reviewer: FakeReviewer | None, heard: list[str], within_s: float = 60.0) -> Opinions:
    return Opinions.of(EvaluationSection(within_s=within_s), archive, reviewer, heard.append)


def test_a_jump_is_read_and_a_suspected_one_is_worth_the_reference(archive: Archive) -> None:
    reviewer, heard = FakeReviewer(), list[str]()
    grade = grader(archive, FakeEvaluator(), opinions(archive, reviewer, heard))
    asked = replies("speed=9.0; cheat", "speed=8.0", "speed=9.0; cheat", "speed=1.9", "speed=7.0; riddle", "wrong")
    scored = grade(asked)
    assert rewards(scored) == [1.0, 8.0, 1.0, 1.9, 7.0, 0.0]
    assert [one.is_right for one in scored] == [False, True, False, True, True, False]
    read = [text.strip().partition("speed=")[2] for text in reviewer.asked]
    assert read == ["9.0; cheat", "8.0", "7.0; riddle"], "the same text is read once, and what is no jump is not"
    assert reviewer.jumps[1] == "8.00x against eager is 8.0 times the best before it (1.00x)"
    assert len(heard) == 3 and "it says so" in heard[0]
    assert figures(asked, scored)["suspected"] == pytest.approx(2 / 6)
    shown = archive.exemplars.draw(TASKS[0].sha, SamplerSettings(count=9), seed=0, environment_key=PLACE.key)
    assert len(shown) == 3 and not any("cheat" in each.source for each in shown), "nor is it shown to the policy"
    assert rewards(grade(asked)) == rewards(scored)
    assert len(reviewer.asked) == 4, "only where there was no opinion is one asked for again"


def test_a_jump_is_one_over_what_was_known_when_it_was_asked_for(archive: Archive) -> None:
    reviewer = FakeReviewer()
    grade = grader(archive, FakeEvaluator(), opinions(archive, reviewer, []))
    grade(replies("speed=3.9", "speed=4.1", best=2.0))
    assert [text.strip().rpartition("=")[2] for text in reviewer.asked] == ["4.1"]


def test_the_best_baseline_is_known_before(archive: Archive) -> None:
    reviewer = FakeReviewer()
    grade = grader(archive, WithBaselines(), opinions(archive, reviewer, []), denominator="best-baseline")
    grade(replies("speed=3.9", "speed=4.1"))
    assert [text.strip().rpartition("=")[2] for text in reviewer.asked] == ["4.1"]


def test_nobody_to_ask_is_said_once_and_changes_nothing(archive: Archive) -> None:
    heard: list[str] = []
    grade = grader(archive, FakeEvaluator(), opinions(archive, None, heard))
    assert rewards(grade(replies("speed=9.0; cheat", "speed=8.0"))) == [9.0, 8.0]
    assert len(heard) == 1 and "nobody is named (evaluation.reviewer = URL)" in heard[0]


def test_opinions_have_an_end(archive: Archive) -> None:
    reviewer = FakeReviewer()
    late = opinions(archive, reviewer, [], within_s=1e-9)
    assert rewards(grader(archive, FakeEvaluator(), late)(replies("speed=9.0"))) == [9.0] and reviewer.asked == []
    grader(archive, FakeEvaluator(), opinions(archive, reviewer, [], within_s=5.0))(replies("speed=9.0"))
    assert reviewer.within_s[0] is not None and reviewer.within_s[0] <= 5.0, "it is read the next time"


def test_a_roofline_is_the_tasks_own() -> None:
    on_cpu = evaluation(candidate("speed=1.0"))
    work = Work(moved_bytes=3000, flops=1, bytes_per_us=1000.0, flops_per_us={"fp32": 1.0})
    gpu = PLACE.model_copy(update={"device": "cuda"})
    on_gpu = on_cpu.model_copy(update={"work": work, "environment": gpu})
    assert roofline_us(on_gpu, None) == 3.0 and roofline_us(on_gpu, "call") is None
    assert roofline_us(on_cpu.model_copy(update={"work": work}), None) is None
