"""Truth of convolutions in three dimensions, with and without cuDNN."""

from __future__ import annotations

import pytest
import torch
from second_device import OnDevice
from torch import nn

from cuda_l1.evaluator.guest import arithmetic, deep_convolutions, oracle
from cuda_l1.evaluator.guest.deep_convolutions import convolve

CONV, TRANSPOSED = torch.conv3d, torch.conv_transpose3d


@pytest.fixture
def entries(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """One for each convolution without cuDNN."""
    seen: list[bool] = []
    before = deep_convolutions._without_cudnn
    monkeypatch.setattr(deep_convolutions, "_without_cudnn", lambda: seen.append(True) or before())
    return seen


@pytest.mark.parametrize(
    ("func", "input_shape", "weight_shape", "options", "window", "windows"),
    [
        (CONV, (3, 4, 7, 6, 5), (6, 2, 3, 2, 1), {"stride": 2, "padding": 1, "groups": 2}, 2 * 6, 4 * 4 * 4),
        (CONV, (2, 8, 7, 6), (3, 2, 3, 3, 3), {"dilation": 2, "padding": "same"}, 2 * 27, 8 * 7 * 6),
        (TRANSPOSED, (3, 4, 5, 4, 3), (4, 6, 3, 3, 3), {"stride": 2, "dilation": 2}, 6 * 27, 5 * 4 * 3),
    ],
)
def test_cudnn_is_left_out_where_an_unfolded_sample_takes_a_quarter_of_what_is_free(
    func, input_shape, weight_shape, options, window, windows, monkeypatch, entries
):
    x, weight = torch.randn(input_shape, dtype=torch.float64), torch.randn(weight_shape, dtype=torch.float64)
    needed = 4 * 8 * window * windows
    for free, without in ((needed - 1, 0), (needed, 1)):
        monkeypatch.setattr(deep_convolutions, "free_bytes", lambda free=free: free)
        made = convolve(func, [OnDevice(x)], {"weight": OnDevice(weight), **options})
        assert torch.equal(made.values, func(x, weight, **options)) and len(entries) == without
    assert torch.backends.cudnn.enabled


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_cpu_and_other_dtypes_are_left_alone(dtype, entries):
    place = OnDevice if dtype is torch.float32 else torch.Tensor.clone
    tensors = [place(torch.ones(shape, dtype=dtype)) for shape in ((1, 2, 3, 3, 3), (2, 2, 2, 2, 2))]
    convolve(CONV, tensors, {})
    assert entries == []


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (nn.Conv3d(4, 6, (3, 2, 1), stride=2, padding=1, groups=2), (3, 4, 7, 6, 5)),
        (nn.Conv3d(2, 3, 3, dilation=2, padding="same", padding_mode="circular"), (2, 8, 7, 6)),
        (nn.Conv3d(6, 6, 3, groups=6), (2, 6, 8, 7, 6)),
        (nn.ConvTranspose3d(4, 6, 3, stride=2, output_padding=1, dilation=2), (3, 4, 5, 4, 3)),
    ],
)
def test_truth_is_the_same_with_and_without_cudnn(module, shape, monkeypatch, entries):
    """To what float64 rounds."""
    model, x = arithmetic.cast_model(module, torch.float64).cuda(), torch.randn(shape, dtype=torch.float64).cuda()
    without = arithmetic.run_float64(model, [x])
    monkeypatch.setattr(deep_convolutions, "free_bytes", lambda: 0)
    assert oracle.max_error(without, arithmetic.run_float64(model, [x])) < 1e-13
    assert len(entries) == 1
