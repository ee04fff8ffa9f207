"""The policy ablation: its list of runs, what each is told, and the arithmetic of its table."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

import ablation_finals as finals
import ablation_rows
import ablation_table as tables
import ablation_templates as templates
import policy_ablation
from ablation_rows import ROWS, common, own, runs
from ablation_runs import Ablation, Failed, claimed, copied, hand_over_data
from ablation_table import Reply
from cuda_l1.errors import UsageError
from cuda_l1.training.recipe import load_recipe
from cuda_l1.training.run_directory import RunDirectory, StageDirectory
from cuda_l1.types import Candidate, Origin, Task

RECIPE = Path(__file__).parents[2] / "recipes" / "one-gpu.toml"
HERE = ["run.device=cpu", "run.threads=1"]
WITH_HELD_OUT = [*HERE, "data.tasks=['synth:0:6']"]


def replies(**rewards: Sequence[float | None]) -> list[Reply]:
    """The rewards of each task's replies; 0 is a wrong one."""
    return [Reply(task, bool(reward), reward) for task, found in rewards.items() for reward in found]


def test_every_row_is_run_with_every_seed_but_what_draws_nothing() -> None:
    found = runs(list(ROWS), [3, 4])
    assert len({run.name for run in found}) == len(found) == 2 * len(ROWS) - 2
    assert [run.seed for run in found] == sorted(run.seed for run in found), "one seed is finished before the next"
    assert [run.name for run in runs(["constant", "bucket"], [1, 0])] == ["bucket-1", "constant-1", "bucket-0"]
    with pytest.raises(UsageError, match="--rows buckets: no such row; known are stage-1, "):
        runs(["buckets"], [0])


def test_runs_differ_in_what_their_rows_say_and_in_nothing_else(tmp_path: Path) -> None:
    base = load_recipe(RECIPE)

    def told(row: str, seed: int = 0) -> dict[str, object]:
        values = [*common(base, tmp_path, seed, tmp_path / row), *own(ROWS[row], base)]
        return load_recipe(RECIPE, values).model_dump(exclude={"run_dir"})

    for row in ROWS:
        made = load_recipe(RECIPE, [*common(base, tmp_path, 7, tmp_path / row), *own(ROWS[row], base)])
        assert made.run.seed == 7 and made.evaluation.table == str(tmp_path / "table.sqlite")
        assert made.evaluation.held_out_rounds == 4, "or nothing could be shown of a held-out task"
        assert made.contrastive.sampler.kind == ROWS[row].sampler
        assert made.contrastive.shaping == (row if row in ("raw", "log", "rank") else "smoothed")
        assert made.prompt.analysis == (row != "no-analysis")
        if row != "longer":
            assert made.self_supervised == base.self_supervised
        same = {"sampler": base.contrastive.sampler, "shaping": base.contrastive.shaping}
        assert made.contrastive.model_copy(update=same) == base.contrastive, "equal budgets"
        first_half = ablation_rows.searched(base) if ROWS[row].helps_search else 0
        assert made.evaluation.held_out_samples + first_half == base.evaluation.held_out_samples
    assert told("grpo") == told("stages-1-2") and told("bucket") == told("inference-only") != told("grpo")


def test_the_row_that_learns_longer_asks_for_as_many_replies_as_stage_3() -> None:
    base = load_recipe(RECIPE)
    section = base.self_supervised
    of_a_round = (section.tasks + section.validation_tasks) * section.samples
    wanted = ablation_rows.replies_of_stage_3(base)
    assert wanted == base.contrastive.rounds * base.contrastive.prompts * base.contrastive.group
    assert 0 <= ablation_rows.more_rounds(base) * of_a_round - wanted < of_a_round


def test_a_task_counts_by_its_best_right_reply_and_at_least_as_the_original() -> None:
    seeds = {0: replies(a=[4.0, 0.0, 2.0, None], b=[0.5, 0.0], c=[0.0])}
    found = tables.cells(seeds, {})
    assert found["success"].value == pytest.approx(3 / 6), "what the machine failed at is no reply"
    assert found["mean"].value == 2.0 and found["geometric"].value == pytest.approx(4 ** (1 / 3))
    assert found["faster"].value == pytest.approx(1 / 3)
    assert found["single"].value == pytest.approx((4.0 * 2.0) ** (1 / 9)), "a wrong or slow reply costs the gain alone"
    assert {cell.over for cell in found.values()} == {"3 tasks"} and "faster_baseline" not in found
    assert found["mean"].low == 1.0 and found["mean"].high == 4.0, "all of three drawn tasks can be the same one"
    against = tables.cells(seeds, {"a": 5.0, "b": 0.4})["faster_baseline"]
    assert against.value == 0.5, "a is slower than its baseline, b's is slower than the reference, c was not measured"


def test_with_several_seeds_the_interval_is_students_t_over_them() -> None:
    seeds = {0: replies(a=[2.0]), 1: replies(a=[4.0]), 2: replies(a=[8.0])}
    found = tables.cells(seeds, {})
    half = 4.303 * math.log(2) / math.sqrt(3)
    assert found["geometric"].value == pytest.approx(4.0) and found["geometric"].over == "3 seeds"
    assert found["geometric"].high == pytest.approx(4.0 * math.exp(half))
    assert found["geometric"].low == pytest.approx(4.0 / math.exp(half))
    assert (found["success"].low, found["success"].value, found["success"].high) == (1.0, 1.0, 1.0)
    halves = tables.cells({0: replies(a=[0.0]), 1: replies(a=[1.0])}, {})["success"]
    assert (halves.low, halves.value, halves.high) == (0.0, 0.5, 1.0), "a share stays one"


def test_rows_are_compared_seed_by_seed() -> None:
    easy, hard = replies(a=[8.0], b=[8.0]), replies(a=[2.0], b=[2.0])
    slower = {0: replies(a=[4.0], b=[4.0]), 1: replies(a=[1.0], b=[1.0])}
    found = tables.over({0: easy, 1: hard}, slower)
    assert found and (found.low, found.value, found.high) == pytest.approx((2.0, 2.0, 2.0)), (
        "the seeds' own noise is out"
    )
    one = tables.over({0: easy, 5: hard}, slower)
    assert one and one.over == "2 tasks" and one.value == pytest.approx(2.0)
    twice = {0: replies(a=[4.0, 0.0], b=[1.0, 16.0])}
    assert {name: of for name, (_, of) in tables.OVER.items()} == {
        "single_over_2": tables.one_reply, "over_2": tables.best,
        "single_over_grpo": tables.one_reply, "over_grpo": tables.best,
    }  # fmt: skip
    of_one = tables.over(twice, {0: replies(a=[2.0, 0.5], b=[2.0, 2.0])}, tables.one_reply)
    assert of_one and of_one.value == pytest.approx(2**0.75), "2 over the root of 2, and 4 over 2"
    assert tables.over({5: hard}, slower) is None and tables.over({0: easy}, {0: replies(z=[1.0])}) is None


def test_the_table_shows_figures_budgets_and_what_is_not_finished() -> None:
    cells = tables.cells({0: replies(a=[2.0])}, {})
    came = tables.outcomes({0: [Reply("a", True, 2.0, "ACCEPTED"), Reply("a", False, 1.0, "ACCEPTED")]})
    line = tables.Line("bucket", "a | b", cells, 1200, 64, came, "bucket-1 (ended with 2)")
    shown = "\n".join(tables.markdown([line]))
    assert (
        "| bucket | a \\| b | 100% (100% to 100%) | 2.00x (2.00x to 2.00x) |" in shown
        and "one reply, geometric" in shown
    )
    assert "| 1 tasks | 1,200 | 64 |" in shown and "not finished: bucket-1 (ended with 2)" in shown
    assert "| bucket | ACCEPTED 50%, suspected 50% |" in shown
    assert tables.document([line])[0]["cells"]["mean"]["value"] == 2.0


def test_a_final_counts_in_place_of_the_screen_that_chose_and_caps_the_others() -> None:
    found = [
        Reply("a", True, 4.0, "ACCEPTED", "lucky"),
        Reply("a", True, 3.0, "ACCEPTED", "next"),
        Reply("a", False, 0.0, "CRASHED", "wrong"),
        Reply("b", True, 0.5, "ACCEPTED", "slower"),
        Reply("c", True, 2.0, "ACCEPTED", "faulty"),
    ]
    assert [reply.candidate for reply in finals.best_of(found)] == ["lucky", "faulty"]
    rewards = [reply.reward for reply in finals.with_finals(found, {"lucky": 2.5})]
    assert rewards == [2.5, 2.5, 0.0, 0.5, 2.0], "the machine failed at one"
    assert finals.with_finals(found, {}) == found


class Offers(templates.Techniques):
    """Techniques that need no graph."""

    def of(self, task: Task) -> list[Candidate]:
        names = ["slow", "fast"] if task.name != "bare" else []
        return [
            Candidate(task_sha=task.sha, task_id=task.id, source=name,
                      origins=(Origin(proposer="techniques", techniques=(name,)),))
            for name in names
        ]  # fmt: skip


def test_random_techniques_are_as_many_as_replies_and_another_seed_draws_others() -> None:
    offers = Offers(load_recipe(RECIPE))
    tasks = [Task(suite="s", name=name, source=f"class Model: ...  # {name}") for name in ("a", "bare")]
    found = templates.at_random(offers, tasks, 16, seed=0)
    assert len(found) == 32 and {name for task, (name, _) in found if task is tasks[0]} == {"slow", "fast"}
    assert all(candidate is None for task, (_, candidate) in found if task is tasks[1])
    assert templates.at_random(offers, tasks, 16, seed=0) == found != templates.at_random(offers, tasks, 16, seed=1)
    always = templates.always("fast", offers, tasks)
    assert [written[1] and written[1].source for _, written in always] == ["fast", None]


@pytest.mark.alone  # the recipe has a core for the policy and one for each lane
def test_what_failed_is_told_and_the_others_are_done_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def do(self: Ablation, run: ablation_rows.Run) -> None:
        if run.row.name == "grpo":
            raise Failed("train contrastive ended with 2: too few replies are right")
        done.append(run.name)
        folder = self.folder(run) / "held-out"
        folder.mkdir(parents=True)
        reply = {"task": "a", "right": True, "reward": 2.0, "outcome": "ACCEPTED", "candidate": "c"}
        (folder / "samples.jsonl").write_text(json.dumps(reply) + "\n")
        (folder / "result.json").write_text("{}")

    monkeypatch.setattr(Ablation, "do", do)
    ablation = Ablation(RECIPE, WITH_HELD_OUT, tmp_path)
    asked = runs(["grpo", "bucket"], [0])
    for _ in range(2):
        failed = policy_ablation.do_all(ablation, asked, lambda failed: None)
        assert list(failed) == ["grpo-0"] and done == ["bucket-0"]
    written = policy_ablation.write(ablation, policy_ablation.lines(ablation, asked, {}, failed))
    assert written == (tmp_path / "ablation.md").read_text()
    assert "too few replies are right" in written and "| bucket | " in written and "| grpo | " not in written
    with claimed(tmp_path, "bucket-1"):
        assert "another process" in policy_ablation.do_all(ablation, runs(["bucket"], [1]), lambda f: None)["bucket-1"]


@pytest.mark.alone  # the recipe has a core for the policy and one for each lane
@pytest.mark.timeout(60)
def test_a_row_with_a_form_of_its_own_trains_stages_1_and_2_in_it_and_waits_for_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[tuple[str, str, bool]] = []

    def train(self: Ablation, stage: str, folder: Path, values: Sequence[str], *, leaky: bool = False) -> None:
        trained.append((stage, folder.name, "prompt.analysis=false" in values))

    ablation = Ablation(RECIPE, WITH_HELD_OUT, tmp_path)
    data = RunDirectory.create(ablation.recipe(tmp_path / "data", 0), resume=False)
    monkeypatch.setattr(Ablation, "_train", train)
    monkeypatch.setattr(Ablation, "collect", lambda self: data)
    monkeypatch.setattr("ablation_runs.hand_over", lambda *arguments: None)
    for run in runs(["no-analysis", "bucket"], [0]):
        with claimed(tmp_path, run.name):
            ablation.begin(run)
    assert sorted(trained) == [
        ("self", "no-analysis-0", True), ("self", "seed-0", False),
        ("sft", "no-analysis-0", True), ("sft", "seed-0", False),
    ]  # fmt: skip


@pytest.mark.alone  # the recipe has a core for the policy and one for each lane
@pytest.mark.timeout(60)
def test_a_policy_that_is_there_is_stage_1_of_all_seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = tmp_path / "policy"
    with pytest.raises(UsageError, match="policy: no policy is there"):
        Ablation(RECIPE, WITH_HELD_OUT, tmp_path, policy)
    policy.mkdir()
    (policy / "config.json").write_text("{}")
    ablation = Ablation(RECIPE, WITH_HELD_OUT, tmp_path, policy)
    data = RunDirectory.create(ablation.recipe(tmp_path / "data", 0), resume=False)
    commands: list[Sequence[str]] = []
    monkeypatch.setattr(Ablation, "_command", lambda self, name, arguments: commands.append(arguments))
    monkeypatch.setattr(Ablation, "collect", lambda self: data)
    monkeypatch.setattr("ablation_runs.hand_over", lambda *arguments: None)
    for run in runs(["bucket"], [0, 1]):
        ablation.begin(run)
        begun = StageDirectory(ablation.shared(run) / "sft")
        assert begun.is_done and not os.path.samefile(begun.final / "config.json", policy / "config.json")
    assert [command[3] for command in commands] == ["self", "self"]


@pytest.mark.alone  # the recipe has a core for the policy and one for each lane
def test_replies_in_training_are_counted_once_and_where_they_were_written(tmp_path: Path) -> None:
    ablation = Ablation(RECIPE, WITH_HELD_OUT, tmp_path)
    bucket, longer = runs(["bucket", "longer"], [0])[::-1]
    rows = [{"round": number, "index": index} for number in (0, 1, 1) for index in range(4)]  # round 1 was repeated
    for row in rows:
        StageDirectory(ablation.folder(bucket) / "contrastive").append("samples", row)
    for index in range(3):
        StageDirectory(ablation.shared(bucket) / "self").append("replies", {"name": "0 train", "index": index})
    for index in range(5):
        StageDirectory(ablation.folder(longer) / "self").append("replies", {"name": "0 train", "index": index})
    assert (ablation.trained_on(bucket), ablation.trained_on(longer)) == (8 + 3, 5)


@pytest.mark.alone  # the recipe has a core for the policy and one for each lane
def test_a_base_recipe_that_no_table_can_be_made_of_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="denominator=reference"):
        Ablation(RECIPE, [*WITH_HELD_OUT, "evaluation.denominator='best-baseline'"], tmp_path)
    with pytest.raises(UsageError, match="rows would show each other's variants"):
        Ablation(RECIPE, [*WITH_HELD_OUT, "run.archive='all.sqlite'"], tmp_path)
    with pytest.raises(UsageError, match="none of the recipe's tasks is held out"):
        Ablation(RECIPE, [*HERE, "data.tasks=['synth:0:6#train/*']"], tmp_path)


def test_what_was_collected_and_what_was_written_unjudged_is_made_once_for_all_rows(tmp_path: Path) -> None:
    recipe = load_recipe(RECIPE, HERE)
    source, target = (RunDirectory(tmp_path / name, recipe) for name in ("data", "seed-0"))
    source.data.mkdir(parents=True)
    (source.path / "data.json").write_text("{}")
    hand_over_data(source, target)
    assert sorted(path.name for path in target.path.iterdir()) == ["data", "data.json"], "nothing was written unjudged"
    written = source.unjudged_file("synth:1000:2000")
    written.parent.mkdir(parents=True)
    written.write_text("rows")
    hand_over_data(source, target)
    assert target.unjudged_file("synth:1000:2000").read_text() == "rows"


def test_a_shared_checkpoint_is_there_whole_and_takes_no_room(tmp_path: Path) -> None:
    source = tmp_path / "seed-0" / "final"
    source.mkdir(parents=True)
    (source / "weights").write_text("1")
    target = tmp_path / "runs" / "bucket-0" / "final"
    (tmp_path / "runs" / "bucket-0" / "final.partial").mkdir(parents=True)  # a kill in the middle
    copied(source, target)
    copied(source, target)
    assert os.path.samefile(source / "weights", target / "weights")
    assert not target.with_name("final.partial").exists()
