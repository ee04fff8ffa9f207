"""The reader of CUDA-L1's release: both layouts, what is damaged, and (CUDA_L1_RELEASE) the true files."""

import gzip
import json
import os
import zlib
from pathlib import Path

import pytest

from cuda_l1.errors import TaskError
from cuda_l1.tasks.release import COLUMNS, Release, read_release

REFERENCE = "class Model: ...\ndef get_inputs(): return []\ndef get_init_inputs(): return []\n"


def row(level: int = 1, task: int = 1, **fields) -> dict:
    return {"level_id": level, "task_id": task, "ref_code": REFERENCE, "custom_code": "class ModelNew: ..."} | fields


def read(tmp_path: Path, *lines: dict | str) -> Release:
    path = tmp_path / "release.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return read_release(path)


def test_a_row_gives_the_task_the_sources_and_the_scores(tmp_path):
    scores = {"score_default": 2.75, "score_torch_compile_default": 1.9, "score_cuda_graph": None}
    release = read(tmp_path, row(2, 12, cuda_graph_code="class Model: 1", cudnn_code=None, **scores))
    (entry,) = release.entries
    assert (entry.level_id, entry.task_id, entry.name, entry.place) == (2, 12, "level2/12", "line 1")
    assert entry.task.source == REFERENCE and entry.task.level == 2 and entry.task.suite == "release"
    assert entry.scores == {"default": 2.75, "torch_compile_default": 1.9}
    assert entry.source("custom") == "class ModelNew: ..." and entry.source("cudnn") is None
    assert release.problems == ()


def test_the_columns_of_rewritten_references_define_what_a_candidate_defines(tmp_path):
    entry = read(tmp_path, row(cuda_graph_code="class Model:\n    pass")).entries[0]
    names: dict = {}
    exec(entry.source("cuda_graph"), names)
    assert names["ModelNew"] is names["Model"]
    assert "ModelNew" not in entry.codes["cuda_graph"]


def test_a_kernel_without_ModelNew_is_left_as_it_was_published(tmp_path):
    assert read(tmp_path, row(custom_code="class Model: 1")).entries[0].source("custom") == "class Model: 1"


def test_the_nested_layout_reads_the_same(tmp_path):
    path = tmp_path / "old.json"
    rows = [{"task_id": 3, "ref_code": REFERENCE, "custom_code": None, "score": None}]
    rows.append({"task_id": 1, "ref_code": REFERENCE, "custom_code": "x = 1", "score": "1.762"})
    path.write_text(json.dumps({"2": rows, "1": []}, indent=2))
    release = read_release(path)
    assert [entry.name for entry in release.entries] == ["level2/1", "level2/3"]
    assert release.entries[0].scores == {"default": 1.762}
    assert release.entries[1].codes == {} and release.entries[1].scores == {}


def test_a_damaged_line_is_reported_by_its_number_and_the_rest_goes_on(tmp_path):
    cut = json.dumps(row(1, 2))[:-30]
    release = read(tmp_path, row(1, 1), "", cut, row(1, 3), "[1, 2]", row(1, 4, ref_code=" "), {"level_id": 1})
    assert [entry.name for entry in release.entries] == ["level1/1", "level1/3"]
    assert [problem.partition(":")[0] for problem in release.problems] == ["line 3", "line 5", "line 6", "line 7"]
    assert "not JSON" in release.problems[0] and "ref_code" in release.problems[2]


def test_problems_come_in_the_order_of_lines(tmp_path):
    rows = row(1, 1, score_default="N/A"), "{cut", row(1, 2, ref_code=" "), "{cut", row(1, 1)
    release = read(tmp_path, *rows)
    assert [problem.partition(":")[0] for problem in release.problems] == [f"line {n}" for n in (1, 2, 3, 4, 5)]
    assert [task and task.name for task in release.unread] == [None, "level1/2", None]


def test_a_cut_last_line_alone_after_one_good_line(tmp_path):
    release = read(tmp_path, row(1, 1), json.dumps(row(1, 2))[:40])
    assert len(release.entries) == 1 and release.problems[0].startswith("line 2: not JSON")


def test_of_a_repeated_id_the_last_stands_and_both_places_are_named(tmp_path):
    release = read(tmp_path, row(1, 7, custom_code="first"), row(1, 8), row(1, 7, custom_code="second"))
    assert [entry.name for entry in release.entries] == ["level1/7", "level1/8"]
    assert release.entries[0].codes["custom"] == "second"
    assert release.problems == ("line 3: level1/7 is there twice; this one is used, not that of line 1",)


def test_a_score_that_is_no_number_is_left_out_and_named_and_its_kernel_stays(tmp_path):
    rows = [row(1, 2, score_default="N/A", score_cudnn=2), row(1, 3, score_default=float("nan"))]
    release = read(tmp_path, *rows, row(1, 4, score_default="1.5", score_released="2025-11-01"))
    assert [entry.scores for entry in release.entries] == [{"cudnn": 2.0}, {}, {"default": 1.5}]
    assert release.problems == (
        'line 1: level1/2, score `default` = "N/A": must be a number; left out',
        "line 2: level1/3, score `default` = NaN: must be a finite number; left out",
        'line 3: level1/4, score `released` = "2025-11-01": must be a number; left out',
    )


def test_a_refused_score_is_shown_in_one_short_line_whatever_it_is(tmp_path):
    refused = ["a\nb" * 1000, {"mean": 2.0}, [1.5], 10**900, "\ud800"]
    release = read(tmp_path, row(scores={str(number): value for number, value in enumerate(refused)}))
    shown = [problem.partition(" = ")[2].partition(": must be")[0] for problem in release.problems]
    assert shown[0].startswith('"a\\nba\\nb') and shown[1:3] == ["{...}", "[...]"] and shown[4] == '"\\ud800"'
    assert shown[3].startswith("1000") and all(len(text) < 50 for text in shown)


@pytest.mark.parametrize("layout", ["lines", "array"])
def test_what_is_not_utf_8_costs_its_row_alone(tmp_path, layout):
    rows = [json.dumps(row(1, task, custom_code=f"# {task}")).encode() for task in (1, 2, 3)]
    rows[1] = rows[1].replace(b"# 2", b"# \xe9")
    path = tmp_path / "release.jsonl"
    path.write_bytes(b"\n".join(rows) if layout == "lines" else b"[" + b",".join(rows) + b"]")
    release = read_release(path)
    assert [entry.name for entry in release.entries] == ["level1/1", "level1/3"]
    place = {"lines": "line 2", "array": "entry 2"}[layout]
    assert release.problems == (f"{place}: `custom_code`: must be a text in UTF-8",)
    path.write_bytes(json.dumps(row(1, 1)).encode("utf-16"))
    with pytest.raises(TaskError, match="not text in UTF-8"):
        read_release(path)


def test_scores_may_stand_together(tmp_path):
    release = read(tmp_path, row(1, 1, scores={"default": 2, "cudnn": None}), row(1, 2, scores=3, score_default=1.5))
    assert [entry.scores for entry in release.entries] == [{"default": 2.0}, {"default": 1.5}]
    assert release.problems == ("line 2: level1/2, `scores` = 3: not an object; left out",)


@pytest.mark.parametrize("column", COLUMNS)
def test_a_kernel_that_no_file_could_hold_is_a_problem_of_its_row(tmp_path, column):
    release = read(tmp_path, row(1, 1), row(1, 2, **{f"{column}_code": "x = '\ud800'"}))
    assert [entry.name for entry in release.entries] == ["level1/1"]
    assert release.problems[0].startswith(f"line 2: `{column}_code`: ") and "\ud800" not in release.problems[0]


def test_true_and_false_are_no_numbers_and_their_kernels_stay(tmp_path):
    release = read(tmp_path, row(score_default=True, score_cudnn=False, score_cuda_graph=2.0), row(True, 2))
    (entry,) = release.entries
    assert entry.scores == {"cuda_graph": 2.0} and entry.source("custom")
    assert [problem.partition(": ")[2] for problem in release.problems] == [
        "level1/1, score `default` = true: must be a number; left out",
        "level1/1, score `cudnn` = false: must be a number; left out",
        "`level_id` = true: must be a number",
    ]


def test_what_is_no_speed_up_is_no_score(tmp_path):
    release = read(tmp_path, row(score_default=0, score_cudnn=-1.5, score_cuda_graph=0.5, score_x=None))
    assert release.entries[0].scores == {"cuda_graph": 0.5}
    (problem,) = release.problems
    assert problem.endswith("score `default` = 0, `cudnn` = -1.5: no speed-up is 0 or less; left out")


@pytest.mark.parametrize("layout", ["lines", "array", "nested", "damaged"])
def test_a_number_that_python_does_not_read_costs_its_score_alone(tmp_path, layout):
    text = json.dumps(row(1, 2, score_default=77)).replace("77", "7" * 5000)
    path = tmp_path / "release.json"
    path.write_text(
        {"lines": text, "array": f"[{text}]", "nested": f'{{"1": [{text}]}}', "damaged": f"[{text}, x"}[layout]
    )
    release = read_release(path)
    assert release.entries[0].scores == {} and release.entries[0].source("custom")
    assert release.problems[0].endswith("level1/2, score `default` = Infinity: must be a finite number; left out")


def test_a_line_that_is_nested_too_deep_is_reported_and_the_rest_goes_on(tmp_path):
    release = read(tmp_path, "[" * 200_000, row())
    assert len(release.entries) == 1 and release.problems[0].startswith("line 1: not JSON")


@pytest.mark.parametrize(
    ("ids", "name"),
    [
        ({"level_id": "level1"}, "level1/12"),
        ({"level_id": 1, "task_id": "12_Softmax.py"}, "level1/12"),
        ({"task_id": "1_23"}, "level1/23"),
        ({"level_id": None, "task_id": "1_23"}, "level1/23"),
        ({"level_id": None, "task_id": "level2/23_Softmax.py"}, "level2/23"),
        ({"task_id": " 5_3D_thing"}, "level1/5"),
    ],
)
def test_an_id_may_say_more_than_a_number(tmp_path, ids, name):
    release = read(tmp_path, row(1, 12) | ids)
    assert [entry.name for entry in release.entries] == [name] and release.problems == ()


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ({"task_id": "2_23"}, "`task_id` names level 2, and `level_id` level 1"),
        ({"task_id": "Softmax"}, '`task_id` = "Softmax": must be a whole number'),
        ({"task_id": "x_1"}, '`task_id` = "x_1": must be a number'),
        ({"task_id": -3}, "`task_id` = -3: must be at least 0"),
        ({"level_id": None}, "`level_id` = null: must be a whole number"),
        ({"level_id": "1_0"}, '`level_id` = "1_0": must be a number'),
    ],
)
def test_an_id_that_names_no_task_is_a_problem_of_its_row(tmp_path, ids, said):
    release = read(tmp_path, row(9, 9), row(1, 12) | ids)
    assert [entry.name for entry in release.entries] == ["level9/9"]
    assert release.problems == (f"line 2: {said}",)


def test_a_score_with_a_line_between_its_digits_is_no_number(tmp_path):
    release = read(tmp_path, row(score_default="1_5"))
    assert release.entries[0].scores == {} and "must be a number" in release.problems[0]


def test_a_packed_release_is_read_and_a_damaged_one_refused(tmp_path):
    path = tmp_path / "release.jsonl.gz"
    packed = gzip.compress(f"{json.dumps(row(1, 1))}\n{json.dumps(row(1, 2))}\n".encode())
    path.write_bytes(packed)
    assert [entry.name for entry in read_release(path).entries] == ["level1/1", "level1/2"]
    damages = {
        "its gzip packing is damaged": (packed[:30] + b"\0" * 20 + packed[50:], packed[:-8] + b"\0" * 8),
        "the file is cut off inside its gzip packing, and no row stands before": (packed[:5], packed[:40]),
    }
    for why, files in damages.items():
        for damaged in files:
            path.write_bytes(damaged)
            with pytest.raises(TaskError, match=f"cannot be read: {why}"):
                read_release(path)


def packed_and_cut(*texts: str) -> bytes:
    """All that gzip needs to give the last of the texts, and no more; each is packed so that it can be told apart."""
    packing = zlib.compressobj(wbits=31)
    return b"".join(packing.compress(text.encode()) + packing.flush(zlib.Z_SYNC_FLUSH) for text in texts)


@pytest.mark.parametrize(
    ("texts", "names", "said"),
    [
        (["{1}\n", "{2}\n"], [1, 2], "after line 2: the file is cut off inside its gzip packing"),
        (["{1}\n", "{2}"], [1, 2], "after line 2: the file is cut off inside its gzip packing"),
        (
            ["{1}\n{2}\n", '{{"level_id": 1, "ta'],
            [1, 2],
            "line 3: not JSON: Unterminated string starting at column 17; ",
        ),
        (["[{1}", ",{2}", ",{3}"], [1, 2, 3], "entry 3: not JSON: Expecting ',' or ']' at line 1; nothing behind"),
        (['{{"1": [{1}', ",{2}", ', {{"task_id": '], [1, 2], "entry 3 of level 1: not JSON: Expecting value at line 1"),
        (["[{1}]"], [1], "after line 1: the file is cut off inside its gzip packing"),
    ],
    ids=["between-lines", "without-a-line-end", "within-a-line", "array", "nested", "checksum"],
)
def test_of_a_packed_file_that_breaks_off_what_stands_before_is_read(tmp_path, texts, names, said):
    path = tmp_path / "release.gz"
    rows = ["", *(json.dumps(row(1, number)) for number in (1, 2, 3))]
    path.write_bytes(packed_and_cut(*(text.format(*rows) for text in texts)))
    release = read_release(path)
    assert [entry.name for entry in release.entries] == [f"level1/{number}" for number in names]
    (told,) = release.problems
    assert told.startswith(said) and told.endswith("the file is cut off inside its gzip packing")
    assert release.unread == (None,)


@pytest.mark.parametrize("around", ["```python\n{}```\n", "The kernel:\n\n```\n{}```\nIt fuses.", "~~~\n{}~~~"])
def test_codes_come_out_of_their_fences(tmp_path, around):
    kernel = "class ModelNew:\n    pass\n"
    release = read(tmp_path, row(ref_code=around.format(REFERENCE), custom_code=around.format(kernel)))
    assert release.entries[0].task.source == REFERENCE and release.entries[0].codes["custom"] == kernel


@pytest.mark.parametrize(
    "code", ['NOTE = """\n```python\nx = 1\n```\n"""\n', "```python\nx = 1\n```\n```python\ny = 1\n```"]
)
def test_a_code_stays_as_it_is_where_it_is_python_or_two_blocks(tmp_path, code):
    assert read(tmp_path, row(custom_code=code)).entries[0].codes["custom"] == code


@pytest.mark.parametrize("indent", [None, 2])
def test_one_array_of_rows_is_a_release_too(tmp_path, indent):
    path = tmp_path / "release.json"
    path.write_text(json.dumps([row(1, 1), 5, row(1, 2)], indent=indent))
    release = read_release(path)
    assert [entry.name for entry in release.entries] == ["level1/1", "level1/2"]
    assert [problem.partition(":")[0] for problem in release.problems] == ["entry 2"]


@pytest.mark.parametrize("rows", [{"12": {"ref_code": REFERENCE}}, {"ref_code": REFERENCE}, "x"])
def test_a_level_that_is_no_list_is_named_with_what_belongs_there(tmp_path, rows):
    path = tmp_path / "release.json"
    path.write_text(json.dumps({"1": [row(1, 1)], "2": rows}))
    (told,) = read_release(path).problems
    assert told == (
        'level "2": is no list; the nested layout has a list of rows for each level, and in each row its `task_id`'
    )


@pytest.mark.parametrize("level", ["1", "level1", "a\nb"])
def test_ids_mapped_to_rows_in_each_level_are_refused_in_one_line_that_says_so(tmp_path, level):
    path = tmp_path / "release.json"
    path.write_text(json.dumps({level: {"12": {"ref_code": REFERENCE, "custom_code": "x = 1"}}}))
    with pytest.raises(TaskError, match="is no list; the nested layout has a list of rows for each level") as caught:
        read_release(path)
    assert f"level {json.dumps(level)}: " in str(caught.value) and "\n" not in str(caught.value)


def test_one_row_with_a_list_in_it_is_a_row(tmp_path):
    release = read(tmp_path, row(1, 12, tags=["fused"]))
    assert [entry.name for entry in release.entries] == ["level1/12"] and release.problems == ()


def test_parquet_is_refused_in_one_line_that_says_how_to_write_it_as_lines(tmp_path):
    path = tmp_path / "release.parquet"
    path.write_bytes(b"PAR1\x15\x04\x15\xffPAR1")
    with pytest.raises(TaskError, match="is Parquet, and a release is JSON lines; write it as such") as caught:
        read_release(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("nested", [False, True])
def test_of_a_document_that_breaks_off_the_rows_before_are_read(tmp_path, indent, nested):
    rows = [row(1, 1), row(1, 2), row(1, 3)]
    text = json.dumps({"1": rows[:2], "2": [rows[2] | {"level_id": 2}, row(2, 4)]} if nested else rows, indent=indent)
    path = tmp_path / "release.json"
    path.write_text(text[: text.rindex("ref_code") + 9])
    release = read_release(path)
    assert [entry.name for entry in release.entries] == ["level1/1", "level1/2", *(["level2/3"] if nested else [])]
    (told,) = release.problems
    assert told.startswith("entry 2 of level 2: not JSON: " if nested else "entry 3: not JSON: ")
    assert told.endswith("nothing behind it can be read")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[{one}\n{two}]", "entry 1: not JSON: Expecting ',' or ']' at line 2; nothing behind it can be read"),
        ('{{"1": [{one}\n{two}]}}', "entry 1 of level 1: not JSON: Expecting ',' or ']' at line 2; nothing"),
        ('{{"1": [{one}]\n"2": [{two}]}}', "entry 1 of level 1: not JSON: Expecting ',' or '}}' at line 2; nothing"),
        ("[{one}\n]\n[{two}]", "entry 1: not JSON: Extra data at line 3; nothing behind it can be read"),
    ],
    ids=["array", "nested", "levels", "two-arrays"],
)
def test_what_stands_behind_the_first_fault_is_not_dropped_in_silence(tmp_path, text, said):
    path = tmp_path / "release.json"
    path.write_text(text.format(one=json.dumps(row(1, 1)), two=json.dumps(row(1, 2))))
    release = read_release(path)
    assert [entry.name for entry in release.entries] == ["level1/1"]
    assert release.problems[0].startswith(said.replace("}}", "}")) and release.unread == (None,)


def test_rows_of_the_nested_layout_a_line_each_are_read_up_to_the_fault(tmp_path):
    path = tmp_path / "release.json"
    bare = [{k: v for k, v in row(1, number).items() if k != "level_id"} for number in (1, 2, 3)]
    path.write_text('{"1": [\n' + ",\n".join(map(json.dumps, bare[:2])) + '\n],\n"2": [' + json.dumps(bare[2])[:30])
    assert [entry.name for entry in read_release(path).entries] == ["level1/1", "level1/2"]


@pytest.mark.parametrize("between", ["\n", ",\n", "\n\n"])
def test_rows_over_several_lines_stand_one_behind_another(tmp_path, between):
    path = tmp_path / "release.json"
    rows = [row(1, 1), row(1, 2), row(1, 3, ref_code=" ")]
    path.write_text(between.join(json.dumps(each, indent=2) for each in rows))
    release = read_release(path)
    assert [entry.name for entry in release.entries] == ["level1/1", "level1/2"]
    assert [problem.partition(":")[0] for problem in release.problems] == ["entry 3"]


def test_lines_with_commas_behind_them_are_rows_and_a_damaged_first_line_costs_itself_alone(tmp_path):
    lines = [json.dumps(row(1, task)) + "," for task in (1, 2, 3)]
    assert len(read(tmp_path, *lines).entries) == 3
    release = read(tmp_path, lines[0][:30], *(line[:-1] for line in lines[1:]))
    assert len(release.entries) == 2 and release.problems[0].startswith("line 1: not JSON")


def test_separators_of_lines_within_a_string_do_not_cut_a_row(tmp_path):
    path = tmp_path / "release.jsonl"
    path.write_text(json.dumps(row(custom_code="a\u2028b\x85c"), ensure_ascii=False) + "\r\n", encoding="utf-8")
    assert read_release(path).entries[0].codes["custom"] == "a\u2028b\x85c"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("import torch\n", "neither JSON lines"),
        ('{"1": [{"task_id": 1, "ref_co\n', "no published kernel.*entry 1 of level 1: not JSON: .* at line 1"),
        ('{"level_id": 1, "task_id": 1, "code": "x"}\n', "no published kernel.*line 1: `ref_code`: is missing"),
        ('{"level": 1, "problem_id": 1, "kernel": "x"}\n', "no published kernel.*line 1: `level_id`: is missing"),
        ('{"1": 5}', "no published kernel"),
        ("[]", "no published kernel"),
        (json.dumps({"level_id": 1, "task_id": 1, "ref_code": "\ud800"}), "no published kernel"),
    ],
)
def test_what_is_no_release_is_refused_in_one_line(tmp_path, text, said):
    path = tmp_path / "x.jsonl"
    path.write_text(text)
    with pytest.raises(TaskError, match=said) as caught:
        read_release(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "missing.jsonl", tmp_path, tmp_path / "binary"):
        with pytest.raises(TaskError, match=str(path)):
            read_release(path)


@pytest.mark.skipif("CUDA_L1_RELEASE" not in os.environ, reason="CUDA_L1_RELEASE names no checkout of the release")
@pytest.mark.parametrize("gpu", ["3090", "a100", "h100", "h20", "l40"])
def test_the_true_files(gpu):
    folder = Path(os.environ["CUDA_L1_RELEASE"]) / "optimized_cuda_code"
    release, nested = read_release(folder / f"{gpu}.json"), read_release(folder / "codes" / f"{gpu}.json")
    for read_one in (release, nested):
        assert len(read_one.entries) == 250 and read_one.problems == ()
    assert all(set(COLUMNS) - set(entry.codes) <= {"custom", "cuda_graph"} for entry in release.entries)
    for entry, older in zip(release.entries, nested.entries, strict=True):
        assert entry.task.sha == older.task.sha
        assert ("custom" in entry.codes) == ("default" in entry.scores)
