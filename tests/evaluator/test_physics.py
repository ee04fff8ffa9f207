"""Which bytes any right candidate must move, and what is said of one that is faster than that."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from evaluator_support import reference_of

from cuda_l1.evaluator.findings.physics import physics
from cuda_l1.evaluator.guest.audit import audit
from cuda_l1.evaluator.guest.channel import Channel
from cuda_l1.evaluator.guest.judge import Judge
from cuda_l1.evaluator.guest.traffic import least_us, needed_bytes, read_bytes, traffic_of

MIB = 1 << 20
TASK = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(64)

    def forward(self, x):
        {}

def get_inputs():
    return [{}]
"""
ALL = 32 * 64 * 4


@pytest.mark.parametrize(
    ("forward", "inputs", "expected"),
    [
        ("return x.exp()", "torch.randn(32, 64)", ALL),
        ("return self.norm(x)", "torch.randn(32, 64)", ALL),
        ("x.mul_(2.0)\n        return x.sum()", "torch.randn(32, 64)", ALL),
        ("return x[:8].exp()", "torch.randn(32, 64)", ALL // 4),
        ("return torch.diagonal(x).exp()", "torch.randn(64, 64)", 64 * 4),
        ("return x * 0.0 + 1.0", "torch.randn(32, 64)", 0),
        ("return x.exp().bfloat16()", "torch.randn(32, 64).bfloat16()", ALL // 2),
        ("return x.exp()", "torch.randn(64).expand(32, 64)", 64 * 4),
        ("return x.float().exp()", "torch.randint(0, 9, (32, 64))", 0),
        ("return x.sign()", "torch.randn(32, 64)", 0),
        ("with torch.no_grad():\n            return x.exp()", "torch.randn(32, 64)", 0),
    ],
    ids=[
        *("all", "batchnorm", "in-place", "slice", "diagonal", "times-zero", "bf16", "expanded", "integers", "flat"),
        "no-gradient",
    ],
)
def test_only_elements_that_change_the_answer_must_be_read(tmp_path, forward, inputs, expected):
    reference = reference_of(tmp_path, TASK.format(forward, inputs))
    drawn = reference.draw()
    reference.learn_changes(drawn)
    before = {name: value.clone() for name, value in reference.public.items()}
    # A gradient in float32 is zero by chance, too: one element of 2048, once in thousands of draws.
    assert expected - 8 <= read_bytes(reference, drawn) <= expected
    assert all(value.equal(before[name]) for name, value in reference.model.state_dict().items())
    assert needed_bytes(reference, drawn, 1000) == 1000 + expected


def test_what_lies_behind_an_edge_is_not_counted(tmp_path):
    reference = reference_of(tmp_path, TASK.format("return torch.relu(x)", "torch.randn(32, 64)"))
    assert 0.3 * ALL < read_bytes(reference, reference.draw()) < 0.7 * ALL


def test_outputs_that_are_views_of_inputs_need_not_be_written(tmp_path):
    reference = reference_of(tmp_path, TASK.format("return x.t()", "torch.randn(32, 64)"))
    drawn = reference.draw()
    reference.learn_changes(drawn)
    assert needed_bytes(reference, drawn, ALL) == ALL


@pytest.mark.parametrize("forward", ["return x.exp()", "return torch.diagonal(x).exp()", "return x.t()"])
def test_what_is_needed_takes_no_longer_than_moving_everything(tmp_path, forward):
    gpu = SimpleNamespace(attributes=SimpleNamespace(l2_bytes=4096))
    judge = Judge(Channel.pair()[0])
    judge._device, judge._driver = "cpu", gpu
    judge._reference = reference_of(tmp_path, TASK.format(forward, "torch.randn(64, 64)"))
    judge._facts = audit(judge._reference)
    judge._traffic = traffic_of(judge._facts, gpu, lambda: 1000.0)
    needed = judge.needed({}, [])["us"]
    assert 0 < needed <= judge._traffic["whole_us"] or ("diagonal" in forward and needed == 0)
    gpu.attributes.l2_bytes = 1 << 20
    assert traffic_of(judge._facts, gpu, lambda: 1000.0)["whole_us"] is None


@pytest.mark.parametrize(
    ("needed", "candidate_us", "suspected"),
    [
        (40 * MIB, 0.1, False),  # it may all stay in the cache
        (128 * MIB, 46.0, False),  # an honest kernel at the measured bandwidth
        (128 * MIB, 35.0, False),  # half of what it writes stays in the cache
        (128 * MIB, 12.0, True),
        (1024 * MIB, 250.0, True),
    ],
)
def test_a_candidate_faster_than_memory_is_suspected(needed, candidate_us, suspected):
    """An H100: a cache of 50 MiB, 2.9e6 bytes copied in a microsecond."""
    found = physics(candidate_us, least_us(needed, 50 * MIB, 2.9e6))
    assert [(f.check, f.severity) for f in found] == ([("physics", "suspect")] if suspected else [])


def test_a_cpu_has_no_such_bound():
    assert physics(0.0, None) == []
