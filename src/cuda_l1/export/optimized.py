"""`OptimizedModule`: a live module with an optimised forward. Imports torch, since it is an `nn.Module`."""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from cuda_l1.export.probe import modes_of


class OptimizedModule(torch.nn.Module):
    """Computes what `original` computes, with the same Parameter objects, faster where that was verified.

    `source` is a drop-in's text (see `render_dropin`); None: nothing faster was found and `original` runs, always.
    `report` says what was found out; `report["fallbacks"]` counts the calls that ran the original, by kind.

    `state_dict` keys, `load_state_dict`, `.to()`, `.train()`, pickling and deep copies are those of the original.
    Hooks of the original and of its submodules run only where the original's forward does.
    """

    report: dict[str, Any]

    def __new__(cls, original: torch.nn.Module, source: str | None, *_: Any, **__: Any) -> OptimizedModule:
        kind = cls if source is None else _guarded_class(source)
        module: OptimizedModule = torch.nn.Module.__new__(kind)
        return module

    def __init__(
        self,
        original: torch.nn.Module,
        source: str | None,
        report: dict[str, Any],
        modes: dict[str, bool] | None = None,
        structure: Any = None,
    ) -> None:
        """`modes` are the measured `training` flags by dotted path, `structure` what the measured module consisted of
        in the drop-in's words; None: those of the original as it is now.
        """
        super().__init__()
        # The very dicts of the original: whatever replaces a tensor in one is seen by the other.
        for table in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"):
            self.__dict__[table] = original.__dict__[table]
        self.__dict__.update(_wrapped=original, _source=source, training=original.training)
        self.__dict__["_modes"] = modes_of(original) if modes is None else modes
        self.__dict__["report"] = {**report, "fallbacks": dict(report.get("fallbacks", {}))}
        if source is not None:
            self._attach(_load(source), structure)

    def _attach(self, namespace: ModuleType, structure: Any) -> None:
        init = namespace.get_init_inputs() or []
        dropin = namespace._Dropin(*(((), init) if isinstance(init, dict) else (tuple(init), {})))
        dropin.fallbacks = self.report["fallbacks"]
        dropin.structure = namespace._dropin_structure(self._wrapped) if structure is None else structure
        self.__dict__["_dropin"] = dropin
        namespace._dropin_warn_elsewhere()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._wrapped(*args, **kwargs)

    def _dropin_original(self, *args: Any, **kwargs: Any) -> Any:
        return self._wrapped(*args, **kwargs)

    def _dropin_owner(self) -> torch.nn.Module:
        wrapped: torch.nn.Module = self._wrapped
        return wrapped

    def _dropin_modal(self) -> tuple[list[torch.nn.Module], list[bool]]:
        return [self._wrapped.get_submodule(path) for path in self._modes], list(self._modes.values())

    def refresh(self) -> None:
        """Build the optimised forward anew at the next call: needed after `.data = ...` on one of the tensors."""

    def train(self, mode: bool = True) -> OptimizedModule:
        self.__dict__["training"] = mode
        self._wrapped.train(mode)
        return self

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> OptimizedModule:
        self._wrapped._apply(fn, recurse)
        return self

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        self._wrapped._save_to_state_dict(destination, prefix, keep_vars)

    def _load_from_state_dict(self, *arguments: Any) -> None:
        self._wrapped._load_from_state_dict(*arguments)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if "_wrapped" not in self.__dict__:
                raise
            return getattr(self._wrapped, name)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        structure = None if self._source is None else self._dropin.structure
        return OptimizedModule, (self._wrapped, self._source, self.report, self._modes, structure)


def _guarded_class(source: str) -> type[OptimizedModule]:
    """The class for a drop-in's text: its guard in front of an OptimizedModule. One class per text and process."""
    namespace = _load(source)
    kind: type[OptimizedModule] | None = namespace.__dict__.get("_dropin_class")
    if kind is None:
        own = {"__module__": __name__, "refresh": namespace._Guarded._dropin_refresh}
        kind = type("OptimizedModule", (namespace._Guarded, OptimizedModule), own)
        namespace.__dict__["_dropin_class"] = kind
    return kind


def _load(source: str) -> ModuleType:
    """The text as a module, from a real file (Triton and `inspect` read it); loaded once per process and text."""
    name = f"cuda_l1_dropin_{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    path = Path(_folder()) / f"{name}.py"
    path.write_text(source, "utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


@cache
def _folder() -> str:
    """A folder for the texts of this process, removed at its end."""
    folder = tempfile.mkdtemp(prefix="cuda-l1-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
