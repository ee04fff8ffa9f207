"""Print a captured module as a KernelBench-format file with the module's own names for its state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import indent
from typing import TYPE_CHECKING, Any

from cuda_l1.errors import TaskError
from cuda_l1.tasks.embedding import DECODER, embed
from cuda_l1.tasks.examples import render_examples
from cuda_l1.tasks.graph_source import attribute, capture, print_forward, signature
from cuda_l1.tasks.live_check import kept_attributes

if TYPE_CHECKING:
    import torch

_FILE = '''"""{name}, printed from a live module: its tensors under its names, `forward` as ATen calls."""

{imports}


def _attach(root, name, value, persistent=True):
    """Register a parameter or buffer under a dotted name, with plain modules on the way."""
    *path, leaf = name.split(".")
    for part in path:
        if part not in root._modules:
            root.add_module(part, nn.Module())
        root = root._modules[part]
    if isinstance(value, nn.Parameter):
        root.register_parameter(leaf, value)
    else:
        root.register_buffer(leaf, value, persistent=persistent)

{decoder}
class Model(nn.Module):
    def __init__(self):
        super().__init__()
{state}
    def forward({arguments}):
{body}


{inputs}

def get_init_inputs():
    return []
'''


def render_module(module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """The file; its `forward` takes the arguments of this call by position. Raises TaskError."""
    graph_module = _captured(module, args, kwargs)
    names = signature(graph_module)
    lines = print_forward(graph_module, free=True)
    state = "".join(f"{line}\n" for line in (*_state(module), *_constants(module, graph_module)))
    inputs = render_examples([*args, *_in_order(names[len(args) :], kwargs)])
    text = _FILE.format(
        name=type(module).__name__,
        imports=_imports(state, lines),
        decoder=f"{DECODER}\n" if "_decoded(" in state else "",
        state=indent(state, " " * 8),
        arguments=", ".join(["self", *names]),
        body=indent("\n".join(lines), " " * 8),
        inputs=inputs,
    )
    return _without_second_decoder(text)


def _captured(module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> torch.fx.GraphModule:
    """The graph; the module keeps none of the fake tensors that a trace leaves where `forward` fills a table."""
    known = {name for name, _ in module.named_buffers()}
    with kept_attributes(module):
        graph_module = capture(module, args, kwargs)
        filled = [name for name, _ in module.named_buffers() if name not in known]
    if filled:
        raise TaskError(
            f"{type(module).__name__}: forward fills the buffer `{filled[0]}`, which a trace cannot hold; "
            "call the module once first"
        )
    return graph_module


def _in_order(names: Sequence[str], kwargs: Mapping[str, Any]) -> list[Any]:
    return [kwargs[name] for name in names]


def _imports(state: str, lines: Sequence[str]) -> str:
    """The imports that the text needs, sorted."""
    wanted = [name for name in ("math", "operator") if any(f"{name}." in line for line in lines)]
    wanted += ["base64", "zlib"] if "_decoded(" in state else []
    return "\n".join([*(f"import {name}" for name in sorted(wanted)), "import torch", "import torch.nn as nn"])


def _without_second_decoder(text: str) -> str:
    """The inputs may need the decoder too; one definition is enough."""
    head, found, tail = text.partition(DECODER)
    return head + found + tail.replace(DECODER, "") if found else text


def _state(module: torch.nn.Module) -> Iterator[str]:
    """A line per parameter and persistent buffer; tied ones are registered as the same tensor."""
    import torch

    seen: dict[int, str] = {}
    persistent = set(module.state_dict(keep_vars=True))
    tensors: list[tuple[str, torch.Tensor]] = [
        *module.named_parameters(remove_duplicate=False),
        *((name, buffer) for name, buffer in module.named_buffers(remove_duplicate=False) if name in persistent),
    ]
    missing = persistent - {name for name, _ in tensors}
    if missing:
        raise TaskError(f"{type(module).__name__}: its state_dict holds `{sorted(missing)[0]}`, no parameter or buffer")
    for name, tensor in tensors:
        if id(tensor) in seen:
            value = attribute(seen[id(tensor)])
        elif isinstance(tensor, torch.nn.Parameter):
            value = f"nn.Parameter({_strided(tensor, name)}{'' if tensor.requires_grad else ', requires_grad=False'})"
        else:
            value = _strided(tensor, name)
        _refuse_expanded(tensor, name)
        seen.setdefault(id(tensor), name)
        yield f'_attach(self, "{name}", {value})'


def _refuse_expanded(tensor: torch.Tensor, name: str) -> None:
    """No state can be loaded into an expanded tensor, and code compiled for a contiguous one refuses it."""
    if any(step == 0 and size > 1 for size, step in zip(tensor.shape, tensor.stride(), strict=True)):
        raise TaskError(f"`{name}` is expanded, its elements share memory; keep `{name}.contiguous()` in its place")


def _strided(tensor: torch.Tensor, name: str) -> str:
    """`_initial` in the layout of `tensor` (channels last, transposed): what is judged has the strides that it is used
    with. Parts of larger tensors become contiguous.
    """
    import torch

    value = _initial(tensor, name)
    if torch.empty_like(tensor).stride() != tensor.stride() or tensor.is_contiguous():
        return value
    return f"torch.empty_strided({tuple(tensor.shape)}, {tensor.stride()}, dtype={tensor.dtype}).copy_({value})"


def _initial(tensor: torch.Tensor, name: str) -> str:
    """What a parameter or buffer holds until its weights are loaded.

    Floating parameters are drawn with the deviation that they have; buffers and integers, which may be tables or
    masks, are written down where they are small, and loaded otherwise.
    """
    import torch

    shape, dtype = tuple(tensor.shape), tensor.dtype
    if isinstance(tensor, torch.nn.Parameter) and dtype.is_floating_point and dtype.itemsize > 1 and tensor.numel() > 1:
        mean, deviation = tensor.detach().double().mean().item(), tensor.detach().double().std(correction=0).item()
        cast = "" if dtype == torch.float32 else f".to({dtype})"
        return f"({mean:.4g} + {deviation:.4g} * torch.randn({shape})){cast}"
    if tensor.numel() <= 4096:
        return embed(tensor, name)
    return f"torch.zeros({shape}, dtype={dtype})"


def _constants(module: torch.nn.Module, graph_module: torch.fx.GraphModule) -> Iterator[str]:
    """A line per tensor that `forward` reads and no state_dict holds: its exact values are part of the source."""
    known = set(module.state_dict(keep_vars=True))
    targets = [str(node.target) for node in graph_module.graph.nodes if node.op == "get_attr"]
    for name in dict.fromkeys(targets):
        if name not in known:
            tensor = _tensor(graph_module, name)
            _refuse_expanded(tensor, name)
            yield f'_attach(self, "{name}", {embed(tensor, f"`{name}`")}, persistent=False)'


def _tensor(root: Any, name: str) -> Any:
    for part in name.split("."):
        root = getattr(root, part)
    return root
