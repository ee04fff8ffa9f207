"""Which vector instructions the machine's C++ compiler can use, for the processes that are forked afterwards.

Inductor asks by compiling a file for each kind of them. Side by side here; what it answered it remembers.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor


def find_out() -> None:
    """Ask for each kind that the processor has."""
    from torch._inductor.cpu_vec_isa import supported_vec_isa_list, valid_vec_isa_list, x86_isa_checker

    has = set(x86_isa_checker())
    kinds = [kind for kind in supported_vec_isa_list if has.issuperset(str(kind).split())]
    with ThreadPoolExecutor() as pool:
        list(pool.map(bool, kinds))
    valid_vec_isa_list()
