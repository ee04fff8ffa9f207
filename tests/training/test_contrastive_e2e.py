"""Stage 3 with the real evaluator: what a policy writes is built, judged and timed behind the wall, and shown next."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs transformers and trl: pip install 'cuda-l1[train]'")

from cuda_l1.archive import Archive
from cuda_l1.config import EvaluatorSettings
from cuda_l1.evaluator import Evaluator
from cuda_l1.training import contrastive
from cuda_l1.training.judging import Judging
from cuda_l1.training.recipe import recipe_from
from cuda_l1.training.run_directory import RunDirectory
from cuda_l1.types import Task
from small_policy import save_policy

HEAD = "import torch\n\n\nclass {name}(torch.nn.Module):\n    def forward(self, x):\n        return {value}\n"
TASK = Task(
    suite="file",
    name="double",
    source=HEAD.format(name="Model", value="torch.relu(x + x)")
    + "\n\ndef get_inputs():\n    return [torch.randn(64, 64)]\n\n\ndef get_init_inputs():\n    return []\n",
)
REPLIES = [
    f"```python\n{HEAD.format(name='ModelNew', value=value)}```\n"
    for value in ("torch.relu(2 * x)", "torch.relu(x).mul_(2)", "torch.relu(x)")
]


@pytest.mark.e2e
def test_measured_successes_are_shown_in_the_next_round_and_nothing_is_paid_for_twice(tmp_path: Path) -> None:
    policy = save_policy(tmp_path / "policy", replies=REPLIES)
    recipe = recipe_from(
        {
            "run_dir": str(tmp_path),
            "contrastive": {"rounds": 2, "prompts": 1, "group": 12, "batch": 12, "min_pass_rate": 0.0},
            "generation": {"max_new_tokens": 3},
            "run": {"device": "cpu"},
        },
        "test",
    )
    run = RunDirectory(tmp_path, recipe)
    with (
        Archive.open(tmp_path / "archive.sqlite") as archive,
        Evaluator(EvaluatorSettings(device="cpu")) as evaluator,
    ):
        judge = Judging([evaluator], archive=archive, run="run", within_s=200.0)
        contrastive.train(run, [TASK], start=policy, archive=archive, judge=judge, on_event=lambda event: None)
        records = list(archive.records(task_sha=TASK.sha))
    stage = run.stage("contrastive")
    samples = list(stage.rows("samples"))
    right = {row["candidate"] for row in samples if row["outcome"] == "ACCEPTED"}
    wrong = {row["candidate"] for row in samples if row["outcome"] == "WRONG_VALUES"}
    assert right and all(row["reward"] > 0 for row in samples if row["candidate"] in right)
    assert wrong and all(row["reward"] == 0 for row in samples if row["candidate"] in wrong)
    judged = sorted({row["candidate"] for row in samples if row["candidate"]})
    assert sorted(record.candidate.id for record in records) == judged
    first, second = (row["groups"][0]["prompt"] for row in stage.rows("prompts"))
    assert not first["exemplars"] and second["exemplars"] and set(second["exemplars"]) <= right
