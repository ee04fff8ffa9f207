"""What a call of a reference asks of a device: bytes and operations counted by hand."""

from __future__ import annotations

import textwrap

import pytest
from evaluator_support import LINEAR, reference_of

from cuda_l1.evaluator.guest.audit import audit
from cuda_l1.evaluator.guest.ceilings import ceilings
from cuda_l1.evaluator.guest.work import work_of

TASK = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {made}

    def forward(self, x):
        {forward}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return []
"""


def task(forward: str, inputs: str = "torch.randn(64, 32)", made: str = "pass") -> str:
    return textwrap.dedent(TASK).format(forward=forward, inputs=inputs, made=made)


@pytest.fixture
def counted(tmp_path):
    def count(body: str) -> dict[str, int] | None:
        reference = reference_of(tmp_path, body)
        return work_of(reference, audit(reference))

    return count


def test_a_linear_layer_with_a_relu(counted):
    """Inputs and outputs of (16, 32), a weight of (32, 32) with a bias; the relu counts its elements."""
    found = counted(LINEAR)
    assert found["moved_bytes"] == 4 * (2 * 16 * 32 + 32 * 32 + 32)
    assert 2 * 16 * 32 * 32 + 16 * 32 <= found["flops"] <= 2 * 16 * 32 * 32 + 3 * 16 * 32


IN = 64 * 32


@pytest.mark.parametrize(
    ("body", "elements_moved", "flops"),
    [
        (task("return torch.relu(x)"), 2 * IN, IN),
        (task("return (x + 1).tanh() + x.t().t()"), 2 * IN, 3 * IN),  # a view is nothing, and x is read once
        (task("return x[:8] * 2"), 2 * 8 * 32, 8 * 32),  # what is not read does not count
        (task("return torch.cat([x, x])"), 3 * IN, 2 * IN),
        (task("return self.rows(x)", "torch.arange(4)", "self.rows = nn.Embedding(1000, 8)"), 2 * 4 * 8 + 2 * 4, 4 * 8),
        (task("return x @ x.t()"), IN + 64 * 64, 2 * 64 * 64 * 32),
        (task("return torch.cdist(x[:8], x[8:16], p=1)"), 2 * 8 * 32 + 64, 3 * 8 * 8 * 32),
        (task("return self.conv(x)", "torch.randn(2, 3, 8, 8)", "self.conv = nn.Conv2d(3, 4, 3, bias=False)"),
         2 * 3 * 64 + 4 * 27 + 2 * 4 * 36, 2 * 2 * 36 * 4 * 27),
        (task("return F.scaled_dot_product_attention(x, x, x)", "torch.randn(1, 2, 16, 8)"),
         2 * 256, 4 * 2 * 16 * 16 * 8),
        (task("return self.r(x)[0]", "torch.randn(5, 3, 8)", "self.r = nn.LSTM(8, 16, bias=False)"),
         5 * 3 * 8 + 4 * 16 * 24 + 5 * 3 * 16, 2 * 15 * 4 * 16 * 24),
    ],
)  # fmt: skip
def test_by_hand(counted, body, elements_moved, flops):
    found = counted(body)
    assert found["moved_bytes"] == 4 * elements_moved
    assert found["flops"] == pytest.approx(flops, rel=0.35), "smaller operations may come on top"


def test_a_reference_that_does_not_stand_being_watched_is_not_counted(counted):
    watched = "from torch.utils._python_dispatch import _get_current_dispatch_mode as mode; assert mode() is None"
    assert counted(task(f"{watched}; return x * 2")) is None


def test_counting_leaves_the_state_as_it_was(tmp_path):
    body = task("self.calls.add_(1); return x + self.calls", made="self.register_buffer('calls', torch.zeros(1))")
    reference = reference_of(tmp_path, body)
    facts = audit(reference)
    assert facts.flags == ["stateful"]
    assert work_of(reference, facts) and float(reference.model.calls) == 0.0


def test_a_cpu_has_ceilings():
    found = ceilings("cpu")
    assert found["bytes_per_us"] > 100 and found["flops_per_us"].keys() == {"fp32"}
    assert found["flops_per_us"]["fp32"] > 100
