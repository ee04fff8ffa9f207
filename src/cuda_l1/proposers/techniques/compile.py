"""torch.compile around whatever the draft prints, so that rewrites of the graph meet Inductor's fusion."""

from __future__ import annotations

import operator
from typing import Literal

from cuda_l1.proposers.techniques.draft import Draft
from cuda_l1.proposers.techniques.matching import op_name

_WRAPPER = '''
import torch._dynamo
import torch._inductor.config


def compiled_as_one_graph(base):
    """The module class with its forward under torch.compile, for one set of shapes; a graph break is an error."""

    class ModelNew(base):
        compiled_forward = torch.compile(base.forward, fullgraph=True, dynamic=False)

        def forward(self, *args, **kwargs):
            # One compile thread: a pool of workers would outlive the compilation.
            with torch._inductor.config.patch(compile_threads=1, cpp_cache_precompile_headers=False):
                outputs = self.compiled_forward(*args, **kwargs)
            vars(self)["forward"] = self.compiled_forward
            return outputs

        def __getstate__(self):
            return {name: value for name, value in super().__getstate__().items() if name != "forward"}

    return ModelNew
'''


class Compile:
    """torch.compile over the rewritten forward, as one graph."""

    name = "compile"
    devices = frozenset({"cpu", "cuda"})
    stage = 50
    precision: Literal["same", "tf32", "relaxed"] = "same"

    def applies(self, draft: Draft) -> bool:
        """Whether other techniques changed the graph (unchanged it is a baseline) and left only ATen calls in it."""
        if draft.graph_module is None or not draft.techniques or draft.wrap:
            return False
        calls = [node for node in draft.graph_module.graph.nodes if node.op == "call_function"]
        plain = all(hasattr(node.target, "_schema") or node.target is operator.getitem for node in calls)
        return plain and any(op_name(node) != "getitem" for node in calls)

    def apply(self, draft: Draft) -> None:
        """Wrap the finished class."""
        draft.use(_WRAPPER)
        draft.wrap.append("compiled_as_one_graph")


TECHNIQUE = Compile()
