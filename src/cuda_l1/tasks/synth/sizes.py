"""How large the tensors of a task are: small for a CPU, and by the memory of a GPU."""

from __future__ import annotations

from dataclasses import dataclass

from cuda_l1.tasks.synth.draw import Draw

_SMALL: dict[str, tuple[int, ...]] = {
    "rows": (16, 32, 64, 100, 128, 256, 512, 1024),
    "columns": (33, 64, 100, 128, 256, 384, 512, 1000, 1024, 2048),
    "batch": (2, 3, 4, 8, 16),
    "images": (2, 3, 4, 8),
    "time": (8, 16, 24, 31, 32, 64, 77, 128),
    "width": (32, 48, 64, 96, 128, 192, 256),
    "out": (10, 24, 32, 64, 128, 256),
    "heads": (2, 4, 8),
    "channels": (8, 16, 24, 32, 64),
    "side": (8, 12, 14, 16, 20, 28, 32),
    "length": (32, 64, 100, 128, 256, 512),
    "tiny": (8, 16, 32, 64),
}
_LARGE: dict[str, tuple[int, ...]] = {
    "rows": (64, 256, 512, 1024, 2048, 4000, 4096, 8192, 16384),
    "columns": (257, 512, 768, 1000, 1024, 2048, 4096, 5120, 8192, 16384),
    "batch": (2, 4, 8, 16, 32, 64),
    "images": (4, 8, 16, 32, 64, 128),
    "time": (77, 128, 197, 256, 512, 1024, 2048),
    "width": (256, 384, 512, 768, 1024, 2048),
    "out": (10, 128, 512, 1000, 1024, 2048, 4096),
    "heads": (4, 8, 16),
    "channels": (32, 64, 96, 128, 256),
    "side": (14, 28, 32, 56, 64, 112),
    "length": (256, 512, 1000, 2048, 4096),
    "tiny": (16, 32, 64, 128),
}
_SCALED = ("rows", "batch", "images")
GIB = 1 << 30


@dataclass(frozen=True)
class Scale:
    """What a task may cost at most, and from which sizes it is made."""

    choices: dict[str, tuple[int, ...]]
    most_bytes: int
    """Of all tensors together, every intermediate result counted."""
    most_flops: float
    """Of one call."""


SMALL = Scale(_SMALL, most_bytes=32 << 20, most_flops=1e8)
"""For a CPU: one call takes some milliseconds at most."""


def for_memory(gib: float) -> Scale:
    """For a GPU with this much memory: a call's tensors fill at most an eighth of it, since the judge holds several
    sets of them, and one call is at most 2e12 floating-point operations."""
    return Scale(_LARGE, most_bytes=int(gib * GIB / 8), most_flops=2e12)


class Sizes:
    """Draws the sizes of one task; `shrink` halves what counts samples, so that a task that is too large fits."""

    def __init__(self, scale: Scale, draw: Draw, shrink: int = 0) -> None:
        self._scale, self._draw, self._shrink = scale, draw, shrink

    def pick(self, role: str) -> int:
        """A size for a role: `rows`, `columns` (any number), `width`, `channels` (multiples of 8), `time`, ..."""
        found = self._draw.choice(self._scale.choices[role])
        if self._shrink > 3 and role not in ("heads", "channels", "width"):
            found = min(found, max(self._scale.choices[role][0], found >> (self._shrink - 3)))
        return max(2, found >> self._shrink) if role in _SCALED else found
