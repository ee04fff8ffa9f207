"""Which fork template a candidate's processes come from: one that holds torch, or one that holds a compiler too.

Importing Dynamo and Inductor takes longer than everything else in the life of a runner, and a `final` starts many. So
does finding out which vector instructions the machine's C++ compiler can use, for which Inductor compiles four files in
each new cache directory. Triton takes 0.4 s of a core, half of them to hash its own files, while the runner has the GPU
to itself. The text of a candidate chooses how fast it starts, never what is found out about it.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from cuda_l1.config import probes_folder
from cuda_l1.evaluator.processes import STARTUP_S, Template

# Neither `torch.compiler` nor `torch._C._dynamo`, which every drop-in's guard names: they import nothing, and a process
# that holds the compiler's modules calls a small module about 13 us slower on a CPU.
_COMPILER_MARKS = re.compile(r"torch\.compile\b|torch\._(dynamo|inductor)|\bimport _(dynamo|inductor)|\baoti_")
_TRITON_MARKS = re.compile(r"^[ \t]*(import|from)[ \t]+triton\b", re.MULTILINE)
COMPILER_MODULES = ("torch._dynamo", "torch._inductor.codecache", "torch._inductor.async_compile")
ALL_OF_INDUCTOR = {"cpu": "guest.inductor:for_cpu", "cuda": "guest.inductor:for_gpu"}
TRITON = "guest.inductor:triton"
VECTOR_PROBE = "guest.vectors:find_out"
PROBE_S = 300.0


class Templates:
    """The plain template, started at once, and those of compilers, started when the first candidate asks for one."""

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        rung: Literal["auto", "R0", "R1", "R2"],
        lane: Sequence[int],
        device: Literal["cpu", "cuda"],
        cache: Path,
    ) -> None:
        """`cache`: the evaluator's cache folder, where what the compiler can do is kept for the next time.

        Raises InfrastructureError when torch cannot be imported or the rung asked for is refused.
        """
        # One compile thread: a pool of workers would outlive the compilation and disturb what is timed.
        # Headers are precompiled in a folder that Inductor chooses when it is imported: here, where no guest may write.
        self._environment = {
            **environment,
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
        }
        self._rung, self._lane, self._device, self._cache = rung, lane, device, cache
        self.plain = self._start(())
        self._compiler: Template | None = None
        self._triton: Template | None = None

    def _start(self, preload: Sequence[str], **more: str) -> Template:
        return Template.start(
            {**self._environment, **more},
            rung=self._rung,
            lane=self._lane,
            device=self._device,
            preload=preload,
            startup_s=PROBE_S if VECTOR_PROBE in preload else STARTUP_S,
        )

    @staticmethod
    def uses_compiler(source: str) -> bool:
        """Whether a candidate's text speaks of torch.compile, Dynamo or Inductor."""
        return _COMPILER_MARKS.search(source) is not None

    @staticmethod
    def uses_triton(source: str) -> bool:
        """Whether a candidate's text imports Triton."""
        return _TRITON_MARKS.search(source) is not None

    def for_source(self, source: str) -> Template:
        """The template that this candidate's guests are forked from."""
        if self.uses_compiler(source):
            if self._compiler is None:
                self._compiler = self._start_on_cpu() if self._device == "cpu" else self._start_on_gpu()
            return self._compiler
        if self._device == "cpu" or not self.uses_triton(source):
            return self.plain
        if self._triton is None:
            self._triton = self._start_without_driver((TRITON,), ())
        return self._triton

    def _start_on_gpu(self) -> Template:
        return self._start_without_driver((*COMPILER_MODULES, ALL_OF_INDUCTOR["cuda"]), COMPILER_MODULES)

    def _start_without_driver(self, preload: Sequence[str], otherwise: Sequence[str]) -> Template:
        """A template; where a release of torch or Triton starts the driver all the same, with modules that never do."""
        template = self._start(preload)
        if template.facts.threads == 1:
            return template
        template.close()
        return self._start(otherwise)

    def _start_on_cpu(self) -> Template:
        """The compiler's template, which knows the vector instructions. What was compiled to find them out is kept as a
        whole: a library that somebody's kill has cut off would rule out its instructions for good."""
        kept = probes_folder(self._cache, self.plain.facts.torch)
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=kept.parent, ignore_cleanup_errors=True) as fresh:
            folder = kept if kept.is_dir() else Path(fresh) / "probes"
            preload = (*COMPILER_MODULES, ALL_OF_INDUCTOR["cpu"], VECTOR_PROBE)
            template = self._start(preload, TORCHINDUCTOR_CACHE_DIR=os.fspath(folder))
            if folder != kept:
                with contextlib.suppress(OSError):  # nothing was compiled, or another evaluator was first
                    folder.rename(kept)
        return template

    def close(self) -> None:
        """End all of them and every guest."""
        for template in (self.plain, self._compiler, self._triton):
            if template is not None:
                template.close()
