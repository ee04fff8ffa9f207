"""What a language model wrote of its candidate under *Performance Analysis*, from the replies that an archive keeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cuda_l1.archive import Archive
from cuda_l1.prompts.reply import parse_reply
from cuda_l1.report.readme import is_dropin
from cuda_l1.types import Record

LONGEST = 8_000
"""Characters of an analysis that are shown."""


def analysis_of(record: Record, archives: Sequence[Archive]) -> str:
    """The analysis behind a record's candidate; empty where no reply holds any.

    A drop-in is a file of its own, which no reply holds: its analysis is that of the candidate it was made of, also
    where somebody handed the file in. Raises ArchiveError.
    """
    wanted = [record.candidate.id, *_made_of(record, archives)]
    found: dict[str, str] = {}
    for archive in archives:
        for reply in archive.replies.of_task(record.candidate.task_sha):
            if reply.candidate_id in wanted and (text := parse_reply(reply.text).analysis.strip()):
                found.setdefault(reply.candidate_id, text)
    text = next((found[candidate] for candidate in wanted if candidate in found), "")
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\n... {len(text) - LONGEST} more characters"


def _made_of(record: Record, archives: Sequence[Archive]) -> Iterator[str]:
    """Ids of what a drop-in was made of, as any record of it says; the parents of others are what they were shown."""
    if not is_dropin(record.candidate.source):
        return
    same = (known for archive in archives for known in archive.matching(record.candidate.id))
    for origin in (origin for known in (record, *same) for origin in known.candidate.origins):
        yield from origin.parents if origin.model else ()
