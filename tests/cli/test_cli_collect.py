"""`collect` with stand-ins for the evaluator and the proposer."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from cli_fakes import REFERENCE, FakeEvaluator, lines
from typer.testing import Result

import cuda_l1.evaluator
from cuda_l1.errors import TaskError
from cuda_l1.tasks.synth import SyntheticTask, synthetic_tasks
from cuda_l1.tasks.synth.folder import Entry, Settings, SynthFolder
from cuda_l1.types import Candidate, Evaluation, Origin, Record, Task

pytest.importorskip("pyarrow", reason="a data set is parquet")

Run = Callable[..., Result]


class Writer:
    """Proposes the texts of `texts` for every task."""

    name = "techniques"
    failures: Sequence[str] = ()
    texts: ClassVar[list[str]] = []

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def propose(self, task: Task, history: Sequence[Record], until: float) -> Candidate | None:
        at = self._next.setdefault(task.sha, 0)
        self._next[task.sha] += 1
        if at >= len(self.texts):
            return None
        origins = (Origin(proposer=self.name, techniques=(f"t{at}",)),)
        return Candidate(task_sha=task.sha, task_id=task.id, source=self.texts[at], origins=origins)


class CountingEvaluator(FakeEvaluator):
    calls: ClassVar[list[str]] = []
    dies_at: ClassVar[int] = 1000

    def evaluate(self, task: Task, candidate: Candidate, **given: Any) -> Evaluation:
        if "# bad task" in task.source:
            raise TaskError(f"{task.id}: Model.forward raised ValueError: no")
        if len(self.calls) == self.dies_at:
            raise KeyboardInterrupt
        self.calls.append(f"{task.name} {candidate.label}")
        return super().evaluate(task, candidate, **given)


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setattr(cuda_l1.evaluator, "Evaluator", CountingEvaluator)
    monkeypatch.setattr("cuda_l1.api.proposers.PROPOSERS", {"techniques": lambda *given: Writer()})
    CountingEvaluator.calls, CountingEvaluator.dies_at = [], 1000
    Writer.texts = [
        "class ModelNew: first = 1  # outcome CRASHED\n# outcome CRASHED\n",
        "class ModelNew: second = 1\n# speedup 0.5\n",
        "class ModelNew:\n    second = 1  # the same, commented otherwise\n# speedup 3.0\n",
        "class ModelNew: third = 1\n# suspect clock-mismatch\n",
        "class ModelNew: fourth = 1\n# speedup 2.0\n",
        "class ModelNew: fifth = 1\n",
    ]


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    folder = tmp_path / "tasks"
    folder.mkdir()
    for name, operator in (("one", "sigmoid"), ("two", "tanh")):
        (folder / f"{name}.py").write_text(REFERENCE.replace("torch.relu(x)", f"torch.{operator}(x) * x.abs()"))
    return folder


def audited(made: SyntheticTask) -> Entry:
    """The manifest's line of a task that is sound."""
    told = {name: getattr(made, name) for name in ("number", "split", "level", "graph", "stages")}
    return Entry(name=made.task.name, sha=made.task.sha, sound=True, **told)


def rows(folder: Path) -> list[dict[str, Any]]:
    from pyarrow import parquet

    return [row for file in sorted((folder / "data").glob("*.parquet")) for row in parquet.read_table(file).to_pylist()]


def test_the_first_right_variants_of_each_task_are_kept(run: Run, tasks: Path) -> None:
    done = run("collect", tasks, "--out", "set", "--json")
    assert done.exit_code == 0
    summary = lines(done)[-1]
    assert (summary["rows"], summary["tasks"]) == (4, 2)
    found = rows(Path("set"))
    assert [row["variant"].split(":")[1].split("=")[0].strip() for row in found] == ["second", "fourth"] * 2
    assert {row["by"] for row in found} == {"techniques"}
    assert {row["speedup_eager"] for row in found} == {0.5, 2.0}
    assert len(CountingEvaluator.calls) == 10
    card = Path("set/README.md").read_text()
    assert "path: data/" in card and "that of your own files" in card


def test_the_datasets_library_loads_what_was_collected(
    run: Run, tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets", reason="needs datasets; install it with: pip install 'cuda-l1[train]'")
    assert run("collect", tasks, "--out", "set").exit_code == 0
    loaded = datasets.load_dataset(str(tmp_path / "set"), cache_dir=str(tmp_path / "cache"))
    found = {row["candidate_id"]: row for row in rows(Path("set"))}
    assert {name: {row["split"] for row in split} for name, split in loaded.items()} == {
        split: {split} for split in {row["split"] for row in found.values()}
    }
    assert {row["candidate_id"]: row for split in loaded.values() for row in split} == found
    features = next(iter(loaded.values())).features
    assert features["level"].dtype == "int64" and features["overlaps"].dtype == "string"  # columns of nulls, too


def test_interrupted_it_goes_on_and_pays_nothing_twice(run: Run, tasks: Path) -> None:
    CountingEvaluator.dies_at = 7
    assert run("collect", tasks, "--out", "set").exit_code == 130
    CountingEvaluator.dies_at = 1000
    assert run("collect", tasks, "--out", "set").exit_code == 0
    assert len(CountingEvaluator.calls) == len(set(CountingEvaluator.calls)) == 10
    before = rows(Path("set"))
    Writer.texts = []  # what is done is not asked for again
    assert run("collect", tasks, "--out", "set").exit_code == 0
    assert len(CountingEvaluator.calls) == 10
    assert rows(Path("set")) == before


def test_attempts_and_keep_are_limits(run: Run, tasks: Path) -> None:
    assert run("collect", tasks, "--out", "set", "--attempts", 2, "--keep", 5).exit_code == 0
    assert len(CountingEvaluator.calls) == 4
    assert len(rows(Path("set"))) == 2


def test_nothing_right_is_exit_code_1(run: Run, tasks: Path) -> None:
    assert run("collect", tasks, "--out", "set", "--attempts", 1).exit_code == 1
    assert rows(Path("set")) == []


def test_a_bad_task_is_named_and_the_rest_goes_on(run: Run, tasks: Path) -> None:
    (tasks / "bad.py").write_text(REFERENCE.replace("relu", "exp") + "# bad task\n")
    done = run("collect", tasks, "--out", "set", "--json")
    assert lines(done)[-1]["skipped"] == 1
    assert "Model.forward raised ValueError" in Path("set/README.md").read_text()


def test_what_cannot_be_read_of_a_suite_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "release.jsonl").write_text(
        json.dumps({"level_id": 1, "task_id": 2, "ref_code": REFERENCE.replace("relu", "exp")}) + "\n{cut\n"
    )
    assert "line 2: not JSON" in run("collect", "release:release.jsonl", "--out", "set", "--allow-overlap").stderr


def test_a_computation_is_in_one_split_at_all_its_sizes(run: Run, tasks: Path) -> None:
    for number in range(12):
        text = REFERENCE.replace("torch.relu(x)", f"torch.sin(x).pow({number})")
        (tasks / f"small_{number}.py").write_text(text)
        (tasks / f"large_{number}.py").write_text(text.replace("randn(4, 4)", "randn(64, 32)"))
    assert run("collect", tasks, "--out", "set").exit_code == 0
    from pyarrow import parquet

    train, validation = (
        {row["graph_hash"] for row in parquet.read_table(f"set/data/{split}-00000-of-00001.parquet").to_pylist()}
        for split in ("train", "validation")
    )
    assert train and validation and not train & validation


def test_tasks_of_evaluation_suites_are_left_out_whatever_they_are_called(run: Run, tasks: Path) -> None:
    held_out = tasks.parent / "held_out"
    held_out.mkdir()
    renamed = (tasks / "one.py").read_text().replace("x", "value").replace("randn(4, 4)", "randn(128, 4)")
    (held_out / "other_name.py").write_text(renamed.replace("value.abs", "value.abs"))
    done = run("collect", tasks, "--out", "set", "--against", held_out)
    assert done.exit_code == 0
    assert {row["task_id"].partition("@")[0] for row in rows(Path("set"))} == {"file/two"}
    assert "file/other_name: the same graph" in Path("set/README.md").read_text()
    allowed = run("collect", tasks, "--out", "all", "--against", held_out, "--allow-overlap")
    assert allowed.exit_code == 0
    assert {row["overlaps"] for row in rows(Path("all"))} == {None, "file/other_name: the same graph"}


def test_the_built_in_suite_is_no_training_set(run: Run) -> None:
    done = run("collect", "diagonal_matmul", "--out", "set")
    assert done.exit_code == 2
    assert "--allow-overlap" in done.stderr
    assert CountingEvaluator.calls == []


def test_synthetic_tasks_that_are_held_out_stay_out(run: Run) -> None:
    Writer.texts = ["class ModelNew: first = 1\n"]
    assert run("collect", "synth:0:30", "--out", "set").exit_code == 0
    assert "is held out by the generator" in Path("set/README.md").read_text()
    names = [row["task_id"] for row in rows(Path("set"))]
    assert names and not any("held-out" in name for name in names)
    for row in rows(Path("set")):
        assert f"/{row['split']}/" in row["task_id"]


def test_a_folder_of_synthetic_tasks_is_collected_as_synth_names_it(run: Run) -> None:
    Writer.texts = ["class ModelNew: first = 1\n"]
    tasks = list(itertools.islice(synthetic_tasks(0), 30))
    store = SynthFolder(Path("made"), Settings(seed=0, device="cpu", device_memory_gib=None))
    for made in tasks:
        store.add(made, audited(made))
    for spec, out in (("synth:made", "by-name"), ("made", "by-folder")):
        assert run("collect", spec, "--out", out).exit_code == 0
    by_name, by_folder = rows(Path("by-name")), rows(Path("by-folder"))
    assert [(row["task_id"], row["split"]) for row in by_folder] == [(row["task_id"], row["split"]) for row in by_name]
    assert "is held out by the generator" in Path("by-folder/README.md").read_text()


@pytest.mark.parametrize("what", ["a file", "another folder"])
def test_nothing_of_yours_is_written_over(run: Run, tasks: Path, what: str) -> None:
    if what == "a file":
        Path("set").write_text("mine")
    else:
        Path("set").mkdir()
        Path("set/README.md").write_text("mine")
    done = run("collect", tasks, "--out", "set")
    assert done.exit_code == 2
    assert len(done.stderr.splitlines()) == 1
    assert CountingEvaluator.calls == []


def test_what_is_refused_leaves_nothing_behind(run: Run, tmp_path: Path) -> None:
    for words in (("nope/",), ("builtin",), ("linear_sum", "--proposer", "nobody")):
        assert run("collect", *words, "--out", "variants", "--device", "cpu").exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_without_pyarrow_the_install_line_is_printed_before_anything_is_paid(
    run: Run, tasks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    done = run("collect", tasks, "--out", "set")
    assert done.exit_code == 2
    assert "pip install pyarrow" in done.stderr
    assert CountingEvaluator.calls == []


def test_what_a_public_set_brought_along_is_judged_like_any_other(run: Run, tmp_path: Path) -> None:
    row = {
        "original_python_code": REFERENCE.replace("relu", "sinh"),
        "messages": [
            {"role": "user", "content": "faster"},
            {"role": "assistant", "content": "```python\nclass ModelNew:\n    brought = 1\n```"},
        ],
        "best_round": 1,
    }
    wrong = {**row, "best_round": 7, "original_python_code": REFERENCE.replace("relu", "cosh")}
    (tmp_path / "cold.jsonl").write_text(f"{json.dumps(row)}\n{json.dumps(wrong)}\n")
    (tmp_path / "README.md").write_text("---\nlicense: mit\n---\n")
    Writer.texts = []
    done = run("collect", f"drkernel:{tmp_path / 'cold.jsonl'}", "--out", "set")
    assert done.exit_code == 0
    assert "licence: mit" in done.stderr
    (found,) = rows(Path("set"))
    assert (found["by"], found["proposer"], found["licence"]) == ("drkernel", "import", "mit")
    assert found["provenance"] == "cold.jsonl, row 0"
    assert "brought = 1" in found["variant"]
