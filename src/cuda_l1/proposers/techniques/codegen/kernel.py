"""One fused function: its inputs, results, workspaces and plans, and the Python that allocates and calls."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cuda_l1.proposers.techniques.codegen.ir import ITEMSIZE, Shape, Unsupported, topological
from cuda_l1.proposers.techniques.codegen.lowering import TORCH_NAMES, Lowering, contiguous, dtype_of
from cuda_l1.proposers.techniques.codegen.plan import Buffer, Plan, make_buffers, plan_nest
from cuda_l1.proposers.techniques.codegen.schedule import schedule
from cuda_l1.proposers.techniques.matching import tensor

if TYPE_CHECKING:
    from torch.fx import Node


STREAM_BYTES = 2 << 20
"""Results of this size leave the second-level cache before anybody reads them."""


@dataclass(frozen=True)
class Kernel:
    """What a region becomes."""

    name: str
    plans: list[Plan]
    inputs: list[Buffer]
    nodes: list[Node]
    """The graph nodes that are passed, in the order of `inputs`."""
    results: list[Buffer]
    """Tensors that are allocated and returned, in order of the region's outputs (one may stand for several)."""
    workspaces: list[Buffer]
    shapes: dict[str, Shape]
    returned: list[str]
    """Name of the result for each output of the region."""

    @property
    def pointers(self) -> list[Buffer]:
        return [*self.inputs, *self.results, *self.workspaces]

    def bytes_of(self, buffer: Buffer) -> int:
        """Size of an allocation."""
        total = ITEMSIZE[buffer.dtype]
        for size in self.shapes[buffer.name]:
            total *= size
        return total


def make_kernel(name: str, nodes: Sequence[Node], outputs: Sequence[Node]) -> Kernel:
    """Lower, schedule and plan a region (`nodes` in graph order). Raises Unsupported."""
    program = Lowering(nodes).run(nodes, outputs)
    values = list(program.outputs.values())
    nests = schedule(values)
    sources = [value.attrs["source"] for value in topological(values) if value.op == "load"]
    sources = list(dict.fromkeys(sources))
    if not sources:
        raise Unsupported("nothing to read: a constant")
    dtypes = {node: dtype_of(node) for node in sources}
    streamed = {node for node in outputs if _large(node) and all(user.op == "output" for user in node.users)}
    buffers = make_buffers(nests, program.outputs, program.layouts, sources, dtypes, streamed)
    plans = [plan_nest(nest, buffers) for nest in nests]
    stored = {value: buffers[value] for nest in nests for value in nest.stored}
    shapes = {buffer.name: value.shape for value, buffer in stored.items()}
    wanted = dict.fromkeys(buffers[value] for value in values)
    return Kernel(
        name=name,
        plans=plans,
        inputs=[buffers[node] for node in sources],
        nodes=sources,
        results=list(wanted),
        workspaces=[buffer for buffer in stored.values() if buffer not in wanted],
        shapes=shapes,
        returned=[buffers[value].name for value in values],
    )


def _large(node: Node) -> bool:
    return tensor(node).nbytes >= STREAM_BYTES


def python_function(kernel: Kernel, launch: Sequence[str]) -> str:
    """`def name(in0, ...)`: bring inputs into the captured layout, allocate, launch, return."""
    names = [buffer.name for buffer in kernel.inputs]
    lines = [line for buffer, node in zip(kernel.inputs, kernel.nodes, strict=True) for line in _checked(buffer, node)]
    like = kernel.inputs[0].name if kernel.inputs else None
    lines += [_allocated(buffer, kernel.shapes[buffer.name], like) for buffer in [*kernel.results, *kernel.workspaces]]
    lines += launch
    lines.append(f"return {', '.join(kernel.returned)}")
    return f"def {kernel.name}({', '.join(names)}):\n" + textwrap.indent("\n".join(lines), "    ") + "\n"


def _checked(buffer: Buffer, node: Any) -> list[str]:
    value = tensor(node)
    strides = tuple(int(stride) for stride in value.stride())
    name = buffer.name
    if value.is_contiguous():
        return [f"if not {name}.is_contiguous():", f"    {name} = {name}.contiguous()"]
    return [f"if {name}.stride() != {strides}:", f"    {name} = laid_out({name}, {strides})"]


def _allocated(buffer: Buffer, sizes: Shape, like: str | None) -> str:
    where = f", device={like}.device" if like else ""
    kind = TORCH_NAMES[buffer.dtype]
    if buffer.strides == contiguous(sizes):
        return f"{buffer.name} = torch.empty({tuple(sizes)}, dtype={kind}{where})"
    return f"{buffer.name} = torch.empty_strided({tuple(sizes)}, {buffer.strides}, dtype={kind}{where})"
