"""The documents: links lead somewhere, the reading path is short, and the examples run as they are printed."""

from __future__ import annotations

import ast
import inspect
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import cuda_l1

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), ROOT / "tests/attacks/README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"<!-- (\w+)(?:: (\S+))? -->\n```\w+\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files_and_headings(document: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
        if target.startswith("http"):
            continue
        path, _, heading = target.partition("#")
        file = (document.parent / path).resolve() if path else document
        assert file.exists(), f"{document.name}: {target}"
        if heading:
            slugs = [re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).replace(" ", "-")
                     for line in file.read_text().splitlines() if line.startswith("#")]  # fmt: skip
            assert heading in slugs, f"{document.name}: {target}"


def test_the_reading_path_is_six_files_under_900_lines() -> None:
    section = (ROOT / "README.md").read_text().partition("## Reading the code")[2].partition("[docs/architecture")[0]
    files = re.findall(r"\]\((src/[^)]+\.py)\)", section)
    assert len(files) == 6
    assert sum(len((ROOT / name).read_text().splitlines()) for name in files) < 900


def test_the_figures_of_the_readme_are_those_of_the_results() -> None:
    on_gpu = (ROOT / "README.md").read_text().partition("## What it finds")[2].partition("On a CPU")[0]
    row = r"^\| `(\w+)` \| ([^|]+ \| [^|]+) \|"
    second = r"^\| `(\w+)` \| [^|]+ \| [^|]+ \| ([^|]+ \| [^|]+) \|"
    for device, columns in (("h100", row), ("h200", second)):
        results = (ROOT / "docs" / "results" / device / "suite.md").read_text()
        rows = re.findall(columns, on_gpu, re.MULTILINE)
        assert rows
        for name, figures in rows:
            assert re.search(rf"^\| {name} \| [\w-]+ \| {re.escape(figures)} \|", results, re.MULTILINE), name


def test_the_tables_of_trials_name_all_that_there_are() -> None:
    from cuda_l1.evaluator.guest import plans

    page = (ROOT / "docs" / "evaluation-protocol.md").read_text()
    text = page.partition("\n### The trials\n")[2].partition("\n### ")[0]
    named = {
        name for row in re.findall(r"^\| (`[^|]+) \|", text, re.MULTILINE) for name in re.findall(r"`([^`]+)`", row)
    }
    every = (
        *plans.standard_plans((("weight",),)),
        plans.SUCCESSION,
        plans.ROW,
        *plans.UNDRAWN_PLANS,
        *plans.RANGE_PLANS,
    )
    assert named == {plan.kind for plan in every}


def test_every_choice_of_proposer_in_the_documents_exists() -> None:
    from cuda_l1.api.proposers import PROPOSERS
    from cuda_l1.proposers.techniques import REGISTRY

    for document in DOCUMENTS:
        for proposer, chosen in re.findall(r"--proposer (\w+):?([\w+]*)", document.read_text()):
            assert proposer in PROPOSERS, document
            if proposer == "techniques" and chosen != "NAME+NAME":
                assert set(filter(None, chosen.split("+"))) <= set(REGISTRY), document


def test_the_table_of_techniques_is_that_of_the_registry() -> None:
    from cuda_l1.proposers.techniques import REGISTRY, load

    section = (ROOT / "docs" / "concepts.md").read_text().partition("## The techniques")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([\w, ]+) \| (\w+) \|$", section, re.MULTILINE)
    techniques = [load(name) for name in REGISTRY]
    assert rows == [(t.name, ", ".join(sorted(t.devices)), t.precision) for t in techniques]


def test_the_readme_example_calls_what_there_is() -> None:
    # Not run: a search with its baselines takes minutes, and the quickstart's own, which is run, takes the same way.
    (_, _, body), *others = BLOCK.findall((ROOT / "README.md").read_text())
    assert not others
    calls = [node for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Call)]
    ours = [call for call in calls if ast.unparse(call.func).startswith("cuda_l1.")]
    assert ours
    for call in ours:
        parameters = inspect.signature(getattr(cuda_l1, ast.unparse(call.func).removeprefix("cuda_l1."))).parameters
        assert {keyword.arg for keyword in call.keywords} <= parameters.keys()


@pytest.mark.e2e
@pytest.mark.timeout(2400)
def test_the_quickstart_runs_as_it_is_printed(tmp_path: Path) -> None:
    # Only budgets and sizes are smaller: two candidates, few pairs and a quarter of the rows show as well that every
    # command is right.
    text = re.sub(r"--budget \d+s", "--budget 2", (ROOT / "docs" / "quickstart.md").read_text())
    text = re.sub(r"\b512\b", "256", text)
    text = re.sub(r'budget="\d+s"', 'budget="2", final_budget="2s"', text)
    blocks = BLOCK.findall(text)
    assert {kind for kind, _, _ in blocks} == {"file", "run", "test"}
    environment = {**os.environ, "CUDA_L1_ARCHIVE": str(tmp_path / "a.sqlite"), "CUDA_VISIBLE_DEVICES": ""}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    for kind, name, body in blocks:
        if kind == "file":
            (tmp_path / name).write_text(body)
            continue
        commands = (
            [shlex.split(line) for line in body.splitlines()] if kind == "run" else [[sys.executable, "-c", body]]
        )
        for command in commands:
            if command[1] in ("optimize", "evaluate"):
                command += ["--final-budget", "2s"]
            for _ in range(2):  # beside others who compute a search may find nothing that holds
                done = subprocess.run(
                    command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900
                )
                if done.returncode != 1:
                    break
            assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
