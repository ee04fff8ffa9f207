"""Recipes: what is read, what is refused and in which words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cuda_l1.errors import UsageError
from cuda_l1.training.recipe import Recipe, as_toml, load_recipe

TEXT = """
run_dir = "runs/one"

[sft]
steps = 7

[contrastive.sampler]
kind = "top"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.toml"
    path.write_text(TEXT)
    return path


def test_a_recipe_reads_its_sections_and_has_defaults_for_the_rest(file: Path) -> None:
    recipe = load_recipe(file)
    assert (recipe.run_dir, recipe.sft.steps, recipe.contrastive.sampler.kind) == ("runs/one", 7, "top")
    assert recipe.sft.batch == Recipe(run_dir="x").sft.batch
    file.write_bytes(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode())  # as an editor on Windows saves it
    assert load_recipe(file) == recipe


def test_the_command_line_goes_before_the_file(file: Path) -> None:
    wanted = ["sft.steps=9", "run_dir=/tmp/my run", "data.tasks=['synth:1:5']", "contrastive.sampler.count=3"]
    recipe = load_recipe(file, wanted)
    assert (recipe.sft.steps, recipe.run_dir, recipe.data.tasks) == (9, "/tmp/my run", ("synth:1:5",))
    assert (recipe.contrastive.sampler.kind, recipe.contrastive.sampler.count) == ("top", 3)


def test_what_looks_like_another_value_is_a_text_where_a_text_is_wanted(file: Path) -> None:
    recipe = load_recipe(file, ["run_dir=2026-11-23", "model.path=7", "run.archive='a b'", "evaluation.table=true"])
    assert (recipe.run_dir, recipe.model.path, recipe.run.archive) == ("2026-11-23", "7", "a b")
    assert recipe.evaluation.table == "true"


def test_paths_of_a_file_may_begin_in_the_home_folder(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    file.write_text(
        'run_dir = "~/run"\n[model]\npath = "~/m"\n[data]\nexamples = ["~/a", "b~"]\n[evaluation]\ntable = "~/t"'
    )
    recipe = load_recipe(file, ["run.archive=~/a.sqlite"])
    assert (recipe.run_dir, recipe.model.path, recipe.data.examples) == (
        "/home/me/run",
        "/home/me/m",
        ("/home/me/a", "b~"),
    )
    assert (recipe.evaluation.table, recipe.run.archive) == ("/home/me/t", "/home/me/a.sqlite")
    assert recipe.evaluation.reviewer_key_file is None


def test_what_is_written_reads_back_as_the_same(file: Path, tmp_path: Path) -> None:
    recipe = load_recipe(file, ["run_dir='a \"quoted\" näme\\'", "model.path=some/where", "run.seed=3"])
    (tmp_path / "written.toml").write_text(as_toml(recipe))
    assert load_recipe(tmp_path / "written.toml") == recipe


def test_the_digest_is_of_what_decides_the_result(file: Path) -> None:
    recipe = load_recipe(file)
    assert load_recipe(file, ["run_dir=elsewhere"]).digest == recipe.digest
    assert load_recipe(file, ["sft.steps=8"]).digest != recipe.digest
    assert re.fullmatch("[0-9a-f]{64}", recipe.digest)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("sft.stepz=3", r"\[sft\] has no key `stepz`; did you mean `steps`\?"),
        ("stf.steps=3", r"the top level has no key `stf`; did you mean `sft`\?"),
        ("contrastive.sampler.kindd=top", r"\[contrastive.sampler\] has no key `kindd`; did you mean `kind`\?"),
        ("sft.xyzzyxyzzy=3", r"\[sft\] has no key `xyzzyxyzzy`; known are steps, "),
        ("sft.steps=0", r"sft.steps: must be at least 1, not 0"),
        ("sft.steps=many", r"sft.steps: .* not 'many'"),
        ("contrastive.sampler.kind=best", r"contrastive.sampler.kind: must be 'bucket'"),
        ("sft.steps=1.5", r"sft.steps: must be a whole number, not 1.5"),
        ("sft.steps=true", r"sft.steps: must be a number, no truth value, not True"),
        ("model.lora_rank=true", r"model.lora_rank: must be a number, no truth value"),
        ('run_dir="a\\u0000b"', r"run_dir: must not hold a zero byte"),
        ("sft=3", r"sft: must be a group of named values, not 3"),
        ("data.tasks=x", r"data.tasks: must be a list, not 'x'"),
        ("contrastive.sampler.bucket_width=0.015", r"bucket_width: give a multiple of 0.01, not 0.015"),
        ("sft.steps", r"write section.key=value"),
        ("run_dir.x=1", r"`run_dir` is no section"),
    ],
)
def test_a_mistake_is_named_in_one_line(file: Path, override: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        load_recipe(file, [override])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("sft.steps=1e20", r"sft.steps: is too large a number, not 1e\+20"),
        ("sft.steps=1000000000", r"sft.steps: must be at most 100000000, not 1000000000"),
        ("sft.steps=" + "9" * 5000, r"sft.steps: is too large a number, not '999"),
        ("sft.steps=0x" + "f" * 5000, r"sft.steps: .*, not a number of thousands of digits"),
        ("sft.learning_rate=inf", r"sft.learning_rate: must be a finite number, not inf"),
        ("contrastive.kl=nan", r"contrastive.kl: must be a finite number, not nan"),
        ("contrastive.sampler.temperature=inf", r"contrastive.sampler.temperature: must be a finite number"),
        ("evaluation.limits.build_s=inf", r"evaluation.limits.build_s: must be a finite number, not inf"),
        ("evaluation.within_s=1e9", r"evaluation.within_s: must be at most 31622400"),
        ("run.seed=5000000000", r"run.seed: must be at most 4294967295"),
        ("model.layers=100000", r"model.layers: must be at most 1024"),
    ],
)
def test_numbers_that_nobody_means(file: Path, override: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        load_recipe(file, [override])
    assert len(str(caught.value)) < 300


def test_every_number_of_a_recipe_has_an_upper_bound() -> None:
    for name, section in Recipe.model_json_schema()["$defs"].items():
        for key, field in section["properties"].items():
            for kind in field.get("anyOf", [field]):
                is_number = kind.get("type") in ("integer", "number")
                assert not is_number or {"maximum", "exclusiveMaximum"} & kind.keys(), f"{name}.{key}"


def test_files_that_are_no_recipes(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none.toml: cannot be read: No such file"):
        load_recipe(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("[sft\nsteps = 3")
    with pytest.raises(UsageError, match=r"bad.toml: .*line 1"):
        load_recipe(tmp_path / "bad.toml")
    (tmp_path / "bytes.toml").write_bytes(b"run_dir = '\xff'")
    with pytest.raises(UsageError, match="UTF-8"):
        load_recipe(tmp_path / "bytes.toml")
    for text in ("[sft]\nsteps = " + "9" * 5000, "run_dir = " + "[" * 3000):
        (tmp_path / "odd.toml").write_text(text)
        with pytest.raises(UsageError, match=r"odd.toml: cannot be read as TOML"):
            load_recipe(tmp_path / "odd.toml")
    (tmp_path / "empty.toml").write_text("")
    with pytest.raises(UsageError, match=r"run_dir: is missing; give it in the recipe, or as --set run_dir=\.\.\.$"):
        load_recipe(tmp_path / "empty.toml")
