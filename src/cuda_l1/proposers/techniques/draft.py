"""The working copy of one candidate: a captured graph that techniques rewrite, and the text it is printed as."""

from __future__ import annotations

import functools
import operator
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from cuda_l1.proposers.techniques.capture import CaptureError, capture_graph
from cuda_l1.proposers.techniques.matching import is_literal
from cuda_l1.proposers.techniques.normal_form import normalise
from cuda_l1.proposers.techniques.spelling import plain
from cuda_l1.tasks.graph_source import literal, print_forward, signature
from cuda_l1.types import Candidate, Origin, Task

if TYPE_CHECKING:
    import torch

Device = Literal["cpu", "cuda"]

MOST_LITERAL_ELEMENTS = 4096
"""A constant made in `forward` is written into the text up to this size."""


@dataclass
class Draft:
    """One candidate being built; techniques change it in place, `render` prints it."""

    task: Task
    device: Device
    graph_module: torch.fx.GraphModule | None
    """Forward at the pre-decomposition ATen level, in normal form: placeholders are forward's arguments, `get_attr`
    nodes are parameters and buffers by their dotted name, `node.meta["val"]` is a FakeTensor (on the CPU whatever
    `device` is), results keep their Python structure. None when the forward cannot be captured."""
    failure: str = ""
    """Why there is no graph, in one line."""
    prelude: list[str] = field(default_factory=list)
    """Module-level source printed before `ModelNew`: kernels, helpers and their loaders. Equal entries print once."""
    init: list[str] = field(default_factory=list)
    """Statements run at the end of `ModelNew.__init__` (`self` is the module)."""
    wrap: list[str] = field(default_factory=list)
    """Names of prelude functions called with the finished module class: `ModelNew = name(ModelNew)`, in order."""
    derived_from: tuple[str, ...] = ()
    """Weights whose derived values are kept between calls: what is captured once must be captured anew when the
    version counter of one of them changes."""
    last: list[Callable[[Draft], None]] = field(default_factory=list)
    """Changes to the graph that only make sense once every technique has been applied."""
    techniques: tuple[str, ...] = ()
    """What was applied so far, in order."""

    def use(self, source: str) -> None:
        """Add module-level source unless it is there already."""
        if source not in self.prelude:
            self.prelude.append(source)

    def set_up(self, statement: str) -> None:
        """Add a statement to the constructor unless it is there already."""
        if statement not in self.init:
            self.init.append(statement)


def open_draft(task: Task, device: Device) -> Draft:
    """A draft of the unchanged task. Executes the task's source (the user's own file) on fake tensors.

    A forward that cannot be captured gives a draft without a graph, never an error.
    """
    try:
        module = _fresh_copy(task.source)
        return Draft(task, device, module, init=_literals(module))
    except CaptureError as error:
        return Draft(task, device, None, failure=str(error))


def _literals(module: torch.fx.GraphModule) -> list[str]:
    """Constants of `forward`, made in it or global, as buffers that follow the module's device, in no state_dict.

    A tensor of such a name that the task's own constructor makes, as that of a live module does, is there already.
    """
    from torch._subclasses.fake_tensor import FakeTensor

    names = {str(node.target) for node in module.graph.nodes if node.op == "get_attr"}
    statements = []
    for name in sorted(filter(is_literal, names)):
        owner, _, leaf = name.rpartition(".")  # the module in whose forward the constant is used
        value = operator.attrgetter(name)(module)
        if isinstance(value, FakeTensor):
            continue
        if value.numel() > MOST_LITERAL_ELEMENTS:
            raise CaptureError(f"forward makes a constant of {value.numel()} elements")
        text = f"torch.tensor({literal(value.tolist())}, dtype={value.dtype})"
        holder = f'self.get_submodule("{owner}")' if owner else "self"
        statements.append(f'{holder}.register_buffer("{leaf}", {text}, persistent=False)')
    return statements


def _fresh_copy(source: str) -> torch.fx.GraphModule:
    """A copy of the captured graph that a draft may change; its fake values are shared."""
    from torch.fx import Graph, GraphModule

    captured = _captured(source)
    if isinstance(captured, CaptureError):
        raise captured.with_traceback(None)
    graph = Graph()
    graph.output(graph.graph_copy(captured.graph, {}))
    return GraphModule(captured, graph)


@functools.lru_cache(maxsize=8)
def _captured(source: str) -> torch.fx.GraphModule | CaptureError:
    """The error, too, is kept: each technique of a search asks, and it can take ten seconds to find out."""
    try:
        module = capture_graph(source)
        normalise(module)
    except CaptureError as error:
        return error
    return module


def render(draft: Draft) -> str:
    """The candidate's text: the task's own source, the prelude, and `ModelNew(Model)` with the printed forward.

    Constructor, parameter names, initialisation and state_dict keys are the reference's own; the printed forward is
    valid for the captured shapes only. Raises TaskError for a graph that has no text.
    """
    parts = [draft.task.source.rstrip() + "\n", "import operator\n\nimport torch\n"]
    parts += [text.strip("\n") + "\n" for text in dict.fromkeys(draft.prelude)]
    body = "\n\n".join(filter(None, [_constructor(draft), _forward(draft)])) or "pass"
    parts.append("class ModelNew(Model):\n" + textwrap.indent(body, "    ") + "\n")
    parts += [f"ModelNew = {name}(ModelNew)\n" for name in draft.wrap]
    return "\n\n".join(parts)


def _forward(draft: Draft) -> str:
    if draft.graph_module is None:
        return ""
    graph = draft.graph_module.graph
    lines = [plain(line) for line in print_forward(graph, free=True)]
    return f"def forward({', '.join(['self', *signature(graph)])}):\n" + textwrap.indent("\n".join(lines), "    ")


def _constructor(draft: Draft) -> str:
    if not draft.init:
        return ""
    lines = ["def __init__(self, *args, **kwargs):", "    super().__init__(*args, **kwargs)"]
    return "\n".join(lines + [textwrap.indent(text, "    ") for text in draft.init])


def candidate(draft: Draft, rationale: str) -> Candidate:
    """The candidate that a finished draft stands for."""
    origin = Origin(proposer="techniques", techniques=draft.techniques)
    return Candidate.of(draft.task, render(draft), origin, rationale)
