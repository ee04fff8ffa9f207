"""Which fork template a candidate's processes come from: one that holds torch, or one that holds its compiler too.

Importing Dynamo and Inductor takes longer than everything else in the life of a runner, and a `final` starts many. The
text of a candidate chooses only how fast it starts, never what is found out about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from cuda_l1.evaluator.processes import Template

_COMPILER_MARKS = ("torch.compile", "_inductor", "aoti_", "_dynamo")
# Not `compile_fx`: importing it starts the CUDA driver, whose thread no fork may inherit.
COMPILER_MODULES = ("torch._dynamo", "torch._inductor.codecache", "torch._inductor.async_compile")


class Templates:
    """The plain template, started at once, and the compiler's, started when the first candidate asks for it."""

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        rung: Literal["auto", "R0", "R1", "R2"],
        lane: Sequence[int],
        device: Literal["cpu", "cuda"],
    ) -> None:
        """Raises InfrastructureError when torch cannot be imported or the rung asked for is refused."""
        # One compile thread: a pool of workers would outlive the compilation and disturb what is timed.
        self._environment = {**environment, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
        self._rung, self._lane, self._device = rung, lane, device
        self.plain = self._start(())
        self._compiler: Template | None = None

    def _start(self, preload: Sequence[str]) -> Template:
        return Template.start(self._environment, rung=self._rung, lane=self._lane, device=self._device, preload=preload)

    def uses_compiler(self, source: str) -> bool:
        """Whether a candidate's text speaks of torch.compile, Dynamo or Inductor."""
        return any(mark in source for mark in _COMPILER_MARKS)

    def for_source(self, source: str) -> Template:
        """The template that this candidate's guests are forked from."""
        if not self.uses_compiler(source):
            return self.plain
        if self._compiler is None:
            self._compiler = self._start(COMPILER_MODULES)
        return self._compiler

    def close(self) -> None:
        """End both and every guest."""
        self.plain.close()
        if self._compiler is not None:
            self._compiler.close()
