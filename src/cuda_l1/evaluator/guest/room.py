"""How much of the current GPU's memory is free, in bytes."""

from __future__ import annotations

import torch


def idle_bytes() -> int:
    """What PyTorch keeps in this process and no tensor uses."""
    return torch.cuda.memory_reserved() - torch.cuda.memory_allocated()


def free_bytes() -> int:
    """What this process can have: what nobody has, and its own `idle_bytes`."""
    nobodys: int = torch.cuda.mem_get_info()[0]
    return nobodys + idle_bytes()
