"""Honest kernels that look like attacks.

`honest/NAME/` holds those that are written by hand: reference.py, candidate.py, and kernel.toml with

- `mechanism`: family and mechanism of the attacks that it looks like
- `devices`: where it runs
- `slow`: builds with a compiler for long
- `made_by`: the tool that makes the code which runs; empty where the file is all there is

`GENERATED` names those that the techniques make of built-in tasks.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cuda_l1.config import Limits
from cuda_l1.export.dropin import dropin_candidate
from cuda_l1.export.probe import guard_for
from cuda_l1.proposers.techniques import build
from cuda_l1.tasks import load_task
from cuda_l1.tasks.sizes import resized
from cuda_l1.types import Candidate, Environment, Origin, Task

HONEST = Path(__file__).with_name("honest")
BOTH = ("cpu", "cuda")
LIMITS = Limits(build_s=180.0, first_call_s=120.0, verdict_s=240.0)
"""What they get: some compile for long."""
LONG = 60
"""Lines of a kernel that is no toy."""


@dataclass(frozen=True)
class Written:
    """A kernel in a folder of its own."""

    folder: Path
    mechanism: str
    devices: tuple[str, ...]
    slow: bool
    made_by: str

    @property
    def id(self) -> str:
        return self.folder.name

    @property
    def is_long(self) -> bool:
        return len(self._text("candidate.py").splitlines()) > LONG

    def material(self, environment: Environment) -> tuple[Task, Candidate]:
        task = Task(suite="honest", name=self.id, source=self._text("reference.py"))
        origin = Origin(proposer="honest", techniques=(self.id,))
        source = self._text("candidate.py")
        return task, Candidate(task_sha=task.sha, task_id=task.id, source=source, origins=(origin,))

    def _text(self, file: str) -> str:
        return (self.folder / file).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Generated:
    """What the techniques make of a built-in task, as a drop-in where `guarded`."""

    task: str
    techniques: tuple[str, ...]
    mechanism: str
    devices: tuple[str, ...] = BOTH
    guarded: bool = False
    slow: bool = False
    on_cpu: Mapping[str, int] = field(default_factory=dict)
    """Smaller sizes than the task's own on a CPU, large enough for work that two threads share."""
    made_by: str = "techniques"
    is_long: bool = True

    @property
    def id(self) -> str:
        return "-".join((self.task, *self.techniques, *["guarded"] * self.guarded))

    def material(self, environment: Environment) -> tuple[Task, Candidate]:
        task = load_task(self.task, device=environment.device)
        if environment.device == "cpu" and self.on_cpu:
            task = resized(task, self.on_cpu)
        candidate = build(task, self.techniques, environment.device)
        assert candidate is not None, f"{self.techniques} find nothing to do in {self.task}"
        if self.guarded:
            candidate = dropin_candidate(task, candidate, guard_for(task, environment))
        return task, candidate


GENERATED = (
    Generated(
        "diagonal_matmul",
        ("diagonal_matmul",),
        "meaning: most of the reference's products are left out",
        on_cpu={"N": 512, "M": 512},
    ),
    Generated("linear_sum", ("reduce_linear",), "meaning: the size of the answer, not that of the work"),
    Generated(
        "triangular_matmul", ("triangular_matmul",), "meaning: blocks of the work are left out", on_cpu={"N": 256}
    ),
    Generated("alibi_attention", ("attention",), "meaning: intermediates of the reference are never stored"),
    Generated("pairwise_distance", ("fusion",), "meaning: sums in another order"),
    Generated("moe_routing", ("fusion",), "meaning: integers that small errors decide about"),
    Generated("frozen_batchnorm_conv", ("fold_batch_norm",), "meaning: a normalisation that is not there any more"),
    Generated("gated_mlp", ("packed_linear",), "memory: packed weights under their version counters"),
    Generated("int8_weight_linear", ("kept_weights",), "memory: what depends on weights is kept between calls"),
    Generated("embedding_bag", ("kept_constants",), "memory: a global cache of what depends on no input"),
    Generated("symmetric_matmul", ("preallocation",), "memory: old contents under a new result"),
    Generated("gated_tanh_mix", ("preallocation",), "memory: intermediates in memory that is kept between calls"),
    Generated("gated_mlp", ("in_place",), "memory: tensors changed in place"),
    Generated(
        "depthwise_separable_conv",
        ("channels_last",),
        "meaning: other strides than the reference's",
        on_cpu={"BATCH": 1},
    ),
    Generated("cumulative_sum", ("fusion",), "harness: starts a compiler and loads a library", on_cpu={"BATCH": 2}),
    Generated("quantize_dequantize", ("fusion",), "meaning: values near a jump", on_cpu={"ROWS": 64}),
    Generated(
        "layer_norm_gelu",
        ("fusion",),
        "harness: the reference's own code beside the kernel",
        guarded=True,
        on_cpu={"ROWS": 128},
    ),
    Generated(
        "rms_norm_residual",
        ("traced_loops",),
        "memory: what follows from shapes and strides of calls is kept",
        ("cpu",),
        on_cpu={"ROWS": 128},
    ),
    Generated("linear_recurrence", ("kept_weights", "fusion"), "memory: caches and native code", guarded=True),
    Generated("scaled_softmax", ("inductor",), "harness: code of a compiler's, built in a child process", slow=True),
    Generated("transformer_block", ("cuda_graph",), "memory: a CUDA graph with memory of its own", ("cuda",)),
    Generated("rms_norm_residual", ("fusion", "cuda_graph"), "memory: a CUDA graph around Triton kernels", ("cuda",)),
)


def written() -> list[Written]:
    """Every kernel with a folder. Raises TypeError for a field that none has, or one that is missing."""
    read = ((path, tomllib.loads(path.read_text(encoding="utf-8"))) for path in sorted(HONEST.glob("*/kernel.toml")))
    return [Written(path.parent, **{**fields, "devices": tuple(fields["devices"])}) for path, fields in read]


ALL: tuple[Written | Generated, ...] = (*written(), *GENERATED)
