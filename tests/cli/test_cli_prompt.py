"""`cuda-l1 prompt`: what a model would be asked, and one line for each mistake."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_fakes import PLACE, lines
from typer.testing import Result

from cuda_l1.archive import Archive
from cuda_l1.tasks import load_task
from cuda_l1.types import (
    Candidate,
    Correctness,
    Counters,
    Environment,
    Evaluation,
    Origin,
    Outcome,
    Pair,
    Record,
    Task,
    Timing,
    Trial,
)

Run = Callable[..., Result]


def keep(
    task: Task, text: str, speedup: float | None, place: Environment = PLACE, counters: Counters | None = None
) -> None:
    """A record of a candidate in the archive; without a speed-up one that failed."""
    own = Candidate(task_sha=task.sha, task_id=task.id, source=text, origins=(Origin(proposer="llm"),))
    more: dict[str, object] = {"outcome": Outcome.BUILD_FAILED, "detail": "it lacks a bracket"}
    if speedup is not None:
        trial = Trial(kind="base", error=0.0, reference_error=0.0, bound=1e-6, passed_class="fp32")
        pair = Pair(candidate_us=(1.0,), opponent_us=(1.0,), candidate_pid=1, opponent_pid=2, log_ratio=0.0)
        figures = {"speedup": speedup, "candidate_us": 10.0, "opponent_us": 10.0 * speedup, "pairs": (pair,)}
        timing = Timing.model_validate({"clock": "call", "opponent": "eager", "opponent_id": "e", **figures})
        right = Correctness(trials=(trial,), precision_class="fp32", task_class="fp32")
        more = {"outcome": Outcome.ACCEPTED, "correctness": right, "timings": (timing,), "counters": counters}
    found = Evaluation.model_validate(
        {"candidate_id": own.id, "environment": place, "protocol": "screen", **more}, from_attributes=True
    )
    with Archive.open() as archive:
        record = Record(run="r", sequence=archive.next_sequence("r"), candidate=own, evaluation=found)
        archive.append(record, task)


def test_the_prompt_is_printed_with_its_number_of_tokens(run: Run, reference: Path) -> None:
    result = run("prompt", reference, "--device", "cpu")
    assert result.exit_code == 0, result.stderr
    assert reference.read_text().strip() in result.stdout and "## Performance Analysis" in result.stdout
    assert "There is none yet" in result.stdout and "in C++" in result.stdout
    assert not Path(os.environ["CUDA_L1_ARCHIVE"]).exists(), "looking leaves nothing behind"
    assert "tokens (estimate, 3 bytes a token), contrastive@" in result.stderr


def test_counters_that_were_asked_for_and_are_not_there_are_a_line(run: Run, reference: Path) -> None:
    task = load_task(str(reference), device="cpu")
    keep(task, "class ModelNew: pass\n", 3.0, counters=Counters(missing="Nsight Compute (`ncu`) was not found"))
    asked = run("prompt", reference, "--device", "cpu", "--profile")
    assert "no hardware counters of the best variant: Nsight Compute (`ncu`) was not found" in asked.stderr
    assert "hardware counters" not in run("prompt", reference, "--device", "cpu").stderr


def test_what_the_archive_holds_from_this_place_is_shown(run: Run, reference: Path) -> None:
    task = load_task(str(reference), device="cpu")
    keep(task, "class ModelNew: pass  # fast\n", 3.0)
    keep(task, "class ModelNew: pass  # slow\n", 1.2)
    keep(task, "class ModelNew: pass  # broken\n", None)
    keep(task, "class ModelNew: pass  # foreign\n", 9.0, PLACE.model_copy(update={"device_name": "another cpu"}))
    shown, summary = lines(run("prompt", reference, "--device", "cpu", "--json"))
    assert "score 3.000" in shown["user"] and "score 1.200" in shown["user"] and "it lacks a bracket" in shown["user"]
    assert "# foreign" not in shown["user"] and summary["exemplars"] == len(shown["exemplars"]) == 2
    assert shown["tokens"] == summary["tokens"] > 500
    assert (
        "not shown: 1 variant measured elsewhere or under other rules (another cpu)"
        in run("prompt", reference, "--device", "cpu").stderr
    )
    hidden = run("prompt", reference, "--device", "cpu", "--sampler", "bucket-hidden-scores").stdout
    assert "# fast" in hidden and "3.000" not in hidden
    repair = lines(run("prompt", reference, "--device", "cpu", "--kind", "repair", "--json"))[0]
    assert "# broken" in repair["user"] and repair["template"].startswith("repair@")
    again = lines(run("prompt", reference, "--device", "cpu", "--json"))[0]
    assert again["sha"] == shown["sha"]


def test_a_template_of_ones_own(run: Run, reference: Path, tmp_path: Path) -> None:
    own = tmp_path / "mine.j2"
    own.write_text('{{ data("task", task) }}\nWrite {{ language }}.{% for e in exemplars %}{{ e.score }}{% endfor %}\n')
    shown = lines(run("prompt", reference, "--device", "cpu", "--template", own, "--json"))[0]
    assert shown["user"].endswith("Write cpp.\n") and shown["template"].startswith("mine@")
    first = shown["template"]
    own.write_text(own.read_text() + "Please.\n")
    assert lines(run("prompt", reference, "--device", "cpu", "--template", own, "--json"))[0]["template"] != first


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ task }}\n{{ tsak }}", "line 2: unknown variable `tsak`; known are task, language"),
        ("{% if task %}", "line 1: "),
        ("{{ facts.colour }}", "has no attribute 'colour'"),
        ("{{ task / 2 }}", "unsupported operand"),
        ("{% include 'nothing.j2' %}", "nothing.j2"),
        ("{{ task.__class__.__mro__ }}", "unsafe"),
        ("{{ exemplars[3].score }}", "has no element 3"),
        ('{% include "../config.py" %}', "it includes ../config.py, but only files of cuda_l1/prompts can be"),
    ],
)
def test_a_faulty_template_is_one_line(run: Run, reference: Path, tmp_path: Path, text: str, said: str) -> None:
    own = tmp_path / "mine.j2"
    own.write_text(text)
    result = run("prompt", reference, "--device", "cpu", "--template", own)
    assert result.exit_code == 2 and said in result.stderr and result.stderr.count("\n") == 1, result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--template", "nowhere.j2"], "cannot be read"),
        (["--archive", "nowhere.sqlite"], "nowhere.sqlite"),
        (["--tokenizer", "nowhere"], "no such file; give a model's folder or its tokenizer.json"),
        (["--kind", "repair"], "holds no failed attempt at ref"),
        (["--max-tokens", "1000"], "without failed attempts and exemplars, more than max_tokens = 1000"),
    ],
)
def test_mistakes_are_one_line(run: Run, reference: Path, words: list[str], said: str) -> None:
    result = run("prompt", reference, "--device", "cpu", *words)
    assert result.exit_code == 2 and said in result.stderr and result.stderr.count("\n") == 1, result.stderr


def test_a_real_tokenizer_counts(run: Run, reference: Path, tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    words.save(str(tmp_path / "tokenizer.json"))
    shown = lines(run("prompt", reference, "--device", "cpu", "--tokenizer", tmp_path, "--json"))[0]
    assert shown["tokens"] == len(shown["system"].split()) + len(shown["user"].split())
    assert shown["tokenizer"].endswith("tokenizer.json")
    (tmp_path / "tokenizer.json").write_text("{}")
    broken = run("prompt", reference, "--device", "cpu", "--tokenizer", tmp_path)
    assert broken.exit_code == 2 and "is no tokenizer.json" in broken.stderr
