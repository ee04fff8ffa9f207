"""What a drop-in was verified for, and the Python conditions that tell such a call from any other.

The conditions are straight-line text for the exact inputs, without a loop. A call that met them all once is known again
by one call of torch's `TensorGuards`, which compares type, dtype, device, sizes, strides and dispatch keys of all its
tensors at once; `beyond` names what it does not see. A guard that costs more than it protects would take back what the
search has won.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Literal

from pydantic import model_validator

from cuda_l1.prelude.derived_tensors import DERIVED_TENSORS
from cuda_l1.types import Frozen

_BARE_ADDRESSES = re.compile(r"data_ptr\(|\btriton\b|load_inline|ctypes")


def passes_addresses(source: str) -> bool:
    """Whether a candidate's kernels may read what lies at an address, whatever its dtype and size."""
    return _BARE_ADDRESSES.search(source) is not None


def watches_versions(source: str) -> bool:
    """Whether a candidate keeps something under version counters, `DerivedTensors` aside, which sees more than they."""
    return "_version" in source.replace(DERIVED_TENSORS.strip(), "")


Condition = tuple[str, str]
"""(kind of fallback when it does not hold, Python expression)."""


class TensorSpec(Frozen):
    """One tensor argument as it was measured. Strides are in elements."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str
    """Without the module's name: `float32`, `bfloat16`, `int64`."""

    @property
    def contiguous(self) -> bool:
        expected, contiguous = 1, True
        for size, stride in zip(reversed(self.shape), reversed(self.stride), strict=True):
            contiguous = contiguous and (size == 1 or stride == expected)
            expected *= max(size, 1)
        return contiguous

    def conditions(self, at: str, device: str) -> Iterator[Condition]:
        """The checks on the tensor that the expression `at` names; the guard's globals are the drop-in's."""
        yield "arguments", f"type({at}) is _dropin_Tensor"
        yield "arguments", f"not {at}.is_nested"
        yield "strides", f"{at}.layout is _dropin_strided"
        yield "device", f"{at}.is_cpu" if device == "cpu" else f"{at}.get_device() == dropin.index"
        yield "dtype", f"{at}.dtype is _dropin_{self.dtype}"
        yield "shape", f"{at}.shape == {self.shape!r}"
        yield "strides", f"{at}.is_contiguous()" if self.contiguous else f"{at}.stride() == {self.stride!r}"
        yield from self.beyond(at)
        if self.dtype.startswith("complex"):
            yield "dtype", f"not ({at}.is_conj() or {at}.is_neg())"
        elif "float" in self.dtype:
            yield "dtype", f"not {at}.is_neg()"

    def beyond(self, at: str) -> Iterator[Condition]:
        """What `TensorGuards` does not compare, or cannot be asked about: it comes before it, whatever was given."""
        yield "arguments", f"type({at}) is _dropin_Tensor and not {at}.is_nested"
        yield "alignment", f"not {at}.data_ptr() & 15"


class ValueSpec(Frozen):
    """An argument that is no tensor: verified for this value only."""

    value: bool | int | float | str | None

    def conditions(self, at: str, device: str) -> Iterator[Condition]:
        del device
        if self.value is None:
            yield "arguments", f"{at} is None"
        elif isinstance(self.value, float) and (not math.isfinite(self.value) or self.value == 0):
            yield "arguments", f"type({at}) is float and repr({at}) == {str(self.value)!r}"  # -0.0 is none of 0.0
        else:
            yield "arguments", f"type({at}) is {type(self.value).__name__} and {at} == {self.value!r}"

    def beyond(self, at: str) -> Iterator[Condition]:
        """What `TensorGuards` does not compare."""
        return self.conditions(at, "")


class SequenceSpec(Frozen):
    """A list or a tuple of arguments, its length fixed."""

    kind: Literal["list", "tuple"]
    items: tuple[Spec, ...]

    def conditions(self, at: str, device: str) -> Iterator[Condition]:
        yield self._form(at)
        for position, item in enumerate(self.items):
            yield from item.conditions(f"{at}[{position}]", device)

    def beyond(self, at: str) -> Iterator[Condition]:
        """What `TensorGuards` does not compare."""
        yield self._form(at)
        for position, item in enumerate(self.items):
            yield from item.beyond(f"{at}[{position}]")

    def _form(self, at: str) -> Condition:
        return "arguments", f"type({at}) is {self.kind} and len({at}) == {len(self.items)}"


class MappingSpec(Frozen):
    """A dict of arguments, its keys fixed, and their order too: a forward may go through its values."""

    items: dict[str, Spec]

    def conditions(self, at: str, device: str) -> Iterator[Condition]:
        yield self._form(at)
        for key, item in self.items.items():
            yield from item.conditions(f"{at}[{key!r}]", device)

    def beyond(self, at: str) -> Iterator[Condition]:
        """What `TensorGuards` does not compare."""
        yield self._form(at)
        for key, item in self.items.items():
            yield from item.beyond(f"{at}[{key!r}]")

    def _form(self, at: str) -> Condition:
        return "arguments", f"type({at}) is dict and [*{at}] == {list(self.items)!r}"


Spec = TensorSpec | ValueSpec | SequenceSpec | MappingSpec
SequenceSpec.model_rebuild()
MappingSpec.model_rebuild()


class Guard(Frozen):
    """The calls that a drop-in answers with its optimised forward, and the place where that was measured."""

    inputs: tuple[Spec, ...]
    modes: dict[str, bool]
    """`training` as it was measured, for each module (by dotted path, the root is "") that looks at it."""
    forced: Literal["train", "eval"] | None = None
    """Set where it was measured in another mode than the one that the constructor leaves it in."""
    clone: bool = False
    """Whether a later call overwrites what the candidate returned: then the drop-in hands out copies."""
    device: Literal["cpu", "cuda"]
    device_name: str
    """Another GPU model warns at construction."""
    torch: str
    """Another version warns at construction; the build's local part (`+cu130`) is left out."""

    @model_validator(mode="after")
    def _no_local_version(self) -> Guard:
        if "+" in self.torch:
            raise ValueError("Guard.torch is a version without its local part")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The positional parameters of the guarded forward."""
        return tuple(f"a{position}" for position in range(len(self.inputs)))

    def input_conditions(self) -> list[Condition]:
        """The checks on the arguments, in an order in which a later one may rely on those before it."""
        return [c for at, spec in zip(self.names, self.inputs, strict=True) for c in spec.conditions(at, self.device)]

    def beyond(self) -> list[Condition]:
        """Those of the checks on the arguments that `TensorGuards` does not make."""
        return [c for at, spec in zip(self.names, self.inputs, strict=True) for c in spec.beyond(at)]

    def tensors(self) -> Iterator[tuple[str, TensorSpec]]:
        """(expression, spec) for every tensor among the arguments, in order."""
        pending: list[tuple[str, Spec]] = list(zip(self.names, self.inputs, strict=True))
        while pending:
            at, spec = pending.pop(0)
            match spec:
                case TensorSpec():
                    yield at, spec
                case SequenceSpec():
                    pending[:0] = [(f"{at}[{i}]", item) for i, item in enumerate(spec.items)]
                case MappingSpec():
                    pending[:0] = [(f"{at}[{key!r}]", item) for key, item in spec.items.items()]
                case ValueSpec():
                    pass
