"""`train`: what a person can get wrong answers in one line, and nothing is begun by then."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from cli_fakes import lines
from typer.testing import Result

from cuda_l1.api.training import _start, _told
from cuda_l1.tasks import load_task
from cuda_l1.training.recipe import Recipe
from cuda_l1.training.run_directory import RunDirectory
from cuda_l1.types import Candidate, Origin, Record, Task

pytest.importorskip("trl", reason="needs transformers and TRL")
Run = Callable[..., Result]

MODEL = """
[model]
vocabulary = 320
hidden = 16
intermediate = 32
layers = 1
heads = 2
key_value_heads = 1
"""
REST = """
[prompt]
kind = "compact"

[sft]
steps = 2
batch = 2
packing = false
max_length = 4000

[run]
device = "cpu"
samples = 0

[evaluation]
device = "cpu"
"""


class Writer:
    """Proposes two texts for every task."""

    name = "techniques"
    failures: Sequence[str] = ()

    def propose(self, task: Task, history: Sequence[Record], until: float) -> Candidate | None:
        if len(history) == 2:
            return None
        source = f"{task.source}\n\nclass ModelNew(Model):\n    number = {len(history)}\n"
        return Candidate(task_sha=task.sha, task_id=task.id, source=source, origins=(Origin(proposer=self.name),))


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("cuda_l1.api.collecting_writers.make_proposers", lambda settings, sources: [Writer()])
    path = tmp_path / "recipe.toml"
    path.write_text(f'run_dir = "out"\n{MODEL}\n[data]\ntasks = ["synth:0:3"]\n{REST}')
    return path


def test_from_nothing_to_a_checkpoint_and_not_twice(run: Run, recipe: Path, tmp_path: Path) -> None:
    done = run("train", "sft", recipe, "--json")
    assert done.exit_code == 0, done.output
    assert "sft: begins from start\n" in done.stderr
    summary = lines(done)[-1]
    assert (summary["checkpoint"], summary["stages"]) == ("out/sft/final", ["sft"])
    assert (tmp_path / "out" / "archive.sqlite").exists()
    facts = json.loads((tmp_path / "out" / "data.json").read_text())
    assert facts["compared"] == ["builtin", "kernelbench"] and facts["sources"] == ["synth:0:3"]
    again = run("train", "sft", recipe)
    assert (again.exit_code, "sft was begun there; give --resume" in again.stderr) == (2, True)
    resumed = run("train", "all", recipe, "--resume", "--set", "sft.steps=3")
    assert (resumed.exit_code, "begun with other values (sft.steps " in resumed.stderr) == (2, True)
    assert "sft: is done" in run("train", "sft", recipe, "--resume").stderr


def test_a_stage_that_does_not_follow_the_one_before_it_says_so(tmp_path: Path) -> None:
    run = RunDirectory.create(Recipe(run_dir=str(tmp_path / "run")), resume=False)
    run.stage("sft").final.mkdir(parents=True)
    (run.stage("sft").final / "config.json").write_text("{}")
    assert _told("contrastive", _start("contrastive", run), run) == "begins from sft/final"
    run.stage("self").path.mkdir()
    said = _told("contrastive", _start("contrastive", run), run)
    assert said == "begins from sft/final, and not from self, begun there and not finished"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--set", "sft.stepz=3"], 2, "[sft] has no key `stepz`; did you mean `steps`?"),
        (["--set", "data.tasks=[]"], 2, "the recipe names no data"),
        (
            ["--set", "data.tasks=['builtin']"],
            2,
            "no task of builtin is left: 40 belong to evaluation suites, 0 are held",
        ),
        (["--set", "data.tasks=['synth:0:30#held-out/*']"], 2, "suites, 3 are held out; name other tasks"),
        (["--set", "data.tasks=['nothing.py']"], 2, "nothing.py"),
        (["--set", "evaluation.held_out_suites=['nothing.py']"], 2, "nothing.py"),
        (
            ["--set", "evaluation.held_out_suites=['builtin']", "--set", "data.allow_overlap=true"],
            2,
            "leave one of them",
        ),
        (["--set", "data.techniques=['fuson']"], 2, "fuson"),
        (["--set", "run.device=cuda"], 3, "run.device cuda: this machine shows no NVIDIA GPU"),
        (["--set", "evaluation.device=cuda:6,cuda:7"], 3, "evaluation.device cuda:6: this machine shows no NVIDIA GPU"),
        (["--set", "evaluation.device=cpu,cpu"], 2, "evaluation.device cpu,cpu: several are named as cuda:6,cuda:7"),
        (["--set", "evaluation.clock=device"], 2, "evaluation.clock device: a CPU has no device clock"),
        (["--set", "evaluation.cores=100000"], 2, "evaluation.cores 100000: this process may use"),
        (["--set", "evaluation.cores=0"], 2, "evaluation.cores: must be at least 1"),
        (["--set", "evaluation.reviewer=wise"], 2, "evaluation.reviewer wise: is not the address of an endpoint"),
        (["--set", "evaluation.reviewer_model=m"], 2, "evaluation.reviewer_model m: say where it is served"),
        (["--set", "model.path=nowhere"], 2, "checkpoint nowhere: no such folder"),
        (["--resume"], 2, "out: no run there to resume"),
    ],
)
def test_a_mistake_is_one_line(run: Run, recipe: Path, words: list[str], code: int, said: str) -> None:
    done = run("train", "sft", recipe, *words)
    assert (done.exit_code, said in done.stderr) == (code, True), done.stderr
    assert done.stderr.strip().count("\n") == 0 and not Path("out").exists()


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("contrastive.batch=5", "= 32 replies do not divide into 1 processes x contrastive.batch = 5"),
        ("contrastive.lag=1", "contrastive.lag = 1 would train on cpu while rewards are measured there"),
        ("generation.engine=vllm-server", "engine = vllm-server: vLLM is not installed; run: pip install 'trl[vllm]'"),
        ("generation.max_new_tokens=4090", "generation.max_new_tokens = 4090 leaves no room for a question"),
        ("sft.max_length=5000", "sft.max_length = 5000 is longer than the policy's context of 4096 tokens"),
        ("run.tracking=wandb", "run.tracking = wandb: not installed"),
        ("model.heads=3", "[model] hidden = 16 must be a multiple of heads = 3"),
        ("data.tasks=['synth:0:6#held-out/*']", "[data] leaves no task to train on"),
    ],
)
def test_what_a_later_stage_cannot_do_is_said_before_anything_is_paid_for(
    run: Run, recipe: Path, tmp_path: Path, setting: str, said: str
) -> None:
    done = run("train", "all", recipe, "--set", setting)
    assert (done.exit_code, said in done.stderr) == (2, True), done.stderr
    assert done.stderr.strip().count("\n") == 0 and not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["one-gpu", "lora-7b", "node8-7b", "paper-overlap"])
def test_a_recipe_for_a_gpu_ends_at_once_where_there_is_none(run: Run, name: str, tmp_path: Path) -> None:
    done = run("train", "all", Path(__file__).parents[2] / "recipes" / f"{name}.toml")
    assert done.exit_code == 3 and "this machine shows no NVIDIA GPU; `cuda-l1 doctor`" in done.stderr, done.stderr
    assert done.stderr.strip().count("\n") == 0 and not (tmp_path / "runs").exists()


def test_a_mistake_stands_in_nobodys_way(run: Run, recipe: Path) -> None:
    assert run("train", "sft", recipe, "--set", "data.tasks=[]").exit_code == 2
    assert run("train", "sft", recipe, "--set", "sft.steps=1").exit_code == 0


def test_rows_that_others_evaluate_on_are_refused_unless_told(run: Run, recipe: Path, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="a data set is parquet")
    from pyarrow import parquet

    task = load_task("diagonal_matmul", device="cpu")
    row = dict.fromkeys(("by", "licence", "device_name", "rationale", "overlaps"), "x")
    row |= {"split": "train", "task_id": task.id, "task_sha": task.sha, "suite": "file", "reference": task.source}
    row |= {"variant": f"{task.source}\n\nclass ModelNew(Model): ...\n", "candidate_id": "c", "techniques": ["t"]}
    (tmp_path / "rows" / "data").mkdir(parents=True)
    table = pyarrow.Table.from_pylist([{**row, "speedup_eager": 1.0}])
    parquet.write_table(table, tmp_path / "rows" / "data" / "train.parquet")
    told = ["train", "sft", recipe, "--set", "data.tasks=[]", "--set", "data.examples=['rows']"]
    refused = run(*told)
    assert refused.exit_code == 2
    assert "the data holds 1 task that others evaluate on (builtin/diagonal_matmul" in refused.stderr
    allowed = run(*told, "--set", "data.allow_overlap=true")
    assert allowed.exit_code == 0, allowed.stderr
    assert "**It was trained on tasks that others evaluate on" in (tmp_path / "out/sft/final/README.md").read_text()


def test_a_missing_package_names_the_line_that_installs_it(
    run: Run, recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> Any:
        raise ImportError("No module named 'trl'")

    monkeypatch.setattr("cuda_l1.training.stages.import_module", missing)
    done = run("train", "sft", recipe)
    assert (done.exit_code, "pip install 'cuda-l1[train]'" in done.stderr) == (2, True)
