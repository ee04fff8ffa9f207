"""A walk over the stages: which operators follow each other in a task, and how many."""

from __future__ import annotations

from collections import Counter

from cuda_l1.tasks.synth.draw import Draw
from cuda_l1.tasks.synth.sizes import Scale, Sizes
from cuda_l1.tasks.synth.sketch import Sketch
from cuda_l1.tasks.synth.stages import STAGES, Stage

LEVELS = (1, 2, 3)
_POINTS = {1: (3, 4), 2: (5, 8), 3: (9, 14)}
"""Level -> how many points of difficulty its tasks have; a stage's points say how much work it is."""
_LEVEL_WEIGHTS = (4, 4, 2)

_STARTS = {"rows": 4, "wide": 6, "tokens": 8, "signal": 4, "image": 7, "heads": 4}
_GROUPS = {
    "activation": 10, "formula": 5, "constant": 6, "parameter": 6, "binary": 6, "halves": 3, "norm": 10, "reduce": 6,
    "pool": 8, "matmul": 14, "conv": 18, "resample": 6, "attention": 12, "loss": 7, "recurrent": 4, "chain": 6,
    "layout": 6, "algebra": 5,
}  # fmt: skip
"""How likely each group of stages is to come next, where it can."""
_MOST = {"halves": 1, "resample": 2, "recurrent": 1, "attention": 1, "chain": 1, "reduce": 1, "pool": 1, "loss": 1,
         "binary": 2, "constant": 2, "algebra": 2}  # fmt: skip
"""How often a group may stand in one task."""
_TOGETHER = (
    (frozenset({"halves", "transposed"}), 1),  # channels stay a multiple of 4
    (frozenset({"max-pool", "avg-pool", "strided", "conv-pool"}), 2),  # positions do not run out
    (frozenset({"upsampled", "transposed"}), 1),
)
"""Groups and stages that may stand in one task this often, all of them together."""
_ELEMENTWISE = frozenset({"activation", "formula", "constant", "parameter", "binary"})
_MOST_SHRINKS = 16


def compose(draw: Draw, scale: Scale) -> tuple[Sketch, int]:
    """(a task, its level). Which operators it has does not depend on the scale, only its sizes do."""
    for shrink in range(_MOST_SHRINKS + 1):
        sketch, level = _composed(draw, Sizes(scale, draw.fork("sizes"), shrink))
        if sketch.bytes <= scale.most_bytes and sketch.flops <= scale.most_flops:
            break
    return sketch, level


def _composed(draw: Draw, sizes: Sizes) -> tuple[Sketch, int]:
    choices = draw.fork("graph")
    level = choices.weighted(LEVELS, _LEVEL_WEIGHTS)
    sketch = Sketch(choices, sizes)
    sketch.start(choices.weighted(list(_STARTS), list(_STARTS.values())))
    _Walk(sketch, choices.between(*_POINTS[level]), with_skip=level > 1 and choices.chance(0.4)).run()
    return sketch, level


def _longest_run(sketch: Sketch) -> int:
    """How many element-wise stages may follow each other; after a reduction they are hardly any work."""
    return 2 if sketch.kind == "column" else 4


class _Walk:
    """Adds stages until the points are spent or nothing fits any more."""

    def __init__(self, sketch: Sketch, points: int, *, with_skip: bool) -> None:
        self._sketch, self._left = sketch, points
        self._done: list[Stage] = []
        self._counts: Counter[str] = Counter()
        self._may_skip = with_skip
        self._run = 0

    def run(self) -> None:
        while self._left > 0 or len(self._done) < 2:
            allowed = [stage for stage in STAGES if self._fits(stage)]
            if not allowed:
                return
            self._add(self._drawn(allowed))

    def _drawn(self, allowed: list[Stage]) -> Stage:
        groups = list(dict.fromkeys(stage.group for stage in allowed))
        group = self._sketch.draw.weighted(groups, [_GROUPS[name] for name in groups])
        members = [stage for stage in allowed if stage.group == group]
        return self._sketch.draw.weighted(members, [stage.weight for stage in members])

    def _fits(self, stage: Stage) -> bool:
        if self._sketch.kind not in stage.kinds or stage.points > max(self._left, 0) + 1:
            return False
        if self._counts[stage.group] >= _MOST.get(stage.group, 9):
            return False
        own = {stage.group, stage.name}
        if any(own & names and sum(self._counts[name] for name in names) >= most for names, most in _TOGETHER):
            return False
        if stage.group in ("loss", "reduce") and (not self._done or self._left > stage.points + 3):
            return False
        if stage.group == "pool" and not self._done:
            return False
        if stage.group in _ELEMENTWISE and self._run >= _longest_run(self._sketch):
            return False
        recent = self._done[-3:]
        return not (recent and recent[-1].group == stage.group) and stage.name not in {done.name for done in recent}

    def _add(self, stage: Stage) -> None:
        sketch = self._sketch
        before, shape = len(sketch.forward), sketch.shape
        stage.write(sketch)
        if self._may_skip and sketch.shape == shape and stage.points > 1 and len(self._done) > 0:
            self._may_skip = False
            sketch.forward.insert(before, "skip = x")
            sketch.set("{x} + skip")
        sketch.stages.append(stage.name)
        self._done.append(stage)
        self._run = self._run + 1 if stage.group in _ELEMENTWISE else 0
        self._counts.update({stage.group, stage.name})
        self._left -= stage.points
