"""The documents: links lead somewhere, the reading path is short, and the examples run as they are printed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
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


def test_every_technique_proposer_and_option_in_the_documents_exists() -> None:
    from cuda_l1.api.proposers import PROPOSERS
    from cuda_l1.proposers.techniques import REGISTRY

    for document in DOCUMENTS:
        for proposer, chosen in re.findall(r"--proposer (\w+):?([\w+]*)", document.read_text()):
            if chosen != "NAME+NAME":
                assert proposer in PROPOSERS and set(filter(None, chosen.split("+"))) <= set(REGISTRY), document


def printed() -> str:
    return (ROOT / "docs" / "quickstart.md").read_text()


@pytest.mark.e2e
@pytest.mark.timeout(900)
def test_the_quickstart_runs_as_it_is_printed(tmp_path: Path) -> None:
    # Only the budgets are smaller: two candidates show as well as a minute that every command is right.
    text = printed().replace("--budget 60s", "--budget 2").replace('budget="30s"', 'budget="2"')
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
            done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=400)
            assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
