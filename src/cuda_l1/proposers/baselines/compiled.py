"""torch.compile in its modes, for one set of shapes, failing instead of falling back."""

from __future__ import annotations

# Compiled as a plain function on the class, not bound in __init__, so that a deep copy of the module compiles for
# itself. One compile thread: a pool of workers would outlive the compilation and run while something is timed.
# Precompiled headers (hundreds of MB) lie outside the cache directory, and a fresh process would make them anew.
_TEMPLATE = '''
import torch
import torch._dynamo
import torch._inductor.config

torch._dynamo.config.suppress_errors = False
torch._inductor.config.compile_threads = 1
torch._inductor.config.cpp_cache_precompile_headers = False


class ModelNew(Model):
    """Model under torch.compile{mode_text}; raises RuntimeError where it was not compiled as one graph."""

    _baseline_compiled = torch.compile(Model.forward, fullgraph=True, dynamic=False{mode_argument})
    _baseline_calls = 0

    def forward(self, *args, **kwargs):
        outputs = self._baseline_compiled(*args, **kwargs)
        if self._baseline_calls < {settling_calls}:
            self._baseline_calls += 1
            self._baseline_check()
        return outputs

    def _baseline_check(self):
        counters = torch._dynamo.utils.counters
        if not counters["stats"]["unique_graphs"]:
            raise RuntimeError("baseline fell back: torch.compile compiled no graph")
        if counters["graph_break"]:
            raise RuntimeError(f"baseline fell back: graph break: {{next(iter(counters['graph_break']))}}")
{graph_check}'''

# A graph is warmed up in the first call, recorded in the second, replayed from the third.
_GRAPH_CHECK = """        if counters["inductor"]["cudagraph_skips"]:
            raise RuntimeError("baseline fell back: Inductor skipped CUDA graphs")
        if self._baseline_calls == 3 and not self._baseline_graphs():
            raise RuntimeError("baseline fell back: Inductor recorded no CUDA graph")

    def _baseline_graphs(self):
        from torch._inductor.cudagraph_trees import get_manager

        manager = get_manager(torch.cuda.current_device(), create_if_none_exists=False)
        return manager is not None and any(manager.roots.values())
"""


def default(source: str) -> str:
    """torch.compile without options."""
    return _TEMPLATE.format(mode_text="", mode_argument="", settling_calls=1, graph_check="")


def reduce_overhead(source: str) -> str:
    """torch.compile with CUDA graphs."""
    return _with_graphs("reduce-overhead")


def max_autotune(source: str) -> str:
    """torch.compile with tuned matrix products and CUDA graphs."""
    return _with_graphs("max-autotune")


def _with_graphs(mode: str) -> str:
    return _TEMPLATE.format(
        mode_text=f" (mode={mode})", mode_argument=f', mode="{mode}"', settling_calls=3, graph_check=_GRAPH_CHECK
    )
