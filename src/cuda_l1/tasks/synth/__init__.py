"""Our generator of training workloads: random but sensible modules in KernelBench's format."""

from cuda_l1.tasks.synth.generate import SyntheticTask, known_graphs, synthetic_tasks
from cuda_l1.tasks.synth.sizes import SMALL, Scale, for_memory
from cuda_l1.tasks.synth.splits import SPLITS, Split, has_unseen_pair, split_of, split_of_task

__all__ = [
    "SMALL",
    "SPLITS",
    "Scale",
    "Split",
    "SyntheticTask",
    "for_memory",
    "has_unseen_pair",
    "known_graphs",
    "split_of",
    "split_of_task",
    "synthetic_tasks",
]
