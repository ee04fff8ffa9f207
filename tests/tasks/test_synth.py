"""The generator of training tasks: the same under a seed, never an evaluation task, split by graph."""

from __future__ import annotations

import ast
import itertools
import json
import os
from pathlib import Path

import pytest

from cuda_l1.errors import TaskError
from cuda_l1.tasks import load_tasks
from cuda_l1.tasks.dataflow import read_graph
from cuda_l1.tasks.graph_hash import graph_hash
from cuda_l1.tasks.synth import SMALL, SyntheticTask, for_memory, known_graphs, synthetic_tasks
from cuda_l1.tasks.synth import generate as generating
from cuda_l1.tasks.synth.compose import compose
from cuda_l1.tasks.synth.draw import Draw
from cuda_l1.tasks.synth.folder import MANIFEST, Entry, Settings, SynthFolder, read_folder
from cuda_l1.tasks.synth.sizes import Scale
from cuda_l1.tasks.synth.splits import is_held_out, operator_pairs, split_of
from cuda_l1.tasks.synth.stages import STAGES

COUNT = 400


@pytest.fixture(scope="module")
def tasks() -> list[SyntheticTask]:
    return list(itertools.islice(synthetic_tasks(0), COUNT))


def test_choices_do_not_depend_on_pythons_version() -> None:
    draw = Draw("test", 1)
    assert [draw.below(1000) for _ in range(4)] == [325, 748, 235, 48]
    assert Draw("test", 1).fork("a").below(10**6) != Draw("test", 1).fork("b").below(10**6)


def test_choices_are_spread_evenly() -> None:
    draw = Draw("spread")
    counts = [0] * 8
    for _ in range(8000):
        counts[draw.below(8)] += 1
    assert sum((count - 1000) ** 2 / 1000 for count in counts) < 24.3  # chi-square, 7 degrees of freedom, p = 0.001


def test_a_seed_gives_its_tasks_again_and_another_seed_others(tasks: list[SyntheticTask]) -> None:
    assert list(itertools.islice(synthetic_tasks(0), 50)) == tasks[:50]
    others = {made.graph for made in itertools.islice(synthetic_tasks(1), 50)}
    assert len(others & {made.graph for made in tasks[:50]}) < 10


def test_no_graph_occurs_twice_or_is_for_evaluation(tasks: list[SyntheticTask]) -> None:
    graphs = {made.graph for made in tasks}
    assert len(graphs) == COUNT
    assert not graphs & known_graphs()
    assert {graph_hash(task) for task in load_tasks("builtin")} < known_graphs()


@pytest.mark.skipif(not os.environ.get("CUDA_L1_KERNELBENCH"), reason="CUDA_L1_KERNELBENCH names no checkout")
def test_every_graph_of_kernelbench_is_known() -> None:
    assert {
        graph_hash(task) for task in load_tasks(f"kernelbench:{os.environ['CUDA_L1_KERNELBENCH']}")
    } <= known_graphs()


def test_a_graph_that_is_known_is_passed_over(monkeypatch: pytest.MonkeyPatch, tasks: list[SyntheticTask]) -> None:
    known = known_graphs() | {tasks[2].graph}
    monkeypatch.setattr(generating, "known_graphs", lambda: known)
    found = [made.graph for made in itertools.islice(synthetic_tasks(0), 10)]
    assert found == [made.graph for made in tasks[:11] if made.graph != tasks[2].graph]


def test_every_task_is_followed_and_has_its_names(tasks: list[SyntheticTask]) -> None:
    for made in tasks:
        assert graph_hash(made.task) == made.graph
        assert not made.graph.startswith("syntax-")
        assert made.task.name.startswith(f"{made.split}/{made.number:04d}_")
        body = ast.parse(made.task.source).body
        defined = {node.name for node in body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        assert defined == {"Model", "get_inputs", "get_init_inputs"}


def test_every_stage_and_level_occurs(tasks: list[SyntheticTask]) -> None:
    more = itertools.chain(tasks, itertools.islice(synthetic_tasks(2), 2 * COUNT))
    seen = {stage for made in more for stage in made.stages}
    assert not {stage.name for stage in STAGES} - seen
    assert {made.level for made in tasks} == {1, 2, 3}
    assert all(len(made.stages) >= 2 for made in tasks)


def test_held_out_pairs_are_never_seen_in_training(tasks: list[SyntheticTask]) -> None:
    pairs: dict[str, set[tuple[str, str]]] = {"train": set(), "validation": set(), "held-out": set()}
    for made in tasks:
        pairs[made.split] |= operator_pairs(read_graph(made.task.source))
    trained = pairs["train"] | pairs["validation"]
    assert not any(is_held_out(pair) for pair in trained)
    operators = {operator for pair in pairs["train"] for operator in pair}
    unseen = {pair for pair in pairs["held-out"] if is_held_out(pair)}
    assert len([pair for pair in unseen if set(pair) <= operators]) >= 10  # of operators that training knows


def test_splits_have_their_shares(tasks: list[SyntheticTask]) -> None:
    shares = {name: sum(made.split == name for made in tasks) / COUNT for name in ("train", "validation", "held-out")}
    assert shares["train"] > 0.6
    assert 0.03 < shares["validation"] < 0.15
    assert 0.1 < shares["held-out"] < 0.3


def test_a_constant_or_a_size_does_not_change_the_split() -> None:
    def source(number: str, width: int) -> str:
        return (
            "import torch\nimport torch.nn as nn\n\nclass Model(nn.Module):\n"
            "    def __init__(self, dim):\n        super().__init__()\n        self.linear = nn.Linear(dim, dim)\n\n"
            f"    def forward(self, x):\n        return torch.tanh(self.linear(x) * {number}).sum(dim=-1)\n\n"
            f"def get_inputs():\n    return [torch.randn(4, {width})]\n\n"
            f"def get_init_inputs():\n    return [{width}]\n"
        )

    texts = [source(number, width) for number in ("0.5", "2", "1e-3", "-7.25") for width in (8, 64)]
    assert len({split_of(read_graph(text)) for text in texts}) == 1
    assert len({graph_hash(text) for text in texts}) == 4


def test_a_larger_scale_has_the_same_graphs(tasks: list[SyntheticTask]) -> None:
    large = list(itertools.islice(synthetic_tasks(0, for_memory(80)), 100))
    assert [made.task.name for made in large] == [made.task.name for made in tasks[:100]]
    for small, big in zip(tasks, large, strict=False):
        assert graph_hash(big.task) == small.graph
    assert sum(big.task.sha != small.task.sha for small, big in zip(tasks, large, strict=False)) > 95


@pytest.mark.parametrize("gib", [8, 80])
def test_sizes_fit_the_device(gib: int) -> None:
    scale = for_memory(gib)
    for number in range(150):
        sketch, _ = compose(Draw("fits", number), scale)
        assert sketch.bytes <= scale.most_bytes
        assert sketch.flops <= scale.most_flops


def test_a_scale_that_nothing_fits_still_gives_a_task() -> None:
    sketch, _ = compose(Draw("tight"), Scale(SMALL.choices, most_bytes=1, most_flops=1))
    assert sketch.forward


# ── suites and folders ────────────────────────────────────────────────────────────────────────────


def test_a_seed_is_a_suite(tasks: list[SyntheticTask]) -> None:
    assert load_tasks("synth:0:50") == [made.task for made in tasks[:50]]
    assert [task.name for task in load_tasks("synth:0:50#3-5,9")] == [tasks[i].task.name for i in (2, 3, 4, 8)]
    assert {task.level for task in load_tasks("synth:0:50#level2")} == {2}
    assert all(task.name.startswith("held-out/") for task in load_tasks("synth:0:50#held-out/*"))
    assert load_tasks("synth:0:3", device="cuda")[0].name == tasks[0].task.name
    assert "bfloat16" in load_tasks("synth:0:3", dtype="bf16")[0].source


@pytest.mark.parametrize("spec", ["synth:x", "synth:-1", "synth:0:0", "synth:0:1000000", "synth:/nowhere", "synth:"])
def test_what_names_no_suite_is_one_line(spec: str) -> None:
    with pytest.raises(TaskError) as caught:
        load_tasks(spec)
    assert "\n" not in str(caught.value)


SETTINGS = Settings(seed=0, device="cpu", device_memory_gib=None)


def entry(made: SyntheticTask, *, sound: bool = True) -> Entry:
    return Entry(
        number=made.number,
        name=made.task.name,
        split=made.split,
        level=made.level,
        sha=made.task.sha,
        graph=made.graph,
        stages=made.stages,
        sound=sound,
    )


def test_a_folder_is_a_suite_and_goes_on(tmp_path: Path, tasks: list[SyntheticTask]) -> None:
    folder = tmp_path / "made"
    store = SynthFolder(folder, SETTINGS)
    for made in tasks[:4]:
        store.add(made, entry(made, sound=made.number != 2))
    expected = [tasks[i].task for i in (0, 2, 3)]
    assert load_tasks(f"synth:{folder}") == read_folder(folder) == load_tasks(str(folder)) == expected
    split = folder / expected[0].name.partition("/")[0]
    assert load_tasks(str(split)) == [task for task in expected if task.name.startswith(f"{split.name}/")]
    again = SynthFolder(folder, SETTINGS)
    assert sorted(again.entries) == [1, 2, 3, 4]
    assert [line.number for line in again.sound] == [1, 3, 4]


@pytest.mark.parametrize("text", ['{"id": 3}\n', "no json\n", ""])
def test_a_manifest_of_somebody_else_makes_no_synthetic_folder(
    tmp_path: Path, tasks: list[SyntheticTask], text: str
) -> None:
    (tmp_path / MANIFEST).write_text(text)
    (tmp_path / "mine.py").write_text(tasks[0].task.source)
    (found,) = load_tasks(str(tmp_path))
    assert (found.suite, found.name) == ("file", "mine")


def test_a_line_that_was_cut_off_is_forgotten(tmp_path: Path, tasks: list[SyntheticTask]) -> None:
    store = SynthFolder(tmp_path / "made", SETTINGS)
    for made in tasks[:2]:
        store.add(made, entry(made))
    manifest = tmp_path / "made" / MANIFEST
    manifest.write_bytes(manifest.read_bytes()[:-20])
    again = SynthFolder(tmp_path / "made", SETTINGS)
    assert sorted(again.entries) == [1]
    again.add(tasks[1], entry(tasks[1]))
    assert [json.loads(line).get("number") for line in manifest.read_text().splitlines()] == [None, 1, 2]


def test_a_folder_of_something_else_is_refused(tmp_path: Path, tasks: list[SyntheticTask]) -> None:
    SynthFolder(tmp_path / "made", SETTINGS)
    with pytest.raises(TaskError, match="was written with seed 0, not 7"):
        SynthFolder(tmp_path / "made", SETTINGS.model_copy(update={"seed": 7}))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep me")
    with pytest.raises(TaskError, match="holds no manifest"):
        SynthFolder(tmp_path / "mine", SETTINGS)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / MANIFEST).write_text("{]\n")
    with pytest.raises(TaskError, match="cannot be read"):
        SynthFolder(tmp_path / "broken", SETTINGS)
    with pytest.raises(TaskError, match="no audited task"):
        load_tasks(f"synth:{tmp_path / 'made'}")


def test_a_folder_of_another_version_is_refused_since_its_splits_are_others(
    tmp_path: Path, tasks: list[SyntheticTask]
) -> None:
    store = SynthFolder(tmp_path / "made", SETTINGS.model_copy(update={"version": 1}))
    store.add(tasks[0], entry(tasks[0]))
    with pytest.raises(TaskError, match="was written with version 1, not 2, whose splits are others; write it anew"):
        load_tasks(f"synth:{tmp_path / 'made'}")


def test_a_file_that_was_changed_is_refused(tmp_path: Path, tasks: list[SyntheticTask]) -> None:
    store = SynthFolder(tmp_path / "made", SETTINGS)
    store.add(tasks[0], entry(tasks[0]))
    path = tmp_path / "made" / f"{tasks[0].task.name}.py"
    for damaged in (path.read_bytes() + b"\n", b"\xff\xfe no text"):
        path.write_bytes(damaged)
        with pytest.raises(TaskError, match="is not what was audited"):
            read_folder(tmp_path / "made")
    path.unlink()
    with pytest.raises(TaskError, match="the manifest names it"):
        read_folder(tmp_path / "made")
