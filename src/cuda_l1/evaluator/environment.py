"""Facts of the machine without torch: the device, the lane, the environment that guests may see, the device lease."""

from __future__ import annotations

import os
from collections.abc import Mapping

_PASSED_ON = (
    "PATH",
    "LANG",
    "LC_ALL",
    "TZ",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "LD_LIBRARY_PATH",
    "TORCH_CUDA_ARCH_LIST",
    "CC",
    "CXX",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NCCL_NVLS_ENABLE",
)


def guest_environment(source: Mapping[str, str] | None = None, **extra: str) -> dict[str, str]:
    """The allow-listed environment for the fork template: all that any guest can see of ours, no token or key.

    `source` defaults to this process's own; `extra` adds to it, e.g. `TORCH_CUDA_ARCH_LIST="9.0"`.
    """
    inherited = os.environ if source is None else source
    allowed = {name: inherited[name] for name in _PASSED_ON if inherited.get(name)}
    return {"PATH": os.defpath, "LANG": "C.UTF-8", **allowed, "OPENBLAS_NUM_THREADS": "1", **extra}


def work_environment(work_dir: str) -> dict[str, str]:
    """Where a guest's tools may write: everything below its work directory, as the guest sees it."""
    return {
        "HOME": work_dir,
        "TMPDIR": f"{work_dir}/tmp",
        "TORCH_EXTENSIONS_DIR": f"{work_dir}/extensions",
        "TRITON_CACHE_DIR": f"{work_dir}/triton",
        "TORCHINDUCTOR_CACHE_DIR": f"{work_dir}/inductor",
        "CUDA_CACHE_PATH": f"{work_dir}/cuda",
        "USER": "guest",
    }
