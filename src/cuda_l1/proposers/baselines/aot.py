"""AOTInductor: the exported forward compiled ahead of time to a library, called without dynamo's guards."""

from __future__ import annotations

# State travels as inputs: constants baked into the library would be folded and would not follow changed weights.
# The library is loaded as it is: torch 2.11 unpacks a package (aoti_load_package) in /tmp, where a candidate may not
# write, whatever TMPDIR says, and crashed there outside the sandbox.
# Precompiled headers are off because torch keeps them outside the cache directory that a candidate may write.
_SUFFIX = '''
import torch
import torch._export
import torch._inductor
import torch._inductor.config

torch._inductor.config.compile_threads = 1
if hasattr(torch._inductor.config.aot_inductor, "precompile_headers"):
    torch._inductor.config.aot_inductor.precompile_headers = False


class _Functional(torch.nn.Module):
    """A module as a function of its state; holds the module where export does not see its parameters."""

    def __init__(self, module):
        super().__init__()
        self._hidden = (module,)

    def forward(self, state, args, kwargs):
        return torch.func.functional_call(self._hidden[0], state, args, kwargs)


class ModelNew(Model):
    """Model as an AOTInductor library, built in the first call for the shapes of its inputs."""

    def forward(self, *args, **kwargs):
        if torch.compiler.is_exporting():
            return super().forward(*args, **kwargs)
        state = {**dict(self.named_parameters()), **dict(self.named_buffers())}
        if "_library" not in vars(self):
            program = torch.export.export(_Functional(self), (state, args, kwargs))
            library = torch._inductor.aot_compile(program.module(), (state, args, kwargs))
            leaves = torch.utils._pytree.tree_leaves((args, state))
            device = next(leaf.device for leaf in leaves if isinstance(leaf, torch.Tensor))
            vars(self)["_library"] = torch._export.aot_load(library, str(device))
        return self._library(state, args, kwargs)

    def __getstate__(self):
        return {name: value for name, value in super().__getstate__().items() if name != "_library"}
'''


def packaged(source: str) -> str:
    """The suffix for any task; a forward that cannot be exported fails in its first call."""
    return _SUFFIX
