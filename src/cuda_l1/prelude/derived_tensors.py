"""The class that keeps what is computed from weights."""

from __future__ import annotations

DERIVED_TENSORS = '''
from torch.optim.optimizer import register_optimizer_step_post_hook as _after_optimizer_step

_OPTIMIZER_STEPS = [0]


def _count_optimizer_step(*_):
    _OPTIMIZER_STEPS[0] += 1  # fused optimisers write to weights and count no versions


_after_optimizer_step(_count_optimizer_step)


class DerivedTensors:
    """Tensors computed from weights, computed anew when a weight was written to, moved, cast or replaced.

    A source's memory cannot be reused while it is held here, so an equal address means the same memory.
    """

    def __init__(self, compute):
        self.compute, self.key, self.held, self.tensors = compute, None, None, None

    def __call__(self, like, *sources):
        if any(source.is_inference() for source in sources):  # such tensors count no versions
            return self.compute(like, *sources)
        key = [(source._version, source.data_ptr()) for source in sources]
        key += [like.device, _OPTIMIZER_STEPS[0]]
        if key != self.key:
            with torch.inference_mode(False), torch.no_grad(), torch.autocast(like.device.type, enabled=False):
                self.tensors = self.compute(like, *sources)
            self.key, self.held = key, [source.detach() for source in sources]
        return self.tensors

    def __deepcopy__(self, memo):
        return DerivedTensors(self.compute)

    def __reduce__(self):
        return DerivedTensors, (self.compute,)
'''
