"""What `torchrun` runs in a test: `cuda-l1 train` as it is, with tasks and an evaluator made by hand; with
`IN_PARTS` each process holds a part of the weights."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from typing import Any

import parts
from judge_fakes import TASKS, FakeEvaluator

from cuda_l1.api import training as api
from cuda_l1.cli import main
from cuda_l1.training import checks, contrastive, self_supervised, sft
from cuda_l1.training.processes import is_main
from cuda_l1.training.task_sets import TaskSets


def main_process_only(*_: Any, **__: Any) -> Any:
    assert is_main(), "evaluators are the main process's"
    return nullcontext([FakeEvaluator()])


if __name__ == "__main__":
    sets = TaskSets(tuple(TASKS), (), (), ())
    for module in (checks, contrastive, self_supervised):
        module.load_task_sets = lambda recipe, device: sets
    api.evaluators_of = main_process_only
    if os.environ.get("IN_PARTS"):
        parts.split(sft, self_supervised, contrastive)
    sys.exit(main())
