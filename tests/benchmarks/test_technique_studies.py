"""The studies' texts compute what their task does, a run pays once, and a constant task has times but no speed-up."""

from __future__ import annotations

import itertools
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch
from benchmark_fakes import EAGER, GPU, record, timing

import technique_studies
from csv_table import Row, Table
from cuda_l1.archive import Archive
from cuda_l1.proposers.techniques import compose
from cuda_l1.types import Candidate, Evaluation, Task
from provenance import Deadline
from technique_studies import COLUMNS, CONTIGUITY, CUDA_GRAPH, STATIC_BUFFERS, STUDIES, recurrent_cell

CELL, CONSTANT = "recurrent cell over time", "provably constant pipeline"
ON_CPU = [subset for size in range(3) for subset in itertools.combinations((CONTIGUITY, STATIC_BUFFERS), size)]


@pytest.mark.parametrize("techniques", ON_CPU, ids="+".join)
def test_the_cell_is_the_same_with_each_technique(techniques: tuple[str, ...]) -> None:
    task = STUDIES[CELL].load("cpu")
    reference: dict[str, Any] = {}
    other: dict[str, Any] = {}
    exec(task.source, reference)
    exec(recurrent_cell(task, techniques, "cpu").source, other)
    model, again = reference["Model"](5), other["ModelNew"](5)
    again.load_state_dict(model.state_dict())
    first, second = ([torch.randn(2, 3, 5), torch.randn(2, 5), torch.randn(2, 5)] for _ in range(2))
    with torch.no_grad():
        made = again(*first)
        torch.testing.assert_close(again(*second), model(*second))
        torch.testing.assert_close(made, model(*first))  # the second call has not written over it
    assert made.is_contiguous()


def test_what_needs_a_gpu_is_left_out_on_a_cpu() -> None:
    for study in STUDIES.values():
        assert CUDA_GRAPH in study.usable("cuda") and CUDA_GRAPH not in study.usable("cpu")
        assert len(study.usable("cpu")) == 2
    task = STUDIES[CELL].load("cuda")
    text = recurrent_cell(task, [STATIC_BUFFERS, CUDA_GRAPH], "cuda").source
    compile(text, "candidate", "exec")
    assert "class CapturedForward" in text and "TIME = 48" in task.source


@pytest.mark.parametrize("name", ["diagonal matmul", CONSTANT])
def test_each_technique_of_the_package_finds_work_in_its_task(name: str) -> None:
    study = STUDIES[name]
    task = study.load("cpu")
    for technique in study.usable("cpu"):
        made = compose(task, [technique], "cpu")
        assert made is not None and made.origins[0].techniques == (technique,)


class FakeEvaluator:
    """Static buffers make everything twice as fast."""

    environment = GPU

    def __init__(self) -> None:
        self.judged: list[tuple[str, ...]] = []

    def evaluate(self, task: Task, candidate: Candidate, **_: object) -> Evaluation:
        techniques = candidate.origins[0].techniques
        self.judged.append(techniques)
        figure = timing("device", EAGER, 2.0 if STATIC_BUFFERS in techniques else 1.0, 0.01)
        return record(candidate, [figure], protocol="final").evaluation


def test_a_second_run_goes_on_from_what_is_there(tmp_path: Path) -> None:
    options = Namespace(protocol="final", final_budget=1.0)
    table = Table(tmp_path / "t.csv", COLUMNS, keys=2)
    evaluator: Any = FakeEvaluator()
    with Archive.open(tmp_path / "a.sqlite") as archive:
        with pytest.raises(technique_studies.NoTimeLeft):
            technique_studies.measure(CELL, table, archive, evaluator, options, Deadline("1s"))
        assert not evaluator.judged
        for _ in range(2):
            technique_studies.measure(CELL, table, archive, evaluator, options, Deadline(None))
    assert len(evaluator.judged) == len(set(evaluator.judged)) == len(table.rows()) == 7
    text = technique_studies.report(table.rows())
    assert "| static_buffers | 2.00x | 2.00x | 2.00x |" in text and "adds |" in text
    assert "Left out" not in text and "multiply" in text


def row(study: str, techniques: str, speedup: float, flags: str = "") -> Row:
    figures = {"outcome": "ACCEPTED", "counts": "yes", "speedup": f"{speedup}", "half": "0.01", "pairs": "5",
               "is_interval": "yes", "candidate_us": "10", "eager_us": "80", "task_flags": flags}  # fmt: skip
    return dict.fromkeys(COLUMNS, "") | {"study": study, "techniques": techniques, "task": "file/x"} | figures


def test_a_constant_task_has_times_and_no_speed_up() -> None:
    rows = [row(CONSTANT, "constant_output", 8.0, "degenerate insensitive-inputs"), row(CONSTANT, "fusion", 1.5)]
    text = technique_studies.report(rows)
    assert "**The task is degenerate, insensitive-inputs**" in text and "| 10.0 us | 80.0 us | - |" in text
    assert "8.00x" not in text and "mean of adding it" not in text
    assert "needs a GPU: cuda_graph" in text


def test_a_gatekeeper_is_told() -> None:
    subsets = {"diagonal_matmul": 4.0, "inductor": 1.0, "diagonal_matmul+inductor": 8.0}
    text = technique_studies.report([row("diagonal matmul", name, speedup) for name, speedup in subsets.items()])
    assert "gatekeeper |" in text and "help each other |" in text and "4.00x (3.96 to 4.04)" in text
