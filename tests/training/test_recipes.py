"""Every recipe of the repository: it reads, its sizes fit, and its trainers can be told what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cuda_l1.training.recipe import Recipe, as_toml, load_recipe

ROOT = Path(__file__).parents[2]
RECIPES = sorted((ROOT / "recipes").glob("*.toml"))
SMALL = ("run.device=cpu", "evaluation.device=cpu", "generation.engine=transformers", "run.tracking=none",
         "model={vocabulary=320, hidden=32, intermediate=64, layers=1, heads=2, key_value_heads=1}")  # fmt: skip
PROCESSES = {"node8-7b": 4}
"""That train together; one where nothing is said."""
each_recipe = pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)


def test_there_are_recipes_for_every_size() -> None:
    assert {path.stem for path in RECIPES} >= {"smoke-cpu", "one-gpu", "lora-7b", "node8-7b", "paper-overlap"}


@each_recipe
def test_it_reads_and_is_what_it_says(path: Path, tmp_path: Path) -> None:
    recipe = load_recipe(path)
    assert recipe.run_dir == f"runs/{path.stem}", "two recipes would meet in one folder"
    (tmp_path / "again.toml").write_text(as_toml(recipe))
    assert load_recipe(tmp_path / "again.toml").digest == recipe.digest
    assert recipe.data.allow_overlap == ("overlap" in path.stem)
    trains_on_others = any(not spec.startswith("synth:") for spec in recipe.data.tasks)
    assert trains_on_others == recipe.data.allow_overlap, "training tasks are nobody's evaluation tasks"
    said = path.read_text().partition("\n\n")[0]
    assert "not run" in said.lower() or path.stem in ("smoke-cpu", "two-cores")


@each_recipe
def test_its_sizes_divide_each_other_and_fit_the_context(path: Path) -> None:
    recipe = load_recipe(path)
    section, many = recipe.contrastive, PROCESSES.get(path.stem, 1)
    assert section.prompts * section.group % (section.batch * many) == 0
    if recipe.model.path is None:
        assert recipe.sft.max_length <= recipe.model.context
        assert recipe.generation.max_new_tokens < recipe.model.context / 2, "questions need room, too"
        assert recipe.model.hidden % recipe.model.heads == recipe.model.heads % recipe.model.key_value_heads == 0


@each_recipe
def test_stage_3_validates_the_last_rounds_where_it_validates_and_checkpoints_are_on_the_way(path: Path) -> None:
    section = load_recipe(path).contrastive
    assert section.validate_every % section.checkpoint_every == 0, "other checkpoints than it would have"
    assert section.rounds % (section.validate_every or 1) == 0


@each_recipe
def test_stage_1_can_show_as_many_variants_as_stage_3(path: Path) -> None:
    recipe = load_recipe(path)
    assert recipe.data.keep > recipe.sft.exemplars >= recipe.contrastive.sampler.count


@each_recipe
def test_its_trainers_can_be_told_what_it_says(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("trl", reason="needs transformers and TRL")
    from cuda_l1.training import grpo, likelihood
    from cuda_l1.training.run_directory import StageDirectory

    recipe = load_recipe(path, SMALL)
    asked, section = recipe.contrastive, grpo.arguments(recipe, tmp_path, large=False)
    assert section.generation_batch_size == asked.prompts * asked.group and section.num_generations == asked.group
    assert section.max_steps == asked.rounds * asked.iterations and section.learning_rate == asked.learning_rate
    assert (section.beta, section.epsilon, section.epsilon_high) == (asked.kl, asked.clip_low, asked.clip_high)
    assert section.max_completion_length == recipe.generation.max_new_tokens and not section.gradient_checkpointing
    stage = StageDirectory(tmp_path)
    first = likelihood.arguments(recipe.sft, recipe, stage, has_validation=True, large=False)
    assert (first.max_length, first.packing) == (recipe.sft.max_length, recipe.sft.packing)
    assert first.gradient_accumulation_steps == recipe.sft.accumulate


CORRECTED = {"vllm_importance_sampling_correction": True, "vllm_importance_sampling_mode": "token_truncate",
             "vllm_importance_sampling_clip_max": 2.0, "vllm_importance_sampling_clip_min": None}  # fmt: skip
"""No reply of another engine is dropped, and no token of one counts more than twice."""


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("lora-7b", {"use_vllm": True, "vllm_mode": "colocate", "vllm_gpu_memory_utilization": 0.35,
                     "vllm_enable_sleep_mode": True, **CORRECTED}),
        ("node8-7b", {"use_vllm": True, "vllm_mode": "server", "vllm_server_base_url": "http://localhost:8000",
                      **CORRECTED}),
        ("one-gpu", {"use_vllm": False}),
    ],
)  # fmt: skip
def test_who_writes_is_what_trl_is_told(name: str, wanted: dict[str, object], tmp_path: Path) -> None:
    pytest.importorskip("trl", reason="needs transformers and TRL")
    from cuda_l1.training import grpo

    engine = load_recipe(ROOT / "recipes" / f"{name}.toml").generation.engine
    section = grpo.arguments(_with(name, *SMALL, f"generation.engine={engine}"), tmp_path, large=True)
    assert {key: getattr(section, key) for key in wanted} == wanted
    assert section.gradient_checkpointing


def test_the_policy_from_nothing_has_at_most_25_million_weights() -> None:
    pytest.importorskip("trl", reason="needs transformers and TRL")
    import torch

    from cuda_l1.training.policy_model import decoder, train_tokenizer

    section = _with("one-gpu").model
    tokenizer = train_tokenizer(["x"], 300, section.context)
    with torch.device("meta"):
        small = decoder(section, tokenizer, seed=0).num_parameters()
    assert small + (section.vocabulary - len(tokenizer)) * section.hidden <= 25_000_000


def test_the_policy_from_nothing_is_asked_about_tasks_that_nobody_generated_and_never_trained_on_them() -> None:
    from cuda_l1.tasks import load_tasks
    from cuda_l1.training.task_sets import load_task_sets

    recipe = _with("one-gpu", 'data.tasks=["synth:0:40"]')
    (suite,) = recipe.evaluation.held_out_suites
    asked = {task.sha for task in load_tasks(suite, device="cpu")}
    sets = load_task_sets(recipe, "cpu")
    assert asked and sets.held_out and not asked & {task.sha for each in sets[:3] for task in each}


def test_the_first_recipe_that_anybody_runs_can_be_evaluated() -> None:
    from cuda_l1.training.task_sets import load_task_sets

    sets = load_task_sets(_with("smoke-cpu"), "cpu")
    assert [len(tasks) for tasks in sets[:3]] == [2, 1, 1]


def test_the_policy_from_nothing_takes_at_most_25_minutes_a_stage_by_what_was_measured() -> None:
    recipe, (begin_s, step_s, round_s, validation_s) = _with("one-gpu"), (100, 0.163, 19.3, 24.5)  # docs/results/h100
    section = recipe.contrastive
    assert begin_s + recipe.sft.steps * step_s <= 25 * 60
    assert section.rounds * round_s + (1 + section.rounds / section.validate_every) * validation_s <= 25 * 60


def test_one_recipe_s_gpus_train_write_and_measure_apart() -> None:
    recipe, script = _with("node8-7b"), (ROOT / "recipes" / "node8-7b.sbatch").read_text()
    measure = {int(place.removeprefix("cuda:")) for place in recipe.evaluation.places}
    write = {int(each) for each in re.findall(r"CUDA_VISIBLE_DEVICES=([\d,]+)", script)[0].split(",")}
    train = set(range(int(re.findall(r"--num_processes (\d+)", script)[0])))
    assert len(train) == PROCESSES["node8-7b"]
    assert measure | write | train == set(range(8)) and len(measure) + len(write) + len(train) == 8
    assert int(re.findall(r"--max-model-len (\d+)", script)[0]) > 2 * recipe.generation.max_new_tokens
    assert recipe.generation.server and recipe.generation.server.endswith(re.findall(r"--port (\d+)", script)[0])


def _with(name: str, *overrides: str) -> Recipe:
    return load_recipe(ROOT / "recipes" / f"{name}.toml", overrides)


ROUND = ("contrastive.rounds=1", "contrastive.min_pass_rate=0.0", "generation.max_new_tokens=3", "generation.batch=128",
         "run.samples=0")  # fmt: skip


@pytest.mark.parametrize("name", ["one-gpu", "lora-7b", "node8-7b", "paper-overlap"])
def test_a_round_of_it_teaches_a_small_model(name: str, tmp_path: Path) -> None:
    pytest.importorskip("trl", reason="needs transformers and TRL")
    from judge_fakes import TASKS, FakeEvaluator
    from safetensors.torch import load_file

    from cuda_l1.archive import Archive
    from cuda_l1.training import contrastive
    from cuda_l1.training.judging import Judging
    from cuda_l1.training.run_directory import RunDirectory
    from small_policy import save_policy

    policy = save_policy(tmp_path / "small", taught=False)
    recipe = _with(name, *SMALL[:-1], *ROUND, f"run_dir={tmp_path}", f"model.path={policy}",
                   "contrastive.learning_rate=0.01", "contrastive.warmup=0.0")  # fmt: skip
    with Archive.open(tmp_path / "archive.sqlite") as archive:
        judge = Judging([FakeEvaluator()], archive=archive, run="run", within_s=60.0)
        run = RunDirectory(tmp_path, recipe)
        final = contrastive.train(run, TASKS, start=policy, archive=archive, judge=judge, on_event=lambda event: None)
    asked = recipe.contrastive
    assert sum(1 for _ in run.stage("contrastive").rows("samples")) == asked.prompts * asked.group
    before, after = load_file(policy / "model.safetensors"), load_file(final / "model.safetensors")
    assert before.keys() == after.keys()
    assert any(bool((before[key] != after[key].to(before[key].dtype)).any()) for key in before)
