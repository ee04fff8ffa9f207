"""A summary of the best variant for a prompt: what its verdict measured, where a profiler says that its time goes, what
hardware counters show of its kernels, and what its text shows. Nothing is run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from cuda_l1.prompts.python_text import tree_of
from cuda_l1.texts import many
from cuda_l1.types import CallProfile, Candidate, Evaluation, KernelCounters, Record

MOST_NAMES = 12
_KERNEL = re.compile(
    r"__global__\s+(?:__launch_bounds__\([^)]*\)\s*)?\w+\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\("
)
_ASSEMBLED = re.compile(
    r"Compiling entry function '(\w+)'[^\n]*\n(?:[^\n]*\n){0,2}?[^\n]*?(\d+) bytes spill stores[^\n]*\n"
    r"[^\n]*?Used (\d+ registers)(?:, used \d+ barriers)?(, \d+ bytes smem)?"
)
_SIGNS = {
    "uses shared memory": r"__shared__",
    "exchanges values within a warp": r"__shfl\w*_sync|__reduce_\w+_sync",
    "copies to shared memory asynchronously": r"cp\.async|cp_async|__pipeline_memcpy_async|cuda::memcpy_async",
    "uses tensor cores": r"\bwmma\b|mma\.sync|wgmma|\btl\.dot\b",
    "reads or writes several values at once": r"\b(?:float|half|int|uint|bfloat16)[248]\b|\bulonglong2\b",
    "uses atomic operations": r"\batomic(?:Add|Max|Min|CAS)\b|\btl\.atomic_\w+",
    "is tuned when first called": r"triton\.autotune",
    "works on several threads": r"#\s*pragma\s+omp\s+parallel|std::thread|at::parallel_for",
    "has vector instructions by name": r"\b_mm(?:256|512)?_\w+|vector_size|#\s*pragma\s+omp\s+simd",
    "replays a CUDA graph": r"\bCUDAGraph\b",
    "is compiled by torch.compile": r"\btorch\.compile\b",
}
"""What a text shows, by patterns that may be wrong: a comment can hold one, too."""


def profile_of(record: Record) -> str:
    """Lines about an accepted candidate: times, memory and precision as its verdict has them; kernels or operators as
    its record has a profile of them, else what a compiler printed of them; kernels and calls as its text has them."""
    found = record.evaluation
    parts = _profiled(found.profile) if found.profile and found.profile.total_us > 0 else _compiled(found.log)
    counted = [_counted(kernel) for kernel in found.counters.kernels] if found.counters else []
    return "\n".join([*_measured(found), *parts, *counted, *_written(record.candidate)])


_COUNTED = {
    "compute_pct": "multiprocessors at {:.0f}% of their peak",
    "memory_pct": "memory system at {:.0f}%",
    "read_bytes": "{:.4g} bytes read from device memory",
    "written_bytes": "{:.4g} written",
    "l2_hit_pct": "{:.0f}% of L2 accesses hit",
    "occupancy_pct": "occupancy {:.0f}%",
    "occupancy_limit_pct": "at most {:.0f}% by its resources",
    "registers": "{:.0f} registers",
    "shared_bytes": "{:.0f} bytes of shared memory",
    "waves": "{:.3g} waves of blocks",
    "stall": "warps mostly wait for {}",
}


def _counted(kernel: KernelCounters) -> str:
    said = [text.format(value) for name, text in _COUNTED.items() if (value := getattr(kernel, name)) is not None]
    launches = f"{kernel.launches} launch{'es' * (kernel.launches != 1)}"
    return f"counted: {kernel.name}, {launches}, {kernel.us:.2f} us: {', '.join(said) or 'no counters'}"


def _measured(found: Evaluation) -> Iterator[str]:
    for timing in found.timings:
        if timing.opponent == "eager":
            yield (
                f"measured: {timing.candidate_us:.2f} us of {timing.clock} time a call; "
                f"the original {timing.opponent_us:.2f} us"
            )
    device, call = found.timing(clock="device"), found.timing(clock="call")
    if device and call and call.candidate_us > 2 * device.candidate_us:
        yield "measured: most of a call is spent outside the device's work: launches and Python"
    if found.peak_bytes and found.reference_peak_bytes:
        mib, theirs = found.peak_bytes / 2**20, found.reference_peak_bytes / 2**20
        yield f"measured: {mib:.1f} MiB at its peak; the original {theirs:.1f} MiB"
    if found.precision_class:
        yield f"measured: exact to class {found.precision_class}"
    yield from (f"noted: {finding.check}: {finding.evidence}" for finding in found.findings)


def _profiled(profile: CallProfile) -> Iterator[str]:
    """Shares of a call, to which no printed part adds what others take: what is left out is the rest."""
    of = "the kernels" if profile.kind == "kernels" else "a call under the profiler, which slows it"
    yield f"profiled: {profile.total_us:.1f} us, {of}"
    for part in profile.parts:
        share = part.us / profile.total_us
        yield f"profiled: {share:.1%} in {part.name}, {many(part.calls, 'call')}"
    if profile.outside_us is not None:
        share = profile.outside_us / profile.total_us
        yield f"profiled: {share:.1%} in no operator of torch: Python, and code of its own"


def _compiled(log: str) -> Iterator[str]:
    """What CUDA's assembler says of each kernel where the candidate's own flags ask for it (`-Xptxas -v`)."""
    for name, spilled, registers, shared in dict.fromkeys(_ASSEMBLED.findall(log)):
        yield f"compiled: {name} uses {registers}{shared}, {spilled} bytes of spill stores"


def _written(candidate: Candidate) -> Iterator[str]:
    text, tree = candidate.source, tree_of(candidate.source)
    yield f"read from its text: {candidate.language}, {len(text.splitlines())} lines"
    kernels = [*dict.fromkeys([*_KERNEL.findall(text), *(_jitted(tree) if tree else ())])]
    if kernels:
        yield f"read from its text: kernels {_names(kernels)}"
    yield from (f"read from its text: {what}" for what, sign in _SIGNS.items() if re.search(sign, text))
    calls = [*dict.fromkeys(_calls_in_forward(tree))] if tree else []
    if calls:
        yield f"read from its text: forward calls {_names(calls)}"


def _jitted(tree: ast.Module) -> list[str]:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return [f.name for f in functions if any("jit" in ast.unparse(each) for each in f.decorator_list)]


def _calls_in_forward(tree: ast.Module) -> Iterator[str]:
    for model in ast.walk(tree):
        if isinstance(model, ast.ClassDef) and model.name == "ModelNew":
            for function in model.body:
                if isinstance(function, ast.FunctionDef) and function.name == "forward":
                    calls = (node for node in ast.walk(function) if isinstance(node, ast.Call))
                    yield from (ast.unparse(call.func) for call in calls if not isinstance(call.func, ast.Call))


def _names(names: list[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
