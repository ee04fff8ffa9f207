"""`--reviewer`: whom to ask for a second opinion, and the asking."""

from __future__ import annotations

from collections.abc import Callable

from cuda_l1.api.addresses import check_address
from cuda_l1.api.roofline import roofline_us
from cuda_l1.archive import Archive
from cuda_l1.config import Precision, ReviewerSettings
from cuda_l1.endpoint import key_for
from cuda_l1.errors import UsageError
from cuda_l1.evaluator import Evaluator
from cuda_l1.reviewer import Reviewer
from cuda_l1.search.events import Event
from cuda_l1.search.review import Reviews
from cuda_l1.types import Clock, Task


def parse_reviewer(
    url: str | None, model: str | None = None, key_file: str | None = None, *, name: str = "--reviewer"
) -> ReviewerSettings | None:
    """The reviewer behind a URL, or None without one; `name` is what a person calls the URL, and begins the names of
    the others.

    Raises UsageError for what is no URL of an endpoint, and for a key that cannot be read.
    """
    if url is None:
        dash = "-" if name.startswith("-") else "_"
        for what, value in (("model", model), ("key file", key_file)):
            if value is not None:
                option = f"{name}{dash}{what.replace(' ', dash)}"
                raise UsageError(f"{option} {value}: say where it is served, e.g. {name} http://localhost:8000/v1")
        return None
    check_address(name, url)
    key_for(url, file=key_file)
    return ReviewerSettings(url=url, model=model, key_file=key_file)


def open_reviews(
    settings: ReviewerSettings | None,
    task: Task,
    *,
    archive: Archive,
    evaluator: Evaluator,
    on_event: Callable[[Event], None],
    clock: Clock | None = None,
    precision: Precision = "default",
) -> Reviews:
    """Second opinions on verdicts for `task`; without settings they are off, and the first jump says so."""
    if settings is None:
        return Reviews(None, archive, on_event, clock, precision)
    least_us = roofline_us(task, clock, evaluator)
    return Reviews(Reviewer(settings), archive, on_event, clock, precision, least_us)
