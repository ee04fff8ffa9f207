"""The nouns: identity is content, and impossible results cannot be built."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from cuda_l1.types import (
    CallProfile,
    Candidate,
    Correctness,
    Environment,
    Evaluation,
    Finding,
    Origin,
    Outcome,
    Record,
    Task,
    TaskAudit,
    Timing,
    Trial,
    Weights,
    Work,
    detect_language,
    digest,
    proves_little,
)

PLACE = Environment(device="cpu", device_name="cpu", lane="0-1", rung="R1", torch="2.13.0")
TRIAL = Trial(kind="base", error=1e-7, reference_error=1e-7, bound=1e-6, passed_class="fp32")
RIGHT = Correctness(trials=(TRIAL,), precision_class="fp32", task_class="fp32")
TIMING = Timing(
    clock="call", opponent="eager", opponent_id="e", pairs=(), speedup=2.0, candidate_us=1.0, opponent_us=2.0
)


def evaluation(**fields: object) -> Evaluation:
    given_fields = {"candidate_id": "c", "outcome": Outcome.ACCEPTED, "environment": PLACE, "protocol": "final"}
    return Evaluation.model_validate(given_fields | fields)


@given(st.lists(st.text(), max_size=4), st.lists(st.text(), max_size=4))
def test_digest_tells_lists_of_parts_apart(left: list[str], right: list[str]) -> None:
    assert (digest(*left) == digest(*right)) == (left == right)


def test_a_tasks_identity_is_its_text_and_its_weights() -> None:
    task = Task(suite="file", name="a", source="x = 1")
    assert task.sha == Task(suite="builtin", name="b", source="x = 1").sha
    assert task.sha != Task(suite="file", name="a", source="x = 2").sha
    with_weights = Task(suite="file", name="a", source="x = 1", weights=Weights(path="/p", sha256="1"))
    moved = Task(suite="file", name="a", source="x = 1", weights=Weights(path="/q", sha256="1"))
    assert task.sha != with_weights.sha == moved.sha
    assert task.id == f"file/a@{task.sha[:12]}"


def test_a_copy_with_another_text_is_another_task() -> None:
    task = Task(suite="file", name="t", source="x = 1")
    first = task.sha, task.id
    changed = task.model_copy(update={"source": "x = 2"})
    assert (task.sha, task.id) == first and changed.sha == Task(suite="file", name="t", source="x = 2").sha != first[0]
    assert changed.id != first[1]


def test_a_candidates_identity_is_not_who_wrote_it() -> None:
    common = {"task_sha": "t", "task_id": "t", "source": "x"}
    one = Candidate(**common, origins=(Origin(proposer="llm", model="m"),))
    other = Candidate(**common, origins=(Origin(proposer="techniques", techniques=("a", "b")),))
    assert one.id == other.id != Candidate(**{**common, "task_sha": "u"}).id
    assert one.id != Candidate(**common, language="cpp").id
    assert (one.label, other.label, Candidate(**common).label) == ("m", "a + b", one.id[:8])


@pytest.mark.parametrize(
    "fields",
    [
        {"timings": (TIMING,)},
        {"correctness": RIGHT},
        {"correctness": RIGHT.model_copy(update={"precision_class": None}), "timings": (TIMING,)},
        {
            "correctness": RIGHT,
            "timings": (TIMING,),
            "findings": (Finding(check="clock-mismatch", severity="reject", evidence="e"),),
        },
    ],
    ids=["no correctness", "no timings", "no class", "a reject"],
)
def test_accepted_without_its_evidence_cannot_be_built(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="ACCEPTED"):
        evaluation(**fields)
    assert not evaluation(outcome=Outcome.REJECTED, **fields).accepted


def test_timings_are_found_by_opponent_and_clock() -> None:
    best = TIMING.model_copy(update={"opponent": "compile", "best_of": ("eager", "compile"), "speedup": 1.5})
    device = TIMING.model_copy(update={"clock": "device", "speedup": 3.0})
    found = evaluation(correctness=RIGHT, timings=(TIMING, best, device))
    assert found.timing() is not None and found.timing().speedup == 2.0
    assert found.timing(clock="device").speedup == 3.0
    assert found.best_baseline_timing().opponent == "compile"
    assert found.timing("unheard") is None and found.best_baseline_timing("device") is None


def test_suspects_can_be_ignored_by_name() -> None:
    suspects = tuple(Finding(check=name, severity="suspect", evidence="e") for name in ("precision", "unstable"))
    note = Finding(check="gc", severity="note", evidence="e")
    found = evaluation(correctness=RIGHT, timings=(TIMING,), findings=(*suspects, note))
    assert [f.check for f in found.suspects(ignore=("precision",))] == ["unstable"]


def test_places_with_comparable_figures_share_a_key() -> None:
    assert PLACE.key == PLACE.model_copy(update={"python": "3.12"}).key
    for field, value in (("lane", "0"), ("rung", "R2"), ("torch", "2.9.0"), ("device_name", "other"), ("driver", "1")):
        assert PLACE.key != PLACE.model_copy(update={field: value}).key, field


def test_what_is_not_sound() -> None:
    audit = TaskAudit(task_id="t", task_class="fp32", mode="train")
    assert audit.sound
    assert not audit.model_copy(update={"flags": ("degenerate",)}).sound
    assert audit.model_copy(update={"flags": ("random", "stateful")}).sound


def test_a_record_reads_back_with_the_same_id_and_writes_infinities_as_null() -> None:
    trial = TRIAL.model_copy(update={"error": float("inf")})
    wrong = evaluation(outcome=Outcome.WRONG_VALUES, correctness=RIGHT.model_copy(update={"trials": (trial,)}))
    candidate = Candidate(task_sha="t", task_id="t", source="x")
    record = Record(run="r", sequence=1, time=datetime(2026, 1, 2, tzinfo=UTC), candidate=candidate, evaluation=wrong)
    text = record.model_dump_json()
    assert json.loads(text)["evaluation"]["correctness"]["trials"][0]["error"] is None
    finite = record.model_copy(update={"evaluation": evaluation(outcome=Outcome.CRASHED)})
    assert Record.model_validate_json(finite.model_dump_json()).id == finite.id
    assert Record.model_validate_json(text).candidate.id == candidate.id


def test_records_are_frozen_and_refuse_unknown_fields() -> None:
    with pytest.raises(ValidationError):
        Finding(check="a", severity="note", evidence="e", more=1)  # type: ignore[call-arg]
    with pytest.raises(ValidationError):
        PLACE.rung = "R2"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("@triton.jit\ndef k(): ...", "triton"),
        ("__global__ void k() {}", "cuda"),
        ('extern "C" void f() {}', "cpp"),
        ("cpp_sources=[]", "cpp"),
        ("import torch", "pytorch"),
    ],
)
def test_languages(text: str, language: str) -> None:
    assert detect_language(text) == language


def test_an_evaluation_without_work_and_profile_is_written_as_before_there_was_any() -> None:
    """What a record's id is a hash of."""
    old, work = (
        evaluation(outcome=Outcome.CRASHED),
        Work(moved_bytes=8, flops=1, bytes_per_us=1.0, flops_per_us={"fp32": 1.0}),
    )
    for name, value in (("work", work), ("profile", CallProfile(kind="kernels", total_us=1.0))):
        assert name not in old.model_dump() and name not in old.model_dump_json()
        new = old.model_copy(update={name: value})
        assert Evaluation.model_validate_json(new.model_dump_json()) == new and f'"{name}":{{' in new.model_dump_json()


def test_what_proves_little_is_said_in_one_line() -> None:
    assert proves_little(("stateful", "random")) is None
    assert proves_little(("degenerate", "stateful", "ill-conditioned")) == (
        "degenerate, ill-conditioned task: being right on it proves little, `cuda-l1 tasks audit` says why"
    )
