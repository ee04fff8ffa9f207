"""Verdicts without the texts that they are about."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest
from benchmark_fakes import GPU

import without_texts
from cuda_l1.archive import Archive
from cuda_l1.errors import UsageError
from cuda_l1.proposers.baselines import named
from cuda_l1.tasks import load_task, load_tasks
from cuda_l1.types import Candidate, Evaluation, Origin, Outcome, Record

TASK = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(4, 4)]
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "KernelBench" / "level1"
    folder.mkdir(parents=True)
    (folder / "1_ReLU.py").write_text(TASK)
    return tmp_path


def judged(candidate: Candidate, sequence: int) -> Record:
    evaluation = Evaluation(
        candidate_id=candidate.id, outcome=Outcome.CRASHED, detail="no", environment=GPU, protocol="screen"
    )
    return Record(run="run", sequence=sequence, candidate=candidate, evaluation=evaluation)


@pytest.fixture
def archive(tmp_path: Path, suite: Path) -> Path:
    """Two baselines, and a candidate that no suite knows."""
    (task,) = load_tasks(f"kernelbench:{suite}", device="cuda")
    foreign = Candidate(
        task_sha=task.sha, task_id=task.id, source="secret = 1\n", origins=(Origin(proposer="test", techniques=("x",)),)
    )
    with Archive.open(tmp_path / "archive.sqlite") as opened:
        for number, each in enumerate([*named(task, "cuda", ("eager", "compile")), foreign], 1):
            opened.append(judged(each, number), task)
    return tmp_path / "archive.sqlite"


def test_what_is_packed_has_no_text_and_comes_back_with_that_of_the_suite(tmp_path, suite, archive):
    packed, back = tmp_path / "records.jsonl.xz", tmp_path / "back.sqlite"
    assert without_texts.pack(str(archive), packed) == 3
    plain = lzma.decompress(packed.read_bytes()).decode()
    assert "import torch" not in plain and "secret" not in plain
    assert without_texts.unpack(packed, str(back), [f"kernelbench:{suite}"]) == (2, 1)
    with Archive.open(archive) as before, Archive.open(back) as after:
        assert list(after.records()) == list(before.records())[:2]
        assert list(after.tasks()) == list(before.tasks())


def test_what_is_built_in_is_packed_with_its_texts(tmp_path):
    task = load_task("diagonal_matmul", device="cpu")
    ours = Candidate(task_sha=task.sha, task_id=task.id, source="ours = 1\n", origins=(Origin(proposer="techniques"),))
    with Archive.open(tmp_path / "archive.sqlite") as opened:
        opened.append(judged(ours, 1), task)
    packed, back = tmp_path / "records.jsonl.xz", tmp_path / "back.sqlite"
    assert without_texts.pack(str(tmp_path / "archive.sqlite"), packed) == 1
    assert without_texts.unpack(packed, str(back), []) == (1, 0)
    with Archive.open(tmp_path / "archive.sqlite") as before, Archive.open(back) as after:
        assert list(after.records()) == list(before.records()) and list(after.tasks()) == [task]


def test_without_a_suite_stand_ins_carry_the_verdicts_and_are_taken_for_nothing_else(tmp_path, suite, archive):
    packed, back = tmp_path / "records.jsonl.xz", tmp_path / "back.sqlite"
    without_texts.pack(str(archive), packed)
    assert without_texts.unpack(packed, str(back), []) == (3, 0)
    with Archive.open(archive) as before, Archive.open(back) as after:
        (task,), (stand_in,) = before.tasks(), after.tasks()
        there, here = list(before.records()), list(after.records())
    assert (stand_in.suite, stand_in.name, stand_in.level) == ("kernelbench", "level1/1_ReLU", 1)
    assert stand_in.sha != task.sha and task.sha in stand_in.source
    told = {"candidate_id", "id"}
    assert [one.evaluation.model_dump(exclude=told) for one in here] == [
        one.evaluation.model_dump(exclude=told) for one in there
    ]
    assert not {one.candidate.id for one in here} & {one.candidate.id for one in there}
    assert [one.candidate.origins for one in here] == [one.candidate.origins for one in there]


def test_a_task_whose_text_differs_gets_no_verdict(tmp_path, suite, archive):
    packed = tmp_path / "records.jsonl.xz"
    without_texts.pack(str(archive), packed)
    (suite / "KernelBench" / "level1" / "1_ReLU.py").write_text(TASK.replace("(4, 4)", "(4, 5)"))
    assert without_texts.unpack(packed, str(tmp_path / "back.sqlite"), [f"kernelbench:{suite}"]) == (0, 3)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"no xz at all", "cannot be read as what `pack` writes"),
        (lzma.compress(b'{"run": "x"}\n'), "line 1: is no record"),
        (lzma.compress(b"[1]\n"), "line 1: is no record"),
        (lzma.compress(b"{}\n")[:-9], "cannot be read as what `pack` writes"),
    ],
)
def test_a_file_of_another_kind_is_one_clear_line(tmp_path, suite, content, told):
    packed = tmp_path / "records.jsonl.xz"
    packed.write_bytes(content)
    with pytest.raises(UsageError, match=told):
        without_texts.unpack(packed, str(tmp_path / "back.sqlite"), [f"kernelbench:{suite}"])
