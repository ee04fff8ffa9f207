"""Inductor's generated module as plain source: compiled up to the text, cut to what runs, closed in one function.

This reads internals of torch (2.9 to 2.13 known to fit); whatever no longer fits raises LiftError, never a crash.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import os
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest import mock

from cuda_l1.config import cache_home, probes_folder

if TYPE_CHECKING:
    import torch


class LiftError(Exception):
    """Inductor's code for this graph cannot stand alone; one line says why."""


@dataclass(frozen=True)
class Generated:
    """What Inductor wrote for one graph."""

    code: str
    """The whole generated module; `call(list_of_tensors)` returns a tuple."""
    mutated: tuple[int, ...]
    """Indices of the inputs that it writes to."""
    isa: str
    """Vector instructions that C++ kernels were written for; empty on a GPU."""


class _TextReached(Exception):
    """Stops the compiler once the text exists: its kernels are compiled where the candidate runs."""


def generate(module: torch.fx.GraphModule, inputs: Sequence[torch.Tensor]) -> Generated:
    """Inductor's text for a graph without attributes, on fake `inputs` that fix shapes, strides, dtypes and device.

    Raises LiftError when Inductor cannot compile the graph, or needs more around the text than a call of it.
    """
    import torch
    from torch._functorch import config as functorch_config
    from torch._inductor import config
    from torch._inductor.compile_fx import compile_fx
    from torch._inductor.graph import GraphLowering

    on_cpu = not inputs or inputs[0].device.type == "cpu"
    if on_cpu:
        _ask_for_vectors()
    reached: list[Generated | LiftError] = []

    def save(code: str) -> None:
        try:
            reached.append(_checked(code, on_cpu=on_cpu))
        except LiftError as error:
            reached.append(error)
        raise _TextReached

    try:
        with (
            torch.no_grad(),
            config.patch(_settings()),
            functorch_config.patch(enable_autograd_cache=False),
            mock.patch.object(GraphLowering, "save_output_code", save),
        ):
            compile_fx(module, list(inputs))
    except Exception as error:  # foreign code; _TextReached arrives wrapped by Inductor
        if not reached:
            raise LiftError(_first_line(error)) from error
    if not reached:
        raise LiftError("Inductor generated no text")
    if isinstance(reached[0], LiftError):
        raise reached[0]
    return reached[0]


def _settings() -> dict[str, Any]:
    return {
        "compile_threads": 1,
        "fx_graph_cache": False,
        "fx_graph_remote_cache": False,
        "freezing": False,
        "cpp_wrapper": False,
        "graph_partition": False,
        "triton.cudagraphs": False,
        "cpp.threads": len(os.sched_getaffinity(0)),  # not this process's own, which may have been told to use one
    }


def _checked(code: str, *, on_cpu: bool) -> Generated:
    """The text with what is known about it while the compiler still runs."""
    from torch._guards import TracingContext
    from torch._inductor.virtualized import V

    if V.graph.constants:
        raise LiftError("the generated code holds constants of its own")
    context = TracingContext.try_get()
    known = context.fw_metadata if context else None
    if known is None:
        raise LiftError("nothing is known about aliases of the outputs")
    if any(output.output_type.name != "non_alias" for output in known.output_info):
        raise LiftError("an output shares memory with an input or with another output")
    if known.mutated_inp_runtime_indices or known.num_intermediate_bases or known.tokens:
        raise LiftError("torch does more around the generated code than call it")
    mutated = tuple(index for index, item in enumerate(known.input_info) if item.mutates_data)
    return Generated(code, mutated, _vector_isa() if on_cpu else "")


@functools.cache
def _ask_for_vectors() -> None:
    """Which vector instructions the machine's compiler can use, from where evaluators keep the answer: to find it out
    anew takes seconds. Inductor remembers it for this process."""
    import torch
    from torch._inductor.cpu_vec_isa import valid_vec_isa_list

    kept = probes_folder(cache_home(), torch.__version__)
    if not kept.is_dir():
        return
    before = os.environ.get(_CACHE_DIR)
    os.environ[_CACHE_DIR] = os.fspath(kept)
    try:
        with contextlib.suppress(Exception):  # no room there, say: Inductor asks by itself
            valid_vec_isa_list()
    finally:
        if before is None:
            del os.environ[_CACHE_DIR]
        else:
            os.environ[_CACHE_DIR] = before


def _vector_isa() -> str:
    from torch._inductor.cpu_vec_isa import pick_vec_isa

    return str(pick_vec_isa())


def _first_line(error: BaseException) -> str:
    """The innermost reason, without the compiler's own advice."""
    while isinstance(error.__cause__, Exception):
        error = error.__cause__
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"


# ── Text ──────────────────────────────────────────────────────────────────────────────────────────

_KERNELS = '''
import functools

import torch
import torch._inductor.config


@functools.cache
@torch._inductor.config.patch({config})
def _inductor_kernels():
    """Code generated by Inductor (torch {version}), compiled by the first call of this function."""
{isa_check}{code}
    return call


def inductor_forward(*args):
    """The graph as Inductor compiled it: parameters, buffers and inputs in order; returns a tuple."""
{body}
'''

_ISA_CHECK = """
    from torch._inductor.cpu_vec_isa import pick_vec_isa

    if str(pick_vec_isa()) != {isa!r}:
        raise RuntimeError(f"these kernels are written for {isa} vectors, this machine has {{pick_vec_isa()}}")
"""

_CACHE_DIR = "TORCHINDUCTOR_CACHE_DIR"

# Work is split for the cores of the generating machine; a process that was given fewer threads keeps to them.
_THREADS = re.compile(r"\bnum_threads\((\d+)\)")
_NOT_RUN = {"benchmark_compiled_module", "get_args"}
_NOISE = re.compile(r"# AOT ID|# kernel path:|assert_(size_stride|alignment)\((?!arg\d)")


def self_contained(generated: Generated, aligned: Sequence[int], version: str) -> str:
    """Module-level source that defines `inductor_forward(*args) -> tuple`.

    `aligned` are the indices of arguments that GPU code assumes to begin at 16 bytes and that a caller may give
    otherwise. Layouts of all arguments are still asserted; those of intermediates, which follow from them, are not.
    """
    # Headers are precompiled outside the cache directory. The compiler's support for the instructions was probed
    # where the text was generated; probing again costs seconds and a failure to compile says the same.
    config: dict[str, Any] = {"compile_threads": 1, "cpp_cache_precompile_headers": False}
    if generated.isa:
        config["cpp.vec_isa_ok"] = True
    text = _KERNELS.format(
        config=config,
        version=version,
        isa_check=_ISA_CHECK.format(isa=generated.isa) if generated.isa else "",
        code=_indented(_what_runs(generated.code)),
        body=textwrap.indent("\n".join(_body(generated.mutated, aligned)), "    "),
    )
    # C++ compiles while the candidate is imported; Triton needs the device, which the first call has.
    return text + "\n\n_inductor_kernels()\n" if generated.isa else text


def _body(mutated: Sequence[int], aligned: Sequence[int]) -> list[str]:
    lines = []
    if aligned:
        lines += [
            "args = list(args)",
            f"for index in {tuple(aligned)}:  # the kernels load 16 bytes at a time",
            "    if args[index].data_ptr() % 16:",
            "        args[index] = args[index].clone()",
        ]
    if not mutated:
        return [*lines, "return _inductor_kernels()(list(args))"]
    changed = ", ".join(f"args[{index}]" for index in mutated)
    return [
        *lines,
        f"torch.autograd.graph.increment_version(({changed},))  # the kernels write to these behind torch's back",
        "return _inductor_kernels()(list(args))",
    ]


def _what_runs(code: str) -> str:
    """The module less its benchmark, noise that differs between processes, and checks of intermediates."""
    tree = ast.parse(code)
    skipped = {line for node in tree.body if _is_benchmark(node) for line in _lines(node)}
    inside = _inside_strings(tree)
    kept = [
        line
        for number, line in enumerate(code.splitlines(), 1)
        if number in inside or not (number in skipped or _NOISE.match(line.strip()))
    ]
    text = "\n".join(kept).strip().replace("async_compile.wait(globals())", "async_compile.wait(locals())")
    return _THREADS.sub(r"num_threads(std::min(\1, omp_get_max_threads()))", text)


def _is_benchmark(node: ast.stmt) -> bool:
    if isinstance(node, ast.FunctionDef):
        return node.name in _NOT_RUN
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)


def _lines(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _inside_strings(tree: ast.AST) -> set[int]:
    """Numbers of the lines that begin inside a string."""
    return {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for line in range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)
    }


def _indented(code: str) -> str:
    """The code as the body of a function; the text of its strings, kernels among them, stays as it is."""
    inside = _inside_strings(ast.parse(code))
    lines = enumerate(code.splitlines(), 1)
    return "\n".join(line if number in inside or not line.strip() else "    " + line for number, line in lines)
