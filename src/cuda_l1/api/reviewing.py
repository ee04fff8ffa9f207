"""`--reviewer`: whom to ask for a second opinion, and the asking."""

from __future__ import annotations

from collections.abc import Callable

from cuda_l1.api.addresses import check_address
from cuda_l1.api.searching import roofline_us
from cuda_l1.archive import Archive
from cuda_l1.config import ReviewerSettings
from cuda_l1.errors import UsageError
from cuda_l1.evaluator import Evaluator
from cuda_l1.reviewer import Reviewer
from cuda_l1.search.events import Event
from cuda_l1.search.review import Reviews
from cuda_l1.types import Clock, Task


def parse_reviewer(
    url: str | None, model: str | None = None, *, name: str = "--reviewer", model_name: str = "--reviewer-model"
) -> ReviewerSettings | None:
    """The reviewer behind a URL, or None without one; `name` and `model_name` are what a person calls the settings.

    Raises UsageError for what is no URL of an endpoint.
    """
    if url is None:
        if model is not None:
            raise UsageError(f"{model_name} {model}: say where it is served, e.g. {name} http://localhost:8000/v1")
        return None
    check_address(name, url)
    return ReviewerSettings(url=url, model=model)


def open_reviews(
    settings: ReviewerSettings | None,
    task: Task,
    *,
    archive: Archive,
    evaluator: Evaluator,
    on_event: Callable[[Event], None],
    clock: Clock | None = None,
    precision: str = "default",
) -> Reviews:
    """Second opinions on verdicts for `task`; without settings they are off, and the first jump says so."""
    if settings is None:
        return Reviews(None, archive, on_event, clock, precision)
    least_us = roofline_us(task, clock, evaluator)
    return Reviews(Reviewer(settings), archive, on_event, clock, precision, least_us)
