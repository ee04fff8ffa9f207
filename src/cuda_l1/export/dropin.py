"""A drop-in: one Python file without `cuda_l1` that computes a task's function faster where that was verified.

body = render_dropin(task, candidate, guard)     # deterministic text; this is what the last `final` measures
text = add_header(body, record, task)            # what a person gets: the evidence as comments above the same body
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from cuda_l1.export.compose import compose
from cuda_l1.export.guard import Guard, passes_addresses, watches_versions
from cuda_l1.types import Candidate, Origin, Task, detect_language

if TYPE_CHECKING:
    from jinja2 import Template


def render_dropin(task: Task, candidate: Candidate, guard: Guard) -> str:
    """The file's text: `Model` (the task's own), the optimised class, and a guarded `ModelNew`.

    Where both texts use one name for different things, the reference's is embedded as a string of its own. The same
    arguments give the same text. Raises CandidateError when the candidate's text is not Python.
    """
    body, embedded = compose(task.source, candidate.source)
    tensors = dict(guard.tensors())
    first = next(iter(tensors), None)
    device = 'torch.device("cpu")' if guard.device == "cpu" else 'torch.device("cuda", _dropin_current())'
    guarded = _template().render(
        guard=guard,
        embedded=None if embedded is None else repr(embedded),
        conditions=guard.beyond(),
        careful=_careful_conditions(guard),
        dtypes=sorted({spec.dtype for spec in tensors.values()}),
        tensors="".join(f"{name}, " for name in tensors),
        watches_versions=watches_versions(candidate.source),
        pointers=passes_addresses(candidate.source),
        device=f"{first}.device" if first and guard.device == "cuda" else f"_dropin_{device}",
        arguments=", ".join(guard.names),
    )
    return f"{body}\n\n{guarded.strip()}\n"


def dropin_candidate(task: Task, candidate: Candidate, guard: Guard) -> Candidate:
    """The drop-in as a candidate of its own, to be judged like any other: its figure is that of the guarded file."""
    source = render_dropin(task, candidate, guard)
    first = candidate.origins[0] if candidate.origins else Origin(proposer="file")
    origin = first.model_copy(update={"parents": (candidate.id,)})
    # Not `model_copy`: it would copy the cached id of the other text as well.
    return Candidate(
        task_sha=candidate.task_sha,
        task_id=candidate.task_id,
        source=source,
        language=detect_language(candidate.source),
        origins=(origin,),
        rationale=candidate.rationale,
    )


def _careful_conditions(guard: Guard) -> list[tuple[str, str]]:
    """The guard's checks on the arguments, for where the reason of a fallback is looked for: the module may have no
    device index yet, so that tensors have to be on the current GPU."""
    return [
        (kind, condition.replace("dropin.index", "_dropin_current()")) for kind, condition in guard.input_conditions()
    ]


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    environment.filters["pyrepr"] = repr
    return environment.from_string(files("cuda_l1.export").joinpath("dropin.py.j2").read_text("utf-8"))
