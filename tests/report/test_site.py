"""The pages as text: complete, small, and foreign text stays text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from report_fakes import LINKS, entry, record, task

from cuda_l1.errors import UsageError
from cuda_l1.report.build import build
from cuda_l1.report.cells import Ratio
from cuda_l1.report.entries import entry_of
from cuda_l1.report.site import plots
from cuda_l1.report.site.axes import Frame
from cuda_l1.report.site.source import LIMIT, coloured, diff
from cuda_l1.report.site.write import page_name, write_site
from cuda_l1.types import Finding, Origin, Record, Task

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\" onload='alert(3)'"
EVIL = Task(suite="file", name=f"../../{HOSTILE}", source=f"# {HOSTILE}\nclass Model: ...\n", level=1)
PLAIN = task("1_a", 1)


def site(folder: Path, records: Sequence[tuple[Record, Task]]) -> Path:
    known = {made.id: made for made, _ in records}
    report = build([entry_of(made, of) for made, of in records], literature=True)
    return write_site(report, known.get, folder)


def hostile() -> list[tuple[Record, Task]]:
    finding = Finding(check=HOSTILE, severity="note", evidence=HOSTILE)
    origin = Origin(proposer="llm", model=HOSTILE, techniques=(HOSTILE,))
    return [
        (record(EVIL, 2.0, origin, source=f"'''{HOSTILE}'''", findings=[finding], flags=[HOSTILE], run=HOSTILE), EVIL),
        (record(EVIL, 1.5, "compile"), EVIL),
        (record(PLAIN, 3.0), PLAIN),
    ]


class Tags(HTMLParser):
    """Collects tags with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_foreign_text_brings_no_tag_and_no_attribute(tmp_path: Path) -> None:
    index = site(tmp_path / "site", hostile())
    pages = [index, *(tmp_path / "site" / "tasks").glob("*.html")]
    assert len(pages) == 3
    for page in pages:
        tags = Tags(page.read_text()).found
        assert not [name for name, _ in tags if name in ("img", "iframe", "object", "style")]
        assert sum(name == "script" for name, _ in tags) == (page == index)
        assert not [key for _, attributes in tags for key in attributes if key.startswith("on")]
        assert not [a for _, a in tags for value in (a.get("src"), a.get("href")) if value and ":" in value]


def test_the_site_needs_no_network_and_every_link_leads_somewhere(tmp_path: Path) -> None:
    site(tmp_path / "site", hostile())
    for page in (tmp_path / "site").rglob("*.html"):
        text = page.read_text()
        assert "Content-Security-Policy" in text and "default-src 'none'" in text
        for _, attributes in Tags(text).found:
            if target := attributes.get("href"):
                file, _, place = target.partition("#")
                assert (page.parent / file).exists() and (not place or f'id="{place}"' in text), target


def test_a_task_page_shows_the_best_candidate_with_its_evidence(tmp_path: Path) -> None:
    records = [(record(PLAIN, speedup, source=f"x = {speedup}"), PLAIN) for speedup in (2.0, 3.5, None)]
    site(tmp_path / "site", records)
    page = (tmp_path / "site" / "tasks" / f"{page_name(PLAIN)}.html").read_text()
    assert records[1][0].id[:12] in page and "3.50x (3.43 to 3.57)" in page
    assert "Correctness trials" in page and "1.00e-07" in page and "output 0 differs" in page
    files = tmp_path / "site" / "tasks" / page_name(PLAIN)
    assert (files / "candidate.py").read_text() == "x = 3.5" and (files / "reference.py").read_text() == PLAIN.source
    folder = f"tasks/{page_name(PLAIN)}"
    assert f"cuda-l1 evaluate {folder}/reference.py {folder}/candidate.py --baselines" in page


def test_a_page_names_what_a_candidate_is_made_with_and_no_column_of_a_release(tmp_path: Path) -> None:
    origin = Origin(proposer="release", techniques=("custom",))
    text = "import torch\nclass ModelNew: pass\nf = torch.compile(ModelNew())\n"
    site(tmp_path / "theirs", [(record(PLAIN, 2.0, origin, source=text), PLAIN)])
    site(tmp_path / "ours", [(record(PLAIN, 2.0), PLAIN)])
    theirs, ours = ((tmp_path / of / "tasks" / f"{page_name(PLAIN)}.html").read_text() for of in ("theirs", "ours"))
    assert "Techniques, by rule: torch-compile.</p>" in theirs and "Techniques: fusion.</p>" in ours


def test_a_file_of_yours_among_the_pages_is_not_lost(tmp_path: Path) -> None:
    records = [(record(PLAIN, 2.0), PLAIN), (record(EVIL, 2.0), EVIL)]
    site(tmp_path / "site", records)
    for name in ("notes.md", "tasks/notes.html", f"tasks/{page_name(PLAIN)}/data.py"):
        (tmp_path / "site" / name).write_text("mine")
        with pytest.raises(UsageError, match=f"holds {name} beside a report, which would be lost; name a new folder"):
            site(tmp_path / "site", records)
        assert (tmp_path / "site" / name).read_text() == "mine"
        (tmp_path / "site" / name).unlink()
    assert site(tmp_path / "site", records).exists()


def test_a_plot_of_screens_names_no_intervals(tmp_path: Path) -> None:
    for protocol, named in (("final", True), ("screen", False)):
        index = site(tmp_path / protocol, [(record(PLAIN, 2.0, protocol=protocol), PLAIN)])
        assert ("speed-up against the best baseline, 95 % intervals" in index.read_text()) == named


def test_a_task_with_baselines_alone_has_their_evidence(tmp_path: Path) -> None:
    finding = Finding(check="busy", severity="note", evidence="others ran")
    made = [(record(PLAIN, speedup, name, source=f"x = '{name}'", findings=[finding]), PLAIN)
            for speedup, name in ((1.0, "eager"), (1.5, "compile"), (None, "bf16"))]  # fmt: skip
    site(tmp_path / "site", made)
    page = (tmp_path / "site" / "tasks" / f"{page_name(PLAIN)}.html").read_text()
    assert "Fastest baseline: compile" in page and page.count("<caption>Correctness trials") == 2
    assert page.count("call clock against eager, 1 pair") >= 2 and page.count("others ran") == 3
    assert page.count("<details>") == 3 and "output 0 differs" in page
    folder = f"tasks/{page_name(PLAIN)}"
    assert f"cuda-l1 bench {folder}/reference.py --baselines compile --protocol final" in page
    assert (tmp_path / "site" / folder / "candidate.py").read_text() == "x = 'compile'"


def test_beside_a_candidate_no_baseline_is_taken_apart(tmp_path: Path) -> None:
    site(tmp_path / "site", [(record(PLAIN, 1.5, "compile"), PLAIN), (record(PLAIN, 1.2), PLAIN)])
    page = (tmp_path / "site" / "tasks" / f"{page_name(PLAIN)}.html").read_text()
    assert "Best candidate: fusion" in page and page.count("<caption>Correctness trials") == 1


def test_what_does_not_count_is_not_called_the_best(tmp_path: Path) -> None:
    suspicion = Finding(check="busy-machine", severity="suspect", evidence="others ran")
    for number, (speedup, findings, said) in enumerate(
        [(2.0, [suspicion], "ACCEPTED, does not count"), (None, [], "WRONG_VALUES")]
    ):
        made = [(record(PLAIN, 1.0, "eager"), PLAIN), (record(PLAIN, speedup, findings=findings), PLAIN)]
        index = site(tmp_path / f"site{number}", made)
        page = (index.parent / "tasks" / f"{page_name(PLAIN)}.html").read_text()
        assert "No candidate counts; the latest: fusion" in page and "Best candidate" not in page
        assert f", {said}. Record" in page and f">{said}</td>" in index.read_text()
        history = page.rpartition("Everything that was tried")[2]
        marked = history.count("ACCEPTED, does not count (fp32)<"), history.count("suspect for busy-machine<")
        assert marked == (1 - number, 1 - number)


def test_an_overview_names_no_final_that_never_was(tmp_path: Path) -> None:
    other = task("2_b", 1)
    origin = Origin(proposer="techniques", techniques=("given_up",))
    screened = (record(PLAIN, 2.0, origin, protocol="screen"), PLAIN)
    made = [screened, (record(other, 2.0), other), *((record(of, 1.0, "eager"), of) for of in (PLAIN, other))]
    page = site(tmp_path / "site", made).read_text()
    rows = page.split("<tr>")
    (final,) = [row for row in rows if "1_a<" in row and ">final<" in row and ">techniques<" in row]
    assert ">not confirmed</td>" in final and not {"ACCEPTED", "fp32", "given_up"} & set(re.split("[<>]", final))
    stands = [plot for plot in page.split("<figure>") if "which candidate stands for a task<" in plot]
    assert [">given_up<" in plot for plot in stands] == [False, True], "of the finals, and of the screens"


def test_an_earlier_site_is_replaced_and_anything_else_is_not(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    site(folder, [(record(PLAIN, 3.0), PLAIN)])
    site(folder, [(record(EVIL, 3.0), EVIL)])
    assert [path.name for path in (folder / "tasks").glob("*.html")] == [f"{page_name(EVIL)}.html"]
    assert list(tmp_path.iterdir()) == [folder]
    other = tmp_path / "mine"
    other.mkdir()
    (other / "index.html").write_text("mine")
    for wrong in (other, other / "index.html", tmp_path / "no" / "where"):
        with pytest.raises(UsageError):
            site(wrong, [(record(PLAIN, 3.0), PLAIN)])
    assert (other / "index.html").read_text() == "mine"


def test_a_page_name_is_plain() -> None:
    assert re.fullmatch(r"[\w-]+", page_name(EVIL)) and page_name(EVIL).endswith(EVIL.sha[:12])


def test_long_texts_are_cut_and_say_so() -> None:
    assert "10 more characters" in coloured("x" * (LIMIT + 10))
    assert len(coloured("x = 1\n" * LIMIT)) < 20 * LIMIT


def test_a_diff_marks_lines_and_escapes_them() -> None:
    shown = diff("a\n<b>\n", "a\n<c>\nd\n")
    assert '<span class="removed">-&lt;b&gt;</span>' in shown and '<span class="added">+&lt;c&gt;\n+d</span>' in shown
    assert diff("a", "a") == ""


def test_plots_stand_single_and_equal_values() -> None:
    assert "<svg" in plots.sorted_speedups([plots.Named("a", Ratio(2.0, 2.0, 2.0), "a.html")], "t")
    assert "<svg" in plots.boxes({"a": [1.0], "b": [2.0, 3.0, 9.0]}, "t")
    assert "<svg" in plots.distributions({"candidate": [5.0, 5.0], "eager": [5.0]}, "t")
    assert (
        plots.sorted_speedups([], "t")
        == plots.boxes({}, "t")
        == plots.distributions({}, "t")
        == plots.bars({}, "t")
        == ""
    )


def test_names_of_many_groups_stand_in_lines_of_their_own() -> None:
    groups = {f"kernelbench of another name, level {number}": [0.5, 1.0, 2.0 + number] for number in range(9)}
    places = re.findall(r'x="([\d.]+)" y="([\d.]+)" text-anchor="start">kernelbench', plots.boxes(groups, "t"))
    heights = [float(y) for _, y in places]
    assert len(heights) == 9 and all(below - above >= 30 for above, below in pairwise(heights))


def test_a_point_says_whose_it_is_and_leads_there(tmp_path: Path) -> None:
    other = task("2_<b>", 1)
    index = site(tmp_path / "site", [(record(PLAIN, 3.0), PLAIN), (record(other, 2.0), other)]).read_text()
    assert (
        f'<a href="tasks/{page_name(PLAIN)}.html" tabindex="-1"><title>kernelbench/1_a: 3.00x (2.94 to 3.06)<' in index
    )
    assert f'<a href="tasks/{page_name(other)}.html" tabindex="-1"><title>kernelbench/2_&lt;b&gt;: 2.00x' in index


def test_fast_p_falls_in_steps_where_a_task_has_its_speedup() -> None:
    shown = plots.fast_p_curves({"ours": [2.0, 0.5, None, 9.0]}, "t")
    (path,) = re.findall(r'points="([^"]*)"', shown)
    points = [tuple(map(float, point.split(","))) for point in path.split()]
    frame = Frame((0.0, 3.0), (0.0, 1.0))
    steps = [(0, 0.75), (0.5, 0.75), (0.5, 0.5), (2, 0.5), (2, 0.25), (3, 0.25)]
    assert points == [(frame.x(p), frame.y(share)) for p, share in steps]


def test_curves_and_boxes_say_what_they_are_and_no_two_curves_look_alike() -> None:
    shown = plots.fast_p_curves({f"method <{number}>": [2.0, None, 0.5, 9.0] for number in range(11)}, "t")
    assert "<title>method &lt;3&gt;: 0.750 at 0, 0.500 at 1, 0.500 at 1.5, 0.250 at 2; 4 tasks</title>" in shown
    assert len(set(re.findall(r'class="curve ([^"]*)"', shown))) == 11 and "method &lt;8&gt; (dashed)" in shown
    boxes = plots.boxes({"a": [1.0, 2.0, 5.0], "b": [2.0]}, "t")
    assert "<title>a: median 2.00x, quartiles 1.50x and 3.50x, 1.00x to 5.00x, 3 tasks</title>" in boxes
    assert "<title>b: median 2.00x, 2.00x to 2.00x, 1 task</title>" in boxes


def test_a_run_of_baselines_has_a_plot_of_how_they_are_spread() -> None:
    from cuda_l1.report.site.overview import section_plots

    report = build([entry(PLAIN, 1.0, "eager"), entry(PLAIN, 1.5, "compile"), entry(PLAIN, None, "cuda-graph")])
    shown = "".join(section_plots(report.sections[0], LINKS))
    assert "<title>compile: median 1.50x, 1.50x to 1.50x, 1 task</title>" in shown and "cuda-graph: median" not in shown


def test_a_plot_holds_no_number_that_is_none() -> None:
    report = build([entry(PLAIN, 3.0), entry(PLAIN, None)])
    from cuda_l1.report.site.overview import section_plots

    shown = "".join(section_plots(report.sections[0], LINKS))
    assert shown and "nan" not in shown and "inf" not in shown
