"""Inductor's generated code lifted out of torch.compile: the same kernels, without its guards and wrappers."""

from __future__ import annotations

import logging
import operator
from typing import TYPE_CHECKING, Any, Literal

from cuda_l1.proposers.techniques.draft import Draft
from cuda_l1.proposers.techniques.lifted_code import LiftError, generate, self_contained
from cuda_l1.proposers.techniques.matching import (
    generated,
    has_unknown_size,
    is_random,
    op_name,
    storage_root,
    val,
    writes,
)
from cuda_l1.types import digest

if TYPE_CHECKING:
    import torch
    from torch.fx import Graph, GraphModule, Node

_log = logging.getLogger(__name__)


class Inductor:
    """The whole graph as Inductor compiles it, called directly: no dynamo guards, no wrappers of autograd."""

    name = "inductor"
    devices = frozenset({"cpu", "cuda"})
    stage = 30
    precision: Literal["same", "tf32", "relaxed"] = "same"

    def __init__(self) -> None:
        self._lifted: dict[str, str | LiftError] = {}

    def applies(self, draft: Draft) -> bool:
        """Whether Inductor's code for the draft's graph stands alone; generates that code, which takes seconds."""
        if draft.graph_module is None or not _compilable(draft.graph_module.graph):
            return False
        return isinstance(self._source(draft), str)

    def apply(self, draft: Draft) -> None:
        """Replace the graph by one call of the generated code."""
        source = self._source(draft)
        if draft.graph_module is None or isinstance(source, LiftError):
            return
        draft.use(source)
        graph = draft.graph_module.graph
        inputs, results, compiled = _inputs(graph), _results(graph), _compiled(graph)
        output = next(iter(reversed(graph.nodes)))
        with graph.inserting_before(output):
            value = tuple(node.meta["val"] for node in results)
            call = generated(graph, "inductor_forward", *inputs, value=value)
            items = [graph.call_function(operator.getitem, (call, index)) for index in range(len(results))]
        for node, item in zip(results, items, strict=True):
            item.meta["val"] = node.meta["val"]
            output.replace_input_with(node, item)
        for node in reversed(compiled):
            graph.erase_node(node)

    def _source(self, draft: Draft) -> str | LiftError:
        """The prelude for this graph, or why there is none; remembered, since a search asks again and again."""
        assert draft.graph_module is not None
        key = digest(draft.device, _description(draft.graph_module.graph))
        if key not in self._lifted:
            try:
                self._lifted[key] = _lift(draft.graph_module, draft.device)
            except LiftError as error:
                _log.info("inductor does not apply to %s: %s", draft.task.name, error)
                self._lifted[key] = error
        return self._lifted[key]


def _compilable(graph: Graph) -> bool:
    """Cheap reasons to refuse: nothing to compile, random numbers, shapes that depend on data, foreign calls."""
    calls = _compiled(graph)
    known = all(hasattr(node.target, "_schema") or node.target is operator.getitem for node in calls)
    tensors = all(val(node) is not None for node in (*_inputs(graph), *_results(graph)))
    tensors = tensors and not any(map(has_unknown_size, calls))
    return bool(calls) and known and tensors and _kept_come_first(graph) and not any(map(is_random, calls))


def _is_kept(node: Node) -> bool:
    """Whether the node is a call of the prelude (values kept between calls, other kernels) or a part of its result."""
    return op_name(node) == "call" or (op_name(node) == "getitem" and _is_kept(node.all_input_nodes[0]))


def _kept_come_first(graph: Graph) -> bool:
    """Whether calls of the prelude read nothing that the compiled part computes or writes to."""
    compiled = set(_compiled(graph))
    read = {source for node in graph.nodes if _is_kept(node) for source in node.all_input_nodes}
    written = {storage_root(target) for node in compiled for target in writes(node)}
    return not read & compiled and not set(map(_identity, read)) & set(map(_identity, written))


def _compiled(graph: Graph) -> list[Node]:
    """The calls that the generated code stands for."""
    return [node for node in graph.nodes if node.op == "call_function" and not _is_kept(node)]


def _inputs(graph: Graph) -> list[Node]:
    """What the generated code takes: each parameter and buffer once, arguments of forward, results of the prelude."""
    compiled = set(_compiled(graph))
    firsts: dict[Any, Node] = {}
    for node in graph.nodes:
        if node not in compiled and compiled & set(node.users):
            firsts.setdefault(_identity(node), node)
    return list(firsts.values())


def _identity(node: Node) -> Any:
    """Equal for two nodes that read the same tensor of the module."""
    return node.target if node.op == "get_attr" else node


def _results(graph: Graph) -> list[Node]:
    """The distinct compiled nodes among the outputs."""
    output = next(iter(reversed(graph.nodes)))
    return [node for node in output.all_input_nodes if node.op == "call_function" and not _is_kept(node)]


def _description(graph: Graph) -> str:
    """Everything that the generated code depends on."""
    fixed = [(node.target, value.shape, value.stride(), value.dtype) for node in _inputs(graph) if (value := val(node))
             is not None]  # fmt: skip
    return f"{graph}{fixed}"


def _lift(module: GraphModule, device: str) -> str:
    """Prelude source for the graph. Raises LiftError; on a CUDA device also where this machine has none."""
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise LiftError("generating Triton code needs the GPU")
    place = torch.device(device, torch.cuda.current_device()) if device == "cuda" else torch.device(device)
    inputs, results = _inputs(module.graph), _results(module.graph)
    code = generate(_closed(module.graph, inputs, results, place), _fakes(inputs, place))
    arguments = _arguments(inputs) if device == "cuda" else []
    if set(arguments) & set(code.mutated):
        raise LiftError("an argument is written to, and an aligned copy of it may be needed")
    return self_contained(code, arguments, torch.__version__)


def _arguments(inputs: list[Node]) -> list[int]:
    """Indices of what a caller hands over, elements of containers included; weights lie where they were allocated."""
    return [index for index, node in enumerate(inputs) if node.op != "get_attr"]


def _fakes(inputs: list[Node], place: torch.device) -> list[torch.Tensor]:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    values = [value for node in inputs if (value := val(node)) is not None]
    with FakeTensorMode():
        return [torch.empty_strided(v.shape, v.stride(), dtype=v.dtype, device=place) for v in values]


def _closed(graph: Graph, inputs: list[Node], results: list[Node], place: torch.device) -> GraphModule:
    """A copy of the graph with every input a placeholder and a flat tuple of results, its data in one place."""
    import torch
    from torch.fx import Graph, GraphModule
    from torch.fx.node import map_aggregate

    copy = Graph()
    placeholders = {_identity(node): copy.placeholder(f"arg{index}") for index, node in enumerate(inputs)}
    twins = {node: placeholders[_identity(node)] for node in graph.nodes if _identity(node) in placeholders}

    def moved(value: Any) -> Any:
        return place if isinstance(value, torch.device) else value

    for node in _compiled(graph):
        twin = copy.node_copy(node, twins.__getitem__)
        twin.args, twin.kwargs = map_aggregate(twin.args, moved), map_aggregate(twin.kwargs, moved)
        twin.meta = {}
        twins[node] = twin
    copy.output(tuple(twins[node] for node in results))
    return GraphModule(torch.nn.Module(), copy)


TECHNIQUE = Inductor()
