"""No attack gets full credit, no honest twin is turned away, and each attack is one: a naive harness accepts it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from corpus import FAMILIES, LIMITS, OF_TIME, RUNGS, Case, cases, complaint, gets_full_credit, judge, read, told
from naive_forks import NaiveForks, started

from cuda_l1.config import EvaluatorSettings
from cuda_l1.evaluator import Evaluator
from cuda_l1.evaluator.gpus import visible_gpus
from cuda_l1.types import Outcome
from shares import in_turn

pytestmark = pytest.mark.e2e(always=True)  # of which a part is due
THREAT_MODEL = Path(__file__).parents[2] / "docs" / "threat-model.md"
STARTS_THREADS = re.compile(r"threading|_thread\b|Thread")
DEVICE = "cuda" if visible_gpus() else "cpu"
PARTS, ATTACKED, TWINNED, TRIED = 16, 2, 1, 1
"""Parts of the corpus, and how many of them are due where slow tests are left out, others at each commit: attacks that
are judged, twins, which take longer, and attacks that the naive harness is given. With a twin comes its attack, so that
the judge of their task is started once."""


def marks(case: Case) -> list[pytest.MarkDecorator]:
    """What lets a thread or a process of its own work while the clock runs needs a second core for it, and what only a
    clock can tell a machine that is quiet: both have the whole one."""
    texts = [case.candidate(file).source for file in ("candidate.py", "twin.py")]
    alone = DEVICE != "cpu" or any(STARTS_THREADS.search(text) for text in texts)
    if case.family == "clock":
        alone |= Outcome.REJECTED in case.outcomes or bool((OF_TIME - {"drawn-ahead"}) & set(case.suspects))
    return [pytest.mark.slow] * case.slow + [pytest.mark.alone] * alone


IN_ORDER = sorted(cases(DEVICE), key=lambda case: case.task().sha)  # cases of one task share its judge
PART = in_turn(PARTS)


def in_parts(due: int) -> list[Any]:
    """All cases, of which so many parts are due."""
    return [
        pytest.param(case, id=case.id, marks=[*marks(case), *[pytest.mark.slow] * ((number - PART) % PARTS >= due)])
        for number, case in enumerate(IN_ORDER)
    ]


@pytest.fixture(scope="module")
def evaluator(cache_dir: str) -> Iterator[Evaluator]:
    with Evaluator(EvaluatorSettings(device=DEVICE, cache_dir=cache_dir, limits=LIMITS)) as opened:
        yield opened


# Of a module's scope: pytest runs all tests of one case after another, and the judge of its task stays open.
@pytest.mark.parametrize("case", in_parts(ATTACKED), scope="module")
def test_an_attack_gets_no_credit(evaluator: Evaluator, case: Case) -> None:
    if RUNGS.index(evaluator.environment.rung) < RUNGS.index(case.rung):
        pytest.skip(f"stopped from {case.rung} on; this machine allows {evaluator.environment.rung}")
    attack = case.candidate()
    result = judge(evaluator, case.task(), attack, case.screened, lambda found: complaint(case, found) is None)
    assert result.accepted or not case.known, f"stopped, and no limit any more: {told(result)}"
    assert complaint(case, result) is None, told(result)


@pytest.mark.parametrize("case", in_parts(TWINNED), scope="module")
def test_its_honest_twin_is_accepted(evaluator: Evaluator, case: Case) -> None:
    result = judge(evaluator, case.task(), case.candidate("twin.py"), case.screened)
    assert gets_full_credit(result, static=True), (told(result), result.log[-500:])


@pytest.fixture(scope="module")
def naive() -> Iterator[NaiveForks]:
    with NaiveForks() as forks:
        yield forks


@pytest.mark.parametrize("attack", in_parts(TRIED))
def test_a_naive_harness_accepts_it(naive: NaiveForks, attack: Case, tmp_path: Path) -> None:
    """What attacks the harness itself, its command line among it, gets one started for it; others get a fork."""
    files = [str(attack.folder / file) for file in ("reference.py", "candidate.py")]
    habit = ["--habit", attack.habit] if attack.habit else []
    run = started if attack.family == "harness" else naive.run
    done = run([*files, "--device", DEVICE, *habit], tmp_path)
    verdict = json.loads((done.stdout.strip().splitlines() or ["null"])[-1])
    part = f"of part {PART} of {PARTS}"
    assert done.returncode == 0 and verdict["correct"], (part, done.stdout, done.stderr[-1000:])
    assert attack.naive == "correct" or verdict["speedup"] >= 2.0, (part, verdict)


def test_who_ends_a_group_of_processes_ends_no_other_fork(naive: NaiveForks, tmp_path: Path) -> None:
    (tmp_path / "reference.py").write_text("import os, signal\nos.killpg(0, signal.SIGKILL)\n")
    files = [str(tmp_path / "reference.py")] * 2
    assert [naive.run(files, tmp_path).returncode for _ in range(2)] == [-9, -9]


def test_known_limits_are_named_in_the_threat_model() -> None:
    named = " ".join(THREAT_MODEL.read_text(encoding="utf-8").partition("## What no check sees")[2].split())
    known = [case for device in ("cpu", "cuda") for case in cases(device) if case.known]
    assert known
    for case in known:
        assert len(case.known.split()) >= 5 and case.known in named, (case.id, case.known)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_corpus_is_whole(device: str) -> None:
    found = cases(device)
    assert len(found) >= 60
    for family in FAMILIES:
        assert sum(case.family == family for case in found) >= 10, family
    for case in found:
        texts = [case.candidate(file).source for file in ("candidate.py", "twin.py")]
        assert len({case.task().source, *texts}) == 3, f"{case.id}: the attack is its twin, or the reference"
        assert all("class ModelNew" in text for text in texts), case.id


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"suspects": '["device-memory"]'}, "device-memory"),
        ({"outcomes": '["FAST"]'}, "FAST"),
        ({"outcomes": '["CRASHED"]'}, "do not fit together"),
        ({"suspects": "[]"}, "do not fit together"),
    ],
)
def test_a_case_that_means_nothing_is_refused(tmp_path: Path, change: dict[str, str], says: str) -> None:
    fields = {"mechanism": '"m"', "twin": '"t"', "outcomes": '["ACCEPTED"]', "suspects": '["caching"]'}
    path = tmp_path / "memory" / "name" / "case.toml"
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"{key} = {value}\n" for key, value in fields.items()))
    assert read(path).suspects == ("caching",)
    path.write_text("".join(f"{key} = {value}\n" for key, value in {**fields, **change}.items()))
    with pytest.raises(ValueError, match=says):
        read(path)
