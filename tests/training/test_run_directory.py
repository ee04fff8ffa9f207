"""A training run's folder: made once, resumed on equality, whole checkpoints only."""

from __future__ import annotations

import zipfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from cuda_l1.errors import UsageError
from cuda_l1.training.checkpoints import going_on_from
from cuda_l1.training.processes import ALONE
from cuda_l1.training.recipe import Recipe, recipe_from
from cuda_l1.training.run_directory import RunDirectory, StageDirectory
from cuda_l1.training.sections import SftSection


def recipe(path: Path, **changes: object) -> Recipe:
    return Recipe(run_dir=str(path), **changes)


def test_a_run_is_made_opened_and_resumed(tmp_path: Path) -> None:
    made = RunDirectory.create(recipe(tmp_path / "run"), resume=False)
    assert RunDirectory.open(made.path).recipe == made.recipe
    assert RunDirectory.create(recipe(tmp_path / "run"), resume=True).name == made.name
    assert made.archive == str(tmp_path / "run" / "archive.sqlite")


def test_a_run_is_never_overwritten_or_mixed_with_another(tmp_path: Path) -> None:
    RunDirectory.create(recipe(tmp_path / "run", sft=SftSection(steps=3)), resume=False)
    with RunDirectory.create(recipe(tmp_path / "run"), resume=False).alone():
        pass  # nothing was done yet, so the recipe may change
    (tmp_path / "run" / "sft").mkdir()
    RunDirectory.create(recipe(tmp_path / "run"), resume=False, stages=["self"])
    with pytest.raises(UsageError, match="sft was begun there; give --resume"):
        RunDirectory.create(recipe(tmp_path / "run"), resume=False, stages=["sft", "self"])
    with pytest.raises(UsageError, match=r"other values \(sft\.steps \d+, now \d+\);"):
        RunDirectory.create(recipe(tmp_path / "run", sft=SftSection(steps=3)), resume=True)
    with pytest.raises(UsageError, match="no run there to resume"):
        RunDirectory.create(recipe(tmp_path / "none"), resume=True)
    with pytest.raises(UsageError, match="no training run"):
        RunDirectory.open(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("x")
    with pytest.raises(UsageError, match="holds something else"):
        RunDirectory.create(recipe(tmp_path / "full"), resume=False)


def resumed(path: Path, **sections: Any) -> RunDirectory:
    """A run that goes on with other values for some sections."""
    return RunDirectory.create(recipe_from({"run_dir": str(path), **sections}, "test"), resume=True)


@pytest.mark.parametrize(
    "sections",
    [
        {"run": {"keep_checkpoints": 7, "tracking": "none", "samples": 0, "shard_mib": 5}},
        {"generation": {"server": "http://elsewhere:8000", "vllm_memory": 0.5}},
        {"evaluation": {"at_once": 3, "within_s": 60.0, "table": "t.sqlite", "reviewer_key_file": "key"}},
    ],
)
def test_what_nothing_follows_from_may_always_be_changed(tmp_path: Path, sections: dict[str, Any]) -> None:
    made = RunDirectory.create(recipe(tmp_path / "run"), resume=False)
    for stage in ("start", "sft", "self", "contrastive", "held-out"):
        (made.path / stage).mkdir()
    found = resumed(made.path, **sections)
    assert found.recipe.digest == made.recipe.digest and found.recipe != made.recipe
    assert RunDirectory.open(made.path).recipe == made.recipe
    with found.alone():
        pass
    assert RunDirectory.open(made.path).recipe == found.recipe, "`train evaluate` reads it there"


def test_of_a_long_list_the_message_shows_the_place_that_differs(tmp_path: Path) -> None:
    tasks = [f"synth:{number}:2000" for number in range(1000, 1020)]
    made = RunDirectory.create(
        recipe_from({"run_dir": str(tmp_path / "run"), "data": {"tasks": tasks}}, "t"), resume=False
    )
    (made.path / "start").mkdir()
    for now, said in (
        (tasks[:-1], '...", "synth:1018:2000", "synth:1019:2000"], now ...", "synth:1018:2000"]'),
        ([*tasks, "mine"], 'synth:1019:2000", "mine"]'),
    ):
        with pytest.raises(UsageError, match="begun with other values") as caught:
            resumed(made.path, data={"tasks": now})
        assert f"{said})" in str(caught.value) and "synth:1000:2000" not in str(caught.value)


def test_a_reviewer_may_move_and_not_come_or_go(tmp_path: Path) -> None:
    path = tmp_path / "run"
    first = RunDirectory.create(
        recipe_from({"run_dir": str(path), "evaluation": {"reviewer": "http://a/v1"}}, "t"), resume=False
    )
    (first.path / "sft").mkdir()
    assert resumed(path, evaluation={"reviewer": "http://b/v1"}).recipe.digest == first.recipe.digest
    with pytest.raises(UsageError, match=r"other values \(evaluation\.reviewer somebody, now null\)"):
        resumed(path)


def test_a_stages_own_section_may_be_changed_until_it_is_begun(tmp_path: Path) -> None:
    run = RunDirectory.create(recipe(tmp_path / "run"), resume=False)
    own: dict[str, dict[str, Any]] = {
        "sft": {"steps": 3},
        "self_supervised": {"rounds": 3},
        "contrastive": {"batch": 4},
    }
    (run.path / "start").mkdir()
    assert resumed(run.path, **own).recipe.digest != run.recipe.digest
    with pytest.raises(UsageError, match=r"\(sft\.exemplars 2, now 1\)"):  # the tokenizer is made of such questions
        resumed(run.path, sft={"exemplars": 1})
    resumed(run.path, contrastive={"sampler": {"count": 1}})
    for folder, section in (("sft", "sft"), ("self", "self_supervised"), ("contrastive", "contrastive")):
        resumed(run.path, **own)
        (run.path / folder).mkdir()
        with pytest.raises(UsageError, match=f"begun with other values .{section}"):
            resumed(run.path, **own)
        del own[section]
        if folder == "self":
            with pytest.raises(UsageError, match=r"contrastive\.sampler\.count"):  # stage 2 draws with it, too
                resumed(run.path, contrastive={"sampler": {"count": 1}})


@pytest.mark.parametrize("sections", [{"model": {"layers": 2}}, {"generation": {"top_p": 0.9}}, {"run": {"seed": 1}}])
def test_what_all_stages_share_may_not_be_changed(tmp_path: Path, sections: dict[str, Any]) -> None:
    run = RunDirectory.create(recipe(tmp_path / "run"), resume=False)
    (run.path / "start").mkdir()
    with pytest.raises(UsageError, match="begun with other values"):
        resumed(run.path, **sections)


def test_the_latest_whole_checkpoint_counts(tmp_path: Path) -> None:
    stage = StageDirectory(tmp_path / "sft")
    assert stage.checkpoint() is None and not stage.is_done
    for number, state in ((9, "{}"), (10, "{}"), (100, None), (101, '{"step": 1')):
        (stage.path / f"checkpoint-{number}").mkdir(parents=True)
        if state is not None:
            (stage.path / f"checkpoint-{number}" / "trainer_state.json").write_text(state)
    assert stage.checkpoint() == stage.path / "checkpoint-10"


def test_a_checkpoint_whose_files_are_cut_short_does_not_count(tmp_path: Path) -> None:
    torch, numpy = (pytest.importorskip(name, reason="needs safetensors") for name in ("torch", "safetensors.numpy"))
    stage = StageDirectory(tmp_path / "sft")
    for number in (1, 2):
        folder = stage.path / f"checkpoint-{number}"
        folder.mkdir(parents=True)
        numpy.save_file({"weight": torch.ones(9).numpy()}, folder / "model.safetensors")
        for name in ("optimizer.pt", "optimizer.bin"):
            torch.save({"state": torch.ones(9)}, folder / name)
        (folder / "trainer_state.json").write_text("{}")
    for name in ("model.safetensors", "optimizer.pt", "optimizer.bin"):
        file = folder / name
        whole = file.read_bytes()
        for part in (whole[:-1], whole[:3], b""):
            file.write_bytes(part)
            assert stage.checkpoint() == stage.path / "checkpoint-1", (name, len(part))
        file.write_bytes(whole)
        assert stage.checkpoint() == folder


@pytest.mark.parametrize(
    ("left_out", "said"),
    [
        (None, None),
        ("optimizer.pt", "checkpoint-3: has no optimizer, .*delete it"),
        ("rng_state.pth", "checkpoint-3: has no rng_state, .*delete it"),
        ("another process", "written by 2 processes, and 1 are training now"),
    ],
)
def test_a_checkpoint_that_lacks_a_part_is_not_gone_on_from(
    tmp_path: Path, left_out: str | None, said: str | None
) -> None:
    folder = tmp_path / "checkpoint-3"
    folder.mkdir()
    names = ["optimizer.pt", "scheduler.pt", "rng_state.pth"]
    for name in [*names, "rng_state_1.pth"] if left_out == "another process" else names:
        if name != left_out:
            with zipfile.ZipFile(folder / name, "w") as made:
                made.writestr("data.pkl", "x")
    (folder / "trainer_state.json").write_text("{}")
    with pytest.raises(UsageError, match=said) if said else nullcontext():
        assert going_on_from(StageDirectory(tmp_path), ALONE) == folder


def test_lines_survive_one_that_a_kill_has_torn(tmp_path: Path) -> None:
    stage = StageDirectory(tmp_path / "sft")
    stage.append("metrics", {"step": 1})
    with (stage.path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 2, "lo')
    stage.append("metrics", {"step": 3})
    with (stage.path / "metrics.jsonl").open("a") as file:
        file.write("1\n[1]\nnull\n")  # nor what is no line of ours
    assert list(stage.rows("metrics")) == [{"step": 1}, {"step": 3}]
    assert list(stage.rows("samples")) == []


def test_a_run_that_was_killed_before_its_recipe_was_whole_is_begun_again(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.partial").write_text("run_d")
    assert RunDirectory.create(recipe(tmp_path / "run"), resume=False).path == tmp_path / "run"
    assert [each.name for each in (tmp_path / "run").iterdir()] == ["recipe.toml"]


def test_two_commands_do_not_train_in_one_folder(tmp_path: Path) -> None:
    first, second = (
        RunDirectory.create(recipe(tmp_path / "run", sft=SftSection(steps=steps)), resume=False) for steps in (3, 4)
    )
    with first.alone(), pytest.raises(UsageError, match="another command works there"), second.alone():
        pytest.fail("both have it")
    assert RunDirectory.open(first.path).recipe == first.recipe, "the one that is refused has left its own"
    with second.alone():
        pass
    RunDirectory.create(recipe(tmp_path / "run", sft=SftSection(steps=3)), resume=False)  # nothing was done yet
