"""One fused function: its inputs, results, workspaces and plans, and the Python that allocates and calls."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cuda_l1.proposers.techniques.codegen.ir import ITEMSIZE, Shape, Unsupported, topological
from cuda_l1.proposers.techniques.codegen.lowering import TORCH_NAMES, Lowering, contiguous, dtype_of
from cuda_l1.proposers.techniques.codegen.plan import Plan, make_buffers, plan_nest
from cuda_l1.proposers.techniques.codegen.schedule import schedule
from cuda_l1.proposers.techniques.matching import shape, tensor

if TYPE_CHECKING:
    from torch.fx import Node


STREAM_BYTES = 2 << 20
"""Results of this size leave the second-level cache before anybody reads them, so they are written past the caches."""


@dataclass(frozen=True)
class Array:
    """A tensor that a fused function is given or allocates."""

    name: str
    dtype: str
    shape: Shape
    strides: tuple[int, ...]

    @property
    def bytes(self) -> int:
        return ITEMSIZE[self.dtype] * math.prod(self.shape)


@dataclass(frozen=True)
class Kernel:
    """What a region becomes."""

    name: str
    plans: list[Plan]
    nodes: list[Node]
    """The graph nodes that are passed, in the order of `inputs`."""
    inputs: list[Array]
    results: list[Array]
    """Tensors that are allocated and returned, in the order of the region's outputs."""
    workspaces: list[Array]

    @property
    def pointers(self) -> list[Array]:
        return [*self.inputs, *self.results, *self.workspaces]


def make_kernel(name: str, nodes: Sequence[Node], outputs: Sequence[Node], shortest: int = 1) -> Kernel:
    """Lower, schedule and plan a region (`nodes` in graph order); `shortest` as in `plan_nest`. Raises Unsupported."""
    program = Lowering(nodes).run(nodes, outputs)
    nests = schedule(program.values)
    loads = [value.attrs["source"] for value in topological(program.values) if value.op == "load"]
    sources = {node: dtype_of(node) for node in loads}
    if not sources:
        raise Unsupported("nothing to read: a constant")
    streamed = {node for node in outputs if _passes_caches(node) and all(user.op == "output" for user in node.users)}
    buffers = make_buffers(nests, program, sources, streamed)
    exchanged = [v for nest in nests for v in nest.stored if buffers[v].name.startswith("tmp")]
    return Kernel(
        name=name,
        plans=[plan_nest(nest, buffers, shortest) for nest in nests],
        nodes=list(sources),
        inputs=[Array(buffers[node].name, dtype, shape(node), strides_of(node)) for node, dtype in sources.items()],
        results=[
            Array(f"out{index}", dtype_of(node), shape(node), program.layouts[node])
            for index, node in enumerate(outputs)
        ],
        workspaces=[Array(buffers[v].name, v.dtype, v.shape, buffers[v].strides) for v in exchanged],
    )


def strides_of(node: Node) -> tuple[int, ...]:
    """Strides of a graph node as captured."""
    return tuple(int(stride) for stride in tensor(node).stride())


def _passes_caches(node: Node) -> bool:
    return tensor(node).nbytes >= STREAM_BYTES


def python_function(kernel: Kernel, launch: Sequence[str]) -> str:
    """`def name(in0, ...)`: bring inputs into the captured layout, allocate, launch, return."""
    lines = [line for array in kernel.inputs for line in _checked(array)]
    lines += [_allocated(array, kernel.inputs[0].name) for array in [*kernel.results, *kernel.workspaces]]
    lines += launch
    lines.append(f"return {', '.join(array.name for array in kernel.results)}")
    names = ", ".join(array.name for array in kernel.inputs)
    return f"def {kernel.name}({names}):\n" + textwrap.indent("\n".join(lines), "    ") + "\n"


def _is_contiguous(array: Array) -> bool:
    expected = contiguous(array.shape)
    return all(s == e or n == 1 for s, e, n in zip(array.strides, expected, array.shape, strict=True))


def _checked(array: Array) -> list[str]:
    name = array.name
    if _is_contiguous(array):
        return [f"if not {name}.is_contiguous():", f"    {name} = {name}.contiguous()"]
    return [f"if {name}.stride() != {array.strides}:", f"    {name} = laid_out({name}, {array.strides})"]


def _allocated(array: Array, like: str) -> str:
    kind = TORCH_NAMES[array.dtype]
    if _is_contiguous(array):
        return f"{array.name} = torch.empty({array.shape}, dtype={kind}, device={like}.device)"
    return f"{array.name} = torch.empty_strided({array.shape}, {array.strides}, dtype={kind}, device={like}.device)"
