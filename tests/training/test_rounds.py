"""A round of stage 3 without torch: questions from the live archive, rewards to advantages, what stops it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from judge_fakes import TASKS, FakeEvaluator

from cuda_l1.archive import Archive
from cuda_l1.config import PromptSettings
from cuda_l1.errors import InfrastructureError, UsageError
from cuda_l1.prompts.prompting import Prompting
from cuda_l1.training.judging import Judging
from cuda_l1.training.opinions import Opinions
from cuda_l1.training.replies import Grader
from cuda_l1.training.rounds import Rounds, Worth
from cuda_l1.training.run_directory import StageDirectory
from cuda_l1.training.sections import ContrastiveSection, EvaluationSection
from fake_reviewer import FakeReviewer


@pytest.fixture
def alarms() -> list[str]:
    return []


def make(
    archive: Archive,
    folder: Path,
    alarms: list[str],
    *,
    evaluator: FakeEvaluator | None = None,
    reviewer: FakeReviewer | None = None,
    **section: Any,
) -> Rounds:
    judge = Judging([evaluator or FakeEvaluator()], archive=archive, run="run", within_s=30.0)
    opinions = Opinions.of(EvaluationSection(), archive, reviewer, alarms.append) if reviewer else None
    return Rounds(
        tasks={task.sha: task for task in TASKS},
        section=ContrastiveSection(**{"min_pass_rate": 0.0, **section}),
        prompting=Prompting(settings=PromptSettings()),
        archive=archive,
        grade=Grader(judge, EvaluationSection(), "contrastive", model="policy", opinions=opinions),
        stage=StageDirectory(folder / "contrastive"),
        seed=0,
        alarm=alarms.append,
    )


def score(rounds: Rounds, number: int, texts: list[tuple[str, bool, int]]) -> Worth:
    rounds.submit(number, texts)
    return rounds.collect(number)


def reply(fate: str, ended: bool = True) -> tuple[str, bool, int]:
    return f"```python\nclass ModelNew: {fate}\n```\n", ended, 9


A, B = TASKS[0].sha, TASKS[1].sha


def test_the_next_question_shows_what_the_last_round_found(archive: Archive, tmp_path: Path, alarms: list[str]) -> None:
    rounds = make(archive, tmp_path, alarms)
    first = rounds.ask(0, [A, B])
    assert all("There is none yet" in prompt.user for prompt in first)
    worth = score(rounds, 0, [reply("speed=2.0"), reply("wrong=1"), reply("speed=3.0"), ("no code", True, 2)])
    assert worth.rewards == [2.0, 0.0, 3.0, 0.0]
    assert worth.figures["pass_rate"] == 0.5 and worth.figures["invalid_replies"] == 0.25
    assert worth.figures["speedup_right"] == pytest.approx(6**0.5) and worth.figures["speedup_best"] == 3.0
    second = rounds.ask(1, [A, B])
    assert "speed=2.0" in second[0].user and "score 2.000" in second[0].user and len(second[0].exemplars) == 1
    assert "speed=3.0" in second[1].user and "speed=2.0" not in second[1].user
    assert not alarms


def test_a_group_is_smoothed_by_the_moments_of_its_own_task(
    archive: Archive, tmp_path: Path, alarms: list[str]
) -> None:
    rounds = make(archive, tmp_path, alarms)
    rounds.ask(0, [A, B])
    worth = score(rounds, 0, [reply("speed=2.0"), reply("wrong=1"), reply("speed=0.5"), reply("speed=40.0")])
    better, worse, slow, fast = worth.advantages
    assert better == pytest.approx(-worse) and fast == pytest.approx(-slow)
    assert better > 0 > worse and fast > 0 > slow


@pytest.mark.parametrize(("told", "counts"), [({}, 0.198), ({"noise": 0.0}, 1.0), ({"noise": 0.1}, 0.099)])
def test_what_two_screens_differ_by_is_smoothed_by_no_less_than_noise(
    archive: Archive, tmp_path: Path, alarms: list[str], told: dict[str, float], counts: float
) -> None:
    rounds = make(archive, tmp_path, alarms, scale="none", **told)
    rounds.ask(0, [A])
    assert score(rounds, 0, [reply("speed=1.00"), reply("speed=1.02")]).advantages == pytest.approx(
        [-counts, counts], abs=1e-3
    )


def test_a_group_with_one_fate_teaches_nothing_and_an_alarm_says_so(
    archive: Archive, tmp_path: Path, alarms: list[str]
) -> None:
    rounds = make(archive, tmp_path, alarms)
    rounds.ask(0, [A, B])
    worth = score(rounds, 0, [("no", True, 1), ("never", True, 1), reply("speed=2.0"), reply("speed=2.0")])
    assert worth.advantages == [0.0] * 4 and worth.figures["flat_groups"] == 1.0
    assert len(alarms) == 1 and "no group has replies whose rewards differ" in alarms[0]


def test_rewards_that_are_all_clipped_to_one_value_teach_nothing_and_an_alarm_says_so(
    archive: Archive, tmp_path: Path, alarms: list[str]
) -> None:
    rounds = make(archive, tmp_path, alarms)
    for number in range(24):
        rounds.ask(number, [A])
        score(rounds, number, [("no", True, 1)] * 4)
    alarms.clear()
    rounds.ask(24, [A])
    worth = score(rounds, 24, [reply(f"speed={speed}") for speed in (2.0, 3.0, 5.0, 9.0)])
    assert worth.rewards == [2.0, 3.0, 5.0, 9.0] and worth.advantages == [0.0] * 4
    assert worth.figures["flat_groups"] == 1.0 and len(alarms) == 1


def test_what_the_machine_fails_at_teaches_nothing(archive: Archive, tmp_path: Path, alarms: list[str]) -> None:
    rounds = make(archive, tmp_path, alarms)
    rounds.ask(0, [A])
    worth = score(rounds, 0, [reply("fault=1"), reply("speed=2.0"), reply("speed=1.0"), ("no code", True, 1)])
    assert worth.rewards == [None, 2.0, 1.0, 0.0] and worth.advantages[0] == 0.0
    assert worth.figures["faults"] == pytest.approx(1 / 3)
    assert sum(worth.advantages) == pytest.approx(0.0)


def test_a_machine_that_fails_at_everything_stops_the_stage(
    archive: Archive, tmp_path: Path, alarms: list[str]
) -> None:
    rounds = make(archive, tmp_path, alarms)
    rounds.ask(0, [A])
    with pytest.raises(InfrastructureError, match=r"all 2 candidates of round 1 \(the device is gone\)"):
        score(rounds, 0, [reply("fault=1"), reply("fault=2"), ("no code", True, 1)])


def test_a_policy_that_is_mostly_wrong_does_not_begin(archive: Archive, tmp_path: Path, alarms: list[str]) -> None:
    rounds = make(archive, tmp_path, alarms, min_pass_rate=0.5)
    rounds.ask(0, [A])
    with pytest.raises(UsageError, match="25% of the first 4 replies of policy"):
        score(rounds, 0, [reply("speed=1.0"), reply("wrong=1"), reply("wrong=2"), ("no code", True, 1)])
    outcomes = [row["outcome"] for row in rounds.stage.rows("samples")]
    assert outcomes == ["ACCEPTED", "WRONG_VALUES", "WRONG_VALUES", "no-code"], "which a person can look at"
    rounds.ask(1, [A])
    score(rounds, 1, [reply("wrong=1"), reply("speed=1.0")])  # later rounds may be worse


def test_a_reply_that_met_its_limit_is_a_failure_of_form(archive: Archive, tmp_path: Path, alarms: list[str]) -> None:
    rounds = make(archive, tmp_path, alarms)
    rounds.ask(0, [A])
    worth = score(rounds, 0, [reply("speed=2.0", ended=False), reply("speed=2.0")])
    assert worth.rewards == [0.0, 2.0]
    assert worth.figures["cut_replies"] == 0.5 and worth.figures["invalid_replies"] == 0.5


def test_a_repeated_round_asks_what_it_asked_before(archive: Archive, tmp_path: Path, alarms: list[str]) -> None:
    rounds = make(archive, tmp_path, alarms)
    texts = [reply("speed=2.0"), reply("wrong=1"), reply("speed=3.0"), reply("speed=0.5")]
    asked, worths = [], []
    for number in range(3):
        asked.append(rounds.ask(number, [A, B]))
        worths.append(score(rounds, number, texts[number:] + texts[:number]))
    again = make(archive, tmp_path, alarms)
    again.resume(1)
    assert [again.ask(number, [A, B]) for number in (1, 2)] == asked[1:]
    again.resume(1)
    for number in (1, 2):
        again.ask(number, [A, B])
        worth = score(again, number, texts[number:] + texts[:number])
        assert (worth.rewards, worth.advantages) == (worths[number].rewards, worths[number].advantages)
        assert worth.figures["known_verdicts"] == 1.0
    again.resume(3)
    assert again.ask(3, [A, B]) == rounds.ask(3, [A, B])  # both know the same by now


def test_a_jump_that_was_judged_but_not_read_before_an_interruption_is_read_then(
    archive: Archive, tmp_path: Path, alarms: list[str]
) -> None:
    texts = [reply("speed=9.0; cheat"), reply("speed=8.0; cheat"), reply("speed=1.0"), reply("wrong=1")]
    killed = make(archive, tmp_path, alarms)
    killed.ask(0, [A])
    score(killed, 0, texts)
    reviewer = FakeReviewer()
    again = make(archive, tmp_path, alarms, reviewer=reviewer)
    again.resume(0)
    again.ask(0, [A])
    assert score(again, 0, texts).rewards == [1.0, 1.0, 1.0, 0.0], "neither makes the other look familiar"
    again.ask(1, [A])
    score(again, 1, [reply("speed=2.5"), reply("speed=1.1")])
    assert len(reviewer.asked) == 3


def test_with_a_lag_verdicts_are_given_while_others_are_written(
    archive: Archive, tmp_path: Path, alarms: list[str]
) -> None:
    evaluator = FakeEvaluator()
    evaluator.slow_s = 20.0
    rounds = make(archive, tmp_path, alarms, evaluator=evaluator, lag=1)
    rounds.ask(0, [A])
    rounds.submit(0, [reply("slow_speed=2.0"), reply("speed=1.0")])
    first = rounds.ask(1, [A])  # asked while round 0 is judged
    rounds.submit(1, [reply("speed=3.0"), reply("wrong=1")])
    assert not any("slow" in answered for answered in evaluator.answered), "nobody waited for round 0"
    evaluator.release.set()
    assert [rounds.collect(number).rewards for number in (0, 1)] == [[2.0, 1.0], [3.0, 0.0]]
    assert len(first) == 1 and rounds.best == {TASKS[0].id: 3.0}


def test_a_fault_of_what_is_judged_beside_is_raised_where_it_is_waited_for(
    archive: Archive, tmp_path: Path, alarms: list[str]
) -> None:
    rounds = make(archive, tmp_path, alarms, lag=1)
    rounds.ask(0, [A])
    rounds.submit(0, [reply("fault=1"), reply("fault=2")])
    with pytest.raises(InfrastructureError, match="the device is gone"):
        rounds.collect(0)
