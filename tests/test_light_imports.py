"""Torch takes seconds to load: importing the package and asking for help must not."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "transformers", "trl", "ray", "numpy", "openai", "rapidfuzz", "sqlalchemy")

COMMANDS = (
    (),
    ("optimize",),
    ("evaluate",),
    ("replay",),
    ("tasks",),
    ("tasks", "list"),
    ("tasks", "show"),
    ("tasks", "audit"),
    ("tasks", "synth"),
    ("archive",),
    ("archive", "list"),
    ("archive", "show"),
    ("archive", "best"),
    ("archive", "merge"),
    ("archive", "export"),
    ("archive", "hacks"),
    ("archive", "hacks", "list"),
    ("archive", "hacks", "show"),
    ("archive", "hacks", "add"),
    ("archive", "hacks", "import"),
    ("archive", "hacks", "remove"),
    ("bench",),
    ("report",),
    ("ablate",),
    ("prompt",),
    ("collect",),
    ("train",),
    ("train", "sft"),
    ("train", "self"),
    ("train", "report"),
    ("train", "evaluate"),
    ("train", "contrastive"),
    ("train", "data"),
    ("train", "all"),
    ("doctor",),
)

# One interpreter for all commands: each starts from what is loaded so far, and nothing heavy may ever be.
HELP = """
import sys
from typer.testing import CliRunner
from cuda_l1.cli.app import app
for words in {commands}:
    result = CliRunner().invoke(app, [*words, "--help"])
    assert result.exit_code == 0, result.output
    groups = ((), ("tasks",), ("train",), ("archive",), ("archive", "hacks"))
    assert "Example: cuda-l1" in result.output or words in groups, words
    loaded = [name for name in {heavy} if name in sys.modules]
    assert not loaded, (words, loaded)
"""

LIGHT = """
import sys
import importlib
for name in {modules}:
    importlib.import_module(name)
    assert "torch" not in sys.modules, name
"""

MODULES = (
    "cuda_l1",
    "cuda_l1.types",
    "cuda_l1.errors",
    "cuda_l1.config",
    "cuda_l1.scoring",
    "cuda_l1.tasks",
    "cuda_l1.archive",
    "cuda_l1.endpoint",
    "cuda_l1.prompts.build",
    "cuda_l1.prompts.prompting",
    "cuda_l1.prompts.reply",
    "cuda_l1.prompts.review",
    "cuda_l1.proposers",
    "cuda_l1.proposers.baselines",
    "cuda_l1.proposers.techniques",
    "cuda_l1.proposers.policy.proposer",
    "cuda_l1.evaluator",
    "cuda_l1.evaluator.serving",
    "cuda_l1.reviewer",
    "cuda_l1.search",
    "cuda_l1.training",
    "cuda_l1.training.recipe",
    "cuda_l1.training.run_directory",
    "cuda_l1.training.rounds",
    "cuda_l1.training.sampling",
    "cuda_l1.training.held_out",
    "cuda_l1.training.stages",
    "cuda_l1.training.task_sets",
    "cuda_l1.report.build",
    "cuda_l1.report.formats",
    "cuda_l1.report.site.write",
    "cuda_l1.report.terminal",
    "cuda_l1.export.dropin",
    "cuda_l1.export.header",
    "cuda_l1.export.cost",
    "cuda_l1.export.probe",
    "cuda_l1.api",
    "cuda_l1.api.searching",
    "cuda_l1.api.device_facts",
    "cuda_l1.api.judging",
    "cuda_l1.api.policy",
    "cuda_l1.api.prompting",
    "cuda_l1.api.reviewing",
    "cuda_l1.cli.app",
)


def python(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_help_of_every_command_loads_nothing_heavy_and_shows_an_example() -> None:
    python(HELP.format(commands=COMMANDS, heavy=HEAVY))


def test_importing_the_package_loads_nothing_heavy() -> None:
    python(f"import sys, cuda_l1; loaded = [n for n in {HEAVY} if n in sys.modules]; assert not loaded, loaded")


def test_no_module_but_those_of_the_far_side_and_the_nn_module_loads_torch() -> None:
    python(LIGHT.format(modules=MODULES))


@pytest.mark.parametrize("name", ["optimize", "evaluate", "load_tasks", "Task", "Candidate", "Evaluation", "Outcome"])
def test_the_package_hands_out_its_doors_without_torch(name: str) -> None:
    python(f"import sys, cuda_l1; assert cuda_l1.{name}; assert 'torch' not in sys.modules")


def test_every_command_is_asked() -> None:
    """A command that is added must be added here."""
    from cuda_l1.cli.app import app
    from cuda_l1.cli.archive import archive_app
    from cuda_l1.cli.hacks import hacks_app
    from cuda_l1.cli.tasks import tasks_app
    from cuda_l1.cli.train import train_app

    def names(commands: object) -> set[str]:
        found = set()
        for command in commands:  # type: ignore[attr-defined]
            found.add(command.name or command.callback.__name__)
        return found

    groups = {
        (): app,
        ("tasks",): tasks_app,
        ("train",): train_app,
        ("archive",): archive_app,
        ("archive", "hacks"): hacks_app,
    }
    there = {(*prefix, name) for prefix, group in groups.items() for name in names(group.registered_commands)}
    assert there | groups.keys() == set(COMMANDS)
