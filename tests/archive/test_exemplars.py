"""Which variants a prompt is shown: only those that count, by score, the same under a seed."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from cuda_l1.archive import Archive
from cuda_l1.config import SamplerSettings
from cuda_l1.types import Environment, Exemplar, Finding, Origin, Record, Task

Make = Callable[..., Record]
PLACE = Environment(device="cpu", device_name="Test CPU", lane="0-1", rung="R1", torch="2.9.0")
GPU = Environment(device="cuda", device_name="NVIDIA H200", lane="gpu", rung="R2", torch="2.9.0", cuda="12.8")


def draw(archive: Archive, task: Task, seed: int = 0, place: Environment = PLACE, **settings: object) -> list[Exemplar]:
    chosen = SamplerSettings.model_validate(settings)
    return archive.exemplars.draw(task.sha, chosen, seed=seed, environment_key=place.key)


@pytest.fixture
def archive(tmp_path: Path, make_record: Make, task: Task) -> Archive:
    """Twelve variants from 1.1x to 11x, four in a bucket of width 1 at most."""
    opened = Archive.open(tmp_path / "archive.sqlite")
    for number in range(12):
        opened.append(make_record(f"v{number}", sequence=number + 1, speedup=1.1 * 1.232**number), task)
    return opened


def test_each_of_n_buckets_gives_one(archive: Archive, task: Task) -> None:
    for seed in range(20):
        drawn = draw(archive, task, seed, count=3, bucket_width=0.5)
        assert len({exemplar.bucket for exemplar in drawn}) == 3
        for exemplar in drawn:
            assert exemplar.bucket == math.floor(math.log(exemplar.score or 0) / 0.5)


def test_a_seed_decides_and_merging_in_another_order_changes_nothing(
    archive: Archive, tmp_path: Path, make_record: Make, task: Task
) -> None:
    with Archive.open(tmp_path / "other.sqlite") as other:
        for record in reversed(list(archive.records())):
            other.append(record, task)
        for kind in ("bucket", "island", "random", "top", "bucket-shuffled-scores", "bucket-hidden-scores"):
            for seed in range(5):
                assert draw(archive, task, seed, kind=kind) == draw(other, task, seed, kind=kind)
    assert len({tuple(e.candidate_id for e in draw(archive, task, seed)) for seed in range(20)}) > 5


def test_with_fewer_buckets_some_give_several_and_none_gives_one_twice(archive: Archive, task: Task) -> None:
    drawn = draw(archive, task, count=5, bucket_width=10.0)
    assert len({exemplar.candidate_id for exemplar in drawn}) == 5
    assert len(draw(archive, task, count=16, bucket_width=1.0)) == 12


def test_top_random_and_none(archive: Archive, task: Task) -> None:
    assert sorted(round(e.score or 0, 1) for e in draw(archive, task, kind="top", count=2)) == [8.9, 10.9]
    assert draw(archive, task, kind="none") == draw(archive, task, count=0) == []
    assert len({e.candidate_id for seed in range(40) for e in draw(archive, task, seed, kind="random")}) == 12


def test_an_island_is_always_the_same_part(archive: Archive, make_record: Make, task: Task) -> None:
    for number in range(100):
        archive.append(make_record(f"more {number}", sequence=100 + number, speedup=1.0 + number / 10), task)
    together: dict[str, set[str]] = {}
    for seed in range(60):
        shown = {e.candidate_id for e in draw(archive, task, seed, kind="island", count=8, islands=4)}
        for candidate in shown:
            together.setdefault(candidate, set()).update(shown)
    islands = {frozenset(int(c[:8], 16) % 4 for c in others) for others in together.values()}
    assert islands == {frozenset({number}) for number in range(4)}


def test_controls_hide_the_scores_or_put_them_beside_others(archive: Archive, task: Task) -> None:
    true = {e.candidate_id: e.score for e in draw(archive, task, kind="top", count=12)}
    for seed in range(10):
        hidden = draw(archive, task, seed, kind="bucket-hidden-scores", count=3)
        shuffled = draw(archive, task, seed, kind="bucket-shuffled-scores", count=3)
        assert {e.score for e in hidden} == {None}
        assert [e.candidate_id for e in hidden] == [e.candidate_id for e in shuffled]
        assert sorted(e.score or 0 for e in shuffled) == sorted(true[e.candidate_id] or 0 for e in shuffled)
        assert all(e.score != true[e.candidate_id] for e in shuffled)


def test_the_order_says_nothing_about_the_score(archive: Archive, task: Task) -> None:
    rising = [
        (a.score or 0.0) < (b.score or 0.0)
        for seed in range(200)
        for a, b in pairwise(draw(archive, task, seed, temperature=0.3))
    ]
    assert 70 < sum(rising) < 130


UNCONFINED = PLACE.model_copy(update={"rung": "R0"})


@pytest.mark.parametrize(
    "fields",
    [
        {"speedup": None},
        {"findings": (Finding(check="reviewer", severity="suspect", evidence="caches"),)},
        {"protocol": "kernelbench"},
        {"precision_class": "relaxed"},
        {"environment": UNCONFINED},
    ],
)
def test_what_does_not_count_is_not_shown(
    tmp_path: Path, make_record: Make, task: Task, fields: dict[str, object]
) -> None:
    with Archive.open(tmp_path / "a.sqlite") as archive:
        archive.append(make_record(**fields), task)
        assert draw(archive, task) == draw(archive, task, place=UNCONFINED) == []
        archive.append(make_record("right", sequence=2), task)
        assert [e.source for e in draw(archive, task)] == ["right"]


def test_baselines_and_exported_files_are_not_shown(tmp_path: Path, make_record: Make, task: Task) -> None:
    with Archive.open(tmp_path / "a.sqlite") as archive:
        baseline = make_record("eager")
        origins = (Origin(proposer="baselines", techniques=("eager",)),)
        archive.append(
            baseline.model_copy(update={"candidate": baseline.candidate.model_copy(update={"origins": origins})}), task
        )
        archive.append(make_record("import torch as _dropin_torch", sequence=2), task)
        assert draw(archive, task) == []


def test_the_latest_record_of_a_candidate_decides(tmp_path: Path, make_record: Make, task: Task) -> None:
    suspect = (Finding(check="reviewer", severity="suspect", evidence="caches"),)
    history = [
        make_record(sequence=1, speedup=3.0),
        make_record(sequence=2, speedup=2.0, protocol="final"),
        make_record(sequence=3, speedup=9.0, protocol="kernelbench"),
        make_record(sequence=4, speedup=3.0, findings=suspect),
    ]
    with Archive.open(tmp_path / "a.sqlite") as one, Archive.open(tmp_path / "b.sqlite") as two:
        for record, shown in zip(history, ([3.0], [2.0], [2.0], []), strict=True):
            one.append(record, task)
            assert [round(e.score or 0, 9) for e in draw(one, task, count=4)] == shown
            assert one.exemplars.count(task.sha, PLACE.key) == len(shown)
        for record in reversed(history):
            two.append(record, task)
            assert draw(two, task) == []
        assert one.rebuild_index() == 0
        assert draw(one, task) == []


def test_rebuilding_counts_what_appending_counted(archive: Archive, task: Task) -> None:
    before = draw(archive, task, count=3, seed=3)
    assert archive.rebuild_index() == 0
    assert archive.exemplars.count(task.sha, PLACE.key) == 12
    assert draw(archive, task, count=3, seed=3) == before


def test_variants_of_another_gpu_are_refused_and_named(tmp_path: Path, make_record: Make, task: Task) -> None:
    with Archive.open(tmp_path / "a.sqlite") as archive:
        archive.append(make_record("here", speedup=1.5), task)
        for number in range(3):
            timing = make_record(speedup=4.0).evaluation.timings[0].model_copy(update={"clock": "device"})
            archive.append(make_record(f"{number}", sequence=2 + number, environment=GPU, timings=(timing,)), task)
        assert [e.source for e in draw(archive, task, count=8)] == ["here"]
        assert archive.exemplars.elsewhere(task.sha, PLACE.key) == [("NVIDIA H200", GPU.key, 3)]
        assert archive.exemplars.elsewhere(task.sha, GPU.key) == [("Test CPU", PLACE.key, 1)]
        new = GPU.model_copy(update={"device_name": "NVIDIA B200"})
        assert draw(archive, task, place=new) == []
        assert sum(place.variants for place in archive.exemplars.elsewhere(task.sha, new.key)) == 4


def test_a_width_between_two_bins_is_refused() -> None:
    for wrong in (0.105, 0.0, 11.0, math.nan):
        with pytest.raises(ValueError, match="bucket_width"):
            SamplerSettings(bucket_width=wrong)
