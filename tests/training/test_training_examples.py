"""What stage 1 learns from: questions with 0 to k variants, and answers that read back as the variant."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from training_fakes import REFERENCE, row, write_rows

from cuda_l1.config import PromptSettings
from cuda_l1.errors import UsageError
from cuda_l1.prompts.reply import parse_reply
from cuda_l1.training.examples import analysis, design, examples_of, read_rows, reply_of

COMPACT = PromptSettings(kind="compact", device_facts=False, roofline=False, failures=0)
CONTRASTIVE = COMPACT.model_copy(update={"kind": "contrastive"})


def test_each_row_comes_with_every_number_of_other_variants_of_its_task() -> None:
    rows = [row(1), row(2), row(3), row(4, task="other")]
    examples = list(examples_of(rows, settings=COMPACT, exemplars=2, seed=0))
    assert [(each.row.candidate_id, each.exemplars) for each in examples] == [
        *(("c1", n) for n in range(3)), *(("c2", n) for n in range(3)), *(("c3", n) for n in range(3)), ("c4", 0),
    ]  # fmt: skip
    assert all(each.row.candidate_id not in each.prompt.exemplars for each in examples)
    assert all(len(set(each.prompt.exemplars)) == each.exemplars for each in examples)


def test_variants_measured_elsewhere_are_not_compared() -> None:
    examples = examples_of([row(1), row(2, device="Other CPU")], settings=COMPACT, exemplars=2, seed=0)
    assert [each.exemplars for each in examples] == [0, 0]


def test_the_contrastive_form_has_the_one_shot_question_beside_it() -> None:
    examples = list(examples_of([row(1), row(2)], settings=CONTRASTIVE, exemplars=1, seed=0))
    names = [each.prompt.template.partition("@")[0] for each in examples]
    assert names == ["one-shot", "contrastive", "contrastive"] * 2
    assert parse_reply(examples[0].completion, kind="one-shot").source == row(1).variant


@pytest.mark.parametrize("settings", [COMPACT, CONTRASTIVE], ids=lambda each: each.kind)
def test_an_answer_reads_back_as_the_variant_with_all_its_sections(settings: PromptSettings) -> None:
    for each in examples_of([row(1), row(2)], settings=settings, exemplars=1, seed=0):
        kind = "one-shot" if each.prompt.template.startswith("one-shot") else settings.kind
        read = parse_reply(each.completion, kind=kind, reference=REFERENCE)
        assert (read.source, read.missing) == (each.row.variant, ())


def test_the_same_seed_gives_the_same_examples_and_another_does_not() -> None:
    rows = [row(n) for n in range(6)]
    one, same, other = (
        [each.prompt.exemplars for each in examples_of(rows, settings=COMPACT, exemplars=2, seed=seed)]
        for seed in (0, 0, 1)
    )
    assert one == same and one != other


def test_judged_variants_to_learn_from_are_told_several_times_each_time_otherwise() -> None:
    """The first telling is what there is without others; validation and what nobody judged are told once."""
    tested = [row(n, split="validation") for n in (6, 8, 9)]
    rows = [*(row(n) for n in range(6)), *tested, row(7)._replace(speedup_eager=None)]
    once, thrice = (
        list(examples_of(rows, settings=COMPACT, exemplars=2, seed=0, tellings=tellings)) for tellings in (1, 3)
    )
    assert all(each in thrice for each in once)
    of_row = {each.candidate_id: [one for one in thrice if one.row.candidate_id == each.candidate_id] for each in rows}
    assert [len(of_row[f"c{n}"]) for n in range(8)] == [9] * 6 + [3, 1]
    shown = [tuple(one.prompt.exemplars) for one in of_row["c0"] if one.exemplars == 2]
    assert len(shown) == 3 and len(set(shown)) > 1


def test_no_answer_is_slower_than_what_its_question_shows() -> None:
    scores = {0: 0.5, 1: 1.0, 2: 1.02, 3: 2.0, 4: 4.0}
    rows = [*(row(n, speedup=speedup) for n, speedup in scores.items()), row(9)._replace(speedup_eager=None)]
    lessons = list(examples_of(rows, settings=COMPACT, exemplars=2, seed=0, tellings=8, faster=True))
    score_of = {each.candidate_id: each.speedup_eager for each in rows}
    for each in lessons:
        others = set(each.prompt.exemplars) - ({"c4"} if each.row.candidate_id == "c4" else set())
        assert all(each.row.score > 1.05 * score_of[shown] for shown in others)
    most = {n: max(each.exemplars for each in lessons if each.row.candidate_id == f"c{n}") for n in (*scores, 9)}
    assert most == {0: 0, 1: 1, 2: 1, 3: 2, 4: 2, 9: 0}
    assert {shown for each in lessons for shown in each.prompt.exemplars} == {"c0", "c1", "c2", "c3", "c4"}


def test_of_equals_each_may_be_written_again() -> None:
    rows = [row(0, speedup=2.0), row(1, speedup=2.04), row(2, speedup=1.0)]
    lessons = examples_of(rows, settings=COMPACT, exemplars=1, seed=0, tellings=16, faster=True)
    shown = {(each.row.candidate_id, *each.prompt.exemplars) for each in lessons if each.exemplars}
    assert shown == {("c0", "c0"), ("c0", "c2"), ("c1", "c1"), ("c1", "c2")}


def test_what_nobody_judged_is_shown_without_scores_beside_its_like_alone() -> None:
    unjudged = [row(n)._replace(speedup_eager=None) for n in range(40)]
    renamed = [each._replace(reference=each.reference + "\n", candidate_id=f"r{n}") for n, each in enumerate(unjudged)]
    rows = [row(50), row(51), *unjudged, *renamed]
    lessons = list(examples_of(rows, settings=COMPACT, exemplars=2, seed=0, tellings=3))
    told = [each for each in lessons if each.row.speedup_eager is None]
    assert [each.row for each in told] == [*unjudged, *renamed], "each once"
    assert {each.exemplars for each in told} == {0, 1, 2}
    for each in told:
        like = unjudged if each.row in unjudged else renamed
        assert set(each.prompt.exemplars) <= {other.candidate_id for other in like} - {each.row.candidate_id}
        assert each.prompt.user.count("no score") == each.exemplars
        assert each.completion.count("Nobody has measured variant") == each.exemplars
    assert all(set(each.prompt.exemplars) <= {"c50", "c51"} for each in lessons if each not in told)


def test_a_question_that_says_that_variants_are_right_shows_none_that_nobody_judged() -> None:
    rows = [row(n)._replace(speedup_eager=None) for n in range(9)]
    assert not any(each.exemplars for each in examples_of(rows, settings=CONTRASTIVE, exemplars=2, seed=0))


def test_the_analysis_says_what_was_measured() -> None:
    text = analysis([row(1, speedup=0.5), row(2, speedup=1.5)])
    assert text.splitlines() == [
        "Variant 2 is the fastest, 1.5 times as fast as the original: It adds in place.",
        "Variant 1 takes 3.0 times as long: It adds in place.",
    ]
    assert design(row(1, speedup=2.04)) == "It adds in place. It should be 2.0 times as fast as the original."


@pytest.mark.parametrize("settings", [COMPACT, CONTRASTIVE])
def test_without_the_analysis_neither_question_nor_answer_has_it(settings: PromptSettings) -> None:
    without = settings.model_copy(update={"analysis": False})
    for each in examples_of([row(1), row(2)], settings=without, exemplars=1, seed=0):
        assert "Performance Analysis" not in each.prompt.user + each.completion
        kind = "one-shot" if each.prompt.template.startswith("one-shot") else settings.kind
        assert parse_reply(each.completion, kind=kind, reference=REFERENCE).source == each.row.variant


def test_a_variant_that_no_reply_could_hold_is_named() -> None:
    broken = row(1)._replace(variant="class ModelNew(")
    with pytest.raises(UsageError, match=r"synth/0/1@abc: variant c1 does not read back"):
        reply_of(broken, [], COMPACT)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ({"variant": None}, "row 2: no variant"),
        ({"techniques": None}, "row 2: no techniques"),
        ({"speedup_eager": None}, "row 2: no speedup_eager"),
        ({"speedup_eager": math.nan}, "row 2: speedup_eager is nan"),
        ({"speedup_eager": 0.0}, r"row 2: speedup_eager is 0\.0"),
    ],
)
def test_a_damaged_row_of_a_data_set_is_named_in_one_line(tmp_path: Path, damage: dict[str, object], said: str) -> None:
    folder = write_rows(tmp_path, [row(1), row(2)._replace(**damage)])
    with pytest.raises(UsageError, match=f"parquet: not what .* writes .{said}"):
        read_rows(folder)
    assert len(read_rows(write_rows(tmp_path / "whole", [row(1), row(2)]))) == 2


@pytest.mark.parametrize("damage", ["cut", "no column", "other type"])
def test_a_damaged_file_of_a_data_set_is_named_in_one_line(tmp_path: Path, damage: str) -> None:
    folder = write_rows(tmp_path, [row(1)])
    from pyarrow import parquet

    (file,) = folder.rglob("*.parquet")
    table = parquet.read_table(file)
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-100])
    elif damage == "no column":
        parquet.write_table(table.drop_columns(["variant"]), file)
    else:
        parquet.write_table(
            table.set_column(table.column_names.index("speedup_eager"), "speedup_eager", [["fast"]]), file
        )
    with pytest.raises(UsageError, match="parquet: not what `cuda-l1 collect` writes") as caught:
        read_rows(folder)
    assert "\n" not in str(caught.value)
