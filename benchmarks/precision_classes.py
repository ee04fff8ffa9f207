"""Which arithmetic is recognised as what: versions of every task under other arithmetics, and the class of each.

    PYTHONPATH=src python benchmarks/precision_classes.py --device cpu --out build/classes-cpu --kernelbench PATH

Over the built-in tasks and, from a checkout of KernelBench, 20 of its tasks at sizes that a CPU computes (constants of
the file are set anew after it has run; the checkout is not touched). Each task is judged in this process, by the code
of the judge, over the trials of a verdict. A version has a row where it changes the answer at all (TF32 changes no
ReLU), and counts where verdicts on the task mean something: it is neither ill-conditioned nor degenerate.
Writes precision_classes.csv, a row per task and version, and precision_classes.md.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from arithmetics import Reordered, Rounded, ThreeProducts, backwards, compensated, in_lanes, kahan, truncated_to_tf32
from csv_table import Row, Table
from cuda_l1.api.places import resolve_device
from cuda_l1.config import EvaluatorSettings
from cuda_l1.errors import UsageError
from cuda_l1.evaluator import Evaluator
from cuda_l1.evaluator.guest import arithmetic, drawing, input_forms, plans, state
from cuda_l1.evaluator.guest.audit import Facts, audit
from cuda_l1.evaluator.guest.case import Case
from cuda_l1.evaluator.guest.classes import Errors, least_exact, unit_roundoff
from cuda_l1.evaluator.guest.reference import Answer, BadTask, Reference
from cuda_l1.evaluator.guest.tensors import leaves
from cuda_l1.report.markdown import table_lines
from cuda_l1.tasks.suite import builtin_suite
from provenance import PROVENANCE, Deadline, columns_of, header, parser, run, say, write_report

COLUMNS = ("suite", "task", "version", "due", "found", "right", "ratio", "task_class", "flags", *PROVENANCE)
KERNELBENCH = {
    "level1/1_": "N = 256",
    "level1/4_": "M = 128; K = 2048",
    "level1/19_": "batch_size = 16; dim = 1024",
    "level1/23_": "batch_size = 16; dim = 2048",
    "level1/36_": "batch_size = 2; dim1 = dim2 = 32",
    "level1/40_": "batch_size = 2; dim1 = dim2 = 16",
    "level1/42_": "batch_size = 2; channels = 4; height = width = 64",
    "level1/50_": "batch_size = 2",
    "level1/51_": "batch_size = 4; dim1 = 64; dim2 = 65",
    "level1/54_": "batch_size = 1; depth = width = height = 12",
    "level1/88_": "batch_size = 16; dim = 512",
    "level1/89_": "batch_size = 16; input_shape = (1024,)",
    "level1/95_": "batch_size = 64; num_classes = 100; input_shape = (100,)",
    "level2/1_": "batch_size = 2; height = width = 24",
    "level2/12_": "batch_size = 16; in_features = out_features = 512",
    "level2/14_": "batch_size = 16; input_size = hidden_size = 512",
    "level2/37_": "batch_size = 16; in_features = 256; out_features = 512; bias_shape = (512,)",
    "level2/66_": "batch_size = 16; in_features = out_features = 512",
    "level3/1_": "batch_size = 8; input_size = 512; layer_sizes = [512, 512]; output_size = 256",
    "level3/43_": "batch_size = 2; max_seqlen = seq_len = 64; n_embd = 128; n_head = 4",
}
"""Beginnings of file names, and the constants that make them small."""

KINDS = {
    "quantise": "s = x.abs().amax(-1, keepdim=True) / 127; return torch.round(x @ self.w / s) * s",
    "argmax": "return (x @ self.w).argmax(-1)",
    "routing": "p = torch.softmax(x @ self.w, -1); v, i = p.topk(2); return torch.zeros_like(p).scatter(-1, i, v)",
    "threshold": "y = x @ self.w; return torch.where(y > 0.5, y, -y)",
    "cancellation": "return (x @ self.w + 1e6) - 1e6",
    "copy": "return x.t().contiguous()",
    "relu": "return torch.relu(x)",
    "integers": "return (x * 8).to(torch.int64).cumsum(0)",
}
"""Forwards of tasks that jump, cancel, or are exact."""
KIND = """import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(128, 128) / 11)

    def forward(self, x):
        {}


def get_inputs():
    return [torch.randn(256, 128)]
"""

Version = Callable[[Reference, Case], Answer]


def under(mode: Callable[[], Any]) -> Version:
    """The reference while a mode is active."""

    def answer(reference: Reference, case: Case) -> Answer:
        with mode():
            return reference.call(case.inputs, case.weights, "plain", case.seed)

    return answer


def throughout(dtype: torch.dtype) -> Version:
    """Weights, inputs and everything between in another dtype; what the reference changes as it leaves it."""

    def answer(reference: Reference, case: Case) -> Answer:
        twin = arithmetic.cast_model(reference.model, dtype)
        state.restore(twin, arithmetic.cast(dict(case.weights), dtype))
        with torch.no_grad():
            made = leaves(twin(*arithmetic.cast(case.inputs, dtype)))
        expected = case.noise.tensors
        outputs = [m.to(e.dtype) for m, e in zip(made, expected, strict=False)]
        return Answer(case.noise.structure, [*outputs, *expected[len(outputs) :]])

    return answer


def _one_off(reference: Reference, case: Case) -> Answer:
    """The reference's answer with the next number in one place of each tensor."""
    moved = [t.clone() for t in case.noise.tensors]
    for tensor in moved:
        flat = tensor.view(-1)
        place = int(flat.double().abs().argmax())
        one = flat[place]
        flat[place] = torch.nextafter(one, one + 1) if tensor.is_floating_point() else one + 1 if one != 1 else one - 1
    return Answer(case.noise.structure, moved)


def _as_due(answer: Answer, case: Case) -> Answer:
    pairs = zip(answer.tensors, case.noise.tensors, strict=True)
    return Answer(answer.structure, [made.to(due.dtype) for made, due in pairs])


FP32, OWN, TF32, CUT = "fp32", "own", "tf32", "not fp32"
HALF, NOT_EXACT = "relaxed or refused", "not exact"
VERSIONS: dict[str, tuple[str, Version]] = {
    "reordered sums": (FP32, under(lambda: Reordered(backwards, in_lanes))),
    "Kahan sums": (FP32, under(lambda: Reordered(compensated, kahan))),
    "3xTF32 products": (FP32, under(ThreeProducts)),
    "TF32 rounded": (TF32, under(lambda: Rounded(arithmetic.round_to_tf32))),
    "TF32 cut off": (CUT, under(lambda: Rounded(truncated_to_tf32))),
    "fp16 products": (HALF, under(lambda: Rounded(torch.Tensor.half))),
    "bf16 products": (HALF, under(lambda: Rounded(torch.Tensor.bfloat16))),
    "fp16 throughout": (HALF, throughout(torch.float16)),
    "bf16 throughout": (HALF, throughout(torch.bfloat16)),
    "one number off": (NOT_EXACT, _one_off),
}
"""What each is called, and the class that is due. Operands whose low bits are cut off instead of rounded err to one
side: where inputs have one sign, as much as bf16 does, and then no bound tells them apart."""
ON_CUDA: dict[str, tuple[str, Version]] = {
    "TF32 of the device": (TF32, lambda r, case: r.call(case.inputs, case.weights, "tf32", case.seed)),
}
ON_HALF: dict[str, tuple[str, Version]] = {
    "fp32 inside": (OWN, lambda r, case: _as_due(r.call(case.inputs, case.weights, "fp32", case.seed), case)),
    "split products": (OWN, under(lambda: Reordered(backwards, in_lanes))),
    "fp8 products": (HALF, under(lambda: Rounded(lambda t: t.to(torch.float8_e4m3fn)))),
}
"""For tasks in bf16: all of it in fp32, partial products rounded to bf16 before they are added, 3 bits of mantissa."""
ARITHMETICS = {
    "fp32": ("reordered sums", "Kahan sums", "3xTF32 products"),
    "TF32": ("TF32 rounded", "TF32 of the device"),
    "fp16": ("fp16 products", "fp16 throughout"),
    "bf16": ("bf16 products", "bf16 throughout"),
    "own, in bf16": ("fp32 inside", "split products"),
    "fp8": ("fp8 products",),
    "exact": ("one number off",),
}
UNSOUND = ("ill-conditioned", "degenerate")


def main() -> int:
    options = _options()
    deadline, device = Deadline(options.deadline), resolve_device(options.device)
    table = Table(options.out / "precision_classes.csv", COLUMNS, keys=3)
    with Evaluator(EvaluatorSettings(device=device)) as evaluator:
        environment = columns_of(evaluator.environment)
    wanted = sources(options.kernelbench)
    done = {(row["suite"], row["task"]) for row in table.rows()}
    missing = [item for item in wanted if item[:2] not in done]
    for number, (suite, task, source) in enumerate(missing, 1):
        if not deadline.allows(60.0):
            say("no time left; the same command goes on from here")
            break
        rows = list(judged(source, "cuda:0" if device == "cuda" else device))
        for row in rows:
            table.append({"suite": suite, "task": task, **row, **environment})
        wrong = [f"{row['version']}: {row['found']}" for row in rows if row["right"] is False]
        say(f"{number}/{len(missing)} {suite} {task}: {'; '.join(wrong) or 'all as due'}")
    rows_now = table.rows()
    write_report(options.out / "precision_classes.md", report(rows_now))
    return 0 if len({(row["suite"], row["task"]) for row in rows_now}) >= len(wanted) else 1


def _options() -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument("--kernelbench", type=Path, metavar="PATH", help="a checkout; without it the built-in tasks only")
    return made.parse_args()


def sources(kernelbench: Path | None) -> list[tuple[str, str, str]]:
    """(suite, name, text) of every task. Raises UsageError where the checkout lacks one."""
    found = [("builtin", task.name, task.source) for task in builtin_suite(device="cpu")]
    found += [("builtin", task.name, task.source) for task in builtin_suite(device="cpu", dtype="bf16")]
    found += [("kinds", name, KIND.format(forward)) for name, forward in KINDS.items()]
    for start, constants in KERNELBENCH.items() if kernelbench else ():
        assert kernelbench is not None
        folder = kernelbench / "KernelBench" if (kernelbench / "KernelBench").is_dir() else kernelbench
        paths = sorted(folder.glob(f"{start}*.py"))
        if not paths:
            raise UsageError(f"{folder}: no {start}*.py: give the root of a checkout of KernelBench")
        found.append(
            ("kernelbench", f"{start.split('/')[0]}/{paths[0].stem}", f"{paths[0].read_text()}\n{constants}\n")
        )
    return found


def judged(source: str, device: str) -> Sequence[dict[str, Any]]:
    """One row per version that changes an answer of this task."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reference_task.py"
        path.write_text(source)
        reference = Reference(str(path), device)
        facts = audit(reference)
        if facts.random:  # as in a verdict: by value in eval mode
            reference.set_mode("eval")
            reference.changed_args, reference.changed_state = [], []
            facts = audit(reference)
        cases = made_cases(reference, facts)
        half = facts.task_class in ("bf16", "fp16")
        versions = ON_HALF if half else VERSIONS if device == "cpu" else VERSIONS | ON_CUDA
        rows = (row_of(name, *version, reference, facts, cases) for name, version in versions.items())
        return [{**row, "task_class": facts.task_class, "flags": " ".join(facts.flags)} for row in rows if row]


def made_cases(reference: Reference, facts: Facts) -> list[Case]:
    """The trials of a verdict that differ in values, those far from ordinary inputs last."""
    other, cases = reference.other_weights(), []
    for plan in (*plans.standard_plans(), *plans.RANGE_PLANS):
        inputs, touched = input_forms.stress(reference.draw(), plan.factor)
        if plan.offset or plan.same_inputs or (plan.factor != 1.0 and not touched):
            continue
        weights = other if plan.other_weights else reference.public
        case = Case(reference, plan, inputs, weights, drawing.secret_seed(), facts.jumpy)
        if plan.factor == 1.0 or case.sound:
            cases.append(case)
    return cases


def row_of(
    name: str, due: str, version: Version, reference: Reference, facts: Facts, cases: list[Case]
) -> dict[str, Any] | None:
    """The class of one version, whether it is the one that is due, and the error in multiples of the noise floor."""
    if due == NOT_EXACT and (facts.jumpy or not is_exact(cases)):
        return None
    found: list[str | None] = []
    worst, differs, answer = 0.0, False, None
    for case in cases:
        with contextlib.suppress(BadTask, RuntimeError):
            answer = version(reference, case)
        if answer is None:
            return None  # it does not run in this arithmetic
        differs = differs or not all(map(state.same, answer.tensors, case.noise.tensors))
        errors = case.errors(answer)
        before = least_exact(found)
        if case.plan in plans.RANGE_PLANS:
            found.append(before and case.class_in_range(errors, before, relaxed=facts.relaxed_allowed))
        else:
            found.append(case.best_class(errors, relaxed=facts.relaxed_allowed))
            worst = max(worst, *multiples(errors, case))
        answer = None
    if not differs:
        return None
    got = least_exact(found)
    right = None if set(UNSOUND) & set(facts.flags) else is_right(due, got, cases[0].own)
    return {"version": name, "due": due, "found": got or "refused", "right": right, "ratio": worst}


def multiples(errors: Errors, case: Case) -> list[float]:
    """Errors in multiples of the noise floor, per tensor; of a tensor of integers its error."""
    trios = zip(errors.worst, case.noise_errors, case.noise.tensors, strict=True)
    return [e / max(own, unit_roundoff(t.dtype)) if t.is_floating_point() else e for e, own, t in trios]


def is_exact(cases: list[Case]) -> bool:
    """Whether every tensor of the answer is one that must be equal."""
    return all(all(b == 0.0 for b in case.bounds(case.own)) for case in cases)


def is_right(due: str, found: str | None, own: str) -> bool:
    """Whether a class is the one that is due on a task of class `own`: integers are equal or refused."""
    if due in (FP32, OWN):
        return found == own
    if own == "exact" and due in (TF32, CUT):
        return found in (own, None)
    return {TF32: found == TF32, CUT: found != FP32}.get(due, found in ("relaxed", None))


def share(rows: Sequence[Row]) -> str:
    """How many of these are right."""
    right = sum(row["right"] == "yes" for row in rows)
    return f"{right} of {len(rows)} ({right / len(rows):.0%})"


def report(rows: Sequence[Row]) -> str:
    """Counts by version, every miss, and the spread of errors."""
    lines = header("Precision classes", list(rows))
    lines += ["Errors are in multiples of the noise floor: eager with all TF32 off, at least the roundoff.", ""]
    counted = [row for row in rows if row["right"]]
    body = []
    for name, members in ARITHMETICS.items():
        group = [row for row in counted if row["version"] in members]
        if group:
            seen = [member for member in members if any(row["version"] == member for row in group)]
            body.append((name, ", ".join(seen), share(group)))
    lines += [*table_lines(("arithmetic", "versions", "class as due"), body), ""]
    body = []
    for name, (due, _) in (VERSIONS | ON_CUDA | ON_HALF).items():
        group = [row for row in counted if row["version"] == name]
        if group:
            ratios = sorted(float(row["ratio"]) for row in group)
            spread = [f"{ratios[round(q * (len(ratios) - 1))]:.3g}" for q in (0, 0.5, 0.95, 1)]
            body.append((name, due, share(group), *spread))
    lines += [*table_lines(("version", "due", "as due", "least error", "median", "95 %", "most"), body), ""]
    misses = [row for row in rows if row["right"] == "no"]
    if misses:
        names = ("suite", "task", "version", "due", "found", "ratio", "flags")
        lines += ["## Not as due", "", *table_lines(names, [tuple(row[n] for n in names) for row in misses]), ""]
    kinds = {row["task"]: (row["task"], row["task_class"], row["flags"] or "none") for row in rows}
    own = {row["task"] for row in rows if row["suite"] == "kinds"}
    lines += ["## Tasks that jump, cancel or are exact", ""]
    lines += [*table_lines(("task", "class", "flags"), [kinds[name] for name in KINDS if name in own]), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    run(main)
