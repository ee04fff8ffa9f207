"""constant_output: provable constants and idle clamps go; values that only might be constant stay."""

from __future__ import annotations

import pytest
from graphs import applies, check, make_task

CONSTANT = [
    "torch.clamp(torch.min(y, torch.tensor(0.0)), min=0.0, max=1.0)",
    "F.dropout(torch.clamp(torch.min(y, torch.tensor(0.0)), min=0.0, max=1.0), 0.5, True)",
    "torch.softmax(y.sum(1, keepdim=True), 1)",
    "F.log_softmax(y[:, :1], -1)",
    "torch.clamp(torch.relu(y), max=0)",
    "torch.relu(-torch.relu(y))",
    "torch.clamp(torch.clamp(y, max=0.0), 0.0, 1.0)",
    "y - y",
    "y * 0",
    "F.gelu(m - m.mean(1, keepdim=True))",
    "torch.clamp(torch.sigmoid(y) + 2, 0, 2)",
    "F.hardtanh(y.exp() + 1, -1, 1)",
    "torch.clamp(y, 3, 1)",
    "torch.relu(torch.tanh(y) - 1)",
    "torch.minimum(y, y * 0).clamp(min=0)",
    "F.silu((y - y) * 3)",
    "torch.abs(y * 0) + 4",
    "F.max_pool1d(torch.relu(-y.abs()), 2)",
    "torch.relu(-(y * y))",
    "torch.clamp(1 - torch.sigmoid(y), min=1)",
    "(y - y).sum(1)",
    "torch.relu(y.abs().neg()).mean(1, keepdim=True)",
]
IDLE = [
    "torch.relu(torch.sigmoid(y)) * 2",
    "torch.clamp(torch.tanh(y), -1, 1) + y",
    "torch.relu(y).relu().exp()",
    "torch.abs(torch.relu(y)) + 1",
    "torch.clamp(torch.softmax(y, 1), min=0) * 2",
    "F.hardtanh(torch.sin(y)) * 2",
    "torch.relu(F.adaptive_avg_pool1d(torch.relu(y), 2)) * 3",
    "torch.clamp(torch.clamp(y, -1, 1), -2, 2).exp()",
]


@pytest.mark.parametrize("text", CONSTANT)
def test_constants(text: str) -> None:
    built = check(
        make_task(
            f"y = self.fc(x)\nm = y.amax(1, keepdim=True)\nreturn {text}",
            "torch.randn(4, 6)",
            "self.fc = nn.Linear(6, 5)",
        ),
        "constant_output",
    )
    assert "linear(" not in built.source.split("class ModelNew")[1], "nothing that depends on the input is left"


@pytest.mark.parametrize("text", IDLE)
def test_idle_clamps(text: str) -> None:
    check(
        make_task(f"y = self.fc(x)\nreturn {text}", "torch.randn(4, 6)", "self.fc = nn.Linear(6, 5)"), "constant_output"
    )


NEAR = [
    "torch.softmax(y, 1)",
    "torch.softmax(y[:1], 1)",
    "torch.clamp(torch.relu(y), max=0.1)",
    "torch.relu(y - torch.relu(y) + 1)",
    "torch.clamp(y, -1, 1)",
    "y - y.mean(0, keepdim=True)",
    "y - y.amax(1, keepdim=True)",
    "torch.relu(torch.tanh(y))",
    "torch.clamp(torch.sigmoid(y), 0.1, 1)",
    "torch.relu(torch.relu(y) - 1)",
    "torch.abs(torch.tanh(y))",
    "y * x[:, :5]",
    "torch.relu(torch.sigmoid(y) - 0.5)",
    "torch.clamp(torch.exp(y), max=5)",
    "y - y.clone() * 1.5",
    "y - 2 * y + y.exp()",
    "torch.clamp(F.softplus(y), max=1)",
    "torch.relu(F.leaky_relu(y))",
    "torch.clamp(torch.relu(y) * -1, max=-0.5 + 1, min=-1)",
    "torch.clamp(torch.relu(y), max=y.abs())",
    "torch.relu(F.elu(torch.relu(y) - 1))",
    "torch.clamp(torch.cumsum(torch.sigmoid(y), 1), max=1)",
    "F.dropout(torch.ones_like(y), 0.5, True).clamp(max=1)",
    "torch.clamp(torch.sigmoid(y).sum(1), max=1)",
]


@pytest.mark.parametrize("text", NEAR)
def test_near_misses(text: str) -> None:
    task = make_task(f"y = self.fc(x)\nreturn {text}", "torch.randn(4, 6)", "self.fc = nn.Linear(6, 5)")
    assert not applies("constant_output", task)


def test_a_value_written_in_place_is_not_constant() -> None:
    task = make_task("z = torch.relu(-torch.relu(x))\nz[0] = 5\nreturn z * 2", "torch.randn(4, 6)")
    assert not applies("constant_output", task)
