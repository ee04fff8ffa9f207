"""Weights in parts on several processes without a GPU: accelerate splits them (FSDP2) on accelerators alone, though
torch does so on a CPU as well."""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any

from accelerate import state
from accelerate.utils import DistributedType

from cuda_l1.training.in_parts import is_in_parts, whole_weights

SETTINGS = {
    "ACCELERATE_USE_FSDP": "true",
    "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
    "FSDP_CPU_RAM_EFFICIENT_LOADING": "true",
    "FSDP_RESHARD_AFTER_FORWARD": "true",
    "FSDP_STATE_DICT_TYPE": "FULL_STATE_DICT",
    "FSDP_VERSION": "2",
}
"""What `accelerate launch` makes of TRL's `fsdp2.yaml`, which `recipes/node8-7b.sbatch` begins with."""


def split(*stages: ModuleType) -> None:
    """From now on in this process. What accelerate makes of processes on GPUs it makes of those on a CPU; `stages` fail
    where they write weights that were in no parts."""
    os.environ |= SETTINGS
    for stage in stages:
        stage.whole_weights = _whole
    begin = state.AcceleratorState.__init__

    def begun(self: state.AcceleratorState, *args: Any, fsdp_plugin: Any = None, **others: Any) -> None:
        begin(self, *args, fsdp_plugin=fsdp_plugin, **others)
        if fsdp_plugin is not None and self.distributed_type is DistributedType.MULTI_CPU:
            self.fsdp_plugin = fsdp_plugin
            self.distributed_type = DistributedType.FSDP
            state.PartialState._shared_state["distributed_type"] = DistributedType.FSDP

    state.AcceleratorState.__init__ = begun


def _whole(model: Any) -> Any:
    assert is_in_parts(model)
    return whole_weights(model)
