"""Which texts make streams: those are profiled in a screen already, which costs a second on a GPU."""

from __future__ import annotations

import pytest

from cuda_l1.evaluator.blocks import speaks_of_streams
from cuda_l1.prelude.triton_loader import LOADER


@pytest.mark.parametrize(
    "text",
    [
        LOADER,
        "stream0 = get_raw_stream(0)\nkernel.run(x, out, grid=grid(4), stream=stream0)",
        "cudaStream_t stream = at::cuda::getCurrentCUDAStream();\nkernel<<<grid, block, 0, stream>>>(x);",
        "#include <c10/cuda/CUDAStream.h>",
        "kernel[grid](x, stream=torch.cuda.current_stream().cuda_stream)",
    ],
)
def test_a_launcher_makes_none(text: str) -> None:
    assert not speaks_of_streams(text)


@pytest.mark.parametrize(
    "text",
    [
        "side = torch.cuda.Stream()",
        "with torch.cuda.stream(side): y = x + 1",
        "torch.cuda.ExternalStream(pointer)",
        "auto side = at::cuda::getStreamFromPool();",
        "cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);",
        "cuStreamCreate(&side, 1);",
        "side.wait_stream(torch.cuda.current_stream())",
    ],
)
def test_what_makes_one_or_switches_is_seen(text: str) -> None:
    assert speaks_of_streams(text)
