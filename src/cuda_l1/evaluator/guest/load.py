"""Turning source files into modules and models. Used by judge (the reference), runner and build (the candidate)."""

from __future__ import annotations

import _random
import contextlib
import importlib.util
import json
import linecache
import random
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, TypeVar

import torch

Made = TypeVar("Made")

PUBLIC_SEED = 42

_SAFETENSORS_DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
    "BOOL": torch.bool, "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2, "C64": torch.complex64,
}  # fmt: skip


def load_module(path: str, name: str, names: Mapping[str, Any] = MappingProxyType({})) -> ModuleType:
    """Execute the file as module `name`, where `names` are known. A real file: Triton and `inspect` read the source of
    what they compile."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    vars(module).update({key: value for key, value in names.items() if not key.startswith("__")})
    sys.modules[name] = module
    linecache.checkcache(path)
    spec.loader.exec_module(module)
    return module


def seed_everything(seed: int) -> None:
    """Seed torch (CPU and GPUs) and `random`; numpy too where it is already imported."""
    # `torch.manual_seed` also notes, with the stack as text, what to do should another kind of device be started, which
    # takes half a millisecond for each.
    torch.default_generator.manual_seed(seed)
    if torch.version.cuda or torch.version.hip:
        torch.cuda.manual_seed_all(seed)
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)


class Seeds:
    """Sets the same seeds in a process that holds a candidate. What it calls is bound before the candidate is loaded:
    nothing that a candidate puts in its place runs while a timed call is being prepared."""

    def __init__(self) -> None:
        self._torch = [g.manual_seed for g in (torch.default_generator, *torch.cuda.default_generators)]
        self._own: Any = random._inst  # what `random.random` and the others draw from
        self._python = _random.Random.seed
        numpy = sys.modules.get("numpy")
        self._numpy = numpy.random.seed if numpy is not None else None

    def set(self, seed: int) -> None:
        """As `seed_everything`, on devices that are in use."""
        for manual_seed in self._torch:
            manual_seed(seed)
        self._python(self._own, seed)
        self._own.gauss_next = None
        if self._numpy is not None:
            self._numpy(seed % 2**32)


def construct(cls: Any, init: Any, device: str, seed: int = PUBLIC_SEED) -> torch.nn.Module:
    """`cls(*init)` under a seed, its tensors made on `device`; not moved out of the mode that it constructs itself in.

    A dict as the last element stands for keyword arguments only when `init` is itself a dict.
    """

    def make() -> Any:
        seed_everything(seed)
        return cls(**init) if isinstance(init, dict) else cls(*init)

    model = made_on(device, make)
    if isinstance(model, torch.nn.Module):
        if any(tensor.is_meta for tensor in (*model.parameters(), *model.buffers())):
            move: Any = model._apply  # what holds nothing, a template for `functional_call`, stays where it is
            move(lambda tensor: tensor if tensor.is_meta else tensor.to(device))
        else:
            model.to(device)
    return model  # type: ignore[no-any-return]  # whatever the class makes: the caller checks


_SHORT = re.compile(r"can't allocate memory|out of memory|_ALLOC_FAILED", re.IGNORECASE)
"""What libraries say whose errors torch passes on: of a CPU's memory, and of cuBLAS's or cuDNN's own."""


def is_short_of_memory(error: BaseException) -> bool:
    """Whether an exception says that there is no memory left, whoever asked for it."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and _SHORT.search(str(error)) is not None
    )


def made_on(device: str, make: Callable[[], Made]) -> Made:
    """What `make` gives where new tensors are made on `device`, or else, where its own text keeps some on the CPU (a
    `torch.Generator()`, an array of NumPy's), on the CPU. Where both are refused, the first refusal is raised."""
    refusals = (RuntimeError, TypeError)
    try:
        with torch.device(device):
            return make()
    except refusals as refused:
        if torch.device(device).type != "cpu" and not is_short_of_memory(refused):
            with contextlib.suppress(*refusals), torch.device("cpu"):
                return make()
        raise


def set_mode(model: torch.nn.Module, mode: str) -> None:
    """`train` or `eval`, by the module's own method; where that of some module in it refuses, as what torch.export
    makes does, that one is only marked, and all others are asked one by one."""
    try:
        model.train(mode == "train")
    except NotImplementedError:
        model.training = mode == "train"
        for child in model.children():
            set_mode(child, mode)


def read_safetensors(path: str) -> dict[str, torch.Tensor]:
    """The tensors of a safetensors file, on the CPU (format: 8-byte header length, JSON header, raw bytes)."""
    data = bytearray(Path(path).read_bytes())
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        dtype = _SAFETENSORS_DTYPES[entry["dtype"]]
        if end == begin:
            tensors[name] = torch.empty(entry["shape"], dtype=dtype)
            continue
        raw = torch.frombuffer(data, dtype=torch.uint8, count=end - begin, offset=8 + length + begin)
        tensors[name] = raw.clone().view(dtype).reshape(entry["shape"])
    return tensors
