"""What a model wrote about its candidate, on the page of its task: of the candidate, or of what that was made of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from report_fakes import record, task

from cuda_l1.archive import Archive
from cuda_l1.report.analyses import LONGEST, analysis_of
from cuda_l1.report.build import build
from cuda_l1.report.entries import entry_of
from cuda_l1.report.readme import GUARD
from cuda_l1.report.site.write import page_name, write_site
from cuda_l1.types import Origin, Record, Reply

OF = task("1_a", 1)
MODEL = Origin(proposer="llm", model="m")
TEXT = (
    "## Performance Analysis\n{said}\n## Algorithm Design\nOne kernel.\n## Code Implementation\n```python\nx = 1\n```\n"
)


def reply(number: int, candidate: Record, said: str) -> Reply:
    asked = {"run": "run", "task_sha": OF.sha, "model": "m", "endpoint": "host:1", "prompt_sha": "p", "number": number}
    return Reply.model_validate({**asked, "text": TEXT.format(said=said), "candidate_id": candidate.candidate.id})


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive.open(tmp_path / "a.sqlite") as opened:
        yield opened


def dropin_of(screened: Record, origin: Origin) -> Record:
    return record(OF, 2.0, origin, source=f"{screened.candidate.source}\n{GUARD}\nx = 1\n")


def test_the_page_of_a_task_shows_what_the_model_wrote_of_a_drop_in(archive: Archive, tmp_path: Path) -> None:
    screened = record(OF, 2.0, MODEL, source="x = 1\n", protocol="screen")
    final = dropin_of(screened, MODEL.model_copy(update={"parents": (screened.candidate.id,)}))
    archive.replies.append(reply(0, screened, "It waits <b>for memory</b>."))
    for made in (screened, final):
        report = build([entry_of(made, OF)])
        write_site(report, {made.id: made}.get, tmp_path / "site", analysis_of=lambda one: analysis_of(one, [archive]))
        page = (tmp_path / "site" / "tasks" / f"{page_name(OF)}.html").read_text()
        assert "Performance Analysis, as the model wrote it" in page
        assert "It waits &lt;b&gt;for memory&lt;/b&gt;." in page and "One kernel." not in page


def test_a_drop_in_that_was_handed_in_has_that_of_the_search(archive: Archive) -> None:
    screened = record(OF, 2.0, MODEL, source="x = 1\n", protocol="screen")
    final = dropin_of(screened, MODEL.model_copy(update={"parents": (screened.candidate.id,)}))
    by_hand = dropin_of(screened, Origin(proposer="file"))
    assert by_hand.candidate.id == final.candidate.id
    archive.replies.append(reply(0, screened, "Memory."))
    assert analysis_of(by_hand, [archive]) == ""
    archive.append(final, OF)
    assert analysis_of(by_hand, [archive]) == "Memory."


def test_what_was_said_of_the_candidates_that_a_model_was_shown_is_not_taken(archive: Archive) -> None:
    other = record(OF, 2.0, MODEL, source="x = 2\n")
    shown_it = record(OF, 2.0, MODEL.model_copy(update={"parents": (other.candidate.id,)}), source="x = 3\n")
    archive.replies.append(reply(0, other, "Of another."))
    assert analysis_of(shown_it, [archive]) == ""


def test_an_empty_analysis_and_a_long_one(archive: Archive) -> None:
    made = record(OF, 2.0, MODEL, source="x = 1\n")
    archive.replies.add([reply(0, made, ""), reply(1, made, "y" * (LONGEST + 7))])
    text = analysis_of(made, [archive])
    assert text.startswith("y" * LONGEST) and text.endswith("... 7 more characters")
