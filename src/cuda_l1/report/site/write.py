"""Writes the pages: whole or not at all, beside what is there."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import cuda_l1
from cuda_l1.errors import InfrastructureError, UsageError
from cuda_l1.report.build import Report
from cuda_l1.report.cells import Table, text
from cuda_l1.report.site import overview
from cuda_l1.report.site.source import colours
from cuda_l1.report.site.task_page import AnalysisOf, RecordOf, page
from cuda_l1.types import Record, Task

MARK = '<meta name="generator" content="cuda-l1 report">'
"""By this an earlier site of ours is known, which may be replaced."""
_PAGES = re.compile(r"index\.html|style\.css|tasks/[A-Za-z0-9_-]*-[0-9a-f]{12}(\.html|/reference\.py|/candidate\.py)")
"""The files of a site."""


def check_folder(folder: Path, *, pages: bool = True) -> None:
    """Raises UsageError where a site, or without `pages` a table alone, cannot be written without losing something that
    is not ours or of the other kind."""
    if not folder.resolve().parent.is_dir():
        raise UsageError(f"--html {folder}: there is no folder {folder.resolve().parent}")
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--html {folder}: is a file; name a folder")
    if folder.is_dir() and any(folder.iterdir()) and not is_ours(folder):
        raise UsageError(f"--html {folder}: holds files that are no report of cuda-l1; name a new folder")
    if folder.is_dir() and (own := _no_page(folder)):
        raise UsageError(f"--html {folder}: holds {own} beside a report, which would be lost; name a new folder")
    if (folder / "index.html").is_file() and pages != (folder / "tasks").is_dir():
        there = "a table of `replay`" if pages else "the pages of a report"
        raise UsageError(f"--html {folder}: holds {there}; name a new folder")


def is_ours(folder: Path) -> bool:
    """Whether its first page is one of cuda-l1."""
    index = folder / "index.html"
    return index.is_file() and MARK in index.read_text("utf-8", errors="replace")[:2000]


def _no_page(folder: Path) -> str | None:
    """The first file below it that no report has; it is replaced as a whole."""
    below = (path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if not path.is_dir())
    return next((name for name in below if not _PAGES.fullmatch(name)), None)


def write_site(
    report: Report,
    record_of: RecordOf,
    folder: Path,
    on_page: Callable[[], None] = lambda: None,
    analysis_of: AnalysisOf = lambda record: "",
) -> Path:
    """Writes the site, in place of an earlier one, and returns the path of its first page.

    `on_page` is called for each page written. Raises UsageError (see `check_folder`), InfrastructureError (full disk);
    an earlier site stays as it was then.
    """
    check_folder(folder)
    return _written(folder, lambda made: _write_pages(report, record_of, analysis_of, made, on_page))


def write_table(table: Table, folder: Path) -> Path:
    """Writes a page of one table, and else as `write_site` does."""
    check_folder(folder, pages=False)
    return _written(folder, lambda made: _write_table(table, made))


def _written(folder: Path, write: Callable[[Path], None]) -> Path:
    folder = folder.resolve()
    try:
        made = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    except OSError as error:
        raise UsageError(f"cannot write {folder}: {error.strerror}") from error
    try:
        write(made)
        made.chmod(0o755)
        _put(made, folder)
    except OSError as error:
        raise InfrastructureError(f"cannot write {folder}: {error.strerror}") from error
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return folder / "index.html"


def _write_table(table: Table, made: Path) -> None:
    (made / "style.css").write_text(asset("style.css"), "utf-8")
    shown = rendered_page(
        "table.html.j2",
        root="",
        title=table.title,
        table=table,
        made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        version=cuda_l1.__version__,
    )
    (made / "index.html").write_text(shown, "utf-8")


def _put(made: Path, folder: Path) -> None:
    if not folder.exists():
        os.replace(made, folder)
        return
    old = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.")) / "old"
    os.replace(folder, old)
    os.replace(made, folder)
    shutil.rmtree(old.parent)


def _write_pages(
    report: Report, record_of: RecordOf, analysis_of: AnalysisOf, made: Path, on_page: Callable[[], None]
) -> None:
    tasks = {view.task.sha: view.task for section in report.sections for view in section.views}
    names = {sha: page_name(task) for sha, task in tasks.items()}
    (made / "style.css").write_text(asset("style.css") + colours(), "utf-8")
    (made / "tasks").mkdir()
    for sha, task in tasks.items():
        _write_task(task, names[sha], page(task, report, record_of, analysis_of), made / "tasks")
        on_page()
    links = {sha: f"tasks/{name}.html" for sha, name in names.items()}
    columns, rows = overview.overview_rows(report, links)
    shown = rendered_page(
        "index.html.j2",
        root="",
        title="cuda-l1 report",
        tasks=len(tasks),
        sections=[section.title for section in report.sections],
        made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        version=cuda_l1.__version__,
        columns=columns,
        rows=rows,
        blocks=overview.plotted_blocks(report, links),
    )
    (made / "index.html").write_text(shown, "utf-8")


def _write_task(task: Task, name: str, found: tuple[dict[str, Any], Record | None], there: Path) -> None:
    context, record = found
    shown = rendered_page("task.html.j2", root="../", name=name, **context)
    (there / f"{name}.html").write_text(shown, "utf-8")
    if record:
        (there / name).mkdir()
        (there / name / "reference.py").write_text(task.source, "utf-8")
        (there / name / "candidate.py").write_text(record.candidate.source, "utf-8")


def page_name(task: Task) -> str:
    """A file name of plain letters for a task of any name."""
    return f"{re.sub(r'[^A-Za-z0-9_]+', '-', task.name)[:60].strip('-')}-{task.sha[:12]}"


def rendered_page(template: str, **context: object) -> str:
    """A page of the site from its template."""
    script = asset("table.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _templates().get_template(template).render(script=Markup(script), script_hash=digest, **context)


@cache
def _templates() -> Environment:
    made = Environment(
        loader=PackageLoader("cuda_l1.report.site"), undefined=StrictUndefined, autoescape=True, trim_blocks=True
    )
    made.filters["text"] = text
    made.filters["sortkey"] = overview.sort_key
    made.filters["with_code"] = with_code
    return made


def with_code(told: str) -> Markup:
    """A text with what stands between backticks as code; all of it escaped."""
    parts = told.split("`")
    if len(parts) % 2 == 0:
        return Markup("{}").format(told)
    shapes = (Markup("<code>{}</code>") if index % 2 else Markup("{}") for index in range(len(parts)))
    return Markup("").join(shape.format(part) for shape, part in zip(shapes, parts, strict=True))


@cache
def asset(name: str) -> str:
    """A file that lies beside the templates."""
    return files("cuda_l1.report.site").joinpath("templates", name).read_text("utf-8")
