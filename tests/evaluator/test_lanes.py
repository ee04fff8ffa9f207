"""Evaluators on lanes of one core each: at the same time, and in one place."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from evaluator_support import QUICK, candidate_of, task_of

from cuda_l1.archive import Archive
from cuda_l1.config import EvaluatorSettings
from cuda_l1.errors import UsageError
from cuda_l1.evaluator import Evaluator, eager_candidate
from cuda_l1.evaluator.guest import group
from cuda_l1.evaluator.lease import DeviceLease
from cuda_l1.search.verdicts import known, verdict
from cuda_l1.types import Candidate, Record

pytestmark = pytest.mark.e2e

TASK = task_of(
    """
    class Model(nn.Module):
        def forward(self, x):
            return torch.relu(x) * 2

    def get_inputs():
        return [torch.randn(64, 64)]
    """
)
CPP = """
    import ctypes, os, subprocess

    assert os.environ["OMP_NUM_THREADS"] == "1" and len(os.sched_getaffinity(0)) == 1
    loop = "for (long i = 0; i < n; ++i) y[i] = x[i] > 0 ? 2 * x[i] : 0;"
    source = 'extern "C" void f(const float* x, float* y, long n) {' + loop + "}"
    built = os.path.join(os.environ["TORCH_EXTENSIONS_DIR"], "f.so")
    if not os.path.exists(built):
        os.makedirs(os.path.dirname(built), exist_ok=True)
        command = ["g++", "-x", "c++", "-", "-O2", "-shared", "-fPIC", "-o", built]
        subprocess.run(command, input=source, text=True, check=True)
    call = ctypes.CDLL(built).f

    class ModelNew(nn.Module):
        def forward(self, x):
            assert torch.get_num_threads() == 1
            x = x.contiguous()
            y = torch.empty_like(x)
            call(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), ctypes.c_long(x.numel()))
            return y
"""
PYTORCH = """
    class ModelNew(nn.Module):
        def forward(self, x):
            assert torch.get_num_threads() == 1
            return 2 * x.clamp(min=0)
"""


@pytest.mark.alone(cores=2)
@pytest.mark.timeout(120)
def test_two_lanes_judge_at_the_same_time_and_know_each_others_verdicts(cache_dir: str, tmp_path: Path) -> None:
    cores = sorted(os.sched_getaffinity(0))[:2]
    one, other = (
        EvaluatorSettings(device="cpu", lane=(core,), interchangeable=True, cache_dir=cache_dir) for core in cores
    )
    records: dict[str, Record] = {}

    def judge(evaluator: Evaluator, candidate: Candidate) -> None:
        made = verdict(TASK, candidate, protocol=QUICK, archive=archive, evaluator=evaluator, run="run")
        records[candidate.id] = made

    built, plain = candidate_of(TASK, CPP), candidate_of(TASK, PYTORCH)
    with Archive.open(tmp_path / "archive.sqlite") as archive, Evaluator(one) as first, Evaluator(other) as second:
        assert first.environment == second.environment and first.environment.lane == "1-core"
        with DeviceLease("cpu", Path(cache_dir), cores=cores[:1]):
            waiting = threading.Thread(target=judge, args=(first, built))
            waiting.start()
            judge(second, plain)
            assert list(records) == [plain.id], "the first lane is busy, and the second one's concern is its own"
        judge(second, eager_candidate(TASK))
        waiting.join(60.0)
        for evaluator, core in ((first, cores[0]), (second, cores[1])):
            for pid in (evaluator.pid, *group.descendants(evaluator.pid)):
                assert os.sched_getaffinity(pid) == {core}
        assert [records[each.id].evaluation.detail for each in (built, plain)] == ["", ""]
        assert known(built, QUICK, archive, second) == records[built.id]
        assert known(plain, QUICK, archive, first) == records[plain.id]


def test_a_core_that_is_not_there_is_said(cache_dir: str) -> None:
    with pytest.raises(UsageError, match="lane 100000: some of these cores are not there"):
        Evaluator(EvaluatorSettings(device="cpu", lane=(100000,), cache_dir=cache_dir))
