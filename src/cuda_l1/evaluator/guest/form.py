"""The form of an answer: what a call must deliver, and shapes, dtypes, nesting and memory of what came back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .evidence import Wrong
from .reference import Answer, Reference
from .session import NO_PARTNER, Reply


@dataclass(frozen=True)
class Form:
    """What the reference's answers look like: outputs, then inputs and state that a call changes."""

    reference: Reference

    def request(
        self,
        slots: Sequence[dict[str, Any]],
        seed: int | None = None,
        *,
        compare_state: bool = False,
        dirt: int | None = None,
        stays: bool = False,
        goes_on: bool = False,
        in_a_row: bool = False,
        exchanged: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """What a call must deliver. `compare_state`: and whether it left the weights alone. `dirt`: a byte that its
        memory holds at first. `stays`: the state that it leaves is there for the next call, which `goes_on`,
        and its inputs are tensors of its own, which that state may keep. `in_a_row`: they are, too, and what it changes
        is not delivered. `exchanged`: where weights lie that come into their places right after a call that has looked
        at those which are there."""
        return {
            "slots": list(slots),
            "changed_args": self.reference.changed_args,
            "changed_state": self.reference.changed_state,
            "seed": seed,
            "compare_state": compare_state,
            "dirt": dirt,
            "stays": stays,
            "goes_on": goes_on,
            "in_a_row": in_a_row,
            **({"state": exchanged, "looks": True} if exchanged else {}),
        }

    def places_of_state(self, expected: Answer) -> set[int]:
        """Where in an answer the state stands that the reference changes."""
        count = len(expected.tensors)
        return set(range(count - len(self.reference.changed_state), count))

    def compare(self, reply: Reply, answer: Answer) -> None:
        """Number, nesting, shapes and dtypes of a reply against those of the reference's answer. Raises Wrong."""
        outputs, expected = reply.outputs, answer.tensors
        count = self.output_count(answer)
        if len(outputs) != len(expected):
            got = len(outputs) - (len(expected) - count)
            raise Wrong(
                "NO_OUTPUT" if got <= 0 else "WRONG_SHAPE", f"{max(got, 0)} output tensors where {count} are due"
            )
        for index, (out, want) in enumerate(zip(outputs, expected, strict=True)):
            self._compare_tensor(self.place_name(index, answer), out, want, is_output=index < count)
        for index, out in enumerate(outputs[:count]):
            self._compare_memory(index, out)
        if reply.shared - self.reference.shares:
            raise Wrong("WRONG_VALUES", "two outputs are one tensor; the reference's are not")
        if reply.exposed - self.reference.exposes:
            raise Wrong("WRONG_VALUES", "an output is a parameter or buffer of the module; the reference's is not")
        # Its own process tells, and only what is saved of it afterwards would give a lie away: no answer does.
        if reply.overwritten:
            raise Wrong(
                "WRONG_VALUES", f"`{reply.overwritten[0]}` is changed by the call; the reference leaves it alone"
            )
        if reply.rearranged and not self.reference.rearranges:
            text = "an input has another shape, layout or length after the call; the reference leaves it alone"
            raise Wrong("WRONG_VALUES", text)
        if reply.structure != answer.structure:
            raise Wrong("WRONG_SHAPE", f"the outputs are nested as {reply.structure}, not {answer.structure}"[:300])

    def output_count(self, answer: Answer) -> int:
        """How many of an answer's tensors the call returned; changed inputs and changed state follow."""
        return len(answer.tensors) - len(self.reference.changed_args) - len(self.reference.changed_state)

    def place_name(self, index: int, answer: Answer) -> str:
        """What the tensor at this place of an answer is, for a reader."""
        outputs, args = self.output_count(answer), self.reference.changed_args
        if index < outputs:
            return f"output {index}"
        if index < outputs + len(args):
            return f"input {args[index - outputs]} after the call"
        return f"`{self.reference.changed_state[index - outputs - len(args)]}` after the call"

    def _compare_tensor(self, name: str, out: dict[str, Any], want: torch.Tensor, *, is_output: bool) -> None:
        if out.get("problem") == NO_PARTNER and not is_output:
            return
        if out.get("problem"):
            raise Wrong("NO_OUTPUT", f"{name}: {out['problem']}"[:300])
        if out.get("shape") != list(want.shape):
            raise Wrong("WRONG_SHAPE", f"{name} has shape {out.get('shape')}, not {list(want.shape)}"[:300])
        dtype = str(want.dtype).removeprefix("torch.")
        if out.get("dtype") != dtype:
            raise Wrong("WRONG_DTYPE", f"{name} is {out.get('dtype')}, not {dtype}"[:300])
        if out.get("device") != want.device.type:
            raise Wrong("WRONG_DTYPE", f"{name} is on {out.get('device')}, not {want.device.type}"[:300])

    def _compare_memory(self, place: int, out: dict[str, Any]) -> None:
        if out.get("overlaps") and place not in self.reference.overlaps:
            raise Wrong("NO_OUTPUT", f"output {place} is expanded: elements share memory; the reference's does not")
        if out.get("alias") and place not in self.reference.aliases:
            raise Wrong("WRONG_VALUES", f"output {place} is a view of an input; the reference's is not")


def without_unpartnered(answer: Answer, expected: Answer, unpartnered: set[int]) -> Answer:
    """The answer with what the candidate cannot have replaced by what is expected."""
    pairs = enumerate(zip(answer.tensors, expected.tensors, strict=True))
    return Answer(answer.structure, [want if index in unpartnered else got for index, (got, want) in pairs])
