"""Candidates that hurt a GPU: the right outcome in time, the device asked again, the next verdict correct."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from faults_support import GRACE_S, QUICK, SHORT, TASK, candidate

from cuda_l1.config import EvaluatorSettings
from cuda_l1.evaluator import Evaluator, eager_candidate
from cuda_l1.evaluator.guest import group
from cuda_l1.types import Outcome

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def gpu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    cache = str(tmp_path_factory.mktemp("cache"))
    with Evaluator(EvaluatorSettings(device="cuda", cache_dir=cache, limits=SHORT)) as opened:
        assert opened.evaluate(TASK, eager_candidate(TASK), protocol=QUICK).accepted
        yield opened


HURTS = {
    "hangs": ("torch.cuda._sleep(1 << 60)", {Outcome.TIMED_OUT}),
    "hangs-late": (
        "self.n = getattr(self, 'n', 0) + 1\nif self.n > 12:\n    torch.cuda._sleep(1 << 60)",
        {Outcome.TIMED_OUT},
    ),
    "illegal-address": ("torch.as_strided(x, (1 << 28,), (1 << 12,)).sum().item()", {Outcome.CRASHED}),
    "assert": ("torch.zeros(4, device='cuda')[torch.tensor([9], device='cuda')].sum().item()", {Outcome.CRASHED}),
    "memory": ("torch.empty(1 << 45, device='cuda')", {Outcome.OUT_OF_MEMORY}),
    "memory-kept": (
        "if not hasattr(self, 'kept'):\n    self.kept = []\n"
        "    try:\n        while True: self.kept.append(torch.empty(1 << 28, device='cuda'))\n"
        "    except torch.OutOfMemoryError: pass",
        {Outcome.OUT_OF_MEMORY, Outcome.ACCEPTED},
    ),
}


@pytest.mark.parametrize("kind", HURTS)
def test_a_candidate_that_hurts_the_gpu(gpu, kind):
    before, outcomes = HURTS[kind]
    begin = time.monotonic()
    result = gpu.evaluate(TASK, candidate(before), protocol=QUICK)
    took = time.monotonic() - begin
    assert result.outcome in outcomes, result.detail
    assert took < SHORT.first_call_s + GRACE_S or kind == "memory-kept", "two attempts and a known-good candidate"
    used = len(group.descendants(gpu.pid))
    assert gpu.evaluate(TASK, eager_candidate(TASK), protocol=QUICK).accepted
    assert used < 20
