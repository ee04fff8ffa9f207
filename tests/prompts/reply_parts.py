"""What labelled replies are put together from: complete files, and the ways in which models wrap them."""

from __future__ import annotations

from typing import Literal, NamedTuple

Role = Literal["prose", "head", "fence", "file", "decoy", "thought", "tag", "other"]
"""What a piece of a reply is. `file`: the answer; `decoy`, `thought`: what must never be taken for it."""


class Piece(NamedTuple):
    """Lines of a reply, without the last line's end."""

    role: Role
    text: str


PLAIN = """import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
"""
CPP = '''import ctypes

import torch

SOURCE = r"""
extern "C" void twice(const float* x, float* y, long n) {
    for (long i = 0; i < n; ++i) y[i] = 2 * x[i];
}
"""


class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, x):
        y = torch.empty_like(x)
        LIBRARY.twice(x.data_ptr(), y.data_ptr(), x.numel())
        return y


LIBRARY = ctypes.CDLL("kernel.so")
'''
FENCED = '''"""Kernels are kept as they are documented:

```cuda
__global__ void f(float* x);
```
"""
import torch

NOTES = """
```
plain
```
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x + 1
'''
TRITON = """import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
"""
GUARDED = """# Höhe × Breite
import torch

if torch.cuda.is_available():

    class ModelNew(torch.nn.Module):
        def forward(self, x):
            return x.cuda()
else:

    class ModelNew(torch.nn.Module):
        def forward(self, x):
            return x
"""
RENAMED = """import torch


class Fast(torch.nn.Module):
    def forward(self, x):
        # Performance Analysis: one pass
        # ## Code Implementation
        return x.mul(2).add_(1)


ModelNew = Fast
"""
HEADINGS = '''import torch

TEXT = """
## Performance Analysis
## Code Implementation
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x - len(TEXT)
'''
FILES = (PLAIN, CPP, FENCED, TRITON, GUARDED, RENAMED, HEADINGS)

HEADS = (
    ("## Performance Analysis", "## Algorithm Design", "## Code Implementation"),
    ("# 1. Performance Analysis", "# 2. Algorithm Design", "# 3. Code Implementation"),
    ("**Performance Analysis**", "**Algorithm Design**", "**Code Implementation**"),
    ("### **1) Performance analysis:**", "### **2) Algorithm design:**", "### **3) Code implementation:**"),
    ("Performance Analysis:", "Algorithm Design:", "Code Implementation:"),
    ("PERFORMANCE ANALYSIS", "ALGORITHM DESIGN", "CODE IMPLEMENTATION"),
    ("Section 1: Performance Analysis", "Section 2: Algorithm Design", "Section 3: Code Implementation"),
    ("**1. Performance Analysis:** in short", "**2. Algorithm Design:** in short", "**3. Code Implementation:** below"),
    ("## Performance Analysis ##", "## Algorithm Design ##", "## Code Implementation (complete) ##"),
)
"""The three headings, as different models write them."""

FENCES = (
    ("```python", "```", ""),
    ("```", "```", ""),
    ("```py", "```", ""),
    ("~~~python", "~~~", ""),
    ("````python", "````", ""),
    ("``` python title=model.py", "```", ""),
    ("```cuda", "```", ""),
    ("   ```python", "   ```", "   "),
    ("1. ```python", "   ```", "   "),
    ("> ```python", "> ```", "> "),
    ("```Python", "```   ", ""),
    ("```cpp", "```", ""),
    ("~~~~", "~~~~~~", ""),
)
"""Opening line, closing line, and what stands before each line between."""

PROSE = (
    "The second variant is faster, because it reads its input once.\nThe first one launches three kernels.",
    "Variant 2 wins: `x.relu_()` saves a pass. Code implementation details do not explain it.\n\n- memory bound",
    "Both are limited by memory traffic; see <b>below</b>. In code: `a < b > c`.\n\n| variant | score |\n|---|---|",
    "Performance analysis shows little.\nI think that a fused loop helps, and I cannot say how much.",
    "性能: the kernel is bound by bandwidth.\n\n1. fuse\n2. vectorise",
)  # fmt: skip
TAILS = (
    (),
    (Piece("prose", "Compile it with -O3. I hope that this is fast enough."),),
    (Piece("fence", "```bash"), Piece("other", "pip install triton"), Piece("fence", "```")),
    (
        Piece("prose", "A test:"),
        Piece("fence", "```python"),
        Piece("other", "print(ModelNew().forward(1))"),
        Piece("fence", "```"),
    ),
    (Piece("other", "</s>"),),
    (Piece("fence", "```"),),
)
"""What models add after their answer; the last is one fence too many."""

THOUGHT = "class ModelNew:  # a thought\n    pass"
_BLOCK = (Piece("fence", "```python"), Piece("thought", THOUGHT), Piece("fence", "```"))
THOUGHTS: tuple[tuple[Piece, ...], ...] = (
    (),
    (Piece("tag", "<think>"), Piece("prose", "First I look."), *_BLOCK, Piece("tag", "</think>")),
    (Piece("prose", "First I look."), *_BLOCK, Piece("tag", "</think>")),
    (
        *(
            Piece("tag", "<think>"),
            *_BLOCK,
            Piece("tag", "<think>"),
            Piece("prose", "deeper"),
            Piece("tag", "</think>"),
        ),
        *(*_BLOCK, Piece("tag", "</think>")),
    ),
    (
        *(Piece("tag", "<think>"), *_BLOCK, Piece("tag", "</think>"), Piece("prose", "Well."), Piece("tag", "<think>")),
        *(*_BLOCK, Piece("tag", "</think>")),
    ),
    (Piece("tag", "<thinking>"), Piece("fence", "```python"), Piece("thought", THOUGHT), Piece("tag", "</thinking>")),
    (Piece("tag", "[THINK]"), *_BLOCK, Piece("tag", "[/THINK]")),
    (
        Piece("tag", "<|channel|>analysis<|message|>"),
        *_BLOCK,
        Piece("tag", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    ),
    (Piece("tag", "<Think >"), *_BLOCK, Piece("tag", "</ THINK>")),
)
"""What a model thinks aloud before it answers: closed, begun in the prompt, nested, several, with other marks."""

DECOY = "class ModelNew:  # an earlier variant\n    pass"
DECOYS: tuple[tuple[Piece, ...], ...] = (
    (),
    (Piece("fence", "```python"), Piece("decoy", DECOY), Piece("fence", "```")),
    (Piece("fence", "```"), Piece("decoy", "x = x.relu()"), Piece("fence", "```")),
    (Piece("fence", "~~~"), Piece("decoy", "## Code Implementation\n" + DECOY), Piece("fence", "~~~")),
)
"""Code that a model quotes in its analysis."""


def fenced(text: str, fence: tuple[str, str, str], role: Role = "file") -> list[Piece]:
    """A text between an opening and a closing line."""
    opening, closing, lead = fence
    lines = (f"{lead}{line}".rstrip() if not line else f"{lead}{line}" for line in text.rstrip("\n").split("\n"))
    return [Piece("fence", opening), Piece(role, "\n".join(lines)), Piece("fence", closing)]
