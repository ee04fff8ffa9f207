"""Values computed from weights or literals alone, kept between calls and computed anew when a source changes.

Techniques write plain operations on weights into the graph and `mark` them; `hoist` moves everything marked, with what
it is computed from, into one function that `DerivedTensors` calls only when the version counter or address of
a source weight changed. `load_state_dict`, `copy_` under no_grad, `.to()` and replaced parameters are seen;
writes through `.data` or foreign memory are not, which is the limit of PyTorch's own version counter.
"""

from __future__ import annotations

import operator
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

from cuda_l1.prelude.derived_tensors import DERIVED_TENSORS
from cuda_l1.proposers.techniques.matching import is_view, set_val, val
from cuda_l1.proposers.techniques.spelling import plain
from cuda_l1.proposers.techniques.steady import steady
from cuda_l1.tasks.graph_source import print_forward, signature

if TYPE_CHECKING:
    from torch.fx import Graph, Node

    from cuda_l1.proposers.techniques.draft import Draft

DERIVED = "derived"
"""Key in `node.meta` of calls that shall be kept between calls of forward."""


def mark(nodes: Iterable[Node]) -> None:
    """Ask for these calls to be kept between calls of forward; `hoist` keeps those that depend on weights alone."""
    for node in nodes:
        node.meta[DERIVED] = True


def hoist(draft: Draft) -> None:
    """Move what is marked, and the views of it, out of forward. Does nothing where nothing is marked."""
    if draft.graph_module is None:
        return
    graph = draft.graph_module.graph
    moved = _to_move(graph)
    anchors = [node for node in graph.nodes if node.op in ("placeholder", "get_attr") and val(node) is not None]
    if not moved or not anchors:
        return
    sources = list(dict.fromkeys(s for node in moved for s in node.all_input_nodes if s.op == "get_attr"))
    leaving = [node for node in moved if any(user not in moved for user in node.users)]
    number = sum("DerivedTensors(" in statement for statement in draft.init)
    like = anchors[0]  # in the order of the graph: an argument where forward takes a tensor, else a weight
    draft.use(DERIVED_TENSORS)
    draft.use(_function(f"derive_{number}", like, sources, moved, leaving))
    draft.set_up(f"self.derived_{number} = DerivedTensors(derive_{number})")
    draft.derived_from = tuple(dict.fromkeys((*draft.derived_from, *(str(source.target) for source in sources))))
    _replace(graph, f"derived_{number}", like, sources, moved, leaving)


def _to_move(graph: Graph) -> list[Node]:
    """Marked steady calls, all that they are computed from, and views of those, in order."""
    found = steady(graph)
    wanted = {node for node in found if node.meta.get(DERIVED)}
    for node in reversed(graph.nodes):
        if node in wanted:
            wanted.update(source for source in node.all_input_nodes if source.op != "get_attr")
    for node in graph.nodes:
        if node in found and is_view(node) and node.args[0] in wanted:
            wanted.add(node)
    return [node for node in graph.nodes if node in wanted]


def _function(name: str, like: Node, sources: list[Node], moved: list[Node], leaving: list[Node]) -> str:
    """The text of `def name(like, weights...): ... return (kept tensors)`."""
    from torch.fx import Graph

    body = Graph()
    copies: dict[Node, Node] = {}
    first = body.placeholder("like")
    first.meta = dict(like.meta)
    for source in sources:
        copies[source] = body.placeholder(source.name)
        copies[source].meta = dict(source.meta)
    for node in moved:
        copies[node] = body.node_copy(node, lambda argument: copies[argument])
    body.output(tuple(copies[node] for node in leaving))
    lines = [plain(line) for line in print_forward(body)]
    return f"def {name}({', '.join(signature(body))}):\n" + textwrap.indent("\n".join(lines), "    ")


def _replace(
    graph: Graph, attribute: str, like: Node, sources: list[Node], moved: list[Node], leaving: list[Node]
) -> None:
    """Put one call in place of the moved nodes, before everything that computes."""
    anchor = next(node for node in graph.nodes if node.op == "call_function")
    with graph.inserting_before(anchor):
        arguments = []
        for source in (like, *sources):
            early = source.op == "get_attr"
            arguments.append(_repeated(graph, source) if early else source)
        callee = graph.create_node("get_attr", attribute)
        kept = graph.call_function(operator.call, (callee, *arguments))
        set_val(kept, tuple(node.meta["val"] for node in leaving))
        for index, node in enumerate(leaving):
            item = graph.call_function(operator.getitem, (kept, index))
            set_val(item, node.meta["val"])
            node.replace_all_uses_with(item)
    for node in reversed(moved):
        graph.erase_node(node)


def _repeated(graph: Graph, source: Node) -> Node:
    """The same weight read once more, so that its node stands before the call."""
    node = graph.create_node("get_attr", str(source.target))
    node.meta = dict(source.meta)
    return node
