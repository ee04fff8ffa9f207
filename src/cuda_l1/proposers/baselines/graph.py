"""The forward as one CUDA graph."""

from __future__ import annotations

CAPTURE = '''
import torch
from torch.utils import _pytree as pytree


class CapturedForward:
    """A forward as one CUDA graph: call it like the forward; under no_grad semantics, for one signature at a time.

    Each call copies the inputs into static buffers, replays, and copies the outputs out of the graph's memory: the
    next replay overwrites that memory, so an output handed out directly would change under its owner. The graph
    reads parameters and buffers where they lay at capture, so values changed in place are seen; where a tensor of
    a module was replaced, the mode or the signature of the inputs changed, the forward is captured anew. (A submodule
    replaced as a whole is not noticed.) Raises RuntimeError where no tensor is on a GPU, and where the forward keeps
    state other than in tensors changed in place.

    `derived_from`: dotted names of weights from which the forward keeps values of its own between calls. The graph
    holds those values, so it is captured anew once such a weight was written to.
    """

    def __init__(self, module, forward, derived_from=()):
        self._module = module
        self._forward = forward
        self._derived_from = derived_from
        self._signature = None
        self._state = self._addresses = None
        self._owners = self._names = self._sources = ()

    def __call__(self, *args, **kwargs):
        leaves, spec = pytree.tree_flatten((args, kwargs))
        signature = [_signature(leaf) for leaf in leaves]
        with torch.no_grad():
            if signature != self._signature or spec != self._spec or self._state_key() != self._state:
                self._signature = None
                self._capture(leaves, spec)
                self._signature = signature
            inputs = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
            for static, given in zip(self._inputs, inputs):
                static.copy_(given)
            self._graph.replay()
            for index in self._changed_inputs:
                inputs[index].copy_(self._inputs[index])
            outputs = [leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in self._outputs]
        return pytree.tree_unflatten(outputs, self._output_spec)

    @torch.inference_mode(False)  # static buffers made under inference_mode could not be written outside it
    @torch.no_grad()
    def _capture(self, leaves, spec):
        self._spec = spec
        static = [_static(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self._inputs = [leaf for leaf in static if isinstance(leaf, torch.Tensor)]
        args, kwargs = pytree.tree_unflatten(static, spec)
        self._remember_state()
        with torch.cuda.device(self._device()):
            self._warm_up(args, kwargs)
            self._state = self._state_key()
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
                outputs = self._forward(*args, **kwargs)
        self._outputs, self._output_spec = pytree.tree_flatten(outputs)

    def _remember_state(self):
        slots = [(owner, name) for module in self._module.modules() for owner, name in _tensor_slots(module)]
        self._owners, self._names = zip(*slots) if slots else ((), ())
        self._sources = [_attribute(self._module, name) for name in self._derived_from]
        # Aliases keep replaced storage alive, so that no other tensor can come to lie at a remembered address.
        self._held = [owner[name].detach() for owner, name in slots]
        self._addresses = self._state_addresses()

    def _device(self):
        devices = [tensor.device for tensor in [*self._inputs, *self._held] if tensor.is_cuda]
        if not devices:
            raise RuntimeError("not capturable as a CUDA graph: neither inputs nor state are on a GPU")
        return devices[0]

    def _warm_up(self, args, kwargs):
        """Run once on a side stream, then undo what the run changed; remember which inputs it changes."""
        before = [tensor.clone() for tensor in self._held]
        input_versions = [tensor._version for tensor in self._inputs]
        attributes = _attributes(self._module)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self._forward(*args, **kwargs)
        torch.cuda.current_stream().wait_stream(side)
        if not _same_objects(attributes, _attributes(self._module)) or self._state_addresses() != self._addresses:
            raise RuntimeError("not capturable as a CUDA graph: the forward assigns attributes of its module")
        for tensor, value in zip(self._held, before):
            if not torch.equal(tensor, value):  # not by version: batch_norm's running statistics keep theirs
                tensor.copy_(value)
        self._changed_inputs = [i for i, tensor in enumerate(self._inputs) if tensor._version != input_versions[i]]

    def _state_key(self):
        return [self._module.training, *self._state_addresses(), *(source._version for source in self._sources)]

    def _state_addresses(self):
        return [owner[name].data_ptr() for owner, name in zip(self._owners, self._names)]


def _signature(leaf):
    return (leaf.shape, leaf.dtype, leaf.device) if isinstance(leaf, torch.Tensor) else leaf


def _attribute(module, name):
    for part in name.split("."):
        module = getattr(module, part)
    return module


def _static(tensor):
    return torch.empty_like(tensor, memory_format=torch.preserve_format).copy_(tensor)


def _tensor_slots(module):
    """Where a module keeps tensors: (dictionary, key) of its parameters, buffers and plain attributes."""
    for owner in (module._parameters, module._buffers, vars(module)):
        yield from ((owner, name) for name, value in owner.items() if isinstance(value, torch.Tensor))


def _attributes(module):
    """Everything that a forward could assign to an attribute, by owner and name."""
    return {(id(child), name): value for child in module.modules() for name, value in vars(child).items()}


def _same_objects(before, after):
    return before.keys() == after.keys() and all(after[key] is value for key, value in before.items())
'''

_SUFFIX = '''

class ModelNew(Model):
    """Model replayed as a CUDA graph that is captured in the first call."""

    def forward(self, *args, **kwargs):
        if "_captured" not in vars(self):
            vars(self)["_captured"] = CapturedForward(self, super().forward)
        return self._captured(*args, **kwargs)

    def __getstate__(self):
        return {name: value for name, value in super().__getstate__().items() if name != "_captured"}
'''


def captured(source: str) -> str:
    """The suffix for any task; a forward that cannot be captured fails in its first call."""
    return CAPTURE + _SUFFIX
