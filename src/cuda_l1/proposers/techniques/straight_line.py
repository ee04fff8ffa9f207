"""The captured forward printed as it is: no module calls, no Python branches, no unused work, functional spelling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from cuda_l1.proposers.techniques.draft import Draft


class StraightLine:
    """The same operations without `nn.Module` calls and Python control flow around them."""

    name = "straight_line"
    devices = frozenset({"cpu", "cuda"})
    stage = 10
    precision: Literal["same"] = "same"

    def applies(self, draft: Draft) -> bool:
        """Every captured forward can be printed."""
        return draft.graph_module is not None

    def apply(self, draft: Draft) -> None:
        """Nothing to change: printing is the change."""


TECHNIQUE = StraightLine()
