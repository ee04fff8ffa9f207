"""A finished run on tasks that decided nothing in it: once, resumable, and with the same figures every time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from judge_fakes import TASKS, FakeEvaluator

from cuda_l1.api.training_evaluation import evaluate_run
from cuda_l1.archive import Archive
from cuda_l1.errors import InfrastructureError, UsageError
from cuda_l1.tasks import load_tasks
from cuda_l1.tasks.synth import has_unseen_pair
from cuda_l1.training.held_out import by_kind, evaluate_held_out, parts, read_result, summarised
from cuda_l1.training.judging import Judging
from cuda_l1.training.model_card import add_held_out
from cuda_l1.training.recipe import recipe_from
from cuda_l1.training.replies import Scored, Written
from cuda_l1.training.run_directory import RunDirectory
from cuda_l1.training.sections import EvaluationSection
from cuda_l1.types import Prompt, Task
from small_policy import save_policy

pytest.importorskip("transformers", reason="needs transformers")
REPLIES = ["```python\nclass ModelNew: speed=1.5\n```\n", "```python\nclass ModelNew: wrong=1\n```\n"]


def evaluated(
    run: RunDirectory, policy: Path, evaluator: FakeEvaluator, tasks: Any = TASKS, suites: Any = None
) -> dict[str, Any]:
    with Archive.open(run.path / "archive.sqlite") as archive:
        judge = Judging([evaluator], archive=archive, run="r", within_s=60)
        return evaluate_held_out(
            run.recipe, run, tasks, suites=suites, policy=policy, archive=archive, judge=judge,
            on_event=lambda event: None,
        )  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    values = {
        "run_dir": str(tmp_path / "run"),
        "evaluation": {"device": "cpu", "held_out_tasks": 2, "held_out_samples": 12},
        "generation": {"max_new_tokens": 3},
        "run": {"device": "cpu"},
    }
    return RunDirectory.create(recipe_from(values, "a test"), resume=False, stages=["sft"])


def test_the_one_evaluation_is_not_spent_while_the_run_is_trained(run: RunDirectory) -> None:
    save_policy(run.path / "self" / "final", replies=REPLIES)
    (run.path / "contrastive").mkdir()
    with run.alone(), pytest.raises(UsageError, match="another command works there"):
        evaluate_run(run.path, on_event=lambda event: None)
    with pytest.raises(UsageError, match=r"contrastive: not finished, .*`cuda-l1 train contrastive RECIPE"):
        evaluate_run(run.path, on_event=lambda event: None)


def test_it_is_asked_once_and_goes_on_where_it_was_interrupted(run: RunDirectory) -> None:
    policy = save_policy(run.path / "self" / "final", replies=REPLIES)

    class Interrupted(FakeEvaluator):
        def evaluate(self, *asked: Any, **more: Any) -> Any:
            if self.paid:
                raise KeyboardInterrupt
            return super().evaluate(*asked, **more)

    with pytest.raises(KeyboardInterrupt):
        evaluated(run, policy, Interrupted())
    assert read_result(run) is None
    replies = (run.path / "held-out" / "replies.jsonl").read_text()
    found = evaluated(run, policy, FakeEvaluator())
    assert (run.path / "held-out" / "replies.jsonl").read_text() == replies, "a reply was written again"
    assert found["policy"] == "self/final" and (found["tasks"], found["replies"]) == (2, 24)
    assert found["pass_rate"] > 0 and found["tasks_solved"] > 0
    again = FakeEvaluator()
    assert evaluated(run, policy, again) == found == json.loads(json.dumps(read_result(run))) and again.paid == []


def test_another_policy_of_the_run_is_refused(run: RunDirectory) -> None:
    evaluated(run, save_policy(run.path / "sft" / "final", replies=REPLIES), FakeEvaluator())
    with pytest.raises(UsageError, match=r"was evaluated with another policy \(sft/final\)"):
        evaluated(run, save_policy(run.path / "self" / "final", replies=REPLIES, seed=1), FakeEvaluator())


def test_without_a_held_out_task_there_is_one_line(run: RunDirectory) -> None:
    with pytest.raises(UsageError, match="none of the recipe's tasks is held out"):
        evaluated(run, save_policy(run.path / "sft" / "final", replies=REPLIES), FakeEvaluator(), tasks=[])


def one(task: int, reward: float | None, shown: int = 0, *, right: bool = True) -> tuple[Written, Scored]:
    prompt = Prompt(system="", user="", template="t", exemplars=("x",) * shown)
    return Written(TASKS[task], prompt, f"{task} {reward}", True, 1), Scored(reward, right)


def summary_of(pairs: list[tuple[Written, Scored]]) -> dict[str, Any]:
    return summarised([reply for reply, _ in pairs], [scored for _, scored in pairs])


def test_a_task_without_a_right_reply_counts_as_the_original() -> None:
    found = summary_of([one(0, 4.0), one(0, 2.0, 1), one(1, 0.5), one(2, 0.0, 1, right=False)])
    assert found["speedup_best_of_task"] == pytest.approx(4.0 ** (1 / 3))
    assert (found["tasks_solved"], found["tasks_faster"]) == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert (found["pass_rate"], found["pass_rate_shown_0"], found["pass_rate_shown_1"]) == (0.75, 1.0, 0.5)
    assert (found["unjudged_replies"], found["unjudged_tasks"]) == (0, 0)


def test_what_the_machine_failed_on_counts_against_nobody() -> None:
    judged = [one(0, 4.0), one(0, 0.0, right=False), one(1, 0.0, right=False)]
    faults = [one(0, None, right=False), one(2, None, 1, right=False), one(2, None, 1, right=False)]
    clean, found = summary_of(judged), summary_of([*judged, *faults])
    assert (found["tasks"], found["replies"], found["unjudged_tasks"], found["unjudged_replies"]) == (2, 3, 1, 3)
    same = ("pass_rate", "pass_rate_shown_0", "tasks_solved", "tasks_faster", "speedup_best_of_task")
    assert {name: found[name] for name in same} == {name: clean[name] for name in same}
    assert (found["tasks_solved"], found["speedup_best_of_task"]) == (0.5, pytest.approx(2.0))
    assert "pass_rate_shown_1" not in found, "no reply to such a question was judged"
    assert summary_of(faults[1:]) == {"tasks": 0, "replies": 0, "unjudged_tasks": 1, "unjudged_replies": 2}


def test_faults_are_counted_beside_the_figures_of_a_run_and_of_a_kind(run: RunDirectory) -> None:
    policy = save_policy(run.path / "self" / "final", replies=REPLIES)

    class Failing(FakeEvaluator):
        """Its device is gone for one of the tasks."""

        def evaluate(self, task: Task, *asked: Any, **more: Any) -> Any:
            if task.sha == TASKS[0].sha:
                raise InfrastructureError("the device is gone")
            return super().evaluate(task, *asked, **more)

    found = evaluated(run, policy, Failing(), TASKS[:2])
    written = list(run.stage("held-out").rows("samples"))
    unjudged = sum(row["reward"] is None for row in written)
    assert unjudged > 0 and (found["tasks"], found["left_out"]) == (2 - found["unjudged_tasks"], 0)
    assert (found["unjudged_replies"], found["replies"]) == (unjudged, 24 - unjudged)
    kinds = [found[kind] for kind in ("unseen_pairs", "unseen_graphs") if kind in found]
    assert sum(kind["unjudged_replies"] for kind in kinds) == unjudged
    assert sum(kind["replies"] for kind in kinds) == 24 - unjudged


def test_a_kind_of_which_nothing_could_be_judged_has_counts_alone() -> None:
    reply, scored = one(0, None, right=False)
    (kind,) = by_kind([reply], [scored]).values()
    assert kind == {"tasks": 0, "replies": 0, "unjudged_tasks": 1, "unjudged_replies": 1}


def test_later_parts_show_what_the_policy_wrote_in_earlier_ones(run: RunDirectory) -> None:
    values = run.recipe.model_dump(mode="json")
    values["evaluation"] |= {"held_out_rounds": 3}
    run = RunDirectory(run.path, recipe_from(values, "a test"))
    evaluated(run, save_policy(run.path / "self" / "final", replies=REPLIES), FakeEvaluator())
    rows = list(run.stage("held-out").rows("samples"))
    asked = {row["name"]: row["questions"] for row in run.stage("held-out").rows("prompts")}
    assert list(asked) == ["held-out 0", "held-out 1", "held-out 2"] and len(rows) == 24
    assert not any(row["shown"] for row in rows[:8]), "nothing is known of a held-out task at first"
    assert any(row["shown"] for row in rows[8:])
    assert {row["outcome"] for row in rows if row["right"]} == {"ACCEPTED"}


def test_further_suites_are_asked_about_too_and_stand_apart(run: RunDirectory) -> None:
    policy = save_policy(run.path / "self" / "final", replies=REPLIES)
    long = TASKS[1].model_copy(update={"name": "long", "source": "class Model:\n" + "    one = 1\n" * 20_000})
    evaluator = FakeEvaluator()
    found = evaluated(
        run, policy, evaluator, TASKS[:1], {"builtin": TASKS[1:], "long": [long], "both": [TASKS[2], long]}
    )
    assert (found["tasks"], found["replies"], found["left_out"]) == (1, 12, 0)
    assert {name: (each["tasks"], each["replies"], each["left_out"]) for name, each in found["suites"].items()} == {
        "builtin": (2, 24, 0), "long": (0, 0, 1), "both": (1, 12, 1),
    }  # fmt: skip
    assert found["suites"]["builtin"]["pass_rate"] > 0
    folder = run.stage("held-out")
    assert {row["task"] for row in folder.rows("samples")} == {TASKS[0].sha}
    assert {(row["suite"], row["task"]) for row in folder.rows("suite_samples")} == {
        ("builtin", TASKS[1].sha), ("builtin", TASKS[2].sha), ("both", TASKS[2].sha),
    }  # fmt: skip


def test_no_question_that_fits_is_one_line(run: RunDirectory) -> None:
    long = TASKS[1].model_copy(update={"source": "class Model:\n" + "    one = 1\n" * 20_000})
    with pytest.raises(UsageError, match="no question about a held-out task fits"):
        evaluated(run, save_policy(run.path / "sft" / "final", replies=REPLIES), FakeEvaluator(), [long])


def test_pairs_that_training_never_shows_are_told_apart_from_other_unseen_graphs() -> None:
    tasks = load_tasks("synth:0:120#held-out/*")
    unseen = [task for task in tasks if has_unseen_pair(task)]
    assert 0 < len(unseen) < len(tasks)
    file = Task(suite="file", name="mine", source=unseen[0].source + "\n")
    prompt = Prompt(system="", user="", template="t")
    replies = [Written(task, prompt, "text", True, 1) for task in (*tasks, file)]
    scored = [Scored(4.0, True) if task in unseen else Scored(0.0) for task in (*tasks, file)]
    found = by_kind(replies, scored)
    assert {kind: (each["tasks"], each["pass_rate"]) for kind, each in found.items()} == {
        "unseen_pairs": (len(unseen), 1.0), "unseen_graphs": (len(tasks) - len(unseen), 0.0),
    }  # fmt: skip
    assert found["unseen_pairs"]["speedup_best_of_task"] == pytest.approx(4.0)
    assert by_kind(replies[-1:], scored[-1:]) == {}


def test_more_parts_than_replies_is_one_line() -> None:
    assert parts(EvaluationSection(held_out_samples=8, held_out_rounds=3)) == [
        ("held-out 0", 0, 2), ("held-out 1", 2, 3), ("held-out 2", 5, 3),
    ]  # fmt: skip
    with pytest.raises(UsageError, match="held_out_rounds = 9 parts"):
        parts(EvaluationSection(held_out_samples=8, held_out_rounds=9))


def test_the_card_of_the_policy_has_the_figures_once(tmp_path: Path) -> None:
    card = tmp_path / "README.md"
    card.write_text("# name\n\n## Results\n- rounds: 2\n")
    for rate in (0.5, 0.25):
        counts = {"tasks": 4, "unjudged_replies": 3}
        add_held_out(tmp_path, {"denominator": "reference", **counts, "pass_rate": rate, "policy": "self/final"})
    found = card.read_text()
    assert found.startswith("# name\n\n## Results\n- rounds: 2\n\n## Held-out tasks\n") and "policy" not in found
    assert "- unjudged replies: 3\n" in found
    assert "- pass rate: 0.25\n" in found and "0.5" not in found and found.count("Held-out") == 1
