"""Write the graph hashes of KernelBench's tasks, which no synthetic task may have.

    python benchmarks/kernelbench_graphs.py PATH [PATH ...]

PATH: checkouts of KernelBench, one of each generation: its commits 21fbe5a (2025-01, the original tasks), e395e91
(2025-10) and 423217d (2026-03). Of KernelBench only these hashes are in this repository.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from cuda_l1.tasks import load_tasks
from cuda_l1.tasks.graph_hash import graph_hash
from provenance import ROOT, command_line, run, say

LISTED = ROOT / "src/cuda_l1/tasks/synth/kernelbench_graphs.txt"


def main() -> None:
    """Writes the sorted hashes of all tasks of every level of all checkouts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=LISTED)
    options = parser.parse_args()
    tasks = [task for path in options.checkouts for task in load_tasks(f"kernelbench:{path}")]
    hashes = sorted({graph_hash(task) for task in tasks})
    said = f"# Graph hashes of {len(tasks)} tasks of KernelBench, by benchmarks/kernelbench_graphs.py"
    options.out.write_text("\n".join([said, *hashes]) + "\n")
    say(f"{command_line().split()[1]}: {len(hashes)} graphs of {len(tasks)} tasks")


if __name__ == "__main__":
    run(main)
