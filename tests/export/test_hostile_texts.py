"""Files made from other people's texts: nothing in one ends a comment, moves a line, or changes the original."""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path

import pytest
import torch
from test_dropin import REFERENCE, RENAMED, SUBCLASS, check, dropin, load, make_candidate, make_task, pair
from test_release_export import record, task

from cuda_l1.api.judging import read_candidate
from cuda_l1.errors import CandidateError
from cuda_l1.export.compose import compose
from cuda_l1.export.header import add_header, split_header
from cuda_l1.types import Record, Task

EVIL = "x\nimport os; os.abort()\n# ── measured text ──\nx\x1b[2J"


def of_text(source: str, **place: str) -> tuple[Record, Task]:
    """A record of a candidate with this text, measured in such a place."""
    of = task("level1/1_a")
    found = record(of)
    candidate = make_candidate(of, source)
    environment = found.evaluation.environment.model_copy(update=place)
    evaluation = found.evaluation.model_copy(update={"environment": environment, "candidate_id": candidate.id})
    return found.model_copy(update={"candidate": candidate, "evaluation": evaluation}), of


@pytest.mark.parametrize("field", ["device_name", "lane", "rung", "torch", "python", "task"])
def test_no_name_in_a_record_ends_its_comment(field: str) -> None:
    body = "class ModelNew: ...\n"
    found, of = of_text(body, **({} if field == "task" else {field: EVIL}))
    text = add_header(body, found, of.model_copy(update={"name": EVIL}) if field == "task" else of)
    header, below = split_header(text)
    assert below == body and "\x1b" not in text
    assert all(line.startswith("#") for line in header.splitlines()) and "abort" in header


def test_a_header_within_a_text_is_part_of_what_was_measured() -> None:
    forged = "# Written by cuda-l1 9.9. 100x\nhidden = 1\n# ── measured text ──\nclass ModelNew: ...\n"
    found, of = of_text(forged)
    text = add_header(forged, found, of)
    assert split_header(text)[1] == forged
    assert f"{hashlib.sha256(forged.encode()).hexdigest()}\n" in split_header(text)[0]


@pytest.mark.parametrize("line", ["# coding: utf-7\n", "#!/bin/sh\n# -*- coding: latin-1 -*-\n", "# coding: unheard\n"])
def test_a_text_that_would_mean_something_else_below_a_header_is_refused(line: str) -> None:
    body = f"{line}class ModelNew: ...\n"
    found, of = of_text(body)
    with pytest.raises(CandidateError, match=r"UTF-8|not Python"):
        add_header(body, found, of)
    with pytest.raises(CandidateError, match=r"UTF-8|not Python"):
        compose(REFERENCE, body)


@pytest.mark.parametrize("sign", ["\f", "\x1c", "\u2028", "\x85", "\r"], ids=["ff", "fs", "ls", "nel", "cr"])
def test_signs_that_end_no_line_of_pythons_move_no_name(tmp_path: Path, sign: str) -> None:
    mark = f'MARK = """a{sign}b"""\n'
    future = "from __future__ import annotations\n"
    module = dropin(tmp_path, f"{future}{mark}{RENAMED}", f"{future}{mark}{REFERENCE}")
    meant = ast.literal_eval(mark.partition("= ")[2].strip())
    assert vars(module)["MARK"] == meant
    check(module, *pair(module), fast=True)


@pytest.mark.parametrize(
    "patch",
    ["Model.forward = ModelNew.forward", "setattr(Model, 'forward', ModelNew.forward)", "del Model.forward"],
)
def test_a_candidate_that_changes_the_reference_changes_a_copy(tmp_path: Path, patch: str) -> None:
    module = dropin(tmp_path, f"{SUBCLASS}\n\n{patch}\n")
    new = module.ModelNew(8)
    with torch.no_grad(), pytest.warns(UserWarning, match="the original forward runs"):
        new(*(t[:2] for t in module.get_inputs()))
    assert not module.CALLS and module._dropin_Original is not module.Model


def test_star_imports_may_bind_any_name(tmp_path: Path) -> None:
    reference = REFERENCE.replace("* y +", "* sqrt(y * y) +") + "\n\ndef sqrt(y):\n    return torch.sqrt(y)\n"
    candidate = RENAMED.replace(") * y", ") * y.abs()") + "\n\nfrom math import *\n"
    module = dropin(tmp_path, candidate, reference)
    with torch.no_grad(), pytest.warns(UserWarning, match="the original forward runs"):
        assert module.ModelNew(8)(*(t[:2] for t in module.get_inputs())).shape == (2, 8)


def test_a_text_that_is_nested_too_deep_is_the_candidates_fault() -> None:
    with pytest.raises(CandidateError, match=r"nested too deep|not Python"):
        compose(REFERENCE, f"{RENAMED}\n\ndef deep():\n    return {'+'.join(['1'] * 2500)}\n")


def test_a_lazily_negated_input_is_no_input_like_the_measured_ones(tmp_path: Path) -> None:
    module = dropin(tmp_path)
    original, new = pair(module)
    x, y = module.get_inputs()
    with torch.no_grad(), pytest.warns(UserWarning, match="another dtype"):
        torch.testing.assert_close(new(torch._neg_view(x), y), original(-x, y))
    assert not module.CALLS


def test_the_exported_file_runs_as_it_was_measured(tmp_path: Path) -> None:
    of = make_task()
    body = compose(of.source, SUBCLASS)[0]
    found, at = of_text(body)
    assert load(tmp_path, add_header(body, found, at))._Optimized


def test_two_modules_of_one_name_are_refused(tmp_path: Path) -> None:
    """One process has one of them: the other text would compute with it."""

    def texts(folder: str, scale: int) -> str:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "scales.py").write_text(f"SCALE = {scale}\n")
        path = tmp_path / folder / "file.py"
        path.write_text(f"from scales import SCALE\n{REFERENCE}")
        return read_candidate(path)

    ours, same, theirs = texts("ours", 2), texts("same", 2), texts("theirs", 3)
    assert compose(ours, same.replace("class Model", "class ModelNew"))
    with pytest.raises(CandidateError, match="`scales` is one module beside the task and another"):
        compose(ours, theirs.replace("class Model", "class ModelNew"))
