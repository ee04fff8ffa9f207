"""What every mode of ours that sees PyTorch's operations has in common."""

from __future__ import annotations

from torch.utils._python_dispatch import TorchDispatchMode


class DispatchMode(TorchDispatchMode):
    """`with mode: ...`; a subclass has `__torch_dispatch__`. Torch gives neither of these two types."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()  # type: ignore[no-untyped-call]

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Else what is compiled in the mode (`torch.cond`, `flex_attention`) is not compiled after it either."""
        return True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Else the first call imports torch's compiler: a second in each judge."""
        return False
