"""The overview in a real browser: it loads without a complaint, sorts, filters, and can be used by keyboard."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from report_fakes import record, task
from test_site import EVIL, hostile, site

from cuda_l1.report.build import build
from cuda_l1.report.cells import Ratio, Row, Table
from cuda_l1.report.entries import Skipped, entry_of
from cuda_l1.report.site.write import write_site, write_table
from cuda_l1.types import Finding

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no chromium; install it with: apt-get install chromium chromium-driver"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    pytest.importorskip("selenium", reason="no selenium to drive chromium; install it with: pip install selenium")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = [(record(of, speedup), of) for of, speedup in ((task("2_b", 1), 3.0), (task("10_c", 1), 12.5))]
    made += [(record(task("9_d"), None), task("9_d")), (record(EVIL, 1.0, "eager", protocol="screen"), EVIL)]
    return site(tmp_path_factory.mktemp("browser") / "site", [*hostile(), *made])


def opened(browser: Any, path: Path) -> Any:
    browser.get(path.as_uri())
    assert [line for line in browser.get_log("browser") if line["level"] in ("SEVERE", "WARNING")] == []
    return browser


def column(browser: Any, number: int) -> list[str]:
    rows = browser.find_elements("css selector", "#overview tbody tr:not([hidden])")
    return [row.find_elements("css selector", "td")[number].text for row in rows]


def test_every_page_opens_without_a_complaint_and_no_foreign_script_runs(browser: Any, index: Path) -> None:
    for path in [index, *sorted((index.parent / "tasks").glob("*.html"))]:
        opened(browser, path)
        assert browser.find_element("css selector", "h1").text
        assert browser.execute_script("return getComputedStyle(document.body).margin") == "0px", "no style sheet"
        # Nothing is wider than the window but what scrolls on its own.
        assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")


def test_a_column_sorts_by_its_values_both_ways_and_keeps_what_is_missing_last(browser: Any, index: Path) -> None:
    opened(browser, index)
    head = browser.find_element("xpath", "//table[@id='overview']//button[text()='vs eager']")
    head.click()
    shown = [text.split("x")[0] for text in column(browser, 6)]
    figures = [float(text) for text in shown if text != "-"]
    assert figures == sorted(figures) and shown[len(figures) :] == ["-"] and "12.50" in shown
    head.click()
    assert column(browser, 6)[0].startswith("12.50x") and column(browser, 6)[-1] == "-"
    assert head.find_element("xpath", "..").get_attribute("aria-sort") == "descending"


def test_the_keyboard_sorts_and_the_filter_narrows(browser: Any, index: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    opened(browser, index)
    browser.find_element("xpath", "//table[@id='overview']//button[text()='task']").send_keys(Keys.ENTER)
    names = [name for name in column(browser, 0) if name.startswith("kernelbench")]
    assert names == ["kernelbench/1_a", "kernelbench/2_b", "kernelbench/9_d", "kernelbench/10_c"]
    browser.find_element("id", "filter").send_keys("wrong_values")
    assert column(browser, 0) == ["kernelbench/9_d"]
    assert browser.find_element("id", "count").text.startswith("1 of ")


def test_every_table_sorts_by_keyboard_a_share_by_its_value(browser: Any, index: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    opened(browser, index)
    table = next(
        t
        for t in browser.find_elements("tag name", "table")
        if "Speed-up against eager" in t.find_element("tag name", "caption").text
    )
    head = next(b for b in table.find_elements("css selector", "th button") if b.text.startswith("success"))
    for pressed in (False, True):
        head.send_keys(Keys.ENTER)
        place = [b.text.split(" ")[0] for b in table.find_elements("css selector", "th button")].index("success")
        shares = [
            row.find_elements("tag name", "td")[place].text.split("/")
            for row in table.find_elements("css selector", "tbody tr")
        ]
        values = [int(count) / int(total) for count, total in shares]
        assert len(set(values)) > 1 and values == sorted(values, reverse=pressed)


def test_the_keyboard_reaches_the_figures_without_passing_every_task(browser: Any, index: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    opened(browser, index)
    link = browser.find_elements("css selector", "nav a")[1]
    assert link.text == browser.find_elements("css selector", "section > h2")[0].text
    for _ in range(2):
        browser.switch_to.active_element.send_keys(Keys.TAB)
    assert browser.switch_to.active_element == link
    link.send_keys(Keys.ENTER)
    assert browser.current_url.endswith("#block1")


def test_a_report_of_one_section_names_place_and_protocol_once(browser: Any, tmp_path: Path) -> None:
    opened(browser, site(tmp_path / "site", [(record(task("2_b", 1), 3.0), task("2_b", 1))]))
    names = [head.text for head in browser.find_elements("css selector", "#overview th")]
    assert names[:2] == ["task", "method"] and column(browser, names.index("level")) == ["1"]


def test_a_row_leads_to_its_task_and_back(browser: Any, index: Path) -> None:
    opened(browser, index)
    link = next(a for a in browser.find_elements("css selector", "#overview a") if a.text.startswith("file/"))
    link.click()
    assert browser.find_element("css selector", "h1").text.split() == f"{EVIL.suite}/{EVIL.name}".split()
    browser.find_element("link text", "All tasks").click()
    assert browser.find_element("id", "overview")


def test_a_point_of_a_plot_leads_to_its_task(browser: Any, index: Path) -> None:
    opened(browser, index)
    told = "kernelbench/10_c: 12.50x"
    points = browser.find_elements("css selector", "figure svg a")
    point = next(
        p for p in points if p.find_element("css selector", "title").get_attribute("textContent").startswith(told)
    )
    point.find_element("css selector", "circle").click()
    assert browser.find_element("css selector", "h1").text == "kernelbench/10_c"


FITS = "const t = document.getElementById('overview'); return t.offsetWidth <= t.parentElement.clientWidth"


def test_the_overview_needs_no_scrolling_to_the_side_on_a_laptop(browser: Any, index: Path) -> None:
    browser.set_window_size(1366, 768)
    try:
        opened(browser, index)
        assert browser.execute_script(FITS)
        assert {"screen", "final"} >= set(column(browser, 1)) and column(browser, 2)[0].startswith("Test CPU")
    finally:
        browser.set_window_size(1280, 900)


def test_it_can_be_used_on_a_phone(browser: Any, index: Path) -> None:
    browser.set_window_size(500, 800)
    try:
        opened(browser, index)
        assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
        assert browser.execute_script(FITS)
        told = "return getComputedStyle(document.querySelector('#overview td:nth-child(7)'), '::before').content"
        assert "vs eager" in browser.execute_script(told)
        browser.find_element("id", "filter").send_keys("wrong_values")
        assert column(browser, 0) == ["kernelbench/9_d"]
    finally:
        browser.set_window_size(1280, 900)


def test_sentences_in_tables_can_be_read_on_a_phone(browser: Any, tmp_path: Path) -> None:
    """Why a task was skipped, how a task's candidates did, what a finding rests on, why an attempt failed."""
    of, evidence = task("2_b", 1), "a second call gives back the first's storage, " * 4
    finding = Finding(check="caching", severity="note", evidence=evidence)
    made = [(record(of, 2.0, findings=[finding]), of), (record(of, None), of)]
    why = [Skipped("0" * 64, "level4/1_EleutherAI-gpt-neo-2p7B_bs32_seq256", "30b5cb23a414", "fetches a model, " * 9)]
    known = {one.id: one for one, _ in made}
    index = write_site(build([entry_of(*one) for one in made], skipped=why), known.get, tmp_path / "site")
    (page,) = (index.parent / "tasks").glob("*.html")
    browser.set_window_size(500, 800)
    try:
        for path, column in ((index, "why"), (page, "vs eager"), (page, "evidence"), (page, "detail")):
            opened(browser, path)
            cells = browser.find_elements("css selector", f"td[data-label='{column}']")
            told = [cell for cell in cells if len(cell.text) > 15]
            assert told and all(cell.rect["x"] + cell.rect["width"] <= 500 for cell in told), column
    finally:
        browser.set_window_size(1280, 900)


def test_the_names_of_a_plots_series_are_in_sight_on_a_phone(browser: Any, index: Path) -> None:
    browser.set_window_size(500, 800)
    try:
        for path in (index, *(index.parent / "tasks").glob("2_b*.html")):
            opened(browser, path)
            names = browser.find_elements("css selector", "figure .key")
            assert names and all(0 <= name.rect["x"] <= 500 - name.rect["width"] for name in names), path
    finally:
        browser.set_window_size(1280, 900)


def test_a_long_reason_can_be_read_on_a_phone_and_the_table_filtered(browser: Any, tmp_path: Path) -> None:
    why = "measured otherwise: " + "their rounds lie between 1.41x and 2.01x; " * 5
    rows = tuple(Row((f"level1/{number}", Ratio(1.5), why)) for number in range(1, 4))
    page = write_table(
        Table("replay", "a.json, replayed", ("task", "ours", "why they differ"), rows), tmp_path / "site"
    )
    browser.set_window_size(500, 800)
    try:
        opened(browser, page)
        assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
        cells = browser.find_elements("css selector", "#shown tbody td:last-child")
        assert all(cell.rect["width"] > 350 for cell in cells)
        browser.find_element("id", "filter").send_keys("level1/2")
        assert browser.find_element("id", "count").text == "1 of 3"
    finally:
        browser.set_window_size(1280, 900)
