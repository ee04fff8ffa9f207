"""fold_batch_norm: frozen statistics are folded into the map before; live statistics and shared results stay."""

from __future__ import annotations

import itertools

import pytest
from graphs import applies, check, make_task

MAPS = [
    ("nn.Conv1d(3, 4, 3)", "3, 9", 1),
    ("nn.Conv2d(3, 4, 3, padding=1, bias=False)", "3, 6, 6", 2),
    ("nn.Conv2d(4, 4, 3, groups=2, stride=2)", "4, 7, 7", 2),
    ("nn.Conv3d(2, 4, 2, dilation=2)", "2, 5, 5, 5", 3),
    ("nn.Conv2d(3, 4, 3, padding='same')", "3, 6, 6", 2),
]
NORMS = ["nn.BatchNorm{n}d(4)", "nn.BatchNorm{n}d(4, affine=False)", "nn.BatchNorm{n}d(4, eps=1e-2)"]


@pytest.mark.parametrize(("layer", "norm"), list(itertools.product(MAPS, NORMS)))
def test_convolutions(layer: tuple[str, str, int], norm: str) -> None:
    init = f"self.conv = {layer[0]}\nself.norm = {norm.format(n=layer[2])}\nself.eval()"
    built = check(
        make_task("return self.norm(self.conv(x)).relu()", f"torch.randn(2, {layer[1]})", init), "fold_batch_norm"
    )
    assert "batch_norm" not in built.source.split("class ModelNew")[1]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("rows", [1, 5])
def test_linear(bias: bool, affine: bool, rows: int) -> None:
    init = f"self.fc = nn.Linear(6, 4, bias={bias})\nself.norm = nn.BatchNorm1d(4, affine={affine})\nself.eval()"
    check(make_task("return self.norm(self.fc(x))", f"torch.randn({rows}, 6)", init), "fold_batch_norm")


CONV = "self.conv = nn.Conv2d(3, 4, 3)\nself.norm = nn.BatchNorm2d(4)\n"
NEAR = [
    ("return self.norm(self.conv(x))", CONV),
    ("return self.norm(self.conv(x))", CONV + "self.conv.eval()"),
    ("return self.norm(self.conv(x))", CONV.replace("(4)", "(4, track_running_stats=False)") + "self.eval()"),
    ("return self.norm(self.conv(x))", CONV.replace("(4)", "(4, momentum=0.3)")),
    ("return self.norm(self.conv(x).relu())", CONV + "self.eval()"),
    ("y = self.conv(x)\nreturn self.norm(y) + y", CONV + "self.eval()"),
    ("y = self.conv(x)\nreturn self.norm(y), y", CONV + "self.eval()"),
    ("y = self.conv(x)\ny[0, 0] = 1\nreturn self.norm(y)", CONV + "self.eval()"),
    ("return self.norm(x)", "self.norm = nn.BatchNorm2d(3)\nself.eval()"),
    ("return self.norm(F.max_pool2d(self.conv(x), 2))", CONV + "self.eval()"),
    ("return self.norm(self.conv(x) * 2)", CONV + "self.eval()"),
    ("return self.norm(self.conv(x).transpose(2, 3))", CONV + "self.eval()"),
    ("return self.conv(self.norm(x))", "self.conv = nn.Conv2d(3, 4, 3)\nself.norm = nn.BatchNorm2d(3)\nself.eval()"),
    ("return self.norm(self.conv(x))", "self.conv = nn.Conv2d(3, 4, 3)\nself.norm = nn.GroupNorm(2, 4)\nself.eval()"),
    ("return self.norm(self.conv(x))", "self.conv = nn.Conv2d(3, 4, 3)\nself.norm = nn.InstanceNorm2d(4)\nself.eval()"),
    ("return self.norm(self.fc(x[:, 0]))", "self.fc = nn.Linear(6, 4)\nself.norm = nn.BatchNorm1d(6)\nself.eval()"),
    (
        "return self.norm(self.conv(x))",
        "self.conv = nn.ConvTranspose2d(3, 4, 3)\nself.norm = nn.BatchNorm2d(4)\nself.eval()",
    ),
    (
        "return F.batch_norm(self.conv(x), self.norm.running_mean, self.norm.running_var, training=True)",
        CONV + "self.eval()",
    ),
    ("return self.norm(self.conv(x).float().exp())", CONV + "self.eval()"),
    ("return self.norm(torch.cat([self.conv(x), self.conv(x)]))", CONV + "self.eval()"),
    ("return self.norm(F.dropout(self.conv(x), 0.1, True))", CONV + "self.eval()"),
]


@pytest.mark.parametrize(("forward", "init"), NEAR)
def test_near_misses(forward: str, init: str) -> None:
    assert not applies("fold_batch_norm", make_task(forward, "torch.randn(2, 3, 6, 6)", init))
