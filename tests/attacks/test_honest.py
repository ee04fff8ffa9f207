"""Honest kernels that look like attacks are accepted, and nothing is suspected of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from corpus import FAMILIES, QUICK, gets_full_credit, judge, told
from honest_kernels import ALL, BOTH, LIMITS, Generated, Written

from cuda_l1.config import EvaluatorSettings
from cuda_l1.evaluator import Evaluator
from cuda_l1.evaluator.gpus import visible_gpus
from shares import in_turn

DEVICE = "cuda" if visible_gpus() else "cpu"
SHARES = 6
"""Where slow tests are left out two parts of these kernels are due, others at each commit. On one core a kernel has one
thread, and what several do to it would not be seen: one of the two has all cores to itself; on a GPU each."""
SHARE = in_turn(SHARES)


def marks(number: int, kernel: Written | Generated) -> list[pytest.MarkDecorator]:
    part = (number - SHARE) % SHARES
    alone = DEVICE != "cpu" or part == 0
    return [pytest.mark.slow] * (kernel.slow or part > 1) + [pytest.mark.alone] * alone


HERE = [pytest.param(k, id=k.id, marks=marks(n, k)) for n, k in enumerate(ALL) if DEVICE in k.devices]


@pytest.fixture(scope="module")
def evaluator(cache_dir: str) -> Iterator[Evaluator]:
    with Evaluator(EvaluatorSettings(device=DEVICE, cache_dir=cache_dir, limits=LIMITS)) as opened:
        yield opened


@pytest.mark.e2e(always=True)  # of which a part is due
@pytest.mark.parametrize("kernel", HERE)
def test_an_honest_kernel_is_accepted(evaluator: Evaluator, kernel: Written | Generated) -> None:
    task, candidate = kernel.material(evaluator.environment)
    result = judge(evaluator, task, candidate, QUICK)
    assert gets_full_credit(result, static=True), (told(result), result.log[-800:])


def test_there_are_enough_of_every_kind() -> None:
    assert len({kernel.id for kernel in ALL}) == len(ALL) >= 40
    assert sum("cpu" in kernel.devices for kernel in ALL) >= 28
    assert sum(kernel.is_long or bool(kernel.made_by) for kernel in ALL) >= 20
    assert {kernel.mechanism.split(":")[0] for kernel in ALL} == set(FAMILIES)
    quick = {kernel.made_by for kernel in ALL if "cpu" in kernel.devices and not kernel.slow}
    assert quick >= {"torch.compile", "torch.utils.cpp_extension"}, "what CI judges"
    for kernel in ALL:
        assert set(kernel.devices) <= set(BOTH) and kernel.devices, kernel.id
